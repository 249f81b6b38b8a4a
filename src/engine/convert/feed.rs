//! Reads sources side by side and gives their chunks in order. Sources of a store that is far away are fetched ahead of
//! the readers, by threads of their own.
//!
//! Invariant: a reader is never more than a few chunks ahead, and what is fetched has a bound of its own (`fetch`), so
//! that what waits is bounded however many sources there are.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use std::thread::Builder;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::conversion::{Conversion, SourceRef};
use super::error::{ConvertError, internal, opening_failed, panicked, reading_failed};
use super::piece::{Piece, SourceEndInfo, replay};
use super::prefetch::{self, Fetch};
use super::row_buffer::HeldRows;
use super::source_layout::{self, SourceLayout};
use crate::domain::layout::pipeline_prefix;
use crate::engine::read::reader::SourceReader;
use crate::engine::read::spares::Spares;
use crate::ports::store::{Bucket, ETag};
use crate::runtime::failpoint;

/// Chunks of one source that may wait.
const WAITING_CHUNKS: usize = 1;

/// A source of rows, in key order.
pub(super) enum FeedItem {
    Read(SourceRef),
    Held(String, HeldRows),
}

impl FeedItem {
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Read(source) => &source.key,
            Self::Held(key, _) => key,
        }
    }
}

/// Sources that are read at the same time: where they come from afar, one more than the threads that work on them, since
/// readers wait there; else no more, since each takes its turn on a processor, and the cache, from those threads.
pub(super) fn readers(threads: usize, is_remote: bool) -> usize {
    if is_remote { (threads + 1).clamp(3, 32) } else { threads.clamp(2, 32) }
}

type Message = Result<Piece, ConvertError>;

/// A source to read, where its pieces go, and its place among the sources that are read.
struct Job {
    source: SourceRef,
    sender: Sender<Message>,
    at: usize,
}

impl Job {
    /// Tells an error. The other end may be gone because the conversion failed; then nobody needs to know.
    fn fail(&self, error: ConvertError) {
        let _ = self.sender.send(Err(error));
    }
}

/// What one reader reads before it takes more: a source, or two side by side.
type Turn = Vec<Job>;

/// Neighbours of which both are to be read `by_two` share a turn.
fn turns(jobs: Vec<Job>, by_two: impl Fn(&SourceRef) -> bool) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::with_capacity(jobs.len());
    let mut has_room = false;
    for job in jobs {
        let by_two = by_two(&job.source);
        match turns.last_mut() {
            Some(turn) if has_room && by_two => {
                turn.push(job);
                has_room = false;
            }
            _ => {
                turns.push(vec![job]);
                has_room = by_two;
            }
        }
    }
    turns
}

/// Gives every piece of `items` to `push`, in order, with its sequence and the position of its source; ends early when
/// `push` says so. Text is read into buffers of `spares`.
pub(super) fn feed(
    conversion: &Conversion<'_>,
    items: Vec<FeedItem>,
    spares: &Arc<Spares>,
    mut push: impl FnMut(u64, u32, Piece) -> bool,
) -> Result<(), ConvertError> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut lanes: Vec<Lane> = Vec::with_capacity(items.len());
    for item in items {
        lanes.push(match item {
            FeedItem::Held(_, rows) => Lane::Held(rows),
            FeedItem::Read(source) => {
                let (sender, receiver) = bounded(WAITING_CHUNKS);
                jobs.push(Job { source, sender, at: jobs.len() });
                Lane::Read(receiver)
            }
        });
    }
    let fetch = conversion.store.is_remote().then(|| {
        let sources = jobs.iter().map(|job| job.source.clone()).collect();
        Fetch::new(sources, conversion.resources.memory_bytes)
    });
    let fetch = fetch.as_ref();
    // What is fetched is waited for, and the first of two must not wait for the second.
    let by_two = |source: &SourceRef| {
        fetch.is_none() && SourceReader::gains_by_two(&source.key, source.size, conversion.chunk_bytes())
    };
    let queue = JobQueue::new(turns(jobs, by_two));
    let readers = readers(conversion.resources.threads, conversion.store.is_remote()).min(queue.turns.len());
    std::thread::scope(|scope| {
        // Should this thread panic, the others must not wait for it.
        let _stop = StopOnDrop(&queue, fetch);
        if let Some(fetch) = fetch {
            // One must be had; as many as can be are of use.
            let fetchers = 1..fetch.fetchers();
            scope.spawn(|| fetch.work(conversion));
            fetchers.map_while(|_| Builder::new().spawn_scoped(scope, || fetch.work(conversion)).ok()).for_each(drop);
        }
        for _ in 0..readers {
            scope.spawn(|| {
                while let Some(turn) = queue.next() {
                    let read = || read(conversion, &turn, fetch, spares);
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(read)) {
                        // Where a source was read already, nobody takes it.
                        for job in turn {
                            job.fail(panicked("reading", &panic));
                        }
                    }
                }
            });
        }
        let mut sequence = 0;
        drain(lanes, |at, piece| {
            failpoint::reach("convert::piece");
            sequence += 1;
            push(sequence - 1, at as u32, piece)
        })
    })
}

/// Ends readers and fetchers once nobody takes what they give.
struct StopOnDrop<'a>(&'a JobQueue, Option<&'a Arc<Fetch>>);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
        if let Some(fetch) = self.1 {
            fetch.stop();
        }
    }
}

enum Lane {
    Held(HeldRows),
    Read(Receiver<Message>),
}

/// Takes the lanes in order; dropping those that are left ends their readers.
fn drain(lanes: Vec<Lane>, mut push: impl FnMut(usize, Piece) -> bool) -> Result<(), ConvertError> {
    for (at, lane) in lanes.into_iter().enumerate() {
        match lane {
            Lane::Held(rows) => {
                if !replay(rows, |piece| push(at, piece))? {
                    return Ok(());
                }
            }
            Lane::Read(receiver) => {
                let mut ended = false;
                for message in receiver {
                    let piece = message?;
                    ended = matches!(piece, Piece::End(_));
                    if !push(at, piece) {
                        return Ok(());
                    }
                    // Not when the sender goes: its reader may have another source to read before.
                    if ended {
                        break;
                    }
                }
                if !ended {
                    return Err(internal("a reading thread stopped"));
                }
            }
        }
    }
    Ok(())
}

/// Turns that readers take in order.
struct JobQueue {
    turns: Vec<Mutex<Turn>>,
    next: AtomicUsize,
}

impl JobQueue {
    fn new(turns: Vec<Turn>) -> Self {
        Self { turns: turns.into_iter().map(Mutex::new).collect(), next: AtomicUsize::new(0) }
    }

    fn next(&self) -> Option<Turn> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        Some(std::mem::take(&mut *self.turns.get(at)?.lock()))
    }

    fn stop(&self) {
        self.next.store(self.turns.len(), Ordering::Relaxed);
    }
}

/// A source's bytes as stored, and the tag that they have.
struct Opened {
    body: Box<dyn Read + Send>,
    etag: Option<ETag>,
}

/// Opens a source: what was fetched of it if it is one that is, else the object itself.
fn open(
    conversion: &Conversion<'_>,
    source: &SourceRef,
    fetched: Option<(&Arc<Fetch>, usize)>,
) -> Result<Opened, ConvertError> {
    if let Some((fetch, at)) = fetched.filter(|_| prefetch::is_fetched(source)) {
        return Ok(Opened { body: Box::new(fetch.open(at)?), etag: source.etag.clone() });
    }
    let key = format!("{}{}", pipeline_prefix(conversion.slug), source.key);
    let object = conversion
        .store
        .get(Bucket::Lake, &key, source.etag.as_ref())
        .map_err(|error| opening_failed(&source.key, error))?;
    if object.meta.size != source.size {
        return Err(ConvertError::SourceChanged { key: source.key.clone() });
    }
    Ok(Opened { body: object.body, etag: object.meta.etag })
}

/// A source that is being read.
struct Reading<'a> {
    job: &'a Job,
    reader: SourceReader,
    layout: Arc<SourceLayout>,
    etag: Option<String>,
}

impl<'a> Reading<'a> {
    fn begin(
        conversion: &Conversion<'_>,
        job: &'a Job,
        fetch: Option<&Arc<Fetch>>,
        spares: &Arc<Spares>,
    ) -> Result<Self, ConvertError> {
        let source = &job.source;
        let Opened { body, etag } = open(conversion, source, fetch.map(|fetch| (fetch, job.at)))?;
        let (dialect, chunk_bytes) = (&conversion.mapping.csv, conversion.chunk_bytes());
        let reader = SourceReader::open(&source.key, body, source.size, dialect, chunk_bytes, spares)
            .map_err(|error| reading_failed(&source.key, error))?;
        let layout = source_layout::resolve(
            conversion.mapping,
            &source.key,
            reader.header(),
            reader.width(),
            reader.is_empty(),
        )?;
        Ok(Self { job, reader, layout: Arc::new(layout), etag: etag.map(|ETag(tag)| tag) })
    }

    /// Reads what the first chunk is cut from, to be hashed with that of another.
    fn ahead(mut self) -> Result<Self, ConvertError> {
        self.reader.read_ahead().map_err(|error| reading_failed(&self.job.source.key, error))?;
        Ok(self)
    }

    /// Reads to the end. An error to send means that nobody listens any more.
    fn finish(self, conversion: &Conversion<'_>) -> Result<(), ConvertError> {
        let Self { job: Job { source, sender, .. }, mut reader, layout, etag } = self;
        let mut told = 0;
        loop {
            let chunk = reader.next().map_err(|error| reading_failed(&source.key, error))?;
            let read = reader.stored_bytes();
            conversion.progress.bytes_read(read - told);
            told = read;
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
        };
        let _ = sender.send(Ok(Piece::End(Box::new(end))));
        Ok(())
    }
}

/// Reads the sources of a turn to their ends. What fails fails one of them, in its turn.
fn read(conversion: &Conversion<'_>, turn: &[Job], fetch: Option<&Arc<Fetch>>, spares: &Arc<Spares>) {
    let begin = |job| Reading::begin(conversion, job, fetch, spares);
    let mut readings: Vec<_> = match turn {
        [_, _] => turn.iter().map(|job| begin(job).and_then(Reading::ahead)).collect(),
        _ => turn.iter().map(begin).collect(),
    };
    if let [Ok(first), Ok(second)] = &mut readings[..] {
        first.reader.hash_both(&mut second.reader);
    }
    for (job, reading) in turn.iter().zip(readings) {
        if let Err(error) = reading.and_then(|reading| reading.finish(conversion)) {
            job.fail(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_turn_where_both_are_to_and_all_keep_their_order() {
        let jobs = |keys: &str| -> Vec<Job> {
            let source = |key: char| SourceRef { key: key.into(), etag: None, size: 1 };
            keys.chars().map(|key| Job { source: source(key), sender: bounded(1).0, at: 0 }).collect()
        };
        for (keys, expected) in
            [("", ""), ("a", "a"), ("abcde", "ab cd e"), ("aXbcdX", "a X bc d X"), ("XYab", "X Y ab")]
        {
            let turns = turns(jobs(keys), |source| source.key.chars().all(char::is_lowercase));
            let keys = |turn: &Turn| turn.iter().map(|job| job.source.key.as_str()).collect::<String>();
            assert_eq!(turns.iter().map(keys).collect::<Vec<_>>().join(" "), expected);
        }
    }
}
