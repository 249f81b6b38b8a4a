//! The web service: the browser's JSON API, one service per resource, and the UI.
//!
//! A service is a struct with what its handlers need; [`Web`] builds them from [`WebParts`] and holds no more than them.
//!
//! Invariants:
//! - a process keeps no state but caches, so that any number of processes serve one installation;
//! - tables are never written here: the service enqueues jobs, and a worker runs them;
//! - user-supplied SQL never runs in this process.
//!
//! Must not: know a backend; it sees `ports` alone. Services must not import this module.

mod about;
mod access;
mod audit;
mod auth;
pub mod cache;
mod config;
mod counts;
mod dashboards;
mod endpoint;
mod failure;
mod health;
mod infer;
mod jobs;
mod lake;
mod lineage;
mod locks;
mod notifications;
mod openapi;
mod parquet;
mod pauses;
mod pipelines;
mod preview;
mod query;
mod saved_queries;
mod settings;
mod snapshot;
mod spool;
pub mod sql;
mod status;
mod stores;
mod streams;
mod tables;
mod ui;
mod worker_client;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use about::Installation;
pub use audit::AuditFile;
pub use auth::AuthOptions;
pub use cache::Cache;
pub use endpoint::{Content, Credential, DocumentedResponse, Endpoint, Operation, QueryParameter, Schema};
pub use openapi::document as openapi;
pub use parquet::OPERATIONS as PARQUET_OPERATIONS;
#[cfg(any(test, feature = "fuzzing"))]
pub use pipelines::fuzz_archive;
pub use preview::OPERATION as PREVIEW_OPERATION;
pub use worker_client::{WorkerClient, WorkerClientError};

use crate::http::credentials::MetricsAccess;
use crate::http::{ApiError, Caller, CompletedRequest, HttpMetrics, Method, RequestHead, Router, Service};
use crate::ports::{IcebergCatalog, Kv, ObjectStore};
use crate::runtime::Clock;
use crate::sync::Semaphore;

use about::About;
use access::API;
use audit::AuditLog;
use auth::Auth;
use config::Configs;
use counts::Counts;
use dashboards::Dashboards;
use health::Health;
use infer::Inference;
use jobs::Jobs;
use lake::LakeService;
use locks::Locks;
use notifications::NotificationService;
use openapi::Documents;
use parquet::UnreadableFiles;
use pauses::PauseService;
use pipelines::{PipelineOptions, PipelinePorts, Pipelines};
use preview::Previews;
use query::QueryService;
use saved_queries::SavedQueries;
use settings::SettingsService;
use snapshot::Snapshots;
use snapshot::manifest::Manifests;
use spool::Spool;
use sql::{Sql, SqlParts};
use status::PipelineStatuses;
use stores::Objects;
use tables::Tables;
use tables::catalogs::Catalogs;
use tables::footers::Footers;
use ui::Ui;

/// The parts from which the service is built.
pub struct WebParts {
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    pub clock: Arc<dyn Clock>,
    /// The catalog that Iceberg tables are published in.
    pub catalog: Option<Arc<dyn IcebergCatalog>>,
    pub auth: AuthOptions,
    pub worker: WorkerClient,
    pub metrics_access: MetricsAccess,
    /// Folder for uploads that are being sent to the store; created when needed.
    pub uploads_dir: PathBuf,
    /// Time to live of the run locks held while pipelines are created, renamed or deleted.
    pub lock_ttl: Duration,
    /// Folder for archives being imported.
    pub scratch_dir: PathBuf,
    /// Largest archive, in bytes, both compressed and inflated.
    pub import_bytes_max: u64,
    /// Requests that change something are appended to it.
    pub audit_file: Option<AuditFile>,
    /// Serves the UI's files from here instead of those in the binary.
    pub ui_dir: Option<PathBuf>,
    pub sql: SqlParts,
    pub installation: Installation,
}

/// The services.
pub struct Web {
    about: About,
    audit: Option<AuditLog>,
    auth: Arc<Auth>,
    clock: Arc<dyn Clock>,
    configs: Configs,
    dashboards: Arc<Dashboards>,
    documents: Documents,
    health: Health,
    inference: Inference,
    jobs: Jobs,
    lake: LakeService,
    notifications: NotificationService,
    pauses: PauseService,
    pipelines: Pipelines,
    previews: Previews,
    queries: QueryService,
    saved_queries: Arc<SavedQueries>,
    settings: SettingsService,
    statuses: PipelineStatuses,
    tables: Tables,
    ui: Ui,
}

impl Web {
    pub fn new(parts: WebParts) -> Self {
        let WebParts { kv, clock, worker, installation, import_bytes_max, .. } = parts;
        let SqlParts { sandbox, children_max, cache, timeout } = parts.sql;
        let store = Objects::new(parts.store);
        let sandbox = Arc::new(sandbox);
        let counts = Arc::<Counts>::default();
        let unreadable = Arc::<UnreadableFiles>::default();
        let streams = Semaphore::new(streams::STREAMS_MAX);
        let locks = Arc::new(Locks::new(store.clone(), kv.clone(), kv.clone(), Arc::clone(&clock), parts.lock_ttl));
        let auth = Arc::new(Auth::new(parts.auth, kv.clone(), kv.clone(), Arc::clone(&counts)));
        let manifests = Arc::new(Manifests::new(store.clone(), parts.catalog.clone()));
        let footers = Arc::new(Footers::new(store.clone(), Arc::clone(&sandbox), Arc::clone(&unreadable)));
        let catalogs = Arc::new(Catalogs::new(store.clone(), Arc::clone(&manifests)));
        let snapshots =
            Arc::new(Snapshots::new(store.clone(), Arc::clone(&manifests), Arc::clone(&cache), Arc::clone(&sandbox)));
        let sql = Arc::new(Sql::new(
            sql::Limits { children_max, timeout },
            kv.clone(),
            Arc::clone(&sandbox),
            Arc::clone(&catalogs),
            Arc::clone(&snapshots),
            Arc::clone(&counts),
        ));
        let dashboards = Arc::new(Dashboards {
            store: store.clone(),
            clock: Arc::clone(&clock),
            locks: Arc::clone(&locks),
            sql: Arc::clone(&sql),
        });
        let saved_queries =
            Arc::new(SavedQueries { store: store.clone(), clock: Arc::clone(&clock), locks: Arc::clone(&locks) });
        Self {
            about: About {
                installation,
                import_bytes_max,
                query_timeout: timeout,
                auth: Arc::clone(&auth),
                clock: Arc::clone(&clock),
                sandbox: Arc::clone(&sandbox),
            },
            configs: Configs {
                store: store.clone(),
                clock: Arc::clone(&clock),
                kv: kv.clone(),
                worker,
                locks: Arc::clone(&locks),
                sql: Arc::clone(&sql),
                dashboards: Arc::clone(&dashboards),
                saved_queries: Arc::clone(&saved_queries),
            },
            documents: Documents::new(|| openapi::document(&endpoints())),
            health: Health::new(
                store.clone(),
                kv.clone(),
                Arc::clone(&sandbox),
                Arc::clone(&cache),
                counts,
                parts.metrics_access,
            ),
            inference: Inference { store: store.clone() },
            jobs: Jobs {
                store: store.clone(),
                registry: kv.clone(),
                index: kv.clone(),
                clock: Arc::clone(&clock),
                sandbox,
                unreadable,
                streams: streams.clone(),
            },
            lake: LakeService {
                store: store.clone(),
                schedule: kv.clone(),
                diagnose: kv.clone(),
                locks: Arc::clone(&locks),
                catalogs: Arc::clone(&catalogs),
                manifests: Arc::clone(&manifests),
                spool: Spool::new(parts.uploads_dir),
                streams: streams.clone(),
            },
            notifications: NotificationService { kv: kv.clone(), clock: Arc::clone(&clock) },
            pauses: PauseService { store: store.clone(), kv: kv.clone(), clock: Arc::clone(&clock) },
            statuses: PipelineStatuses {
                store: store.clone(),
                registry: kv.clone(),
                index: kv.clone(),
                catalogs: Arc::clone(&catalogs),
                manifests: Arc::clone(&manifests),
            },
            pipelines: Pipelines::new(
                store.clone(),
                PipelinePorts { registry: kv.clone(), index: kv.clone(), schedule: kv.clone(), pauses: kv },
                Arc::clone(&locks),
                streams,
                PipelineOptions { scratch_dir: parts.scratch_dir, import_bytes_max, catalog: parts.catalog },
            ),
            previews: Previews { store: store.clone(), sql: Arc::clone(&sql) },
            queries: QueryService::new(Arc::clone(&sql), children_max),
            settings: SettingsService { store },
            tables: Tables::new(catalogs, manifests, snapshots, footers, sql, locks, Arc::clone(&clock)),
            ui: Ui::new(parts.ui_dir),
            audit: parts.audit_file.map(|file| AuditLog { file, operations: audited_operations() }),
            auth,
            clock,
            dashboards,
            saved_queries,
        }
    }

    /// Includes the server's counters in the metrics from now on.
    pub fn show_http(&self, metrics: Arc<HttpMetrics>) {
        self.health.show_http(metrics);
    }
}

impl Service for Web {
    type Credential = Credential;

    /// Without a session, `/api/` doesn't reveal whether a path exists.
    fn before_routing(&self, head: &RequestHead) -> Result<(), ApiError> {
        self.auth.check_origin(head)?;
        if is_behind_session(head) { self.auth.check_session(head) } else { Ok(()) }
    }

    fn authorize(&self, credential: Credential, head: &RequestHead) -> Result<Caller, ApiError> {
        match credential {
            Credential::Nothing => Ok(Caller::Anonymous),
            // Checked before routing.
            Credential::Session if is_behind_session(head) => Ok(Caller::Ambient),
            Credential::Session => self.auth.check_session(head).map(|()| Caller::Ambient),
            Credential::Metrics => self.health.authorize_metrics(head),
        }
    }

    fn completed(&self, request: &CompletedRequest<'_>) {
        if let Some(audit) = &self.audit {
            audit.add(request, || Auth::session_name(request.head.headers()), &*self.clock);
        }
    }
}

fn audited_operations() -> Vec<(Method, &'static str, &'static str)> {
    let audited = endpoints().into_iter().filter(|endpoint| endpoint.changes);
    audited.map(|endpoint| (endpoint.method, endpoint.pattern, endpoint.operation.id)).collect()
}

fn is_behind_session(head: &RequestHead) -> bool {
    head.is_under(API) && !head.is_under(&["api", "auth"])
}

/// All routes of the service: the table from which the router, the OpenAPI document and tests are derived.
pub fn endpoints() -> Vec<Endpoint<Web>> {
    fn of<S: 'static>(endpoints: Vec<Endpoint<S>>, service: fn(&Web) -> &S) -> impl Iterator<Item = Endpoint<Web>> {
        endpoints.into_iter().map(move |endpoint| endpoint.of(service))
    }
    of(about::endpoints(), |web| &web.about)
        .chain(of(auth::endpoints(), |web| &web.auth))
        .chain(of(config::endpoints(), |web| &web.configs))
        .chain(of(dashboards::endpoints(), |web| &web.dashboards))
        .chain(of(openapi::endpoints(), |web| &web.documents))
        .chain(of(health::endpoints(), |web| &web.health))
        .chain(of(infer::endpoints(), |web| &web.inference))
        .chain(of(jobs::endpoints(), |web| &web.jobs))
        .chain(of(lake::endpoints(), |web| &web.lake))
        .chain(of(lineage::endpoints(), |web| &web.tables))
        .chain(of(notifications::endpoints(), |web| &web.notifications))
        .chain(of(pauses::endpoints(), |web| &web.pauses))
        .chain(of(pipelines::endpoints(), |web| &web.pipelines))
        .chain(of(preview::endpoints(), |web| &web.previews))
        .chain(of(query::endpoints(), |web| &web.queries))
        .chain(of(saved_queries::endpoints(), |web| &web.saved_queries))
        .chain(of(settings::endpoints(), |web| &web.settings))
        .chain(of(status::endpoints(), |web| &web.statuses))
        .chain(of(tables::endpoints(), |web| &web.tables))
        .chain(of(ui::endpoints(), |web| &web.ui))
        .collect()
}

/// The router of [`endpoints`]. The UI answers browsers for all other paths.
pub fn router() -> Router<Web> {
    let routes = endpoints().into_iter().map(Endpoint::into_route).collect();
    Router::new(routes).otherwise(ui::fallback().of(|web: &Web| &web.ui).into_route())
}
