//! The data that a place has: 24 bytes of memory for each object.

use super::error::{BackupError, BackupResult};
use super::place::{BUCKET, BackupPlace};
use crate::domain::backup::{BackupObject, DATA_NAME_LEN, PART_BYTES, is_hex, part_count};
use crate::domain::digest::decode_hex;
use crate::domain::layout::backup_data_prefix;
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::ports::store::ObjectMeta;

/// In [`StoredData::last`]: the parts are not those of any object.
const IRREGULAR: u32 = u32::MAX;

/// A data name as bytes.
pub(super) type DataName = [u8; DATA_NAME_LEN / 2];

/// All parts under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredData {
    pub(super) name: DataName,
    pub(super) parts: u32,
    /// The size of the last part.
    last: u32,
}

/// Sorted by name.
#[derive(Debug, Default)]
pub(super) struct KnownData(Vec<StoredData>);

pub(super) fn data_name(data: &str) -> Option<DataName> {
    decode_hex(data)?.try_into().ok()
}

impl KnownData {
    /// Lists the data of a place.
    pub(super) fn read(place: &BackupPlace<'_>) -> BackupResult<Self> {
        let prefix = backup_data_prefix(place.slug);
        let (mut known, mut after) = (Self::default(), None::<String>);
        loop {
            let page = place.store.list(BUCKET, &prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX);
            let page = page.map_err(BackupError::of_place)?;
            for object in &page.objects {
                if let Some((name, part)) = object.key.strip_prefix(&prefix).and_then(part_of) {
                    known.add(name, part, object);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        known.0.sort_unstable_by_key(|data| data.name);
        Ok(known)
    }

    /// Parts arrive in order.
    fn add(&mut self, name: DataName, part: u32, object: &ObjectMeta) {
        let size = u32::try_from(object.size).unwrap_or(IRREGULAR);
        let is_full = |last: u32| u64::from(last) == PART_BYTES;
        match self.0.last_mut().filter(|data| data.name == name) {
            Some(data) => {
                let follows = data.parts == part && is_full(data.last) && u64::from(size) <= PART_BYTES;
                (data.parts, data.last) = (part + 1, if follows { size } else { IRREGULAR });
            }
            None => {
                let last = if part == 0 && u64::from(size) <= PART_BYTES { size } else { IRREGULAR };
                self.0.push(StoredData { name, parts: part + 1, last });
            }
        }
    }

    /// Whether all parts of an object are there, by their sizes.
    pub(super) fn has(&self, data: &str, size: u64) -> bool {
        let Some(name) = data_name(data) else { return false };
        self.has_named(&name, size)
    }

    pub(super) fn has_named(&self, name: &DataName, size: u64) -> bool {
        if size == 0 {
            return true;
        }
        let found = self.0.binary_search_by_key(name, |data| data.name).ok().and_then(|at| self.0.get(at));
        let parts = part_count(size);
        found.is_some_and(|data| {
            u64::from(data.parts) == parts && u64::from(data.last) == size - (parts - 1) * PART_BYTES
        })
    }

    pub(super) fn has_object(&self, object: &BackupObject) -> bool {
        object.check().is_ok() && self.has(&object.data, object.size)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &StoredData> {
        self.0.iter()
    }
}

/// The name and number of a part by its key below the prefix; `None` for objects of others.
fn part_of(key: &str) -> Option<(DataName, u32)> {
    let (folder, file) = key.split_once('/')?;
    let (data, part) = file.split_once('-')?;
    let is_ours = is_hex(data, DATA_NAME_LEN) && data.starts_with(folder) && folder.len() == 2 && part.len() == 6;
    let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
    (is_ours && is_number).then(|| Some((data_name(data)?, part.parse().ok()?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(parts: &[(&str, u32, u64)]) -> KnownData {
        let mut known = KnownData::default();
        for (data, part, size) in parts {
            let meta =
                ObjectMeta { key: String::new(), size: *size, etag: None, modified: chrono::DateTime::UNIX_EPOCH };
            known.add(data_name(&data.repeat(16)).unwrap(), *part, &meta);
        }
        known
    }

    #[test]
    fn objects_are_there_if_all_their_parts_are() {
        let full = PART_BYTES;
        let known = known(&[("0a", 0, 7), ("0b", 0, full), ("0b", 1, full), ("0b", 2, 1), ("0c", 1, 7), ("0d", 0, 5)]);
        for (data, size, expected) in [
            ("0a", 7, true),
            ("0a", 8, false),
            ("0b", 2 * full + 1, true),
            ("0b", 2 * full, false),
            ("0b", full, false),
            ("0c", full + 7, false),
            ("0e", 1, false),
            ("0e", 0, true),
        ] {
            assert_eq!(known.has(&data.repeat(16), size), expected, "{data} {size}");
        }
    }

    #[test]
    fn parts_after_a_gap_or_a_short_part_make_no_object() {
        for parts in [[("0a", 0, PART_BYTES), ("0a", 2, 5)], [("0a", 0, 5), ("0a", 1, 5)]] {
            let known = known(&parts);
            for size in [5, PART_BYTES + 5, 2 * PART_BYTES + 5] {
                assert!(!known.has(&"0a".repeat(16), size));
            }
        }
    }

    #[test]
    fn only_names_of_parts_are_ours() {
        let data = "0a".repeat(16);
        assert_eq!(part_of(&format!("0a/{data}-000012")).map(|(_, part)| part), Some(12));
        for other in [format!("0b/{data}-000012"), format!("0a/{data}-12"), format!("0a/{data}"), "x".into()] {
            assert_eq!(part_of(&other), None, "{other}");
        }
    }
}
