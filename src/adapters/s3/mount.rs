//! Stores the keys of a bucket below another prefix, so that one folder of a bucket can be a pipeline's.

use std::borrow::Cow;

use crate::ports::store::Bucket;

/// Maps a key prefix of a bucket to another one of the stored objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Mount {
    pub bucket: Bucket,
    /// Prefix of the port's keys. Others, which only probes of the store have, are stored below `stored` as they are. A
    /// listing of a shorter prefix finds nothing.
    pub prefix: String,
    /// Its replacement in the stored key: empty, or ends with `/`.
    pub stored: String,
    /// Folders directly below, with `/` at their end, whose objects are not listed.
    pub hide: Vec<String>,
}

impl S3Mount {
    /// The key of the stored object, or of the stored objects that begin with it.
    pub(super) fn stored_key(&self, key: &str) -> String {
        format!("{}{}", self.stored, key.strip_prefix(&self.prefix).unwrap_or(key))
    }

    fn hides(&self, stored: &str) -> bool {
        let below = stored.strip_prefix(&self.stored);
        below.is_some_and(|below| self.hide.iter().any(|folder| below.starts_with(folder.as_str())))
    }
}

/// The mounts of a store; a bucket without one keeps its keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Mounts(pub(super) Vec<S3Mount>);

impl Mounts {
    fn of(&self, bucket: Bucket) -> Option<&S3Mount> {
        self.0.iter().find(|mount| mount.bucket == bucket)
    }

    /// The key of a stored object. The bucket itself, `""`, stays.
    pub(super) fn stored_key<'k>(&self, bucket: Bucket, key: &'k str) -> Cow<'k, str> {
        match self.of(bucket).filter(|_| !key.is_empty()) {
            Some(mount) => Cow::Owned(mount.stored_key(key)),
            None => Cow::Borrowed(key),
        }
    }

    /// The prefix of stored keys that a listing of `prefix` asks for.
    pub(super) fn stored_prefix<'k>(&self, bucket: Bucket, prefix: &'k str) -> Cow<'k, str> {
        self.of(bucket).map_or(Cow::Borrowed(prefix), |mount| Cow::Owned(mount.stored_key(prefix)))
    }

    /// The port's key or prefix of one that a listing of `prefix` found; `None` if it is hidden.
    pub(super) fn listed(&self, bucket: Bucket, prefix: &str, stored: String) -> Option<String> {
        let Some(mount) = self.of(bucket) else { return Some(stored) };
        let asked = mount.stored_key(prefix);
        stored.strip_prefix(&asked).filter(|_| !mount.hides(&stored)).map(|rest| format!("{prefix}{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts() -> Mounts {
        Mounts(vec![S3Mount {
            bucket: Bucket::Warehouse,
            prefix: "pipelines/local/".into(),
            stored: "a b/out/".into(),
            hide: vec!["_lakemill/".into()],
        }])
    }

    #[test]
    fn keys_are_stored_below_the_mount() {
        let (mounts, bucket) = (mounts(), Bucket::Warehouse);
        assert_eq!(mounts.stored_key(bucket, "pipelines/local/t/x.parquet"), "a b/out/t/x.parquet");
        assert_eq!(mounts.stored_key(bucket, "workspace/.probe"), "a b/out/workspace/.probe");
        assert_eq!(mounts.stored_key(bucket, ""), "", "the bucket itself");
        assert_eq!(mounts.stored_key(Bucket::Lake, "pipelines/local/t"), "pipelines/local/t", "not mounted");
    }

    #[test]
    fn listing_gives_back_keys_and_leaves_out_hidden_folders() {
        let (mounts, bucket, prefix) = (mounts(), Bucket::Warehouse, "pipelines/local/");
        assert_eq!(mounts.stored_prefix(bucket, prefix), "a b/out/");
        let listed = |stored: &str| mounts.listed(bucket, prefix, stored.to_owned());
        assert_eq!(listed("a b/out/t/x.parquet").as_deref(), Some("pipelines/local/t/x.parquet"));
        assert_eq!(listed("a b/out/_lakemill/manifests/t.json"), None);
        assert_eq!(listed("a b/out/_lakemill/"), None);
        assert_eq!(listed("a b/out/_lakemills/x").as_deref(), Some("pipelines/local/_lakemills/x"));
        assert_eq!(mounts.listed(Bucket::Lake, "x", "xy".into()).as_deref(), Some("xy"));
    }
}
