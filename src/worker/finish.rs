//! The end of an attempt: the terminal record first, then the acknowledgement.
//!
//! Invariant: only who holds the lock writes a terminal record, and never over another one.

use std::time::Duration;

use chrono::TimeDelta;

use super::breaker::Dependency;
use super::config;
use super::execute::Run;
use super::observe::Watch;
use super::probe::{self, Blamed};
use super::retrying::{Outage, persist};
use super::state::Happened;
use super::stopping::Phase;
use crate::domain::job::retry::{self, Next};
use crate::domain::job::{AttemptCost, Job, RunError, RunErrorCode, RunResult, TableResult, Waiting};
use crate::domain::layout::job_record_key;
use crate::domain::limits::JOB_WAIT_MS_MAX;
use crate::engine::run_error::store_error;
use crate::pipelines::history::{self, Recorded};
use crate::ports::jobs::{ReleaseOutcome, Requeue};
use crate::ports::observer::Stop;
use crate::ports::store::{Bucket, Lease, Precondition, StoreError, WriteOptions};
use crate::runtime::failpoint;
use crate::runtime::threads::{self, Instant};

/// Pauses between two tries to write a record.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Tries to write a record that the store refuses, before the job goes back to wait.
const REFUSED_TRIES_MAX: u32 = 3;
/// How long it waits then: nothing helps until somebody mends the store or the credentials.
const REFUSED_WAIT: Duration = Duration::from_millis(JOB_WAIT_MS_MAX);

/// How an attempt ended.
pub(super) enum Outcome {
    Completed(RunResult),
    Failed(RunError),
    /// The job has its terminal record already.
    Recorded(Box<Job>),
    /// The worker is told to end: back to the queue, uncharged.
    Abandoned,
    /// The machine has no thread for the run: back to the queue, uncharged.
    HostExhausted(std::io::Error),
}

impl Outcome {
    /// Of a run that did not begin because it had to stop.
    pub(super) fn stopped(watch: &Watch) -> Self {
        match watch.must_stop() {
            Err(stop @ (Stop::Cancelled | Stop::LeaseLost)) => {
                Self::Failed(RunError::new(stop.code(), "the run stopped before it began"))
            }
            Err(Stop::WorkerStopping) | Ok(()) => Self::Abandoned,
        }
    }
}

/// What became of a terminal record.
enum Recording {
    /// It is there: ours, or one that was there before.
    There(Box<Job>),
    /// The lease was lost on the way.
    Lost(RunError),
    /// The store refuses it, whenever it is tried.
    Refused(RunError),
    /// The worker has to end before the store is back.
    Abandoned,
}

pub(super) struct Finish<'a> {
    pub(super) run: &'a Run<'a>,
}

impl Finish<'_> {
    /// The terminal record, if the job has one already.
    ///
    /// # Errors
    /// What the store says, as the error of a run.
    pub(super) fn found_record(&self) -> Result<Option<Box<Job>>, RunError> {
        let message = &self.run.message;
        let why = match history::read(&*self.run.shared.store, &message.pipeline, &message.job_id) {
            Ok(Recorded::Gone) => return Ok(None),
            Ok(Recorded::Job(job)) if job.status.is_terminal() => return Ok(Some(job)),
            Ok(Recorded::Job(_)) => "it is not terminal".to_owned(),
            Ok(Recorded::Unreadable(_, why)) => why,
            Err(error) => return Err(store_error(error)),
        };
        let key = self.record_key();
        let text = format!("`{key}` is there but no terminal record of ours");
        tracing::warn!(job_id = %message.job_id, key, why, "{text}; it is left as it is");
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
            Outcome::Abandoned => self.abandon(&job),
            Outcome::Failed(error) => self.failed(job, error),
            Outcome::HostExhausted(error) => {
                run.shared.state.breakers.probed(Dependency::Host, Err(format!("starting a thread: {error}")));
                let error =
                    RunError::new(RunErrorCode::Internal, format!("the worker has no thread for the run: {error}"));
                self.refund(job, error, &Blamed { dependency: Dependency::Host, refunds: 1 });
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
            || shared.stopping.phase() == Phase::Abandon && error.code.is_transient()
        {
            return self.abandon(&job);
        }
        if let Some(blamed) = probe::blame(shared, &run.message.job_id, &error, run.began) {
            return self.refund(job, error, &blamed);
        }
        match retry::after(&error, run.start.attempt, run.shared.options.attempts_max, threads::random_unit()) {
            Next::Fail => {
                if matches!(error.code, RunErrorCode::S3Error | RunErrorCode::DiskFull) {
                    self.persist("adding a recheck", || shared.kv.add_recheck(&run.message.pipeline));
                }
                self.end(job.failed(error, shared.clock.now()));
            }
            Next::Wait { reason, delay, cost } => {
                self.warn(&error, "the attempt failed; the job is tried again");
                if self.give_back(job, reason, delay, cost, Some(error)) == Some(ReleaseOutcome::Released) {
                    run.shared.state.count(Happened::Retried);
                }
            }
        }
    }

    /// The attempt failed for something that every job needs: it doesn't count.
    fn refund(&self, job: Job, error: RunError, blamed: &Blamed) {
        let dependency = blamed.dependency;
        self.warn(&error, &format!("the attempt failed because of the {dependency}; it does not count"));
        let delay = retry::backoff(blamed.refunds, threads::random_unit());
        match self.give_back(job, Waiting::Retry, delay, AttemptCost::Zero, Some(error)) {
            Some(ReleaseOutcome::Released) => self.run.shared.state.count(Happened::Refunded),
            Some(ReleaseOutcome::Lost) => self.refund_attempt(),
            None => {}
        }
    }

    /// The lock has run out. Unless another worker has started the job since, nobody was charged for it.
    fn refund_attempt(&self) {
        self.persist("giving an attempt back", || self.run.shared.kv.refund_attempt(&self.run.start.lease));
    }

    /// The worker has to end: the job goes back to the queue, uncharged.
    fn abandon(&self, job: &Job) {
        let running = self.run.job.clone();
        let error = job.error.clone();
        if self.give_back(running, Waiting::Retry, Duration::ZERO, AttemptCost::Zero, error)
            == Some(ReleaseOutcome::Released)
        {
            self.run.shared.state.count(Happened::Abandoned);
            tracing::info!(job_id = %self.run.message.job_id, pipeline = %self.run.message.pipeline,
                "the worker ends; the job went back to the queue");
        }
    }

    /// The lease is lost. The attempt is given back if that was the key-value store's fault.
    fn lost(&self, job: &Job, error: &RunError) {
        self.run.shared.state.count(Happened::Lost);
        self.warn(error, "the lease was lost; nothing more is written, and the job will be done again");
        let blameless = self.run.watch.is_unheard();
        let (delay, cost) = match blameless {
            true => (Duration::ZERO, AttemptCost::Zero),
            false => (retry::backoff(self.run.start.attempt, threads::random_unit()), AttemptCost::One),
        };
        let running = Job { progress: job.progress.clone(), ..self.run.job.clone() };
        let released = self.give_back(running, Waiting::Retry, delay, cost, Some(error.clone()));
        if blameless && released == Some(ReleaseOutcome::Lost) {
            self.refund_attempt();
        }
    }

    /// `None` if the key-value store could not be reached.
    fn give_back(
        &self,
        running: Job,
        reason: Waiting,
        delay: Duration,
        cost: AttemptCost,
        error: Option<RunError>,
    ) -> Option<ReleaseOutcome> {
        let at = self.run.shared.clock.now() + TimeDelta::from_std(delay).unwrap_or_default();
        let job = running.waiting(reason, at, error);
        let wait = Requeue { job: &job, delay, reason, cost };
        self.persist("putting a job back", || self.run.shared.kv.requeue(&self.run.start.lease, &wait))
    }

    /// Writes the terminal record, then ends the job.
    fn end(&self, job: Job) {
        failpoint::reach("worker::before_record");
        if self.is_of_no_pipeline(&job) {
            return self.acknowledge(&job);
        }
        match self.record(&job) {
            Recording::There(job) => {
                failpoint::reach("worker::recorded");
                self.acknowledge(&job);
            }
            Recording::Lost(error) => self.lost(&job, &error),
            Recording::Abandoned => self.abandon(&job),
            Recording::Refused(error) => {
                self.warn(&error, "the store refuses the record of the job; it is done again later");
                self.run.shared.state.breakers.suspect(Dependency::Store);
                let running = self.run.job.clone();
                self.give_back(running, Waiting::Retry, REFUSED_WAIT, AttemptCost::Zero, Some(error));
            }
        }
    }

    /// Whether the record would be the only object of its pipeline, which would be listed for it. The job is shown for
    /// an hour, as any that ended.
    fn is_of_no_pipeline(&self, job: &Job) -> bool {
        let missing = |error: &RunError| error.code == RunErrorCode::PipelineConfigNotFound;
        job.error.as_ref().is_some_and(missing) && config::is_gone(self.run.shared, &job.pipeline)
    }

    fn acknowledge(&self, job: &Job) {
        let run = self.run;
        let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
        let (fence, attempt) = (run.start.lease.fence, run.start.attempt);
        let live = job.clone().without_sources();
        run.shared.refunds.forget(&run.message.job_id);
        match self.persist("ending a job", || run.shared.kv.finish(&run.start.lease, &live)) {
            Some(ReleaseOutcome::Released) => {}
            Some(ReleaseOutcome::Lost) => {
                tracing::info!(job_id, pipeline, "the lock was over; another worker ends the job")
            }
            None => tracing::warn!(job_id, pipeline, "the job could not be acknowledged; another worker ends it"),
        }
        match &job.error {
            None => {
                run.shared.state.count(Happened::Completed);
                let rows = |count: fn(&TableResult) -> u64| -> u64 {
                    job.result.iter().flat_map(|result| result.tables.values()).map(count).sum()
                };
                let (rows_written, rows_rejected) = (rows(|t| t.rows_written), rows(|t| t.rows_rejected));
                run.shared.state.count_rows(rows_written, rows_rejected);
                let duration_ms = job.duration_ms;
                tracing::info!(
                    job_id,
                    pipeline,
                    fence,
                    attempt,
                    duration_ms,
                    rows_written,
                    rows_rejected,
                    "the job is completed"
                );
            }
            Some(error) => {
                run.shared.state.count(Happened::Failed);
                run.shared.state.count_failure(error.code);
                let (code, detail) = (error.code, error.detail.as_deref());
                tracing::warn!(job_id, pipeline, fence, attempt, %code, %error, detail, "the job has failed");
            }
        }
    }

    /// Writes the record, for as long as the lease lasts.
    fn record(&self, job: &Job) -> Recording {
        let run = self.run;
        let json = match serde_json::to_vec(job) {
            Ok(json) => json,
            Err(error) => return Recording::Refused(RunError::new(RunErrorCode::Internal, error.to_string())),
        };
        let mut outage = Outage::new("writing the record of a job");
        let (mut pause, mut refusals) = (PAUSE_FIRST, 0);
        let mut drained: Option<Instant> = None;
        loop {
            match run.watch.renew() {
                Ok(()) => {}
                Err(Stop::WorkerStopping) => return Recording::Abandoned,
                Err(stop @ (Stop::LeaseLost | Stop::Cancelled)) => {
                    let message = "the lease was lost before the record was written";
                    return Recording::Lost(RunError::new(stop.code(), message));
                }
            }
            let options = WriteOptions::leased(&*run.lease).with(Precondition::IfNoneMatch);
            let error = match run.shared.store.put(Bucket::Pipelines, &self.record_key(), &json, &options) {
                Ok(_) => return Recording::There(Box::new(job.clone())),
                Err(taken @ StoreError::PreconditionFailed { .. }) => match self.found_record() {
                    Ok(Some(found)) => return Recording::There(found),
                    Ok(None) => RunError::new(RunErrorCode::S3Error, taken.to_string()),
                    Err(error) => error,
                },
                Err(StoreError::LeaseLost(lost)) => return Recording::Lost(store_error(lost.into())),
                Err(error) => store_error(error),
            };
            outage.tell(&error);
            run.shared.state.breakers.suspect(Dependency::Store);
            // Not before: a live job that ended has no sources, and whoever asks for it should find its record.
            run.watch.settle(job);
            refusals += u32::from(!error.code.is_transient());
            if refusals >= REFUSED_TRIES_MAX {
                return Recording::Refused(error);
            }
            if run.shared.stopping.wait_for(Phase::Abandon, pause) || self.has_drained_long(&mut drained) {
                return Recording::Abandoned;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Tries a step of the key-value store: while the worker works for as long as it takes, since it could claim nothing
    /// anyway; once it is told to end, for as long as another worker would wait for this one.
    fn persist<T>(&self, what: &'static str, tried: impl FnMut() -> crate::ports::kv::KvResult<T>) -> Option<T> {
        let stopping = &self.run.shared.stopping;
        let pause = || {
            stopping.wait_for(Phase::Abandon, PAUSE_FIRST);
        };
        let mut drained = None;
        let give_up = || stopping.phase() == Phase::Abandon || self.has_drained_long(&mut drained);
        persist(what, Duration::MAX, tried, pause, give_up).ok()
    }

    /// Whether the worker was told to end longer ago than another would wait for it; `since` keeps when that was seen.
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
