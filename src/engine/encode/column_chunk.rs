//! A finished column chunk: its pages, and their metadata for the footer and the page index.

use std::io::{self, Read};
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

use super::bounds::{StatValue, ValueBounds, ValueOrder, statistics};
use super::page_spill::{PageSpill, SpilledPages};

/// The bytes of a column chunk, in order.
type ChunkParts = Vec<ChunkPart>;

/// A page in memory, or spilled pages.
enum ChunkPart {
    Page(Box<[u8]>),
    Spilled(SpilledPages),
}

impl ChunkPart {
    fn len(&self) -> u64 {
        match self {
            Self::Page(page) => page.len() as u64,
            Self::Spilled(spilled) => spilled.len(),
        }
    }

    /// Reads from byte `from`; 0 at the end.
    fn read(&self, from: u64, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Page(page) => {
                let rest = page.get(from as usize..).unwrap_or_default();
                let length = rest.len().min(out.len());
                out[..length].copy_from_slice(&rest[..length]);
                Ok(length)
            }
            Self::Spilled(spilled) => spilled.read(from, out),
        }
    }
}

/// The approximate overhead of a page: its entries in both indexes, and the allocator's.
const PAGE_FACTS_BYTES: usize = 320;
/// Fewer bytes of a column chunk are not worth a write.
const SPILLED_BYTES_MIN: usize = 32 << 10;

/// A data page.
pub(super) struct DataPage {
    pub encoding: Encoding,
    pub rows: usize,
    pub nulls: usize,
    pub bounds: Option<ValueBounds>,
    /// Bytes of text values.
    pub text_bytes: Option<usize>,
    /// The body before compression.
    pub body_bytes: usize,
    pub compressed_bytes: usize,
    /// With its header.
    pub bytes: Box<[u8]>,
}

/// The data pages of a growing column chunk.
pub(super) struct ChunkPages {
    parts: ChunkParts,
    /// Length of each page, with its header.
    lengths: Vec<u32>,
    /// Bytes of the pages in memory.
    pages_bytes: usize,
    body_bytes: u64,
    rows: u64,
    nulls: u64,
    text_bytes: Option<i64>,
    bounds: Option<ValueBounds>,
    /// A page has values without bounds, so the chunk has no bounds.
    unbounded: bool,
    last_bounds: Option<ValueBounds>,
    ascending: bool,
    descending: bool,
    encodings: Vec<PageEncodingStats>,
    columns: ColumnIndexBuilder,
    offsets: OffsetIndexBuilder,
}

/// Properties shared by all chunks of a column.
pub(super) struct ColumnFacts {
    pub descriptor: ColumnDescPtr,
    pub codec: Codec,
    pub order: ValueOrder,
    /// Any value of the column's type.
    pub example: StatValue,
}

impl ColumnFacts {
    fn is_optional(&self) -> bool {
        self.descriptor.max_def_level() > 0
    }
}

impl ChunkPages {
    pub(super) fn new(physical: Type) -> Self {
        Self {
            parts: ChunkParts::new(),
            lengths: Vec::new(),
            pages_bytes: 0,
            body_bytes: 0,
            rows: 0,
            nulls: 0,
            text_bytes: None,
            bounds: None,
            unbounded: false,
            last_bounds: None,
            ascending: true,
            descending: true,
            encodings: Vec::new(),
            columns: ColumnIndexBuilder::new(physical),
            offsets: OffsetIndexBuilder::new(),
        }
    }

    /// Memory held by pages and their metadata, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let bounds =
            [&self.bounds, &self.last_bounds].into_iter().flatten().map(ValueBounds::held_bytes).sum::<usize>();
        self.pages_bytes + bounds + self.lengths.len() * PAGE_FACTS_BYTES
    }

    pub(super) fn push(&mut self, page: DataPage, facts: &ColumnFacts) {
        let histogram = facts.is_optional().then(|| levels(page.rows - page.nulls, page.nulls));
        if page.nulls == page.rows {
            self.columns.append(true, Vec::new(), Vec::new(), page.nulls as i64);
        } else if let Some(bounds) = &page.bounds {
            let (min, max) = bounds.shortened();
            self.columns.append(false, min, max, page.nulls as i64);
        } else {
            // An index requires bounds of every page.
            self.columns.to_invalid();
            self.unbounded = true;
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
        self.lengths.push(page.bytes.len() as u32);
        self.parts.push(ChunkPart::Page(page.bytes));
    }

    /// Spills the pages in memory, if worthwhile.
    pub(super) fn spill_pages(&mut self, page_spill: &Arc<PageSpill>) -> io::Result<()> {
        if self.pages_bytes < SPILLED_BYTES_MIN {
            return Ok(());
        }
        let first =
            self.parts.iter().rposition(|part| matches!(part, ChunkPart::Spilled(_))).map_or(0, |last| last + 1);
        let pages = self.parts[first..].iter().filter_map(|part| match part {
            ChunkPart::Page(page) => Some(&page[..]),
            ChunkPart::Spilled(_) => None,
        });
        let spilled = SpilledPages::new(page_spill, pages)?;
        self.parts.truncate(first);
        self.parts.push(ChunkPart::Spilled(spilled));
        self.pages_bytes = 0;
        Ok(())
    }

    fn widen(&mut self, bounds: ValueBounds, order: ValueOrder) {
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

    /// Finishes the chunk. `dictionary`: the dictionary page, and its uncompressed size with the header.
    pub(super) fn close(mut self, dictionary: Option<(Box<[u8]>, usize)>, facts: &ColumnFacts) -> Result<ColumnChunk> {
        let mut encodings = Vec::new();
        let mut at = 0;
        let mut all = ChunkParts::with_capacity(self.parts.len() + 1);
        let dictionary_offset = dictionary.as_ref().map(|_| 0);
        if let Some((page, plain_bytes)) = dictionary {
            count(&mut encodings, PageType::DICTIONARY_PAGE, Encoding::PLAIN);
            self.body_bytes += plain_bytes as u64;
            at = page.len() as i64;
            all.push(ChunkPart::Page(page));
        }
        encodings.append(&mut self.encodings);
        let data_offset = at;
        for length in self.lengths {
            self.offsets.append_offset_and_size(at, length as i32);
            at += i64::from(length);
        }
        all.append(&mut self.parts);
        let bounds = self.bounds.as_ref().filter(|_| !self.unbounded);
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
            .set_statistics(statistics(bounds, &facts.example, self.nulls, facts.order))
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
        Ok(ColumnChunk { pages: ChunkBytes(Arc::new(all)), close })
    }
}

fn levels(values: usize, nulls: usize) -> LevelHistogram {
    LevelHistogram::from(vec![nulls as i64, values as i64])
}

/// Counts consecutive pages of one encoding.
fn count(all: &mut Vec<PageEncodingStats>, page_type: PageType, encoding: Encoding) {
    match all.last_mut() {
        Some(last) if last.page_type == page_type && last.encoding == encoding => last.count += 1,
        _ => all.push(PageEncodingStats { page_type, encoding, count: 1 }),
    }
}

/// A finished column chunk, to be appended to a row group.
pub struct ColumnChunk {
    pub pages: ChunkBytes,
    pub close: ColumnCloseResult,
}

/// The bytes of a column chunk.
#[derive(Clone)]
pub struct ChunkBytes(Arc<ChunkParts>);

impl ChunkBytes {
    /// Bytes in memory.
    pub fn held_bytes(&self) -> u64 {
        let held = |part: &ChunkPart| match part {
            ChunkPart::Page(page) => page.len() as u64,
            ChunkPart::Spilled(_) => 0,
        };
        self.0.iter().map(held).sum()
    }
}

/// Reads the parts in order.
pub struct ChunkRead {
    parts: Arc<ChunkParts>,
    part: usize,
    at: u64,
}

impl Read for ChunkRead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(part) = self.parts.get(self.part) {
            let read = part.read(self.at, out)?;
            self.at += read as u64;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            (self.part, self.at) = (self.part + 1, 0);
        }
        Ok(0)
    }
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        self.0.iter().map(ChunkPart::len).sum()
    }
}

impl ChunkReader for ChunkBytes {
    type T = ChunkRead;

    fn get_read(&self, start: u64) -> Result<ChunkRead> {
        let mut left = start;
        let mut part = 0;
        while let Some(bytes) = self.0.get(part)
            && left >= bytes.len()
        {
            left -= bytes.len();
            part += 1;
        }
        Ok(ChunkRead { parts: Arc::clone(&self.0), part, at: if part < self.0.len() { left } else { 0 } })
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
