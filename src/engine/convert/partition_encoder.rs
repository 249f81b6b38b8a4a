//! Encodes the rows of one partition: slabs of rows go to groups of columns, which work side by side.
//!
//! Invariant: what a group of columns gets, it works off in order; row groups are written in order, background the encoding
//! of those that follow.

use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::schema::types::ColumnDescPtr;

use super::conversion::{MadeFile, SpooledFile};
use super::error::{ConvertError, internal, scratch_error};
use super::parquet_file::{ParquetFile, descriptors, properties};
use super::partitions::PartitionPath;
use super::spill::Scratch;
use crate::domain::pipeline::ParquetOptions;
use crate::engine::encode::{Chunk, ColumnEncoder, PageSpill};

/// Of the memory for rows and encoders, the part above which finished pages go to scratch: the rest is better used by
/// rows that wait, which cost more to put aside.
const SPILL_MEMORY_SHARE: u64 = 2;

/// A run of rows of one partition, cut where the data says.
pub(super) struct Slab {
    pub batches: Vec<RecordBatch>,
    pub rows: usize,
    /// Counts its bytes for as long as a group of columns has yet to encode it.
    pub queued: Option<QueuedBytes>,
}

/// Raw bytes that wait for their encoders, or encoded ones that wait to be written.
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

/// What follows a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterRowGroup {
    Continue,
    /// It goes into a file of its own, to be looked at again at the end, instead of the partition's next file.
    Draft,
    /// Nothing: the last file is closed. Only such a row group may have no rows.
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

/// What all partitions of a table share.
pub(super) struct Encoding<'a> {
    pub schema: SchemaRef,
    pub options: ParquetOptions,
    /// Columns of each group: `groups[g]` are positions in `schema`.
    groups: Vec<Vec<usize>>,
    /// Of each column in `schema`.
    descriptors: Vec<ColumnDescPtr>,
    /// Bytes held by column encoders of all partitions.
    pub held_bytes: AtomicI64,
    queued_bytes: Arc<AtomicI64>,
    /// With more bytes held than this, pages that are finished go to scratch until their row group ends.
    spill_threshold: i64,
    page_spill: Mutex<Option<Arc<PageSpill>>>,
    pub source_keys: Vec<String>,
    /// Whether finished files are published as they lie in scratch, where they must be durable after.
    durable_in_place: bool,
    made: &'a MadeFile<'a>,
}

impl<'a> Encoding<'a> {
    /// `memory_bytes`: what column encoders and the rows that wait for them may hold.
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
        // Dealt out like cards, so that the costly neighbours of a wide table spread over the groups.
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

    /// Raw bytes of slabs that are not yet encoded, and those of row groups whose turn to be written has not come.
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

    /// Encoders of a row group's columns of one group.
    fn encoders(&self, group: usize) -> Vec<ColumnEncoder> {
        let encoder = |&column: &usize| {
            let data_type = self.schema.field(column).data_type();
            let (compression, encodings) = (self.options.compression, self.options.encodings);
            ColumnEncoder::new(Arc::clone(&self.descriptors[column]), data_type, compression, encodings)
        };
        self.groups[group].iter().map(encoder).collect()
    }

    /// Encodes one group's columns of a slab; gives the bytes that their encoders hold.
    fn encode(
        &self,
        group: usize,
        slab: &Slab,
        encoders: &mut [ColumnEncoder],
        scratch: &Scratch,
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

    fn page_spill(&self, scratch: &Scratch) -> Result<Arc<PageSpill>, ConvertError> {
        let mut page_spill = self.page_spill.lock();
        if let Some(page_spill) = &*page_spill {
            return Ok(Arc::clone(page_spill));
        }
        let path = scratch.path("spilled");
        let created = PageSpill::create(path.clone()).map_err(|error| scratch_error(&path, &error))?;
        Ok(Arc::clone(page_spill.insert(Arc::new(created))))
    }
}

/// A part of a partition's encoder, which one thread at a time works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// A group of columns.
    Columns(usize),
    /// The row groups whose columns are all encoded.
    RowGroups,
}

/// A part of one partition's encoder has work.
pub(super) struct EncodeTask {
    pub encoder: Arc<PartitionEncoder>,
    pub work: Work,
}

/// What the engine gives a partition's work to.
pub(super) trait Scheduler {
    fn schedule(&self, tasks: Vec<EncodeTask>);
    /// Does (or waits for) other work until `encoder` has its draft.
    fn wait_for_draft(&self, encoder: &PartitionEncoder) -> Result<(), ConvertError>;
    /// Does (or waits for) other work until no more than this waits for its encoders.
    fn wait_for_queue(&self, bytes_max: u64) -> Result<(), ConvertError>;
    /// Waits until all scheduled work is done.
    fn drain(&self) -> Result<(), ConvertError>;
}

/// The columns of a row group, of each group.
type GroupedChunks = Vec<Option<Vec<Chunk>>>;

/// Work that is done in order, by one thread at a time.
struct SerialQueue<T> {
    waiting: VecDeque<T>,
    /// Whether a thread works on it, or is to.
    running: bool,
}

impl<T> Default for SerialQueue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), running: false }
    }
}

impl<T> SerialQueue<T> {
    /// Whether a thread must be scheduled for it.
    fn push(&mut self, work: T) -> bool {
        self.waiting.push_back(work);
        !std::mem::replace(&mut self.running, true)
    }

    /// The next for the thread that works on it; at `None` it must let go of it.
    fn next(&mut self) -> Option<T> {
        let next = self.waiting.pop_front();
        self.running = next.is_some();
        next
    }
}

/// A row group that is to be written. While it waits, its bytes count as slabs that wait do: on a slow disk what is encoded
/// must not pile up.
type RowGroup = (Arc<RowGroupEnd>, GroupedChunks, QueuedBytes);

/// The work of one group of columns of one partition.
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
}

impl PartitionEncoder {
    pub(super) fn new(path: PartitionPath, encoding: &Encoding<'_>) -> Self {
        Self {
            path,
            groups: (0..encoding.group_count()).map(|_| Mutex::new(Group::default())).collect(),
            row_groups: Mutex::default(),
            held_bytes: AtomicI64::new(0),
            files: Mutex::new(Files::default()),
        }
    }

    /// Queues a slab for every group; gives the groups that must be scheduled.
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

    /// Works off what waits for a part of the encoder, one thread at a time; other parts go on background it. What it makes
    /// ready for another part is given to `scheduler`.
    pub(super) fn work(
        self: &Arc<Self>,
        work: Work,
        encoding: &Encoding<'_>,
        scratch: &Scratch,
        scheduler: &dyn Scheduler,
    ) -> Result<(), ConvertError> {
        match work {
            Work::Columns(group) => self.encode(group, encoding, scratch, scheduler),
            Work::RowGroups => self.write(encoding, scratch),
        }
    }

    fn encode(
        self: &Arc<Self>,
        at: usize,
        encoding: &Encoding<'_>,
        scratch: &Scratch,
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
        }
    }

    fn write(&self, encoding: &Encoding<'_>, scratch: &Scratch) -> Result<(), ConvertError> {
        loop {
            // Not in the condition of a loop, which would hold the lock.
            let Some((end, chunks, queued)) = self.row_groups.lock().next() else { return Ok(()) };
            drop(queued);
            self.write_row_group(encoding, scratch, &end, chunks)?;
        }
    }

    /// Bytes that the column encoders hold.
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
        scratch: &Scratch,
        end: &RowGroupEnd,
        groups: GroupedChunks,
    ) -> Result<(), ConvertError> {
        if end.rows == 0 {
            return self.close(encoding, &mut self.files.lock());
        }
        let mut chunks: Vec<Option<Chunk>> = Vec::new();
        chunks.resize_with(encoding.schema.fields().len(), || None);
        for (columns, group) in encoding.groups.iter().zip(groups) {
            for (column, chunk) in columns.iter().zip(group.unwrap_or_default()) {
                chunks[*column] = Some(chunk);
            }
        }
        let chunks: Vec<Chunk> = chunks.into_iter().flatten().collect();
        if chunks.len() != encoding.schema.fields().len() {
            return Err(internal("a row group ended without all its columns"));
        }
        if end.after == AfterRowGroup::Draft {
            let mut file = self.create(encoding, scratch)?;
            file.append(chunks, end.rows)?;
            self.files.lock().draft = Some(file.finish(contributing_keys(encoding, &end.sources))?);
            return Ok(());
        }
        let mut files = self.files.lock();
        self.append(encoding, scratch, &mut files, &end.sources, |file| file.append(chunks, end.rows))?;
        if end.after == AfterRowGroup::Close { self.close(encoding, &mut files) } else { Ok(()) }
    }

    /// Appends a row group to the open file, and closes that once it is large enough.
    fn append(
        &self,
        encoding: &Encoding<'_>,
        scratch: &Scratch,
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

    fn create(&self, encoding: &Encoding<'_>, scratch: &Scratch) -> Result<ParquetFile, ConvertError> {
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

    /// Whether the draft that was asked for is there.
    pub(super) fn has_draft(&self) -> bool {
        self.files.lock().draft.is_some()
    }

    /// The draft that an eviction made, to be read back.
    pub(super) fn take_draft(&self) -> Option<SpooledFile> {
        self.files.lock().draft.take()
    }

    /// Makes the draft, to which no row was added, the last row group, and closes the last file.
    pub(super) fn keep_draft(
        &self,
        encoding: &Encoding<'_>,
        scratch: &Scratch,
        sources: &BTreeSet<u32>,
    ) -> Result<(), ConvertError> {
        let mut files = self.files.lock();
        let Some(draft) = files.draft.take() else { return Ok(()) };
        if files.open.is_none() {
            // A file of one row group is the same, whichever way it was made.
            self.done(encoding, &mut files, draft);
            return Ok(());
        }
        self.append(encoding, scratch, &mut files, sources, |file| file.append_draft(&draft))?;
        let _ = std::fs::remove_file(&draft.path);
        self.close(encoding, &mut files)
    }

    /// Gives the files in order, once the last is closed.
    pub(super) fn take_files(&self) -> Vec<SpooledFile> {
        let mut files = self.files.lock();
        debug_assert!(files.open.is_none());
        std::mem::take(&mut files.done)
    }
}

fn contributing_keys(encoding: &Encoding<'_>, sources: &BTreeSet<u32>) -> Vec<String> {
    sources.iter().map(|&source| encoding.source_keys[source as usize].clone()).collect()
}
