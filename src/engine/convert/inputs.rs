//! The inputs of a build.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assemble::RowGroups;
use super::row_buffer::BufferedRows;
use super::source_list::SourceList;

/// The rows of a build, in key order: those of CSVs and those of segments that an earlier build wrote.
pub struct BuildInputs<B = BufferedRows> {
    /// Read now.
    pub read: Arc<SourceList>,
    /// The partitions to build from a source, by key; its other rows are only counted. Sources without an entry
    /// contribute to all partitions.
    pub only: BTreeMap<String, Arc<BTreeSet<String>>>,
    /// Read before.
    pub buffered: Option<B>,
    /// Segments with stored rows.
    pub stored: Vec<StoredSegment>,
    pub layout: BuildLayout,
}

impl<B> BuildInputs<B> {
    /// All rows of `sources`.
    pub fn all(sources: &Arc<SourceList>) -> Self {
        let read = Arc::clone(sources);
        Self { read, only: BTreeMap::new(), buffered: None, stored: Vec::new(), layout: BuildLayout::default() }
    }
}

/// How a build lays out its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildLayout {
    /// The groups of whole partitions.
    #[default]
    Groups,
    /// One group for each segment, since partitions are built in part. No file is reported as finished.
    Segments,
}

/// The stored rows of a segment that is rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSegment {
    pub partition: String,
    /// The row groups with its rows, in order.
    pub parts: Vec<RowGroups>,
    /// Its sources in key order. Their rows are in this order, or sorted among all of them if the table is sorted.
    pub sources: Vec<StoredSource>,
}

/// A source of a stored segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSource {
    pub key: String,
    pub rows: u64,
    pub share: u64,
    /// Whether its rows stay in the table.
    pub keep: bool,
}
