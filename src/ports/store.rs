//! Where objects live: three buckets of an S3-compatible store, or folders that behave like them.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::limits::{LIST_PAGE_KEYS_MAX, SKIPPED_KEYS_MAX};
use crate::domain::name::Slug;

/// The three buckets of the contract.
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

/// An entity tag without its quotes. Equal tags of one key mean equal bytes; different ones mean nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ETag(pub String);

/// What a store knows of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// Some stores list without tags; HEAD and GET always have one.
    pub etag: Option<ETag>,
    /// By the store's clock. The answer of a write may tell another second than later answers do.
    pub modified: DateTime<Utc>,
}

/// One page of a listing, in ascending order of key bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPage {
    pub objects: Vec<ObjectMeta>,
    /// With a delimiter: what lies below, up to and including the delimiter.
    pub prefixes: Vec<String>,
    /// What lies there and can't be reached since its name is no key (not UTF-8 in a folder, a `..` segment in a remote
    /// store): what the names look like, the first [`crate::domain::limits::SKIPPED_KEYS_MAX`] of a page.
    pub skipped: Vec<String>,
    /// Give it back for the next page; `None` on the last.
    pub next: Option<String>,
}

/// The object is no longer what it was when its reading began.
///
/// A body says so through the inner error of an `io::Error` ([`BodyChanged::is_in`] finds it), at the latest in the
/// `read` that would give its last byte: whoever got `meta.size` bytes has one version's bytes. A backend whose GET
/// answers from one version whatever happens to the key (S3) never says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the object changed while it was read")]
pub struct BodyChanged;

impl BodyChanged {
    /// Whether an error of a body means this, and not a failure worth another try as it is.
    pub fn is_in(error: &std::io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl From<BodyChanged> for std::io::Error {
    fn from(changed: BodyChanged) -> Self {
        Self::other(changed)
    }
}

/// An object being read. Reading fails with an error, never a clean end, if the body ends before `meta.size`, and
/// with [`BodyChanged`] inside if the object changed under the reader.
pub struct ObjectReader {
    pub meta: ObjectMeta,
    pub body: Box<dyn Read + Send>,
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReader").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// What must hold of a key for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Precondition {
    #[default]
    None,
    /// The object exists with this tag.
    IfMatch(ETag),
    /// No object has this key.
    IfAbsent,
}

/// The right of a run to write. A store lets no write *start* once the lease is over.
pub trait Lease: Send + Sync {
    fn slug(&self) -> &Slug;

    /// Rises with every run of the pipeline.
    fn fence(&self) -> u64;

    /// # Errors
    /// `()` when the lease is over or no longer ours.
    fn remaining(&self) -> Result<std::time::Duration, LeaseLost>;
}

/// The lease is over or someone else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the lease on the run is lost")]
pub struct LeaseLost;

/// How a write is guarded.
#[derive(Clone, Default)]
pub struct WriteOptions<'a> {
    pub precondition: Precondition,
    /// Writes of a run carry its lease; those of a person's request do not.
    pub lease: Option<&'a dyn Lease>,
    /// The body's SHA-256 in hex, where the caller knows it: it spares the store the reading. A store may trust it.
    pub sha256: Option<&'a str>,
    /// The write need not be durable before the next [`ObjectStore::sync`] returns.
    pub sync_later: bool,
    /// A store lets the write not start after it: for those who write under a lock that runs out.
    pub until: Option<Instant>,
}

impl<'a> WriteOptions<'a> {
    pub fn leased(lease: &'a dyn Lease) -> Self {
        Self { lease: Some(lease), ..Self::default() }
    }

    pub fn with(mut self, precondition: Precondition) -> Self {
        self.precondition = precondition;
        self
    }

    pub fn until(mut self, until: Instant) -> Self {
        self.until = Some(until);
        self
    }
}

/// A file that is on its way to become an object. Dropped, it leaves nothing behind. Many are put fastest after an
/// [`ObjectStore::sync`].
pub trait StagedFile: Send {
    /// Makes it the object, as [`ObjectStore::put_file`] would have.
    ///
    /// # Errors
    /// As there.
    fn put(self: Box<Self>, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;
}

/// What a backend can do beyond the least common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Preconditions hold under races.
    pub conditional_writes: bool,
    /// Listings carry tags.
    pub listed_etags: bool,
}

/// Requests since the start, by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// The store did what was asked, or said that there is no such object, or that a precondition doesn't hold.
    pub ok: u64,
    /// Access denied, no such bucket, no space left.
    pub refused: u64,
    /// No answer, or one that it failed.
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
    /// The key can't be one on this backend.
    #[error("{bucket} bucket: `{key}` can't be stored: {reason}")]
    InvalidKey { bucket: Bucket, key: String, reason: String },
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// No room left.
    #[error("{bucket} bucket: no space left{}", named(" for", key))]
    DiskFull { bucket: Bucket, key: String },
    /// Worth another try: connection, timeout, 5xx, 429, I/O.
    #[error("{bucket} bucket: {operation}{}: {source}", named("", key))]
    Transient { bucket: Bucket, key: String, operation: &'static str, source: std::io::Error },
}

/// The object in a text; nothing for what is about the bucket itself.
fn named(before: &str, key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{before} `{key}`") }
}

pub type StoreResult<T> = Result<T, StoreError>;

/// An object store.
///
/// Contract, tested on every backend by one suite:
/// - a write is seen whole or not at all, and is durable when the call returns ([`WriteOptions::sync_later`]: when the
///   next sync does);
/// - a write whose time ([`WriteOptions::until`]) is over is `Transient` and changes nothing;
/// - a read after a write sees it; a listing too;
/// - keys are UTF-8, at most 1,024 bytes, and sort by their bytes;
/// - deleting what isn't there is no error;
/// - keys are exact bytes: no normal form is applied, and each key that a listing gives can be got by it;
/// - a key may have empty segments (`in/`, `a//b`, `/a`): it is a key like any other, and not that of `in`, `a/b` or `a`;
/// - a key that is empty, longer, or has a `.` or `..` segment or a NUL is `InvalidKey` to every call but `list`, which
///   names what others put under such keys in [`ListPage::skipped`];
/// - a folder backend can't hold a key with an empty segment: it is `InvalidKey` to every call but `list`, which finds
///   nothing there. Nor can it hold `a` beside `a/b`, a segment over 255 bytes, or its own reserved names: putting such
///   a key is `InvalidKey`.
// No method has a default: what wraps a store would lose one that it doesn't name.
pub trait ObjectStore: Send + Sync {
    /// Lists keys that start with `prefix`, `limit` (1 to 1,000) keys and prefixes at a time; with `delimiter`, one
    /// level only. `after` is `next` of the page before.
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

    /// Reads a whole object; with `if_match`, fails with `PreconditionFailed` if its tag is another.
    fn get(&self, bucket: Bucket, key: &str, if_match: Option<&ETag>) -> StoreResult<ObjectReader>;

    /// Reads `range`, cut at the object's end; a range that lies past it, or is empty, gives no bytes. Fails with
    /// `PreconditionFailed` as [`ObjectStore::get`] does, also if the object changed while it was read; without
    /// `if_match` that is `Transient` with [`BodyChanged`] inside.
    fn get_range(&self, bucket: Bucket, key: &str, range: Range<u64>, if_match: Option<&ETag>) -> StoreResult<Vec<u8>>;

    fn put(&self, bucket: Bucket, key: &str, body: &[u8], options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;

    /// Uploads a local file. The file may be moved away by it.
    fn put_file(&self, bucket: Bucket, key: &str, file: &Path, options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;

    /// Does ahead what a later [`ObjectStore::put_file`] has to do and nobody sees: sends the parts, syncs the file.
    /// `None` if there is nothing of it, or once `go_on` says no. The file must stay as it is until then. `sha256`: see
    /// [`WriteOptions::sha256`].
    fn stage_file<'s>(
        &'s self,
        bucket: Bucket,
        key: &str,
        file: &Path,
        sha256: &str,
        lease: &'s dyn Lease,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> StoreResult<Option<Box<dyn StagedFile + 's>>>;

    /// Makes durable what was staged, and what was written to be synced later; of either there are about `writes`.
    fn sync(&self, writes: usize) -> StoreResult<()>;

    /// Copies within the store, also across buckets; the bytes stay the same.
    fn copy(&self, from: (Bucket, &str), to: (Bucket, &str), options: &WriteOptions<'_>) -> StoreResult<ObjectMeta>;

    /// Deletes any number of keys. Preconditions are ignored.
    fn delete(&self, bucket: Bucket, keys: &[String], options: &WriteOptions<'_>) -> StoreResult<()>;

    /// Whether a call waits for a network, so that many at once take hardly longer than one.
    fn is_remote(&self) -> bool;

    /// May probe the store at its first call.
    fn capabilities(&self) -> StoreResult<Capabilities>;

    /// Whether somebody may still be writing the object. Only a backend in which others write objects in place can say
    /// so; false for an object that isn't there. Asked for the sources that a run is about to read: it should cost no
    /// more than a HEAD.
    fn unsettled(&self, bucket: Bucket, key: &str) -> StoreResult<bool>;

    /// Gives an object a second name, `into`, in a folder of the caller's, if its bytes lie on this machine and can be
    /// had without a copy; false if not, and then the caller reads it. The file has this tag's bytes for as long as it
    /// has the name, whatever becomes of the object. It is the store's: it must be read alone.
    ///
    /// Fails with `NotFound` and `PreconditionFailed` as [`ObjectStore::get`] does.
    fn link(&self, bucket: Bucket, key: &str, etag: &ETag, into: &Path) -> StoreResult<bool>;

    /// The highest fence that wrote for a pipeline, 0 if none did or the backend keeps none: it refuses those below.
    fn highest_fence(&self, pipeline: &Slug) -> StoreResult<u64>;

    /// How far this machine's clock runs ahead of the one that [`ObjectMeta::modified`] is by; greater than the truth by
    /// at most a second and the time of an answer. `None` if they are one clock, or before the store's first answer.
    fn skew(&self) -> Option<TimeDelta>;

    /// How many requests were made; nothing where nobody counts.
    fn requests(&self) -> RequestCounts;
}

/// Lists everything under `prefix`, page after page, in key order.
///
/// # Errors
/// The first page that fails.
pub fn list_all(store: &dyn ObjectStore, bucket: Bucket, prefix: &str) -> StoreResult<Vec<ObjectMeta>> {
    Ok(list_all_and_skipped(store, bucket, prefix)?.0)
}

/// As [`list_all`], and the files whose names are no keys.
///
/// # Errors
/// As [`ObjectStore::list`].
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
