//! The contract of `ports::Kv`, run on every backend.
//!
//! A test takes a [`Fixture`] and knows no backend. Time flows while a test runs, so tests stay a second or more away
//! from each edge. [`Backend::advance`] may do its work by moving all that is stored into the past: a test compares no
//! time that a store gave before it with one from after it.

mod cancelling;
mod claiming;
mod dropping;
mod ending;
mod foreign;
mod holds;
mod key_locks;
mod model;
mod queries;
mod racing;
mod rechecks;
mod redis;
mod restoring;
mod sessions;
pub mod sqlite;
mod starting;
mod waiting;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use lakemill::domain::job::{Arrival, AttemptCost, Job, JobMessage, RunError, RunErrorCode, RunResult, Waiting};
use lakemill::domain::name::Slug;
use lakemill::ports::Kv;
use lakemill::ports::jobs::{
    EnqueueOutcome, Entry, EntryId, HeartbeatReply, JobLease, ReleaseOutcome, Requeue, StartOutcome, StartRequest,
    StartedJob,
};

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

    /// From now on time passes by [`advance`](Self::advance) alone, but for the idle times that a server measures.
    fn stop(&self);

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
        assert_eq!(self.kv.enqueue(&job).unwrap(), EnqueueOutcome::Queued);
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

    pub fn start(&self, consumer: &str, entry: &Entry) -> StartOutcome {
        start(&*self.kv, consumer, entry, TTL)
    }

    /// Enqueues a job and starts it.
    pub fn run(&self, consumer: &str, pipeline: &str) -> (Job, StartedJob) {
        let job = self.enqueue(pipeline);
        (job, self.run_next(consumer))
    }

    /// Claims the next entry and starts it.
    pub fn run_next(&self, consumer: &str) -> StartedJob {
        let entry = self.claim(consumer);
        running(self.start(consumer, &entry))
    }

    /// Enqueues a job whose pipeline is busy, and lets it be deferred.
    pub fn defer(&self, pipeline: &str) -> Job {
        let job = self.enqueue(pipeline);
        let entry = self.claim("deferrer");
        assert_eq!(message(&entry).job_id, job.job_id);
        let started = self.start("deferrer", &entry);
        assert!(matches!(started, StartOutcome::Deferred { .. }), "{started:?}");
        job
    }

    pub fn end(&self, lease: &JobLease) {
        let job = completed(&self.seen(lease), self.now());
        assert_eq!(self.kv.finish(lease, &job).unwrap(), ReleaseOutcome::Released);
    }

    /// As after a transient failure.
    pub fn requeue(&self, lease: &JobLease, delay: Duration) {
        self.requeue_for(lease, delay, Waiting::Retry, AttemptCost::One);
    }

    pub fn requeue_for(&self, lease: &JobLease, delay: Duration, reason: Waiting, cost: AttemptCost) {
        let job = self.seen(lease).waiting(reason, self.now(), Some(failure()));
        let wait = Requeue { job: &job, delay, reason, cost };
        assert_eq!(self.kv.requeue(lease, &wait).unwrap(), ReleaseOutcome::Released);
    }

    /// The job of a hold as the store shows it.
    pub fn seen(&self, lease: &JobLease) -> Job {
        self.kv.job(&lease.pipeline, &lease.job_id).unwrap().unwrap()
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
    pub fn is_lost(&self, lease: &JobLease) {
        let job =
            |f: &Self| f.kv.job(&lease.pipeline, &lease.job_id).unwrap().map(|job| Job { silent_ms: None, ..job });
        let state = |f: &Self| (f.kv.counts().unwrap(), job(f));
        let before = state(self);
        let job = self.job(lease.pipeline.as_str()).started("late", lease.fence, 9, self.now());
        let wait = Requeue { job: &job, delay: AT_ONCE, reason: Waiting::Retry, cost: AttemptCost::Zero };
        assert_eq!(self.kv.heartbeat(lease, TTL).unwrap(), HeartbeatReply::Lost);
        assert_eq!(self.kv.update_record(lease, &job).unwrap(), HeartbeatReply::Lost);
        assert_eq!(self.kv.begin_publishing(lease).unwrap(), lakemill::ports::jobs::PublishReply::Lost);
        assert_eq!(self.kv.requeue(lease, &wait).unwrap(), ReleaseOutcome::Lost);
        assert_eq!(self.kv.finish(lease, &completed(&job, self.now())).unwrap(), ReleaseOutcome::Lost);
        assert_eq!(state(self), before);
    }

    /// Lets a started job's process seem dead, and takes its entry over.
    pub fn take_over(&self, consumer: &str) -> StartedJob {
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

pub fn start(kv: &dyn Kv, consumer: &str, entry: &Entry, lock_ttl: Duration) -> StartOutcome {
    start_from(kv, consumer, &entry.id, &message(entry), lock_ttl, 0)
}

pub fn start_from(
    kv: &dyn Kv,
    consumer: &str,
    entry: &EntryId,
    message: &JobMessage,
    lock_ttl: Duration,
    fence_floor: u64,
) -> StartOutcome {
    let token = &uuid::Uuid::new_v4().to_string();
    let request = StartRequest { entry, consumer, message, token, lock_ttl, fence_floor, attempts_max: ATTEMPTS_MAX };
    kv.start(&request).unwrap()
}

pub fn running(started: StartOutcome) -> StartedJob {
    match started {
        StartOutcome::Running(start) => start,
        StartOutcome::Deferred { .. }
        | StartOutcome::RunningElsewhere
        | StartOutcome::NotMine
        | StartOutcome::Dropped
        | StartOutcome::IdTaken => {
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
            a_start_whose_answer_was_lost_is_repeated_and_counts_once,
            a_lost_attempt_is_given_back_unless_the_job_was_started_since,
            starts_whose_end_nobody_told_are_counted,
            a_takeover_raises_the_fence_and_the_old_holder_changes_nothing,
            an_expired_lock_is_lost_even_if_nobody_took_it,
            heartbeats_prolong_the_lock_from_now,
            pipelines_run_beside_each_other,
            a_second_entry_of_a_running_job_does_not_run_beside_it,
            a_second_entry_of_a_waiting_job_ends_its_waiting);
        contract!($fixture, waiting:
            a_job_that_was_put_back_is_due_after_its_delay,
            a_waiting_job_shows_why_and_until_when,
            an_attempt_that_is_not_charged_is_given_back,
            putting_back_releases_the_lock,
            a_release_makes_the_longest_deferred_job_due,
            a_release_wakes_neither_retries_nor_other_pipelines,
            a_job_that_is_deferred_again_keeps_its_place,
            due_jobs_are_released_the_longest_due_first,
            a_put_back_in_the_middle_of_publishing_can_be_cancelled_again);
        contract!($fixture, ending:
            an_ended_job_is_known_for_an_hour,
            an_end_happens_once,
            a_job_that_is_active_is_not_enqueued_again,
            a_running_job_is_seen_as_it_was_shown,
            a_running_job_whose_lock_is_over_tells_how_long_nothing_was_heard_of_it,
            an_outcome_that_was_shown_but_not_reached_does_not_stick,
            a_queued_job_shows_the_workers_attempts_at_all_times,
            active_jobs_are_listed_the_longest_enqueued_first,
            a_job_is_known_to_its_own_pipeline_alone,
            counts_follow_each_step,
            the_oldest_due_job_is_told_by_how_long_it_is_due,
            a_buried_entry_is_kept_with_its_reason,
            a_round_trip_says_that_the_store_is_there);
        contract!($fixture, cancelling:
            a_queued_job_that_is_cancelled_says_so_at_its_start,
            a_job_that_waits_for_another_attempt_becomes_due_when_cancelled,
            a_deferred_job_becomes_due_when_cancelled,
            a_running_job_hears_of_it_at_its_next_heartbeat,
            a_job_that_publishes_can_not_be_cancelled,
            a_job_whose_publishing_died_can_be_cancelled_once_it_runs_again,
            the_wish_outlives_a_worker_and_another_attempt,
            only_an_active_job_of_the_pipeline_can_be_cancelled);
        contract!($fixture, foreign:
            a_foreign_job_is_known_before_it_is_claimed,
            a_foreign_job_is_cancelled_before_it_is_claimed,
            a_foreign_job_that_nobody_looked_for_gets_its_record_at_its_start,
            a_look_goes_behind_what_is_no_job,
            a_second_entry_of_a_job_adds_none,
            a_foreign_job_that_was_claimed_and_not_started_is_known,
            foreign_jobs_are_known_after_the_data_was_lost,
            a_foreign_job_of_a_busy_pipeline_is_deferred_with_a_record,
            fields_come_as_they_were_written,
            what_is_no_utf_8_is_replaced,
            huge_entries_pass_whole,
            good_and_bad_entries_are_claimed_alike,
            a_job_id_of_another_pipelines_job_harms_it_in_nothing);
        contract!($fixture, dropping:
            a_dropped_pipeline_loses_its_window_and_its_queued_and_waiting_jobs,
            a_claimed_job_of_a_dropped_pipeline_does_not_start,
            a_foreign_job_older_than_the_drop_is_acknowledged_without_a_record,
            foreign_jobs_that_nobody_looked_for_go_with_their_pipeline,
            a_running_job_outlives_the_drop_and_does_not_start_again,
            a_job_that_died_running_goes_with_its_pipeline,
            jobs_from_after_the_drop_run,
            a_revived_pipeline_takes_old_jobs_again,
            the_mark_lasts_a_day,
            other_pipelines_and_their_fences_are_not_touched);
        contract!($fixture, holds:
            a_hold_keeps_other_holds_and_runs_out,
            a_run_keeps_holds_out,
            a_hold_lasts_for_its_time_from_the_last_renewal,
            a_hold_that_was_lost_changes_nothing,
            who_holds_a_lock_is_told_as_long_as_it_lasts,
            a_release_happens_once,
            a_hold_that_ran_out_does_not_defer);
        contract!($fixture, windows:
            a_window_is_due_after_five_seconds_of_quiet,
            a_window_is_due_thirty_seconds_after_its_first_event,
            a_window_is_named_by_its_beginning,
            a_window_tells_when_it_is_due_until_it_is_closed,
            a_window_that_is_fired_becomes_one_job,
            events_after_a_window_was_fired_open_a_new_one,
            windows_of_pipelines_are_apart,
            a_window_is_closed_without_a_job,
            no_pipelines_are_no_windows);
        contract!($fixture, restoring:
            nothing_is_restored_while_nothing_is_lost,
            jobs_whose_entries_are_gone_are_put_back,
            a_job_whose_worker_died_and_whose_entry_is_gone_is_put_back,
            a_run_whose_entry_is_gone_goes_on_to_its_end,
            a_walk_over_many_jobs_sees_each,
            a_new_store_does_not_remember_until_it_is_told,
            a_store_that_lost_its_data_says_so_and_works_on);
        contract!($fixture, rechecks:
            a_failed_pipeline_is_taken_by_one_handle_and_comes_back_unless_it_is_settled,
            a_pipeline_is_due_again_only_after_another_failure_and_a_pause_that_doubles,
            the_list_is_bounded_and_is_forgotten_after_a_week);
        contract!($fixture, sessions:
            a_session_is_known_until_it_idled_too_long,
            a_session_ends_at_its_greatest_age_however_busy,
            a_session_that_may_idle_longer_than_live_ends_by_age,
            a_closed_session_is_gone_and_others_stay,
            waits_double_from_fifteen_seconds_to_fifteen_minutes,
            each_address_has_its_own_count,
            a_success_forgives,
            an_hour_without_a_failure_forgives,
            networks_of_ipv6_wait_together,
            all_addresses_wait_together_and_never_for_long,
            an_address_that_has_logged_in_is_not_slowed_by_others,
            logins_that_succeed_do_not_count_as_failures);
        contract!($fixture, key_locks:
            one_token_has_a_name_at_a_time,
            another_tokens_unlock_does_nothing,
            a_name_is_free_once_its_time_is_over,
            names_are_any_text, a_write_is_proved_by_every_handle_and_touches_nothing_else);
        contract!($fixture, queries:
            a_query_that_is_announced_can_be_cancelled_from_elsewhere,
            an_id_names_one_query_of_a_pipeline_at_a_time,
            what_nobody_announced_can_not_be_cancelled,
            a_query_whose_process_died_is_forgotten,
            the_end_of_an_older_query_does_not_touch_a_newer_one);
        contract!($fixture, racing:
            each_of_many_entries_is_claimed_once,
            claims_that_wait_share_what_comes,
            one_of_many_starts_takes_the_lock,
            one_of_many_reclaimers_takes_over,
            one_of_many_holds_wins,
            one_of_many_enqueues_of_a_job_counts,
            racing_firers_make_one_job_of_each_window,
            events_that_race_with_a_firing_are_in_this_batch_or_the_next,
            each_due_job_is_released_once,
            racing_logins_do_not_get_more_tries);
        #[test]
        fn any_steps_keep_to_the_model() {
            super::super::model::any_steps_keep_to_the_model(|| $fixture);
        }
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
        redis: super::super::redis::fixture(),
        sqlite: super::super::sqlite::fixture(),
    }
}
