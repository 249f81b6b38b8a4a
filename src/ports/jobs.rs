//! The queue of jobs, the lock on a pipeline's runs, and what is known of jobs that have not ended.
//!
//! Contract, tested on every backend by one suite. Each method is one atomic step: it took place as a whole or not at
//! all, whoever dies when. Times are the key-value store's own, so that processes with wrong clocks agree.
//! - A job that is not terminal is *active*: in the stream (perhaps claimed), or *waiting* until it is due. Nothing but
//!   [`JobQueue::end`], [`JobQueue::bury`] and [`JobBoard::drop_pipeline`] takes it out.
//! - An entry that another program wrote is a job of its pipeline from then on: [`JobBoard`] makes its record before it
//!   looks, of thousands of new entries at once over several looks. An entry that no pipeline can own is left to
//!   [`JobQueue::bury`].
//! - A claimed entry is *pending* for one consumer until it is acknowledged, or until another consumer reclaims it
//!   after it showed no life.
//! - At most one hold (lock) exists on a pipeline; it lasts for its TTL from the last [`JobQueue::heartbeat`].
//! - The fence of a hold is greater than that of every hold before it on the pipeline.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::kv::KvResult;
use crate::domain::job::{Charge, Job, JobId, JobMessage, Waiting};
use crate::domain::name::Slug;

/// Names an entry of the stream; opaque.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub String);

/// An entry of the stream as it was written, by us or by anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: EntryId,
    /// In their order; what is no UTF-8 was replaced.
    pub fields: Vec<(String, String)>,
    /// When it came into the stream.
    pub received_at: DateTime<Utc>,
}

/// A job that this process has started: it holds the pipeline's lock, and the entry is pending for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub job_id: JobId,
    pub pipeline: Slug,
    pub entry: EntryId,
    pub consumer: String,
    /// Proves the hold; never used twice.
    pub token: String,
    pub fence: u64,
}

/// What a start needs to know.
#[derive(Debug, Clone, Copy)]
pub struct StartRequest<'a> {
    pub entry: &'a EntryId,
    pub consumer: &'a str,
    pub message: &'a JobMessage,
    /// Names this start, never used for another. Repeated with the same one, because its answer was lost, a start
    /// changes nothing more and gives the same answer while the hold stands.
    pub token: &'a str,
    pub lock_ttl: Duration,
    /// The fence will be greater than it.
    pub fence_floor: u64,
    /// For the record of a job that somebody else put into the stream.
    pub attempts_max: u32,
}

/// How a start ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// The job is ours to run.
    Running(Start),
    /// Another run holds the lock; the entry is acknowledged and the job waits.
    Deferred { until: DateTime<Utc> },
    /// This very job holds the lock, through another consumer: the entry is left as it is.
    RunningElsewhere,
    /// The entry is not pending for the consumer any more.
    NotMine,
    /// The pipeline was deleted or renamed after the job was enqueued; the job is gone.
    Dropped,
    /// A job of another pipeline has this id and is active; the entry is left as it is.
    IdTaken,
}

/// A job that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub held: Held,
    /// Starts that count, this one included: from 1.
    pub attempt: u32,
    /// Starts before this one whose end nobody told: their process died.
    pub lost_starts: u32,
    /// It was cancelled before.
    pub cancelled: bool,
}

/// Whether a hold stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    Held {
        cancelled: bool,
    },
    /// The lock is over or someone else's: write nothing any more.
    Lost,
}

/// Whether a run may publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publishing {
    /// From now on the job can't be cancelled.
    Begun,
    Cancelled,
    Lost,
}

/// Whether a hold could be given up by its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    Done,
    /// It was over or someone else's; nothing took place.
    Lost,
}

/// How a job goes back to the queue.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    /// The job as it is to be shown; its own `not_before` is replaced by the true one.
    pub job: &'a Job,
    pub delay: Duration,
    pub reason: Waiting,
    pub charge: Charge,
}

/// What a worker does with jobs.
pub trait JobQueue: Send + Sync {
    /// Takes up to `count` (from 1) entries that nobody has claimed, waiting up to `wait` (at most 5 s) for the first.
    /// Makes the stream and its group where they are missing.
    fn claim(&self, consumer: &str, count: usize, wait: Duration) -> KvResult<Vec<Entry>>;

    /// Takes up to `count` entries that are pending for anybody and showed no life for `idle`. Entries without content
    /// are acknowledged on the way and are not among them.
    fn reclaim(&self, consumer: &str, count: usize, idle: Duration) -> KvResult<Vec<Entry>>;

    /// Takes the pipeline's lock for a claimed entry and counts the attempt, or defers the job. Where the job has no
    /// live record, because somebody else wrote the entry, makes it.
    fn start(&self, request: &StartRequest<'_>) -> KvResult<Started>;

    /// Prolongs the lock to `lock_ttl` from now, and shows that the entry is alive.
    fn heartbeat(&self, held: &Held, lock_ttl: Duration) -> KvResult<Beat>;

    /// Shows the job as it is now; does nothing if the hold is lost.
    fn show(&self, held: &Held, job: &Job) -> KvResult<Beat>;

    /// Asked before the first write of a run to the warehouse.
    fn begin_publishing(&self, held: &Held) -> KvResult<Publishing>;

    /// Puts the job back to be due after a delay, acknowledges its entry and releases the lock. When a lock is released,
    /// the longest deferred job of the pipeline becomes due.
    fn put_back(&self, held: &Held, wait: &Wait<'_>) -> KvResult<Release>;

    /// Gives back the attempt of a start whose hold is lost, if the job wasn't started again since; whether it did. The
    /// entry stays pending, to be reclaimed.
    fn uncharge(&self, held: &Held) -> KvResult<bool>;

    /// Ends the job: acknowledges its entry, keeps `job` (terminal) as its live record for an hour, and releases the
    /// lock. The terminal record in the store comes first.
    fn end(&self, held: &Held, job: &Job) -> KvResult<Release>;

    /// Moves an entry that no pipeline can own, pending for anybody, to the list of dead ones.
    fn bury(&self, entry: &Entry, why: &str) -> KvResult<()>;

    /// Forgets the consumer, unless entries are pending for it (then they can be reclaimed).
    fn leave(&self, consumer: &str) -> KvResult<()>;
}

/// Whether a job was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    Queued,
    /// A job of this id is active: nothing took place.
    AlreadyActive,
}

/// How the wish to cancel was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelling {
    /// The worker ends it soon; a waiting job became due for that.
    Requested,
    /// It is publishing already.
    TooLate,
    /// No active job has this id.
    NotActive,
}

/// Counts of everything that is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Entries in the stream, claimed ones included.
    pub stream: u64,
    /// Entries that are claimed.
    pub pending: u64,
    /// Jobs that wait until they are due.
    pub waiting: u64,
    /// Open debounce windows.
    pub windows: u64,
    /// Dead entries that are kept.
    pub dead: u64,
}

/// What anybody may ask of the queue.
pub trait JobBoard: Send + Sync {
    /// Puts a job into the stream, with its live record.
    fn enqueue(&self, job: &Job) -> KvResult<Enqueued>;

    /// How often workers start a job before it has failed: what [`JobBoard::set_attempts_max`] said last; `None` if
    /// no worker did. Queued jobs show it as their `max_attempts`, running ones what their worker has.
    fn attempts_max(&self) -> KvResult<Option<u32>>;

    /// Says it, for all processes.
    fn set_attempts_max(&self, attempts_max: u32) -> KvResult<()>;

    /// An active job, or one that ended less than an hour ago. A running one that doesn't hold its lock any more tells
    /// since when its entry showed no life ([`Job::silent_ms`]).
    fn job(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<Option<Job>>;

    /// The active jobs of a pipeline, the longest enqueued first, at most `limit`; as [`JobBoard::job`] tells them.
    fn active(&self, pipeline: &Slug, limit: usize) -> KvResult<Vec<Job>>;

    fn cancel(&self, pipeline: &Slug, job_id: &JobId) -> KvResult<Cancelling>;

    fn counts(&self) -> KvResult<QueueCounts>;

    /// How long the job has been due that has been so for the longest, those that run included; `None` if none is due,
    /// or the store doesn't tell.
    fn oldest_due(&self) -> KvResult<Option<Duration>>;

    /// Drops the window and every job of a pipeline that isn't running, and marks it: jobs enqueued before the mark are
    /// dropped when they start.
    fn drop_pipeline(&self, pipeline: &Slug) -> KvResult<()>;

    /// Takes the mark away.
    fn revive_pipeline(&self, pipeline: &Slug) -> KvResult<()>;
}

/// The lock on a pipeline's runs, held for something that is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHold {
    pub pipeline: Slug,
    pub token: String,
    pub fence: u64,
}

/// Who holds a pipeline's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The run of this token.
    Run { token: String },
    /// Something that is no run.
    Other,
}

/// The lock of [`JobQueue::start`], for those who move or delete a pipeline.
pub trait RunLocks: Send + Sync {
    /// `None` if the lock is free.
    fn holder(&self, pipeline: &Slug) -> KvResult<Option<Holder>>;

    /// `None` if someone holds it.
    fn hold(&self, pipeline: &Slug, ttl: Duration, fence_floor: u64) -> KvResult<Option<RunHold>>;

    /// Prolongs the lock to `ttl` from now.
    fn renew(&self, hold: &RunHold, ttl: Duration) -> KvResult<Release>;

    /// As [`JobQueue::put_back`] releases it.
    fn release(&self, hold: &RunHold) -> KvResult<Release>;
}
