//! What a worker counts, for `/health` and `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::breaker::Breakers;
use super::schedule::LoggedWindows;
use crate::domain::job::{Progress, RunErrorCode};
use crate::observability::Histogram;
use crate::runtime::Watchdog;

/// Upper bounds of the buckets of run durations, in seconds.
pub const RUN_BOUNDS_S: [f64; 8] = [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0];

/// Counters since the start, and what is going on now.
#[derive(Debug)]
pub struct State {
    in_flight: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    deferred: AtomicU64,
    retried: AtomicU64,
    refunded: AtomicU64,
    abandoned: AtomicU64,
    lost: AtomicU64,
    dead: AtomicU64,
    fired: AtomicU64,
    events_accepted: AtomicU64,
    events_ignored: AtomicU64,
    /// By the place of their code in [`RunErrorCode::ALL`].
    failures: [AtomicU64; RunErrorCode::ALL.len()],
    rows_read: AtomicU64,
    rows_written: AtomicU64,
    rows_rejected: AtomicU64,
    bytes_read: AtomicU64,
    /// Of attempts, whatever their end.
    pub run_durations: Histogram<{ RUN_BOUNDS_S.len() }>,
    /// Of the threads that claim, serve, and keep locks.
    pub watchdog: Arc<Watchdog>,
    /// Of what every job needs.
    pub breakers: Breakers,
    pub(super) windows: LoggedWindows,
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
    /// Attempts that failed for something that every job needs, and did not count.
    pub refunded: u64,
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
    /// Of attempts, whatever their end.
    pub rows_read: u64,
    /// Of sources, as they lie in the lake.
    pub bytes_read: u64,
    /// Of jobs that completed.
    pub rows_written: u64,
    pub rows_rejected: u64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Completed,
    Failed,
    Deferred,
    Retried,
    Refunded,
    Abandoned,
    Lost,
    Dead,
    Fired,
}

impl Default for State {
    fn default() -> Self {
        let [in_flight, completed, failed, deferred, retried, refunded, abandoned, lost, dead, fired] =
            [const { AtomicU64::new(0) }; 10];
        let [events_accepted, events_ignored] = [const { AtomicU64::new(0) }; 2];
        let [rows_read, rows_written, rows_rejected, bytes_read] = [const { AtomicU64::new(0) }; 4];
        Self {
            in_flight,
            completed,
            failed,
            deferred,
            retried,
            refunded,
            abandoned,
            lost,
            dead,
            fired,
            events_accepted,
            events_ignored,
            failures: Default::default(),
            rows_read,
            rows_written,
            rows_rejected,
            bytes_read,
            run_durations: Histogram::new(&RUN_BOUNDS_S),
            watchdog: Arc::default(),
            breakers: Breakers::default(),
            windows: LoggedWindows::default(),
        }
    }
}

impl State {
    pub(super) fn count(&self, what: Happened) {
        let counter = match what {
            Happened::Completed => &self.completed,
            Happened::Failed => &self.failed,
            Happened::Deferred => &self.deferred,
            Happened::Retried => &self.retried,
            Happened::Refunded => &self.refunded,
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

    /// Counts an attempt and what it read.
    pub(super) fn count_run(&self, took: Duration, progress: &Progress) {
        self.run_durations.observe(took);
        self.rows_read.fetch_add(progress.rows_read, Ordering::Relaxed);
        self.bytes_read.fetch_add(progress.bytes_done, Ordering::Relaxed);
    }

    /// Counts the rows of a job that completed.
    pub(super) fn count_rows(&self, written: u64, rejected: u64) {
        self.rows_written.fetch_add(written, Ordering::Relaxed);
        self.rows_rejected.fetch_add(rejected, Ordering::Relaxed);
    }

    /// Counts why a job failed.
    pub(super) fn count_failure(&self, code: RunErrorCode) {
        self.failures[code as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Jobs that failed here, by why.
    pub fn failures(&self) -> impl Iterator<Item = (RunErrorCode, u64)> {
        let counts = self.failures.iter().map(|count| count.load(Ordering::Relaxed));
        RunErrorCode::ALL.into_iter().zip(counts)
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
            refunded: get(&self.refunded),
            abandoned: get(&self.abandoned),
            lost: get(&self.lost),
            dead: get(&self.dead),
            fired: get(&self.fired),
            events_accepted: get(&self.events_accepted),
            events_ignored: get(&self.events_ignored),
            rows_read: get(&self.rows_read),
            bytes_read: get(&self.bytes_read),
            rows_written: get(&self.rows_written),
            rows_rejected: get(&self.rows_rejected),
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
