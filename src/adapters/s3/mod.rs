//! Objects in an S3-compatible store.
//!
//! Invariant: no write of a run starts, on the store's side, after the run's lease has ended; every such request is
//! signed to expire before (see `expiry`). A body over a threshold goes up in parts, so that what takes effect is one
//! small request at the end, which carries the precondition and the expiry.
//! Must not: read the environment, follow redirects, or send a request without a bound on each of its phases.
//!
//! Requests are signed by `sign`, made by `client`, and understood by `answer` and `error`. Stores differ in what they
//! do about preconditions: `conditions` finds out once a bucket, `hold` stands in where they are ignored. What a
//! listing does not say (tags), or says otherwise than it claims (encoding), `list` takes as it comes.

mod answer;
mod bucket;
mod client;
mod conditions;
mod copy;
mod delete;
mod error;
mod expiry;
mod hold;
mod key;
mod list;
mod multipart;
mod notification;
mod options;
mod read;
mod resolve;
mod sign;
mod store_clock;
mod tls;
mod write;
mod xml;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use chrono::TimeDelta;

use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::store::{
    Bucket, Capabilities, ETag, Lease, ListPage, ObjectMeta, ObjectReader, RequestCounts, StagedFile, StoreResult,
    WriteOptions,
};

use client::Client;
pub use conditions::Conditions;
use error::Place;
pub use notification::{Entry, NotificationConfiguration, NotificationError, Rule, RuleKind};
pub use options::{S3OpenError, S3Options, Timeouts};
pub use tls::config as trusted;
use write::Source;

/// An [`ObjectStore`] over HTTP. Any number of processes may use the same buckets.
pub struct S3Store {
    client: Client,
    /// Buckets that are known to exist.
    seen: [AtomicBool; Bucket::ALL.len()],
    /// Set once the store has refused to delete several keys by one request.
    deletes_singly: AtomicBool,
}

impl S3Store {
    /// Opens the store. Nothing is sent before the first operation; [`S3Store::probe_bucket`] finds out whether it
    /// answers.
    ///
    /// # Errors
    /// [`S3OpenError`] if the endpoint is no URL or the authorities can't be read.
    pub fn open(options: S3Options) -> Result<Self, S3OpenError> {
        Ok(Self { client: Client::new(options)?, seen: Default::default(), deletes_singly: AtomicBool::new(false) })
    }

    fn seen(&self, bucket: Bucket) -> &AtomicBool {
        &self.seen[conditions::index(bucket)]
    }

    fn place<'a>(&'a self, bucket: Bucket, key: &'a str, operation: &'static str) -> Place<'a> {
        Place { bucket, name: self.client.options.name_of(bucket), key, operation }
    }
}

impl ObjectStore for S3Store {
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage> {
        self.list_page(&list::Query { bucket, prefix, delimiter, limit }, after)
    }

    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>> {
        self.head_object(bucket, key)
    }

    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader> {
        self.get_object(bucket, key, if_match)
    }

    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>> {
        self.get_object_range(bucket, key, range, if_match)
    }

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write(bucket, key, Source::Bytes(body), options)
    }

    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.write_file(bucket, key, file, options)
    }

    fn stage_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        _sha256: &str,
        lease: &'s dyn Lease,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>> {
        self.stage(bucket, key, file, lease, go_on)
    }

    /// Every write is durable when it returns.
    fn sync(&self, _writes: usize) -> StoreResult<()> {
        Ok(())
    }

    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta> {
        self.copy_object(from, to, options)
    }

    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()> {
        self.delete_objects(bucket, keys, options)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn capabilities(&self) -> StoreResult<Capabilities> {
        let known = self.conditions(Bucket::Pipelines)?;
        // A run's next writes go there. What fails is told before the first of them.
        self.conditions(Bucket::Warehouse)?;
        let conditional_writes = (known.put && known.complete) || self.client.options.locks.is_some();
        Ok(Capabilities { conditional_writes, listed_etags: known.listed_etags })
    }

    /// An object is there as a whole or not at all.
    fn unsettled(&self, _bucket: Bucket, _key: &str) -> StoreResult<bool> {
        Ok(false)
    }

    fn link(&self, _bucket: Bucket, _key: &str, _etag: &ETag, _into: &Path) -> StoreResult<bool> {
        Ok(false)
    }

    fn highest_fence(&self, _pipeline: &Slug) -> StoreResult<u64> {
        Ok(0)
    }

    fn skew(&self) -> Option<TimeDelta> {
        self.client.ahead()
    }

    fn requests(&self) -> RequestCounts {
        RequestCounts::default()
    }
}
