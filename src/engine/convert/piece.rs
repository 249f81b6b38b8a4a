//! The pieces that the feed cuts sources into.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::error::ConvertError;
use super::partitions::PartitionPath;
use super::row_buffer::SourceRows;
use super::source_layout::SourceLayout;
use super::stored_rows::StoredPiece;
use crate::engine::read::chunk::Chunk;

/// A piece of a source. Only chunks are expensive; the others take the same path to keep the order.
pub(super) enum Piece {
    Chunk(Chunk, Arc<SourceLayout>),
    Rows(Vec<(PartitionPath, RecordBatch)>),
    End(Box<SourceEndInfo>),
    BufferedEnd,
    Stored(StoredPiece),
}

/// Properties of a source that are known after reading it.
pub(super) struct SourceEndInfo {
    pub sha256: String,
    pub etag: Option<String>,
    pub size: u64,
    pub text_bytes: u64,
    /// Bytes of text, and blank lines among them, outside chunks.
    pub skipped_bytes: u64,
    pub blank_lines: u64,
    pub extra_columns: Vec<String>,
    /// The id of the variant that it was read by.
    pub variant: Option<String>,
}

/// Feeds buffered rows in order.
pub(super) fn replay(rows: SourceRows, mut push: impl FnMut(Piece) -> bool) -> Result<bool, ConvertError> {
    let mut going = true;
    rows.replay(|parts| {
        going = push(Piece::Rows(parts));
        going
    })?;
    Ok(going && push(Piece::BufferedEnd))
}
