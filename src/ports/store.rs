//! The storage contract: three buckets of an S3-compatible store, or folders that behave like them.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use crossbeam_channel::Receiver;

use crate::domain::limits::{LIST_PAGE_KEYS_MAX, SKIPPED_KEYS_MAX};
use crate::domain::name::Slug;

/// The three buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    Pipelines,
    Lake,
    Warehouse,
}

impl Bucket {
    pub const ALL: [Self; 3] = [Self::Pipelines, Self::Lake, Self::Warehouse];
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipelines => "pipelines",
            Self::Lake => "lake",
            Self::Warehouse => "warehouse",
        })
    }
}

/// An entity tag without quotes. Equal tags of one key mean equal bytes; different tags imply nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag(pub String);

/// Metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// Some stores omit tags in listings; HEAD and GET always return one.
    pub etag: Option<ETag>,
    /// By the store's clock. The response to a write may differ by a second from later responses.
    pub modified: DateTime<Utc>,
}

/// One page of a listing, in ascending order of key bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPage {
    pub objects: Vec<ObjectMeta>,
    /// With a delimiter: common prefixes, up to and including the delimiter.
    pub prefixes: Vec<String>,
    /// Objects that can't be reached because their name is not a valid key (not UTF-8 in a folder, a `..` segment in a
    /// remote store): their names in readable form, the first [`crate::domain::limits::SKIPPED_KEYS_MAX`] of a page.
    pub skipped: Vec<String>,
    /// Token for the next page; `None` on the last.
    pub next: Option<String>,
}

/// The object changed after reading began.
///
/// A body reports it as the inner error of an `io::Error` (see [`BodyChanged::is_in`]), at the latest in the `read` that
/// would return the last byte: a caller that got `meta.size` bytes has the bytes of one version. A backend whose GET
/// always serves one version (S3) never reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the object changed while it was read")]
pub struct BodyChanged;

impl BodyChanged {
    /// Whether a body failed because the object changed, rather than for a transient reason.
    pub fn is_in(error: &std::io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl From<BodyChanged> for std::io::Error {
    fn from(changed: BodyChanged) -> Self {
        Self::other(changed)
    }
}

/// An object being read. Reading fails (never ends cleanly) if the body ends before `meta.size`, and fails with
/// [`BodyChanged`] inside if the object changed meanwhile.
pub struct ObjectReader {
    pub meta: ObjectMeta,
    pub body: Box<dyn Read + Send>,
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReader").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// The condition for a write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    #[default]
    None,
    /// The object must exist with this tag.
    IfMatch(ETag),
    /// No object may exist under this key.
    IfNoneMatch,
}

/// The right of a run to write. A store lets no write *start* after the lease has expired.
pub trait Lease: Send + Sync {
    fn slug(&self) -> &Slug;

    /// Increases with every run of the pipeline.
    fn fence(&self) -> u64;

    /// # Errors
    /// [`LeaseLost`] if the lease has expired or belongs to another holder.
    fn remaining(&self) -> Result<Duration, LeaseLost>;
}

/// The lease has expired or belongs to another holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease on the run is lost")]
pub struct LeaseLost;

/// Preconditions and limits of a write.
#[derive(Clone, Default)]
pub struct WriteOptions<'a> {
    pub precondition: Precondition,
    /// Set for writes of a run; unset for writes on behalf of a user's request.
    pub lease: Option<&'a dyn Lease>,
    /// The body's SHA-256 in hex, if known; saves the store reading the body. A store may trust it.
    pub sha256: Option<&'a str>,
    /// The write need not be durable before the next [`ObjectStore::sync`] returns.
    pub defer_sync: bool,
    /// The write must not start later; set by callers that write under a lock with a TTL.
    pub deadline: Option<Instant>,
}

impl<'a> WriteOptions<'a> {
    pub fn leased(lease: &'a dyn Lease) -> Self {
        Self { lease: Some(lease), ..Self::default() }
    }

    pub fn with(mut self, precondition: Precondition) -> Self {
        self.precondition = precondition;
        self
    }

    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

/// A file prepared for a fast put. Dropping it leaves nothing behind. Call [`ObjectStore::sync`] before putting many.
pub trait StagedFile: Send {
    /// Publishes the file, as [`ObjectStore::put_file`] would.
    ///
    /// # Errors
    /// Same as for [`ObjectStore::put_file`].
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;
}

/// Optional features of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Preconditions hold under races.
    pub conditional_writes: bool,
    /// Listings include tags.
    pub listed_etags: bool,
}

/// Requests since the start, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// Succeeded; also object not found and precondition failed.
    pub ok: u64,
    /// Access denied, no such bucket, no space left.
    pub refused: u64,
    /// No response, or a server error.
    pub failed: u64,
}

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{bucket} bucket: no object `{key}`")]
    NotFound { bucket: Bucket, key: String },
    #[error("the {bucket} bucket `{name}` does not exist")]
    BucketNotFound { bucket: Bucket, name: String },
    /// `If-Match` or `If-None-Match` did not hold.
    #[error("{bucket} bucket: `{key}` is not in the expected state")]
    PreconditionFailed { bucket: Bucket, key: String },
    #[error("{bucket} bucket: access{} is denied: {reason}", named(" to", key))]
    AccessDenied { bucket: Bucket, key: String, reason: String },
    /// The backend can't store this key.
    #[error("{bucket} bucket: `{key}` can't be stored: {reason}")]
    InvalidKey { bucket: Bucket, key: String, reason: String },
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    #[error("{bucket} bucket: no space left{}", named(" for", key))]
    DiskFull { bucket: Bucket, key: String },
    /// Retryable: connection, timeout, 5xx, 429, I/O.
    #[error("{bucket} bucket: {operation}{}: {source}", named("", key))]
    Transient { bucket: Bucket, key: String, operation: &'static str, source: std::io::Error },
}

/// The key in an error text; empty for errors about the bucket itself.
fn named(before: &str, key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{before} `{key}`") }
}

pub type StoreResult<T> = Result<T, StoreError>;

/// An object store.
///
/// Contract, tested on every backend by one suite:
/// - writes are atomic, and durable when the call returns ([`WriteOptions::defer_sync`]: when the next sync returns);
/// - a write after its [`WriteOptions::deadline`] fails with `Transient` and changes nothing;
/// - reads and listings see every completed write;
/// - keys are UTF-8, at most 1,024 bytes, and sort by their bytes;
/// - deleting a missing object succeeds;
/// - keys are exact bytes, without normalization, and every listed key can be read;
/// - keys may have empty segments (`in/`, `a//b`, `/a`); these differ from `in`, `a/b` and `a`;
/// - a key that is empty, too long, or has a `.` or `..` segment or a NUL is `InvalidKey` in every call except `list`,
///   which reports such objects of other programs in [`ListPage::skipped`];
/// - a folder backend can't store a key with an empty segment: it is `InvalidKey` in every call except `list`, which
///   finds nothing. Nor can it store `a` next to `a/b`, a segment over 255 bytes, or its own reserved names: putting
///   these is `InvalidKey`.
// No method has a default, so that wrappers can't forget to forward one.
pub trait ObjectStore: Send + Sync {
    /// Lists up to `limit` (1 to 1,000) keys and prefixes that start with `prefix`; with `delimiter`, one level only.
    /// `after` is `next` of the previous page.
    fn list(
        &self,
        bucket: Bucket,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: usize,
    ) -> StoreResult<ListPage>;

    /// `None` if there is no such object.
    fn head(&self, bucket: Bucket, key: &str) -> StoreResult<Option<ObjectMeta>>;

    /// Reads a whole object; with `if_match`, fails with `PreconditionFailed` if its tag differs.
    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader>;

    /// Reads `range`, cut at the object's end; a range past the end, or an empty one, gives no bytes. Fails with
    /// `PreconditionFailed` as [`ObjectStore::get`] does, also if the object changes during the read; without `if_match`
    /// that is `Transient` with [`BodyChanged`] inside.
    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>>;

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;

    /// Uploads a local file, which may be moved away.
    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;

    /// Does the invisible part of a later [`ObjectStore::put_file`] in advance: sends the parts, syncs the file. `None` if
    /// there is nothing to do in advance, or once `keep_going` returns false. The file must not change until the put.
    /// `sha256`: see [`WriteOptions::sha256`].
    fn stage_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        sha256: &str,
        lease: &'s dyn Lease,
        keep_going: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>>;

    /// Makes staged files and writes with deferred sync durable; there are about `writes` of them.
    fn sync(&self, writes: usize) -> StoreResult<()>;

    /// Copies within the store, also across buckets.
    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;

    /// Deletes any number of keys. Preconditions are ignored.
    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()>;

    /// May probe the store on the first call.
    fn capabilities(&self) -> StoreResult<Capabilities>;

    /// The features of a store on this machine; `None` for a remote store, where each call waits for a network.
    fn local(&self) -> Option<&dyn LocalStore>;

    /// Where other programs find the objects whose keys begin with `key`: `s3://<bucket>/<key>`, or
    /// `file:///<path>`, without percent-encoding.
    ///
    /// # Errors
    /// `InvalidKey` if no object can have such a key.
    fn address(&self, bucket: Bucket, key: &str) -> StoreResult<String>;

    /// How far this machine's clock is ahead of the clock of [`ObjectMeta::modified`]; too high by at most a second plus
    /// the time of a response. `None` if they are the same clock, or before the first response.
    fn clock_skew(&self) -> Option<TimeDelta>;

    /// All zero unless a wrapper counts.
    fn request_counts(&self) -> RequestCounts;
}

/// Operations that only a store on this machine supports. A wrapper forwards [`ObjectStore::local`] as a whole.
pub trait LocalStore: Send + Sync {
    /// Whether another process may still be writing the object in place; false for a missing object. Must cost no more
    /// than a HEAD: it is called for every source of a run.
    fn is_being_written(&self, _bucket: Bucket, _key: &str) -> StoreResult<bool> {
        Ok(false)
    }

    /// Hard-links an object's file to `into`; false if that is not possible, and the caller must read the object
    /// instead. The link keeps the current bytes (of this tag, if one is given) whatever happens to the object. It must
    /// not be written.
    ///
    /// # Errors
    /// `NotFound` and `PreconditionFailed`, as [`ObjectStore::get`].
    fn link(&self, _bucket: Bucket, _key: &str, _etag: Option<&ETag>, _into: &Path) -> StoreResult<bool> {
        Ok(false)
    }

    /// The highest fence that wrote for a pipeline (the store rejects lower ones); 0 if none did.
    fn highest_fence(&self, _pipeline: &Slug) -> StoreResult<u64> {
        Ok(0)
    }
}

/// [`LocalStore`], with defaults that hold for every remote store.
impl dyn ObjectStore + '_ {
    /// Whether calls wait for a network, so that many in parallel take hardly longer than one.
    pub fn is_remote(&self) -> bool {
        self.local().is_none()
    }

    /// # Errors
    /// Same as for [`LocalStore::is_being_written`].
    pub fn is_being_written(&self, bucket: Bucket, key: &str) -> StoreResult<bool> {
        self.local().map_or(Ok(false), |local| local.is_being_written(bucket, key))
    }

    /// # Errors
    /// Same as for [`LocalStore::link`].
    pub fn link(&self, bucket: Bucket, key: &str, etag: Option<&ETag>, into: &Path) -> StoreResult<bool> {
        self.local().map_or(Ok(false), |local| local.link(bucket, key, etag, into))
    }

    /// # Errors
    /// Same as for [`LocalStore::highest_fence`].
    pub fn highest_fence(&self, pipeline: &Slug) -> StoreResult<u64> {
        self.local().map_or(Ok(0), |local| local.highest_fence(pipeline))
    }
}

/// A change in the lake, reported by a store that watches it. Changes may be reported twice, and for files that no longer
/// exist; none is lost while the receiver lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LakeChange {
    /// Full keys of the lake bucket (`pipelines/<slug>/…`) that were written or removed, in order.
    Keys(Vec<String>),
    /// Anything may have changed: every pipeline's part of the lake must be compared with its tables.
    Rescan,
}

/// Disconnects when the watch ends.
pub type LakeChanges = Receiver<LakeChange>;

/// Lists everything under `prefix`, page by page, in key order.
///
/// # Errors
/// The first page that fails.
pub fn list_all(store: &dyn ObjectStore, bucket: Bucket, prefix: &str) -> StoreResult<Vec<ObjectMeta>> {
    Ok(list_all_and_skipped(store, bucket, prefix)?.0)
}

/// Like [`list_all`], with the names of objects that are not valid keys.
///
/// # Errors
/// Same as for [`ObjectStore::list`].
pub fn list_all_and_skipped(
    store: &dyn ObjectStore,
    bucket: Bucket,
    prefix: &str,
) -> StoreResult<(Vec<ObjectMeta>, BTreeSet<String>)> {
    let (mut all, mut skipped) = (Vec::new(), BTreeSet::new());
    let mut after = None;
    loop {
        let page = store.list(bucket, prefix, None, after.as_deref(), LIST_PAGE_KEYS_MAX)?;
        all.extend(page.objects);
        skipped.extend(page.skipped.into_iter().take(SKIPPED_KEYS_MAX.saturating_sub(skipped.len())));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok((all, skipped)),
        }
    }
}
