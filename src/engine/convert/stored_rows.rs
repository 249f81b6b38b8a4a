//! Reads the stored rows of segments that are rebuilt.
//!
//! Invariant: a reader holds at most one batch, and few readers are open at a time; a closed one continues at its row.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

use super::assemble::RowGroups;
use super::error::{ConvertError, internal};
use super::inputs::{StoredSegment, StoredSource};
use super::members::Member;
use super::parquet_file::{SLAB_ROWS, open_rows};
use super::partitions::PartitionPath;
use super::text_list::TextList;
use crate::domain::table_log::cuts::{Cut, CutTargets, cut_at, key_hash};

/// Bytes of a batch, by the mean size of its rows.
const BATCH_BYTES: u64 = 1 << 20;
/// Readers kept open while rows of other partitions are fed.
const OPEN_MAX: usize = 32;

/// Rows of a partition, and the sources whose rows end with them. Only the last may end a segment.
pub(super) struct StoredPiece {
    pub path: PartitionPath,
    pub batch: RecordBatch,
    pub ends: Vec<StoredEnd>,
}

/// The end of a source's rows in a partition.
pub(super) struct StoredEnd {
    pub member: Member,
    /// The hash of its key.
    pub hash: u64,
}

/// State shared by all readers.
pub(super) struct StoredFormat {
    pub schema: SchemaRef,
    pub cuts: CutTargets,
    /// The keys of all sources of the build, in order.
    pub keys: Arc<TextList>,
}

/// The stored segments of a build.
pub(super) struct StoredRows {
    format: StoredFormat,
    /// By partition, in key order.
    segments: BTreeMap<String, VecDeque<SegmentReader>>,
    open: usize,
}

impl StoredRows {
    pub(super) fn new(format: StoredFormat, mut stored: Vec<StoredSegment>) -> Self {
        stored.retain(|segment| !segment.sources.is_empty());
        stored.sort_by(|a, b| a.sources[0].key.cmp(&b.sources[0].key));
        let mut segments: BTreeMap<String, VecDeque<SegmentReader>> = BTreeMap::new();
        for segment in stored {
            let partition = segment.partition.clone();
            segments.entry(partition).or_default().push_back(SegmentReader::new(segment, &format.schema));
        }
        Self { format, segments, open: 0 }
    }

    /// Passes the partition's rows of sources before `key` to `push`, in order, until it returns false.
    pub(super) fn feed_before(
        &mut self,
        partition: &str,
        key: &str,
        push: &mut dyn FnMut(StoredPiece) -> bool,
    ) -> Result<bool, ConvertError> {
        match self.segments.get_mut(partition) {
            Some(segments) => feed(&self.format, segments, Some(key), &mut self.open, push),
            None => Ok(true),
        }
    }

    /// Passes all remaining rows to `push`, partition by partition.
    pub(super) fn feed_rest(mut self, push: &mut dyn FnMut(StoredPiece) -> bool) -> Result<bool, ConvertError> {
        for segments in self.segments.values_mut() {
            if !feed(&self.format, segments, None, &mut self.open, push)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn feed(
    format: &StoredFormat,
    segments: &mut VecDeque<SegmentReader>,
    before: Option<&str>,
    open: &mut usize,
    push: &mut dyn FnMut(StoredPiece) -> bool,
) -> Result<bool, ConvertError> {
    while let Some(segment) = segments.front_mut() {
        let was_open = segment.open.is_some();
        while let Some(piece) = segment.next_piece(format, before)? {
            if !push(piece) {
                return Ok(false);
            }
        }
        *open -= usize::from(was_open);
        if !segment.sources.is_empty() {
            if *open >= OPEN_MAX {
                segment.open = None;
            }
            *open += usize::from(segment.open.is_some());
            return Ok(true);
        }
        segments.pop_front();
    }
    Ok(true)
}

/// Reads one segment.
struct SegmentReader {
    path: PartitionPath,
    parts: Vec<RowGroups>,
    /// The sources with remaining rows.
    sources: VecDeque<StoredSource>,
    /// Rows already taken from the first of these sources.
    taken: u64,
    /// Rows already taken from the segment.
    row: u64,
    batch_rows: usize,
    open: Option<OpenReader>,
}

struct OpenReader {
    /// Parts that no reader was opened for.
    parts: VecDeque<RowGroups>,
    reader: Option<ParquetRecordBatchReader>,
    batch: Option<RecordBatch>,
}

impl SegmentReader {
    fn new(segment: StoredSegment, schema: &SchemaRef) -> Self {
        let fixed: usize = schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(4)).sum();
        let text = segment.sources.iter().map(|source| source.share / source.rows.max(1)).max().unwrap_or(0);
        let batch_rows = (BATCH_BYTES / (text + fixed as u64).max(1)).clamp(1, SLAB_ROWS as u64) as usize;
        let StoredSegment { partition, parts, sources } = segment;
        let (path, sources) = (partition.into(), sources.into());
        Self { path, parts, sources, taken: 0, row: 0, batch_rows, open: None }
    }

    /// The next rows of kept sources before `before`, up to a batch's end or a cut.
    fn next_piece(&mut self, format: &StoredFormat, before: Option<&str>) -> Result<Option<StoredPiece>, ConvertError> {
        let is_before = |source: &StoredSource| before.is_none_or(|before| source.key.as_str() < before);
        while let Some(source) = self.sources.front().filter(|source| !source.keep && is_before(source)) {
            let mut left = source.rows - self.taken;
            self.sources.pop_front();
            while left > 0 {
                let rows = left.min(self.batch(&format.schema)? as u64);
                self.advance(rows as usize);
                left -= rows;
            }
        }
        if self.sources.front().is_none_or(|source| !is_before(source)) {
            return Ok(None);
        }
        let available = self.batch(&format.schema)?;
        let (mut rows, mut ends) = (0, Vec::new());
        while let Some(source) = self.sources.front().filter(|source| source.keep && is_before(source))
            && rows < available
        {
            let left = source.rows - self.taken;
            if left > (available - rows) as u64 {
                self.taken += (available - rows) as u64;
                rows = available;
                break;
            }
            rows += left as usize;
            self.taken = 0;
            let end = end(format, source)?;
            self.sources.pop_front();
            let cut = cut_at(end.hash, end.member.share, format.cuts);
            ends.push(end);
            if cut > Cut::None {
                break;
            }
        }
        let batch = self.advance(rows).ok_or_else(|| internal("a stored segment has no batch"))?;
        Ok(Some(StoredPiece { path: Arc::clone(&self.path), batch, ends }))
    }

    /// Loads the next batch if there is none; returns its rows, at least one.
    fn batch(&mut self, schema: &SchemaRef) -> Result<usize, ConvertError> {
        let open = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(OpenReader::at(&self.parts, self.row, self.batch_rows, schema)?),
        };
        open.load(self.batch_rows, schema)
    }

    /// Takes the first `rows` of the loaded batch.
    fn advance(&mut self, rows: usize) -> Option<RecordBatch> {
        let open = self.open.as_mut()?;
        let batch = open.batch.take()?;
        self.row += rows as u64;
        let rest = batch.num_rows() - rows;
        open.batch = (rest > 0).then(|| batch.slice(rows, rest));
        let head = batch.slice(0, rows);
        if self.sources.is_empty() {
            self.open = None;
        }
        Some(head)
    }
}

fn end(format: &StoredFormat, source: &StoredSource) -> Result<StoredEnd, ConvertError> {
    let at = format.keys.position(&source.key).ok_or_else(|| internal("a stored source has no key"))?;
    let member = Member { source: at as u32, rows: source.rows, share: source.share };
    Ok(StoredEnd { member, hash: key_hash(&source.key) })
}

impl OpenReader {
    /// Opens `parts` at a row.
    fn at(parts: &[RowGroups], mut row: u64, batch_rows: usize, schema: &SchemaRef) -> Result<Self, ConvertError> {
        let mut parts: VecDeque<RowGroups> = parts.iter().cloned().collect();
        while row > 0
            && let Some(part) = parts.front_mut()
        {
            let builder = open_rows(&part.path, schema)?;
            while row > 0 && !part.range.is_empty() {
                let rows = builder.metadata().row_group(part.range.start).num_rows() as u64;
                if rows > row {
                    let reader = builder
                        .with_row_groups(part.range.clone().collect())
                        .with_offset(row as usize)
                        .with_batch_size(batch_rows);
                    let reader = reader.build().map_err(internal)?;
                    parts.pop_front();
                    return Ok(Self { parts, reader: Some(reader), batch: None });
                }
                row -= rows;
                part.range.start += 1;
            }
            if part.range.is_empty() {
                parts.pop_front();
            }
        }
        Ok(Self { parts, reader: None, batch: None })
    }

    fn load(&mut self, batch_rows: usize, schema: &SchemaRef) -> Result<usize, ConvertError> {
        loop {
            if let Some(batch) = &self.batch {
                return Ok(batch.num_rows());
            }
            self.batch = match &mut self.reader {
                Some(reader) => reader.next().transpose().map_err(internal)?.filter(|batch| batch.num_rows() > 0),
                None => None,
            };
            if self.batch.is_none() {
                let part = self.parts.pop_front().ok_or_else(|| internal("a stored segment has too few rows"))?;
                let reader =
                    open_rows(&part.path, schema)?.with_row_groups(part.range.collect()).with_batch_size(batch_rows);
                self.reader = Some(reader.build().map_err(internal)?);
            }
        }
    }
}
