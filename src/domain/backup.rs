//! The index of a backup: the objects that it has, and the names of their data.
//!
//! Each object's bytes are stored in parts of [`PART_BYTES`]. An index is outside input: every value is checked before use.
//!
//! Must not: say how objects are copied; that is `pipelines::backup`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::sha256_hex;
use super::table_log::shards::ShardRef;

/// The format of the index that this version writes.
pub const BACKUP_VERSION: u32 = 1;
/// Bytes of each part of an object but the last.
pub const PART_BYTES: u64 = 8 << 20;
/// Largest object, by the digits of a part's number.
pub const OBJECT_BYTES_MAX: u64 = PART_BYTES * 999_999;
/// Hex digits of a data name.
pub const DATA_NAME_LEN: usize = 32;

/// One backup. Writing it completes the backup; it never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRoot {
    pub version: u32,
    pub id: String,
    /// When it began, RFC 3339, by the clock of the machine that made it.
    pub began_at: String,
    /// The version of Lakemill that made it.
    pub lakemill: String,
    /// Whether it was made without the CSVs of the lake.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_csvs: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_tables: bool,
    /// Totals of all objects.
    pub objects: u64,
    pub bytes: u64,
    /// Objects of the pipelines bucket other than tables' manifests, by key.
    pub plain: Vec<ShardRef<String>>,
    /// Tables, by the keys of their manifests' roots.
    pub tables: Vec<ShardRef<String>>,
    /// Objects of the lake, by key.
    pub lake: Vec<ShardRef<String>>,
}

/// An object in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupObject {
    pub size: u64,
    /// Of its bytes, in hex.
    pub sha256: String,
    /// The name of its data.
    pub data: String,
    /// The tag that it had in the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// A table in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupTable {
    /// The root of its manifest.
    pub root: BackupObject,
    /// All objects that the root names, numbered.
    pub objects: Vec<ShardRef<u64>>,
    pub count: u64,
    pub bytes: u64,
}

/// An object that the root of a table's manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupTableObject {
    pub bucket: TableBucket,
    pub key: String,
    pub object: BackupObject,
}

/// The bucket of a table's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableBucket {
    Pipelines,
    Warehouse,
}

/// Why an index can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupIndexError {
    #[error("found backup format {found}, expected at most {BACKUP_VERSION}: a newer Lakemill made it")]
    Newer { found: u64 },
    #[error("found no readable index: {reason}")]
    Unreadable { reason: String },
}

/// `<date>T<time>Z-<8 hex>`: the order of ids is that of the backups.
pub fn is_backup_id(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = |time: &str| match (time.get(..8), time.get(8..9), time.get(9..15), time.get(15..)) {
        (Some(day), Some("T"), Some(second), Some("Z")) => digits(day) && digits(second),
        _ => false,
    };
    text.split_once('-').is_some_and(|(time, unique)| is_time(time) && is_hex(unique, 8))
}

/// Whether a text has exactly `len` hex digits.
pub fn is_hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The data name of content with this SHA-256.
pub fn content_name(sha256: &str) -> String {
    sha256.get(..DATA_NAME_LEN).unwrap_or(sha256).to_owned()
}

/// The data name of a version of an object whose content isn't known before it is copied.
pub fn version_name(bucket: impl fmt::Display, key: &str, etag: &str, size: u64) -> String {
    content_name(&sha256_hex(format!("version\0{bucket}\0{key}\0{etag}\0{size}").as_bytes()))
}

/// The number of parts of an object.
pub fn part_count(size: u64) -> u64 {
    size.div_ceil(PART_BYTES)
}

impl BackupRoot {
    /// # Errors
    /// See [`BackupIndexError`].
    pub fn parse(json: &[u8], id: &str) -> Result<Self, BackupIndexError> {
        #[derive(Deserialize)]
        struct Format {
            version: u64,
        }
        let unreadable = |error: serde_json::Error| BackupIndexError::Unreadable { reason: error.to_string() };
        let found = serde_json::from_slice::<Format>(json).map_err(unreadable)?.version;
        if found > u64::from(BACKUP_VERSION) {
            return Err(BackupIndexError::Newer { found });
        }
        let root: Self = serde_json::from_slice(json).map_err(unreadable)?;
        match root.id == id {
            true => Ok(root),
            false => Err(BackupIndexError::Unreadable { reason: "it is that of another backup".to_owned() }),
        }
    }
}

impl BackupObject {
    /// Whether its values are possible.
    ///
    /// # Errors
    /// The first value that is impossible.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.size > OBJECT_BYTES_MAX {
            return Err("its size in the index is impossible");
        }
        match is_hex(&self.sha256, 64) && is_hex(&self.data, DATA_NAME_LEN) {
            true => Ok(()),
            false => Err("its hash or data name in the index is not hex"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_times_and_hex() {
        assert!(is_backup_id("20240501T030000Z-0a1b2c3d"));
        for bad in
            ["", "-", "../x", "20240501T030000Z", "20240501T030000Z-0A1B2C3D", "2024é501T030000-0a1b2c3d", "x-0a1b2c3d"]
        {
            assert!(!is_backup_id(bad), "{bad}");
        }
    }

    #[test]
    fn impossible_entries_are_refused() {
        let fine = BackupObject { size: 1, sha256: "a".repeat(64), data: "b".repeat(32), etag: None };
        assert_eq!(fine.check(), Ok(()));
        for data in ["", "../../../../../../../../../etc/pw", &"B".repeat(32), &"é".repeat(16)] {
            assert!(BackupObject { data: data.to_owned(), ..fine.clone() }.check().is_err(), "{data}");
        }
        assert!(BackupObject { size: u64::MAX, ..fine.clone() }.check().is_err());
        assert!(BackupObject { sha256: String::new(), ..fine }.check().is_err());
    }

    #[test]
    fn objects_are_cut_into_parts() {
        let counts = [0, 1, PART_BYTES, PART_BYTES + 1].map(part_count);
        assert_eq!(counts, [0, 1, 1, 2]);
    }
}
