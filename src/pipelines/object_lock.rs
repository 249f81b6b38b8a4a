//! The run lock of a pipeline as an object of its store, for runs without a key-value store.
//!
//! The holder replaces the object at intervals. One that wasn't replaced for its TTL, by the store's clock, belongs to a
//! holder that died, and the next run replaces it. Each replacement is conditional on the object being as it was read, so
//! one of two runs wins. A released lock stays as an object that says so: deletes have no conditions.
//!
//! Invariant: the lease of a holder ends before its lock does, and no write that it signs is valid for longer.
//! Must not: be used on a store that doesn't enforce conditional writes.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::lease::{Moment, RunLease};
use crate::domain::layout::run_lock_key;
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::jobs::ReleaseOutcome;
use crate::ports::store::{Bucket, ETag, Lease, ObjectMeta, Precondition, StoreError, StoreResult, WriteOptions};
use crate::runtime::{Clock, rfc3339};

/// Bytes of the object.
const LOCK_BYTES_MAX: u64 = 64 << 10;
/// Longest TTL that is taken from an object.
const TTL_MS_MAX: u64 = 3_600_000;
/// Added to a TTL before a lock counts as expired: the store's times are whole seconds.
const MARGIN: Duration = Duration::from_secs(3);
/// Attempts to replace the object, of which the first may find an earlier one whose response was lost.
const REPLACE_TRIES_MAX: u32 = 2;

/// The object's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockDocument {
    /// Identifies a holder; never reused.
    token: String,
    /// The machine and process, for people.
    holder: String,
    /// When the run began, by its own clock.
    since: String,
    fence: u64,
    ttl_ms: u64,
    /// Counts renewals: stores derive a tag from the content, which must change with each.
    renewals: u64,
    is_released: bool,
}

/// A lock that this process holds.
pub struct ObjectLock<'a> {
    store: &'a dyn ObjectStore,
    clock: Arc<dyn Clock>,
    /// As this holder wrote it last, and its tag.
    written: Mutex<(LockDocument, ETag)>,
    lease: RunLease,
}

/// A lock of another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherRun {
    pub holder: String,
    pub since: String,
    /// Until the lock expires, unless it is renewed.
    pub expires_in: Duration,
    /// Changes with each renewal.
    etag: ETag,
}

impl OtherRun {
    /// Whether the lock was renewed since `earlier` was read, or belongs to yet another run.
    pub fn is_newer_than(&self, earlier: &Self) -> bool {
        self.etag != earlier.etag
    }
}

/// Result of [`ObjectLock::acquire`].
pub enum Acquired<'a> {
    Held(Box<ObjectLock<'a>>),
    Busy(OtherRun),
}

/// The contents of a new lock.
pub struct LockRequest<'a> {
    pub slug: &'a Slug,
    pub ttl: Duration,
    /// The fence will be at least this, and above that of every earlier lock.
    pub fence_floor: u64,
    /// The machine and process, for people.
    pub holder: &'a str,
}

impl<'a> ObjectLock<'a> {
    /// Takes the lock if it is free or has expired. Doesn't wait.
    ///
    /// # Errors
    /// If the store fails.
    pub fn acquire(
        store: &'a dyn ObjectStore,
        clock: Arc<dyn Clock>,
        request: &LockRequest<'_>,
    ) -> StoreResult<Acquired<'a>> {
        let key = run_lock_key(request.slug);
        loop {
            let found = read(store, &key)?;
            if let Some((document, meta)) = &found
                && let Some(other) = in_use(document.as_ref(), meta, store, &*clock)
            {
                return Ok(Acquired::Busy(other));
            }
            let last = found.as_ref().and_then(|(document, _)| document.as_ref()).map_or(0, |document| document.fence);
            let document = LockDocument {
                token: uuid::Uuid::new_v4().to_string(),
                holder: request.holder.to_owned(),
                since: rfc3339(clock.now()),
                fence: request.fence_floor.max(last.saturating_add(1)),
                ttl_ms: u64::try_from(request.ttl.as_millis()).unwrap_or(TTL_MS_MAX),
                renewals: 0,
                is_released: false,
            };
            let precondition = match found {
                None => Precondition::IfNoneMatch,
                Some((_, meta)) => meta.etag.map_or(Precondition::None, Precondition::IfMatch),
            };
            let since = Moment::now(&*clock);
            let lease = RunLease::new(request.slug.clone(), document.fence, request.ttl, Arc::clone(&clock), since);
            match put(store, &key, &document, &WriteOptions::leased(&lease).with(precondition)) {
                Ok(etag) => {
                    let written = Mutex::new((document, etag));
                    return Ok(Acquired::Held(Box::new(Self { store, clock, written, lease })));
                }
                // Another run was faster.
                Err(StoreError::PreconditionFailed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The right to write until the lock expires.
    pub fn lease(&self) -> &RunLease {
        &self.lease
    }

    /// Extends the lock to its TTL from now.
    ///
    /// # Errors
    /// If the store fails; retry.
    pub fn renew(&self) -> StoreResult<ReleaseOutcome> {
        let since = Moment::now(&*self.clock);
        let outcome = self.replace(false)?;
        match outcome {
            ReleaseOutcome::Released => self.lease.renewed(since),
            ReleaseOutcome::Lost => self.lease.lose(),
        }
        Ok(outcome)
    }

    /// Frees the lock for the next run.
    ///
    /// # Errors
    /// If the store fails; then the lock expires.
    pub fn release(&self) -> StoreResult<ReleaseOutcome> {
        let released = self.replace(true);
        self.lease.lose();
        released
    }

    fn replace(&self, is_released: bool) -> StoreResult<ReleaseOutcome> {
        let mut written = self.written.lock();
        let key = run_lock_key(self.lease.slug());
        for _ in 0..REPLACE_TRIES_MAX {
            let (last, etag) = &*written;
            let next = LockDocument { renewals: last.renewals + 1, is_released, ..last.clone() };
            let options = WriteOptions::leased(&self.lease).with(Precondition::IfMatch(etag.clone()));
            match put(self.store, &key, &next, &options) {
                Ok(etag) => {
                    *written = (next, etag);
                    return Ok(ReleaseOutcome::Released);
                }
                Err(StoreError::PreconditionFailed { .. }) => {}
                Err(StoreError::LeaseLost(_)) => return Ok(ReleaseOutcome::Lost),
                Err(error) => return Err(error),
            }
            // An earlier renewal took effect whose response was lost, or the lock is another's.
            match read(self.store, &key)? {
                Some((Some(found), ObjectMeta { etag: Some(etag), .. })) if found.token == written.0.token => {
                    *written = (found, etag);
                }
                Some(_) | None => return Ok(ReleaseOutcome::Lost),
            }
        }
        Ok(ReleaseOutcome::Lost)
    }
}

/// The object and its content; no content if it is unreadable.
fn read(store: &dyn ObjectStore, key: &str) -> StoreResult<Option<(Option<LockDocument>, ObjectMeta)>> {
    let reader = match store.get(Bucket::Pipelines, key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    reader.body.take(LOCK_BYTES_MAX).read_to_end(&mut bytes).map_err(|source| {
        let (bucket, key) = (Bucket::Pipelines, key.to_owned());
        StoreError::Transient { bucket, key, operation: "reading", source }
    })?;
    Ok(Some((serde_json::from_slice(&bytes).ok(), reader.meta)))
}

/// The run that holds the lock; `None` if it is released or expired. An unreadable lock counts as expired after the
/// longest TTL.
fn in_use(
    document: Option<&LockDocument>,
    meta: &ObjectMeta,
    store: &dyn ObjectStore,
    clock: &dyn Clock,
) -> Option<OtherRun> {
    if document.is_some_and(|document| document.is_released) {
        return None;
    }
    let ttl_ms = document.map_or(TTL_MS_MAX, |document| document.ttl_ms.min(TTL_MS_MAX));
    let now = clock.now() - store.clock_skew().unwrap_or_else(TimeDelta::zero);
    // The store's clock can't have set a time in the future.
    let age = (now - meta.modified).to_std().unwrap_or_default();
    let expires_in = (Duration::from_millis(ttl_ms) + MARGIN).checked_sub(age).filter(|left| !left.is_zero())?;
    let (holder, since) = match document {
        Some(document) => (document.holder.clone(), document.since.clone()),
        None => ("unknown".to_owned(), rfc3339(meta.modified)),
    };
    let etag = meta.etag.clone().unwrap_or(ETag(rfc3339(meta.modified)));
    Some(OtherRun { holder, since, expires_in, etag })
}

fn put(store: &dyn ObjectStore, key: &str, document: &LockDocument, options: &WriteOptions<'_>) -> StoreResult<ETag> {
    let json = serde_json::to_vec_pretty(document).unwrap_or_default();
    let meta = store.put(Bucket::Pipelines, key, &json, options)?;
    meta.etag.ok_or_else(|| StoreError::Transient {
        bucket: Bucket::Pipelines,
        key: key.to_owned(),
        operation: "writing",
        source: std::io::Error::new(std::io::ErrorKind::InvalidData, "the store returned no ETag"),
    })
}
