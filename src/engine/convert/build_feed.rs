//! Puts the inputs of a build in key order.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::conversion::{SourceOutcome, SourceRef};
use super::encoding::Encoding;
use super::inputs::BuildInputs;
use super::row_buffer::SourceRows;
use super::source_list::SourceList;
use super::stored_rows::{StoredFormat, StoredRows};
use super::text_list::TextList;
use crate::domain::source_name::compression;
use crate::domain::table_log::cuts::key_hash;

/// The assumed compression ratio of compressed sources.
const COMPRESSED_TEXT_RATIO: u64 = 5;

/// A source of rows.
pub(super) enum FeedItem {
    /// A source to read, with its index among the sources to read.
    Read(SourceRef, usize),
    Buffered(SourceRows),
}

/// A source of a build.
pub(super) struct BuildSource {
    /// Its index among the keys of the build.
    pub at: u32,
    pub item: FeedItem,
    /// Partitions in which it may have rows, if there are stored rows.
    pub touched: Vec<String>,
}

/// The partitions to build from a source, unless all are built.
type PartitionFilter = HashMap<u32, Arc<BTreeSet<String>>>;

/// The inputs of a build, in order. Sources are numbered by their index in `keys`.
pub(super) struct BuildFeed {
    /// The keys of all sources, including those of stored rows.
    pub keys: Arc<TextList>,
    pub read: Arc<SourceList>,
    pub stored: StoredRows,
    pub only: Arc<PartitionFilter>,
    /// The outcomes of buffered sources.
    pub buffered: BTreeMap<u32, SourceOutcome>,
    rows: VecDeque<BuildSource>,
}

impl BuildFeed {
    pub(super) fn new(inputs: BuildInputs, encoding: &Encoding<'_>) -> Self {
        let BuildInputs { read, only, buffered, stored, .. } = inputs;
        let buffered = buffered.unwrap_or_default();
        let keys = match buffered.sources.is_empty() && stored.is_empty() {
            true => Arc::clone(read.keys()),
            false => {
                let stored_keys = stored.iter().flat_map(|segment| &segment.sources).map(|source| source.key.as_str());
                let buffered_keys = buffered.sources.iter().map(|outcome| outcome.rows.source.as_str());
                let mut keys: Vec<&str> = read.keys().iter().chain(buffered_keys).chain(stored_keys).collect();
                keys.sort_unstable();
                keys.dedup();
                Arc::new(keys.into_iter().collect::<TextList>())
            }
        };
        let at = |key: &str| keys.position(key).unwrap_or_default() as u32;
        let format =
            StoredFormat { schema: Arc::clone(&encoding.schema), cuts: encoding.options.cuts, keys: Arc::clone(&keys) };
        let only = Arc::new(only.into_iter().map(|(key, partitions)| (at(&key), partitions)).collect());
        let (mut rows, mut outcomes) = (VecDeque::new(), BTreeMap::new());
        for (outcome, buffered) in buffered.sources.into_iter().zip(buffered.rows) {
            let touched = match stored.is_empty() {
                true => Vec::new(),
                false => outcome.partitions.keys().cloned().collect(),
            };
            let at = at(&outcome.rows.source);
            rows.push_back(BuildSource { at, item: FeedItem::Buffered(buffered), touched });
            outcomes.insert(at, outcome);
        }
        Self { stored: StoredRows::new(format, stored), keys, read, only, buffered: outcomes, rows }
    }

    /// The hash of the key and the estimated bytes of text of each source; zero bytes for stored rows.
    pub(super) fn text_estimates(&self) -> Vec<(u64, u64)> {
        let mut estimates = vec![(u64::MAX, 0); self.keys.len()];
        for (nth, source) in self.read.iter().enumerate() {
            let text = match compression(&source.key) {
                Some(_) => source.size.saturating_mul(COMPRESSED_TEXT_RATIO),
                None => source.size,
            };
            estimates[read_at(&self.keys, &self.read, nth)] = (key_hash(&source.key), text);
        }
        for (at, outcome) in &self.buffered {
            estimates[*at as usize] = (key_hash(&outcome.rows.source), outcome.text_bytes);
        }
        estimates
    }

    /// The sources with rows to feed, in key order.
    pub(super) fn take_sources(&mut self) -> BuildSources {
        BuildSources {
            keys: Arc::clone(&self.keys),
            read: Arc::clone(&self.read),
            only: Arc::clone(&self.only),
            next: 0,
            rows: std::mem::take(&mut self.rows),
        }
    }
}

/// The index among `keys` of the `nth` source to read.
fn read_at(keys: &Arc<TextList>, read: &SourceList, nth: usize) -> usize {
    if Arc::ptr_eq(keys, read.keys()) { nth } else { keys.position(read.keys().get(nth)).unwrap_or_default() }
}

/// Sources in key order.
pub(super) struct BuildSources {
    keys: Arc<TextList>,
    read: Arc<SourceList>,
    only: Arc<PartitionFilter>,
    /// The next source to read.
    next: usize,
    rows: VecDeque<BuildSource>,
}

impl Iterator for BuildSources {
    type Item = BuildSource;

    fn next(&mut self) -> Option<BuildSource> {
        let at = (self.next < self.read.len()).then(|| read_at(&self.keys, &self.read, self.next) as u32);
        if self.rows.front().is_some_and(|rows| at.is_none_or(|at| rows.at < at)) {
            return self.rows.pop_front();
        }
        let (at, source) = at.zip(self.read.get(self.next))?;
        self.next += 1;
        let touched = self.only.get(&at).map(|partitions| partitions.iter().cloned().collect()).unwrap_or_default();
        Some(BuildSource { at, item: FeedItem::Read(source, self.next - 1), touched })
    }
}
