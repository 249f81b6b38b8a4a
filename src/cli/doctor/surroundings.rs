//! What the checks look at: the configs that the environment gives, and what these name, opened when first looked at.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::adapters::fs::{BucketNames, FsStore};
use crate::adapters::s3::{S3Options, S3Store, Timeouts};
use crate::cli::services::{Backend, Services, open_kv};
use crate::config::{
    Endpoint, Environment, EnvironmentError, KvConfig, Loaded, ObjectStoreConfig, WebConfig, WorkerConfig,
};
use crate::ports::{Kv, ObjectStore};

type Config<T> = Result<Loaded<T>, EnvironmentError>;

/// See the module.
pub(super) struct Surroundings {
    pub(super) worker: Config<WorkerConfig>,
    pub(super) web: Config<WebConfig>,
    pub(super) objects: Config<ObjectStoreConfig>,
    pub(super) kv: Config<KvConfig>,
    backend: OnceLock<Result<Backend, String>>,
    opened_kv: OnceLock<Result<Arc<dyn Kv>, String>>,
}

/// Why something could not be looked at.
pub(super) enum Missing {
    /// The environment doesn't say where it is, which another check tells.
    NotNamed,
    /// It is a file that the worker makes when it first starts.
    NotMade(String),
    /// It can't be opened as it is named.
    CannotBeOpened(String),
}

impl Surroundings {
    pub(super) fn of(env: &Environment<'_>) -> Self {
        Self {
            worker: WorkerConfig::from_env(env),
            web: WebConfig::from_env(env),
            objects: ObjectStoreConfig::from_env(env),
            kv: KvConfig::from_env(env),
            backend: OnceLock::new(),
            opened_kv: OnceLock::new(),
        }
    }

    pub(super) fn backend(&self) -> Result<&Backend, Missing> {
        let Ok(Loaded { config, .. }) = &self.objects else { return Err(Missing::NotNamed) };
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
        let Ok(Loaded { config, .. }) = &self.kv else { return Err(Missing::NotNamed) };
        if let KvConfig::Sqlite(path) = config
            && !path.exists()
        {
            return Err(Missing::NotMade(path.display().to_string()));
        }
        let objects = self.objects.as_ref().map(|loaded| loaded.config.clone()).unwrap_or_default();
        let opened = self.opened_kv.get_or_init(|| open_kv(config, &objects));
        opened.as_ref().map(|kv| &**kv).map_err(|error| Missing::CannotBeOpened(error.clone()))
    }
}

/// The store without what would stand in for features that it lacks, and less patient than in a worker.
fn open_backend(objects: &ObjectStoreConfig) -> Result<Backend, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    match (&objects.endpoint, S3Options::from_config(objects, Services::clock())) {
        (Endpoint::S3(_), Some(mut options)) => {
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
        (Endpoint::S3(url), None) => Err(format!("`{url}` is no S3 server")),
        (Endpoint::Folder(root), _) => {
            let buckets = objects.buckets.clone();
            let names = BucketNames { pipelines: buckets.pipelines, lake: buckets.lake, warehouse: buckets.warehouse };
            let store = FsStore::open_named(root, &names).map_err(|error| failed(&error))?;
            Ok(Backend::Folder(Arc::new(store)))
        }
    }
}
