//! The pieces of work that the feed cuts sources into.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::error::ConvertError;
use super::partitions::PartitionPath;
use super::row_buffer::SourceRows;
use super::source_layout::SourceLayout;
use crate::engine::read::chunk::Chunk;

/// Work on one piece of a source. Only chunks cost anything; the rest goes the same way to keep its place.
pub(super) enum Piece {
    Chunk(Chunk, Arc<SourceLayout>),
    Rows(Vec<(PartitionPath, RecordBatch)>),
    End(Box<SourceEndInfo>),
    BufferedEnd,
}

/// What is known of a source once it was read.
pub(super) struct SourceEndInfo {
    pub sha256: String,
    pub etag: Option<String>,
    pub size: u64,
    pub text_bytes: u64,
    /// Bytes of text, and the blank lines among them, that are in no chunk.
    pub skipped_bytes: u64,
    pub blank_lines: u64,
}

/// Feeds rows that were held back into the order.
pub(super) fn replay(rows: SourceRows, mut push: impl FnMut(Piece) -> bool) -> Result<bool, ConvertError> {
    let mut going = true;
    rows.replay(|parts| {
        going = push(Piece::Rows(parts));
        going
    })?;
    Ok(going && push(Piece::BufferedEnd))
}
