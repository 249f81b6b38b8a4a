//! Encodes one column of one row group: slabs in, pages and their metadata out.
//!
//! Invariant: the bytes depend on the slabs' rows alone, not on the pieces of a slab, the values under nulls, or the
//! encoding thread.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder};
use arrow::datatypes::DataType;
use parquet::basic::{Encoding, Type};
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::bounds::{self, StatValue, ValueBounds, ValueOrder};
use super::codec::{CompressionGain, codec, compress};
use super::column_chunk::{ChunkPages, ColumnChunk, ColumnFacts};
use super::dictionary::{ByteDictionary, Dictionary, WordDictionary};
use super::direct::{DirectNumbers, DirectTexts, FixedBytes, PageBuffers};
use super::page::dictionary_page;
use super::page_spill::PageSpill;
use super::page_writer::{EncodingState, PageWriter};
use super::values::{self, Texts};
use crate::domain::pipeline::{Compression, Encodings};

/// A page of text ends at the row with which its values reach this size.
const PAGE_BYTES: usize = 1 << 20;
/// Bytes that each of a thread's buffers may keep between pages.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The buffers of a thread.
struct ThreadBuffers {
    present: BooleanBufferBuilder,
    booleans: BooleanBufferBuilder,
    words32: Vec<i32>,
    words64: Vec<i64>,
    bytes: Vec<u8>,
    encode: PageBuffers,
}

thread_local! {
    static SCRATCH: RefCell<ThreadBuffers> = RefCell::new(ThreadBuffers {
        present: BooleanBufferBuilder::new(0),
        booleans: BooleanBufferBuilder::new(0),
        words32: Vec::new(),
        words64: Vec::new(),
        bytes: Vec::new(),
        encode: PageBuffers::default(),
    });
}

enum ColumnKind {
    Boolean,
    Words32(EncodingState<WordDictionary<i32>>),
    Words64(EncodingState<WordDictionary<i64>>),
    Text(EncodingState<ByteDictionary>),
    Fixed(usize, EncodingState<ByteDictionary>),
}

/// Encodes one column of one row group.
pub struct ColumnEncoder {
    facts: ColumnFacts,
    compression: Compression,
    encodings: Encodings,
    kind: ColumnKind,
    gain: CompressionGain,
    pages: ChunkPages,
}

impl ColumnEncoder {
    /// For arrays of `data_type`, which matches the Parquet column.
    pub fn new(
        descriptor: ColumnDescPtr,
        data_type: &DataType,
        compression: Compression,
        encodings: Encodings,
    ) -> Self {
        let physical = descriptor.physical_type();
        let unsigned = matches!(data_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64);
        let order = if unsigned { ValueOrder::Unsigned } else { ValueOrder::Signed };
        let is_decimal = matches!(data_type, DataType::Decimal128(_, _));
        let (kind, order, example) = match physical {
            Type::BOOLEAN => (ColumnKind::Boolean, ValueOrder::Unsigned, StatValue::Boolean(false)),
            Type::INT32 => (ColumnKind::Words32(EncodingState::Undecided), order, StatValue::Int32(0)),
            Type::FLOAT => (ColumnKind::Words32(EncodingState::Undecided), ValueOrder::Float, StatValue::Float(0.0)),
            Type::INT64 => (ColumnKind::Words64(EncodingState::Undecided), order, StatValue::Int64(0)),
            Type::DOUBLE => (ColumnKind::Words64(EncodingState::Undecided), ValueOrder::Float, StatValue::Double(0.0)),
            Type::BYTE_ARRAY => {
                (ColumnKind::Text(EncodingState::Undecided), ValueOrder::Text, StatValue::Bytes(Vec::new()))
            }
            Type::FIXED_LEN_BYTE_ARRAY | Type::INT96 => {
                let order = if is_decimal { ValueOrder::Decimal } else { ValueOrder::Bytes };
                let width = descriptor.type_length().max(1) as usize;
                (ColumnKind::Fixed(width, EncodingState::Undecided), order, StatValue::Fixed(Vec::new()))
            }
        };
        let facts = ColumnFacts { descriptor, codec: codec(compression), order, example };
        Self { facts, compression, encodings, kind, gain: CompressionGain::default(), pages: ChunkPages::new(physical) }
    }

    /// Memory held by pages, dictionary and the rest, in bytes.
    pub fn held_bytes(&self) -> usize {
        fn of<D: Dictionary>(state: &EncodingState<D>) -> usize {
            state.dictionary().map_or(0, D::held_bytes)
        }
        let dictionary = match &self.kind {
            ColumnKind::Boolean => 0,
            ColumnKind::Words32(state) => of(state),
            ColumnKind::Words64(state) => of(state),
            ColumnKind::Text(state) | ColumnKind::Fixed(_, state) => of(state),
        };
        size_of::<Self>() + self.pages.held_bytes() + dictionary
    }

    /// Spills the finished pages, if worthwhile.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn spill_pages(&mut self, page_spill: &Arc<PageSpill>) -> std::io::Result<()> {
        self.pages.spill_pages(page_spill)
    }

    /// Encodes the rows of a slab, given in pieces.
    ///
    /// # Errors
    /// If the codec fails.
    pub fn write(&mut self, pieces: &[ArrayRef]) -> Result<()> {
        SCRATCH.with_borrow_mut(|scratch| {
            if matches!(self.kind, ColumnKind::Text(_)) {
                for pieces in pages_of_text(pieces) {
                    self.write_page(&pieces, scratch)?;
                }
            } else {
                self.write_page(pieces, scratch)?;
            }
            scratch.shrink();
            Ok(())
        })
    }

    fn write_page(&mut self, pieces: &[ArrayRef], scratch: &mut ThreadBuffers) -> Result<()> {
        let rows: usize = pieces.iter().map(|piece| piece.len()).sum();
        if rows == 0 {
            return Ok(());
        }
        let values = values::presence(pieces, &mut scratch.present);
        let out = &mut PageWriter {
            facts: &self.facts,
            compression: self.compression,
            rows,
            values,
            present: scratch.present.as_slice(),
            gain: &mut self.gain,
            pages: &mut self.pages,
            buffers: &mut scratch.encode,
        };
        let order = self.facts.order;
        match &mut self.kind {
            ColumnKind::Boolean => {
                let (bits, trues) = values::booleans(pieces, &mut scratch.booleans);
                out.start();
                out.buffers.body.extend_from_slice(bits);
                out.finish(Encoding::PLAIN, ValueBounds::from_booleans(trues, values - trues), None)
            }
            ColumnKind::Words32(state) => {
                let words = values::words32(pieces, &mut scratch.words32);
                let bounds = bounds::of_words32(words, order);
                let range = match &bounds {
                    Some(ValueBounds { min: StatValue::Int32(a), max: StatValue::Int32(b) }) => Some((*a, *b)),
                    _ => None,
                };
                out.choose(state, &DirectNumbers::new(words, range, bounds, order))
            }
            ColumnKind::Words64(state) => {
                let words = values::words64(pieces, &mut scratch.words64);
                let bounds = bounds::of_words64(words, order);
                let range = match &bounds {
                    Some(ValueBounds { min: StatValue::Int64(a), max: StatValue::Int64(b) }) => Some((*a, *b)),
                    _ => None,
                };
                out.choose(state, &DirectNumbers::new(words, range, bounds, order))
            }
            ColumnKind::Text(state) => {
                out.choose(state, &DirectTexts { texts: Texts::new(pieces), encodings: self.encodings })
            }
            ColumnKind::Fixed(width, state) => {
                let bytes = values::fixed(pieces, *width, &mut scratch.bytes);
                out.choose(state, &FixedBytes { bytes, width: *width, order })
            }
        }
    }

    /// Finishes the column chunk.
    ///
    /// # Errors
    /// If the codec fails.
    pub fn close(self) -> Result<ColumnChunk> {
        fn plain<D: Dictionary>(state: &EncodingState<D>) -> Option<(usize, Vec<u8>)> {
            let dictionary = state.dictionary()?;
            let mut body = Vec::new();
            dictionary.put_plain(&mut body);
            Some((dictionary.len(), body))
        }
        let dictionary = match &self.kind {
            ColumnKind::Boolean => None,
            ColumnKind::Words32(state) => plain(state),
            ColumnKind::Words64(state) => plain(state),
            ColumnKind::Text(state) | ColumnKind::Fixed(_, state) => plain(state),
        };
        let page = match dictionary {
            None => None,
            Some((values, body)) => {
                let mut compressed = Vec::new();
                compress(self.compression, &body, &mut compressed)?;
                let page = dictionary_page(values, body.len(), &compressed);
                let plain_bytes = body.len() + page.len() - compressed.len();
                Some((page, plain_bytes))
            }
        };
        self.pages.close(page, &self.facts)
    }
}

impl ThreadBuffers {
    fn shrink(&mut self) {
        let PageBuffers { body, compressed, other_body, other_compressed, .. } = &mut self.encode;
        for buffer in [&mut self.bytes, body, compressed, other_body, other_compressed] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }
}

/// Splits a slab of text into pages.
fn pages_of_text(pieces: &[ArrayRef]) -> Vec<Vec<ArrayRef>> {
    let spanned = |piece: &ArrayRef| {
        let offsets = piece.as_string::<i32>().value_offsets();
        (offsets[piece.len()] - offsets[0]) as usize
    };
    if pieces.iter().map(spanned).sum::<usize>() < PAGE_BYTES {
        return vec![pieces.to_vec()];
    }
    let mut pages = vec![Vec::new()];
    let mut bytes = 0;
    for piece in pieces {
        let offsets = piece.as_string::<i32>().value_offsets();
        let mut start = 0;
        for row in 0..piece.len() {
            if piece.is_valid(row) {
                bytes += (offsets[row + 1] - offsets[row]) as usize;
            }
            if bytes >= PAGE_BYTES {
                pages.last_mut().into_iter().for_each(|page| page.push(piece.slice(start, row + 1 - start)));
                pages.push(Vec::new());
                (start, bytes) = (row + 1, 0);
            }
        }
        if start < piece.len() {
            pages.last_mut().into_iter().for_each(|page| page.push(piece.slice(start, piece.len() - start)));
        }
    }
    pages
}
