//! Encodes the rows of one partition: slabs of rows go to groups of columns, which are encoded in parallel.
//!
//! Invariant: each group of columns processes its work in order; row groups are written in order, while the next ones
//! are encoded.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::conversion::SpooledFile;
use super::encoding::{Encoding, QueuedBytes, Slab};
use super::error::{ConvertError, internal};
use super::group_files::{EncodedGroup, GroupFiles, PartitionFiles, SegmentEnd};
use super::partitions::PartitionPath;
use super::spill::ScratchFolder;
use crate::engine::encode::{ColumnChunk, ColumnEncoder};

/// The next step after a row group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterRowGroup {
    Continue,
    /// Write it to a separate draft file, read back or kept at the end.
    Draft,
    /// End the segment. The row group may be empty.
    EndSegment(SegmentEnd),
    /// Lay out the files of the tail. The row group is empty.
    Close,
}

/// The end of a row group.
pub(super) struct RowGroupEnd {
    pub rows: u64,
    /// The first source of its segment.
    pub first: u32,
    pub after: AfterRowGroup,
    chunks: Mutex<GroupedChunks>,
}

impl RowGroupEnd {
    pub(super) fn new(rows: u64, first: u32, after: AfterRowGroup, groups: usize) -> Self {
        Self { rows, first, after, chunks: Mutex::new((0..groups).map(|_| None).collect()) }
    }
}

#[derive(Clone)]
enum Op {
    Slab(Arc<Slab>),
    End(Arc<RowGroupEnd>),
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

/// Encodes one partition.
pub(super) struct PartitionEncoder {
    path: PartitionPath,
    groups: Vec<Mutex<Group>>,
    row_groups: Mutex<SerialQueue<RowGroup>>,
    /// Bytes held by this partition's column encoders.
    held_bytes: AtomicI64,
    files: Mutex<GroupFiles>,
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
        let partition = PartitionFiles { encoding, scratch, path: &self.path };
        if end.after == AfterRowGroup::Draft {
            let draft = partition.write_draft(in_column_order(encoding, groups)?, end.rows)?;
            self.files.lock().draft = Some(draft);
            self.has_draft.store(true, Ordering::Release);
            return Ok(());
        }
        let mut files = self.files.lock();
        if end.rows > 0 {
            let chunks = in_column_order(encoding, groups)?;
            files.append(&partition, end.first, end.rows, |file| file.append(chunks, end.rows))?;
        }
        match end.after {
            AfterRowGroup::Continue | AfterRowGroup::Draft => Ok(()),
            AfterRowGroup::EndSegment(end) => files.end_segment(&partition, end),
            AfterRowGroup::Close => files.close(&partition),
        }
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

    /// Makes the draft, to which no rows were added, the last row group of its segment.
    pub(super) fn keep_draft(
        &self,
        encoding: &Encoding<'_>,
        scratch: &ScratchFolder,
        end: SegmentEnd,
    ) -> Result<(), ConvertError> {
        let partition = PartitionFiles { encoding, scratch, path: &self.path };
        if let Some(draft) = self.take_draft() {
            self.files.lock().append_draft(&partition, end.first, draft)?;
        }
        self.files.lock().end_segment(&partition, end)
    }

    /// The groups in order, once the partition is closed.
    pub(super) fn take_groups(&self) -> Vec<EncodedGroup> {
        self.files.lock().take_groups()
    }
}

fn in_column_order(encoding: &Encoding<'_>, groups: GroupedChunks) -> Result<Vec<ColumnChunk>, ConvertError> {
    let columns = encoding.schema.fields().len();
    let mut chunks: Vec<Option<ColumnChunk>> = Vec::new();
    chunks.resize_with(columns, || None);
    for (columns, group) in encoding.groups.iter().zip(groups) {
        for (column, chunk) in columns.iter().zip(group.unwrap_or_default()) {
            chunks[*column] = Some(chunk);
        }
    }
    let chunks: Vec<ColumnChunk> = chunks.into_iter().flatten().collect();
    if chunks.len() == columns { Ok(chunks) } else { Err(internal("a row group ended without all its columns")) }
}
