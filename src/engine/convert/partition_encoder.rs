//! Encodes the rows of one partition: slabs of rows go to groups of columns, which are encoded in parallel.
//!
//! Invariant: each group of columns processes its work in order; row groups are written in order, while the next ones
//! are encoded.

use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::schema::types::ColumnDescPtr;

use super::conversion::{MadeFile, SpooledFile};
use super::error::{ConvertError, internal, scratch_error};
use super::parquet_file::{ParquetFile, descriptors, properties};
use super::partitions::PartitionPath;
use super::spill::ScratchFolder;
use crate::domain::pipeline::ParquetOptions;
use crate::engine::encode::{ColumnChunk, ColumnEncoder, PageSpill};

/// The divisor of the memory for rows and encoders above which finished pages are spilled: the rest is better used by
/// pending rows, which cost more to spill.
const SPILL_MEMORY_SHARE: u64 = 2;

/// A run of a partition's rows, cut where the data says.
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

/// What to do after a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterRowGroup {
    Continue,
    /// Write it to a separate draft file, read back or kept at the end.
    Draft,
    /// Close the last file. Only such a row group may be empty.
    Close,
}

/// The end of a row group.
pub(super) struct RowGroupEnd {
    pub rows: u64,
    /// Positions of the contributing sources.
    pub sources: BTreeSet<u32>,
    pub after: AfterRowGroup,
    chunks: Mutex<GroupedChunks>,
}

impl RowGroupEnd {
    pub(super) fn new(rows: u64, sources: BTreeSet<u32>, after: AfterRowGroup, groups: usize) -> Self {
        Self { rows, sources, after, chunks: Mutex::new((0..groups).map(|_| None).collect()) }
    }
}

#[derive(Clone)]
enum Op {
    Slab(Arc<Slab>),
    End(Arc<RowGroupEnd>),
}

/// State shared by all partitions of a table.
pub(super) struct Encoding<'a> {
    pub schema: SchemaRef,
    pub options: ParquetOptions,
    /// The columns of each group, as positions in `schema`.
    groups: Vec<Vec<usize>>,
    /// One for each column of `schema`.
    descriptors: Vec<ColumnDescPtr>,
    /// Bytes held by the column encoders of all partitions.
    pub held_bytes: AtomicI64,
    queued_bytes: Arc<AtomicI64>,
    /// If encoders hold more bytes than this, finished pages are spilled until their row group ends.
    spill_threshold: i64,
    page_spill: Mutex<Option<Arc<PageSpill>>>,
    pub source_keys: Vec<String>,
    /// Whether finished files are published in place and must be durable there.
    durable_in_place: bool,
    made: &'a MadeFile<'a>,
}

impl<'a> Encoding<'a> {
    /// `memory_bytes`: the limit for column encoders and rows waiting for them.
    pub(super) fn new(
        schema: SchemaRef,
        options: ParquetOptions,
        threads: usize,
        memory_bytes: u64,
        source_keys: Vec<String>,
        durable_in_place: bool,
        made: &'a MadeFile<'a>,
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
            source_keys,
            durable_in_place,
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
    fn encoders(&self, group: usize) -> Vec<ColumnEncoder> {
        let encoder = |&column: &usize| {
            let data_type = self.schema.field(column).data_type();
            let (compression, encodings) = (self.options.compression, self.options.encodings);
            ColumnEncoder::new(Arc::clone(&self.descriptors[column]), data_type, compression, encodings)
        };
        self.groups[group].iter().map(encoder).collect()
    }

    /// Encodes one group's columns of a slab; returns the bytes held by their encoders.
    fn encode(
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

/// A part of a partition's encoder, processed by one thread at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A group of columns.
    Columns(usize),
    /// The row groups with all columns encoded.
    RowGroups,
}

/// Work for one part of a partition's encoder.
pub(super) struct EncodeTask {
    pub encoder: Arc<PartitionEncoder>,
    pub work: Work,
}

/// Schedules encoding on the pool.
pub(super) trait Scheduler {
    fn schedule(&self, tasks: Vec<EncodeTask>);
    /// Called when queued bytes were encoded or written, while a task is in progress.
    fn progressed(&self);
    /// Encodes other work, or waits, until `encoder` has its draft.
    fn wait_for_draft(&self, encoder: &PartitionEncoder) -> Result<(), ConvertError>;
    /// Encodes other work, or waits, until at most `bytes_max` are queued.
    fn wait_for_queue(&self, bytes_max: u64) -> Result<(), ConvertError>;
    /// Waits until all scheduled work is done.
    fn drain(&self) -> Result<(), ConvertError>;
}

/// The column chunks of a row group, by group of columns.
type GroupedChunks = Vec<Option<Vec<ColumnChunk>>>;

/// A queue processed in order by one thread at a time.
struct SerialQueue<T> {
    waiting: VecDeque<T>,
    /// Whether a thread processes the queue or is scheduled to.
    running: bool,
}

impl<T> Default for SerialQueue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), running: false }
    }
}

impl<T> SerialQueue<T> {
    /// Queues `work`; returns whether a thread must be scheduled.
    fn push(&mut self, work: T) -> bool {
        self.waiting.push_back(work);
        !std::mem::replace(&mut self.running, true)
    }

    /// The next item; after `None` the thread must stop processing.
    fn next(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        self.running = next.is_some();
        next
    }
}

/// A row group to be written. Its bytes count as queued while it waits, so that encoded data does not pile up on a slow
/// disk.
type RowGroup = (Arc<RowGroupEnd>, GroupedChunks, QueuedBytes);

/// The queue and encoders of one group of columns.
#[derive(Default)]
struct Group {
    queue: SerialQueue<Op>,
    encoders: Option<Vec<ColumnEncoder>>,
    held_bytes: i64,
}

/// The files of one partition.
#[derive(Default)]
struct Files {
    open: Option<(ParquetFile, BTreeSet<u32>)>,
    done: Vec<SpooledFile>,
    draft: Option<SpooledFile>,
}

/// Encodes one partition.
pub(super) struct PartitionEncoder {
    path: PartitionPath,
    groups: Vec<Mutex<Group>>,
    row_groups: Mutex<SerialQueue<RowGroup>>,
    /// Bytes held by this partition's column encoders.
    held_bytes: AtomicI64,
    files: Mutex<Files>,
    has_draft: AtomicBool,
}

impl PartitionEncoder {
    pub(super) fn new(path: PartitionPath, encoding: &Encoding<'_>) -> Self {
        Self {
            path,
            groups: (0..encoding.group_count()).map(|_| Mutex::new(Group::default())).collect(),
            row_groups: Mutex::default(),
            held_bytes: AtomicI64::new(0),
            files: Mutex::default(),
            has_draft: AtomicBool::new(false),
        }
    }

    /// Queues a slab for every group; returns the groups that must be scheduled.
    pub(super) fn push_slab(&self, slab: Slab) -> Vec<usize> {
        self.push(&Op::Slab(Arc::new(slab)))
    }

    /// Queues the end of the row group.
    pub(super) fn push_end(&self, end: RowGroupEnd) -> Vec<usize> {
        self.push(&Op::End(Arc::new(end)))
    }

    fn push(&self, op: &Op) -> Vec<usize> {
        let mut wake = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            if group.lock().queue.push(op.clone()) {
                wake.push(at);
            }
        }
        wake
    }

    /// Processes the queue of one part of the encoder. Follow-up work goes to `scheduler`.
    pub(super) fn work(
        self: &Arc<Self>,
        work: Work,
        encoding: &Encoding<'_>,
        scratch: &ScratchFolder,
        scheduler: &dyn Scheduler,
    ) -> Result<(), ConvertError> {
        match work {
            Work::Columns(group) => self.encode(group, encoding, scratch, scheduler),
            Work::RowGroups => self.write(encoding, scratch, scheduler),
        }
    }

    fn encode(
        self: &Arc<Self>,
        at: usize,
        encoding: &Encoding<'_>,
        scratch: &ScratchFolder,
        scheduler: &dyn Scheduler,
    ) -> Result<(), ConvertError> {
        loop {
            let (op, encoders) = {
                let mut group = self.groups[at].lock();
                let Some(op) = group.queue.next() else { return Ok(()) };
                (op, group.encoders.take())
            };
            match op {
                Op::Slab(slab) => {
                    let mut encoders = encoders.unwrap_or_else(|| encoding.encoders(at));
                    let held = encoding.encode(at, &slab, &mut encoders, scratch)?;
                    let mut group = self.groups[at].lock();
                    group.encoders = Some(encoders);
                    self.hold(encoding, &mut group, held);
                }
                Op::End(end) => {
                    let chunks = encoders.unwrap_or_default().into_iter().map(|e| e.close().map_err(internal));
                    let chunks = chunks.collect::<Result<Vec<_>, _>>()?;
                    self.hold(encoding, &mut self.groups[at].lock(), 0);
                    let mut all = end.chunks.lock();
                    all[at] = Some(chunks);
                    if all.iter().all(Option::is_some) {
                        let chunks = std::mem::take(&mut *all);
                        drop(all);
                        let held = chunks.iter().flatten().flatten().map(|chunk| chunk.pages.held_bytes()).sum();
                        if self.row_groups.lock().push((end, chunks, encoding.count_queued(held))) {
                            scheduler.schedule(vec![EncodeTask { encoder: Arc::clone(self), work: Work::RowGroups }]);
                        }
                    }
                }
            }
            scheduler.progressed();
        }
    }

    fn write(
        &self,
        encoding: &Encoding<'_>,
        scratch: &ScratchFolder,
        scheduler: &dyn Scheduler,
    ) -> Result<(), ConvertError> {
        loop {
            // Not as a loop condition, which would hold the lock.
            let Some((end, chunks, queued)) = self.row_groups.lock().next() else { return Ok(()) };
            drop(queued);
            scheduler.progressed();
            self.write_row_group(encoding, scratch, &end, chunks)?;
        }
    }

    /// Bytes held by the column encoders.
    pub(super) fn held_bytes(&self) -> i64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    fn hold(&self, encoding: &Encoding<'_>, group: &mut Group, held: i64) {
        let more = held - std::mem::replace(&mut group.held_bytes, held);
        self.held_bytes.fetch_add(more, Ordering::Relaxed);
        encoding.held_bytes.fetch_add(more, Ordering::Relaxed);
    }

    fn write_row_group(
        &self,
        encoding: &Encoding<'_>,
        scratch: &ScratchFolder,
        end: &RowGroupEnd,
        groups: GroupedChunks,
    ) -> Result<(), ConvertError> {
        if end.rows == 0 {
            return self.close(encoding, &mut self.files.lock());
        }
        let mut chunks: Vec<Option<ColumnChunk>> = Vec::new();
        chunks.resize_with(encoding.schema.fields().len(), || None);
        for (columns, group) in encoding.groups.iter().zip(groups) {
            for (column, chunk) in columns.iter().zip(group.unwrap_or_default()) {
                chunks[*column] = Some(chunk);
            }
        }
        let chunks: Vec<ColumnChunk> = chunks.into_iter().flatten().collect();
        if chunks.len() != encoding.schema.fields().len() {
            return Err(internal("a row group ended without all its columns"));
        }
        if end.after == AfterRowGroup::Draft {
            let mut file = self.create(encoding, scratch)?;
            file.append(chunks, end.rows)?;
            let draft = file.finish(contributing_keys(encoding, &end.sources))?;
            self.files.lock().draft = Some(draft);
            self.has_draft.store(true, Ordering::Release);
            return Ok(());
        }
        let mut files = self.files.lock();
        self.append(encoding, scratch, &mut files, &end.sources, |file| file.append(chunks, end.rows))?;
        if end.after == AfterRowGroup::Close { self.close(encoding, &mut files) } else { Ok(()) }
    }

    /// Appends a row group to the open file, and closes the file once it is large enough.
    fn append(
        &self,
        encoding: &Encoding<'_>,
        scratch: &ScratchFolder,
        files: &mut Files,
        sources: &BTreeSet<u32>,
        write: impl FnOnce(&mut ParquetFile) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let (file, all) = match &mut files.open {
            Some(open) => open,
            None => {
                let mut file = self.create(encoding, scratch)?;
                if encoding.durable_in_place {
                    file.enable_early_writeback();
                }
                files.open.insert((file, BTreeSet::new()))
            }
        };
        write(file)?;
        all.extend(sources);
        if file.bytes() >= encoding.options.file_bytes_max {
            self.close(encoding, files)?;
        } else {
            file.suspend()?;
        }
        Ok(())
    }

    fn create(&self, encoding: &Encoding<'_>, scratch: &ScratchFolder) -> Result<ParquetFile, ConvertError> {
        ParquetFile::create(scratch, &encoding.schema, properties(&encoding.options))
    }

    fn close(&self, encoding: &Encoding<'_>, files: &mut Files) -> Result<(), ConvertError> {
        if let Some((file, sources)) = files.open.take() {
            debug_assert!(file.rows() > 0);
            self.done(encoding, files, file.finish(contributing_keys(encoding, &sources))?);
        }
        Ok(())
    }

    fn done(&self, encoding: &Encoding<'_>, files: &mut Files, file: SpooledFile) {
        (encoding.made)(&self.path, files.done.len(), &file);
        files.done.push(file);
    }

    /// Whether the requested draft is written. Does not block: the files may be locked while a row group is written.
    pub(super) fn has_draft(&self) -> bool {
        self.has_draft.load(Ordering::Acquire)
    }

    /// Takes the draft, to be read back.
    pub(super) fn take_draft(&self) -> Option<SpooledFile> {
        self.has_draft.store(false, Ordering::Relaxed);
        self.files.lock().draft.take()
    }

    /// Makes the draft, to which no rows were added, the last row group, and closes the last file.
    pub(super) fn keep_draft(
        &self,
        encoding: &Encoding<'_>,
        scratch: &ScratchFolder,
        sources: &BTreeSet<u32>,
    ) -> Result<(), ConvertError> {
        let mut files = self.files.lock();
        let Some(draft) = files.draft.take() else { return Ok(()) };
        if files.open.is_none() {
            // A file of one row group has the same bytes either way.
            self.done(encoding, &mut files, draft);
            return Ok(());
        }
        self.append(encoding, scratch, &mut files, sources, |file| file.append_draft(&draft))?;
        let _ = std::fs::remove_file(&draft.path);
        self.close(encoding, &mut files)
    }

    /// The files in order, once the last is closed.
    pub(super) fn take_files(&self) -> Vec<SpooledFile> {
        let mut files = self.files.lock();
        debug_assert!(files.open.is_none());
        std::mem::take(&mut files.done)
    }
}

fn contributing_keys(encoding: &Encoding<'_>, sources: &BTreeSet<u32>) -> Vec<String> {
    sources.iter().map(|&source| encoding.source_keys[source as usize].clone()).collect()
}
