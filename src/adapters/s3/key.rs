//! Which keys there can be.

use crate::domain::limits::KEY_BYTES_MAX;
use crate::ports::store::{Bucket, StoreResult};

use super::error::invalid_key;

/// Refuses what the port's contract refuses.
pub(super) fn check(bucket: Bucket, key: &str) -> StoreResult<()> {
    fault(key).map_or(Ok(()), |reason| Err(invalid_key(bucket, key, reason)))
}

pub(super) fn is_valid(key: &str) -> bool {
    fault(key).is_none()
}

/// Whether some valid key starts so.
pub(super) fn can_start_a_key(prefix: &str) -> bool {
    let whole = prefix.rsplit_once('/').map_or("", |(segments, _)| segments);
    prefix.len() <= KEY_BYTES_MAX
        && !prefix.contains('\0')
        && (!prefix.contains('/') || whole.split('/').all(|segment| segment_fault(segment).is_none()))
}

fn fault(key: &str) -> Option<&'static str> {
    if key.len() > KEY_BYTES_MAX {
        return Some("it is longer than 1,024 bytes");
    }
    if key.contains('\0') {
        return Some("it holds a NUL");
    }
    key.split('/').find_map(segment_fault)
}

fn segment_fault(segment: &str) -> Option<&'static str> {
    match segment {
        "" => Some("it has an empty segment"),
        "." | ".." => Some("it has a segment `.` or `..`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_paths_of_named_segments() {
        for bad in ["", "/", "a/", "/a", "a//b", ".", "a/../b", "a\0", &"k".repeat(1_025)] {
            assert!(!is_valid(bad), "{bad:?}");
        }
        for good in ["a", "a b/.c/...", "é", " ", &"k".repeat(1_024)] {
            assert!(is_valid(good), "{good:?}");
        }
    }

    #[test]
    fn a_prefix_may_end_anywhere_in_a_key() {
        for good in ["", "a", "a/", "a/.", "a/..", "..", "."] {
            assert!(can_start_a_key(good), "{good:?}");
        }
        for bad in ["/", "a//", "../", "./a", "a/../", "\0", "/a", &"k".repeat(1_025)] {
            assert!(!can_start_a_key(bad), "{bad:?}");
        }
    }
}
