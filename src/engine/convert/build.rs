//! Runs a conversion: feeds sources in key order, processes them on the pool, and writes partitions or buffers rows.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::assemble::{FileFormat, RowGroups};
use super::build_feed::BuildFeed;
use super::conversion::{Conversion, Converted, OutcomeSink, SourceOutcome, SpooledFile};
use super::cut_forecast::CutForecast;
use super::encoding::Encoding;
use super::error::{ConvertError, internal, panicked};
use super::feed;
use super::inputs::{BuildInputs, BuildLayout};
use super::partition_encoder::{EncodeTask, PartitionEncoder, Scheduler};
use super::piece::{Piece, SourceEndInfo};
use super::pool::{PoolTask, WorkerPool};
use super::prefetch;
use super::rejects::RejectCollector;
use super::row_buffer::{BufferedRows, RowBuffer, SourceRows};
use super::rows::{ChunkConverter, ChunkRows};
use super::sorting::Sorter;
use super::source_list::SourceList;
use super::spill::ScratchFolder;
use super::stored_rows::StoredPiece;
use super::table_writer::{EndedSource, QUEUED_BYTES_MAX, TableWriter};
use super::text_list::TextList;
use crate::domain::table_log::cuts::key_hash;
use crate::engine::read::buffer_pool::BufferPool;
use crate::engine::read::reader::whole_bytes_max;
use crate::ports::arrow_types::mapping_schema;
use crate::sync::parallel_map;

/// Spilling pending rows is cheap, so holding more than this, or a third of the run's memory, only takes memory from
/// others.
const TABLE_BYTES_MAX: u64 = 176 << 20;

/// The outcome of a piece.
enum PieceOutcome {
    Rows(u32, ChunkRows),
    End(u32, Box<SourceEndInfo>),
    BufferedEnd(u32),
    Stored(StoredPiece),
}

/// Where rows go.
enum RowSink<'a> {
    Table(TableWriter<'a>),
    Buffer(RowBuffer<'a>),
}

/// Collects the outcomes of pieces in order.
struct OutcomeCollector<'a, 'r> {
    sink: RowSink<'a>,
    /// The partitions to build from a source, unless all are built.
    only: Arc<HashMap<u32, Arc<BTreeSet<String>>>>,
    /// The outcomes of the source being read and of buffered sources.
    outcomes: BTreeMap<u32, SourceOutcome>,
    rejects: RejectCollector,
    /// Takes the outcomes of sources that were read.
    read: &'r mut OutcomeSink<'r>,
}

type ConversionPool = WorkerPool<(u32, Piece), PieceOutcome>;

struct PoolScheduler<'a> {
    pool: &'a ConversionPool,
    encoding: &'a Encoding<'a>,
    scratch: &'a ScratchFolder,
}

impl PoolScheduler<'_> {
    /// Encodes queued work until `condition` holds, waiting while other threads encode.
    fn encode_until(&self, condition: impl Fn() -> bool) -> Result<(), ConvertError> {
        while let Some(task) = self.pool.take_encode_unless(&condition)? {
            let worked = task.encoder.work(task.work, self.encoding, self.scratch, self);
            self.pool.done();
            worked?;
        }
        Ok(())
    }
}

impl Scheduler for PoolScheduler<'_> {
    fn schedule(&self, tasks: Vec<EncodeTask>) {
        self.pool.schedule(tasks);
    }

    fn progressed(&self) {
        self.pool.progressed();
    }

    fn wait_for_draft(&self, encoder: &PartitionEncoder) -> Result<(), ConvertError> {
        self.encode_until(|| encoder.has_draft())
    }

    fn wait_for_queue(&self, bytes_max: u64) -> Result<(), ConvertError> {
        self.encode_until(|| self.encoding.queued_bytes() <= bytes_max)
    }

    fn drain(&self) -> Result<(), ConvertError> {
        self.pool.drain()
    }
}

/// Stops the threads when the run ends, by a panic too. After a drain no work is left.
struct StopOnDrop<'a>(&'a ConversionPool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Conversion<'_> {
    /// Bytes of text per chunk; chunks in flight take a small part of the memory.
    pub(super) fn chunk_bytes(&self) -> usize {
        #[cfg(feature = "failpoints")]
        if let Some(bytes) = crate::runtime::failpoint::number("convert::chunk_bytes") {
            return usize::try_from(bytes).unwrap_or(1).max(1);
        }
        (self.resources.memory_bytes / 256).clamp(256 << 10, 2 << 20) as usize
    }

    /// Memory for partitions or buffered rows: the run's memory minus prefetched data, chunks in flight and their rows,
    /// queued slabs, and the program itself; capped where more is of no use.
    fn table_bytes(&self) -> u64 {
        let in_flight = self.buffers_max() * whole_bytes_max(self.chunk_bytes()) * 3;
        let memory = self.resources.memory_bytes;
        let prefetched = if self.store.is_remote() { prefetch::prefetch_bytes_max(memory) } else { 0 };
        let elsewhere = in_flight as u64 + prefetched + QUEUED_BYTES_MAX + (48 << 20);
        let left = memory.saturating_sub(elsewhere).max(memory / 4);
        // With sorting all rows wait, and fewer sorted runs merge faster.
        if self.mapping.sort_by.is_empty() { left.min(TABLE_BYTES_MAX.max(memory / 3)) } else { left }
    }

    /// Chunks in flight, plus two for each reader: the one being filled and the one queued.
    fn buffers_max(&self) -> usize {
        self.in_flight_max() + 2 * feed::readers(self.resources.threads, self.store.is_remote())
    }

    /// Chunks are collected in order, so there must be enough for other threads to continue while one works on the
    /// first chunk; fewer per thread with many threads, to bound memory.
    fn in_flight_max(&self) -> usize {
        let threads = self.resources.threads;
        2 * threads + 2 * threads.min(8) + 1
    }

    /// Reads `sources` (in key order) and buffers their rows.
    ///
    /// # Errors
    /// See [`ConvertError`].
    pub fn buffer(&self, sources: &Arc<SourceList>) -> Result<BufferedRows, ConvertError> {
        let scratch = ScratchFolder::new(&self.resources.scratch);
        let memory = self.table_bytes();
        let encoding = self.encoding(memory, BuildLayout::default())?;
        let sink = RowSink::Buffer(RowBuffer::new(&scratch, Arc::clone(&encoding.schema), memory / 2));
        let feed = BuildFeed::new(BuildInputs::all(sources), &encoding);
        let mut outcomes = Vec::with_capacity(sources.len());
        let mut keep = |outcome| {
            outcomes.push(outcome);
            Ok(())
        };
        let sink = self.run(feed, &encoding, &scratch, sink, &mut keep)?;
        let rows = match sink {
            RowSink::Buffer(buffer) => buffer.finish(),
            RowSink::Table(_) => Vec::new(),
        };
        Ok(BufferedRows { sources: outcomes, rows })
    }

    /// The columns that are stored, as opposed to those that are only partitioned by.
    pub(super) fn stored_schema(&self) -> Result<SchemaRef, ConvertError> {
        Ok(Arc::new(mapping_schema(self.mapping).project(&self.mapping.stored_columns()).map_err(internal)?))
    }

    fn encoding(&self, memory: u64, layout: BuildLayout) -> Result<Encoding<'_>, ConvertError> {
        let (threads, in_place) = (self.resources.threads, !self.store.is_remote());
        Encoding::new(self.stored_schema()?, self.mapping.parquet, threads, memory, in_place, layout, self.made)
    }

    /// Builds partitions, or segments of them. Rows are ordered by source key and byte offset. `read` takes the outcomes of
    /// the sources that are read.
    ///
    /// # Errors
    /// See [`ConvertError`].
    pub fn build(&self, inputs: BuildInputs, read: &mut OutcomeSink<'_>) -> Result<Converted, ConvertError> {
        let scratch = ScratchFolder::new(&self.resources.scratch);
        let buffered_bytes = inputs.buffered.iter().flat_map(|buffered| &buffered.rows).map(SourceRows::bytes).sum();
        let memory = self.table_bytes();
        let memory = memory.saturating_sub(buffered_bytes).max(memory / 4);
        let encoding = self.encoding(memory, inputs.layout)?;
        let sorter = (!self.mapping.sort_by.is_empty()).then(|| {
            let stored = self.mapping.stored_columns();
            let span = |column: &usize| stored.iter().position(|s| s == column).unwrap_or_default();
            Sorter::new(&encoding.schema, self.mapping.sort_by.iter().map(span).collect())
        });
        let feed = BuildFeed::new(inputs, &encoding);
        let keys = Arc::clone(&feed.keys);
        let forecast = CutForecast::new(self.mapping.parquet.cuts, &feed.text_estimates());
        let table = TableWriter::new(&encoding, &scratch, sorter, memory, forecast);
        let sink = self.run(feed, &encoding, &scratch, RowSink::Table(table), read)?;
        let partitions = match sink {
            RowSink::Table(table) => table.into_groups(),
            RowSink::Buffer(_) => BTreeMap::new(),
        };
        Ok(Converted { keys, partitions })
    }

    /// Makes the files of groups from row groups, which are copied byte for byte.
    ///
    /// # Errors
    /// If scratch fails, or a file is not one of ours.
    pub fn assemble(&self, groups: &[Vec<RowGroups>]) -> Result<Vec<Vec<SpooledFile>>, ConvertError> {
        let scratch = ScratchFolder::new(&self.resources.scratch);
        let (schema, durable_in_place) = (self.stored_schema()?, !self.store.is_remote());
        let format =
            FileFormat { schema: &schema, options: &self.mapping.parquet, scratch: &scratch, durable_in_place };
        parallel_map(groups, self.resources.threads, |parts| format.assemble(parts))
    }

    /// Runs `feed` through the pool; returns the sink once everything is encoded. `read` takes the outcomes of the sources
    /// that are read.
    fn run<'s>(
        &self,
        feed: BuildFeed,
        encoding: &'s Encoding<'s>,
        scratch: &'s ScratchFolder,
        sink: RowSink<'s>,
        read: &mut OutcomeSink<'_>,
    ) -> Result<RowSink<'s>, ConvertError> {
        let mut feed = feed;
        let (keys, only) = (Arc::clone(&feed.keys), Arc::clone(&feed.only));
        let outcomes = std::mem::take(&mut feed.buffered);
        let collector = OutcomeCollector { sink, only, outcomes, rejects: RejectCollector::new(), read };
        let collector = Mutex::new(collector);
        let pool: ConversionPool = WorkerPool::new(self.in_flight_max());
        let scheduler = PoolScheduler { pool: &pool, encoding, scratch };
        let buffers = Arc::new(BufferPool::new(self.buffers_max()));
        let worker = || {
            let work = catch_unwind(AssertUnwindSafe(|| self.work(&keys, &pool, &scheduler, &collector, &buffers)));
            match work {
                Ok(Ok(())) => {}
                Ok(Err(error)) => pool.fail(error),
                Err(panic) => pool.fail(panicked("conversion", &panic)),
            }
        };
        std::thread::scope(|scope| {
            // Stops the other threads if this one panics.
            let _stop = StopOnDrop(&pool);
            for _ in 0..self.resources.threads {
                scope.spawn(worker);
            }
            let push = |sequence, source, piece| pool.push(sequence, (source, piece));
            let fed = feed::feed(self, feed, &buffers, push);
            let ended = fed.and_then(|()| pool.drain()).and_then(|()| match &mut collector.lock().sink {
                RowSink::Table(table) => table.finish(&scheduler),
                RowSink::Buffer(_) => Ok(()),
            });
            // A failed thread is the cause of any error here.
            ended.map_err(|error| pool.take_failure().unwrap_or(error))
        })?;
        Ok(collector.into_inner().sink)
    }

    /// The loop of one thread.
    fn work(
        &self,
        keys: &TextList,
        pool: &ConversionPool,
        scheduler: &PoolScheduler<'_>,
        collector: &Mutex<OutcomeCollector<'_, '_>>,
        buffers: &BufferPool,
    ) -> Result<(), ConvertError> {
        let mut converter: Option<ChunkConverter<'_>> = None;
        while let Some(task) = pool.take() {
            match task {
                PoolTask::Encode(task) => {
                    task.encoder.work(task.work, scheduler.encoding, scheduler.scratch, scheduler)?;
                }
                PoolTask::Parse(sequence, (source, piece)) => {
                    let outcome = match piece {
                        Piece::Chunk(chunk, layout) => {
                            let converter = match &mut converter {
                                Some(converter) => converter,
                                None => converter.insert(ChunkConverter::new(self.mapping, self.expressions)?),
                            };
                            let rows = converter.convert(keys.get(source as usize), &chunk, &layout)?;
                            buffers.put(chunk.text);
                            PieceOutcome::Rows(source, rows)
                        }
                        Piece::Rows(parts) => PieceOutcome::Rows(source, ChunkRows { parts, ..ChunkRows::default() }),
                        Piece::End(end) => PieceOutcome::End(source, end),
                        Piece::BufferedEnd => PieceOutcome::BufferedEnd(source),
                        Piece::Stored(piece) => PieceOutcome::Stored(piece),
                    };
                    if pool.deliver(sequence, outcome) {
                        let mut collector = collector.lock();
                        while let Some(outcome) = pool.next_ready() {
                            self.collect_outcome(&mut collector, outcome, keys, scheduler)?;
                            pool.collected();
                        }
                    }
                }
            }
            pool.done();
        }
        Ok(())
    }

    fn collect_outcome(
        &self,
        collector: &mut OutcomeCollector<'_, '_>,
        outcome: PieceOutcome,
        keys: &TextList,
        scheduler: &PoolScheduler<'_>,
    ) -> Result<(), ConvertError> {
        match outcome {
            PieceOutcome::Rows(source, mut rows) => {
                self.progress.check().map_err(ConvertError::Stopped)?;
                self.progress.rows(rows.rows_read, rows.rows_written, rows.rows_rejected);
                if rows.counted_bytes > 0 {
                    collector.count(source, keys.get(source as usize), &rows);
                    collector.rejects.add(std::mem::take(&mut rows.rejects), rows.failures, scheduler.scratch)?;
                }
                if let Some(only) = collector.only.get(&source) {
                    rows.parts.retain(|(path, _)| only.contains(path.as_ref()));
                }
                match &mut collector.sink {
                    RowSink::Table(table) => table.add(source, rows.parts, scheduler),
                    RowSink::Buffer(buffer) => buffer.add(rows.parts),
                }
            }
            PieceOutcome::End(source, end) => {
                let key = keys.get(source as usize);
                let rejects = std::mem::replace(&mut collector.rejects, RejectCollector::new());
                let rejects = rejects.finish(scheduler.scratch, key, &end.sha256, self.job_id)?;
                let outcome = collector.outcome(source, key);
                outcome.rejects = rejects;
                outcome.sha256 = end.sha256;
                outcome.etag = end.etag;
                outcome.size = end.size;
                outcome.text_bytes = end.text_bytes;
                outcome.extra_columns = end.extra_columns;
                outcome.variant = end.variant;
                outcome.counted_bytes += end.skipped_bytes;
                outcome.rows.blank_lines += end.blank_lines;
                if end.text_bytes == 0 {
                    outcome.rows.note = Some("the file is empty: it has no rows".to_owned());
                }
                self.progress.source_done();
                collector.end_source(source, key, scheduler)?;
                match collector.outcomes.remove(&source) {
                    Some(outcome) => (collector.read)(outcome),
                    None => Ok(()),
                }
            }
            PieceOutcome::BufferedEnd(source) => collector.end_source(source, keys.get(source as usize), scheduler),
            PieceOutcome::Stored(piece) => {
                self.progress.check().map_err(ConvertError::Stopped)?;
                match &mut collector.sink {
                    RowSink::Table(table) => table.add_stored(piece, scheduler),
                    RowSink::Buffer(_) => Err(internal("stored rows are not buffered")),
                }
            }
        }
    }
}

impl OutcomeCollector<'_, '_> {
    fn outcome(&mut self, source: u32, key: &str) -> &mut SourceOutcome {
        let outcome = self.outcomes.entry(source).or_default();
        if outcome.rows.source.is_empty() {
            outcome.rows.source = key.to_owned();
        }
        outcome
    }

    /// Ends a source whose outcome is complete.
    fn end_source(&mut self, source: u32, key: &str, scheduler: &dyn Scheduler) -> Result<(), ConvertError> {
        let table = match &mut self.sink {
            RowSink::Table(table) => table,
            RowSink::Buffer(buffer) => return buffer.finish_source(),
        };
        let Some(outcome) = self.outcomes.get(&source) else {
            return Err(internal("a source ended without an outcome"));
        };
        let (text_bytes, rows_read) = (outcome.text_bytes, outcome.rows.rows_read);
        let ended = EndedSource { at: source, hash: key_hash(key), text_bytes, rows_read };
        let only = self.only.get(&source);
        let built = outcome.partitions.iter().filter(|(path, _)| only.is_none_or(|only| only.contains(*path)));
        table.end_source(&ended, built.map(|(path, rows)| (path.as_str(), *rows)), scheduler)
    }

    fn count(&mut self, source: u32, key: &str, rows: &ChunkRows) {
        let outcome = self.outcome(source, key);
        outcome.rows.rows_read += rows.rows_read;
        outcome.rows.rows_written += rows.rows_written;
        outcome.rows.rows_rejected += rows.rows_rejected;
        outcome.rows.rows_filtered += rows.rows_filtered;
        outcome.rows.blank_lines += rows.blank_lines;
        outcome.counted_bytes += rows.counted_bytes;
        for (path, batch) in &rows.parts {
            *outcome.partitions.entry(path.to_string()).or_default() += batch.num_rows() as u64;
        }
        for (check, rows) in &rows.warnings {
            *outcome.warnings.entry(check.clone()).or_default() += rows;
        }
    }
}
