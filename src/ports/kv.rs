//! What every port of the key-value store shares: its errors, locks on single names, and what `doctor` asks.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::jobs::{JobBoard, JobQueue, RunLocks};
use super::queries::RunningQueries;
use super::rechecks::Rechecks;
use super::schedule::Schedule;
use super::sessions::{LoginThrottle, Sessions};

/// Why an operation of the key-value store failed.
#[derive(Debug, thiserror::Error)]
pub enum KvError {
    /// No connection, or none in time. Whether the operation took place is not known.
    #[error("the key-value store can't be reached: {source} (step `{operation}`)")]
    Unavailable { operation: &'static str, source: std::io::Error },
    /// The store answered no: out of memory, read-only, not permitted. Nothing took place.
    #[error("the key-value store refused: {reason} (step `{operation}`)")]
    Refused { operation: &'static str, reason: String },
    /// What stands under a key of ours is not of our making.
    #[error("the key-value store holds what it should not: expected {expected}, found `{found}` (step `{operation}`)")]
    Malformed { operation: &'static str, expected: &'static str, found: String },
}

pub type KvResult<T> = Result<T, KvError>;

/// Short exclusive rights to a name, among all processes that use the key-value store. They are not fenced: for
/// holders that do one quick thing and look again afterwards.
pub trait KeyLocks: Send + Sync {
    /// Takes the lock on `name` under `token` for `ttl`; false if another token has it.
    ///
    /// # Errors
    /// [`KvError`].
    fn try_lock(&self, name: &str, token: &str, ttl: Duration) -> KvResult<bool>;

    /// Gives the lock back; nothing happens if it isn't `token`'s any more.
    ///
    /// # Errors
    /// [`KvError`].
    fn unlock(&self, name: &str, token: &str) -> KvResult<()>;
}

/// What the store says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvReport {
    /// E.g. `Redis 7.0.15` or `SQLite 3.50`.
    pub server: String,
    /// What makes the store unsafe or too old for us; empty when all is well.
    pub findings: Vec<KvFinding>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvFinding {
    /// False: it works, but data may be lost.
    pub fatal: bool,
    /// What was found and expected, e.g. ``maxmemory-policy is `allkeys-lru`, expected `noeviction` ``.
    pub problem: String,
    /// What to do.
    pub advice: String,
}

/// What is asked of the store itself.
pub trait Diagnose: Send + Sync {
    /// A round trip.
    ///
    /// # Errors
    /// [`KvError`].
    fn ping(&self) -> KvResult<()>;

    /// Writes a little under a name of its own that ends soon, by the means of every other step: `Refused` if the store
    /// answers but takes no writes (out of memory, a replica, rights that are too narrow), or not those of a step.
    ///
    /// # Errors
    /// [`KvError`].
    fn prove_write(&self) -> KvResult<()>;

    /// # Errors
    /// [`KvError`].
    fn report(&self) -> KvResult<KvReport>;

    /// What the store's clock says; `None` if it has none but this machine's.
    ///
    /// # Errors
    /// [`KvError`].
    fn time(&self) -> KvResult<Option<DateTime<Utc>>>;

    /// Operations of this process that failed since its start: no answer, or a refusal.
    fn failures(&self) -> u64;
}

/// All ports of the key-value store at once.
pub trait Kv:
    JobQueue + JobBoard + RunLocks + Schedule + Rechecks + Sessions + LoginThrottle + RunningQueries + KeyLocks + Diagnose
{
}

impl<T> Kv for T where
    T: JobQueue
        + JobBoard
        + RunLocks
        + Schedule
        + Rechecks
        + Sessions
        + LoginThrottle
        + RunningQueries
        + KeyLocks
        + Diagnose
{
}
