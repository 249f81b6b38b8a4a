//! The inputs of the checks: the configs from the environment, and the stores that they name, opened on first use.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;

use crate::adapters::fs::{BucketNames, FsStore};
use crate::adapters::s3::{S3Options, S3Store, Timeouts};
use crate::cli::embedded::Embedded;
use crate::cli::probe::{ProbeResult, WORKER_PORT, ask, own_address};
use crate::cli::services::{Backend, Services, open_kv};
use crate::config::{
    Environment, EnvironmentError, KvConfig, ObjectStoreConfig, StoreEndpoint, WebConfig, WithWarnings, WorkerConfig,
};
use crate::ports::{Kv, ObjectStore};

/// Longest wait for a response of the web service.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

type Config<T> = Result<WithWarnings<T>, EnvironmentError>;

/// The configs, and the stores opened so far.
pub(super) struct DoctorContext {
    pub(super) worker: Config<WorkerConfig>,
    pub(super) web: Config<WebConfig>,
    pub(super) objects: Config<ObjectStoreConfig>,
    pub(super) kv: Config<KvConfig>,
    /// Whether this is the folder of a `lakemill up`.
    pub(super) is_folder: bool,
    backend: OnceLock<Result<Backend, String>>,
    opened_kv: OnceLock<Result<Arc<dyn Kv>, String>>,
}

/// Why something could not be examined.
pub(super) enum Missing {
    /// The environment doesn't set it, which another check reports.
    NotConfigured,
    /// It is a file that the worker creates at its first start.
    NotCreated(String),
    /// It can't be opened with these settings.
    CannotBeOpened(String),
}

impl DoctorContext {
    pub(super) fn of(env: &Environment<'_>) -> Self {
        Self::for_both(env, env, false)
    }

    /// The addresses that the services of a `lakemill up` recorded in its folder.
    ///
    /// # Errors
    /// Same as for [`Embedded::addresses`].
    pub(super) fn for_folder(embedded: &Embedded, process: &Environment<'_>) -> Result<Self, String> {
        let addresses = embedded.addresses()?;
        let worker_url = addresses.map(|at| format!("http://{}", own_address(at.worker.ip(), at.worker.port())));
        let of = |address: Option<SocketAddr>, name: &str| match (name, address) {
            ("PORT", address) => address.map(|address| OsString::from(address.port().to_string())),
            ("SVC_BIND", Some(address)) => Some(address.ip().to_string().into()),
            ("SVC_WORKER_URL", _) => worker_url.clone().map(OsString::from),
            _ => embedded.variable(name, process),
        };
        let of_worker = |name: &str| of(addresses.map(|at| at.worker), name);
        let of_web = |name: &str| of(addresses.map(|at| at.web), name);
        let env = |get| Environment { get, read: process.read };
        Ok(Self::for_both(&env(&of_worker), &env(&of_web), true))
    }

    fn for_both(env: &Environment<'_>, of_web: &Environment<'_>, is_folder: bool) -> Self {
        Self {
            worker: WorkerConfig::from_env(env),
            web: WebConfig::from_env(of_web),
            objects: ObjectStoreConfig::from_env(env),
            kv: KvConfig::from_env(env),
            is_folder,
            backend: OnceLock::new(),
            opened_kv: OnceLock::new(),
        }
    }

    /// Whether worker and web service have the same `PORT`, so that only one of them can use it.
    pub(super) fn shares_port(&self) -> bool {
        match (&self.worker, &self.web) {
            (Ok(worker), Ok(web)) => worker.config.server.port == web.config.server.port,
            (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
        }
    }

    /// Where this machine reaches the environment's worker. If the web service uses the shared `PORT`, the worker's
    /// default port. `None` without a valid environment, or a port.
    pub(super) fn worker_address(&self) -> Option<SocketAddr> {
        let server = &self.worker.as_ref().ok()?.config.server;
        let at = own_address(server.bind, server.port);
        if self.shares_port() && web_service_at(at) != WebService::None {
            return Some(own_address(server.bind, WORKER_PORT));
        }
        (server.port != 0).then_some(at)
    }

    pub(super) fn backend(&self) -> Result<&Backend, Missing> {
        let Ok(WithWarnings { config, .. }) = &self.objects else { return Err(Missing::NotConfigured) };
        let opened = self.backend.get_or_init(|| open_backend(config));
        opened.as_ref().map_err(|error| Missing::CannotBeOpened(error.clone()))
    }

    pub(super) fn store(&self) -> Result<&dyn ObjectStore, Missing> {
        Ok(match self.backend()? {
            Backend::S3(store) => &**store,
            Backend::Folder(store) => &**store,
        })
    }

    pub(super) fn kv(&self) -> Result<&dyn Kv, Missing> {
        let Ok(WithWarnings { config, .. }) = &self.kv else { return Err(Missing::NotConfigured) };
        if let KvConfig::Sqlite(path) = config
            && !path.exists()
        {
            return Err(Missing::NotCreated(path.display().to_string()));
        }
        let objects = self.objects.as_ref().map(|loaded| loaded.config.clone()).unwrap_or_default();
        let opened = self.opened_kv.get_or_init(|| open_kv(config, &objects));
        opened.as_ref().map(|kv| &**kv).map_err(|error| Missing::CannotBeOpened(error.clone()))
    }
}

/// The store without emulation of missing features, and with shorter timeouts than a worker's.
fn open_backend(objects: &ObjectStoreConfig) -> Result<Backend, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    match (&objects.endpoint, S3Options::from_config(objects, Services::clock())) {
        (StoreEndpoint::S3(_), Some(mut options)) => {
            let (short, long) = (Duration::from_secs(5), Duration::from_secs(10));
            options.timeouts = Timeouts {
                resolve: short,
                connect: short,
                send: short,
                send_idle: short,
                response: long,
                slow_response: long,
                receive_idle: long,
            };
            S3Store::open(options).map(|store| Backend::S3(Arc::new(store))).map_err(|error| failed(&error))
        }
        (StoreEndpoint::S3(url), None) => Err(format!("`{url}` is not an S3 server")),
        (StoreEndpoint::Folder(root), _) => {
            let buckets = objects.buckets.clone();
            let names = BucketNames { pipelines: buckets.pipelines, lake: buckets.lake, warehouse: buckets.warehouse };
            let store = FsStore::open_named(root, &names).map_err(|error| failed(&error))?;
            Ok(Backend::Folder(Arc::new(store)))
        }
    }
}

/// The web service at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WebService {
    Healthy,
    /// Its key-value store is unavailable.
    WithoutKv,
    /// No web service listens there.
    None,
}

pub(super) fn web_service_at(at: SocketAddr) -> WebService {
    let body = |body: &str| serde_json::from_str::<Value>(body).unwrap_or_default();
    match ask(&format!("http://{at}/session"), "GET", &[], ANSWER_TIME_MAX) {
        ProbeResult::Http(200, text) if body(&text)["authenticated"].is_boolean() => WebService::Healthy,
        ProbeResult::Http(503, text) if body(&text)["error"].is_string() => WebService::WithoutKv,
        ProbeResult::Http(..) | ProbeResult::NotListening | ProbeResult::Silent(_) => WebService::None,
    }
}
