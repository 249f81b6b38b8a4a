//! State shared by all partitions of a table while they are encoded.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::schema::types::ColumnDescPtr;

use super::conversion::OnFile;
use super::error::{ConvertError, internal, scratch_error};
use super::inputs::BuildLayout;
use super::parquet_file::descriptors;
use super::spill::ScratchFolder;
use crate::domain::pipeline::ParquetOptions;
use crate::engine::encode::{ColumnEncoder, PageSpill};

/// The divisor of the memory for rows and encoders above which finished pages are spilled: the rest is better used by
/// pending rows, which cost more to spill.
const SPILL_MEMORY_SHARE: u64 = 2;

/// A run of a partition's rows; its boundaries depend on the data alone.
pub(super) struct Slab {
    pub batches: Vec<RecordBatch>,
    pub rows: usize,
    /// Counts the slab's bytes until all groups of columns have encoded it.
    pub queued: Option<QueuedBytes>,
}

/// Raw bytes waiting for encoders, or encoded bytes waiting to be written.
#[derive(Debug)]
pub(super) struct QueuedBytes {
    all: Arc<AtomicI64>,
    bytes: i64,
}

impl Drop for QueuedBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// State shared by all partitions of a table.
pub(super) struct Encoding<'a> {
    pub schema: SchemaRef,
    pub options: ParquetOptions,
    /// The columns of each group, as positions in `schema`.
    pub(super) groups: Vec<Vec<usize>>,
    /// One for each column of `schema`.
    descriptors: Vec<ColumnDescPtr>,
    /// Bytes held by the column encoders of all partitions.
    pub held_bytes: AtomicI64,
    queued_bytes: Arc<AtomicI64>,
    /// If encoders hold more bytes than this, finished pages are spilled until their row group ends.
    spill_threshold: i64,
    page_spill: Mutex<Option<Arc<PageSpill>>>,
    /// Whether finished files are published in place and must be durable there.
    pub durable_in_place: bool,
    /// Whether each segment becomes its own group.
    pub segments_apart: bool,
    pub made: &'a OnFile<'a>,
}

impl<'a> Encoding<'a> {
    /// `memory_bytes`: the limit for column encoders and rows waiting for them.
    pub(super) fn new(
        schema: SchemaRef,
        options: ParquetOptions,
        threads: usize,
        memory_bytes: u64,
        durable_in_place: bool,
        layout: BuildLayout,
        made: &'a OnFile<'a>,
    ) -> Result<Self, ConvertError> {
        let columns = schema.fields().len();
        let count = threads.clamp(1, 16).min(columns.max(1));
        // Round-robin, so that expensive neighbouring columns spread over the groups.
        let groups: Vec<Vec<usize>> = (0..count).map(|g| (g..columns).step_by(count).collect()).collect();
        let descriptors = descriptors(&schema)?;
        Ok(Self {
            schema,
            options,
            groups,
            descriptors,
            held_bytes: AtomicI64::new(0),
            queued_bytes: Arc::default(),
            spill_threshold: (memory_bytes / SPILL_MEMORY_SHARE) as i64,
            page_spill: Mutex::default(),
            durable_in_place,
            segments_apart: layout == BuildLayout::Segments,
            made,
        })
    }

    /// Raw bytes of slabs not yet encoded, and bytes of row groups waiting to be written.
    pub(super) fn queued_bytes(&self) -> u64 {
        self.queued_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    pub(super) fn count_queued(&self, bytes: u64) -> QueuedBytes {
        self.queued_bytes.fetch_add(bytes as i64, Ordering::Relaxed);
        QueuedBytes { all: Arc::clone(&self.queued_bytes), bytes: bytes as i64 }
    }

    pub(super) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Encoders for one group's columns of a row group.
    pub(super) fn encoders(&self, group: usize) -> Vec<ColumnEncoder> {
        let encoder = |&column: &usize| {
            let data_type = self.schema.field(column).data_type();
            let (compression, encodings) = (self.options.compression, self.options.encodings);
            ColumnEncoder::new(Arc::clone(&self.descriptors[column]), data_type, compression, encodings)
        };
        self.groups[group].iter().map(encoder).collect()
    }

    /// Encodes one group's columns of a slab; returns the bytes held by their encoders.
    pub(super) fn encode(
        &self,
        group: usize,
        slab: &Slab,
        encoders: &mut [ColumnEncoder],
        scratch: &ScratchFolder,
    ) -> Result<i64, ConvertError> {
        for (&column, encoder) in self.groups[group].iter().zip(encoders.iter_mut()) {
            let pieces: Vec<ArrayRef> = slab.batches.iter().map(|batch| Arc::clone(batch.column(column))).collect();
            encoder.write(&pieces).map_err(internal)?;
        }
        if self.held_bytes.load(Ordering::Relaxed) > self.spill_threshold {
            let page_spill = self.page_spill(scratch)?;
            for encoder in encoders.iter_mut() {
                encoder.spill_pages(&page_spill).map_err(|error| scratch_error(page_spill.path(), &error))?;
            }
        }
        Ok(encoders.iter().map(|encoder| encoder.held_bytes() as i64).sum())
    }

    fn page_spill(&self, scratch: &ScratchFolder) -> Result<Arc<PageSpill>, ConvertError> {
        let mut page_spill = self.page_spill.lock();
        if let Some(page_spill) = &*page_spill {
            return Ok(Arc::clone(page_spill));
        }
        let path = scratch.path("pages");
        let created = PageSpill::create(path.clone()).map_err(|error| scratch_error(&path, &error))?;
        Ok(Arc::clone(page_spill.insert(Arc::new(created))))
    }
}
