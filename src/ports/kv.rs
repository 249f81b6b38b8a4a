//! The key-value store: locks on names, diagnostics, and the sum of its ports.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::job_index::JobIndex;
use super::jobs::{JobQueue, JobRegistry, PipelineLocks};
pub use super::kv_error::{KvError, KvResult};
use super::notifications::Notifications;
use super::pauses::RunPauses;
use super::queries::RunningQueries;
use super::rechecks::Rechecks;
use super::run_requests::RunRequests;
use super::schedule::Schedule;
use super::sessions::{LoginThrottle, Sessions};

/// Short locks on names, shared by all processes that use the store. They have no fences: holders do one quick operation
/// and verify it afterwards.
pub trait KeyLocks: Send + Sync {
    /// Takes the lock on `name` under `token` for `ttl`; false if another token holds it.
    ///
    /// # Errors
    /// [`KvError`].
    fn try_lock(&self, name: &str, token: &str, ttl: Duration) -> KvResult<bool>;

    /// Releases the lock if `token` still holds it.
    ///
    /// # Errors
    /// [`KvError`].
    fn unlock(&self, name: &str, token: &str) -> KvResult<()>;
}

/// State of the store, for `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvReport {
    /// E.g. `Redis 7.0.15` or `SQLite 3.50`.
    pub server: String,
    /// Unsafe settings and unsupported versions.
    pub findings: Vec<KvFinding>,
}

/// A problem of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvFinding {
    /// False: the store works, but may lose data.
    pub fatal: bool,
    /// Found and expected, e.g. ``maxmemory-policy is `allkeys-lru`, expected `noeviction` ``.
    pub problem: String,
    /// What to do.
    pub advice: String,
}

/// Diagnostics.
pub trait Diagnose: Send + Sync {
    /// A round trip.
    ///
    /// # Errors
    /// [`KvError`].
    fn ping(&self) -> KvResult<()>;

    /// Writes a short-lived key by the commands that the other steps use: `Refused` if the store responds but rejects
    /// writes (out of memory, a replica, missing permissions).
    ///
    /// # Errors
    /// [`KvError`].
    fn probe_write(&self) -> KvResult<()>;

    /// # Errors
    /// [`KvError`].
    fn report(&self) -> KvResult<KvReport>;

    /// The store's clock; `None` if it uses this machine's.
    ///
    /// # Errors
    /// [`KvError`].
    fn time(&self) -> KvResult<Option<DateTime<Utc>>>;

    /// Failed operations of this process since its start.
    fn failures(&self) -> u64;
}

/// All ports of the key-value store.
pub trait Kv:
    JobQueue
    + JobRegistry
    + JobIndex
    + PipelineLocks
    + Schedule
    + RunRequests
    + RunPauses
    + Rechecks
    + Notifications
    + Sessions
    + LoginThrottle
    + RunningQueries
    + KeyLocks
    + Diagnose
{
}

impl<T> Kv for T where
    T: JobQueue
        + JobRegistry
        + JobIndex
        + PipelineLocks
        + Schedule
        + RunRequests
        + RunPauses
        + Rechecks
        + Notifications
        + Sessions
        + LoginThrottle
        + RunningQueries
        + KeyLocks
        + Diagnose
{
}
