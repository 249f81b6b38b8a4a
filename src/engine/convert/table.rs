//! Collects the rows of a table's partitions and hands them to the encoders, slab by slab.
//!
//! Invariant: where slabs, row groups and files end depends on the partition's rows alone, never on chunks, threads,
//! memory or the order of arrival. Memory decides only what waits in scratch meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::encode::{Encoding, PartitionEncoder, RowGroupEnd, Slab};
use super::parquet_file::SLAB_ROWS;
use super::partitions::PartitionPath;
use super::pool::EncodeTask;
use super::rows::internal;
use super::sorting::Sorter;
use super::spill::{Scratch, Spill, scratch_error};
use super::{ConvertError, SpooledFile};

/// A slab ends early at the row with which it reaches this size, in raw bytes.
const SLAB_BYTES: u64 = 8 << 20;
/// A row group ends at the first slab end at or past this size, in raw bytes, if `row_group_rows` doesn't end it before.
const ROW_GROUP_BYTES: u64 = 128 << 20;

/// The rows of one partition that are not in a finished row group.
struct Partition {
    path: PartitionPath,
    encoder: Arc<PartitionEncoder>,
    /// Rows not yet in a slab, with the position of their source.
    pending: VecDeque<(RecordBatch, u32)>,
    pending_rows: u64,
    pending_bytes: u64,
    /// Rows before `pending` that wait in scratch; with sorting, each spill is a sorted run.
    spills: Vec<Spill>,
    spilled_rows: u64,
    spilled_bytes: u64,
    /// Rows and bytes of the row group under way that the encoder (or the draft) has.
    group_rows: u64,
    group_bytes: u64,
    sources: BTreeSet<u32>,
    /// The encoder gave its rows to a draft, or some wait in scratch: rows only collect.
    cold: bool,
    drafted: bool,
    used: u64,
}

/// What the engine gives a partition's work to.
pub(super) trait Scheduler {
    fn schedule(&self, tasks: Vec<EncodeTask>);
    /// Does (or waits for) other work until `encoder` has its draft.
    fn wait_for_draft(&self, encoder: &PartitionEncoder) -> Result<(), ConvertError>;
    /// Waits until all scheduled work is done.
    fn drain(&self) -> Result<(), ConvertError>;
}

/// The partitions of one table.
pub(super) struct Table<'a> {
    encoding: &'a Encoding,
    scratch: &'a Scratch,
    sorter: Option<Sorter>,
    partitions: Vec<Partition>,
    by_path: HashMap<PartitionPath, usize>,
    memory_bytes: u64,
    pending_bytes: u64,
    clock: u64,
}

impl<'a> Table<'a> {
    /// `memory_bytes`: what pending rows and column writers may hold together.
    pub(super) fn new(encoding: &'a Encoding, scratch: &'a Scratch, sorter: Option<Sorter>, memory_bytes: u64) -> Self {
        Self {
            encoding,
            scratch,
            sorter,
            partitions: Vec::new(),
            by_path: HashMap::new(),
            memory_bytes,
            pending_bytes: 0,
            clock: 0,
        }
    }

    /// Takes rows of `source`, in order.
    pub(super) fn add(
        &mut self,
        source: u32,
        parts: Vec<(PartitionPath, RecordBatch)>,
        scheduler: &dyn Scheduler,
    ) -> Result<(), ConvertError> {
        self.clock += 1;
        for (path, batch) in parts {
            let at = match self.by_path.get(&path) {
                Some(&at) => at,
                None => self.add_partition(path),
            };
            let bytes = raw_bytes(&batch, batch.num_rows());
            let partition = &mut self.partitions[at];
            partition.used = self.clock;
            partition.pending_rows += batch.num_rows() as u64;
            partition.pending_bytes += bytes;
            self.pending_bytes += bytes;
            partition.pending.push_back((batch, source));
            if self.sorter.is_none() {
                self.submit(at, false, scheduler)?;
            }
        }
        self.make_room(scheduler)
    }

    fn add_partition(&mut self, path: PartitionPath) -> usize {
        let at = self.partitions.len();
        self.by_path.insert(Arc::clone(&path), at);
        self.partitions.push(Partition {
            path,
            encoder: Arc::new(PartitionEncoder::new(self.encoding)),
            pending: VecDeque::new(),
            pending_rows: 0,
            pending_bytes: 0,
            spills: Vec::new(),
            spilled_rows: 0,
            spilled_bytes: 0,
            group_rows: 0,
            group_bytes: 0,
            sources: BTreeSet::new(),
            cold: false,
            drafted: false,
            used: 0,
        });
        at
    }

    /// Cuts and schedules every slab that is complete; with `last`, also the rest, and ends the row group.
    fn submit(&mut self, at: usize, last: bool, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        if self.partitions[at].cold {
            let partition = &self.partitions[at];
            let rows = partition.group_rows + partition.spilled_rows + partition.pending_rows;
            let bytes = partition.group_bytes + partition.spilled_bytes + partition.pending_bytes;
            if !last && rows < self.encoding.options.row_group_rows && bytes < ROW_GROUP_BYTES {
                return Ok(());
            }
            self.thaw(at, scheduler)?;
        }
        let row_group_rows = self.encoding.options.row_group_rows;
        let partition = &mut self.partitions[at];
        let mut tasks = Vec::new();
        loop {
            let room = (row_group_rows - partition.group_rows).min(SLAB_ROWS as u64);
            let before = partition.pending_bytes;
            let Some(slab) = partition.cut(room, last) else { break };
            let bytes = before - partition.pending_bytes;
            self.pending_bytes -= bytes;
            partition.group_rows += slab.rows as u64;
            partition.group_bytes += bytes;
            partition.schedule(partition.encoder.push_slab(slab), &mut tasks);
            if partition.group_rows >= row_group_rows || partition.group_bytes >= ROW_GROUP_BYTES {
                partition.end_row_group(self.encoding, false, &mut tasks);
            }
        }
        if last && partition.group_rows > 0 {
            partition.end_row_group(self.encoding, false, &mut tasks);
        }
        scheduler.schedule(tasks);
        Ok(())
    }

    /// Puts the least recently used partitions into scratch while more is held than may be.
    fn make_room(&mut self, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let held = |pending: u64| pending + self.encoding.held_bytes.load(Ordering::Relaxed).max(0) as u64;
        if held(self.pending_bytes) <= self.memory_bytes {
            return Ok(());
        }
        // Down to three quarters, so that the search is not made again for every chunk.
        let mut excess = held(self.pending_bytes).saturating_sub(self.memory_bytes / 4 * 3);
        let mut order: Vec<usize> = (0..self.partitions.len()).collect();
        order.sort_by_key(|&at| self.partitions[at].used);
        for at in order {
            if excess == 0 {
                break;
            }
            let partition = &self.partitions[at];
            let frees = partition.pending_bytes + partition.encoder.held_bytes().max(0) as u64;
            if frees > 0 {
                self.evict(at, scheduler)?;
                excess = excess.saturating_sub(frees);
            }
        }
        Ok(())
    }

    fn evict(&mut self, at: usize, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let partition = &mut self.partitions[at];
        if !partition.cold && partition.group_rows > 0 {
            let mut tasks = Vec::new();
            let (rows, bytes) = (partition.group_rows, partition.group_bytes);
            partition.end_row_group(self.encoding, true, &mut tasks);
            (partition.group_rows, partition.group_bytes) = (rows, bytes);
            partition.drafted = true;
            scheduler.schedule(tasks);
        }
        partition.cold = true;
        if partition.pending.is_empty() {
            return Ok(());
        }
        let mut batches = Vec::with_capacity(partition.pending.len());
        for (batch, source) in partition.pending.drain(..) {
            partition.sources.insert(source);
            batches.push(batch);
        }
        if let Some(sorter) = &self.sorter {
            batches = sorter.sort(&self.encoding.schema, &batches)?;
        }
        partition.spills.push(Spill::of(self.scratch, &self.encoding.schema, &batches)?);
        partition.spilled_rows += std::mem::take(&mut partition.pending_rows);
        self.pending_bytes -= partition.pending_bytes;
        partition.spilled_bytes += std::mem::take(&mut partition.pending_bytes);
        Ok(())
    }

    /// Brings back what an eviction put aside, in front of the pending rows; the row group is encoded anew.
    fn thaw(&mut self, at: usize, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let mut back: Vec<RecordBatch> = Vec::new();
        if self.partitions[at].drafted {
            let encoder = Arc::clone(&self.partitions[at].encoder);
            scheduler.wait_for_draft(&encoder)?;
            if let Some(draft) = encoder.take_draft() {
                back.extend(read_draft(&draft, &self.encoding.schema)?);
                let _ = std::fs::remove_file(&draft.path);
            }
        }
        let partition = &mut self.partitions[at];
        for spill in std::mem::take(&mut partition.spills) {
            for batch in spill.read()? {
                back.push(batch?);
            }
        }
        for batch in back.into_iter().rev() {
            let bytes = raw_bytes(&batch, batch.num_rows());
            partition.pending_rows += batch.num_rows() as u64;
            partition.pending_bytes += bytes;
            self.pending_bytes += bytes;
            // Its sources are in `sources` already; any of them will do for the cut.
            let source = partition.sources.first().copied().unwrap_or_default();
            partition.pending.push_front((batch, source));
        }
        (partition.spilled_rows, partition.spilled_bytes) = (0, 0);
        (partition.group_rows, partition.group_bytes) = (0, 0);
        (partition.cold, partition.drafted) = (false, false);
        Ok(())
    }

    /// Encodes what is left.
    pub(super) fn finish(&mut self, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        if self.sorter.is_some() {
            self.finish_sorted(scheduler)?;
        } else {
            let cold: Vec<usize> = (0..self.partitions.len()).filter(|&at| self.partitions[at].cold).collect();
            for at in (0..self.partitions.len()).filter(|&at| !self.partitions[at].cold).collect::<Vec<_>>() {
                self.submit(at, true, scheduler)?;
            }
            scheduler.drain()?;
            for at in cold {
                self.finish_cold(at, scheduler)?;
            }
        }
        scheduler.drain()
    }

    /// The files of every partition that has rows, after [`Table::finish`].
    pub(super) fn into_files(self) -> Result<BTreeMap<String, Vec<SpooledFile>>, ConvertError> {
        let mut files = BTreeMap::new();
        for partition in &self.partitions {
            files.insert(partition.path.to_string(), partition.encoder.finish(self.encoding)?);
        }
        Ok(files)
    }

    fn finish_cold(&mut self, at: usize, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let partition = &self.partitions[at];
        if partition.drafted && partition.spilled_rows + partition.pending_rows == 0 {
            let sources = partition.sources.clone();
            return partition.encoder.keep_draft(self.encoding, self.scratch, &sources);
        }
        self.submit(at, true, scheduler)?;
        // One partition's rows at a time, lest all that was put aside comes back at once.
        if self.pending_bytes + self.encoding.held_bytes.load(Ordering::Relaxed).max(0) as u64 > self.memory_bytes / 2 {
            scheduler.drain()?;
        }
        Ok(())
    }

    fn finish_sorted(&mut self, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        for at in 0..self.partitions.len() {
            let Some(sorter) = self.sorter.clone() else { return Ok(()) };
            let partition = &mut self.partitions[at];
            let mut sources: BTreeSet<u32> = std::mem::take(&mut partition.sources);
            let mut batches = Vec::new();
            for (batch, source) in partition.pending.drain(..) {
                sources.insert(source);
                batches.push(batch);
            }
            self.pending_bytes -= std::mem::take(&mut partition.pending_bytes);
            partition.pending_rows = 0;
            let mut runs: Vec<Box<dyn Iterator<Item = Result<RecordBatch, ConvertError>>>> = Vec::new();
            let spills = std::mem::take(&mut partition.spills);
            for spill in &spills {
                runs.push(Box::new(spill.read()?));
            }
            if !batches.is_empty() {
                let sorted = sorter.sort(&self.encoding.schema, &batches)?;
                runs.push(Box::new(sorted.into_iter().map(Ok)));
            }
            partition.cold = false;
            let mut merge = sorter.merge(runs)?;
            while let Some(batch) = merge.next_batch()? {
                let partition = &mut self.partitions[at];
                // Sorted rows can't be told by source any more: every file names all of the partition's.
                partition.sources.extend(&sources);
                let bytes = raw_bytes(&batch, batch.num_rows());
                partition.pending_rows += batch.num_rows() as u64;
                partition.pending_bytes += bytes;
                self.pending_bytes += bytes;
                let source = sources.first().copied().unwrap_or_default();
                partition.pending.push_back((batch, source));
                self.submit(at, false, scheduler)?;
                if self.encoding.held_bytes.load(Ordering::Relaxed).max(0) as u64 > self.memory_bytes {
                    scheduler.drain()?;
                }
            }
            self.partitions[at].sources.extend(&sources);
            self.submit(at, true, scheduler)?;
        }
        Ok(())
    }
}

impl Partition {
    /// Cuts the next slab of at most `room` rows; `None` if it isn't complete (and not `last`) or there are no rows.
    fn cut(&mut self, room: u64, last: bool) -> Option<Slab> {
        if self.pending_rows == 0 || (!last && self.pending_rows < room && self.pending_bytes < SLAB_BYTES) {
            return None;
        }
        let mut slab = Slab { batches: Vec::new(), rows: 0 };
        let mut bytes = 0;
        while (slab.rows as u64) < room && bytes < SLAB_BYTES {
            let Some((batch, source)) = self.pending.pop_front() else { break };
            let rows = cut_rows(&batch, (room - slab.rows as u64) as usize, SLAB_BYTES - bytes);
            let head = batch.slice(0, rows);
            if rows < batch.num_rows() {
                self.pending.push_front((batch.slice(rows, batch.num_rows() - rows), source));
            }
            bytes += raw_bytes(&head, rows);
            slab.rows += rows;
            self.sources.insert(source);
            slab.batches.push(head);
        }
        self.pending_rows -= slab.rows as u64;
        self.pending_bytes -= bytes;
        Some(slab)
    }

    fn end_row_group(&mut self, encoding: &Encoding, draft: bool, tasks: &mut Vec<EncodeTask>) {
        let sources = if draft { self.sources.clone() } else { std::mem::take(&mut self.sources) };
        let end = RowGroupEnd::new(self.group_rows, sources, draft, encoding.group_count());
        (self.group_rows, self.group_bytes) = (0, 0);
        self.schedule(self.encoder.push_end(end), tasks);
    }

    fn schedule(&self, groups: Vec<usize>, tasks: &mut Vec<EncodeTask>) {
        tasks.extend(groups.into_iter().map(|group| EncodeTask { encoder: Arc::clone(&self.encoder), group }));
    }
}

/// How many of the batch's first rows make at most `rows_max` rows, and end with the row that reaches `bytes_max`.
fn cut_rows(batch: &RecordBatch, rows_max: usize, bytes_max: u64) -> usize {
    let most = batch.num_rows().min(rows_max);
    if raw_bytes(batch, most) < bytes_max {
        return most;
    }
    let (mut low, mut high) = (0, most);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if raw_bytes(batch, middle) >= bytes_max { high = middle } else { low = middle }
    }
    high
}

/// The size of the first `rows` rows as values without nulls: a measure that depends on the rows alone.
fn raw_bytes(batch: &RecordBatch, rows: usize) -> u64 {
    let column = |array: &arrow::array::ArrayRef| -> u64 {
        match array.data_type() {
            DataType::Utf8 => {
                let offsets = array.as_string::<i32>().value_offsets();
                (offsets[rows] - offsets[0]) as u64 + 4 * rows as u64
            }
            DataType::FixedSizeBinary(width) => *width as u64 * rows as u64,
            other => other.primitive_width().unwrap_or(1) as u64 * rows as u64,
        }
    };
    batch.columns().iter().map(column).sum()
}

/// Reads the rows of a draft back.
fn read_draft(draft: &SpooledFile, schema: &SchemaRef) -> Result<Vec<RecordBatch>, ConvertError> {
    let file = File::open(&draft.path).map_err(|e| scratch_error(&draft.path, &e))?;
    let options = parquet::arrow::arrow_reader::ArrowReaderOptions::new().with_schema(Arc::clone(schema));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(internal)?;
    let reader = reader.with_batch_size(SLAB_ROWS).build().map_err(internal)?;
    reader.map(|batch| batch.map_err(internal)).collect()
}
