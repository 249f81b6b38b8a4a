//! Options of a store.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{Buckets, NetworkConfig, ObjectStoreConfig, RequestStyle, StoreCredentials, StoreEndpoint};
use crate::ports::kv::KeyLocks;
use crate::ports::store::Bucket;
use crate::runtime::Clock;
use crate::system::http_client::CaFileError;

use super::conditions::ConditionsCache;
use super::mount::{Mounts, S3Mount};

/// Timeouts of the phases of a request. A timeout error names its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Timeout for resolving the store's host name.
    pub resolve: Duration,
    /// Timeout for connecting, including TLS.
    pub connect: Duration,
    /// Timeout for sending the head of a request.
    pub send: Duration,
    /// Timeout without progress while sending a body.
    pub send_idle: Duration,
    /// Timeout for the head of a response.
    pub response: Duration,
    /// Like `response`, for slow requests: copying, completing an upload.
    pub slow_response: Duration,
    /// Without progress while receiving.
    pub receive_idle: Duration,
}

impl Timeouts {
    /// The timeouts of a request, which may be a slow one.
    pub(super) fn of(self, slow: bool) -> Self {
        let slower = self.slow_response;
        if slow { Self { response: slower, receive_idle: slower.max(self.receive_idle), ..self } } else { self }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            send: Duration::from_secs(30),
            send_idle: Duration::from_secs(30),
            response: Duration::from_secs(60),
            slow_response: Duration::from_secs(600),
            receive_idle: Duration::from_secs(60),
        }
    }
}

/// Options of an `S3Store`. Clones share the cache of probed preconditions.
#[derive(Clone)]
pub struct S3Options {
    /// `http://…` or `https://…`, without a `/` at the end.
    pub endpoint: String,
    pub region: String,
    pub credentials: StoreCredentials,
    pub buckets: Buckets,
    pub requests: RequestStyle,
    pub network: NetworkConfig,
    pub timeouts: Timeouts,
    pub clock: Arc<dyn Clock>,
    /// For emulating preconditions that the store ignores. Without locks, these don't hold under races.
    pub locks: Option<Arc<dyn KeyLocks>>,
    pub(super) known: Arc<ConditionsCache>,
    pub(super) mounts: Mounts,
}

impl S3Options {
    /// With default timeouts, public authorities only, and without proxies and locks.
    pub fn new(
        endpoint: &str,
        region: &str,
        credentials: StoreCredentials,
        buckets: Buckets,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            region: region.to_owned(),
            credentials,
            buckets,
            requests: RequestStyle::default(),
            network: NetworkConfig::default(),
            timeouts: Timeouts::default(),
            clock,
            locks: None,
            known: Arc::default(),
            mounts: Mounts::default(),
        }
    }

    /// From the configuration; `None` if it names a folder.
    pub fn from_config(config: &ObjectStoreConfig, clock: Arc<dyn Clock>) -> Option<Self> {
        let endpoint = match &config.endpoint {
            StoreEndpoint::S3(url) => url,
            StoreEndpoint::Folder(_) => return None,
        };
        let (credentials, buckets) = (config.credentials.clone(), config.buckets.clone());
        let mut options = Self::new(endpoint, &config.region, credentials, buckets, clock);
        options.requests.clone_from(&config.requests);
        options.network.clone_from(&config.network);
        Some(options)
    }

    pub fn with_locks(mut self, locks: Arc<dyn KeyLocks>) -> Self {
        self.locks = Some(locks);
        self
    }

    /// Stores keys below other prefixes, at most one for each bucket.
    pub fn with_mounts(mut self, mounts: Vec<S3Mount>) -> Self {
        self.mounts = Mounts(mounts);
        self
    }

    /// The name of a bucket.
    pub(super) fn name_of(&self, bucket: Bucket) -> &str {
        match bucket {
            Bucket::Pipelines => &self.buckets.pipelines,
            Bucket::Lake => &self.buckets.lake,
            Bucket::Warehouse => &self.buckets.warehouse,
        }
    }

    /// The first bucket with the same name, so that one is probed once.
    pub(super) fn first_of_name(&self, bucket: Bucket) -> Bucket {
        let name = self.name_of(bucket);
        Bucket::ALL.into_iter().find(|&other| self.name_of(other) == name).unwrap_or(bucket)
    }
}

/// Why a store can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum S3OpenError {
    #[error("the endpoint `{found}` is not a URL that starts with `http://` or `https://`")]
    Endpoint { found: String },
    #[error(transparent)]
    CaFile(#[from] CaFileError),
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::runtime::SystemClock;

    #[test]
    fn configuration_names_a_store_or_a_folder() {
        let mut config = ObjectStoreConfig {
            endpoint: StoreEndpoint::S3("https://s3.example:9000".to_owned()),
            region: "r".to_owned(),
            network: NetworkConfig { ca_file: Some(PathBuf::from("/etc/ca.pem")), ..NetworkConfig::default() },
            ..ObjectStoreConfig::default()
        };
        config.buckets.lake = "my-lake".to_owned();
        let options = S3Options::from_config(&config, Arc::new(SystemClock)).unwrap();
        assert_eq!((options.endpoint.as_str(), options.region.as_str()), ("https://s3.example:9000", "r"));
        assert_eq!((options.name_of(Bucket::Lake), &options.network), ("my-lake", &config.network));
        config.endpoint = StoreEndpoint::Folder(PathBuf::from("/srv/objects"));
        assert!(S3Options::from_config(&config, Arc::new(SystemClock)).is_none());
    }
}
