//! Puts the inputs of a build in key order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::conversion::SourceOutcome;
use super::encoding::Encoding;
use super::feed::{FedSource, FeedItem};
use super::inputs::{BuildInputs, ReadSource};
use super::stored_rows::{StoredFormat, StoredRows};
use crate::domain::source_name::compression;
use crate::domain::table_log::cuts::key_hash;

/// The assumed size of a compressed source's text over its own.
const COMPRESSED_TEXT_RATIO: u64 = 5;

/// The inputs of a build, in order. Sources are numbered by their index in `keys`.
pub(super) struct BuildFeed {
    /// Of all sources, those of stored rows too.
    pub keys: Arc<[String]>,
    pub sources: Vec<FedSource>,
    pub stored: StoredRows,
    /// The partitions that rows of a source are for, where these are not all.
    pub only: HashMap<u32, Arc<BTreeSet<String>>>,
    /// The outcomes of buffered sources.
    pub buffered: BTreeMap<u32, SourceOutcome>,
}

impl BuildFeed {
    pub(super) fn new(inputs: BuildInputs, encoding: &Encoding<'_>) -> Self {
        let buffered = inputs.buffered.unwrap_or_default();
        let stored_keys = inputs.stored.iter().flat_map(|segment| &segment.sources).map(|source| &source.key);
        let mut keys: Vec<String> = (inputs.read.iter().map(|read| &read.source.key))
            .chain(buffered.sources.iter().map(|outcome| &outcome.rows.source))
            .chain(stored_keys)
            .cloned()
            .collect();
        keys.sort();
        keys.dedup();
        let keys: Arc<[String]> = keys.into();
        let at = |key: &String| keys.partition_point(|other| other < key) as u32;
        let format =
            StoredFormat { schema: Arc::clone(&encoding.schema), cuts: encoding.options.cuts, keys: Arc::clone(&keys) };
        let stored = StoredRows::new(format, inputs.stored);
        let touched = |partitions: &mut dyn Iterator<Item = &String>| -> Vec<String> {
            if stored.is_empty() { Vec::new() } else { partitions.filter(|p| stored.has(p)).cloned().collect() }
        };
        let (mut sources, mut only, mut outcomes) = (Vec::new(), HashMap::new(), BTreeMap::new());
        for ReadSource { source, only: partitions } in inputs.read {
            let (at, key) = (at(&source.key), source.key.clone());
            let touched = touched(&mut partitions.iter().flat_map(|partitions| partitions.iter()));
            sources.push(FedSource { at, key, item: FeedItem::Read(source), touched });
            only.extend(partitions.map(|partitions| (at, partitions)));
        }
        for (outcome, rows) in buffered.sources.into_iter().zip(buffered.rows) {
            let (at, key) = (at(&outcome.rows.source), outcome.rows.source.clone());
            let touched = touched(&mut outcome.partitions.keys());
            sources.push(FedSource { at, key, item: FeedItem::Buffered(rows), touched });
            outcomes.insert(at, outcome);
        }
        sources.sort_by_key(|source| source.at);
        Self { keys, sources, stored, only, buffered: outcomes }
    }

    /// The hash of the key and the estimated bytes of text of each source; none of stored rows.
    pub(super) fn text_estimates(&self) -> Vec<(u64, u64)> {
        let mut estimates: Vec<(u64, u64)> = self.keys.iter().map(|_| (u64::MAX, 0)).collect();
        for source in &self.sources {
            let text = match &source.item {
                FeedItem::Read(read) if compression(&read.key).is_some() => {
                    read.size.saturating_mul(COMPRESSED_TEXT_RATIO)
                }
                FeedItem::Read(read) => read.size,
                FeedItem::Buffered(_) => self.buffered.get(&source.at).map_or(0, |outcome| outcome.text_bytes),
            };
            estimates[source.at as usize] = (key_hash(&source.key), text);
        }
        estimates
    }
}
