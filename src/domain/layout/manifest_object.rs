//! Objects beside a table's root.

/// An object beside a table's root, by its name after [`super::manifest_objects_prefix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestObject<'a> {
    /// The name of a shard.
    Shard(&'a str),
    /// The commit that retired the root before it: of [`super::manifest_retired_key`], or of [`super::manifest_root_key`] of that root.
    Commit(u64),
}

impl<'a> ManifestObject<'a> {
    /// `None` for intents, staged objects, and objects of other programs.
    pub fn of(name: &'a str) -> Option<Self> {
        let number = |text: &str| (text.len() == 20).then(|| text.parse::<u64>().ok())?;
        let is_hash = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let Some(shard) = name.strip_suffix(".json.zst") {
            return is_hash(shard).then_some(Self::Shard(shard));
        }
        let (kind, sequence) = name.strip_suffix(".json")?.split_once('-')?;
        match kind {
            "root" => Some(Self::Commit(number(sequence)?.checked_add(1)?)),
            "retired" => Some(Self::Commit(number(sequence)?)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::layout::{
        manifest_intent_key, manifest_log_key, manifest_objects_prefix, manifest_retired_key, manifest_root_key,
        manifest_shard_key,
    };
    use crate::domain::name::Slug;

    #[test]
    fn objects_beside_a_root_are_recognized_by_their_names() {
        let (slug, shard) = (Slug::parse("x").unwrap(), "0a1b2c3d".repeat(4));
        let of = |key: String| {
            let name = key.strip_prefix(&manifest_objects_prefix(&slug, "t")).unwrap().to_owned();
            ManifestObject::of(&name).map(|object| format!("{object:?}"))
        };
        assert_eq!(of(manifest_shard_key(&slug, "t", &shard)), Some(format!("Shard({shard:?})")));
        assert_eq!(of(manifest_retired_key(&slug, "t", 7)), Some("Commit(7)".into()));
        assert_eq!(of(manifest_root_key(&slug, "t", 6)), Some("Commit(7)".into()));
        for other in
            [manifest_intent_key(&slug, "t", 7), manifest_log_key(&slug, "t", 7), manifest_shard_key(&slug, "t", "x")]
        {
            assert_eq!(of(other), None);
        }
        assert_eq!(ManifestObject::of(&format!("root-{:020}.json", u64::MAX)), None);
    }
}
