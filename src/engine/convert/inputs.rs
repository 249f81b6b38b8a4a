//! What a build makes partitions of.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::assemble::RowGroups;
use super::conversion::SourceRef;
use super::row_buffer::BufferedRows;

/// The rows of a build, in key order: those of CSVs and those of segments that an earlier build wrote.
pub struct BuildInputs<B = BufferedRows> {
    /// Read now.
    pub read: Vec<ReadSource>,
    /// Read before.
    pub buffered: Option<B>,
    /// Segments with stored rows.
    pub stored: Vec<StoredSegment>,
    pub layout: BuildLayout,
}

impl<B> Default for BuildInputs<B> {
    fn default() -> Self {
        Self { read: Vec::new(), buffered: None, stored: Vec::new(), layout: BuildLayout::default() }
    }
}

/// A source to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSource {
    pub source: SourceRef,
    /// The partitions that its rows are for; its other rows are only counted. `None`: all.
    pub only: Option<Arc<BTreeSet<String>>>,
}

/// What the files of a build are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuildLayout {
    /// The groups of whole partitions.
    #[default]
    Groups,
    /// One group for each segment, since partitions are built in part. No file is reported as made.
    Segments,
}

/// The stored rows of a segment that is built anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSegment {
    pub partition: String,
    /// Where its rows are, in order.
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
