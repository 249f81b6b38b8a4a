//! The retained commits of a table, and lookups of a version.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::root::{Retirement, Root};

/// Maximum number of retained commits, which keeps the root small; beyond it the oldest expire early.
pub const RETAINED_COMMITS_MAX: usize = 1_000;

/// A version of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// The commit with this sequence.
    Sequence(u64),
    /// The last commit at or before this time.
    Time(DateTime<Utc>),
}

impl AsOf {
    /// Parses a sequence or an RFC 3339 time; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        match text.parse::<u64>() {
            Ok(sequence) if sequence > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Some(Self::Sequence(sequence)),
            _ => time(text).map(Self::Time),
        }
    }
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequence(sequence) => sequence.fmt(f),
            Self::Time(time) => f.write_str(&time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)),
        }
    }
}

/// The location of a table's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Present,
    /// The root of an earlier commit, by sequence.
    Earlier(u64),
    /// Like `Earlier`, but only if it was committed by the requested time.
    EarlierIfInTime(u64),
    /// It isn't retained.
    Gone,
}

impl Root {
    /// The sequences of the earlier commits that can be read, oldest first.
    pub fn earlier(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.retained.iter().map(|retired| retired.sequence.saturating_sub(1))
    }

    /// Finds a version of the table. A commit is readable as long as all retirements after it are retained.
    pub fn version(&self, as_of: AsOf) -> Version {
        match as_of {
            AsOf::Sequence(sequence) if sequence == self.sequence => Version::Present,
            AsOf::Sequence(sequence) if self.earlier().any(|earlier| earlier == sequence) => Version::Earlier(sequence),
            AsOf::Sequence(_) => Version::Gone,
            AsOf::Time(asked) => {
                let is_in_time = |at: &str| time(at).is_some_and(|at| at <= asked);
                if is_in_time(&self.committed_at) {
                    return Version::Present;
                }
                let newest = self.retained.iter().rev().find(|retired| is_in_time(&retired.at));
                match (newest, self.earlier().next()) {
                    (Some(retired), _) => Version::Earlier(retired.sequence),
                    (None, Some(oldest)) => Version::EarlierIfInTime(oldest),
                    (None, None) => Version::Gone,
                }
            }
        }
    }

    /// The retirements that have expired at `now`, oldest first. `keep`: the retention time. The oldest also expire if
    /// another one would exceed [`RETAINED_COMMITS_MAX`].
    pub fn expired(&self, keep: Duration, now: DateTime<Utc>) -> Vec<Retirement> {
        let keep = TimeDelta::from_std(keep).unwrap_or(TimeDelta::MAX);
        let is_over = |retired: &Retirement| {
            let until = time(&retired.at).map(|at| at.checked_add_signed(keep).unwrap_or(DateTime::<Utc>::MAX_UTC));
            until.is_none_or(|until| until <= now)
        };
        let too_many = (self.retained.len() + 1).saturating_sub(RETAINED_COMMITS_MAX);
        // Readers of a commit need all later retirements, so only the oldest ones may be dropped.
        let over = self.retained.iter().take_while(|retired| is_over(retired)).count();
        self.retained.iter().take(over.max(too_many)).cloned().collect()
    }
}

/// Whether a root was committed by this time.
pub fn is_committed_by(root: &Root, asked: DateTime<Utc>) -> bool {
    time(&root.committed_at).is_some_and(|at| at <= asked)
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use crate::domain::table_log::root::{MANIFEST_VERSION, Totals};
    use crate::domain::table_schema::StoredSchema;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    /// The commit `sequence`, at ten times that second, with the retirements of the commits from `first` on.
    fn root(first: u64, sequence: u64) -> Root {
        let when = |sequence: u64| at(10 * sequence as i64).to_rfc3339();
        Root {
            version: MANIFEST_VERSION,
            table: "t".into(),
            sequence,
            fence: 1,
            job_id: "j".into(),
            committed_at: when(sequence),
            fingerprint: String::new(),
            layout: String::new(),
            schema: StoredSchema { mapping: String::new(), globs: None, variants: String::new(), columns: vec![] },
            totals: Totals::default(),
            sources: vec![],
            groups: vec![],
            members: vec![],
            rejects: vec![],
            extra_columns: BTreeMap::new(),
            is_foreign: false,
            restored: None,
            rows_added_at: None,
            delta: None,
            iceberg: None,
            retained: (first..=sequence).map(|sequence| Retirement { sequence, at: when(sequence) }).collect(),
        }
    }

    #[test]
    fn versions_are_found_by_sequence_and_by_time() {
        let root = root(4, 6);
        assert_eq!(Vec::from_iter(root.earlier()), [3, 4, 5]);
        for (asked, version) in [
            (AsOf::Sequence(6), Version::Present),
            (AsOf::Sequence(5), Version::Earlier(5)),
            (AsOf::Sequence(3), Version::Earlier(3)),
            (AsOf::Sequence(2), Version::Gone),
            (AsOf::Sequence(7), Version::Gone),
            (AsOf::Time(at(100)), Version::Present),
            (AsOf::Time(at(60)), Version::Present),
            (AsOf::Time(at(59)), Version::Earlier(5)),
            (AsOf::Time(at(40)), Version::Earlier(4)),
            (AsOf::Time(at(39)), Version::EarlierIfInTime(3)),
        ] {
            assert_eq!(root.version(asked), version, "{asked}");
        }
        assert_eq!(self::root(7, 6).version(AsOf::Time(at(59))), Version::Gone);
    }

    #[test]
    fn oldest_retirements_expire() {
        let root = root(4, 6);
        let expired =
            |keep, now| Vec::from_iter(root.expired(Duration::from_secs(keep), at(now)).iter().map(|r| r.sequence));
        assert_eq!(expired(100, 139), [0; 0]);
        assert_eq!(expired(100, 140), [4]);
        assert_eq!(expired(100, 155), [4, 5]);
        assert_eq!(expired(0, 60), [4, 5, 6]);
        assert_eq!(expired(u64::MAX, i64::from(i32::MAX)), [0; 0]);
        let many = self::root(2, 1_001);
        assert_eq!(many.expired(Duration::from_secs(1_000_000), at(0)).len(), 1, "to make room for the next");
    }

    #[test]
    fn texts_are_sequences_or_times() {
        assert_eq!(AsOf::parse("12"), Some(AsOf::Sequence(12)));
        assert_eq!(AsOf::parse("1970-01-01T01:00:10+01:00"), Some(AsOf::Time(at(10))));
        for bad in ["", "0", "-1", "+1", "1.5", "yesterday", "2024-01-01", "99999999999999999999"] {
            assert_eq!(AsOf::parse(bad), None, "{bad}");
        }
    }
}
