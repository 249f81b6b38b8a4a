//! Writes the pages of a column, with or without a dictionary.
//!
//! Invariant: the first page with values decides the encoding, and is encoded both ways if the smaller one isn't
//! obvious; a dictionary that grows too large is abandoned at the end of a page.

use parquet::basic::Encoding;
use parquet::errors::Result;

use super::bits::width_of;
use super::bounds::ValueBounds;
use super::codec::{CompressionGain, PageEffort, compress, compress_by, store};
use super::column_chunk::{ChunkPages, ColumnFacts, DataPage};
use super::dictionary::{Dictionary, DictionaryFull, DictionaryLimits};
use super::direct::{DirectEncoding, PageBuffers, PageValues};
use super::hybrid::put_codes;
use super::page::{data_page, put_levels};
use crate::domain::pipeline::Compression;

/// The average repetitions of values at which a dictionary is used without comparing alternatives.
const SURELY_REPEATED: usize = 3;
/// The percentage of distinct values above which a dictionary is not considered.
const DISTINCT_PERCENT_MAX: usize = 60;
/// The size below which plain values are preferred to packed ones, both compressed, in percent.
const PLAIN_PERCENT_MAX: usize = 96;
/// Pages with fewer values are compared by their size before compression.
const COMPARED_VALUES_MIN: usize = 256;

/// The encoding of a column, as far as decided.
pub(super) enum EncodingState<D> {
    Undecided,
    Dictionary(D),
    /// No dictionary from now on; earlier pages may use one.
    Direct(Option<D>, DirectEncoding),
}

impl<D> EncodingState<D> {
    /// The dictionary used by some or all of the column's pages.
    pub(super) fn dictionary(&self) -> Option<&D> {
        match self {
            Self::Undecided => None,
            Self::Dictionary(dictionary) => Some(dictionary),
            Self::Direct(dictionary, _) => dictionary.as_ref(),
        }
    }
}

/// Writes one page.
pub(super) struct PageWriter<'a> {
    pub facts: &'a ColumnFacts,
    pub compression: Compression,
    pub rows: usize,
    pub values: usize,
    /// Which rows have a value, if only some do.
    pub present: &'a [u8],
    pub gain: &'a mut CompressionGain,
    pub pages: &'a mut ChunkPages,
    pub buffers: &'a mut PageBuffers,
}

impl PageWriter<'_> {
    /// Starts the body.
    pub(super) fn start(&mut self) {
        self.buffers.body.clear();
        if self.facts.descriptor.max_def_level() > 0 {
            put_levels(self.rows, self.values, self.present, &mut self.buffers.body);
        }
    }

    /// Compresses the body and adds the page.
    pub(super) fn finish(
        &mut self,
        encoding: Encoding,
        bounds: Option<ValueBounds>,
        text_bytes: Option<usize>,
    ) -> Result<()> {
        let (body, compressed) = (&self.buffers.body, &mut self.buffers.compressed);
        match self.gain.effort(encoding) {
            PageEffort::Compressed(search) => compress_by(self.compression, search, body, compressed)?,
            PageEffort::Stored if matches!(self.compression, Compression::Zstd(_)) => store(body, compressed),
            PageEffort::Stored => compress(self.compression, body, compressed)?,
        }
        self.add(encoding, bounds, text_bytes)
    }

    fn add(&mut self, encoding: Encoding, bounds: Option<ValueBounds>, text_bytes: Option<usize>) -> Result<()> {
        let (body, compressed) = (&self.buffers.body, &self.buffers.compressed);
        self.gain.take(self.compression, encoding, body, compressed.len())?;
        let page = DataPage {
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
        Ok(())
    }

    /// Writes the page in the column's encoding, which this page may decide.
    pub(super) fn choose<V: PageValues>(&mut self, state: &mut EncodingState<V::Dictionary>, values: &V) -> Result<()> {
        let text_bytes = values.text_bytes();
        match state {
            EncodingState::Undecided if self.values == 0 => {
                self.start();
                return self.finish(Encoding::PLAIN, None, text_bytes);
            }
            EncodingState::Undecided => {
                return match self.decide(values)? {
                    Decision::Dictionary(dictionary) => {
                        let bounds = values.bounds(Some((&dictionary, &self.buffers.codes)));
                        *state = EncodingState::Dictionary(dictionary);
                        self.add(Encoding::RLE_DICTIONARY, bounds, text_bytes)
                    }
                    Decision::Direct(encoding, direct) => {
                        *state = EncodingState::Direct(None, direct);
                        self.add(encoding, values.bounds(None), text_bytes)
                    }
                };
            }
            EncodingState::Dictionary(dictionary) => {
                let before = dictionary.len();
                if dictionary.encode(values.words(), DictionaryLimits::in_use(), &mut self.buffers.codes) == Ok(()) {
                    self.start();
                    self.put_codes(dictionary.len());
                    let bounds = values.bounds(Some((dictionary, &self.buffers.codes)));
                    return self.finish(Encoding::RLE_DICTIONARY, bounds, text_bytes);
                }
                dictionary.close(before);
            }
            EncodingState::Direct(_, _) => {}
        }
        let (before, direct) = match std::mem::replace(state, EncodingState::Undecided) {
            EncodingState::Undecided => (None, DirectEncoding::Packed),
            EncodingState::Dictionary(dictionary) => (Some(dictionary), DirectEncoding::Packed),
            EncodingState::Direct(before, direct) => (before, direct),
        };
        *state = EncodingState::Direct(before, direct);
        self.start();
        let encoding = values.put_direct(direct, self.buffers);
        self.finish(encoding, values.bounds(None), text_bytes)
    }

    fn put_codes(&mut self, distinct: usize) {
        // Some readers don't support codes of zero bits.
        let width = width_of(distinct.saturating_sub(1) as u64).max(1);
        self.buffers.body.push(width as u8);
        put_codes(&self.buffers.codes, width, &mut self.buffers.body);
    }

    /// Encodes and compresses the column's first page with values, with a dictionary if it is smaller.
    fn decide<V: PageValues>(&mut self, values: &V) -> Result<Decision<V::Dictionary>> {
        let mut dictionary = V::Dictionary::default();
        // Packed values hardly compress, so sizes are sufficient, and a larger dictionary can't be profitable.
        let packed = values.is_packed() || self.values < COMPARED_VALUES_MIN;
        let mut encoding = None;
        if packed {
            self.start();
            encoding = Some(values.put_direct(DirectEncoding::Packed, self.buffers));
            self.buffers.swap_pages();
        }
        let limits = values.limits(if packed { self.buffers.other_body.len() } else { usize::MAX });
        let full = dictionary.encode(values.words(), limits, &mut self.buffers.codes) == Err(DictionaryFull);
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
            self.buffers.swap_pages();
            compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
            if encoding == Encoding::DELTA_BINARY_PACKED && values.all_multiples_of_1000() {
                self.buffers.swap_pages();
                self.start();
                let plain = values.put_direct(DirectEncoding::Plain, self.buffers);
                compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
                if self.buffers.compressed.len() * 100 < self.buffers.other_compressed.len() * PLAIN_PERCENT_MAX {
                    return Ok(Decision::Direct(plain, DirectEncoding::Plain));
                }
                self.buffers.swap_pages();
            }
            return Ok(Decision::Direct(encoding, DirectEncoding::Packed));
        }
        if full || dictionary.len() * 100 > self.values * DISTINCT_PERCENT_MAX {
            return self.direct(values);
        }
        self.start();
        self.put_codes(dictionary.len());
        compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
        if dictionary.len() * SURELY_REPEATED <= self.values {
            return Ok(Decision::Dictionary(dictionary));
        }
        // Encodes both ways.
        let (mut plain, mut compressed) = (Vec::new(), Vec::new());
        dictionary.put_plain(&mut plain);
        compress(self.compression, &plain, &mut compressed)?;
        let with = self.buffers.compressed.len() + compressed.len();
        self.buffers.swap_pages();
        let direct = self.direct(values)?;
        if with < self.buffers.compressed.len() {
            self.buffers.swap_pages();
            return Ok(Decision::Dictionary(dictionary));
        }
        Ok(direct)
    }

    fn direct<V: PageValues>(&mut self, values: &V) -> Result<Decision<V::Dictionary>> {
        self.start();
        let encoding = values.put_direct(DirectEncoding::Packed, self.buffers);
        compress(self.compression, &self.buffers.body, &mut self.buffers.compressed)?;
        Ok(Decision::Direct(encoding, DirectEncoding::Packed))
    }
}

/// A dictionary, or the direct encoding.
enum Decision<D> {
    Dictionary(D),
    Direct(Encoding, DirectEncoding),
}

impl PageBuffers {
    /// Swaps the current page and the alternative.
    fn swap_pages(&mut self) {
        std::mem::swap(&mut self.body, &mut self.other_body);
        std::mem::swap(&mut self.compressed, &mut self.other_compressed);
    }
}
