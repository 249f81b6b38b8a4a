//! The web service, from start to end: `lakemill web`, and its part of `up`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::command_error::CommandError;
use super::serve::{EXIT_STATUS_KILLED, start_server};
use super::services::{Services, open_catalog};
use super::supervisor::{Notices, ServiceNotifier, Watched};
use super::{expressions, logging};
use crate::adapters::password::AdminPassword;
use crate::config::{Environment, EnvironmentError, Fault, KvConfig, StoreEndpoint, WebConfig};
use crate::http::credentials::MetricsAccess;
use crate::http::{AllowedHosts, Server, ServerOptions};
use crate::runtime::Watchdog;
use crate::runtime::watchdog::RESPONSE_WAIT_MAX;
use crate::sql::sandbox::{Sandbox, SandboxOptions};
use crate::system::http_client;
use crate::web::sql::{SqlParts, folders};
use crate::web::{AuditFile, AuthOptions, Cache, Installation, Web, WebParts, WorkerClient, router};

/// Concurrent handlers, in addition to those with reserved slots; most wait for a store or a query.
const HANDLERS: usize = 64;
/// Concurrent queries, each in its own process.
const QUERIES: usize = 4;
/// Idle processes kept for queries: starting one takes a while.
const QUERIES_READY: usize = 4;
/// Threads of a query at most.
const QUERY_THREADS_MAX: usize = 4;
/// How long requests may take to complete once the service stops.
const LAST_REQUESTS: Duration = Duration::from_secs(10);

/// Serves until it is stopped.
///
/// # Errors
/// The part that can't be started, and the reason.
pub fn run() -> Result<(), CommandError> {
    let loaded = WebConfig::from_env(&Environment::from_process())?;
    logging::start(&loaded.config.log, Services::clock());
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let services = Services::open(&loaded.config.objects, &loaded.config.kv)?;
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("installing signal handlers: {error}"))?;
    let notices = Notices::new();
    let notifier = notices.notifier();
    let serving = WebServing::start(&loaded.config, &services, "PORT")?;
    let supervisor = ServiceNotifier::start(serving.watched(), notices);
    signals.forever().next();
    tracing::info!("stop signal; completing requests in progress");
    notifier.stopping(LAST_REQUESTS);
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            std::process::exit(EXIT_STATUS_KILLED);
        }
    });
    serving.stop();
    drop(supervisor);
    Ok(())
}

/// A web service that runs until it is stopped.
pub struct WebServing {
    server: Server,
    watchdog: Arc<Watchdog>,
}

impl WebServing {
    /// `port_setting`: the name of the setting of the port.
    ///
    /// # Errors
    /// The part that can't be started, with advice.
    pub fn start(config: &WebConfig, services: &Services, port_setting: &str) -> Result<Self, CommandError> {
        let password = password(config)?;
        let watchdog = Arc::<Watchdog>::default();
        let trusted = http_client::tls(&config.worker_url, config.objects.network.ca_file.as_deref());
        let trusted = trusted.map_err(|error| format!("SVC_CA_FILE: {error}"))?;
        let web = Arc::new(Web::new(WebParts {
            store: Arc::clone(&services.store),
            kv: Arc::clone(&services.kv),
            clock: Arc::clone(&services.clock),
            catalog: open_catalog(config.catalog.as_ref(), &config.objects, &services.backend)?,
            auth: AuthOptions {
                verify: Box::new(move |text| password.verify(text)),
                session: config.session,
                public_url: config.public_url.clone(),
            },
            worker: WorkerClient::new(&config.worker_url, &config.worker_token, trusted),
            metrics_access: MetricsAccess::new(
                config.server.metrics_token.clone(),
                config.public_url.is_some() || !config.server.trusted_proxies.is_empty(),
            ),
            uploads_dir: config.cache_dir.join("uploads"),
            lock_ttl: config.lock_ttl,
            scratch_dir: config.cache_dir.join("imports"),
            import_bytes_max: config.import_bytes_max,
            audit_file: audit_file(config)?,
            ui_dir: config.ui_dir.clone(),
            sql: sql_parts(config, &watchdog)?,
            installation: installation(config),
        }));
        let address = SocketAddr::new(config.server.bind, config.server.port);
        let listening = ServerOptions {
            trusted_proxies: config.server.trusted_proxies.clone(),
            hosts: hosts(config),
            ..ServerOptions::new(address, HANDLERS)
        };
        let server = start_server(listening, router(), Arc::clone(&web), port_setting)?;
        web.show_http(server.metrics());
        tracing::info!(address = %server.local_addr(), "web service started");
        Ok(Self { server, watchdog })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The listeners and threads that the supervisor checks.
    pub(super) fn watched(&self) -> Watched {
        let metrics = self.server.metrics();
        let status = move || format!("{} clients are connected", metrics.connections().open);
        Watched {
            addresses: vec![self.address()],
            watchdogs: vec![Arc::clone(&self.watchdog)],
            status: Box::new(status),
        }
    }

    /// Stops accepting requests, and waits for open ones.
    pub fn stop(self) {
        self.server.stop(LAST_REQUESTS);
        tracing::info!("web service stopped");
    }
}

fn audit_file(config: &WebConfig) -> Result<Option<AuditFile>, CommandError> {
    let Some(path) = &config.audit_file else { return Ok(None) };
    let file = AuditFile::open(path.clone());
    Ok(Some(file.map_err(|error| format!("SVC_AUDIT_FILE `{}` can't be appended to: {error}", path.display()))?))
}

fn sql_parts(config: &WebConfig, watchdog: &Watchdog) -> Result<SqlParts, CommandError> {
    let failed = |error: &dyn std::fmt::Display| format!("SVC_CACHE_DIR `{}`: {error}", config.cache_dir.display());
    let (queries, files) = folders(&config.cache_dir);
    let cache = Cache::open(&files, config.cache_bytes).map_err(|error| failed(&error))?;
    let program = expressions::program()?;
    program.find()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(QUERY_THREADS_MAX);
    let options = SandboxOptions {
        program,
        folder: Some(queries),
        memory_bytes: config.query_memory_bytes,
        threads,
        warm: QUERIES_READY,
        children_max: QUERIES,
        environment: Environment::loader_variables(),
    };
    let watched = watchdog.watch("sql-keeper", RESPONSE_WAIT_MAX);
    let sandbox = Sandbox::start_watched(options, watched).map_err(|error| failed(&error))?;
    Ok(SqlParts { sandbox, children_max: QUERIES, cache, timeout: config.query_timeout })
}

/// The host names under which browsers may address the service.
fn hosts(config: &WebConfig) -> AllowedHosts {
    let public = config.public_url.as_deref().and_then(|url| url.split_once("://")).map(|(_, authority)| authority);
    AllowedHosts::of(config.server.allowed_hosts.iter().map(String::as_str).chain(public))
}

/// The description of the backends for users.
fn installation(config: &WebConfig) -> Installation {
    let (store, endpoint) = match &config.objects.endpoint {
        StoreEndpoint::Folder(_) => ("folder", None),
        StoreEndpoint::S3(url) => ("s3", host(url)),
    };
    let buckets = &config.objects.buckets;
    Installation {
        store,
        endpoint,
        pipelines: buckets.pipelines.clone(),
        lake: buckets.lake.clone(),
        warehouse: buckets.warehouse.clone(),
        queue: match &config.kv {
            KvConfig::Sqlite(_) => "sqlite",
            KvConfig::Redis(_) => "redis",
        },
    }
}

/// Host and port of a URL.
fn host(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// A verifier of the password by its hash.
///
/// # Errors
/// An unusable hash is a malformed variable.
pub fn password(config: &WebConfig) -> Result<AdminPassword, EnvironmentError> {
    AdminPassword::parse(config.password_hash.reveal()).map_err(|error| {
        let (name, purpose) = ("SVC_ADMIN_PASSWORD_HASH", "hash of the password, from `lakemill hash-password`");
        let expected = format!("a usable hash, but {error}");
        EnvironmentError { faults: vec![Fault::MalformedSecret { name, purpose, expected }] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_of_a_store_is_shown() {
        for (url, expected) in [
            ("https://s3.eu-west-1.amazonaws.com", Some("s3.eu-west-1.amazonaws.com")),
            ("http://id:secret@minio.local:9000/path?token=x", Some("minio.local:9000")),
            ("http://[::1]:9000", Some("[::1]:9000")),
            ("nonsense", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }
}
