//! The threads of a conversion: they encode rows that are ready, and otherwise parse.
//!
//! Invariant: encoding goes before parsing, so parsed rows never pile up; chunks are collected in order, regardless of
//! the thread that parsed them.

use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};

use super::error::{ConvertError, internal};
use super::partition_encoder::{EncodeTask, Work};

/// A task for a thread.
pub(super) enum PoolTask<P> {
    Encode(EncodeTask),
    Parse(u64, P),
}

struct PoolState<P, A> {
    encode: VecDeque<EncodeTask>,
    parse: VecDeque<(u64, P)>,
    /// Outcomes that wait for earlier ones.
    ready: BTreeMap<u64, A>,
    next_ready: u64,
    collecting: bool,
    /// Tasks in progress.
    busy: usize,
    /// Chunks pushed but not yet collected.
    in_flight: usize,
    /// Threads waiting in [`WorkerPool::take_encode_unless`].
    waiting_for_progress: usize,
    failed: Option<ConvertError>,
    stopped: bool,
}

/// The queues between the feeding thread and the workers.
pub(super) struct WorkerPool<P, A> {
    state: Mutex<PoolState<P, A>>,
    changed: Condvar,
    in_flight_max: usize,
}

impl<P, A> WorkerPool<P, A> {
    pub(super) fn new(in_flight_max: usize) -> Self {
        let state = PoolState {
            encode: VecDeque::new(),
            parse: VecDeque::new(),
            ready: BTreeMap::new(),
            next_ready: 0,
            collecting: false,
            busy: 0,
            in_flight: 0,
            waiting_for_progress: 0,
            failed: None,
            stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), in_flight_max }
    }

    /// Queues chunk `sequence`, waiting for room. Returns false once the conversion has failed.
    pub(super) fn push(&self, sequence: u64, chunk: P) -> bool {
        let mut state = self.state.lock();
        while state.in_flight >= self.in_flight_max && !state.stopped {
            self.changed.wait(&mut state);
        }
        if state.stopped {
            return false;
        }
        state.in_flight += 1;
        state.parse.push_back((sequence, chunk));
        drop(state);
        self.changed.notify_all();
        true
    }

    pub(super) fn schedule(&self, tasks: impl IntoIterator<Item = EncodeTask>) {
        let mut state = self.state.lock();
        let before = state.encode.len();
        for task in tasks {
            match task.work {
                Work::Columns(_) => state.encode.push_back(task),
                // Writing releases memory.
                Work::RowGroups => state.encode.push_front(task),
            }
        }
        if state.encode.len() > before {
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Waits for a task; `None` once the pool is stopped.
    pub(super) fn take(&self) -> Option<PoolTask<P>> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(task) = state.encode.pop_front() {
                state.busy += 1;
                return Some(PoolTask::Encode(task));
            }
            if let Some((sequence, chunk)) = state.parse.pop_front() {
                state.busy += 1;
                return Some(PoolTask::Parse(sequence, chunk));
            }
            self.changed.wait(&mut state);
        }
    }

    /// Waits for an encode task or for `condition`, whichever is first; `None` if `condition` holds. `condition` is
    /// evaluated under the pool's lock, after each completed task and each [`WorkerPool::progressed`].
    ///
    /// # Errors
    /// If the pool is stopped.
    pub(super) fn take_encode_unless(&self, condition: impl Fn() -> bool) -> Result<Option<EncodeTask>, ConvertError> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Err(internal("a conversion thread stopped"));
            }
            if condition() {
                return Ok(None);
            }
            if let Some(task) = state.encode.pop_front() {
                state.busy += 1;
                return Ok(Some(task));
            }
            state.waiting_for_progress += 1;
            self.changed.wait(&mut state);
            state.waiting_for_progress -= 1;
        }
    }

    /// Wakes threads in [`WorkerPool::take_encode_unless`], while a task is in progress.
    pub(super) fn progressed(&self) {
        if self.state.lock().waiting_for_progress > 0 {
            self.changed.notify_all();
        }
    }

    /// Marks a task as completed.
    pub(super) fn done(&self) {
        self.state.lock().busy -= 1;
        self.changed.notify_all();
    }

    /// Delivers the outcome of chunk `sequence`. Returns true if the caller must collect outcomes with
    /// [`WorkerPool::next_ready`].
    pub(super) fn deliver(&self, sequence: u64, outcome: A) -> bool {
        let mut state = self.state.lock();
        state.ready.insert(sequence, outcome);
        !std::mem::replace(&mut state.collecting, true)
    }

    /// The next outcome in order; at `None` the caller stops collecting.
    pub(super) fn next_ready(&self) -> Option<A> {
        let mut state = self.state.lock();
        let next = state.next_ready;
        match state.ready.remove(&next) {
            Some(outcome) => {
                state.next_ready += 1;
                Some(outcome)
            }
            None => {
                state.collecting = false;
                None
            }
        }
    }

    /// Marks an outcome as collected, which makes room for a chunk.
    pub(super) fn collected(&self) {
        let mut state = self.state.lock();
        state.in_flight -= 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Stops the pool; keeps the first error.
    pub(super) fn fail(&self, error: ConvertError) {
        let mut state = self.state.lock();
        state.failed.get_or_insert(error);
        state.stopped = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until everything pushed is collected and encoded.
    ///
    /// # Errors
    /// The first error of any thread.
    pub(super) fn drain(&self) -> Result<(), ConvertError> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Err(state.failed.take().unwrap_or_else(|| internal("a conversion thread stopped")));
            }
            if state.in_flight == 0 && state.busy == 0 && state.encode.is_empty() {
                return Ok(());
            }
            self.changed.wait(&mut state);
        }
    }

    /// The first error of any thread, if one failed.
    pub(super) fn take_failure(&self) -> Option<ConvertError> {
        self.state.lock().failed.take()
    }

    /// Stops the threads.
    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }
}
