//! The web service: the browser's JSON API, a file or folder per resource.
//!
//! Invariants:
//! - no state is kept in the process but caches, so that any number of these serve one installation;
//! - tables are never written here: a run is asked for, and a worker does it;
//! - nobody's SQL runs in this process.
//!
//! Must not: know a backend; it sees `ports` alone.

mod about;
mod access;
mod attachment;
mod auth;
pub mod cache;
mod config;
mod counts;
mod dashboards;
mod documents;
mod endpoint;
mod exclusive;
mod failure;
mod health;
mod infer;
mod jobs;
mod lake;
mod lineage;
mod openapi;
mod parquet;
mod pipelines;
mod preview;
mod query;
mod saved_queries;
mod service;
mod settings;
mod snapshot;
mod spool;
pub mod sql;
mod streams;
mod tables;
mod turn;
mod ui;
mod worker_client;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use about::Installation;
pub use auth::AuthOptions;
pub use cache::Cache;
pub use endpoint::{Answer, Content, Endpoint, Operation, QueryParameter, Schema};
pub use openapi::document as openapi;
pub use parquet::OPERATIONS as PARQUET_OPERATIONS;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use pipelines::fuzzing as archive_fuzzing;
pub use preview::OPERATION as PREVIEW_OPERATION;
pub use service::Credential;
pub use worker_client::{WorkerClient, WorkerClientError};

use crate::domain::limits::MANIFEST_BYTES_MAX;
use crate::domain::name::Slug;
use crate::http::credentials::MetricsAccess;
use crate::http::{ApiError, HttpMetrics, Router};
use crate::observability::CachedHealthCheck;
use crate::ports::{Kv, ObjectStore};
use crate::runtime::Clock;
use crate::runtime::rfc3339;
use crate::sync::{Semaphore, SingleFlight};
use crate::system::process_folder;

use auth::Auth;
use cache::parsed::Parsed;
use parquet::Unreadable;
use pipelines::list::Listed;
use pipelines::recent::Briefs;
use query::running::Running;
use snapshot::Waited;
use snapshot::manifest::Known;
use spool::Spool;
use sql::SqlParts;
use tables::catalog::{CONFIG_READ_MAX, Declared, KeptCatalogs};
use tables::stats::KeptStats;

/// Queries that may wait for a child, besides those that have one: they must not take the handlers of all others.
const QUERIES_WAITING_MAX: usize = 16;

/// What the service works with.
pub struct Parts {
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    pub clock: Arc<dyn Clock>,
    pub auth: AuthOptions,
    pub worker: WorkerClient,
    pub metrics_access: MetricsAccess,
    /// Where uploads are held until the store has them; made when it is needed.
    pub uploads_dir: PathBuf,
    /// Life of the run locks that are held while pipelines are made, moved or deleted.
    pub lock_ttl: Duration,
    /// Folder for archives that are taken in.
    pub scratch_dir: PathBuf,
    /// Largest of these, in bytes, as it comes and inflated.
    pub import_bytes_max: u64,
    /// The UI's files, instead of those in the binary.
    pub ui_dir: Option<PathBuf>,
    pub sql: SqlParts,
    pub installation: Installation,
}

/// The state that handlers share.
pub struct Web {
    pub(in crate::web) store: Arc<dyn ObjectStore>,
    pub(in crate::web) kv: Arc<dyn Kv>,
    pub(in crate::web) clock: Arc<dyn Clock>,
    pub(in crate::web) auth: Auth,
    pub(in crate::web) worker: WorkerClient,
    pub(in crate::web) spool: Spool,
    pub(in crate::web) lock_ttl: Duration,
    pub(in crate::web) scratch_dir: PathBuf,
    pub(in crate::web) import_bytes_max: u64,
    pub(in crate::web) ui: ui::Ui,
    pub(in crate::web) installation: Installation,
    pub(in crate::web) sql: SqlParts,
    pub(in crate::web) cache: Arc<Cache>,
    pub(in crate::web) configs: Parsed<Declared>,
    pub(in crate::web) catalogs: KeptCatalogs,
    pub(in crate::web) manifests: Parsed<Option<Known>>,
    pub(in crate::web) briefs: Briefs,
    /// All pipelines, by how many recent jobs are told of each.
    pub(in crate::web) details: SingleFlight<Option<usize>, Listed>,
    pub(in crate::web) stats: KeptStats,
    /// Parquet files that children could not read.
    pub(in crate::web) unreadable: Unreadable,
    pub(in crate::web) waited: Waited,
    /// Queries at a time, those that wait included.
    pub(in crate::web) gate: Semaphore,
    /// Downloads among them.
    pub(in crate::web) downloads: Semaphore,
    /// Bodies of any length at a time.
    pub(in crate::web) streams: Semaphore,
    pub(in crate::web) running: Running,
    pub(in crate::web) counts: counts::Counts,
    metrics_access: MetricsAccess,
    kv_check: Arc<CachedHealthCheck<bool>>,
    store_check: Arc<CachedHealthCheck<bool>>,
    /// Of the server, once it is there.
    http: OnceLock<Arc<HttpMetrics>>,
}

impl Web {
    pub fn new(parts: Parts) -> Self {
        // What imports of dead processes left.
        process_folder::sweep(&parts.scratch_dir);
        let queries = parts.sql.children_max;
        Self {
            running: Running::new(Arc::clone(&parts.kv), query::life(parts.sql.timeout)),
            cache: Arc::clone(&parts.sql.cache),
            configs: Parsed::new(CONFIG_READ_MAX, tables::catalog::parse, tables::catalog::larger),
            catalogs: KeptCatalogs::default(),
            manifests: Parsed::new(MANIFEST_BYTES_MAX, snapshot::manifest::parse, snapshot::manifest::larger),
            briefs: Briefs::default(),
            details: SingleFlight::default(),
            stats: KeptStats::default(),
            unreadable: Unreadable::default(),
            waited: Waited::default(),
            gate: Semaphore::new(queries + QUERIES_WAITING_MAX),
            downloads: Semaphore::new(queries.div_ceil(2)),
            streams: Semaphore::new(streams::STREAMS_MAX),
            sql: parts.sql,
            store: parts.store,
            kv: parts.kv,
            clock: parts.clock,
            auth: Auth::new(parts.auth),
            worker: parts.worker,
            spool: Spool::new(parts.uploads_dir),
            lock_ttl: parts.lock_ttl,
            scratch_dir: parts.scratch_dir,
            import_bytes_max: parts.import_bytes_max,
            ui: ui::Ui::new(parts.ui_dir),
            installation: parts.installation,
            counts: counts::Counts::default(),
            metrics_access: parts.metrics_access,
            kv_check: Arc::default(),
            store_check: Arc::default(),
            http: OnceLock::new(),
        }
    }

    /// Extends a pipeline's window, and says so by the name under which its job will tell of it.
    ///
    /// # Errors
    /// `kv_unavailable`.
    pub(in crate::web) fn extend_window(&self, pipeline: &Slug) -> Result<(), ApiError> {
        let since = self.kv.extend_windows(std::slice::from_ref(pipeline)).map_err(failure::from_kv)?;
        let window = since.first().map(|since| format!("{pipeline}@{}", rfc3339(*since)));
        tracing::info!(%pipeline, window, "new files: the pipeline's window is extended");
        Ok(())
    }

    /// Shows the server's counts in the metrics from now on.
    pub fn show_http(&self, metrics: Arc<HttpMetrics>) {
        // A second server of one state would be a bug that costs its counts alone.
        let _ = self.http.set(metrics);
    }
}

/// Every route of the service: the one table that the router, the OpenAPI document and the tests are made of.
pub fn endpoints() -> Vec<Endpoint> {
    [
        about::endpoints(),
        auth::endpoints(),
        config::endpoints(),
        dashboards::endpoints(),
        documents::endpoints(),
        health::endpoints(),
        infer::endpoints(),
        jobs::endpoints(),
        lake::endpoints(),
        lineage::endpoints(),
        pipelines::endpoints(),
        preview::endpoints(),
        query::endpoints(),
        saved_queries::endpoints(),
        settings::endpoints(),
        tables::endpoints(),
        ui::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The router of [`endpoints`]. Paths that are none of them are the UI's to answer, for browsers.
pub fn router() -> Router<Web> {
    Router::new(endpoints().into_iter().map(|endpoint| endpoint.route).collect()).otherwise(ui::nowhere())
}
