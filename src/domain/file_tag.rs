//! Tags of files on file systems that keep times in whole seconds.
//!
//! Such a tag is the same before and after a change within the second of the one before, so it carries its second: what
//! was read too early to rely on the tag must be read again.

use chrono::{DateTime, TimeDelta, Utc};

const START: &str = "stat-1s-";

/// Grain of the coarsest times in use, those of FAT.
const GRAIN: TimeDelta = TimeDelta::seconds(2);

/// The tag of a file that changed last in this second since 1970. `state`: what else tells its states apart.
pub fn of_second(second: i64, state: &str) -> String {
    format!("{START}{second}-{state}")
}

/// Whether a file that was read at `read_at`, and then had the tag `tag`, may have changed since without another tag.
pub fn may_hide_a_change(tag: &str, read_at: DateTime<Utc>) -> bool {
    let second = tag.strip_prefix(START).and_then(|rest| rest.rsplit_once('-')?.0.parse().ok());
    let changed = second.and_then(|second| DateTime::from_timestamp(second, 0));
    changed.is_some_and(|changed| changed + GRAIN > read_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_whole_seconds_is_relied_on_once_its_second_is_over() {
        let at = |ms: i64| DateTime::from_timestamp_millis(ms).unwrap();
        for (second, read_ms, expected) in [
            (100, 100_500, true),
            (100, 101_999, true),
            (100, 102_000, false),
            (100, 99_000, true),
            (-5, -2_000, false),
        ] {
            assert_eq!(may_hide_a_change(&of_second(second, "ab12"), at(read_ms)), expected, "{second} {read_ms}");
        }
        for other in ["stat-ab12", "ab12", "", "stat-1s-x-y", "stat-1s-"] {
            assert!(!may_hide_a_change(other, at(0)), "{other}");
        }
    }
}
