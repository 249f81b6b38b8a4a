//! Ends an attempt: writes the terminal record, then acknowledges the entry.
//!
//! Invariant: only the holder of the lock writes a terminal record, and never overwrites one.

use std::time::Duration;

use chrono::TimeDelta;

use super::breaker::Dependency;
use super::config;
use super::notify;
use super::observe::Watch;
use super::probe::{self, DependencyFailure};
use super::retry::{OutageLog, retry_until};
use super::run::Run;
use super::state::JobEvent;
use super::stopping::Phase;
use crate::domain::job::retry::{self, RetryDecision};
use crate::domain::job::{AttemptCost, Job, RunError, RunErrorCode, RunResult, TableResult, WaitReason};
use crate::domain::layout::{dry_run_config_key, job_record_key};
use crate::domain::limits::JOB_WAIT_MS_MAX;
use crate::engine::run_error::store_error;
use crate::pipelines::history::{self, Recorded};
use crate::ports::jobs::{ReleaseOutcome, Requeue};
use crate::ports::observer::Stop;
use crate::ports::store::{Bucket, Lease, Precondition, StoreError, WriteOptions};
use crate::runtime::failpoint;
use crate::runtime::threads::{self, Instant};

/// Pauses before a write of a record is retried.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Attempts to write a record that the store rejects, before the job is requeued.
const REJECTED_TRIES_MAX: u32 = 3;
/// How long the job waits then: the store or the credentials need a fix first.
const REJECTED_WAIT: Duration = Duration::from_millis(JOB_WAIT_MS_MAX);

/// How an attempt ended.
pub(super) enum Outcome {
    Completed(RunResult),
    Failed(RunError),
    /// The job has its terminal record already.
    Recorded(Box<Job>),
    /// The worker stops: requeued without charging an attempt.
    Requeued,
    /// No thread could be started for the run: requeued without charging an attempt.
    HostExhausted(std::io::Error),
    /// The run did not begin: the job waits, without charging an attempt.
    Waits {
        reason: WaitReason,
        delay: Duration,
        error: Option<RunError>,
    },
}

impl Outcome {
    /// The outcome of a run that had to stop before it began.
    pub(super) fn stopped(watch: &Watch) -> Self {
        match watch.must_stop() {
            Err(stop @ (Stop::Cancelled | Stop::LeaseLost)) => {
                Self::Failed(RunError::new(stop.code(), "the run stopped before it began"))
            }
            Err(Stop::WorkerStopping) | Ok(()) => Self::Requeued,
        }
    }
}

/// The outcome of writing a terminal record.
enum Recording {
    /// It exists: ours, or an earlier one.
    Exists(Box<Job>),
    /// The lease was lost.
    Lost(RunError),
    /// The store keeps rejecting it.
    Rejected(RunError),
    /// The worker stops before the store has recovered.
    Stopped,
}

pub(super) struct Finish<'a> {
    pub(super) run: &'a Run<'a>,
}

impl Finish<'_> {
    /// The terminal record, if the job has one already.
    ///
    /// # Errors
    /// Errors of the store.
    pub(super) fn found_record(&self) -> Result<Option<Box<Job>>, RunError> {
        let message = &self.run.message;
        let why = match history::read(&*self.run.shared.store, &message.pipeline, &message.job_id) {
            Ok(Recorded::Missing) => return Ok(None),
            Ok(Recorded::Job(job)) if job.status.is_terminal() => return Ok(Some(job)),
            Ok(Recorded::Job(_)) => "it is not terminal".to_owned(),
            Ok(Recorded::Unreadable(_, why)) => why,
            Err(error) => return Err(store_error(error)),
        };
        let key = self.record_key();
        let text = format!("`{key}` exists but is not a terminal record");
        tracing::warn!(job_id = %message.job_id, key, why, "{text}; left unchanged");
        let error = RunError::new(RunErrorCode::Internal, text);
        Ok(Some(Box::new(self.run.job.clone().failed(error, self.run.shared.clock.now()))))
    }

    pub(super) fn finish(&self, outcome: Outcome) {
        let run = self.run;
        let now = run.shared.clock.now();
        let job = Job { progress: Some(run.watch.progress_now()), ..run.job.clone() };
        match outcome {
            Outcome::Completed(result) => self.end(job.completed(result, now)),
            Outcome::Recorded(job) => self.acknowledge(&job),
            Outcome::Requeued => self.requeue_at_stop(&job),
            Outcome::Failed(error) => self.failed(job, error),
            Outcome::Waits { reason, delay, error } => {
                self.requeue(run.job.clone(), reason, delay, AttemptCost::Zero, error);
            }
            Outcome::HostExhausted(error) => {
                run.shared.state.breakers.record_probe(Dependency::Host, Err(format!("starting a thread: {error}")));
                let error =
                    RunError::new(RunErrorCode::Internal, format!("the worker has no thread for the run: {error}"));
                self.refund(job, error, &DependencyFailure { dependency: Dependency::Host, refunds: 1 });
            }
        }
    }

    fn failed(&self, job: Job, error: RunError) {
        let run = self.run;
        if run.lease.remaining().is_err() {
            return self.lost(&job, &error);
        }
        let shared = run.shared;
        if error.code == RunErrorCode::WorkerStopping
            || shared.stopping.phase() == Phase::ForceStop && error.code.is_transient()
        {
            return self.requeue_at_stop(&job);
        }
        if let Some(failure) = probe::failed_dependency(shared, &run.message.job_id, &error, run.began) {
            return self.refund(job, error, &failure);
        }
        match retry::after(&error, run.start.attempt, run.shared.options.attempts_max, threads::random_unit()) {
            RetryDecision::Fail => {
                if matches!(error.code, RunErrorCode::S3Error | RunErrorCode::DiskFull) {
                    self.retry("adding a recheck", || shared.kv.add_recheck(&run.message.pipeline));
                }
                self.end(job.failed(error, shared.clock.now()));
            }
            RetryDecision::Wait { reason, delay, cost } => {
                self.warn(&error, "attempt failed; will retry");
                if error.code == RunErrorCode::DiskFull {
                    shared.left_to_others.add(&run.message.job_id);
                }
                if self.requeue(job, reason, delay, cost, Some(error)) == Some(ReleaseOutcome::Released) {
                    run.shared.state.count(JobEvent::Retried);
                }
            }
        }
    }

    /// A dependency of all jobs failed: the attempt doesn't count.
    fn refund(&self, job: Job, error: RunError, failure: &DependencyFailure) {
        let dependency = failure.dependency;
        self.warn(&error, &format!("attempt failed because of the {dependency}; not counted"));
        let delay = retry::backoff(failure.refunds, threads::random_unit());
        match self.requeue(job, WaitReason::Retry, delay, AttemptCost::Zero, Some(error)) {
            Some(ReleaseOutcome::Released) => self.run.shared.state.count(JobEvent::Refunded),
            Some(ReleaseOutcome::Lost) => self.refund_attempt(),
            None => {}
        }
    }

    /// The lock has expired. Refunds the attempt unless another worker has started the job since.
    fn refund_attempt(&self) {
        self.retry("refunding an attempt", || self.run.shared.kv.refund_attempt(&self.run.start.lease));
    }

    /// The worker stops: requeues the job without charging an attempt.
    fn requeue_at_stop(&self, job: &Job) {
        let running = self.run.job.clone();
        let error = job.error.clone();
        if self.requeue(running, WaitReason::Retry, Duration::ZERO, AttemptCost::Zero, error)
            == Some(ReleaseOutcome::Released)
        {
            self.run.shared.state.count(JobEvent::Abandoned);
            tracing::info!(job_id = %self.run.message.job_id, pipeline = %self.run.message.pipeline,
                "worker stopping; job requeued");
        }
    }

    /// The lease is lost. Refunds the attempt if the key-value store was at fault.
    fn lost(&self, job: &Job, error: &RunError) {
        self.run.shared.state.count(JobEvent::Lost);
        self.warn(error, "lease lost; nothing more is written, job will be repeated");
        let kv_failed = self.run.watch.heartbeat_pending();
        let (delay, cost) = match kv_failed {
            true => (Duration::ZERO, AttemptCost::Zero),
            false => (retry::backoff(self.run.start.attempt, threads::random_unit()), AttemptCost::One),
        };
        let running = Job { progress: job.progress.clone(), ..self.run.job.clone() };
        let released = self.requeue(running, WaitReason::Retry, delay, cost, Some(error.clone()));
        if kv_failed && released == Some(ReleaseOutcome::Lost) {
            self.refund_attempt();
        }
    }

    /// `None` if the key-value store can't be reached.
    fn requeue(
        &self,
        running: Job,
        reason: WaitReason,
        delay: Duration,
        cost: AttemptCost,
        error: Option<RunError>,
    ) -> Option<ReleaseOutcome> {
        let at = self.run.shared.clock.now() + TimeDelta::from_std(delay).unwrap_or_default();
        let job = running.waiting(reason, at, error);
        let wait = Requeue { job: &job, delay, reason, cost };
        self.retry("requeueing a job", || self.run.shared.kv.requeue(&self.run.start.lease, &wait))
    }

    /// Writes the terminal record, then ends the job. A dry run has no record: it is shown for an hour.
    fn end(&self, job: Job) {
        failpoint::reach("worker::before_record");
        if job.is_dry_run() {
            self.acknowledge(&job);
            return self.remove_config_of_dry_run();
        }
        if self.is_only_object(&job) {
            return self.acknowledge(&job);
        }
        match self.record(&job) {
            Recording::Exists(job) => {
                failpoint::reach("worker::recorded");
                self.acknowledge(&job);
            }
            Recording::Lost(error) => self.lost(&job, &error),
            Recording::Stopped => self.requeue_at_stop(&job),
            Recording::Rejected(error) => {
                self.warn(&error, "record rejected by the store; job will be repeated later");
                self.run.shared.state.breakers.suspect(Dependency::Store);
                let running = self.run.job.clone();
                self.requeue(running, WaitReason::Retry, REJECTED_WAIT, AttemptCost::Zero, Some(error));
            }
        }
    }

    /// Whether the record would be the only object of its pipeline, which would be listed because of it. The job is
    /// shown for an hour, like any ended job.
    fn is_only_object(&self, job: &Job) -> bool {
        let missing = |error: &RunError| error.code == RunErrorCode::PipelineConfigNotFound;
        job.error.as_ref().is_some_and(missing) && config::is_gone(self.run.shared, &job.pipeline)
    }

    fn remove_config_of_dry_run(&self) {
        let message = &self.run.message;
        let key = dry_run_config_key(&message.pipeline, message.job_id.as_str());
        if let Err(error) = self.run.shared.store.delete(Bucket::Pipelines, &[key], &WriteOptions::default()) {
            tracing::warn!(job_id = %message.job_id, %error, "removing the config of a dry run failed");
        }
    }

    fn acknowledge(&self, job: &Job) {
        let run = self.run;
        let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
        let (fence, attempt) = (run.start.lease.fence, run.start.attempt);
        let live = job.clone().without_sources();
        run.shared.refunds.forget(&run.message.job_id);
        run.shared.left_to_others.forget(&run.message.job_id);
        // Before the acknowledgement, so that another worker does it if this one dies.
        if !run.shared.targets.is_empty() && !self.is_only_object(job) {
            self.retry("storing the notifications of a job", || notify::jobs::ended(run.shared, job));
        }
        failpoint::reach("worker::notified");
        match self.retry("ending a job", || run.shared.kv.finish(&run.start.lease, &live)) {
            Some(ReleaseOutcome::Released) => {}
            Some(ReleaseOutcome::Lost) => tracing::info!(job_id, pipeline, "lock expired; another worker ends the job"),
            None => tracing::warn!(job_id, pipeline, "acknowledging the job failed; another worker ends it"),
        }
        match &job.error {
            None => {
                run.shared.state.count(JobEvent::Completed);
                let rows = |count: fn(&TableResult) -> u64| -> u64 {
                    job.result.iter().flat_map(|result| result.tables.values()).map(count).sum()
                };
                let (rows_written, rows_rejected) = (rows(|t| t.rows_written), rows(|t| t.rows_rejected));
                if !job.is_dry_run() {
                    run.shared.state.count_rows(rows_written, rows_rejected);
                }
                let duration_ms = job.duration_ms;
                tracing::info!(
                    job_id,
                    pipeline,
                    fence,
                    attempt,
                    duration_ms,
                    rows_written,
                    rows_rejected,
                    "job completed"
                );
            }
            Some(error) => {
                run.shared.state.count(JobEvent::Failed);
                run.shared.state.count_failure(error.code);
                let (code, detail) = (error.code, error.detail.as_deref());
                tracing::warn!(job_id, pipeline, fence, attempt, %code, %error, detail, "job failed");
            }
        }
    }

    /// Writes the record while the lease lasts.
    fn record(&self, job: &Job) -> Recording {
        let run = self.run;
        let json = match serde_json::to_vec(job) {
            Ok(json) => json,
            Err(error) => return Recording::Rejected(RunError::new(RunErrorCode::Internal, error.to_string())),
        };
        let mut outage = OutageLog::new("writing the record of a job");
        let (mut pause, mut rejections) = (PAUSE_FIRST, 0);
        let mut drained: Option<Instant> = None;
        loop {
            match run.watch.renew() {
                Ok(()) => {}
                Err(Stop::WorkerStopping) => return Recording::Stopped,
                Err(stop @ (Stop::LeaseLost | Stop::Cancelled)) => {
                    let message = "the lease was lost before the record was written";
                    return Recording::Lost(RunError::new(stop.code(), message));
                }
            }
            let options = WriteOptions::leased(&*run.lease).with(Precondition::IfNoneMatch);
            let error = match run.shared.store.put(Bucket::Pipelines, &self.record_key(), &json, &options) {
                Ok(_) => return Recording::Exists(Box::new(job.clone())),
                Err(taken @ StoreError::PreconditionFailed { .. }) => match self.found_record() {
                    Ok(Some(found)) => return Recording::Exists(found),
                    Ok(None) => RunError::new(RunErrorCode::S3Error, taken.to_string()),
                    Err(error) => error,
                },
                Err(StoreError::LeaseLost(lost)) => return Recording::Lost(store_error(lost.into())),
                Err(error) => store_error(error),
            };
            outage.failed(&error);
            run.shared.state.breakers.suspect(Dependency::Store);
            // Not earlier: readers of an ended job look for its record.
            run.watch.report_as(job);
            rejections += u32::from(!error.code.is_transient());
            if rejections >= REJECTED_TRIES_MAX {
                return Recording::Rejected(error);
            }
            if run.shared.stopping.wait_for(Phase::ForceStop, pause) || self.has_drained_long(&mut drained) {
                return Recording::Stopped;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Retries a call to the key-value store: without limit while the worker works, since it could claim nothing
    /// anyway; once it drains, until another worker would reclaim the entry.
    fn retry<T>(&self, what: &'static str, call: impl FnMut() -> crate::ports::kv::KvResult<T>) -> Option<T> {
        let stopping = &self.run.shared.stopping;
        let pause = || {
            stopping.wait_for(Phase::ForceStop, PAUSE_FIRST);
        };
        let mut drained = None;
        let give_up = || stopping.phase() == Phase::ForceStop || self.has_drained_long(&mut drained);
        retry_until(what, Duration::MAX, call, pause, give_up).ok()
    }

    /// Whether the worker has drained for so long that another one reclaims the entry. `since`: when that was first
    /// seen.
    fn has_drained_long(&self, since: &mut Option<Instant>) -> bool {
        if self.run.shared.stopping.phase() == Phase::Working {
            return false;
        }
        since.get_or_insert_with(Instant::now).elapsed() >= self.run.shared.options.lease.reclaim_idle
    }

    fn record_key(&self) -> String {
        job_record_key(&self.run.message.pipeline, self.run.message.job_id.as_str())
    }

    fn warn(&self, error: &RunError, what: &str) {
        let run = self.run;
        tracing::warn!(job_id = %run.message.job_id, pipeline = %run.message.pipeline, fence = run.start.lease.fence,
            attempt = run.start.attempt, %error, detail = error.detail, "{what}");
    }
}
