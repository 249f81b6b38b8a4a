//! Encodes one column of one row group: slab after slab in, pages and what is told about them out.
//!
//! Invariant: the bytes depend on the slabs' rows alone. In which pieces a slab comes, what stands under its nulls, and
//! which thread encodes it, make no difference. How a column is encoded is decided by its first page with values, which
//! is made both ways where it isn't clear what is smaller; a dictionary that grows too large is left at a page's end.

use std::cell::RefCell;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder};
use arrow::datatypes::{DataType, ToByteSlice};
use parquet::basic::{Encoding, Type};
use parquet::errors::Result;
use parquet::schema::types::ColumnDescPtr;

use super::bits::width_of;
use super::bounds::{self, Bounds, Order, Value};
use super::chunk::{Chunk, ChunkPages, ColumnFacts, Page};
use super::codec::{codec, compress};
use super::delta::{Delta, put_deltas};
use super::dictionary::{ByteDictionary, Bytes, Dictionary, Full, Limits, Word, WordDictionary, Words};
use super::hybrid::put_codes;
use super::page::{data_page, dictionary_page, put_levels};
use super::values::{self, Texts, prefix};
use crate::domain::pipeline::Compression;

/// A page of text ends with the row with which its values reach this size.
const PAGE_BYTES: usize = 1 << 20;
/// Of values that come back so often, on average, a dictionary is made without a look at what else could be.
const SURELY_REPEATED: usize = 3;
/// Of text with more distinct values than this among its first, in percent, a dictionary isn't made.
const FIRST_TEXTS_PERCENT_MAX: usize = 75;
/// A dictionary of more of the values than this, in percent, isn't looked into.
const DISTINCT_PERCENT_MAX: usize = 90;
/// Pages of fewer values are compared by their size before compression.
const COMPARED_VALUES_MIN: usize = 256;
/// Rows of a page that others of its row group are likely to follow, and use its dictionary too.
const FULL_PAGE_ROWS: usize = 20_480;
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

#[derive(Default)]
struct Buffers {
    codes: Vec<u32>,
    lengths: Vec<i32>,
    body: Vec<u8>,
    compressed: Vec<u8>,
    other_body: Vec<u8>,
    other_compressed: Vec<u8>,
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

/// What is known about how to encode the column.
enum Way<D> {
    Undecided,
    Dictionary(D),
    /// Without a dictionary from here on; there may be one for the pages before.
    Direct(Option<D>),
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
    kind: Kind,
    pages: ChunkPages,
}

impl ColumnEncoder {
    /// For arrays of `data_type`, which is that of the Parquet column.
    pub fn new(descriptor: ColumnDescPtr, data_type: &DataType, compression: Compression) -> Self {
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
        Self { facts, compression, kind, pages: ChunkPages::new(physical) }
    }

    /// Memory that pages and dictionary hold, in bytes.
    pub fn held_bytes(&self) -> usize {
        fn of<D: Dictionary>(way: &Way<D>) -> usize {
            match way {
                Way::Undecided | Way::Direct(None) => 0,
                Way::Dictionary(dictionary) | Way::Direct(Some(dictionary)) => dictionary.held_bytes(),
            }
        }
        let dictionary = match &self.kind {
            Kind::Boolean => 0,
            Kind::Words32(way) => of(way),
            Kind::Words64(way) => of(way),
            Kind::Text(way) | Kind::Fixed(_, way) => of(way),
        };
        self.pages.held_bytes() + dictionary
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
            Kind::Text(way) => out.choose(way, &Texts::new(pieces)),
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
        fn plain<D: Dictionary>(way: Way<D>) -> Option<(usize, Vec<u8>)> {
            match way {
                Way::Undecided | Way::Direct(None) => None,
                Way::Dictionary(dictionary) | Way::Direct(Some(dictionary)) => {
                    let mut body = Vec::new();
                    dictionary.put_plain(&mut body);
                    Some((dictionary.len(), body))
                }
            }
        }
        let dictionary = match self.kind {
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

fn range_of_texts(texts: Texts<'_>) -> Option<(&[u8], &[u8])> {
    let mut range: Option<((u64, &[u8]), (u64, &[u8]))> = None;
    texts.each(|text| {
        let value = (prefix(text), text);
        match &mut range {
            None => range = Some((value, value)),
            Some((least, greatest)) => {
                if value.0 <= least.0 && value < *least {
                    *least = value;
                }
                if value.0 >= greatest.0 && value > *greatest {
                    *greatest = value;
                }
            }
        }
    });
    range.map(|((_, least), (_, greatest))| (least, greatest))
}

/// A page's values, and how they are written without a dictionary.
trait PageValues {
    type Dictionary: Dictionary + Default;

    fn words(&self) -> <Self::Dictionary as Dictionary>::Values<'_>;

    /// Their bounds; simpler to find where they have codes.
    fn bounds(&self, coded: Option<(&Self::Dictionary, &[u32])>) -> Option<Bounds>;

    fn put_direct(&self, buffers: &mut Buffers) -> Encoding;

    /// When a dictionary of the column's first page is given up, if the values take so many bytes without it.
    fn limits(&self, direct_bytes: usize) -> Limits;

    /// Of text, its values' bytes.
    fn text_bytes(&self) -> Option<usize> {
        None
    }

    /// Whether values that are written without a dictionary are packed: compression gains little.
    fn is_packed(&self) -> bool {
        false
    }
}

struct Numbers<'a, T> {
    words: Words<'a, T>,
    bounds: Option<Bounds>,
    is_float: bool,
}

impl<'a, T: Word> Numbers<'a, T> {
    fn new(values: &'a [T], range: Option<(T, T)>, bounds: Option<Bounds>, order: Order) -> Self {
        // By their sign, those between a positive and a negative number are not what they are without.
        let range = range.filter(|(least, greatest)| least <= greatest);
        Self { words: Words { values, range }, bounds, is_float: order == Order::Float }
    }
}

impl<T: Word + Delta> PageValues for Numbers<'_, T> {
    type Dictionary = WordDictionary<T>;

    fn words(&self) -> Words<'_, T> {
        self.words
    }

    fn bounds(&self, _coded: Option<(&WordDictionary<T>, &[u32])>) -> Option<Bounds> {
        self.bounds.clone()
    }

    fn put_direct(&self, buffers: &mut Buffers) -> Encoding {
        let plain = self.words.values.to_byte_slice();
        let start = buffers.body.len();
        if !self.is_float {
            put_deltas(self.words.values, &mut buffers.body);
            if buffers.body.len() - start <= plain.len() / 20 * 19 {
                return Encoding::DELTA_BINARY_PACKED;
            }
            buffers.body.truncate(start);
        }
        buffers.body.extend_from_slice(plain);
        Encoding::PLAIN
    }

    fn limits(&self, direct_bytes: usize) -> Limits {
        Limits::of_first_page(direct_bytes, 100)
    }

    fn is_packed(&self) -> bool {
        !self.is_float
    }
}

impl PageValues for Texts<'_> {
    type Dictionary = ByteDictionary;

    fn words(&self) -> Bytes<'_> {
        Bytes::Texts(*self)
    }

    fn bounds(&self, coded: Option<(&ByteDictionary, &[u32])>) -> Option<Bounds> {
        let range = match coded {
            Some((dictionary, codes)) => dictionary.range_of(codes, Order::Text),
            None => range_of_texts(*self),
        };
        Bounds::of_bytes(range, Order::Text)
    }

    fn put_direct(&self, buffers: &mut Buffers) -> Encoding {
        self.lengths(&mut buffers.lengths);
        put_deltas(&buffers.lengths, &mut buffers.body);
        self.bytes(&mut buffers.body);
        Encoding::DELTA_LENGTH_BYTE_ARRAY
    }

    fn limits(&self, direct_bytes: usize) -> Limits {
        Limits::of_first_page(direct_bytes, FIRST_TEXTS_PERCENT_MAX)
    }

    fn text_bytes(&self) -> Option<usize> {
        Some(self.total_bytes())
    }
}

struct FixedBytes<'a> {
    bytes: &'a [u8],
    width: usize,
    order: Order,
}

impl PageValues for FixedBytes<'_> {
    type Dictionary = ByteDictionary;

    fn words(&self) -> Bytes<'_> {
        Bytes::Fixed(self.bytes, self.width)
    }

    fn bounds(&self, coded: Option<(&ByteDictionary, &[u32])>) -> Option<Bounds> {
        if let Some((dictionary, codes)) = coded {
            return Bounds::of_bytes(dictionary.range_of(codes, self.order), self.order);
        }
        let range = self.bytes.chunks_exact(self.width).fold(None, |range, value| {
            let (least, greatest): (&[u8], &[u8]) = range.unwrap_or((value, value));
            let lower = bounds::compare_bytes(value, least, self.order).is_lt();
            let higher = bounds::compare_bytes(value, greatest, self.order).is_gt();
            Some((if lower { value } else { least }, if higher { value } else { greatest }))
        });
        Bounds::of_bytes(range, self.order)
    }

    fn put_direct(&self, buffers: &mut Buffers) -> Encoding {
        buffers.body.extend_from_slice(self.bytes);
        Encoding::PLAIN
    }

    fn limits(&self, direct_bytes: usize) -> Limits {
        Limits::of_first_page(direct_bytes, FIRST_TEXTS_PERCENT_MAX)
    }
}

/// Makes one page.
struct PageMaker<'a> {
    facts: &'a ColumnFacts,
    compression: Compression,
    rows: usize,
    values: usize,
    present: &'a [u8],
    pages: &'a mut ChunkPages,
    buffers: &'a mut Buffers,
}

impl PageMaker<'_> {
    /// Begins the body.
    fn start(&mut self) {
        self.buffers.body.clear();
        if self.facts.descriptor.max_def_level() > 0 {
            put_levels(self.rows, self.values, self.present, &mut self.buffers.body);
        }
    }

    /// Compresses the body and adds the page.
    fn finish(&mut self, encoding: Encoding, bounds: Option<Bounds>, text_bytes: Option<usize>) -> Result<()> {
        compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
        self.add(encoding, bounds, text_bytes);
        Ok(())
    }

    fn add(&mut self, encoding: Encoding, bounds: Option<Bounds>, text_bytes: Option<usize>) {
        let (body, compressed) = (&self.buffers.body, &self.buffers.compressed);
        let page = Page {
            encoding,
            rows: self.rows,
            nulls: self.rows - self.values,
            bounds,
            text_bytes,
            body_bytes: body.len(),
            compressed_bytes: compressed.len(),
            bytes: data_page(encoding, self.rows, body.len(), compressed),
        };
        self.pages.push(page, self.facts);
    }

    /// Writes the page the way the column goes, which this page may decide.
    fn choose<V: PageValues>(&mut self, way: &mut Way<V::Dictionary>, values: &V) -> Result<()> {
        let text_bytes = values.text_bytes();
        match way {
            Way::Undecided if self.values == 0 => {
                self.start();
                return self.finish(Encoding::PLAIN, None, text_bytes);
            }
            Way::Undecided => {
                return match self.decide(values)? {
                    Decision::Dictionary(dictionary) => {
                        let bounds = values.bounds(Some((&dictionary, &self.buffers.codes)));
                        *way = Way::Dictionary(dictionary);
                        self.add(Encoding::RLE_DICTIONARY, bounds, text_bytes);
                        Ok(())
                    }
                    Decision::Direct(encoding) => {
                        *way = Way::Direct(None);
                        self.add(encoding, values.bounds(None), text_bytes);
                        Ok(())
                    }
                };
            }
            Way::Dictionary(dictionary) => {
                let before = dictionary.len();
                if dictionary.encode(values.words(), Limits::in_use(), &mut self.buffers.codes) == Ok(()) {
                    self.start();
                    self.put_codes(dictionary.len());
                    let bounds = values.bounds(Some((dictionary, &self.buffers.codes)));
                    return self.finish(Encoding::RLE_DICTIONARY, bounds, text_bytes);
                }
                dictionary.close(before);
            }
            Way::Direct(_) => {}
        }
        if let Way::Dictionary(_) = way
            && let Way::Dictionary(dictionary) = std::mem::replace(way, Way::Undecided)
        {
            *way = Way::Direct(Some(dictionary));
        }
        self.start();
        let encoding = values.put_direct(self.buffers);
        self.finish(encoding, values.bounds(None), text_bytes)
    }

    fn put_codes(&mut self, distinct: usize) {
        // Some readers don't know codes of no bits.
        let width = width_of(distinct.saturating_sub(1) as u64).max(1);
        self.buffers.body.push(width as u8);
        put_codes(&self.buffers.codes, width, &mut self.buffers.body);
    }

    /// Makes the column's first page with values, compressed: with a dictionary if that pays.
    fn decide<V: PageValues>(&mut self, values: &V) -> Result<Decision<V::Dictionary>> {
        let mut dictionary = V::Dictionary::default();
        // Packed values hardly get smaller, so that sizes tell enough, and a dictionary that grows beyond can't pay.
        let packed = values.is_packed() || self.values < COMPARED_VALUES_MIN;
        let mut encoding = None;
        if packed {
            self.start();
            encoding = Some(values.put_direct(self.buffers));
            self.buffers.keep();
        }
        let limits = values.limits(if packed { self.buffers.other_body.len() } else { usize::MAX });
        let full = dictionary.encode(values.words(), limits, &mut self.buffers.codes) == Err(Full);
        if let Some(encoding) = encoding {
            if !full {
                self.start();
                self.put_codes(dictionary.len());
                let is_surely_repeated = dictionary.len() * SURELY_REPEATED <= self.values;
                let own_bytes = dictionary.plain_bytes() / if is_surely_repeated { 2 } else { 1 };
                if self.buffers.body.len() + own_bytes < self.buffers.other_body.len() {
                    compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
                    return Ok(Decision::Dictionary(dictionary));
                }
            }
            self.buffers.keep();
            compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
            return Ok(Decision::Direct(encoding));
        }
        if full || dictionary.len() * 100 > self.values * DISTINCT_PERCENT_MAX {
            return self.direct(values).map(Decision::Direct);
        }
        self.start();
        self.put_codes(dictionary.len());
        compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
        if dictionary.len() * SURELY_REPEATED <= self.values {
            return Ok(Decision::Dictionary(dictionary));
        }
        // Both ways; what the dictionary itself takes is shared with the pages to come.
        let (mut plain, mut compressed) = (Vec::new(), Vec::new());
        dictionary.put_plain(&mut plain);
        compress(self.compression, &plain, &mut compressed)?;
        let shared = if self.rows >= FULL_PAGE_ROWS { 2 } else { 1 };
        let with = self.buffers.compressed.len() + compressed.len() / shared;
        self.buffers.keep();
        let encoding = self.direct(values)?;
        if with < self.buffers.compressed.len() {
            self.buffers.keep();
            return Ok(Decision::Dictionary(dictionary));
        }
        Ok(Decision::Direct(encoding))
    }

    fn direct<V: PageValues>(&mut self, values: &V) -> Result<Encoding> {
        self.start();
        let encoding = values.put_direct(self.buffers);
        compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
        Ok(encoding)
    }
}

/// A dictionary, or the encoding without one.
enum Decision<D> {
    Dictionary(D),
    Direct(Encoding),
}

impl Buffers {
    /// Puts the page under way aside, and takes up what was put aside before.
    fn keep(&mut self) {
        std::mem::swap(&mut self.body, &mut self.other_body);
        std::mem::swap(&mut self.compressed, &mut self.other_compressed);
    }
}
