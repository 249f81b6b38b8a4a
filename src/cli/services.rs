//! Opens the stores named by the environment.

use std::path::Path;
use std::sync::Arc;

use crate::adapters::aws::SqsQueue;
use crate::adapters::counted::CountedStore;
use crate::adapters::fs::{BucketNames, FsStore};
use crate::adapters::iceberg::RestCatalog;
use crate::adapters::redis::{ClientIdentity, RedisKv, RedisOptions};
use crate::adapters::s3::{S3Options, S3Store};
use crate::adapters::sqlite::{SqliteKv, SqliteOptions};
use crate::config::{CatalogConfig, ClientCertificate, KvConfig, ObjectStoreConfig, StoreEndpoint, WorkerConfig};
use crate::ports::{EventQueue, IcebergCatalog, Kv, ObjectStore};
use crate::runtime::Clock;
use crate::runtime::SystemClock;

/// The external services of a process.
#[derive(Clone)]
pub struct Services {
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    /// The same store, for operations of its kind only; its requests are not counted.
    pub backend: Backend,
}

/// The kinds of object store.
#[derive(Clone)]
pub enum Backend {
    S3(Arc<S3Store>),
    Folder(Arc<FsStore>),
}

impl Services {
    pub fn clock() -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// Opens both stores; their servers need not respond yet.
    ///
    /// # Errors
    /// The store that can't be opened, with advice.
    pub fn open(objects: &ObjectStoreConfig, kv: &KvConfig) -> Result<Self, String> {
        let clock = Self::clock();
        let kv = open_kv(kv, objects)?;
        let backend = open_store(objects, &clock, &kv)?;
        let store: Arc<dyn ObjectStore> = match &backend {
            Backend::S3(store) => Arc::clone(store) as _,
            Backend::Folder(store) => Arc::clone(store) as _,
        };
        Ok(Self { clock, store: Arc::new(CountedStore::new(store)), kv, backend })
    }
}

/// The queue that events come from, if there is one; it need not respond yet.
///
/// # Errors
/// The store that can't be opened, with advice.
pub fn open_event_queue(config: &WorkerConfig, backend: &Backend) -> Result<Option<Arc<dyn EventQueue>>, String> {
    let (Some(queue), Backend::S3(store)) = (&config.events.queue, backend) else { return Ok(None) };
    let opened = SqsQueue::open(queue, store.credentials(), Services::clock(), &config.objects.network);
    Ok(Some(Arc::new(opened.map_err(|error| format!("SVC_EVENTS_SQS_URL: {error}"))?)))
}

/// The catalog that Iceberg tables are published in, if there is one; it need not respond yet.
///
/// # Errors
/// The store that can't be opened, with advice.
pub fn open_catalog(
    config: Option<&CatalogConfig>,
    objects: &ObjectStoreConfig,
    backend: &Backend,
) -> Result<Option<Arc<dyn IcebergCatalog>>, String> {
    let Some(config) = config else { return Ok(None) };
    let store = match backend {
        Backend::S3(store) => Some(store.credentials()),
        Backend::Folder(_) => None,
    };
    let opened = RestCatalog::open(config, store, Services::clock(), &objects.network);
    Ok(Some(Arc::new(opened.map_err(|error| format!("SVC_ICEBERG_CATALOG_URL: {error}"))?)))
}

/// Opens the key-value store only.
///
/// # Errors
/// Same as for [`Services::open`].
pub fn open_kv(kv: &KvConfig, objects: &ObjectStoreConfig) -> Result<Arc<dyn Kv>, String> {
    match kv {
        KvConfig::Redis(redis) => {
            let mut options = RedisOptions::new(redis.url.reveal());
            let pem =
                |name: &str, file: &Path| std::fs::read(file).map_err(|e| format!("{name} `{}`: {e}", file.display()));
            if let Some(file) = &objects.network.ca_file {
                options.ca_pem = Some(pem("SVC_CA_FILE", file)?);
            }
            if let Some(ClientCertificate { chain, key }) = &redis.certificate {
                options.client = Some(ClientIdentity {
                    chain_pem: pem("KV_CLIENT_CERT_FILE", chain)?,
                    key_pem: pem("KV_CLIENT_KEY_FILE", key)?,
                });
            }
            Ok(Arc::new(RedisKv::open(&options).map_err(|e| format!("KV_URL: {e}"))?))
        }
        KvConfig::Sqlite(path) => {
            let kv = SqliteKv::open(SqliteOptions::new(path)).map_err(|e| format!("KV_URL: {e}"))?;
            Ok(Arc::new(kv))
        }
    }
}

fn open_store(objects: &ObjectStoreConfig, clock: &Arc<dyn Clock>, kv: &Arc<dyn Kv>) -> Result<Backend, String> {
    let failed = |error: &dyn std::fmt::Display| format!("OBJ_ENDPOINT_URL: {error}");
    match (&objects.endpoint, S3Options::from_config(objects, Arc::clone(clock))) {
        (StoreEndpoint::Folder(root), _) => {
            let names = BucketNames {
                pipelines: objects.buckets.pipelines.clone(),
                lake: objects.buckets.lake.clone(),
                warehouse: objects.buckets.warehouse.clone(),
            };
            let store = FsStore::open_named(root, &names).map_err(|e| failed(&e))?;
            Ok(Backend::Folder(Arc::new(store)))
        }
        (StoreEndpoint::S3(_), Some(options)) => {
            let options = options.with_locks(Arc::clone(kv) as _);
            Ok(Backend::S3(Arc::new(S3Store::open(options).map_err(|e| failed(&e))?)))
        }
        (StoreEndpoint::S3(url), None) => Err(failed(&format!("`{url}` is not an S3 server"))),
    }
}
