//! The contract of `ports::Kv`, run on every backend.
//!
//! A test takes a [`Fixture`] and doesn't know the backend. Real time passes during a test, so tests keep a second or
//! more away from each deadline. [`Backend::advance`] may work by moving all stored times into the past: a test never
//! compares a time from before it with one from after it.

mod cancelling;
mod changes;
mod claiming;
mod dropping;
mod ending;
mod foreign;
mod holds;
mod job_index;
mod key_locks;
mod model;
mod notifications;
mod order;
mod pauses;
mod queries;
mod racing;
mod rechecks;
mod redis;
mod restoring;
mod run_requests;
mod sessions;
pub mod sqlite;
mod starting;
mod waiting;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use lakemill::domain::job::{AttemptCost, Job, JobMessage, ParsedEntry, RunError, RunErrorCode, RunResult, WaitReason};
use lakemill::domain::name::Slug;
use lakemill::ports::Kv;
use lakemill::ports::jobs::{
    ClaimLimits, EnqueueOutcome, Entry, EntryId, HeartbeatReply, JobLease, ReleaseOutcome, Requeue, StartOutcome,
    StartRequest, StartedJob,
};

/// Lock TTL of a test, unless it sets another.
pub const TTL: Duration = Duration::from_secs(60);
/// Idle time after which tests reclaim.
pub const IDLE: Duration = Duration::from_secs(120);
/// No waiting.
pub const IMMEDIATELY: Duration = Duration::ZERO;
pub const ATTEMPTS_MAX: u32 = 3;

pub const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// An empty store, and simulated actions of other programs.
pub trait Backend: Send + Sync {
    /// Opens the store again, like another process: handles share only the stored data.
    fn open(&self) -> Arc<dyn Kv>;

    /// Advances the store's time: locks expire, windows become due, entries become idle, sessions end.
    fn advance(&self, by: Duration);

    /// From now on time passes only by [`advance`](Self::advance), except for idle times, which a server measures.
    fn stop(&self);

    /// The store's time.
    fn now(&self) -> DateTime<Utc>;

    /// Adds a stream entry as another program would.
    fn add_raw(&self, fields: &[(&[u8], &[u8])]);

    /// Deletes the content of every stream entry, like an external `XTRIM`.
    fn trim_stream(&self);

    /// The dead letters as stored, oldest first: each text contains the reason and the entry's fields.
    fn dead(&self) -> Vec<String>;

    /// Opens or extends a window like versions that stored no keys.
    fn extend_without_keys(&self, pipeline: &str);

    /// Windows and jobs with stored changed keys.
    fn change_sets(&self) -> usize;

    /// Deletes all data while handles are open, like a restart without persistence.
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

    /// The store's time, truncated to milliseconds like records.
    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.backend.now().timestamp_millis()).unwrap()
    }

    pub fn advance(&self, by: Duration) {
        self.backend.advance(by);
    }

    /// A job that is not enqueued yet.
    pub fn job(&self, pipeline: &str) -> Job {
        self.job_by("manual", pipeline)
    }

    pub fn job_by(&self, trigger: &str, pipeline: &str) -> Job {
        let message = JobMessage::new(slug(pipeline), false, trigger, self.now());
        Job::queued(&message, ATTEMPTS_MAX)
    }

    pub fn enqueue_by(&self, trigger: &str, pipeline: &str) -> Job {
        let job = self.job_by(trigger, pipeline);
        assert_eq!(self.kv.enqueue(&job).unwrap(), EnqueueOutcome::Queued);
        job
    }

    pub fn enqueue(&self, pipeline: &str) -> Job {
        self.enqueue_by("manual", pipeline)
    }

    /// Claims the only entry.
    pub fn claim(&self, consumer: &str) -> Entry {
        let mut entries = self.kv.claim(consumer, ClaimLimits::any(1), IMMEDIATELY).unwrap();
        assert_eq!(entries.len(), 1, "an entry for `{consumer}`");
        entries.remove(0)
    }

    pub fn claims_nothing(&self) {
        assert_eq!(self.kv.claim("nobody", ClaimLimits::any(10), IMMEDIATELY).unwrap(), []);
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

    /// Enqueues a job whose pipeline is locked, and defers it.
    pub fn defer(&self, pipeline: &str) -> Job {
        self.defer_by("manual", pipeline)
    }

    pub fn defer_by(&self, trigger: &str, pipeline: &str) -> Job {
        let job = self.enqueue_by(trigger, pipeline);
        self.claims_nothing();
        assert_eq!(self.shown(&job).unwrap().reason, Some(WaitReason::PipelineBusy));
        job
    }

    pub fn end(&self, lease: &JobLease) {
        let job = completed(&self.seen(lease), self.now());
        assert_eq!(self.kv.finish(lease, &job).unwrap(), ReleaseOutcome::Released);
    }

    /// Like after a transient failure.
    pub fn requeue(&self, lease: &JobLease, delay: Duration) {
        self.requeue_for(lease, delay, WaitReason::Retry, AttemptCost::One);
    }

    pub fn requeue_for(&self, lease: &JobLease, delay: Duration, reason: WaitReason, cost: AttemptCost) {
        let job = self.seen(lease).waiting(reason, self.now(), Some(failure()));
        let wait = Requeue { job: &job, delay, reason, cost };
        assert_eq!(self.kv.requeue(lease, &wait).unwrap(), ReleaseOutcome::Released);
    }

    /// The job of a lease as the store shows it.
    pub fn seen(&self, lease: &JobLease) -> Job {
        self.kv.job(&lease.pipeline, &lease.job_id).unwrap().unwrap()
    }

    /// A job as the store shows it.
    pub fn shown(&self, job: &Job) -> Option<Job> {
        self.kv.job(&job.pipeline, &job.job_id).unwrap()
    }

    /// Stream, pending, waiting.
    pub fn places(&self) -> (u64, u64, u64) {
        let counts = self.kv.counts().unwrap();
        (counts.stream, counts.pending, counts.waiting)
    }

    /// The lease is lost: its owner can't change anything.
    pub fn is_lost(&self, lease: &JobLease) {
        let job =
            |f: &Self| f.kv.job(&lease.pipeline, &lease.job_id).unwrap().map(|job| Job { silent_ms: None, ..job });
        let state = |f: &Self| (f.kv.counts().unwrap(), job(f));
        let before = state(self);
        let job = self.job(lease.pipeline.as_str()).started("late", lease.fence, 9, self.now());
        let wait = Requeue { job: &job, delay: IMMEDIATELY, reason: WaitReason::Retry, cost: AttemptCost::Zero };
        assert_eq!(self.kv.heartbeat(lease, TTL).unwrap(), HeartbeatReply::Lost);
        assert_eq!(self.kv.update_record(lease, &job).unwrap(), HeartbeatReply::Lost);
        assert_eq!(self.kv.begin_publishing(lease).unwrap(), lakemill::ports::jobs::PublishReply::Lost);
        assert_eq!(self.kv.requeue(lease, &wait).unwrap(), ReleaseOutcome::Lost);
        assert_eq!(self.kv.finish(lease, &completed(&job, self.now())).unwrap(), ReleaseOutcome::Lost);
        assert_eq!(state(self), before);
    }

    /// Makes a started job's worker seem dead, and takes its entry over.
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
        ParsedEntry::Job(message) | ParsedEntry::Refused(message, _) => message,
        ParsedEntry::Invalid(why) => panic!("{why}"),
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
        | StartOutcome::NotClaimed
        | StartOutcome::Dropped
        | StartOutcome::IdTaken => {
            panic!("expected a run, found {started:?}")
        }
    }
}

pub fn failure() -> RunError {
    RunError::new(RunErrorCode::S3Error, "the store was \"away\"").detail("it may come back: {}, [], é")
}

/// `job` in a terminal state; `job` may be queued or running.
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
            claimed_entry_has_all_message_fields,
            entry_is_claimed_by_one_consumer,
            claim_respects_count_and_takes_oldest_first,
            claim_without_entries_returns_after_its_wait,
            claim_wakes_when_another_handle_enqueues,
            claim_wakes_when_its_handle_releases_a_due_job,
            only_idle_entries_are_reclaimed,
            reclaiming_resets_the_idle_time,
            reclaim_respects_count,
            heartbeats_prevent_reclaiming,
            reclaiming_costs_no_attempt,
            reclaim_acknowledges_deleted_entries,
            removed_consumer_keeps_pending_entries,
            handles_see_each_others_writes_at_once);
        contract!($fixture, order:
            manual_jobs_are_claimed_before_older_automatic_ones,
            one_of_five_claimed_jobs_is_automatic_while_both_kinds_wait,
            claim_respects_its_limit_of_automatic_jobs,
            manual_job_is_claimed_before_thousands_of_automatic_ones,
            kind_of_a_foreign_entry_is_its_trigger,
            queued_jobs_are_neither_pending_nor_reclaimed,
            queued_jobs_of_a_locked_pipeline_are_deferred_by_a_claim,
            claim_that_defers_a_job_takes_the_next_one,
            claim_takes_one_job_of_a_pipeline,
            jobs_of_a_started_pipeline_are_behind_those_of_others,
            deferred_manual_job_is_due_before_older_automatic_ones,
            cancelled_automatic_job_is_claimed_like_a_manual_one,
            lost_entries_of_queued_jobs_are_skipped_and_requeued);
        contract!($fixture, run_requests:
            requested_run_becomes_one_job_that_checks_all_keys,
            requests_are_listed_in_their_order_without_paused_pipelines,
            request_is_withdrawn_once,
            request_ends_with_its_pipeline,
            window_of_the_pipeline_takes_its_request,
            one_of_many_workers_enqueues_a_requested_run);
        contract!($fixture, starting:
            start_takes_the_lock_and_counts_the_attempt,
            fences_increase_with_every_lock,
            fence_is_above_the_floor_from_then_on,
            busy_pipeline_defers_the_job_without_an_attempt,
            deferred_job_is_due_a_second_after_the_lock_expires,
            deferred_job_is_due_within_thirty_seconds,
            job_running_elsewhere_is_unchanged,
            entry_of_another_consumer_does_not_start,
            start_repeated_after_a_lost_reply_counts_once,
            lost_attempt_is_refunded_unless_restarted,
            lost_starts_are_counted,
            takeover_raises_the_fence_and_stops_the_old_holder,
            expired_lock_is_lost_even_if_free,
            heartbeats_extend_the_lock_from_now,
            pipelines_run_concurrently,
            second_entry_of_a_running_job_does_not_run,
            second_entry_of_a_waiting_job_starts_it);
        contract!($fixture, waiting:
            requeued_job_is_due_after_its_delay,
            waiting_job_shows_reason_and_due_time,
            free_attempt_is_refunded,
            requeueing_releases_the_lock,
            release_makes_the_oldest_deferred_job_due,
            release_wakes_no_retries_or_other_pipelines,
            job_deferred_again_keeps_its_position,
            due_jobs_are_released_longest_due_first,
            job_requeued_while_publishing_can_be_cancelled);
        contract!($fixture, ending:
            finished_job_is_kept_for_an_hour,
            job_finishes_once,
            active_job_is_not_enqueued_again,
            running_job_shows_its_latest_record,
            running_job_without_lock_shows_time_since_heartbeat,
            outcome_of_unfinished_job_is_reset,
            queued_job_shows_current_maximum_attempts,
            active_jobs_are_listed_oldest_first,
            job_is_visible_to_its_pipeline_only,
            counts_follow_each_step,
            oldest_due_job_shows_its_delay,
            dead_letter_keeps_its_reason,
            ping_succeeds);
        contract!($fixture, cancelling:
            cancelled_queued_job_starts_as_cancelled,
            cancelling_makes_a_retrying_job_due,
            cancelling_makes_a_deferred_job_due,
            heartbeat_reports_cancellation,
            publishing_job_cannot_be_cancelled,
            restarted_job_can_be_cancelled_after_its_publishing_died,
            cancellation_survives_worker_and_attempt,
            only_active_jobs_of_the_pipeline_can_be_cancelled);
        contract!($fixture, foreign:
            foreign_job_is_visible_before_its_claim,
            foreign_job_can_be_cancelled_before_its_claim,
            unadopted_foreign_job_gets_its_record_at_start,
            adoption_skips_entries_that_are_not_jobs,
            second_entry_of_a_job_adds_no_job,
            claimed_foreign_job_is_visible_before_its_start,
            foreign_jobs_are_visible_after_data_loss,
            foreign_job_of_busy_pipeline_is_deferred_with_record,
            fields_are_returned_unchanged,
            invalid_utf8_in_fields_is_replaced,
            huge_entries_are_returned_whole,
            valid_and_invalid_entries_are_claimed,
            reused_job_id_does_not_affect_other_pipelines_job);
        contract!($fixture, dropping:
            dropping_deletes_window_and_queued_and_waiting_jobs,
            claimed_job_of_dropped_pipeline_does_not_start,
            foreign_job_older_than_tombstone_is_dropped_without_record,
            unadopted_foreign_jobs_are_dropped_with_their_pipeline,
            running_job_survives_drop_but_does_not_restart,
            crashed_job_is_dropped_with_its_pipeline,
            jobs_enqueued_after_the_drop_run,
            revived_pipeline_runs_old_jobs_again,
            tombstone_lasts_a_day,
            dropping_leaves_other_pipelines_and_fences);
        contract!($fixture, holds:
            lock_excludes_other_locks_until_it_expires,
            run_excludes_pipeline_locks,
            lock_lasts_its_ttl_after_the_last_renewal,
            lost_lock_changes_nothing,
            lock_holder_is_reported_until_expiry,
            lock_is_released_once,
            expired_lock_defers_nothing);
        contract!($fixture, windows:
            window_is_due_after_five_quiet_seconds,
            window_is_due_thirty_seconds_after_its_first_event,
            window_is_identified_by_its_opening_time,
            window_shows_its_due_time_until_closed,
            fired_window_becomes_one_job,
            events_after_a_fire_open_a_new_window,
            windows_are_per_pipeline,
            window_closes_without_a_job,
            no_pipelines_open_no_windows);
        contract!($fixture, changes:
            window_passes_its_keys_to_its_job,
            event_without_keys_means_all_keys,
            keys_of_a_window_are_bounded,
            retries_and_takeovers_keep_the_keys,
            completed_job_leaves_no_keys,
            window_collects_while_its_pipeline_runs,
            failed_job_makes_later_ones_check_all_keys,
            job_lost_with_a_closed_window_is_enqueued_unless_its_pipeline_is_gone,
            dropped_pipeline_leaves_no_keys,
            window_of_an_older_version_checks_all_keys,
            lost_data_means_all_keys,
            waiting_too_long_costs_the_keys_at_most,
            keys_racing_with_fires_reach_a_job);
        contract!($fixture, restoring:
            nothing_is_requeued_while_nothing_is_lost,
            jobs_with_lost_entries_are_requeued,
            crashed_job_with_lost_entry_is_requeued,
            running_job_with_lost_entry_finishes,
            scan_for_lost_jobs_covers_many_jobs,
            new_store_is_not_initialized_until_marked,
            store_that_lost_its_data_is_not_initialized_and_works);
        contract!($fixture, pauses:
            pauses_are_listed_replaced_and_ended,
            windows_of_paused_pipelines_stay_open_and_are_not_due,
            jobs_that_wait_for_the_end_of_a_pause_are_due_when_it_ends,
            pause_ends_with_its_pipeline);
        contract!($fixture, job_index:
            ended_jobs_are_found_newest_first_by_pipeline_and_outcome,
            pages_of_ended_jobs_have_each_once,
            dropped_pipeline_leaves_the_index_and_late_ends_stay_out,
            dry_runs_are_not_indexed,
            old_jobs_of_a_pipeline_are_forgotten,
            index_is_complete_once_built_and_without_requests,
            oldest_jobs_leave_a_full_index,
            newest_ends_of_pipelines_are_found,
            pipelines_with_active_jobs_are_found);
        contract!($fixture, rechecks:
            recheck_is_taken_once_and_returns_unless_completed,
            recheck_is_due_after_another_failure_and_a_doubling_pause,
            rechecks_are_bounded_and_expire_after_a_week);
        contract!($fixture, notifications:
            due_notification_is_claimed_by_one_process,
            claimed_notification_is_due_again_after_its_claim,
            deliveries_are_recorded_by_the_latest_claim,
            condition_changes_with_its_notification_or_not_at_all,
            one_of_many_changes_of_a_condition_wins,
            scheduled_notification_can_be_replaced_and_withdrawn_until_it_is_claimed,
            notifications_are_bounded_and_pending_ones_stay,
            notifications_are_listed_newest_first,
            condition_is_forgotten_after_ninety_days,
            names_of_targets_expire);
        contract!($fixture, sessions:
            session_ends_after_idling,
            session_ends_at_its_maximum_age,
            session_age_limits_its_idle_time,
            closing_a_session_keeps_others,
            login_waits_double_from_fifteen_seconds_to_fifteen_minutes,
            login_failures_count_per_address,
            successful_login_clears_failures,
            login_failures_expire_after_an_hour,
            ipv6_networks_share_login_waits,
            all_addresses_share_a_short_login_wait,
            known_address_is_not_throttled_by_others,
            successful_logins_do_not_count_as_failures);
        contract!($fixture, key_locks:
            name_lock_has_one_token_at_a_time,
            unlock_with_another_token_does_nothing,
            name_lock_expires,
            lock_names_are_any_text, write_probe_touches_nothing_else);
        contract!($fixture, queries:
            registered_query_can_be_cancelled_by_another_handle,
            query_id_is_unique_per_pipeline,
            unregistered_query_cannot_be_cancelled,
            query_registration_expires,
            unregistering_an_old_query_keeps_a_newer_one);
        contract!($fixture, racing:
            racing_claims_take_each_entry_once,
            waiting_claims_share_new_entries,
            one_of_many_starts_gets_the_lock,
            one_of_many_reclaims_gets_the_entry,
            one_of_many_locks_wins,
            one_of_many_enqueues_of_a_job_succeeds,
            racing_fires_create_one_job_per_window,
            events_racing_with_a_fire_are_in_this_window_or_the_next,
            each_due_job_is_released_once,
            racing_logins_get_no_extra_attempts);
        #[test]
        fn random_steps_match_the_model() {
            super::super::model::random_steps_match_the_model(|| $fixture);
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
