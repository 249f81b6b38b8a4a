//! Which sources changed: a merge of two sorted streams, the lake's listing and the manifest's sources.

use std::cmp::Ordering;
use std::iter::Peekable;

use chrono::{DateTime, TimeDelta, Utc};

use super::entries::SourceEntry;
use crate::domain::file_tag::may_hide_a_change;

/// A source last modified less than this before it was read may have been modified again within the resolution of the
/// store's clock.
const SETTLED_AFTER: TimeDelta = TimeDelta::seconds(2);

/// A source in the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSource {
    /// Relative to the pipeline's prefix.
    pub key: String,
    pub size: u64,
    /// `None` if the store's listings lack tags; a HEAD request returns one.
    pub etag: Option<String>,
    pub modified: DateTime<Utc>,
    /// The id of the variant that reads it, or `None` for the mapping's own format. Not compared if this isn't known.
    pub variant: Option<Option<String>>,
}

/// A source that differs from its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    New(ListedSource),
    Changed(ListedSource),
    /// Only a HEAD request shows whether it changed.
    Unknown(ListedSource, Box<SourceEntry>),
    /// An archived source that is back in the lake, unchanged.
    Returned(ListedSource, Box<SourceEntry>),
    /// It isn't in the lake: removed since the last run, or archived.
    Removed(String, Box<SourceEntry>),
}

/// Compares a source with its entry; `None` if it is unchanged.
pub fn compare(listed: ListedSource, entry: Option<SourceEntry>) -> Option<Difference> {
    let Some(entry) = entry else { return Some(Difference::New(listed)) };
    let read_at = DateTime::parse_from_rfc3339(&entry.read_at).map(|read_at| read_at.to_utc()).ok();
    if entry.size != listed.size || listed.variant.as_ref().is_some_and(|variant| *variant != entry.variant) {
        return Some(Difference::Changed(listed));
    }
    let is_unsettled = read_at.is_none_or(|read_at| listed.modified > read_at - SETTLED_AFTER);
    let is_same = match (&listed.etag, &entry.etag) {
        (_, None) => false,
        (None, Some(_)) if is_unsettled => return Some(Difference::Unknown(listed, Box::new(entry))),
        (None, Some(_)) => true,
        // A tag with whole seconds misses changes within the same second.
        (Some(listed), Some(read)) => listed == read && !read_at.is_none_or(|read_at| may_hide_a_change(read, read_at)),
    };
    match (is_same, entry.archived) {
        (false, _) => Some(Difference::Changed(listed)),
        (true, true) => Some(Difference::Returned(listed, Box::new(entry))),
        (true, false) => None,
    }
}

/// A source in the lake and its entry, at least one of them.
type Pair = (Option<ListedSource>, Option<(String, SourceEntry)>);

/// Iterates over the differences between the lake and the manifest, in key order. Both inputs must be in key order.
pub struct Differences<L: Iterator, S: Iterator> {
    listing: Peekable<L>,
    sources: Peekable<S>,
}

impl<L, S, E> Differences<L, S>
where
    L: Iterator<Item = Result<ListedSource, E>>,
    S: Iterator<Item = Result<(String, SourceEntry), E>>,
{
    pub fn new(listing: L, sources: S) -> Self {
        Self { listing: listing.peekable(), sources: sources.peekable() }
    }

    /// The next source of the lake, of the manifest, or of both.
    fn pair(&mut self) -> Option<Result<Pair, E>> {
        let order = match (self.listing.peek(), self.sources.peek()) {
            (Some(Ok(listed)), Some(Ok((key, _)))) => listed.key.cmp(key),
            // Errors are returned in order.
            (Some(_), None) | (Some(Err(_)), _) => Ordering::Less,
            (None, Some(_)) | (Some(Ok(_)), Some(Err(_))) => Ordering::Greater,
            (None, None) => return None,
        };
        let listed = if order == Ordering::Greater { None } else { self.listing.next() };
        let source = if order == Ordering::Less { None } else { self.sources.next() };
        Some(listed.transpose().and_then(|listed| Ok((listed, source.transpose()?))))
    }
}

impl<L, S, E> Iterator for Differences<L, S>
where
    L: Iterator<Item = Result<ListedSource, E>>,
    S: Iterator<Item = Result<(String, SourceEntry), E>>,
{
    type Item = Result<Difference, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let difference = match self.pair()? {
                Err(error) => return Some(Err(error)),
                Ok((Some(listed), source)) => compare(listed, source.map(|(_, entry)| entry)),
                Ok((None, Some((key, entry)))) => Some(Difference::Removed(key, Box::new(entry))),
                Ok((None, None)) => None,
            };
            if let Some(difference) = difference {
                return Some(Ok(difference));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::domain::file_tag::for_second;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn listed(key: &str, etag: Option<&str>, modified: i64) -> ListedSource {
        ListedSource { key: key.into(), size: 10, etag: etag.map(str::to_owned), modified: at(modified), variant: None }
    }

    /// An entry read at second 100.
    fn entry(etag: &str) -> SourceEntry {
        SourceEntry {
            etag: Some(etag.into()),
            size: 10,
            sha256: "s".into(),
            read_at: at(100).to_rfc3339(),
            text_bytes: 10,
            rows_read: 1,
            rows_written: 1,
            rows_rejected: 0,
            rows_filtered: 0,
            partitions: BTreeMap::new(),
            variant: None,
            archived: false,
            extra_columns: vec![],
        }
    }

    #[test]
    fn differences_are_those_of_both_streams_in_order() {
        let lake = ["a", "c", "d", "f"].map(|key| Ok::<_, ()>(listed(key, Some("1"), 0)));
        let archived = SourceEntry { archived: true, ..entry("1") };
        let sources =
            [("b", entry("1")), ("c", entry("1")), ("d", entry("2")), ("e", archived.clone()), ("f", archived)];
        let sources = sources.map(|(key, entry)| Ok((key.to_owned(), entry)));
        let found = Differences::new(lake.into_iter(), sources.into_iter());
        let names = found.map(|difference| match difference.unwrap() {
            Difference::New(listed) => format!("new {}", listed.key),
            Difference::Changed(listed) => format!("changed {}", listed.key),
            Difference::Unknown(listed, _) => format!("unknown {}", listed.key),
            Difference::Returned(listed, _) => format!("returned {}", listed.key),
            Difference::Removed(key, _) => format!("removed {key}"),
        });
        assert_eq!(names.collect::<Vec<_>>(), ["new a", "removed b", "changed d", "removed e", "returned f"]);
    }

    #[test]
    fn error_of_either_stream_is_returned() {
        let lake = [Ok(listed("a", Some("1"), 0)), Err("lake")];
        let sources = [Ok(("a".to_owned(), entry("1"))), Ok(("b".to_owned(), entry("1")))];
        let mut found = Differences::new(lake.into_iter(), sources.clone().into_iter());
        assert_eq!(found.next(), Some(Err("lake")));
        let sources = [Ok(("a".to_owned(), entry("1"))), Err("shard")];
        let lake = [Ok(listed("a", Some("1"), 0)), Ok(listed("b", Some("1"), 0))];
        let mut found = Differences::new(lake.into_iter(), sources.into_iter());
        assert_eq!(found.next(), Some(Err("shard")));
    }

    #[test]
    fn source_is_unchanged_only_if_nothing_could_have_hidden_a_change() {
        let differs = |listed, entry| compare(listed, Some(entry)).is_some();
        assert!(!differs(listed("a", Some("1"), 0), entry("1")));
        assert!(differs(listed("a", Some("2"), 0), entry("1")));
        let read_by = |variant: Option<&str>| Some(variant.map(str::to_owned));
        assert!(differs(ListedSource { variant: read_by(Some("v")), ..listed("a", Some("1"), 0) }, entry("1")));
        assert!(!differs(ListedSource { variant: read_by(None), ..listed("a", Some("1"), 0) }, entry("1")));
        assert!(differs(ListedSource { size: 11, ..listed("a", Some("1"), 0) }, entry("1")));
        assert!(differs(listed("a", Some("1"), 0), SourceEntry { etag: None, ..entry("1") }));
        let (early, late) = (for_second(90, "x"), for_second(99, "x"));
        assert!(!differs(listed("a", Some(&early), 90), entry(&early)));
        assert!(differs(listed("a", Some(&late), 99), entry(&late)), "it may have changed again within the second");
        assert!(!differs(listed("a", None, 97), entry("1")), "the listing has no tags");
        assert!(matches!(compare(listed("a", None, 99), Some(entry("1"))), Some(Difference::Unknown(..))));
    }
}
