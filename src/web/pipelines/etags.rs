//! Manifests whose objects got other tags, by being copied or written anew.
//!
//! Invariant: a tag is taken over only for bytes that are known to be those that the manifest speaks of; for all others
//! it is one that no object has, so that the next run reads or repairs them.

use crate::domain::manifest::{FileEntry, Manifest, SourceEntry};

/// No object's tag.
const NOBODYS: &str = "none";

/// The manifest with other tags; `None` if it is none that can be read, which the next run makes anew.
///
/// `source` and `file` give the tag that an object of the lake or the warehouse has now, by its key relative to the
/// pipeline's prefix, if it is the one that the entry speaks of.
pub(super) fn rebuilt(
    json: &[u8],
    source: impl Fn(&str, &SourceEntry) -> Option<String>,
    file: impl Fn(&FileEntry) -> Option<String>,
) -> Option<Vec<u8>> {
    let mut manifest = Manifest::parse(json).ok()?;
    for (key, entry) in &mut manifest.sources {
        entry.etag = Some(source(key, entry).unwrap_or_else(|| NOBODYS.to_owned()));
    }
    let files = manifest.partitions.values_mut().flat_map(|partition| &mut partition.files);
    for entry in files.chain(manifest.rejects.values_mut()) {
        entry.etag = Some(file(entry).unwrap_or_else(|| NOBODYS.to_owned()));
    }
    Some(manifest.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_taken_over_for_known_bytes_alone() {
        let entry = |key: &str, etag: &str| FileEntry {
            key: key.to_owned(),
            rows: 1,
            size: 1,
            etag: Some(etag.to_owned()),
            sha256: String::new(),
            sources: vec![],
        };
        let mut manifest = Manifest::new("t", "f", "l");
        manifest.rejects.insert("a".into(), entry("_rejected_rows/a", "old"));
        manifest.rejects.insert("b".into(), entry("_rejected_rows/b", "old"));
        let known = |file: &FileEntry| file.key.ends_with('a').then(|| "new".to_owned());
        let rebuilt = rebuilt(&manifest.to_json(), |_, _| None, known).unwrap();
        let rebuilt = Manifest::parse(&rebuilt).unwrap();
        assert_eq!(rebuilt.rejects["a"].etag.as_deref(), Some("new"));
        assert_eq!(rebuilt.rejects["b"].etag.as_deref(), Some(NOBODYS));
        assert!(super::rebuilt(b"{", |_, _| None, |_| None).is_none());
    }
}
