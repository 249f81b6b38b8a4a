//! Counters of a worker, for `/health` and `/metrics`, and the debounce windows that it has logged.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::breaker::Breakers;
use super::event_queue_state::EventQueueState;
use crate::domain::job::{Progress, RunErrorCode};
use crate::domain::name::Slug;
use crate::observability::Histogram;
use crate::runtime::{Watchdog, rfc3339};

/// Upper bounds of the buckets of run durations, in seconds.
pub const RUN_BOUNDS_S: [f64; 8] = [1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0];

/// Pipelines whose logged window is kept; beyond it all are dropped.
const LOGGED_WINDOWS_MAX: usize = 10_000;

/// Counters since the start, and jobs in flight.
#[derive(Debug)]
pub struct WorkerState {
    in_flight: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    deferred: AtomicU64,
    retried: AtomicU64,
    refunded: AtomicU64,
    abandoned: AtomicU64,
    lost: AtomicU64,
    dead_letters: AtomicU64,
    fired: AtomicU64,
    events_accepted: AtomicU64,
    events_ignored: AtomicU64,
    uncompared: AtomicU64,
    drained: AtomicBool,
    all_paused: AtomicBool,
    /// By the index of their code in [`RunErrorCode::ALL`].
    failures: [AtomicU64; RunErrorCode::ALL.len()],
    rows_read: AtomicU64,
    rows_written: AtomicU64,
    rows_rejected: AtomicU64,
    bytes_read: AtomicU64,
    /// Durations of all attempts.
    pub run_durations: Histogram<{ RUN_BOUNDS_S.len() }>,
    /// Failures of the threads that claim jobs, fire windows and renew locks.
    pub watchdog: Arc<Watchdog>,
    /// State of the dependencies of all jobs.
    pub breakers: Breakers,
    pub event_queue: EventQueueState,
    pub(super) windows: LoggedWindows,
}

/// A snapshot of [`WorkerState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerCounts {
    /// Jobs that are running.
    pub in_flight: u64,
    pub completed: u64,
    pub failed: u64,
    /// Jobs whose pipeline was locked.
    pub deferred: u64,
    /// Failed attempts that are retried.
    pub retried: u64,
    /// Failed attempts that did not count, since a dependency of all jobs had failed.
    pub refunded: u64,
    /// Attempts that ended with the worker; their jobs were requeued.
    pub abandoned: u64,
    /// Attempts that lost their lease.
    pub lost: u64,
    /// Entries without a valid pipeline.
    pub dead_letters: u64,
    /// Jobs created from debounce windows.
    pub fired: u64,
    /// Records in event notifications.
    pub events_accepted: u64,
    pub events_ignored: u64,
    /// Rows read by all attempts.
    pub rows_read: u64,
    /// Bytes of sources, as stored in the lake.
    pub bytes_read: u64,
    /// Rows written by completed jobs.
    pub rows_written: u64,
    pub rows_rejected: u64,
}

/// A counted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEvent {
    Completed,
    Failed,
    Deferred,
    Retried,
    Refunded,
    Abandoned,
    Lost,
    DeadLettered,
    Fired,
}

impl Default for WorkerState {
    fn default() -> Self {
        let [in_flight, completed, failed, deferred, retried, refunded, abandoned, lost, dead_letters, fired] =
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
            dead_letters,
            fired,
            events_accepted,
            events_ignored,
            uncompared: AtomicU64::new(0),
            drained: AtomicBool::new(false),
            all_paused: AtomicBool::new(false),
            failures: Default::default(),
            rows_read,
            rows_written,
            rows_rejected,
            bytes_read,
            run_durations: Histogram::new(&RUN_BOUNDS_S),
            watchdog: Arc::default(),
            breakers: Breakers::default(),
            event_queue: EventQueueState::default(),
            windows: LoggedWindows::default(),
        }
    }
}

impl WorkerState {
    pub(super) fn count(&self, event: JobEvent) {
        let counter = match event {
            JobEvent::Completed => &self.completed,
            JobEvent::Failed => &self.failed,
            JobEvent::Deferred => &self.deferred,
            JobEvent::Retried => &self.retried,
            JobEvent::Refunded => &self.refunded,
            JobEvent::Abandoned => &self.abandoned,
            JobEvent::Lost => &self.lost,
            JobEvent::DeadLettered => &self.dead_letters,
            JobEvent::Fired => &self.fired,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_events(&self, accepted: u64, ignored: u64) {
        self.events_accepted.fetch_add(accepted, Ordering::Relaxed);
        self.events_ignored.fetch_add(ignored, Ordering::Relaxed);
    }

    /// Counts an attempt and its input.
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

    /// Counts a failed job by its error.
    pub(super) fn count_failure(&self, code: RunErrorCode) {
        self.failures[code as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Jobs that failed here, by error.
    pub fn failures(&self) -> impl Iterator<Item = (RunErrorCode, u64)> {
        let counts = self.failures.iter().map(|count| count.load(Ordering::Relaxed));
        RunErrorCode::ALL.into_iter().zip(counts)
    }

    /// Counts a pipeline that could not be compared with the lake.
    pub(super) fn count_uncompared(&self) {
        self.uncompared.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_all_paused(&self, is_paused: bool) {
        self.all_paused.store(is_paused, Ordering::Relaxed);
    }

    /// Whether all pipelines are paused.
    pub fn are_all_paused(&self) -> bool {
        self.all_paused.load(Ordering::Relaxed)
    }

    /// Records that nothing is left to do.
    pub(super) fn set_drained(&self) {
        self.drained.store(true, Ordering::Relaxed);
    }

    /// Whether the worker ended because nothing was left to do.
    pub fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Relaxed)
    }

    /// Whether something failed permanently here: a job failed and was not cancelled, an entry has no job, or a pipeline could
    /// not be compared.
    pub fn has_given_up(&self) -> bool {
        let failed = self.failures().any(|(code, count)| code != RunErrorCode::Cancelled && count > 0);
        failed || self.dead_letters.load(Ordering::Relaxed) > 0 || self.uncompared.load(Ordering::Relaxed) > 0
    }

    /// Counts a job as in flight until the guard is dropped.
    pub(super) fn enter(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }

    pub fn counts(&self) -> WorkerCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WorkerCounts {
            in_flight: get(&self.in_flight),
            completed: get(&self.completed),
            failed: get(&self.failed),
            deferred: get(&self.deferred),
            retried: get(&self.retried),
            refunded: get(&self.refunded),
            abandoned: get(&self.abandoned),
            lost: get(&self.lost),
            dead_letters: get(&self.dead_letters),
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
pub(super) struct InFlight<'a>(&'a WorkerState);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The windows that this process has logged, so that each is logged once, however many events extend it.
#[derive(Debug, Default)]
pub(super) struct LoggedWindows(Mutex<BTreeMap<Slug, DateTime<Utc>>>);

impl LoggedWindows {
    /// Logs that new files opened or extended a window.
    pub(super) fn extended(&self, pipeline: &Slug, since: DateTime<Utc>) {
        let window = window_id(pipeline, since);
        if self.is_new(pipeline, since) {
            tracing::info!(%pipeline, window, "new files; debounce window opened");
        } else {
            tracing::debug!(%pipeline, window, "new files; debounce window extended");
        }
    }

    fn is_new(&self, pipeline: &Slug, since: DateTime<Utc>) -> bool {
        let mut logged = self.0.lock();
        if logged.len() >= LOGGED_WINDOWS_MAX && !logged.contains_key(pipeline) {
            logged.clear();
        }
        logged.insert(pipeline.clone(), since) != Some(since)
    }
}

/// The id of a window in logs: no two of a pipeline open at the same time.
pub(super) fn window_id(pipeline: &Slug, since: DateTime<Utc>) -> String {
    format!("{pipeline}@{}", rfc3339(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_logged_once_however_many_events_extend_it() {
        let (logged, time) = (LoggedWindows::default(), |s| DateTime::from_timestamp(s, 0).unwrap());
        let (one, other) = (Slug::parse("one").unwrap(), Slug::parse("other").unwrap());
        assert!(logged.is_new(&one, time(1)));
        assert!((0..1_000).all(|_| !logged.is_new(&one, time(1))));
        assert!(logged.is_new(&other, time(1)) && logged.is_new(&one, time(2)));
    }
}
