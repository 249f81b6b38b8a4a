//! Opens what the environment names: the object store and the key-value store.

use std::sync::Arc;

use crate::adapters::clock::SystemClock;
use crate::config::{KvConfig, ObjectStoreConfig};
use crate::ports::{Clock, Kv, ObjectStore};

/// The outside world of a process.
#[derive(Clone)]
pub struct Services {
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
}

impl Services {
    /// Opens both; neither need answer yet.
    ///
    /// # Errors
    /// A message that names what can't be opened as it is configured, and what to do.
    pub fn open(objects: &ObjectStoreConfig, kv: &KvConfig) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let kv = open_kv(kv, objects)?;
        let store = open_store(objects, &clock, &kv)?;
        Ok(Self { clock, store, kv })
    }
}

fn open_kv(_kv: &KvConfig, _objects: &ObjectStoreConfig) -> Result<Arc<dyn Kv>, String> {
    Err("no key-value store is built in".into())
}

fn open_store(
    _objects: &ObjectStoreConfig,
    _clock: &Arc<dyn Clock>,
    _kv: &Arc<dyn Kv>,
) -> Result<Arc<dyn ObjectStore>, String> {
    Err("no object store is built in".into())
}
