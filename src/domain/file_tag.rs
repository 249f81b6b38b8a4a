//! Tags of files on file systems with whole-second times.
//!
//! Such a tag doesn't change if the file changes twice within a second. It contains its second, so that a file that was read
//! too early is read again.

use chrono::{DateTime, TimeDelta, Utc};

const START: &str = "stat-1s-";

/// The coarsest resolution in use, FAT's.
const GRAIN: TimeDelta = TimeDelta::seconds(2);

/// The tag of a file that changed last in this second since 1970. `state`: other metadata that distinguishes its
/// versions.
pub fn for_second(second: i64, state: &str) -> String {
    format!("{START}{second}-{state}")
}

/// Whether a file with the tag `tag` at `read_at` may have changed since without a new tag.
pub fn may_hide_a_change(tag: &str, read_at: DateTime<Utc>) -> bool {
    let second = tag.strip_prefix(START).and_then(|rest| rest.rsplit_once('-')?.0.parse().ok());
    let changed = second.and_then(|second| DateTime::from_timestamp(second, 0));
    changed.is_some_and(|changed| changed + GRAIN > read_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_second_tag_is_trusted_after_its_second() {
        let at = |ms: i64| DateTime::from_timestamp_millis(ms).unwrap();
        for (second, read_ms, expected) in [
            (100, 100_500, true),
            (100, 101_999, true),
            (100, 102_000, false),
            (100, 99_000, true),
            (-5, -2_000, false),
        ] {
            assert_eq!(may_hide_a_change(&for_second(second, "ab12"), at(read_ms)), expected, "{second} {read_ms}");
        }
        for other in ["stat-ab12", "ab12", "", "stat-1s-x-y", "stat-1s-"] {
            assert!(!may_hide_a_change(other, at(0)), "{other}");
        }
    }
}
