//! `/api/about`: versions, storage backends and limits of the installation.
//!
//! Must not: reveal secrets or paths of the machine; of an object store's URL it shows host and port only.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::auth::Auth;
use super::endpoint::Endpoint;
use crate::domain::limits::{QUERY_ROWS_MAX, UPLOAD_BYTES_MAX};
use crate::domain::zones;
use crate::http::{ApiError, Request, Response};
use crate::runtime::{Clock, rfc3339};
use crate::sql::sandbox::{self, Confined, Sandbox};

/// Longest wait for a process that reports DuckDB's version.
const VERSION_WAIT: Duration = Duration::from_secs(5);

/// Descriptions of the backends; the service itself doesn't depend on a backend.
#[derive(Debug, Clone, Default)]
pub struct Installation {
    /// `folder` or `s3`.
    pub store: &'static str,
    /// Host and port of the object store's server, if there is one.
    pub endpoint: Option<String>,
    /// The names of the three buckets.
    pub pipelines: String,
    pub lake: String,
    pub warehouse: String,
    /// `sqlite` or `redis`.
    pub queue: &'static str,
}

pub(super) fn endpoints() -> Vec<Endpoint<About>> {
    vec![
        Endpoint::get("/api/about", "about.get", "Shows versions, backends and limits", about)
            .response::<AboutAnswer>(200, "the service"),
    ]
}

/// The service.
pub struct About {
    pub installation: Installation,
    pub import_bytes_max: u64,
    pub query_timeout: Duration,
    pub auth: Arc<Auth>,
    pub clock: Arc<dyn Clock>,
    pub sandbox: Arc<Sandbox>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "About")]
struct AboutAnswer {
    version: &'static str,
    duckdb_version: String,
    /// Release of the time-zone database, as `2026f`: the program's own, or the system's where that is newer.
    tzdb_version: &'static str,
    store: Store,
    queue: Queue,
    limits: Limits,
    session: Session,
    /// Confinement of the processes that run SQL; null before the first has started.
    confinement: Option<Confinement>,
    /// RFC 3339.
    server_time: String,
}

#[derive(Serialize, JsonSchema)]
struct Confinement {
    /// `fully`, `partly` (the kernel knows fewer rules) or `not`.
    landlock: &'static str,
    /// The newest version of Landlock's rules that the kernel and the service know; null without Landlock.
    landlock_abi: Option<u8>,
    /// A filter (seccomp) leaves a process the system calls that it needs.
    seccomp: bool,
    /// A process has namespaces of its own, of users, the network, and shared memory.
    namespaces: bool,
}

impl From<sandbox::Confinement> for Confinement {
    fn from(found: sandbox::Confinement) -> Self {
        let landlock = match found.landlock {
            Confined::Fully => "fully",
            Confined::Partly => "partly",
            Confined::Not => "not",
        };
        let sandbox::Confinement { landlock_abi, syscalls: seccomp, namespaces, .. } = found;
        Self { landlock, landlock_abi, seccomp, namespaces }
    }
}

#[derive(Serialize, JsonSchema)]
struct Store {
    /// `folder` or `s3`.
    kind: &'static str,
    /// Host and port of the server; null if the objects are in a folder.
    endpoint: Option<String>,
    buckets: Buckets,
}

#[derive(Serialize, JsonSchema)]
struct Buckets {
    pipelines: String,
    lake: String,
    warehouse: String,
}

#[derive(Serialize, JsonSchema)]
struct Queue {
    /// `sqlite` or `redis`.
    kind: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Limits {
    /// Largest upload, in bytes.
    upload_bytes_max: u64,
    /// Maximum number of rows of a query's result.
    query_rows_max: u64,
    /// Timeout of a query, in seconds.
    query_timeout_s: f64,
    /// Largest archive to import, in bytes.
    import_bytes_max: u64,
}

#[derive(Serialize, JsonSchema)]
struct Session {
    /// Seconds of inactivity after which a session ends.
    idle_s: u64,
    /// Seconds after which a session ends even if it is used.
    absolute_s: u64,
    /// When this session ends at the latest; RFC 3339.
    expires_at: Option<String>,
}

fn about(about: &About, request: &mut Request) -> Result<Response, ApiError> {
    let Installation { store, endpoint, pipelines, lake, warehouse, queue } = about.installation.clone();
    let (bounds, own) = (about.auth.bounds(), about.auth.session(request.headers())?);
    let duckdb_version = about.sandbox.duckdb_version(VERSION_WAIT).unwrap_or_else(|_| "unknown".to_owned());
    let answer = AboutAnswer {
        version: env!("CARGO_PKG_VERSION"),
        duckdb_version,
        tzdb_version: zones::database().version(),
        // Known once a process has started.
        confinement: about.sandbox.confinement().map(Confinement::from),
        store: Store { kind: store, endpoint, buckets: Buckets { pipelines, lake, warehouse } },
        queue: Queue { kind: queue },
        limits: Limits {
            upload_bytes_max: UPLOAD_BYTES_MAX,
            query_rows_max: QUERY_ROWS_MAX,
            query_timeout_s: about.query_timeout.as_secs_f64(),
            import_bytes_max: about.import_bytes_max,
        },
        session: Session {
            idle_s: bounds.idle.as_secs(),
            absolute_s: bounds.max.as_secs(),
            expires_at: own.map(|session| rfc3339(session.ends_at)),
        },
        server_time: rfc3339(about.clock.now()),
    };
    Ok(Response::json(200, &answer))
}
