//! Valid keys.

use crate::domain::layout::check_stored_key;
use crate::domain::limits::KEY_BYTES_MAX;
use crate::ports::store::{Bucket, StoreResult};

use super::error::invalid_key;

/// Rejects the keys that the port's contract rejects: they can't be the path of a URL.
pub(super) fn check(bucket: Bucket, key: &str) -> StoreResult<()> {
    check_stored_key(key).map_err(|error| invalid_key(bucket, key, error.why))
}

pub(super) fn is_valid(key: &str) -> bool {
    check_stored_key(key).is_ok()
}

/// Whether a valid key can start with it.
pub(super) fn is_valid_prefix(prefix: &str) -> bool {
    let whole = prefix.rsplit_once('/').map_or("", |(segments, _)| segments);
    prefix.len() <= KEY_BYTES_MAX && !prefix.contains('\0') && (whole.is_empty() || is_valid(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_have_empty_segments_but_no_dot_segments() {
        for bad in ["", ".", "a/../b", "a//../b", "a\0", &"k".repeat(1_025)] {
            assert!(!is_valid(bad), "{bad:?}");
        }
        for good in ["a", "a b/.c/...", "é", " ", "/", "a/", "/a", "a//b", &"k".repeat(1_024)] {
            assert!(is_valid(good), "{good:?}");
        }
    }

    #[test]
    fn prefix_may_end_anywhere_in_a_key() {
        for good in ["", "a", "a/", "a/.", "a/..", "..", ".", "/", "a//", "/a", "//."] {
            assert!(is_valid_prefix(good), "{good:?}");
        }
        for bad in ["../", "./a", "a/../", "a//../b", "\0", &"k".repeat(1_025)] {
            assert!(!is_valid_prefix(bad), "{bad:?}");
        }
    }
}
