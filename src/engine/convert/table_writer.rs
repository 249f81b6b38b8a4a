//! Collects the rows of a table by partition and passes them to the encoders in slabs, segment by segment.
//!
//! Invariant: the ends of slabs and row groups depend on the rows of their segment alone, and the ends of segments on the
//! partition's sources alone, never on chunks, threads, memory or the order of arrival. Memory only decides what is spilled
//! meanwhile.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::RecordBatch;

use super::conversion::{BuiltGroup, BuiltSegment};
use super::cut_forecast::CutForecast;
use super::encoding::{Encoding, Slab};
use super::error::{ConvertError, internal};
use super::group_files::{EncodedSegment, SegmentEnd};
use super::measure::{cut_rows, raw_bytes};
use super::members::{Member, Members};
use super::parquet_file::{SLAB_ROWS, read_draft};
use super::partition_encoder::{AfterRowGroup, EncodeTask, PartitionEncoder, RowGroupEnd, Scheduler, Work};
use super::partitions::{self, PartitionPath};
use super::small_parts::{PartitionRows, SmallParts};
use super::sorting::{Batches, MERGED_RUNS_MAX, Sorter};
use super::spill::{ScratchFolder, Spill};
use super::stored_rows::{StoredEnd, StoredPiece};
use crate::domain::table_log::cuts::{Cut, cut_at, text_share};

/// A slab ends early at the row with which it reaches this size, in raw bytes.
const SLAB_BYTES: u64 = 8 << 20;
/// A row group ends at the first slab end at or past this size, in raw bytes, unless `row_group_rows` ends it earlier.
const ROW_GROUP_BYTES: u64 = 128 << 20;

/// Bounds of the raw bytes queued for encoders.
const QUEUED_BYTES: u64 = 2 * SLAB_BYTES;
pub(super) const QUEUED_BYTES_MAX: u64 = 4 * SLAB_BYTES;
/// Raw bytes of small parts that are collected.
const SMALL_PARTS_BYTES_MAX: u64 = 32 << 20;
/// The fixed cost of a batch and of each of its arrays, in bytes.
const BATCH_BYTES: u64 = 128;
const ARRAY_BYTES: u64 = 192;
/// With more partitions than this, more is spilled at a time, in fewer and larger pieces.
const MANY_PARTITIONS: usize = 64;
/// Pending rows with at most this many raw bytes are joined into one batch when they are spilled.
const JOINED_BYTES_MAX: u64 = 1 << 20;

/// The rows of one partition outside finished row groups.
struct PartitionState {
    path: PartitionPath,
    encoder: Arc<PartitionEncoder>,
    /// Rows not yet in a slab.
    pending: VecDeque<RecordBatch>,
    pending_rows: u64,
    /// Raw bytes.
    pending_bytes: u64,
    /// The partition's share of the table's `pending_bytes`.
    counted_bytes: u64,
    /// Spilled rows, after those of the encoder and before `pending`; with sorting, each spill is a sorted run.
    spills: Vec<Spill>,
    spilled_rows: u64,
    spilled_bytes: u64,
    /// Rows and bytes of the current row group that the encoder (or the draft) has.
    group_rows: u64,
    group_bytes: u64,
    /// The sources of the open segment.
    members: Members,
    /// The sources of each ended segment.
    ended: Vec<Members>,
    /// Bytes of source text attributed to the partition, and the table's total before the partition's first source.
    text_bytes: u64,
    text_bytes_before: u64,
    /// The encoder's rows are in a draft; further rows are only collected.
    has_draft: bool,
    last_used: u64,
}

/// A source whose rows have all been added.
pub(super) struct EndedSource {
    pub at: u32,
    /// The hash of its key.
    pub hash: u64,
    pub text_bytes: u64,
    pub rows_read: u64,
}

/// Writes the partitions of one table.
pub(super) struct TableWriter<'a> {
    encoding: &'a Encoding<'a>,
    scratch: &'a ScratchFolder,
    sorter: Option<Sorter>,
    partitions: Vec<PartitionState>,
    by_path: HashMap<PartitionPath, usize>,
    small_parts: SmallParts,
    memory_bytes: u64,
    /// Memory held by the pending rows of all partitions.
    pending_bytes: u64,
    clock: u64,
    forecast: CutForecast,
    /// Bytes of text of all sources so far.
    text_bytes: u64,
    /// The source whose rows are being added.
    source: u32,
}

impl<'a> TableWriter<'a> {
    /// `memory_bytes`: the limit for pending rows and column encoders together.
    pub(super) fn new(
        encoding: &'a Encoding<'a>,
        scratch: &'a ScratchFolder,
        sorter: Option<Sorter>,
        memory_bytes: u64,
        forecast: CutForecast,
    ) -> Self {
        // Sorting holds the keys in addition to the rows.
        let memory_bytes = if sorter.is_some() { memory_bytes / 5 * 2 } else { memory_bytes };
        Self {
            encoding,
            scratch,
            sorter,
            partitions: Vec::new(),
            by_path: HashMap::new(),
            small_parts: SmallParts::default(),
            memory_bytes,
            pending_bytes: 0,
            clock: 0,
            forecast,
            text_bytes: 0,
            source: 0,
        }
    }

    /// Adds rows of a source, in order.
    pub(super) fn add(
        &mut self,
        source: u32,
        parts: Vec<(PartitionPath, RecordBatch)>,
        scheduler: &dyn Scheduler,
    ) -> Result<(), ConvertError> {
        self.clock += 1;
        self.source = source;
        if partitions::are_small_parts(parts.iter().map(|(_, batch)| batch.num_rows()).sum(), parts.len()) {
            let parts: Vec<_> = parts.into_iter().map(|(path, batch)| (self.partition(path), batch)).collect();
            self.small_parts.add(&self.encoding.schema, &parts).map_err(internal)?;
            if self.small_parts.bytes() > (self.memory_bytes / 4).min(SMALL_PARTS_BYTES_MAX) {
                self.flush_small_parts(scheduler)?;
            }
        } else {
            self.flush_small_parts(scheduler)?;
            for (path, batch) in parts {
                let at = self.partition(path);
                self.add_rows(at, batch, scheduler)?;
            }
        }
        self.free_memory(scheduler)
    }

    fn add_rows(&mut self, at: usize, pending: RecordBatch, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        self.partitions[at].push(pending);
        self.count(at);
        if self.sorter.is_none() { self.submit(at, None, scheduler) } else { Ok(()) }
    }

    /// Moves the collected small parts to their partitions.
    fn flush_small_parts(&mut self, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        for PartitionRows { partition, batch } in self.small_parts.take().map_err(internal)? {
            self.add_rows(partition, batch, scheduler)?;
        }
        Ok(())
    }

    /// Updates the memory held by the partition's pending rows.
    fn count(&mut self, at: usize) {
        let batch_bytes = BATCH_BYTES + ARRAY_BYTES * self.encoding.schema.fields().len() as u64;
        let partition = &mut self.partitions[at];
        let bytes = partition.pending_bytes + partition.pending.len() as u64 * batch_bytes;
        self.pending_bytes = self.pending_bytes + bytes - std::mem::replace(&mut partition.counted_bytes, bytes);
    }

    /// The index of the partition, which is marked as used.
    fn partition(&mut self, path: PartitionPath) -> usize {
        let at = match self.by_path.get(&path) {
            Some(&at) => at,
            None => self.add_partition(path),
        };
        self.partitions[at].last_used = self.clock;
        at
    }

    fn add_partition(&mut self, path: PartitionPath) -> usize {
        let at = self.partitions.len();
        self.by_path.insert(Arc::clone(&path), at);
        self.partitions.push(PartitionState {
            encoder: Arc::new(PartitionEncoder::new(Arc::clone(&path), self.encoding)),
            path,
            pending: VecDeque::new(),
            pending_rows: 0,
            pending_bytes: 0,
            counted_bytes: 0,
            spills: Vec::new(),
            spilled_rows: 0,
            spilled_bytes: 0,
            group_rows: 0,
            group_bytes: 0,
            members: Members::default(),
            ended: Vec::new(),
            text_bytes: 0,
            text_bytes_before: self.text_bytes,
            has_draft: false,
            last_used: 0,
        });
        at
    }

    /// Adds `source` to the open segments of its partitions, given its rows in each, and ends those that end after it.
    pub(super) fn end_source<'p>(
        &mut self,
        source: &EndedSource,
        rows: impl Iterator<Item = (&'p str, u64)>,
        scheduler: &dyn Scheduler,
    ) -> Result<(), ConvertError> {
        self.text_bytes += source.text_bytes;
        let mut ends = Vec::new();
        for (path, rows) in rows {
            let Some(&at) = self.by_path.get(path) else { return Err(internal("rows of a partition are missing")) };
            let share = text_share(source.text_bytes, rows, source.rows_read);
            ends.extend(
                self.add_member(at, Member { source: source.at, rows, share }, source.hash).map(|end| (at, end)),
            );
        }
        if !ends.is_empty() {
            self.flush_small_parts(scheduler)?;
        }
        for (at, end) in ends {
            self.end_segment(at, end, scheduler)?;
        }
        Ok(())
    }

    /// Adds stored rows, and the sources that end with them.
    pub(super) fn add_stored(&mut self, piece: StoredPiece, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let StoredPiece { path, batch, ends } = piece;
        let at = self.partition(Arc::clone(&path));
        self.add(self.source, vec![(path, batch)], scheduler)?;
        for StoredEnd { member, hash } in ends {
            if let Some(end) = self.add_member(at, member, hash) {
                self.end_segment(at, end, scheduler)?;
            }
        }
        Ok(())
    }

    /// Adds a source to the open segment; returns the segment's end, if it ends there.
    fn add_member(&mut self, at: usize, member: Member, hash: u64) -> Option<SegmentEnd> {
        let partition = &mut self.partitions[at];
        partition.members.push(member);
        partition.text_bytes = partition.text_bytes.saturating_add(member.share);
        let cut = cut_at(hash, member.share, self.encoding.options.cuts);
        if cut == Cut::None {
            return None;
        }
        let all = (self.text_bytes - partition.text_bytes_before).max(1);
        let fraction = partition.text_bytes as f64 / all as f64;
        let first = partition.first_source(self.source);
        Some(SegmentEnd { cut, join: self.forecast.expects_file_cut(member.source, fraction), first })
    }

    /// Encodes the remaining rows of the open segment.
    fn end_segment(&mut self, at: usize, end: SegmentEnd, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let partition = &mut self.partitions[at];
        partition.ended.push(std::mem::take(&mut partition.members));
        if self.sorter.is_some() {
            self.add_sorted(at, scheduler)?;
        }
        let partition = &mut self.partitions[at];
        if partition.has_draft && partition.spilled_rows + partition.pending_rows == 0 {
            partition.has_draft = false;
            (partition.group_rows, partition.group_bytes) = (0, 0);
            let encoder = Arc::clone(&partition.encoder);
            scheduler.wait_for_draft(&encoder)?;
            return encoder.keep_draft(self.encoding, self.scratch, end);
        }
        self.submit(at, Some(end), scheduler)?;
        // One partition at a time, so that not all spilled rows are in memory at once.
        if self.held_bytes() > self.memory_bytes { scheduler.wait_for_queue(0) } else { Ok(()) }
    }

    /// Cuts and schedules all complete slabs; at the end of the segment, also the rest.
    fn submit(&mut self, at: usize, end: Option<SegmentEnd>, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let partition = &self.partitions[at];
        if partition.has_draft || !partition.spills.is_empty() {
            if end.is_none() && !partition.should_unspill(self.encoding.options.row_group_rows) {
                return Ok(());
            }
            self.unspill(at, scheduler)?;
        }
        self.cut_slabs(at, end, scheduler)
    }

    fn cut_slabs(&mut self, at: usize, end: Option<SegmentEnd>, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let row_group_rows = self.encoding.options.row_group_rows;
        let partition = &mut self.partitions[at];
        let first = end.map_or_else(|| partition.first_source(self.source), |end| end.first);
        let mut tasks = Vec::new();
        loop {
            let room = (row_group_rows - partition.group_rows).min(SLAB_ROWS as u64);
            let before = partition.pending_bytes;
            let Some(mut slab) = partition.cut(room, end.is_some()) else { break };
            let bytes = before - partition.pending_bytes;
            slab.queued = Some(self.encoding.count_queued(bytes));
            partition.group_rows += slab.rows as u64;
            partition.group_bytes += bytes;
            partition.schedule(partition.encoder.push_slab(slab), &mut tasks);
            if partition.group_rows >= row_group_rows || partition.group_bytes >= ROW_GROUP_BYTES {
                partition.end_row_group(self.encoding, first, AfterRowGroup::Continue, &mut tasks);
            }
        }
        if let Some(end) = end {
            partition.end_row_group(self.encoding, first, AfterRowGroup::EndSegment(end), &mut tasks);
        }
        self.count(at);
        scheduler.schedule(tasks);
        scheduler.wait_for_queue((self.memory_bytes / 8).clamp(QUEUED_BYTES, QUEUED_BYTES_MAX))
    }

    /// Spills rows of the least recently used partitions while too much memory is held: first pending rows, which is
    /// cheap; rows of encoders only if that is not enough.
    fn free_memory(&mut self, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        if self.held_bytes() <= self.memory_bytes {
            return Ok(());
        }
        self.flush_small_parts(scheduler)?;
        // Well below the limit, so that the search does not repeat for every chunk.
        let quarters = if self.partitions.len() > MANY_PARTITIONS { 1 } else { 3 };
        let mut excess = self.held_bytes().saturating_sub(self.memory_bytes / 4 * quarters);
        let mut order: Vec<usize> = (0..self.partitions.len()).collect();
        order.sort_by_key(|&at| self.partitions[at].last_used);
        for &at in &order {
            if excess == 0 {
                return Ok(());
            }
            let frees = self.partitions[at].counted_bytes;
            if frees > 0 {
                self.spill(at)?;
                excess = excess.saturating_sub(frees);
            }
        }
        for &at in &order {
            if excess == 0 {
                return Ok(());
            }
            let frees = self.partitions[at].encoder.held_bytes().max(0) as u64;
            if frees > 0 {
                self.draft(at, scheduler);
                excess = excess.saturating_sub(frees);
            }
        }
        Ok(())
    }

    /// Memory held by pending rows and encoders.
    fn held_bytes(&self) -> u64 {
        let encoders = self.encoding.held_bytes.load(Ordering::Relaxed).max(0) as u64;
        self.pending_bytes + self.small_parts.bytes() + encoders
    }

    /// Makes the encoder write its rows to a draft file.
    fn draft(&mut self, at: usize, scheduler: &dyn Scheduler) {
        let partition = &mut self.partitions[at];
        if partition.has_draft || partition.group_rows == 0 {
            return;
        }
        let mut tasks = Vec::new();
        let (rows, bytes) = (partition.group_rows, partition.group_bytes);
        partition.end_row_group(self.encoding, partition.first_source(self.source), AfterRowGroup::Draft, &mut tasks);
        (partition.group_rows, partition.group_bytes) = (rows, bytes);
        partition.has_draft = true;
        scheduler.schedule(tasks);
    }

    /// Spills the pending rows.
    fn spill(&mut self, at: usize) -> Result<(), ConvertError> {
        let partition = &mut self.partitions[at];
        if partition.pending.is_empty() {
            return Ok(());
        }
        let batches: Vec<RecordBatch> = partition.pending.drain(..).collect();
        let schema = &self.encoding.schema;
        let spill = match &self.sorter {
            Some(sorter) => Spill::of(self.scratch, schema, sorter.sort(batches)?)?,
            None if partition.pending_bytes <= JOINED_BYTES_MAX => {
                let all = arrow::compute::concat_batches(schema, &batches).map_err(internal)?;
                Spill::of(self.scratch, schema, [Ok(all)])?
            }
            None => Spill::of(self.scratch, schema, batches.into_iter().map(Ok))?,
        };
        partition.spills.push(spill);
        partition.spilled_rows += std::mem::take(&mut partition.pending_rows);
        partition.spilled_bytes += std::mem::take(&mut partition.pending_bytes);
        self.count(at);
        Ok(())
    }

    /// Reads spilled rows back in front of the pending ones. A row group with a draft is encoded again.
    fn unspill(&mut self, at: usize, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let partition = &mut self.partitions[at];
        let encoder = Arc::clone(&partition.encoder);
        let newer = std::mem::take(&mut partition.pending);
        let newer_rows = (std::mem::take(&mut partition.pending_rows), std::mem::take(&mut partition.pending_bytes));
        let has_draft = std::mem::take(&mut partition.has_draft);
        let spills = std::mem::take(&mut partition.spills);
        let group_bytes = partition.group_bytes;
        (partition.spilled_rows, partition.spilled_bytes) = (0, 0);
        if has_draft {
            (partition.group_rows, partition.group_bytes) = (0, 0);
            scheduler.wait_for_draft(&encoder)?;
            if let Some(draft) = encoder.take_draft() {
                let rows = draft.rows * SLAB_BYTES / 2 / group_bytes.max(1);
                for batch in read_draft(&draft, rows, &self.encoding.schema)? {
                    self.add_unspilled(at, batch?, scheduler)?;
                }
                let _ = std::fs::remove_file(&draft.path);
            }
        }
        for spill in spills {
            for batch in spill.read()? {
                self.add_unspilled(at, batch?, scheduler)?;
            }
        }
        let partition = &mut self.partitions[at];
        partition.pending.extend(newer);
        partition.pending_rows += newer_rows.0;
        partition.pending_bytes += newer_rows.1;
        self.count(at);
        Ok(())
    }

    /// Adds spilled rows.
    fn add_unspilled(&mut self, at: usize, batch: RecordBatch, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        self.partitions[at].push(batch);
        self.count(at);
        self.cut_slabs(at, None, scheduler)
    }

    /// Encodes all remaining rows and lays out the files.
    pub(super) fn finish(&mut self, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        self.flush_small_parts(scheduler)?;
        // Rows in memory first, which makes room for spilled ones.
        let is_spilled = |partition: &PartitionState| partition.has_draft || !partition.spills.is_empty();
        let open = (0..self.partitions.len()).filter(|&at| !self.partitions[at].members.is_empty());
        let (spilled, in_memory): (Vec<usize>, Vec<usize>) = open.partition(|&at| is_spilled(&self.partitions[at]));
        for at in in_memory.into_iter().chain(spilled) {
            let first = self.partitions[at].first_source(self.source);
            self.end_segment(at, SegmentEnd { cut: Cut::None, join: false, first }, scheduler)?;
        }
        let mut tasks = Vec::new();
        for partition in &mut self.partitions {
            partition.end_row_group(self.encoding, 0, AfterRowGroup::Close, &mut tasks);
        }
        scheduler.schedule(tasks);
        scheduler.drain()
    }

    /// The groups of every partition with rows, after [`TableWriter::finish`].
    pub(super) fn into_groups(self) -> BTreeMap<String, Vec<BuiltGroup>> {
        self.partitions.into_iter().map(|partition| (partition.path.to_string(), partition.into_groups())).collect()
    }

    /// Sorts the rows of the open segment and adds them in order.
    fn add_sorted(&mut self, at: usize, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let Some(sorter) = self.sorter.clone() else { return Ok(()) };
        let schema = &self.encoding.schema;
        let partition = &mut self.partitions[at];
        let batches: Vec<RecordBatch> = partition.pending.drain(..).collect();
        (partition.pending_rows, partition.pending_bytes) = (0, 0);
        (partition.spilled_rows, partition.spilled_bytes) = (0, 0);
        let mut spills = std::mem::take(&mut partition.spills);
        while spills.len() > MERGED_RUNS_MAX {
            let mut fewer = Vec::with_capacity(spills.len() / MERGED_RUNS_MAX + 1);
            for some in spills.chunks(MERGED_RUNS_MAX) {
                let merged = sorter.merge(some.iter().map(read_run).collect::<Result<_, _>>()?)?;
                fewer.push(Spill::of(self.scratch, schema, merged)?);
            }
            spills = fewer;
        }
        let mut runs = spills.iter().map(read_run).collect::<Result<Vec<_>, _>>()?;
        if !batches.is_empty() {
            runs.push(Box::new(sorter.sort(batches)?));
        }
        for batch in sorter.merge(runs)? {
            self.add_unspilled(at, batch?, scheduler)?;
            if self.encoding.held_bytes.load(Ordering::Relaxed).max(0) as u64 > self.memory_bytes {
                scheduler.wait_for_queue(0)?;
            }
        }
        Ok(())
    }
}

fn read_run(spill: &Spill) -> Result<Batches, ConvertError> {
    Ok(Box::new(spill.read()?))
}

impl PartitionState {
    fn push(&mut self, pending: RecordBatch) {
        self.pending_rows += pending.num_rows() as u64;
        self.pending_bytes += raw_bytes(&pending, pending.num_rows());
        self.pending.push_back(pending);
    }

    /// Whether spilled rows are needed: for a slab, or for the whole row group if it has a draft.
    fn should_unspill(&self, row_group_rows: u64) -> bool {
        let (rows, bytes) = (self.spilled_rows + self.pending_rows, self.spilled_bytes + self.pending_bytes);
        let room = row_group_rows - self.group_rows;
        if self.has_draft {
            rows >= room || self.group_bytes + bytes >= ROW_GROUP_BYTES
        } else {
            rows >= room.min(SLAB_ROWS as u64) || bytes >= SLAB_BYTES
        }
    }

    /// Cuts the next slab of at most `room` rows; `None` if it is incomplete (and not `last`) or there are no rows.
    fn cut(&mut self, room: u64, last: bool) -> Option<Slab> {
        if self.pending_rows == 0 || (!last && self.pending_rows < room && self.pending_bytes < SLAB_BYTES) {
            return None;
        }
        let mut slab = Slab { batches: Vec::new(), rows: 0, queued: None };
        let mut bytes = 0;
        while (slab.rows as u64) < room && bytes < SLAB_BYTES {
            let Some(pending) = self.pending.pop_front() else { break };
            let rows = cut_rows(&pending, (room - slab.rows as u64) as usize, SLAB_BYTES - bytes);
            let head = pending.slice(0, rows);
            if rows < pending.num_rows() {
                self.pending.push_front(pending.slice(rows, pending.num_rows() - rows));
            }
            bytes += raw_bytes(&head, rows);
            slab.rows += rows;
            slab.batches.push(head);
        }
        self.pending_rows -= slab.rows as u64;
        self.pending_bytes -= bytes;
        Some(slab)
    }

    /// The first source of the open segment. `source`: the one whose rows are being added.
    fn first_source(&self, source: u32) -> u32 {
        self.members.iter().next().map_or(source, |member| member.source)
    }

    /// `first`: the first source of the row group's segment.
    fn end_row_group(
        &mut self,
        encoding: &Encoding<'_>,
        first: u32,
        after: AfterRowGroup,
        tasks: &mut Vec<EncodeTask>,
    ) {
        let end = RowGroupEnd::new(self.group_rows, first, after, encoding.group_count());
        (self.group_rows, self.group_bytes) = (0, 0);
        self.schedule(self.encoder.push_end(end), tasks);
    }

    /// The groups with their sources.
    fn into_groups(self) -> Vec<BuiltGroup> {
        let mut members = self.ended.into_iter();
        let mut built = Vec::new();
        for group in self.encoder.take_groups() {
            let segments: Vec<BuiltSegment> = (group.segments.into_iter().zip(members.by_ref()))
                .map(|(EncodedSegment { cut, rows, row_groups, .. }, members)| BuiltSegment {
                    members,
                    rows,
                    row_groups,
                    cut,
                })
                .collect();
            built.push(BuiltGroup { files: group.files, segments });
        }
        built
    }

    fn schedule(&self, groups: Vec<usize>, tasks: &mut Vec<EncodeTask>) {
        let task = |group| EncodeTask { encoder: Arc::clone(&self.encoder), work: Work::Columns(group) };
        tasks.extend(groups.into_iter().map(task));
    }
}
