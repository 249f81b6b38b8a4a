//! The contract of `ports::Kv`, run on every backend.
//!
//! A test takes a [`Fixture`] and knows no backend. Time flows while a test runs, so tests stay a second or more away
//! from each edge. [`Backend::advance`] may do its work by moving all that is stored into the past: a test compares no
//! time that a store gave before it with one from after it.

mod claiming;
mod sqlite;
mod starting;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use lakemill::domain::job::{Arrival, Charge, Job, JobMessage, RunError, RunErrorCode, RunResult, Waiting};
use lakemill::domain::name::Slug;
use lakemill::ports::Kv;
use lakemill::ports::jobs::{Beat, Enqueued, Entry, EntryId, Held, Release, Start, StartRequest, Started, Wait};

/// Life of a lock that a test takes, unless it says otherwise.
pub const TTL: Duration = Duration::from_secs(60);
/// Time without life after which tests reclaim.
pub const IDLE: Duration = Duration::from_secs(120);
/// No waiting.
pub const AT_ONCE: Duration = Duration::ZERO;
pub const ATTEMPTS_MAX: u32 = 3;

pub const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A store of its own, empty at first, and what others than the product may do to it.
pub trait Backend: Send + Sync {
    /// Opens the store once more, as another process would: handles share nothing but what is stored.
    fn open(&self) -> Arc<dyn Kv>;

    /// Lets the store's time pass: locks expire, windows become due, entries get idle, sessions end.
    fn advance(&self, by: Duration);

    /// The store's time.
    fn now(&self) -> DateTime<Utc>;

    /// Writes an entry of the stream as a program of somebody else would.
    fn add_raw(&self, fields: &[(&[u8], &[u8])]);

    /// Deletes the content of every entry of the stream, as somebody's trimming would.
    fn trim_stream(&self);

    /// The dead entries as they are kept, oldest first: each text holds the reason and the entry's fields.
    fn dead(&self) -> Vec<String>;

    /// Takes all data away under the open handles, as a restart without persistence does.
    fn lose_data(&self);
}

/// A fresh store under test.
pub struct Fixture {
    pub backend: Box<dyn Backend>,
    pub kv: Arc<dyn Kv>,
}

impl Fixture {
    pub fn new(backend: impl Backend + 'static) -> Self {
        let kv = backend.open();
        Self { backend: Box::new(backend), kv }
    }

    pub fn open(&self) -> Arc<dyn Kv> {
        self.backend.open()
    }

    /// The store's time, in whole milliseconds as records have them.
    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.backend.now().timestamp_millis()).unwrap()
    }

    pub fn advance(&self, by: Duration) {
        self.backend.advance(by);
    }

    /// A job that is not enqueued yet.
    pub fn job(&self, pipeline: &str) -> Job {
        let message = JobMessage::new(slug(pipeline), false, "manual", self.now());
        Job::queued(&message, ATTEMPTS_MAX)
    }

    pub fn enqueue(&self, pipeline: &str) -> Job {
        let job = self.job(pipeline);
        assert_eq!(self.kv.enqueue(&job).unwrap(), Enqueued::Queued);
        job
    }

    /// Claims the one entry that must be there.
    pub fn claim(&self, consumer: &str) -> Entry {
        let mut entries = self.kv.claim(consumer, 1, AT_ONCE).unwrap();
        assert_eq!(entries.len(), 1, "an entry for `{consumer}`");
        entries.remove(0)
    }

    pub fn claims_nothing(&self) {
        assert_eq!(self.kv.claim("nobody", 10, AT_ONCE).unwrap(), []);
    }

    pub fn reclaim(&self, consumer: &str) -> Entry {
        let mut entries = self.kv.reclaim(consumer, 1, IDLE).unwrap();
        assert_eq!(entries.len(), 1, "an idle entry for `{consumer}`");
        entries.remove(0)
    }

    pub fn start(&self, consumer: &str, entry: &Entry) -> Started {
        start(&*self.kv, consumer, entry, TTL)
    }

    /// Enqueues a job and starts it.
    pub fn run(&self, consumer: &str, pipeline: &str) -> (Job, Start) {
        let job = self.enqueue(pipeline);
        (job, self.run_next(consumer))
    }

    /// Claims the next entry and starts it.
    pub fn run_next(&self, consumer: &str) -> Start {
        let entry = self.claim(consumer);
        running(self.start(consumer, &entry))
    }

    /// Enqueues a job whose pipeline is busy, and lets it be deferred.
    pub fn defer(&self, pipeline: &str) -> Job {
        let job = self.enqueue(pipeline);
        let entry = self.claim("deferrer");
        assert_eq!(message(&entry).job_id, job.job_id);
        let started = self.start("deferrer", &entry);
        assert!(matches!(started, Started::Deferred { .. }), "{started:?}");
        job
    }

    pub fn end(&self, held: &Held) {
        let job = completed(&self.seen(held), self.now());
        assert_eq!(self.kv.end(held, &job).unwrap(), Release::Done);
    }

    /// As after a transient failure.
    pub fn put_back(&self, held: &Held, delay: Duration) {
        self.put_back_for(held, delay, Waiting::Retry, Charge::Attempt);
    }

    pub fn put_back_for(&self, held: &Held, delay: Duration, reason: Waiting, charge: Charge) {
        let job = self.seen(held).waiting(reason, self.now(), Some(failure()));
        let wait = Wait { job: &job, delay, reason, charge };
        assert_eq!(self.kv.put_back(held, &wait).unwrap(), Release::Done);
    }

    /// The job of a hold as the store shows it.
    pub fn seen(&self, held: &Held) -> Job {
        self.kv.job(&held.pipeline, &held.job_id).unwrap().unwrap()
    }

    /// A job of ours as the store shows it.
    pub fn shown(&self, job: &Job) -> Option<Job> {
        self.kv.job(&job.pipeline, &job.job_id).unwrap()
    }

    /// Stream, pending, waiting.
    pub fn places(&self) -> (u64, u64, u64) {
        let counts = self.kv.counts().unwrap();
        (counts.stream, counts.pending, counts.waiting)
    }

    /// The hold is lost: no step of its owner changes anything.
    pub fn is_lost(&self, held: &Held) {
        let state = |f: &Self| (f.kv.counts().unwrap(), f.kv.job(&held.pipeline, &held.job_id).unwrap());
        let before = state(self);
        let job = self.job(held.pipeline.as_str()).started("late", held.fence, 9, self.now());
        let wait = Wait { job: &job, delay: AT_ONCE, reason: Waiting::Retry, charge: Charge::Nothing };
        assert_eq!(self.kv.heartbeat(held, TTL).unwrap(), Beat::Lost);
        assert_eq!(self.kv.show(held, &job).unwrap(), Release::Lost);
        assert_eq!(self.kv.begin_publishing(held).unwrap(), lakemill::ports::jobs::Publishing::Lost);
        assert_eq!(self.kv.put_back(held, &wait).unwrap(), Release::Lost);
        assert_eq!(self.kv.end(held, &completed(&job, self.now())).unwrap(), Release::Lost);
        assert_eq!(state(self), before);
    }

    /// Lets a started job's process seem dead, and takes its entry over.
    pub fn take_over(&self, consumer: &str) -> Start {
        self.advance(IDLE + seconds(5));
        let entry = self.reclaim(consumer);
        running(self.start(consumer, &entry))
    }
}

pub fn slug(text: &str) -> Slug {
    Slug::parse(text).unwrap()
}

/// The message of an entry that is a job.
pub fn message(entry: &Entry) -> JobMessage {
    let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    match JobMessage::parse(fields, entry.received_at) {
        Arrival::Job(message) | Arrival::Refused(message, _) => message,
        Arrival::Dead(why) => panic!("{why}"),
    }
}

pub fn start(kv: &dyn Kv, consumer: &str, entry: &Entry, lock_ttl: Duration) -> Started {
    start_from(kv, consumer, &entry.id, &message(entry), lock_ttl, 0)
}

pub fn start_from(
    kv: &dyn Kv,
    consumer: &str,
    entry: &EntryId,
    message: &JobMessage,
    lock_ttl: Duration,
    fence_floor: u64,
) -> Started {
    let request = StartRequest { entry, consumer, message, lock_ttl, fence_floor, attempts_max: ATTEMPTS_MAX };
    kv.start(&request).unwrap()
}

pub fn running(started: Started) -> Start {
    match started {
        Started::Running(start) => start,
        Started::Deferred { .. } | Started::RunningElsewhere | Started::NotMine | Started::Dropped => {
            panic!("expected a run, found {started:?}")
        }
    }
}

pub fn failure() -> RunError {
    RunError::new(RunErrorCode::S3Error, "the store was \"away\"").detail("it may come back: {}, [], é")
}

/// `job` at its end; `job` may be queued or running.
pub fn completed(job: &Job, at: DateTime<Utc>) -> Job {
    job.clone().completed(RunResult::default(), at)
}

macro_rules! backends {
    ($($backend:ident: $fixture:expr),* $(,)?) => {
        $(mod $backend {
            contract!($fixture);
        })*
    };
}

macro_rules! contract {
    ($fixture:expr) => {
        contract!($fixture, claiming:
            an_enqueued_job_is_claimed_with_its_six_fields,
            an_entry_goes_to_one_consumer,
            a_claim_takes_as_many_as_it_asked_for_the_oldest_first,
            a_claim_without_entries_returns_after_its_wait,
            a_claim_wakes_up_when_another_handle_enqueues,
            a_claim_wakes_up_when_its_own_handle_releases_a_waiting_job,
            only_entries_that_showed_no_life_are_reclaimed,
            a_reclaimed_entry_counts_as_alive_again,
            a_reclaim_takes_as_many_as_it_asked_for,
            heartbeats_keep_an_entry_from_being_reclaimed,
            reclaiming_charges_no_attempt,
            entries_whose_content_is_gone_are_acknowledged_on_the_way,
            a_consumer_that_leaves_keeps_what_is_pending_for_it,
            what_one_handle_does_the_other_sees_at_once);
        contract!($fixture, starting:
            a_start_takes_the_lock_and_counts_the_attempt,
            fences_rise_from_hold_to_hold,
            a_fence_is_above_the_floor_and_stays_there,
            a_busy_pipeline_defers_the_job_uncharged,
            a_deferred_job_is_due_a_second_after_the_lock_could_be_free,
            a_deferred_job_is_due_after_thirty_seconds_at_the_latest,
            a_job_that_runs_elsewhere_is_left_alone,
            an_entry_of_another_consumer_is_not_started,
            starts_whose_end_nobody_told_are_counted,
            a_takeover_raises_the_fence_and_the_old_holder_changes_nothing,
            an_expired_lock_is_lost_even_if_nobody_took_it,
            heartbeats_prolong_the_lock_from_now,
            pipelines_run_beside_each_other,
            a_second_entry_of_a_running_job_does_not_run_beside_it,
            a_second_entry_of_a_waiting_job_ends_its_waiting);
    };
    ($fixture:expr, $topic:ident: $($test:ident),*) => {
        $(#[test]
        fn $test() {
            super::super::$topic::$test(&$fixture);
        })*
    };
}

mod on {
    backends! {
        sqlite: super::super::sqlite::fixture(),
    }
}
