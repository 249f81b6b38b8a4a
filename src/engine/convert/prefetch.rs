//! Gets sources of a store that is far away ahead of those who read them, many at a time: small ones whole, larger ones
//! in parts.
//!
//! Invariant: what is under way or waits to be read has at most `ahead_bytes` bytes (or is one part), and is begun in
//! the order in which it will be read. So whoever reads the first source that isn't done can always go on.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::conversion::{Conversion, SourceRef};
use super::error::{ConvertError, internal, opening_failed, panicked};
use crate::domain::layout::pipeline_prefix;
use crate::ports::store::{BodyChanged, Bucket, StoreError};

/// Requests that are under way at once, whatever the threads: each waits for the network more than it computes.
pub(super) const FETCHERS_MAX: usize = 64;
/// Bytes of one request.
const PART_BYTES_MIN: u64 = 512 << 10;
const PART_BYTES_MAX: u64 = 8 << 20;
/// Parts that may wait if all are whole: enough that the next come while one is read.
const PARTS_AHEAD: u64 = 8;
/// The share of a run's memory that may be under way or wait, and its bounds.
const AHEAD_MEMORY_SHARE: u64 = 16;
const AHEAD_BYTES_MIN: u64 = PARTS_AHEAD * PART_BYTES_MIN;
const AHEAD_BYTES_MAX: u64 = PARTS_AHEAD * PART_BYTES_MAX;

/// What may be under way or wait in a run with so much memory.
pub(super) fn ahead_bytes(memory_bytes: u64) -> u64 {
    (memory_bytes / AHEAD_MEMORY_SHARE).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX)
}

/// The sources of a conversion that are fetched, by their place among those that are read.
pub(super) struct Fetch {
    sources: Vec<SourceRef>,
    slots: Vec<Slot>,
    part_bytes: u64,
    ahead_bytes: u64,
    ledger: Arc<Ledger>,
    stopped: AtomicBool,
}

/// What is under way or waits.
#[derive(Default)]
struct Ledger {
    state: Mutex<State>,
    room: Condvar,
}

impl Ledger {
    fn wait_for_room<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.waiting += 1;
        self.room.wait(&mut state);
        state.waiting -= 1;
        state
    }
}

#[derive(Default)]
struct State {
    /// The part that is begun next: its source, and its start.
    next: (usize, u64),
    /// Bytes under way or waiting.
    held_bytes: u64,
    waiting: usize,
}

/// The parts of one source that arrived, by their start.
#[derive(Default)]
struct Slot {
    parts: Mutex<BTreeMap<u64, Result<Part, ConvertError>>>,
    arrived: Condvar,
}

/// A part that arrived.
struct Part {
    bytes: Vec<u8>,
    _held: Held,
}

/// A part that is begun: its source, its bytes there, and its room.
type Begun = (usize, Range<u64>, Held);

enum Next {
    Begun(Begun),
    NoRoom,
    NoMore,
}

/// A share of the bytes that may be held; given back when it is dropped.
struct Held {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.ledger.state.lock();
        state.held_bytes -= self.bytes;
        if state.waiting > 0 {
            self.ledger.room.notify_one();
        }
    }
}

impl Fetch {
    /// `sources` in the order in which they are read.
    pub(super) fn new(sources: Vec<SourceRef>, memory_bytes: u64) -> Arc<Self> {
        let ahead_bytes = ahead_bytes(memory_bytes);
        let slots = sources.iter().map(|_| Slot::default()).collect();
        let (part_bytes, stopped) = (ahead_bytes / PARTS_AHEAD, AtomicBool::new(false));
        Arc::new(Self { sources, slots, part_bytes, ahead_bytes, ledger: Arc::default(), stopped })
    }

    /// Threads that are of use.
    pub(super) fn fetchers(&self) -> usize {
        let parts = self.sources.iter().map(|s| self.parts(s)).fold(0u64, u64::saturating_add);
        usize::try_from(parts).unwrap_or(usize::MAX).min(FETCHERS_MAX)
    }

    /// An empty source has a part too: somebody must find out whether it is still empty.
    fn parts(&self, source: &SourceRef) -> u64 {
        if is_fetched(source) { source.size.div_ceil(self.part_bytes).max(1) } else { 0 }
    }

    /// One thread's life: gets parts until all are begun or nobody wants more.
    pub(super) fn work(&self, conversion: &Conversion<'_>) {
        while let Some((source, range, held)) = self.begin() {
            let get = || self.get(conversion, source, &range);
            let panicked = |panic| Err(panicked("fetching", &panic));
            let got = catch_unwind(AssertUnwindSafe(get)).unwrap_or_else(panicked);
            let slot = &self.slots[source];
            slot.parts.lock().insert(range.start, got.map(|bytes| Part { bytes, _held: held }));
            slot.arrived.notify_one();
        }
    }

    /// The next part, once there is room for it.
    fn begin(&self) -> Option<Begun> {
        let mut state = self.ledger.state.lock();
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return None;
            }
            match self.next(&mut state) {
                Next::NoRoom => state = self.ledger.wait_for_room(state),
                Next::NoMore => return None,
                Next::Begun(begun) => {
                    if state.waiting > 0 {
                        // There may be room for another one too.
                        self.ledger.room.notify_one();
                    }
                    return Some(begun);
                }
            }
        }
    }

    fn next(&self, state: &mut State) -> Next {
        while let Some(source) = self.sources.get(state.next.0) {
            let (at, start) = state.next;
            if !is_fetched(source) {
                state.next = (at + 1, 0);
                continue;
            }
            let end = source.size.min(start + self.part_bytes);
            let bytes = end - start;
            if state.held_bytes > 0 && state.held_bytes + bytes > self.ahead_bytes {
                return Next::NoRoom;
            }
            state.held_bytes += bytes;
            state.next = if end == source.size { (at + 1, 0) } else { (at, end) };
            return Next::Begun((at, start..end, Held { ledger: Arc::clone(&self.ledger), bytes }));
        }
        Next::NoMore
    }

    fn get(&self, conversion: &Conversion<'_>, at: usize, range: &Range<u64>) -> Result<Vec<u8>, ConvertError> {
        let source = &self.sources[at];
        let key = format!("{}{}", pipeline_prefix(conversion.slug), source.key);
        // The last one is asked for more than there should be, so that a source that grew is found out.
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

    /// The bytes of a source, after its first part has arrived.
    ///
    /// # Errors
    /// Why that part could not be got.
    pub(super) fn open(self: &Arc<Self>, source: usize) -> Result<Body, ConvertError> {
        let first = self.take(source, 0)?;
        let next = first.bytes.len() as u64;
        Ok(Body { fetch: Arc::clone(self), source, part: Some(first), read: 0, next })
    }

    /// Waits for a part.
    fn take(&self, source: usize, start: u64) -> Result<Part, ConvertError> {
        let slot = &self.slots[source];
        let mut parts = slot.parts.lock();
        loop {
            if let Some(part) = parts.remove(&start) {
                return part;
            }
            if self.stopped.load(Ordering::Relaxed) {
                return Err(internal("fetching was stopped"));
            }
            slot.arrived.wait(&mut parts);
        }
    }

    /// Lets fetchers and readers go.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Who was about to wait when that was set has to be waiting before it is woken.
        drop(self.ledger.state.lock());
        self.ledger.room.notify_all();
        for slot in &self.slots {
            drop(slot.parts.lock());
            slot.arrived.notify_all();
        }
    }
}

/// Whether a source is got by parts: these are of one version only if its tag is known.
pub(super) fn is_fetched(source: &SourceRef) -> bool {
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

/// The bytes of a source, part after part. A part that could not be got is an `io::Error` with the [`ConvertError`]
/// inside.
pub(super) struct Body {
    fetch: Arc<Fetch>,
    source: usize,
    part: Option<Part>,
    /// Of the part.
    read: usize,
    /// Where the next part starts.
    next: u64,
}

impl Read for Body {
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
            // Its room goes to those that come after.
            self.part = None;
            self.read = 0;
            if self.next >= self.fetch.sources[self.source].size {
                return Ok(0);
            }
            let part = self.fetch.take(self.source, self.next).map_err(io::Error::other)?;
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

    /// Parts by their source, and their room.
    type BegunParts = (Vec<(usize, Range<u64>)>, Vec<Held>);

    /// What is begun until there is no room or no more; whether there is no more.
    fn begin_all(fetch: &Fetch) -> (BegunParts, bool) {
        let mut state = fetch.ledger.state.lock();
        let (mut begun, mut all) = (Vec::new(), Vec::new());
        loop {
            match fetch.next(&mut state) {
                Next::Begun((at, range, held)) => {
                    begun.push((at, range));
                    all.push(held);
                }
                Next::NoRoom => return ((begun, all), false),
                Next::NoMore => return ((begun, all), true),
            }
        }
    }

    #[test]
    fn parts_are_begun_in_their_order_and_as_far_as_there_is_room() {
        const MEMORY: u64 = 512 << 20;
        let part = ahead_bytes(MEMORY) / PARTS_AHEAD;
        let untagged = SourceRef { etag: None, ..source("b", 7) };
        let sources = vec![source("a", part * 5 / 2), untagged, source("c", 0), source("d", part * 100)];
        let fetch = Fetch::new(sources, MEMORY);
        assert_eq!(fetch.fetchers(), FETCHERS_MAX);
        let ((begun, mut held), ended) = begin_all(&fetch);
        assert_eq!(begun[..4], [(0, 0..part), (0, part..part * 2), (0, part * 2..part * 5 / 2), (2, 0..0)]);
        assert_eq!(begun[4..], [0, 1, 2, 3, 4].map(|at| (3, part * at..part * (at + 1))));
        assert!(!ended);
        assert_eq!(held.iter().map(|held| held.bytes).sum::<u64>(), part * 15 / 2);
        // Half a part's room, and then a whole one's, is for the part after the last that was begun.
        drop(held.remove(2));
        let ((begun, more), ended) = begin_all(&fetch);
        assert_eq!((begun, ended), (vec![(3, part * 5..part * 6)], false));
        drop((held, more));
        assert_eq!(fetch.ledger.state.lock().held_bytes, 0);
    }

    #[test]
    fn a_small_part_of_the_memory_is_for_what_is_ahead() {
        for (memory, ahead) in [(64 << 20, 4 << 20), (512 << 20, 32 << 20), (8 << 30, 64 << 20)] {
            assert_eq!(ahead_bytes(memory), ahead);
        }
    }

    #[test]
    fn there_are_no_more_fetchers_than_parts() {
        let fetchers = |sources| Fetch::new(sources, 64 << 20).fetchers();
        assert_eq!(fetchers(vec![source("a", 10), source("b", 0)]), 2);
        assert_eq!(fetchers(vec![source("a", PART_BYTES_MIN * 3 + 1)]), 4);
        assert_eq!(fetchers(vec![SourceRef { etag: None, ..source("a", 10) }]), 0);
    }
}
