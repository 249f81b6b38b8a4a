//! The end of an attempt: the terminal record first, then the acknowledgement.
//!
//! Invariant: only who holds the lock writes a terminal record, and never over another one.

use std::io::Read;
use std::time::Duration;

use chrono::TimeDelta;

use super::execute::Run;
use super::observe::Watch;
use super::retrying::{Outage, persist};
use super::state::Happened;
use super::stopping::Phase;
use crate::domain::job::retry::{self, Next};
use crate::domain::job::{Charge, Job, RunError, RunErrorCode, RunResult, Waiting};
use crate::domain::layout::job_record_key;
use crate::domain::limits::JOB_RECORD_BYTES_MAX;
use crate::engine::failure::store_error;
use crate::ports::failpoint;
use crate::ports::jobs::{Release, Wait};
use crate::ports::observer::Stop;
use crate::ports::store::{Bucket, Lease, Precondition, StoreError, WriteOptions};

/// Pauses between two tries to write a record.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Tries to write a record that the store refuses for good.
const REFUSED_TRIES_MAX: u32 = 3;

/// How an attempt ended.
pub(super) enum Outcome {
    Completed(RunResult),
    Failed(RunError),
    /// The job has its terminal record already.
    Recorded(Box<Job>),
    /// The worker is told to end: back to the queue, uncharged.
    Abandoned,
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
    Lost,
    /// The store refuses it for good.
    Refused,
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
        let key = self.record_key();
        let reader = match self.run.shared.store.get(Bucket::Pipelines, &key, None) {
            Ok(reader) => reader,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(store_error(error)),
        };
        let mut json = Vec::new();
        reader.body.take(JOB_RECORD_BYTES_MAX).read_to_end(&mut json).map_err(|source| {
            let (bucket, key) = (Bucket::Pipelines, key.clone());
            store_error(StoreError::Transient { bucket, key, operation: "reading", source })
        })?;
        let job = serde_json::from_slice::<Job>(&json).ok().filter(|job| job.status.is_terminal());
        Ok(Some(Box::new(job.unwrap_or_else(|| {
            let message = format!("`{key}` is there but no terminal record of ours");
            tracing::warn!(job_id = %self.run.message.job_id, key, "{message}; it is left as it is");
            self.run.job.clone().failed(RunError::new(RunErrorCode::Internal, message), self.run.shared.clock.now())
        }))))
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
        }
    }

    fn failed(&self, job: Job, error: RunError) {
        let run = self.run;
        if run.lease.remaining().is_err() {
            return self.lost(&job, &error);
        }
        if error.code == RunErrorCode::WorkerStopping {
            return self.abandon(&job);
        }
        let jitter = f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX);
        match retry::after(&error, run.start.attempt, run.shared.options.attempts_max, jitter) {
            Next::Fail => self.end(job.failed(error, run.shared.clock.now())),
            Next::Wait { reason, delay, charge } => self.put_back(job, reason, delay, charge, error),
        }
    }

    fn put_back(&self, job: Job, reason: Waiting, delay: Duration, charge: Charge, error: RunError) {
        let (run, code) = (self.run, error.code);
        self.warn(&error, "the attempt failed; the job is tried again");
        let at = run.shared.clock.now() + TimeDelta::from_std(delay).unwrap_or_default();
        let job = job.waiting(reason, at, Some(error));
        let released = self.give_back(&job, reason, delay, charge);
        if released == Some(Release::Done) {
            run.shared.state.count(Happened::Retried);
        }
        tracing::debug!(job_id = %run.message.job_id, ?code, ?released, "put back");
    }

    fn abandon(&self, job: &Job) {
        let now = self.run.shared.clock.now();
        let job = job.clone().waiting(Waiting::Retry, now, None);
        if self.give_back(&job, Waiting::Retry, Duration::ZERO, Charge::Nothing) == Some(Release::Done) {
            self.run.shared.state.count(Happened::Abandoned);
            tracing::info!(job_id = %self.run.message.job_id, pipeline = %self.run.message.pipeline,
                "the worker ends; the job went back to the queue");
        }
    }

    /// The lease is lost. If that was because the key-value store was away, the attempt is given back.
    fn lost(&self, job: &Job, error: &RunError) {
        self.run.shared.state.count(Happened::Lost);
        self.warn(error, "the lease was lost; nothing more is written, and the job will be done again");
        let job = job.clone().waiting(Waiting::Retry, self.run.shared.clock.now(), Some(error.clone()));
        if self.give_back(&job, Waiting::Retry, Duration::ZERO, Charge::Nothing) == Some(Release::Lost) {
            // The lock has run out. Unless another worker has started the job since, that was nobody's fault.
            self.persist("giving an attempt back", || self.run.shared.kv.uncharge(&self.run.start.held));
        }
    }

    fn give_back(&self, job: &Job, reason: Waiting, delay: Duration, charge: Charge) -> Option<Release> {
        let wait = Wait { job, delay, reason, charge };
        self.persist("putting a job back", || self.run.shared.kv.put_back(&self.run.start.held, &wait))
    }

    /// Writes the terminal record, then ends the job.
    fn end(&self, job: Job) {
        // Should the store be away, the outcome is shown meanwhile.
        self.run.watch.settle(&job);
        failpoint::reach("worker::before_record");
        match self.record(job.clone()) {
            Recording::There(job) => {
                failpoint::reach("worker::recorded");
                self.acknowledge(&job);
            }
            Recording::Refused => self.acknowledge(&job),
            Recording::Lost => self.run.shared.state.count(Happened::Lost),
        }
    }

    fn acknowledge(&self, job: &Job) {
        let run = self.run;
        let (job_id, pipeline) = (run.message.job_id.as_str(), run.message.pipeline.as_str());
        let (fence, attempt) = (run.start.held.fence, run.start.attempt);
        match self.persist("ending a job", || run.shared.kv.end(&run.start.held, job)) {
            Some(Release::Done) => {}
            Some(Release::Lost) => tracing::info!(job_id, pipeline, "the lock was over; another worker ends the job"),
            None => tracing::warn!(job_id, pipeline, "the job could not be acknowledged; another worker ends it"),
        }
        match &job.error {
            None => {
                run.shared.state.count(Happened::Completed);
                tracing::info!(job_id, pipeline, fence, attempt, duration_ms = job.duration_ms, "the job is completed");
            }
            Some(error) => {
                run.shared.state.count(Happened::Failed);
                let code = serde_json::to_value(error.code).unwrap_or_default();
                let code = code.as_str().unwrap_or_default();
                tracing::warn!(job_id, pipeline, fence, attempt, code, %error, "the job has failed");
            }
        }
    }

    /// Writes the record, for as long as the lease lasts.
    fn record(&self, job: Job) -> Recording {
        let run = self.run;
        let Ok(json) = serde_json::to_vec(&job) else { return Recording::Refused };
        let mut outage = Outage::new("writing the record of a job");
        let (mut pause, mut refusals) = (PAUSE_FIRST, 0);
        loop {
            if run.watch.renew().is_err() {
                return Recording::Lost;
            }
            let options = WriteOptions::leased(&*run.lease).with(Precondition::IfAbsent);
            let error = match run.shared.store.put(Bucket::Pipelines, &self.record_key(), &json, &options) {
                Ok(_) => return Recording::There(Box::new(job)),
                Err(StoreError::PreconditionFailed { .. }) => match self.found_record() {
                    Ok(Some(found)) => return Recording::There(found),
                    Ok(None) => continue,
                    Err(error) => error,
                },
                Err(StoreError::LeaseLost(_)) => return Recording::Lost,
                Err(error) => store_error(error),
            };
            outage.tell(&error);
            refusals += u32::from(!error.code.is_transient());
            if refusals >= REFUSED_TRIES_MAX {
                tracing::error!(job_id = %run.message.job_id, pipeline = %run.message.pipeline, %error,
                    "the record of a job can't be written; its live record keeps the outcome for an hour");
                return Recording::Refused;
            }
            if run.shared.stopping.wait_for(Phase::Abandon, pause) {
                return Recording::Lost;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Tries a step of the key-value store for as long as somebody else would wait for this worker.
    fn persist<T>(&self, what: &'static str, tried: impl FnMut() -> crate::ports::kv::KvResult<T>) -> Option<T> {
        let stopping = &self.run.shared.stopping;
        let pause = || {
            stopping.wait_for(Phase::Abandon, PAUSE_FIRST);
        };
        let longest = self.run.shared.options.lease.reclaim_idle;
        persist(what, longest, tried, pause, || stopping.phase() == Phase::Abandon).ok()
    }

    fn record_key(&self) -> String {
        job_record_key(&self.run.message.pipeline, self.run.message.job_id.as_str())
    }

    fn warn(&self, error: &RunError, what: &str) {
        let run = self.run;
        tracing::warn!(job_id = %run.message.job_id, pipeline = %run.message.pipeline, fence = run.start.held.fence,
            attempt = run.start.attempt, %error, detail = error.detail, "{what}");
    }
}
