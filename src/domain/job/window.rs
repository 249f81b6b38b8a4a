//! The debounce window of a batch of new files.

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::limits::{DEBOUNCE_QUIET_MS, DEBOUNCE_WAIT_MS_MAX};

/// When a window with the first event at `first` and the last at `now` is due: after 5 s of quiet, at most 30 s after the
/// first event (the contract's figures).
pub fn due(first: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
    let quiet = now + TimeDelta::milliseconds(DEBOUNCE_QUIET_MS);
    quiet.min(first + TimeDelta::milliseconds(DEBOUNCE_WAIT_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_due_after_quiet_or_the_longest_wait() {
        let at = |ms| DateTime::from_timestamp_millis(ms).unwrap();
        assert_eq!(due(at(0), at(0)), at(5_000));
        assert_eq!(due(at(0), at(20_000)), at(25_000));
        assert_eq!(due(at(0), at(25_001)), at(30_000));
        assert_eq!(due(at(0), at(29_999)), at(30_000));
    }
}
