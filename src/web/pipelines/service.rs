//! The service, and the list of pipelines that it shares between concurrent requests.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::recent::{JobSummaryCache, RecentJob};
use crate::domain::name::Slug;
use crate::ports::IcebergCatalog;
use crate::ports::job_index::JobIndex;
use crate::ports::jobs::JobRegistry;
use crate::ports::pauses::RunPauses;
use crate::ports::schedule::Schedule;
use crate::sync::{Semaphore, SingleFlight};
use crate::system::process_folder;
use crate::web::locks::Locks;
use crate::web::stores::Objects;

/// The service.
pub struct Pipelines {
    pub(super) store: Objects,
    pub(super) ports: PipelinePorts,
    pub(super) locks: Arc<Locks>,
    pub(super) streams: Semaphore,
    pub(super) options: PipelineOptions,
    pub(super) summaries: JobSummaryCache,
    /// Calls that list pipelines with details.
    pub(super) details: SingleFlight<DetailsPage, Listed>,
}

/// Those of the key-value store that the service uses.
pub struct PipelinePorts {
    pub registry: Arc<dyn JobRegistry>,
    pub index: Arc<dyn JobIndex>,
    pub schedule: Arc<dyn Schedule>,
    pub pauses: Arc<dyn RunPauses>,
}

pub struct PipelineOptions {
    /// Folder for archives being imported.
    pub scratch_dir: PathBuf,
    /// Largest archive, in bytes, both compressed and inflated.
    pub import_bytes_max: u64,
    /// The catalog that tables of deleted and renamed pipelines are removed from.
    pub catalog: Option<Arc<dyn IcebergCatalog>>,
}

impl Pipelines {
    pub fn new(
        store: Objects,
        ports: PipelinePorts,
        locks: Arc<Locks>,
        streams: Semaphore,
        options: PipelineOptions,
    ) -> Self {
        // Leftovers of imports by dead processes.
        process_folder::sweep(&options.scratch_dir);
        let (summaries, details) = (JobSummaryCache::default(), SingleFlight::default());
        Self { store, ports, locks, streams, options, summaries, details }
    }
}

/// A page of pipelines with details.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DetailsPage {
    pub(super) after: Option<Slug>,
    pub(super) limit: usize,
    /// Number of recent jobs.
    pub(super) recent: Option<usize>,
}

/// The slugs, in order; with `details`, an entry each.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Listed {
    Slugs(Vec<String>),
    Details(Details),
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Details {
    pub(super) pipelines: Vec<Detail>,
    /// More pipelines exist.
    pub(super) truncated: bool,
    /// `after` of the next page; null on the last one.
    pub(super) next: Option<String>,
    /// Recent jobs of some pipelines are missing, since reading them would take too long; retry.
    pub(super) recent_truncated: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Detail {
    pub(super) slug: String,
    /// The config's title; null if there is no readable config.
    pub(super) title: Option<String>,
    pub(super) config: ConfigState,
    /// Problems of the config, without those of its expressions.
    pub(super) problems: u64,
    /// Tables of the config.
    pub(super) tables: u64,
    pub(super) auto_run: bool,
    /// The last enqueued job.
    pub(super) last_job: Option<LastJob>,
    /// When the next waiting job or batch of files is due; RFC 3339.
    pub(super) next_due: Option<String>,
    /// Rows of all tables after the last completed recent job; null if there is none, or recent jobs weren't requested.
    pub(super) rows: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// The last ended jobs, oldest first; null if not requested or not read.
    pub(super) recent: Option<Vec<RecentJob>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConfigState {
    Valid,
    Invalid,
    Missing,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LastJob {
    pub(super) job_id: String,
    pub(super) status: String,
    pub(super) trigger: String,
    /// RFC 3339, like all times.
    pub(super) enqueued_at: String,
    pub(super) finished_at: Option<String>,
    /// Error code of the failure.
    pub(super) error: Option<String>,
}
