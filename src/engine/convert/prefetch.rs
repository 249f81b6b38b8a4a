//! Prefetches sources of a remote store ahead of their readers with many parallel requests: small sources whole, larger
//! ones in parts.
//!
//! Invariant: at most `prefetch_bytes_max` bytes are in flight or unread, and parts are started in reading order, so
//! the reader of the first unfinished source can always continue.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::conversion::{Conversion, SourceRef};
use super::error::{ConvertError, internal, opening_failed, panicked};
use super::source_list::SourceList;
use crate::domain::layout::pipeline_prefix;
use crate::ports::store::{BodyChanged, Bucket, StoreError};

/// Parallel requests, independent of the threads: each waits for the network more than it computes.
pub(super) const PREFETCH_THREADS_MAX: usize = 64;
/// Bytes of one request.
const PART_BYTES_MIN: u64 = 512 << 10;
const PART_BYTES_MAX: u64 = 8 << 20;
/// Full-size parts that may be held: enough that the next ones arrive while one is read.
const PREFETCHED_PARTS: u64 = 8;
/// The fraction (1/n) of a run's memory for prefetching, and its bounds.
const PREFETCH_MEMORY_SHARE: u64 = 16;
const PREFETCH_BYTES_MIN: u64 = PREFETCHED_PARTS * PART_BYTES_MIN;
const PREFETCH_BYTES_MAX: u64 = PREFETCHED_PARTS * PART_BYTES_MAX;

/// Bytes in flight or unread in a run with `memory_bytes`.
pub(super) fn prefetch_bytes_max(memory_bytes: u64) -> u64 {
    (memory_bytes / PREFETCH_MEMORY_SHARE).clamp(PREFETCH_BYTES_MIN, PREFETCH_BYTES_MAX)
}

/// Prefetches the sources of a conversion; sources are addressed by their index.
pub(super) struct Prefetcher {
    sources: Arc<SourceList>,
    arrived: Vec<SourceParts>,
    part_bytes: u64,
    prefetch_bytes_max: u64,
    budget: Arc<PrefetchBudget>,
    stopped: AtomicBool,
}

/// Limits the bytes in flight or unread.
#[derive(Default)]
struct PrefetchBudget {
    state: Mutex<BudgetState>,
    room: Condvar,
}

impl PrefetchBudget {
    fn wait_for_room<'s>(&self, mut state: MutexGuard<'s, BudgetState>) -> MutexGuard<'s, BudgetState> {
        state.waiting += 1;
        self.room.wait(&mut state);
        state.waiting -= 1;
        state
    }
}

#[derive(Default)]
struct BudgetState {
    /// The source and offset of the part to start next.
    next: (usize, u64),
    /// Bytes in flight or unread.
    reserved_bytes: u64,
    waiting: usize,
}

/// The arrived parts of one source, by offset.
#[derive(Default)]
struct SourceParts {
    parts: Mutex<BTreeMap<u64, Result<FetchedPart, ConvertError>>>,
    changed: Condvar,
}

/// A part that arrived.
struct FetchedPart {
    bytes: Vec<u8>,
    _reservation: Reservation,
}

/// A started part: its source, range and reservation.
type StartedPart = (usize, Range<u64>, Reservation);

enum NextPart {
    Started(StartedPart),
    NoRoom,
    Exhausted,
}

/// Reserved bytes, released when dropped.
struct Reservation {
    budget: Arc<PrefetchBudget>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        state.reserved_bytes -= self.bytes;
        if state.waiting > 0 {
            self.budget.room.notify_one();
        }
    }
}

impl Prefetcher {
    /// `sources` in reading order.
    pub(super) fn new(sources: Arc<SourceList>, memory_bytes: u64) -> Arc<Self> {
        let prefetch_bytes_max = prefetch_bytes_max(memory_bytes);
        let arrived = (0..sources.len()).map(|_| SourceParts::default()).collect();
        let (part_bytes, stopped) = (prefetch_bytes_max / PREFETCHED_PARTS, AtomicBool::new(false));
        Arc::new(Self { sources, arrived, part_bytes, prefetch_bytes_max, budget: Arc::default(), stopped })
    }

    /// The number of threads to run.
    pub(super) fn threads(&self) -> usize {
        let parts = self.sources.iter().map(|s| self.parts(&s)).fold(0u64, u64::saturating_add);
        usize::try_from(parts).unwrap_or(usize::MAX).min(PREFETCH_THREADS_MAX)
    }

    /// An empty source has one part too, to detect that it is no longer empty.
    fn parts(&self, source: &SourceRef) -> u64 {
        if is_prefetched(source) { source.size.div_ceil(self.part_bytes).max(1) } else { 0 }
    }

    /// The loop of a thread: fetches parts until all are started or prefetching is stopped.
    pub(super) fn run(&self, conversion: &Conversion<'_>) {
        while let Some((source, range, reservation)) = self.start_next() {
            let get = || self.get(conversion, source, &range);
            let panicked = |panic| Err(panicked("fetching", &panic));
            let got = catch_unwind(AssertUnwindSafe(get)).unwrap_or_else(panicked);
            let parts_of = &self.arrived[source];
            parts_of
                .parts
                .lock()
                .insert(range.start, got.map(|bytes| FetchedPart { bytes, _reservation: reservation }));
            parts_of.changed.notify_one();
        }
    }

    /// Starts the next part, waiting for room.
    fn start_next(&self) -> Option<StartedPart> {
        let mut state = self.budget.state.lock();
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            match self.next(&mut state) {
                NextPart::NoRoom => state = self.budget.wait_for_room(state),
                NextPart::Exhausted => return None,
                NextPart::Started(started) => {
                    if state.waiting > 0 {
                        // There may be room for another part.
                        self.budget.room.notify_one();
                    }
                    return Some(started);
                }
            }
        }
    }

    fn next(&self, state: &mut BudgetState) -> NextPart {
        while let Some(source) = self.sources.get(state.next.0) {
            let (at, start) = state.next;
            if !is_prefetched(&source) {
                state.next = (at + 1, 0);
                continue;
            }
            let end = source.size.min(start + self.part_bytes);
            let bytes = end - start;
            if state.reserved_bytes > 0 && state.reserved_bytes + bytes > self.prefetch_bytes_max {
                return NextPart::NoRoom;
            }
            state.reserved_bytes += bytes;
            state.next = if end == source.size { (at + 1, 0) } else { (at, end) };
            return NextPart::Started((at, start..end, Reservation { budget: Arc::clone(&self.budget), bytes }));
        }
        NextPart::Exhausted
    }

    fn get(&self, conversion: &Conversion<'_>, at: usize, range: &Range<u64>) -> Result<Vec<u8>, ConvertError> {
        let source = self.sources.get(at).ok_or_else(|| internal("a source was fetched that does not exist"))?;
        let key = format!("{}{}", pipeline_prefix(conversion.slug), source.key);
        // Asks for one byte more at the end, to detect a source that grew.
        let end = if range.end == source.size { range.end + 1 } else { range.end };
        let bytes = conversion
            .store
            .get_range(Bucket::Lake, &key, range.start..end, source.etag.as_ref())
            .map_err(|error| fetching_failed(&source.key, error))?;
        if bytes.len() as u64 != range.end - range.start {
            return Err(ConvertError::SourceChanged { key: source.key.clone() });
        }
        Ok(bytes)
    }

    /// Opens a source once its first part has arrived.
    ///
    /// # Errors
    /// Why that part could not be fetched.
    pub(super) fn open(self: &Arc<Self>, source: usize, size: u64) -> Result<PrefetchedBody, ConvertError> {
        let first = self.wait_for_part(source, 0)?;
        let next = first.bytes.len() as u64;
        Ok(PrefetchedBody { prefetcher: Arc::clone(self), source, size, part: Some(first), read: 0, next })
    }

    /// Waits for a part.
    fn wait_for_part(&self, source: usize, start: u64) -> Result<FetchedPart, ConvertError> {
        let parts_of = &self.arrived[source];
        let mut parts = parts_of.parts.lock();
        loop {
            if let Some(part) = parts.remove(&start) {
                return part;
            }
            if self.stopped.load(Ordering::Relaxed) {
                return Err(internal("fetching was stopped"));
            }
            parts_of.changed.wait(&mut parts);
        }
    }

    /// Stops threads and readers.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Taking the lock makes sure that threads about to wait are waiting when they are notified.
        drop(self.budget.state.lock());
        self.budget.room.notify_all();
        for parts_of in &self.arrived {
            drop(parts_of.parts.lock());
            parts_of.changed.notify_all();
        }
    }
}

/// Only sources with an ETag are fetched in parts, since the ETag proves that all parts are of one version.
pub(super) fn is_prefetched(source: &SourceRef) -> bool {
    source.etag.is_some()
}

fn fetching_failed(key: &str, error: StoreError) -> ConvertError {
    match error {
        StoreError::Transient { source, .. } if BodyChanged::is_in(&source) => {
            ConvertError::SourceChanged { key: key.to_owned() }
        }
        error => opening_failed(key, error),
    }
}

/// Reads a source part by part. A failed part is an `io::Error` with the [`ConvertError`] inside.
pub(super) struct PrefetchedBody {
    prefetcher: Arc<Prefetcher>,
    source: usize,
    size: u64,
    part: Option<FetchedPart>,
    /// Bytes read of the part.
    read: usize,
    /// The offset of the next part.
    next: u64,
}

impl Read for PrefetchedBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(part) = &self.part {
                let left = part.bytes.get(self.read..).unwrap_or_default();
                if !left.is_empty() {
                    let read = left.len().min(out.len());
                    out[..read].copy_from_slice(&left[..read]);
                    self.read += read;
                    return Ok(read);
                }
            }
            // Releases the reservation for later parts.
            self.part = None;
            self.read = 0;
            if self.next >= self.size {
                return Ok(0);
            }
            let part = self.prefetcher.wait_for_part(self.source, self.next).map_err(io::Error::other)?;
            self.next += part.bytes.len() as u64;
            self.part = Some(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::store::ETag;

    fn source(key: &str, size: u64) -> SourceRef {
        SourceRef { key: key.to_owned(), etag: Some(ETag("t".to_owned())), size }
    }

    fn list(sources: &[SourceRef]) -> Arc<SourceList> {
        Arc::new(sources.iter().collect())
    }

    /// Started parts as source index and range, and their reservations.
    type StartedParts = (Vec<(usize, Range<u64>)>, Vec<Reservation>);

    /// Starts parts until there is no room or no part left; returns them, and whether none is left.
    fn start_all(prefetcher: &Prefetcher) -> (StartedParts, bool) {
        let mut state = prefetcher.budget.state.lock();
        let (mut started, mut all) = (Vec::new(), Vec::new());
        loop {
            match prefetcher.next(&mut state) {
                NextPart::Started((at, range, reservation)) => {
                    started.push((at, range));
                    all.push(reservation);
                }
                NextPart::NoRoom => return ((started, all), false),
                NextPart::Exhausted => return ((started, all), true),
            }
        }
    }

    #[test]
    fn parts_start_in_order_within_the_budget() {
        const MEMORY: u64 = 512 << 20;
        let part = prefetch_bytes_max(MEMORY) / PREFETCHED_PARTS;
        let untagged = SourceRef { etag: None, ..source("b", 7) };
        let sources = vec![source("a", part * 5 / 2), untagged, source("c", 0), source("d", part * 100)];
        let prefetcher = Prefetcher::new(list(&sources), MEMORY);
        assert_eq!(prefetcher.threads(), PREFETCH_THREADS_MAX);
        let ((started, mut reservation), ended) = start_all(&prefetcher);
        assert_eq!(started[..4], [(0, 0..part), (0, part..part * 2), (0, part * 2..part * 5 / 2), (2, 0..0)]);
        assert_eq!(started[4..], [0, 1, 2, 3, 4].map(|at| (3, part * at..part * (at + 1))));
        assert!(!ended);
        assert_eq!(reservation.iter().map(|reservation| reservation.bytes).sum::<u64>(), part * 15 / 2);
        // Releases room for half a part, then for a whole one, which lets the next part start.
        drop(reservation.remove(2));
        let ((started, more), ended) = start_all(&prefetcher);
        assert_eq!((started, ended), (vec![(3, part * 5..part * 6)], false));
        drop((reservation, more));
        assert_eq!(prefetcher.budget.state.lock().reserved_bytes, 0);
    }

    #[test]
    fn prefetch_budget_is_a_bounded_share_of_memory() {
        for (memory, ahead) in [(64 << 20, 4 << 20), (512 << 20, 32 << 20), (8 << 30, 64 << 20)] {
            assert_eq!(prefetch_bytes_max(memory), ahead);
        }
    }

    #[test]
    fn threads_do_not_exceed_parts() {
        let threads = |sources: Vec<SourceRef>| Prefetcher::new(list(&sources), 64 << 20).threads();
        assert_eq!(threads(vec![source("a", 10), source("b", 0)]), 2);
        assert_eq!(threads(vec![source("a", PART_BYTES_MIN * 3 + 1)]), 4);
        assert_eq!(threads(vec![SourceRef { etag: None, ..source("a", 10) }]), 0);
    }
}
