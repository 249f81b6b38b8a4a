//! The handle of a store.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::adapters::aws::Credentials;
use crate::ports::store::Bucket;

use super::client::Client;
use super::conditions::bucket_index;
use super::error::OperationContext;
use super::options::{S3OpenError, S3Options};

/// An [`ObjectStore`](crate::ports::ObjectStore) over HTTP. Any number of processes may use the same buckets.
pub struct S3Store {
    pub(super) client: Client,
    /// Buckets that are known to exist.
    seen: [AtomicBool; Bucket::ALL.len()],
    /// Set once the store has rejected a request that deletes several keys.
    pub(super) deletes_singly: AtomicBool,
}

impl S3Store {
    /// Opens the store. Sends nothing: [`S3Store::probe_bucket`] checks whether the store responds.
    ///
    /// # Errors
    /// [`S3OpenError`] if the endpoint is not a URL or the CA file can't be read.
    pub fn open(options: S3Options) -> Result<Self, S3OpenError> {
        Ok(Self { client: Client::new(options)?, seen: Default::default(), deletes_singly: AtomicBool::new(false) })
    }

    /// The credentials that sign its requests, for other services of the same account.
    pub fn credentials(&self) -> Arc<Credentials> {
        Arc::clone(&self.client.credentials)
    }

    pub(super) fn seen(&self, bucket: Bucket) -> &AtomicBool {
        &self.seen[bucket_index(bucket)]
    }

    pub(super) fn context<'a>(&'a self, bucket: Bucket, key: &'a str, operation: &'static str) -> OperationContext<'a> {
        OperationContext { bucket, name: self.client.options.name_of(bucket), key, operation }
    }
}
