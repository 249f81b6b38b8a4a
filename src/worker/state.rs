//! What a worker counts, for `/health` and `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ports::LifeSigns;

/// Counters since the start, and what is going on now.
#[derive(Debug, Default)]
pub struct State {
    in_flight: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    deferred: AtomicU64,
    retried: AtomicU64,
    abandoned: AtomicU64,
    lost: AtomicU64,
    dead: AtomicU64,
    fired: AtomicU64,
    events_accepted: AtomicU64,
    events_ignored: AtomicU64,
    run_ms: AtomicU64,
    rows_read: AtomicU64,
    /// Of the threads that claim, serve, and keep locks.
    pub life: LifeSigns,
}

/// One look at [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Jobs that run now.
    pub in_flight: u64,
    pub completed: u64,
    pub failed: u64,
    /// Jobs that found their pipeline's lock taken.
    pub deferred: u64,
    /// Attempts that failed and will be followed by another.
    pub retried: u64,
    /// Attempts that were given back because the worker ended.
    pub abandoned: u64,
    /// Attempts that lost their lease.
    pub lost: u64,
    /// Entries that no pipeline could own.
    pub dead: u64,
    /// Jobs made of debounce windows.
    pub fired: u64,
    /// Records of events.
    pub events_accepted: u64,
    pub events_ignored: u64,
    /// Time of all runs, in milliseconds.
    pub run_ms: u64,
    pub rows_read: u64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Completed,
    Failed,
    Deferred,
    Retried,
    Abandoned,
    Lost,
    Dead,
    Fired,
}

impl State {
    pub(super) fn count(&self, what: Happened) {
        let counter = match what {
            Happened::Completed => &self.completed,
            Happened::Failed => &self.failed,
            Happened::Deferred => &self.deferred,
            Happened::Retried => &self.retried,
            Happened::Abandoned => &self.abandoned,
            Happened::Lost => &self.lost,
            Happened::Dead => &self.dead,
            Happened::Fired => &self.fired,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_events(&self, accepted: u64, ignored: u64) {
        self.events_accepted.fetch_add(accepted, Ordering::Relaxed);
        self.events_ignored.fetch_add(ignored, Ordering::Relaxed);
    }

    pub(super) fn count_run(&self, ms: u64, rows_read: u64) {
        self.run_ms.fetch_add(ms, Ordering::Relaxed);
        self.rows_read.fetch_add(rows_read, Ordering::Relaxed);
    }

    /// Counts a job as in flight until the guard is dropped.
    pub(super) fn enter(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }

    pub fn counts(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            in_flight: get(&self.in_flight),
            completed: get(&self.completed),
            failed: get(&self.failed),
            deferred: get(&self.deferred),
            retried: get(&self.retried),
            abandoned: get(&self.abandoned),
            lost: get(&self.lost),
            dead: get(&self.dead),
            fired: get(&self.fired),
            events_accepted: get(&self.events_accepted),
            events_ignored: get(&self.events_ignored),
            run_ms: get(&self.run_ms),
            rows_read: get(&self.rows_read),
        }
    }
}

/// A job in flight.
#[derive(Debug)]
pub(super) struct InFlight<'a>(&'a State);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
