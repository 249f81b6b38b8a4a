//! Encodes one column of one row group: slab after slab in, pages and what is told about them out.
//!
//! Invariant: the bytes depend on the slabs' rows alone. In which pieces a slab comes, what stands under its nulls, and
//! which thread encodes it, make no difference.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder};
use arrow::datatypes::DataType;
use parquet::basic::{Encoding, Type};
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::bounds::{self, Bounds, Order, Value};
use super::chunk::{Chunk, ChunkPages, ColumnFacts};
use super::codec::{Gain, codec, compress};
use super::dictionary::{ByteDictionary, Dictionary, WordDictionary};
use super::direct::{Buffers, DirectTexts, FixedBytes, Numbers};
use super::page::dictionary_page;
use super::page_writer::{PageMaker, Way};
use super::parking::Parking;
use super::values::{self, Texts};
use crate::domain::pipeline::{Compression, Encodings};

/// A page of text ends with the row with which its values reach this size.
const PAGE_BYTES: usize = 1 << 20;
/// What a thread's buffers may keep between pages, each, in bytes.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// A thread's buffers.
struct Scratch {
    present: BooleanBufferBuilder,
    booleans: BooleanBufferBuilder,
    words32: Vec<i32>,
    words64: Vec<i64>,
    bytes: Vec<u8>,
    encode: Buffers,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        present: BooleanBufferBuilder::new(0),
        booleans: BooleanBufferBuilder::new(0),
        words32: Vec::new(),
        words64: Vec::new(),
        bytes: Vec::new(),
        encode: Buffers::default(),
    });
}

enum Kind {
    Boolean,
    Words32(Way<WordDictionary<i32>>),
    Words64(Way<WordDictionary<i64>>),
    Text(Way<ByteDictionary>),
    Fixed(usize, Way<ByteDictionary>),
}

/// Encodes one column of one row group.
pub struct ColumnEncoder {
    facts: ColumnFacts,
    compression: Compression,
    encodings: Encodings,
    kind: Kind,
    gain: Gain,
    pages: ChunkPages,
}

impl ColumnEncoder {
    /// For arrays of `data_type`, which is that of the Parquet column.
    pub fn new(
        descriptor: ColumnDescPtr,
        data_type: &DataType,
        compression: Compression,
        encodings: Encodings,
    ) -> Self {
        let physical = descriptor.physical_type();
        let unsigned = matches!(data_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64);
        let order = if unsigned { Order::Unsigned } else { Order::Signed };
        let is_decimal = matches!(data_type, DataType::Decimal128(_, _));
        let (kind, order, example) = match physical {
            Type::BOOLEAN => (Kind::Boolean, Order::Unsigned, Value::Boolean(false)),
            Type::INT32 => (Kind::Words32(Way::Undecided), order, Value::Int32(0)),
            Type::FLOAT => (Kind::Words32(Way::Undecided), Order::Float, Value::Float(0.0)),
            Type::INT64 => (Kind::Words64(Way::Undecided), order, Value::Int64(0)),
            Type::DOUBLE => (Kind::Words64(Way::Undecided), Order::Float, Value::Double(0.0)),
            Type::BYTE_ARRAY => (Kind::Text(Way::Undecided), Order::Text, Value::Bytes(Vec::new())),
            Type::FIXED_LEN_BYTE_ARRAY | Type::INT96 => {
                let order = if is_decimal { Order::Decimal } else { Order::Bytes };
                let width = descriptor.type_length().max(1) as usize;
                (Kind::Fixed(width, Way::Undecided), order, Value::Fixed(Vec::new()))
            }
        };
        let facts = ColumnFacts { descriptor, codec: codec(compression), order, example };
        Self { facts, compression, encodings, kind, gain: Gain::default(), pages: ChunkPages::new(physical) }
    }

    /// Memory that pages, dictionary and the rest hold, in bytes.
    pub fn held_bytes(&self) -> usize {
        fn of<D: Dictionary>(way: &Way<D>) -> usize {
            way.dictionary().map_or(0, D::held_bytes)
        }
        let dictionary = match &self.kind {
            Kind::Boolean => 0,
            Kind::Words32(way) => of(way),
            Kind::Words64(way) => of(way),
            Kind::Text(way) | Kind::Fixed(_, way) => of(way),
        };
        size_of::<Self>() + self.pages.held_bytes() + dictionary
    }

    /// Puts the finished pages aside, if they are worth it.
    ///
    /// # Errors
    /// Where they can't be written.
    pub fn park(&mut self, parking: &Arc<Parking>) -> std::io::Result<()> {
        self.pages.park(parking)
    }

    /// Encodes the rows of a slab, which come in pieces.
    ///
    /// # Errors
    /// Where the codec fails.
    pub fn write(&mut self, pieces: &[ArrayRef]) -> Result<()> {
        SCRATCH.with_borrow_mut(|scratch| {
            if matches!(self.kind, Kind::Text(_)) {
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

    fn write_page(&mut self, pieces: &[ArrayRef], scratch: &mut Scratch) -> Result<()> {
        let rows: usize = pieces.iter().map(|piece| piece.len()).sum();
        if rows == 0 {
            return Ok(());
        }
        let values = values::presence(pieces, &mut scratch.present);
        let out = &mut PageMaker {
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
            Kind::Boolean => {
                let (bits, trues) = values::booleans(pieces, &mut scratch.booleans);
                out.start();
                out.buffers.body.extend_from_slice(bits);
                out.finish(Encoding::PLAIN, Bounds::of_booleans(trues, values - trues), None)
            }
            Kind::Words32(way) => {
                let words = values::words32(pieces, &mut scratch.words32);
                let bounds = bounds::of_words32(words, order);
                let range = match &bounds {
                    Some(Bounds { least: Value::Int32(a), greatest: Value::Int32(b) }) => Some((*a, *b)),
                    _ => None,
                };
                out.choose(way, &Numbers::new(words, range, bounds, order))
            }
            Kind::Words64(way) => {
                let words = values::words64(pieces, &mut scratch.words64);
                let bounds = bounds::of_words64(words, order);
                let range = match &bounds {
                    Some(Bounds { least: Value::Int64(a), greatest: Value::Int64(b) }) => Some((*a, *b)),
                    _ => None,
                };
                out.choose(way, &Numbers::new(words, range, bounds, order))
            }
            Kind::Text(way) => out.choose(way, &DirectTexts { texts: Texts::new(pieces), encodings: self.encodings }),
            Kind::Fixed(width, way) => {
                let bytes = values::fixed(pieces, *width, &mut scratch.bytes);
                out.choose(way, &FixedBytes { bytes, width: *width, order })
            }
        }
    }

    /// Ends the column chunk.
    ///
    /// # Errors
    /// Where the codec fails.
    pub fn close(self) -> Result<Chunk> {
        fn plain<D: Dictionary>(way: &Way<D>) -> Option<(usize, Vec<u8>)> {
            let dictionary = way.dictionary()?;
            let mut body = Vec::new();
            dictionary.put_plain(&mut body);
            Some((dictionary.len(), body))
        }
        let dictionary = match &self.kind {
            Kind::Boolean => None,
            Kind::Words32(way) => plain(way),
            Kind::Words64(way) => plain(way),
            Kind::Text(way) | Kind::Fixed(_, way) => plain(way),
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

impl Scratch {
    fn shrink(&mut self) {
        let Buffers { body, compressed, other_body, other_compressed, .. } = &mut self.encode;
        for buffer in [&mut self.bytes, body, compressed, other_body, other_compressed] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }
}

/// The rows of each page of a slab of text.
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
