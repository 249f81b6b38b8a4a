//! The job queue, the locks on pipelines, and the records of active jobs.
//!
//! Contract, tested on every backend by one suite. Each method is one atomic step. Times are the key-value store's own, so
//! that processes with wrong clocks agree.
//! - A job that is not terminal is *active*: in the stream (perhaps claimed), or *waiting* until it is due. Only
//!   [`JobQueue::finish`], [`JobQueue::dead_letter`] and [`JobRegistry::drop_pipeline`] remove it.
//! - An entry that another program wrote is a job of its pipeline: [`JobRegistry`] creates its record before it reads;
//!   several calls may be needed for thousands of new entries. An entry without a valid pipeline is left to
//!   [`JobQueue::dead_letter`].
//! - A claimed entry is *pending* for one consumer until it is acknowledged, or until another consumer reclaims it after
//!   its heartbeats stopped.
//! - A pipeline has at most one lock, which expires its TTL after the last [`JobQueue::heartbeat`].
//! - The fence of a lock is higher than that of every earlier lock of the pipeline.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::kv_error::KvResult;
use crate::domain::job::{AttemptCost, Job, JobId, JobMessage, WaitReason};
use crate::domain::name::Slug;

/// Identifies an entry of the stream; opaque.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub String);

/// An entry of the stream, written by any program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: EntryId,
    /// In order; invalid UTF-8 was replaced.
    pub fields: Vec<(String, String)>,
    /// When it was added to the stream.
    pub received_at: DateTime<Utc>,
}

/// How many entries a claim takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimits {
    /// From 1.
    pub entries: usize,
    /// How many of them may be [automatic](JobMessage::is_automatic).
    pub automatic: usize,
}

impl ClaimLimits {
    /// Entries of both kinds.
    pub fn any(entries: usize) -> Self {
        Self { entries, automatic: entries }
    }
}

/// Identifies a started job: its consumer holds the pipeline's lock and the pending entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLease {
    pub job_id: JobId,
    pub pipeline: Slug,
    pub entry: EntryId,
    pub consumer: String,
    /// Proves ownership of the lock; never reused.
    pub token: String,
    pub fence: u64,
}

/// Arguments of [`JobQueue::start`].
#[derive(Debug, Clone, Copy)]
pub struct StartRequest<'a> {
    pub entry: &'a EntryId,
    pub consumer: &'a str,
    pub message: &'a JobMessage,
    /// Identifies this start; never reused. A start repeated with the same token, because its reply was lost, changes
    /// nothing and gives the same result while the lock is held.
    pub token: &'a str,
    pub lock_ttl: Duration,
    /// The fence will be higher.
    pub fence_floor: u64,
    /// Maximum number of attempts, for the record of a job that another program enqueued.
    pub attempts_max: u32,
}

/// Result of [`JobQueue::start`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The caller must run the job.
    Running(StartedJob),
    /// The pipeline is locked; the entry is acknowledged, and the job waits.
    Deferred { until: DateTime<Utc> },
    /// Another consumer runs this job; the entry is unchanged.
    RunningElsewhere,
    /// The entry is no longer pending for the consumer.
    NotClaimed,
    /// The pipeline was deleted or renamed after the job was enqueued; the job is deleted.
    Dropped,
    /// An active job of another pipeline has this id; the entry is unchanged.
    IdTaken,
}

/// A started job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedJob {
    pub lease: JobLease,
    /// Counted starts including this one, from 1.
    pub attempt: u32,
    /// Earlier starts whose process died.
    pub lost_starts: u32,
    /// A cancellation was requested before.
    pub cancelled: bool,
}

/// Result of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatReply {
    Held {
        cancelled: bool,
    },
    /// The lock expired or has another holder: the caller must write nothing more.
    Lost,
}

/// Result of [`JobQueue::begin_publishing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishReply {
    /// The job can't be cancelled anymore.
    Begun,
    Cancelled,
    Lost,
}

/// Result of releasing a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseOutcome {
    Released,
    /// The lock expired or has another holder; nothing changed.
    Lost,
}

/// Arguments of [`JobQueue::requeue`].
#[derive(Debug, Clone, Copy)]
pub struct Requeue<'a> {
    /// The new record; its `not_before` is replaced.
    pub job: &'a Job,
    pub delay: Duration,
    pub reason: WaitReason,
    pub cost: AttemptCost,
}

/// The queue, for workers.
pub trait JobQueue: Send + Sync {
    /// Claims new entries in the order of [`crate::domain::job::order`], one of a pipeline, waiting up to `wait` (at most
    /// 5 s) for the first. Defers jobs whose pipeline is locked, instead of claiming their entries. Creates the stream and its group if missing.
    fn claim(&self, consumer: &str, limits: ClaimLimits, wait: Duration) -> KvResult<Vec<Entry>>;

    /// Claims up to `count` entries that are pending for any consumer without a heartbeat for `idle`. Acknowledges, and
    /// doesn't return, entries without content.
    fn reclaim(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>>;

    /// Locks the pipeline for a claimed entry and counts the attempt, or defers the job. Creates the record of a job that
    /// another program enqueued. Once the pipeline is locked, its other jobs whose entries are not claimed are deferred:
    /// after the release of the lock they are behind those of other pipelines.
    fn start(&self, request: &StartRequest<'_>) -> KvResult<StartOutcome>;

    /// Extends the lock to `lock_ttl` from now, and keeps the entry claimed.
    fn heartbeat(&self, lease: &JobLease, lock_ttl: Duration) -> KvResult<HeartbeatReply>;

    /// Replaces the job's record; does nothing if the lock is lost.
    fn update_record(&self, lease: &JobLease, job: &Job) -> KvResult<HeartbeatReply>;

    /// Called before the first write of a run to the warehouse.
    fn begin_publishing(&self, lease: &JobLease) -> KvResult<PublishReply>;

    /// Makes the job wait for a delay, acknowledges its entry and releases the lock. Releasing a lock makes the oldest
    /// deferred job of the pipeline due, a manual one first.
    fn requeue(&self, lease: &JobLease, requeue: &Requeue<'_>) -> KvResult<ReleaseOutcome>;

    /// Refunds the attempt of a start whose lock is lost, unless the job was started again since; whether it did. The entry
    /// stays pending, to be reclaimed.
    fn refund_attempt(&self, lease: &JobLease) -> KvResult<bool>;

    /// Ends the job: acknowledges its entry, keeps `job` (terminal) as its record for an hour, deletes its changed
    /// keys, and releases the lock. The terminal record in the object store must be written first. Unless the job
    /// completed, the waiting jobs and the next window of the pipeline check all keys.
    fn finish(&self, lease: &JobLease, job: &Job) -> KvResult<ReleaseOutcome>;

    /// Moves an entry without a valid pipeline, pending for any consumer, to the dead letters.
    fn dead_letter(&self, entry: &Entry, why: &str) -> KvResult<()>;

    /// Removes the consumer, unless entries are pending for it (these can be reclaimed).
    fn remove_consumer(&self, consumer: &str) -> KvResult<()>;
}

/// Result of [`JobRegistry::enqueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnqueueOutcome {
    Queued,
    /// A job with this id is active; nothing changed.
    AlreadyActive,
}

/// Result of [`JobRegistry::cancel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The worker ends it soon; a waiting job becomes due for this.
    Requested,
    /// The job is already publishing.
    TooLate,
    /// No active job has this id.
    NotActive,
}

/// Lengths of the queue's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Entries in the stream, including claimed ones.
    pub stream: u64,
    /// Claimed entries.
    pub pending: u64,
    /// Jobs that are not due yet.
    pub waiting: u64,
    /// Runs that comparisons requested; see [`super::run_requests`].
    pub requested: u64,
    /// Open debounce windows.
    pub windows: u64,
    /// Dead letters.
    pub dead_letters: u64,
}

/// Active jobs, for all services.
pub trait JobRegistry: Send + Sync {
    /// Adds a job to the stream, with its record.
    fn enqueue(&self, job: &Job) -> KvResult<EnqueueOutcome>;

    /// Attempts before a job has failed, as last set by [`JobRegistry::set_attempts_max`]; `None` if never set. Queued jobs
    /// show it as their `max_attempts`, running ones the value of their worker.
    fn attempts_max(&self) -> KvResult<Option<u32>>;

    fn set_attempts_max(&self, attempts_max: u32) -> KvResult<()>;

    /// An active job, or one that ended less than an hour ago. A running job that lost its lock shows the time since its
    /// last heartbeat ([`Job::silent_ms`]).
    fn job(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<Option<Job>>;

    /// Up to `limit` active jobs of a pipeline, oldest first, as [`JobRegistry::job`] shows them.
    fn active(&self, pipeline: &Slug, limit: usize) -> KvResult<Vec<Job>>;

    fn cancel(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<CancelOutcome>;

    fn counts(&self) -> KvResult<QueueCounts>;

    /// How long the oldest due job has been due, including running jobs; `None` if none is due or the store doesn't know.
    fn oldest_due(&self) -> KvResult<Option<Duration>>;

    /// Deletes the window and the jobs of a pipeline, with their changed keys, except a running one, and its ended jobs in
    /// the index, and sets a tombstone:
    /// jobs that were enqueued before it are dropped when they start.
    fn drop_pipeline(&self, pipeline: &Slug) -> KvResult<()>;

    /// Removes the tombstone. The next window's job checks all keys, and the pipeline's records are indexed; see
    /// [`super::job_index`].
    fn revive_pipeline(&self, pipeline: &Slug) -> KvResult<()>;
}

/// A pipeline's lock, held by an operation other than a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineLock {
    pub pipeline: Slug,
    pub token: String,
    pub fence: u64,
}

/// The holder of a pipeline's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockHolder {
    /// A run with this token.
    Run { token: String },
    /// Another operation.
    Other,
}

/// The lock of [`JobQueue::start`], for operations that move or delete a pipeline.
pub trait PipelineLocks: Send + Sync {
    /// `None` if the lock is free.
    fn lock_holder(&self, pipeline: &Slug) -> KvResult<Option<LockHolder>>;

    /// `None` if the pipeline is locked.
    fn lock_pipeline(&self, pipeline: &Slug, ttl: Duration, fence_floor: u64) -> KvResult<Option<PipelineLock>>;

    /// Extends the lock to `ttl` from now.
    fn renew(&self, hold: &PipelineLock, ttl: Duration) -> KvResult<ReleaseOutcome>;

    /// Like a release by [`JobQueue::requeue`].
    fn release(&self, hold: &PipelineLock) -> KvResult<ReleaseOutcome>;
}
