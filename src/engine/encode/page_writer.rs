//! Makes the pages of a column, with a dictionary or without.
//!
//! Invariant: how is decided by the first page with values, which is made both ways where it isn't clear what is
//! smaller; a dictionary that grows too large is left at a page's end.

use parquet::basic::Encoding;
use parquet::errors::Result;

use super::bits::width_of;
use super::bounds::Bounds;
use super::codec::{CompressionGain, PageEffort, compress, compress_by, store};
use super::column_chunk::{ChunkPages, ColumnFacts, Page};
use super::dictionary::{Dictionary, DictionaryFull, Limits};
use super::direct::{DirectEncoding, PageBuffers, PageValues};
use super::hybrid::put_codes;
use super::page::{data_page, put_levels};
use crate::domain::pipeline::Compression;

/// Of values that come back so often, on average, a dictionary is made without a look at what else could be.
const SURELY_REPEATED: usize = 3;
/// A dictionary of more of the values than this, in percent, isn't looked into.
const DISTINCT_PERCENT_MAX: usize = 60;
/// Packed values are left for plain ones of less than this of their size, both compressed, in percent.
const PLAIN_PERCENT_MAX: usize = 96;
/// Pages of fewer values are compared by their size before compression.
const COMPARED_VALUES_MIN: usize = 256;

/// What is known about how to encode the column.
pub(super) enum EncodingState<D> {
    Undecided,
    Dictionary(D),
    /// Without a dictionary from here on; there may be one for the pages before.
    Direct(Option<D>, DirectEncoding),
}

impl<D> EncodingState<D> {
    /// The dictionary that the column's pages, or some of them, need.
    pub(super) fn dictionary(&self) -> Option<&D> {
        match self {
            Self::Undecided => None,
            Self::Dictionary(dictionary) => Some(dictionary),
            Self::Direct(dictionary, _) => dictionary.as_ref(),
        }
    }
}

/// Makes one page.
pub(super) struct PageWriter<'a> {
    pub facts: &'a ColumnFacts,
    pub compression: Compression,
    pub rows: usize,
    pub values: usize,
    /// Which of the rows have a value, if some have and some don't.
    pub present: &'a [u8],
    pub gain: &'a mut CompressionGain,
    pub pages: &'a mut ChunkPages,
    pub buffers: &'a mut PageBuffers,
}

impl PageWriter<'_> {
    /// Begins the body.
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
        bounds: Option<Bounds>,
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

    fn add(&mut self, encoding: Encoding, bounds: Option<Bounds>, text_bytes: Option<usize>) -> Result<()> {
        let (body, compressed) = (&self.buffers.body, &self.buffers.compressed);
        self.gain.take(self.compression, encoding, body, compressed.len())?;
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
        Ok(())
    }

    /// Writes the page the state the column goes, which this page may decide.
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
                    Decision::Direct(encoding, encoding_form) => {
                        *state = EncodingState::Direct(None, encoding_form);
                        self.add(encoding, values.bounds(None), text_bytes)
                    }
                };
            }
            EncodingState::Dictionary(dictionary) => {
                let before = dictionary.len();
                if dictionary.encode(values.words(), Limits::in_use(), &mut self.buffers.codes) == Ok(()) {
                    self.start();
                    self.put_codes(dictionary.len());
                    let bounds = values.bounds(Some((dictionary, &self.buffers.codes)));
                    return self.finish(Encoding::RLE_DICTIONARY, bounds, text_bytes);
                }
                dictionary.close(before);
            }
            EncodingState::Direct(_, _) => {}
        }
        let (before, encoding_form) = match std::mem::replace(state, EncodingState::Undecided) {
            EncodingState::Undecided => (None, DirectEncoding::Packed),
            EncodingState::Dictionary(dictionary) => (Some(dictionary), DirectEncoding::Packed),
            EncodingState::Direct(before, encoding_form) => (before, encoding_form),
        };
        *state = EncodingState::Direct(before, encoding_form);
        self.start();
        let encoding = values.put_direct(encoding_form, self.buffers);
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
            if encoding == Encoding::DELTA_BINARY_PACKED && values.all_multiples_of() {
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
        // Both ways.
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

/// A dictionary, or the encoding without one.
enum Decision<D> {
    Dictionary(D),
    Direct(Encoding, DirectEncoding),
}

impl PageBuffers {
    /// Puts the page under state aside, and takes up what was put aside before.
    fn swap_pages(&mut self) {
        std::mem::swap(&mut self.body, &mut self.other_body);
        std::mem::swap(&mut self.compressed, &mut self.other_compressed);
    }
}
