//! The form of an exported pipeline: a zip archive.
//!
//! `pipelines/…`, `lake/…` and `warehouse/…` hold the objects of the three buckets, by their keys relative to the
//! pipeline's prefix, in the order of their bytes; `manifest.json`, which comes last, says what they are.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::domain::layout::{UNFINISHED, check_portable, check_portable_in_warehouse, parse_key};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::ports::store::Bucket;

/// The format that this version writes, and the only one that it reads.
pub(super) const FORMAT: u32 = 1;
/// The name of the manifest.
pub(super) const MANIFEST: &str = "manifest.json";
/// The key of a config, relative to the pipeline's prefix.
pub(super) const CONFIG: &str = "pipeline.json";

/// What an archive holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// Of the pipeline that was exported.
    pub(super) slug: String,
    /// A run published, or somebody wrote, while it was exported: tables may not fit their sources. The first run after
    /// the import finds out, and puts it right.
    pub(super) changed_during_export: bool,
    /// In the order of the archive.
    pub(super) objects: Vec<PackedObject>,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackedObject {
    /// The entry's name.
    pub(super) path: String,
    /// Bytes.
    pub(super) size: u64,
    /// Hex.
    pub(super) sha256: String,
}

/// The name of an object's entry. `key` is relative to the pipeline's prefix.
pub(super) fn entry_name(bucket: Bucket, key: &str) -> String {
    format!("{bucket}/{key}")
}

/// Which object an entry is: its bucket, and its key relative to the pipeline's prefix. The key is taken as it is, byte
/// for byte.
///
/// # Errors
/// Why there can be no such object.
pub(super) fn object_of(name: &str) -> Result<(Bucket, &str), Cow<'static, str>> {
    let top = Bucket::ALL.into_iter().find_map(|bucket| {
        let key = name.strip_prefix(&bucket.to_string())?.strip_prefix('/')?;
        Some((bucket, key))
    });
    let (bucket, key) = top.ok_or("it lies in none of `pipelines/`, `lake/` and `warehouse/`")?;
    parse_key(key).map_err(|error| error.why)?;
    if bucket == Bucket::Warehouse { check_portable_in_warehouse(key) } else { check_portable(key) }?;
    if bucket == Bucket::Pipelines && key == UNFINISHED {
        return Err("it is the mark of a pipeline that isn't whole".into());
    }
    Ok((bucket, key))
}

/// Whether an entry may have so many bytes.
///
/// # Errors
/// Why not.
pub(super) fn check_size(name: &str, size: u64) -> Result<(), Cow<'static, str>> {
    let is_config = name == entry_name(Bucket::Pipelines, CONFIG);
    if is_config && size > CONFIG_BYTES_MAX as u64 {
        return Err(format!("a config has at most {CONFIG_BYTES_MAX} bytes").into());
    }
    Ok(())
}

/// Whether an object is compressed in itself, so that compressing it again would only cost time.
pub(super) fn is_compressed(key: &str) -> bool {
    [".parquet", ".gz", ".zst"].iter().any(|suffix| key.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_objects_of_the_three_buckets() {
        assert_eq!(object_of("lake/a/b c%.csv"), Ok((Bucket::Lake, "a/b c%.csv")));
        assert_eq!(object_of("warehouse/t/v=a%2Fb/part-00000.parquet").unwrap().0, Bucket::Warehouse);
        assert!(object_of("warehouse/t/v=x%2F..%2Fy/part-00000.parquet").is_ok());
        assert_eq!(object_of("pipelines/pipeline.json"), Ok((Bucket::Pipelines, "pipeline.json")));
        // Keys keep their bytes, whatever the normal form.
        assert_eq!(object_of("lake/e\u{301}.csv").unwrap().1, "e\u{301}.csv");
    }

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        for bad in [
            "x.csv",
            "lake",
            "lake/",
            "Lake/x",
            "/lake/x",
            "../lake/x",
            "lake/../x",
            "lake/./x",
            "lake//x",
            "lake/x/",
            "lake\\x",
            "lake/a\\..\\b",
            "lake/C:/x",
            "lake/a\0b",
            "lake/%2e%2e/x",
            "lake/%252e%252E/x",
            "lake/%2e%2e%2f/x",
            "lake/..%2fx",
            "lake/a%2F..%5cb",
            "lake/%c0%ae%c0%ae/x",
            "warehouse/t/..%2f..",
            "lake/v=x%2F..%2Fy",
            "lake/\u{2024}\u{2024}/x",
            "lake/\u{ff0e}\u{ff0e}/x",
            "lake/a\u{202e}b",
            "pipelines/unfinished.json",
        ] {
            assert!(object_of(bad).is_err(), "{bad:?}");
        }
    }
}
