//! What a store is opened with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Buckets, Endpoint, ObjectStoreConfig, Secret};
use crate::ports::kv::KeyLocks;
use crate::ports::store::Bucket;
use crate::runtime::Clock;

use super::conditions::KnownConditions;

/// How long each phase of a request may take. An error names the one that ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Looking up the name of the store.
    pub resolve: Duration,
    /// Connecting, TLS included.
    pub connect: Duration,
    /// Sending the head of a request.
    pub send: Duration,
    /// Without being able to send a byte of a body.
    pub send_idle: Duration,
    /// Waiting for the head of an answer.
    pub response: Duration,
    /// As `response`, where the store does a lot before it answers: copying, putting parts together.
    pub slow_response: Duration,
    /// Without a byte received.
    pub receive_idle: Duration,
}

impl Timeouts {
    /// Those of a request, which may be a slow one.
    pub(super) fn of(self, slow: bool) -> Self {
        let patience = self.slow_response;
        if slow { Self { response: patience, receive_idle: patience.max(self.receive_idle), ..self } } else { self }
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

/// What an [`super::S3Store`] is opened with. Clones share what was found out about the store's conditions.
#[derive(Clone)]
pub struct S3Options {
    /// `http://…` or `https://…`, without a `/` at the end. Buckets are addressed by path.
    pub endpoint: String,
    pub region: String,
    pub access_key_id: Secret,
    pub secret_access_key: Secret,
    pub buckets: Buckets,
    /// PEM file of certificate authorities to trust beside the public ones.
    pub ca_file: Option<PathBuf>,
    pub timeouts: Timeouts,
    pub clock: Arc<dyn Clock>,
    /// Holds preconditions where the store ignores them. Without it, they do not hold under races there.
    pub locks: Option<Arc<dyn KeyLocks>>,
    pub(super) known: Arc<KnownConditions>,
}

impl S3Options {
    /// With default timeouts, no further authorities and no locks.
    pub fn new(
        endpoint: &str,
        region: &str,
        access_key_id: Secret,
        secret_access_key: Secret,
        buckets: Buckets,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            region: region.to_owned(),
            access_key_id,
            secret_access_key,
            buckets,
            ca_file: None,
            timeouts: Timeouts::default(),
            clock,
            locks: None,
            known: Arc::default(),
        }
    }

    /// From the environment's settings; `None` if these name a folder.
    pub fn from_config(config: &ObjectStoreConfig, clock: Arc<dyn Clock>) -> Option<Self> {
        let endpoint = match &config.endpoint {
            Endpoint::S3(url) => url,
            Endpoint::Folder(_) => return None,
        };
        let (id, secret) = (config.access_key_id.clone(), config.secret_access_key.clone());
        let mut options = Self::new(endpoint, &config.region, id, secret, config.buckets.clone(), clock);
        options.ca_file.clone_from(&config.ca_file);
        Some(options)
    }

    pub fn with_locks(mut self, locks: Arc<dyn KeyLocks>) -> Self {
        self.locks = Some(locks);
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
}

/// Why a store can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum S3OpenError {
    #[error("the endpoint `{found}` is no URL that starts with `http://` or `https://`")]
    Endpoint { found: String },
    #[error("the file of certificate authorities `{}`: {source}", .path.display())]
    CaFile { path: PathBuf, source: std::io::Error },
    #[error("the file of certificate authorities `{}`: expected PEM certificates, found {found}", .path.display())]
    Certificates { path: PathBuf, found: String },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::SystemClock;

    #[test]
    fn the_environment_names_a_store_or_a_folder() {
        let mut config = ObjectStoreConfig {
            endpoint: Endpoint::S3("https://s3.example:9000".to_owned()),
            region: "r".to_owned(),
            ca_file: Some(PathBuf::from("/etc/ca.pem")),
            ..ObjectStoreConfig::default()
        };
        config.buckets.lake = "my-lake".to_owned();
        let options = S3Options::from_config(&config, Arc::new(SystemClock)).unwrap();
        assert_eq!((options.endpoint.as_str(), options.region.as_str()), ("https://s3.example:9000", "r"));
        assert_eq!((options.name_of(Bucket::Lake), &options.ca_file), ("my-lake", &config.ca_file));
        config.endpoint = Endpoint::Folder(PathBuf::from("/srv/objects"));
        assert!(S3Options::from_config(&config, Arc::new(SystemClock)).is_none());
    }
}
