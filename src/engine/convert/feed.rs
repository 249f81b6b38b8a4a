//! Reads sources in parallel and yields their chunks in order. Sources of a remote store are prefetched by threads of
//! their own.
//!
//! Invariant: a reader is never more than a few chunks ahead, and prefetching has its own bound (`prefetch`), so queued
//! data is bounded for any number of sources.

use std::collections::VecDeque;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use std::thread::Builder;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::build_feed::{BuildFeed, BuildSource, BuildSources, FeedItem};
use super::conversion::{Conversion, SourceRef};
use super::error::{ConvertError, internal, opening_failed, panicked, reading_failed};
use super::piece::{Piece, SourceEndInfo, replay};
use super::prefetch::{self, Prefetcher};
use super::row_buffer::SourceRows;
use super::source_layout::{self, SourceLayout};
use super::stored_rows::StoredRows;
use super::text_list::TextList;
use crate::domain::layout::pipeline_prefix;
use crate::domain::source_name::compression;
use crate::engine::read::buffer_pool::BufferPool;
use crate::engine::read::reader::SourceReader;
use crate::ports::store::{Bucket, ETag};
use crate::runtime::failpoint;

/// Largest source that is queued whole, in bytes.
const QUEUED_WHOLE_BYTES_MAX: u64 = 64 << 10;

/// Sources for each reader that are handed out before they are drained.
const SOURCES_AHEAD: usize = 4;

/// Sources read in parallel. With a remote store, one more than the worker threads, since readers wait for the network;
/// otherwise no more, since readers compete with the workers for cores and cache.
pub(super) fn readers(threads: usize, is_remote: bool) -> usize {
    if is_remote { (threads + 1).clamp(3, 32) } else { threads.clamp(2, 32) }
}

type Message = Result<Piece, ConvertError>;

/// A source to read, the channel for its pieces, and its index among the sources to read.
struct SourceJob {
    source: SourceRef,
    sender: Sender<Message>,
    at: usize,
}

impl SourceJob {
    /// Sends an error. A closed channel means that the conversion has already failed.
    fn fail(&self, error: ConvertError) {
        let _ = self.sender.send(Err(error));
    }
}

/// Pieces of a source that may be queued: one chunk, or the chunk and the end of a small source, whose reader then goes on
/// to the next without waiting.
fn queued_max(source: &SourceRef) -> usize {
    let is_small = source.size <= QUEUED_WHOLE_BYTES_MAX && compression(&source.key).is_none();
    if is_small { 2 } else { 1 }
}

/// The sources that a reader takes at a time: one, or two that are hashed in parallel.
type ReadGroup = Vec<SourceJob>;

/// Groups adjacent sources in pairs where `in_pairs` holds for both.
fn groups(jobs: Vec<SourceJob>, in_pairs: impl Fn(&SourceRef) -> bool) -> Vec<ReadGroup> {
    let mut groups: Vec<ReadGroup> = Vec::with_capacity(jobs.len());
    let mut has_room = false;
    for job in jobs {
        let in_pairs = in_pairs(&job.source);
        match groups.last_mut() {
            Some(group) if has_room && in_pairs => {
                group.push(job);
                has_room = false;
            }
            _ => {
                groups.push(vec![job]);
                has_room = in_pairs;
            }
        }
    }
    groups
}

/// Passes every piece of the sources and stored rows of `build` to `push` in order, with its sequence number and the index
/// of its source; stops when `push` returns false. Text is read into `buffers`.
pub(super) fn feed(
    conversion: &Conversion<'_>,
    mut build: BuildFeed,
    buffers: &Arc<BufferPool>,
    mut push: impl FnMut(u64, u32, Piece) -> bool,
) -> Result<(), ConvertError> {
    let sources = build.take_sources();
    let BuildFeed { keys, read: list, stored, .. } = build;
    let prefetcher =
        conversion.store.is_remote().then(|| Prefetcher::new(Arc::clone(&list), conversion.resources.memory_bytes));
    let prefetcher = prefetcher.as_ref();
    let readers = readers(conversion.resources.threads, conversion.store.is_remote()).min(list.len());
    let queue = ReadQueue::default();
    std::thread::scope(|scope| {
        // If this thread panics, the others must not wait for it.
        let _stop = StopOnDrop(&queue, prefetcher);
        if let Some(prefetcher) = prefetcher {
            // One thread is required; further ones are optional.
            let threads = 1..prefetcher.threads();
            scope.spawn(|| prefetcher.run(conversion));
            threads
                .map_while(|_| Builder::new().spawn_scoped(scope, || prefetcher.run(conversion)).ok())
                .for_each(drop);
        }
        for _ in 0..readers {
            scope.spawn(|| {
                while let Some(group) = queue.next() {
                    let read = || read(conversion, &group, prefetcher, buffers);
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(read)) {
                        // Sources that have been read no longer have a receiver.
                        for job in group {
                            job.fail(panicked("source_read", &panic));
                        }
                    }
                }
            });
        }
        // With prefetching readers wait for data, and the first source of a pair must not wait for the second.
        let in_pairs = |source: &SourceRef| {
            prefetcher.is_none() && SourceReader::is_faster_in_pairs(&source.key, source.size, conversion.chunk_bytes())
        };
        let streams = Streams { sources, ahead: VecDeque::new(), ahead_max: readers * SOURCES_AHEAD, queue: &queue };
        let mut sequence = 0;
        drain(streams, in_pairs, &keys, stored, |at, piece| {
            failpoint::reach("convert::piece");
            sequence += 1;
            push(sequence - 1, at, piece)
        })
    })
}

/// Stops readers and prefetching when the receiver is gone.
struct StopOnDrop<'a>(&'a ReadQueue, Option<&'a Arc<Prefetcher>>);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
        if let Some(prefetcher) = self.1 {
            prefetcher.stop();
        }
    }
}

enum StreamRows {
    Buffered(SourceRows),
    Read(Receiver<Message>),
}

struct SourceStream {
    at: u32,
    rows: StreamRows,
    touched: Vec<String>,
}

/// The streams of sources in order. Few of them exist at a time: readers get the next sources as earlier ones are drained.
struct Streams<'q> {
    sources: BuildSources,
    ahead: VecDeque<SourceStream>,
    ahead_max: usize,
    queue: &'q ReadQueue,
}

impl Streams<'_> {
    fn next(&mut self, in_pairs: impl Fn(&SourceRef) -> bool) -> Option<SourceStream> {
        // Many at a time, so that adjacent ones can be paired.
        if self.ahead.len() <= self.ahead_max / 2 {
            let mut jobs = Vec::new();
            while self.ahead.len() <= self.ahead_max
                && let Some(BuildSource { at, item, touched }) = self.sources.next()
            {
                let rows = match item {
                    FeedItem::Buffered(rows) => StreamRows::Buffered(rows),
                    FeedItem::Read(source, at) => {
                        let (sender, receiver) = bounded(queued_max(&source));
                        jobs.push(SourceJob { source, sender, at });
                        StreamRows::Read(receiver)
                    }
                };
                self.ahead.push_back(SourceStream { at, rows, touched });
            }
            self.queue.add(groups(jobs, in_pairs));
        }
        self.ahead.pop_front()
    }
}

/// Drains the streams in order, each after the stored rows before it in its partitions; dropping a stream ends its reader.
fn drain(
    mut streams: Streams<'_>,
    in_pairs: impl Fn(&SourceRef) -> bool,
    keys: &TextList,
    mut stored: StoredRows,
    mut push: impl FnMut(u32, Piece) -> bool,
) -> Result<(), ConvertError> {
    while let Some(SourceStream { at, rows, touched }) = streams.next(&in_pairs) {
        for partition in touched {
            let key = keys.get(at as usize);
            if !stored.feed_before(&partition, key, &mut |piece| push(at, Piece::Stored(piece)))? {
                return Ok(());
            }
        }
        let goes_on = match rows {
            StreamRows::Buffered(rows) => replay(rows, |piece| push(at, piece))?,
            StreamRows::Read(receiver) => receive(receiver, |piece| push(at, piece))?,
        };
        if !goes_on {
            return Ok(());
        }
    }
    stored.feed_rest(&mut |piece| push(0, Piece::Stored(piece))).map(drop)
}

/// Passes a source's pieces to `push` until it returns false; returns whether it did not.
fn receive(receiver: Receiver<Message>, mut push: impl FnMut(Piece) -> bool) -> Result<bool, ConvertError> {
    for message in receiver {
        let piece = message?;
        let ended = matches!(piece, Piece::End(_));
        if !push(piece) {
            return Ok(false);
        }
        // Does not wait for the sender to close: its reader may have another source of its group to read first.
        if ended {
            return Ok(true);
        }
    }
    Err(internal("a source_read thread stopped"))
}

/// Groups of sources, taken by readers in order.
#[derive(Default)]
struct ReadQueue {
    state: Mutex<ReadQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct ReadQueueState {
    groups: VecDeque<ReadGroup>,
    is_stopped: bool,
}

impl ReadQueue {
    fn add(&self, groups: Vec<ReadGroup>) {
        if !groups.is_empty() {
            self.state.lock().groups.extend(groups);
            self.changed.notify_all();
        }
    }

    /// Waits for the next group; `None` once the queue is stopped.
    fn next(&self) -> Option<ReadGroup> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            match state.groups.pop_front() {
                Some(group) => return Some(group),
                None => self.changed.wait(&mut state),
            }
        }
    }

    fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopped = true;
        // Dropped outside of the lock, so that their receivers see a closed channel.
        let left = std::mem::take(&mut state.groups);
        drop(state);
        drop(left);
        self.changed.notify_all();
    }
}

/// A source's stored bytes and their ETag.
struct SourceBody {
    body: Box<dyn Read + Send>,
    etag: Option<ETag>,
}

/// Opens a source: prefetched data if available, otherwise the object.
fn open(
    conversion: &Conversion<'_>,
    source: &SourceRef,
    prefetched: Option<(&Arc<Prefetcher>, usize)>,
) -> Result<SourceBody, ConvertError> {
    if let Some((prefetcher, at)) = prefetched.filter(|_| prefetch::is_prefetched(source)) {
        return Ok(SourceBody { body: Box::new(prefetcher.open(at, source.size)?), etag: source.etag.clone() });
    }
    let key = format!("{}{}", pipeline_prefix(conversion.slug), source.key);
    let object = conversion
        .store
        .get(Bucket::Lake, &key, source.etag.as_ref())
        .map_err(|error| opening_failed(&source.key, error))?;
    if object.meta.size != source.size {
        return Err(ConvertError::SourceChanged { key: source.key.clone() });
    }
    Ok(SourceBody { body: object.body, etag: object.meta.etag })
}

/// A source opened for reading.
struct OpenSource<'a> {
    job: &'a SourceJob,
    reader: SourceReader,
    layout: Arc<SourceLayout>,
    etag: Option<String>,
}

impl<'a> OpenSource<'a> {
    fn begin(
        conversion: &Conversion<'_>,
        job: &'a SourceJob,
        prefetcher: Option<&Arc<Prefetcher>>,
        buffers: &Arc<BufferPool>,
    ) -> Result<Self, ConvertError> {
        let source = &job.source;
        let SourceBody { body, etag } = open(conversion, source, prefetcher.map(|prefetcher| (prefetcher, job.at)))?;
        let (format, chunk_bytes) = (conversion.mapping.format_of(&source.key), conversion.chunk_bytes());
        let reader = SourceReader::open(&source.key, body, source.size, format.csv, chunk_bytes, buffers)
            .map_err(|error| reading_failed(&source.key, error))?;
        let layout = source_layout::resolve(
            conversion.mapping,
            format,
            &source.key,
            reader.header(),
            reader.width(),
            reader.is_empty(),
        )?;
        Ok(Self { job, reader, layout: Arc::new(layout), etag: etag.map(|ETag(tag)| tag) })
    }

    /// Reads the data of the first chunk, to be hashed together with another source's.
    fn read_ahead(mut self) -> Result<Self, ConvertError> {
        self.reader.read_ahead().map_err(|error| reading_failed(&self.job.source.key, error))?;
        Ok(self)
    }

    /// Reads to the end. A failed send means that the receiver is gone.
    fn finish(self, conversion: &Conversion<'_>) -> Result<(), ConvertError> {
        let Self { job: SourceJob { source, sender, .. }, mut reader, layout, etag } = self;
        let mut reported = 0;
        loop {
            let chunk = reader.next().map_err(|error| reading_failed(&source.key, error))?;
            let read = reader.stored_bytes();
            conversion.progress.bytes_read(read - reported);
            reported = read;
            let Some(chunk) = chunk else { break };
            failpoint::reach("convert::fetch");
            if sender.send(Ok(Piece::Chunk(chunk, Arc::clone(&layout)))).is_err() {
                return Ok(());
            }
        }
        let end = reader.finish();
        let end = SourceEndInfo {
            sha256: end.sha256,
            etag,
            size: source.size,
            text_bytes: end.text_bytes,
            skipped_bytes: end.skipped_bytes,
            blank_lines: end.blank_lines,
            extra_columns: layout.extra.clone(),
            variant: conversion.mapping.format_at(layout.variant).id.map(str::to_owned),
        };
        let _ = sender.send(Ok(Piece::End(Box::new(end))));
        Ok(())
    }
}

/// Reads the sources of a group to their ends. An error fails only the source it belongs to.
fn read(
    conversion: &Conversion<'_>,
    group: &[SourceJob],
    prefetcher: Option<&Arc<Prefetcher>>,
    buffers: &Arc<BufferPool>,
) {
    let begin = |job| OpenSource::begin(conversion, job, prefetcher, buffers);
    let mut sources: Vec<_> = match group {
        [_, _] => group.iter().map(|job| begin(job).and_then(OpenSource::read_ahead)).collect(),
        _ => group.iter().map(begin).collect(),
    };
    if let [Ok(first), Ok(second)] = &mut sources[..] {
        first.reader.hash_both(&mut second.reader);
    }
    for (job, source_read) in group.iter().zip(sources) {
        if let Err(error) = source_read.and_then(|source_read| source_read.finish(conversion)) {
            job.fail(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_sources_are_read_in_pairs_and_keep_their_order() {
        let jobs = |keys: &str| -> Vec<SourceJob> {
            let source = |key: char| SourceRef { key: key.into(), etag: None, size: 1 };
            keys.chars().map(|key| SourceJob { source: source(key), sender: bounded(1).0, at: 0 }).collect()
        };
        for (keys, expected) in
            [("", ""), ("a", "a"), ("abcde", "ab cd e"), ("aXbcdX", "a X bc d X"), ("XYab", "X Y ab")]
        {
            let groups = groups(jobs(keys), |source| source.key.chars().all(char::is_lowercase));
            let keys = |group: &ReadGroup| group.iter().map(|job| job.source.key.as_str()).collect::<String>();
            assert_eq!(groups.iter().map(keys).collect::<Vec<_>>().join(" "), expected);
        }
    }
}
