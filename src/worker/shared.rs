//! State shared by the threads of a worker.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::exclusive::ExclusiveGate;
use super::left_to_others::LeftToOthers;
use super::lifetime::{Lifetime, WorkSources};
use super::refunds::Refunds;
use super::state::WorkerState;
use super::stopping::Stopping;
use crate::config::LeaseConfig;
use crate::ports::{Expressions, IcebergCatalog, Kv, NotificationTarget, ObjectStore};
use crate::runtime::Clock;

/// Options of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Identifies this process among all workers; unique at any time.
    pub name: String,
    /// Maximum number of concurrent jobs, from 1.
    pub concurrency: usize,
    /// Executors that take no automatic jobs, below `concurrency`.
    pub manual_executors: usize,
    /// Attempts of a job before it fails, from 1.
    pub attempts_max: u32,
    pub lease: LeaseConfig,
    /// An existing folder that only this process uses.
    pub scratch_dir: PathBuf,
    /// Memory of one run.
    pub run_memory_bytes: u64,
    /// How often the lake is compared with the tables; `None`: only after the key-value store lost its data.
    pub reconcile: Option<Duration>,
    /// Days after which job records are deleted; `None`: never.
    pub job_records_days: Option<u32>,
    /// The web service's origin, for links in notifications.
    pub public_url: Option<String>,
    pub lifetime: Lifetime,
}

impl WorkerOptions {
    /// Maximum number of concurrent automatic jobs.
    pub(super) fn automatic_max(&self) -> usize {
        self.concurrency.saturating_sub(self.manual_executors).max(1)
    }
}

/// The shared state.
pub(super) struct WorkerShared {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) kv: Arc<dyn Kv>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) expressions: Arc<dyn Expressions>,
    pub(super) catalog: Option<Arc<dyn IcebergCatalog>>,
    pub(super) targets: Vec<Arc<dyn NotificationTarget>>,
    pub(super) options: WorkerOptions,
    pub(super) stopping: Arc<Stopping>,
    pub(super) state: Arc<WorkerState>,
    pub(super) gate: ExclusiveGate,
    pub(super) refunds: Refunds,
    pub(super) left_to_others: LeftToOthers,
    pub(super) sources: WorkSources,
}
