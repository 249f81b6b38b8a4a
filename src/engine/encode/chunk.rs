//! A finished column chunk: its pages, and what the footer and the page index say of them.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression as Codec, Encoding, EncodingMask, PageType, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, LevelHistogram, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::ColumnDescPtr;

use super::bounds::{Bounds, Order, Value, statistics};

type Pages = Vec<Box<[u8]>>;

/// About what a page holds besides its bytes: its entries in both indexes, and the allocator's part.
const PAGE_FACTS_BYTES: usize = 320;

/// A data page.
pub(super) struct Page {
    pub encoding: Encoding,
    pub rows: usize,
    pub nulls: usize,
    pub bounds: Option<Bounds>,
    /// Of the values of text.
    pub text_bytes: Option<usize>,
    /// Of the body, before it was compressed.
    pub body_bytes: usize,
    pub compressed_bytes: usize,
    /// With its head.
    pub bytes: Box<[u8]>,
}

/// The data pages of a column chunk that grows.
pub(super) struct ChunkPages {
    pages: Pages,
    pages_bytes: usize,
    body_bytes: u64,
    rows: u64,
    nulls: u64,
    text_bytes: Option<i64>,
    bounds: Option<Bounds>,
    last_bounds: Option<Bounds>,
    ascending: bool,
    descending: bool,
    encodings: Vec<PageEncodingStats>,
    columns: ColumnIndexBuilder,
    offsets: OffsetIndexBuilder,
}

/// What all chunks of a column share.
pub(super) struct ColumnFacts {
    pub descriptor: ColumnDescPtr,
    pub codec: Codec,
    pub order: Order,
    /// Any value of the column's kind.
    pub example: Value,
}

impl ColumnFacts {
    fn is_optional(&self) -> bool {
        self.descriptor.max_def_level() > 0
    }
}

impl ChunkPages {
    pub(super) fn new(physical: Type) -> Self {
        Self {
            pages: Pages::new(),
            pages_bytes: 0,
            body_bytes: 0,
            rows: 0,
            nulls: 0,
            text_bytes: None,
            bounds: None,
            last_bounds: None,
            ascending: true,
            descending: true,
            encodings: Vec::new(),
            columns: ColumnIndexBuilder::new(physical),
            offsets: OffsetIndexBuilder::new(),
        }
    }

    /// Memory that pages and what is told about them hold, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let bounds = [&self.bounds, &self.last_bounds].into_iter().flatten().map(Bounds::held_bytes).sum::<usize>();
        self.pages_bytes + bounds + self.pages.len() * PAGE_FACTS_BYTES
    }

    pub(super) fn push(&mut self, page: Page, facts: &ColumnFacts) {
        let histogram = facts.is_optional().then(|| levels(page.rows - page.nulls, page.nulls));
        if page.nulls == page.rows {
            self.columns.append(true, Vec::new(), Vec::new(), page.nulls as i64);
        } else if let Some(bounds) = &page.bounds {
            let (least, greatest) = bounds.shortened();
            self.columns.append(false, least, greatest, page.nulls as i64);
        } else {
            // Of nothing but values that are no number, so that no index could be right.
            self.columns.to_invalid();
        }
        self.columns.append_histograms(&None, &histogram);
        self.offsets.append_row_count(page.rows as i64);
        self.offsets.append_unencoded_byte_array_data_bytes(page.text_bytes.map(|bytes| bytes as i64));
        if let Some(bytes) = page.text_bytes {
            *self.text_bytes.get_or_insert(0) += bytes as i64;
        }
        if let Some(bounds) = page.bounds {
            self.widen(bounds, facts.order);
        }
        count(&mut self.encodings, PageType::DATA_PAGE, page.encoding);
        self.rows += page.rows as u64;
        self.nulls += page.nulls as u64;
        self.body_bytes += (page.body_bytes + page.bytes.len() - page.compressed_bytes) as u64;
        self.pages_bytes += page.bytes.len();
        self.pages.push(page.bytes);
    }

    fn widen(&mut self, bounds: Bounds, order: Order) {
        match &mut self.bounds {
            Some(all) => all.widen(&bounds, order),
            None => self.bounds = Some(bounds.clone()),
        }
        if let Some(last) = &self.last_bounds {
            self.ascending = self.ascending && bounds.follow(last, order);
            self.descending = self.descending && last.follow(&bounds, order);
        }
        self.last_bounds = Some(bounds);
    }

    /// Puts the dictionary, if there is one, before the pages: its page, and its size in plain form with the head.
    pub(super) fn close(mut self, dictionary: Option<(Box<[u8]>, usize)>, facts: &ColumnFacts) -> Result<Chunk> {
        let mut encodings = Vec::new();
        let mut at = 0;
        let mut all = Pages::with_capacity(self.pages.len() + 1);
        let dictionary_offset = dictionary.as_ref().map(|_| 0);
        if let Some((page, plain_bytes)) = dictionary {
            count(&mut encodings, PageType::DICTIONARY_PAGE, Encoding::PLAIN);
            self.body_bytes += plain_bytes as u64;
            at = page.len() as i64;
            all.push(page);
        }
        encodings.append(&mut self.encodings);
        let data_offset = at;
        for page in self.pages {
            self.offsets.append_offset_and_size(at, page.len() as i32);
            at += page.len() as i64;
            all.push(page);
        }
        let used = encodings.iter().map(|stats| &stats.encoding).chain(&[Encoding::RLE]);
        let metadata = ColumnChunkMetaData::builder(Arc::clone(&facts.descriptor))
            .set_compression(facts.codec)
            .set_encodings_mask(EncodingMask::new_from_encodings(used))
            .set_page_encoding_stats(encodings.clone())
            .set_total_compressed_size(at)
            .set_total_uncompressed_size(self.body_bytes as i64)
            .set_num_values(self.rows as i64)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(dictionary_offset)
            .set_statistics(statistics(self.bounds.as_ref(), &facts.example, self.nulls, facts.order))
            .set_unencoded_byte_array_data_bytes(self.text_bytes)
            .set_definition_level_histogram(
                facts.is_optional().then(|| levels((self.rows - self.nulls) as usize, self.nulls as usize)),
            )
            .build()?;
        self.columns.set_boundary_order(match (self.ascending, self.descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        });
        let column_index = if self.columns.valid() { Some(self.columns.build()?) } else { None };
        let close = ColumnCloseResult {
            bytes_written: at as u64,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index,
            offset_index: Some(self.offsets.build()),
        };
        Ok(Chunk { pages: ChunkBytes(Arc::new(all)), close })
    }
}

fn levels(values: usize, nulls: usize) -> LevelHistogram {
    LevelHistogram::from(vec![nulls as i64, values as i64])
}

/// Counts pages of one encoding in a row.
fn count(all: &mut Vec<PageEncodingStats>, page_type: PageType, encoding: Encoding) {
    match all.last_mut() {
        Some(last) if last.page_type == page_type && last.encoding == encoding => last.count += 1,
        _ => all.push(PageEncodingStats { page_type, encoding, count: 1 }),
    }
}

/// A finished column chunk, to be appended to a row group.
pub struct Chunk {
    pub pages: ChunkBytes,
    pub close: ColumnCloseResult,
}

/// The bytes of a column chunk.
#[derive(Clone)]
pub struct ChunkBytes(Arc<Pages>);

/// Reads pages one after the other.
pub struct ChunkRead {
    pages: Arc<Pages>,
    page: usize,
    at: usize,
}

impl Read for ChunkRead {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while let Some(page) = self.pages.get(self.page) {
            let rest = &page[self.at..];
            if rest.is_empty() {
                self.page += 1;
                self.at = 0;
                continue;
            }
            let length = rest.len().min(out.len());
            out[..length].copy_from_slice(&rest[..length]);
            self.at += length;
            return Ok(length);
        }
        Ok(0)
    }
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.0.iter().map(|page| page.len() as u64).sum()
    }
}

impl ChunkReader for ChunkBytes {
    type T = ChunkRead;

    fn get_read(&self, start: u64) -> Result<ChunkRead> {
        let mut left = start as usize;
        let mut page = 0;
        while let Some(bytes) = self.0.get(page)
            && left >= bytes.len()
        {
            left -= bytes.len();
            page += 1;
        }
        Ok(ChunkRead { pages: Arc::clone(&self.0), page, at: if page < self.0.len() { left } else { 0 } })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut all = Vec::with_capacity(length);
        self.get_read(start)?.take(length as u64).read_to_end(&mut all)?;
        if all.len() < length {
            return Err(ParquetError::EOF(format!("expected {length} bytes at {start}, found {}", all.len())));
        }
        Ok(all.into())
    }
}
