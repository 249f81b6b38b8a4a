//! Runs one mapping over the head of one source in memory, without scratch or store.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;

use super::error::{ConvertError, reading_failed};
use super::rows::ChunkConverter;
use super::source_layout::{self, SourceLayout};
use crate::domain::pipeline::Mapping;
use crate::domain::reject::Reject;
use crate::engine::read::head::{Head, HeadChunks};
use crate::ports::Expressions;

/// Text of a chunk, in bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// The rows and rejects of one chunk.
#[derive(Debug)]
pub struct HeadBatch {
    pub rows_read: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
    /// The rows to be written, with all columns of the mapping, in source order.
    pub rows: RecordBatch,
    pub rejects: Vec<Reject>,
    /// Checks that warned, with the number of rows.
    pub warnings: BTreeMap<String, u64>,
}

/// Converts a head chunk by chunk, as a run would.
pub struct HeadRows<'a> {
    source: &'a str,
    chunks: HeadChunks,
    layout: SourceLayout,
    converter: ChunkConverter<'a>,
}

impl<'a> HeadRows<'a> {
    /// `source` is the name used in messages.
    ///
    /// # Errors
    /// Errors that would fail a run: an unreadable source, a header mismatch, expressions that can't be bound.
    pub fn open(
        mapping: &'a Mapping,
        expressions: &dyn Expressions,
        source: &'a str,
        head: &Head,
    ) -> Result<Self, ConvertError> {
        let format = mapping.format_of(source);
        let chunks = head.chunks(format.csv, CHUNK_BYTES).map_err(|error| reading_failed(source, error))?;
        let layout =
            source_layout::resolve(mapping, format, source, chunks.header(), chunks.width(), chunks.is_empty())?;
        let converter = ChunkConverter::new(mapping, expressions)?;
        Ok(Self { source, chunks, layout, converter })
    }

    /// The header that a mapping reads in a source, whether its columns are there or not; `None` if the dialect has none, or
    /// the source can't be read.
    pub fn header_of(mapping: &Mapping, source: &str, head: &Head) -> Option<Vec<String>> {
        let chunks = head.chunks(mapping.format_of(source).csv, CHUNK_BYTES).ok()?;
        chunks.header().map(<[String]>::to_vec)
    }

    /// The header; `None` if the dialect has none.
    pub fn header(&self) -> Option<&[String]> {
        self.chunks.header()
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// Errors that would fail a run.
    #[expect(clippy::should_implement_trait, reason = "reading ends after an error, which `Iterator` doesn't express")]
    pub fn next(&mut self) -> Result<Option<HeadBatch>, ConvertError> {
        let Some(chunk) = self.chunks.next().map_err(|error| reading_failed(self.source, error))? else {
            return Ok(None);
        };
        let (made, rows) = self.converter.convert_with_rows(self.source, &chunk, &self.layout)?;
        Ok(Some(HeadBatch {
            rows_read: made.rows_read,
            rows_rejected: made.rows_rejected,
            rows_filtered: made.rows_filtered,
            rows,
            rejects: made.rejects,
            warnings: made.warnings,
        }))
    }
}
