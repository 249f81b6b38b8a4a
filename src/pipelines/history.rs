//! The jobs of a pipeline, newest first: active ones from the key-value store, ended ones from their records.
//!
//! Jobs are ordered by the time they were enqueued. Generated ids (UUIDv7) contain it, so a page needs one listing and the
//! records shown, however many there are. For other ids only the record has it, which is not newer than its object: such
//! records are read as long as they could belong to the page.
//!
//! Invariant: a job that is active when reading begins is found, even if it ends meanwhile: active jobs are read first. If
//! both have a job, the record counts.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::io::Read;
use std::str::FromStr;

use crate::domain::job::{Job, JobId};
use crate::domain::layout::{job_record_key, job_records_prefix};
use crate::domain::limits::{ACTIVE_JOBS_SHOWN_MAX, JOB_RECORD_BYTES_MAX};
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::jobs::JobRegistry;
use crate::ports::kv::KvError;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, list_all};
use crate::sync::parallel_map;

/// Job records read concurrently for a page of a history, and their total bytes; a single record may be larger.
const HISTORY_READERS_MAX: usize = 8;
const HISTORY_READ_BYTES_MAX: u64 = 64 << 20;

/// A position in the order of jobs. Clients get and return it as text (`<ms>-<job id>`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HistoryCursor {
    /// Milliseconds since 1970.
    at_ms: i64,
    job_id: JobId,
}

/// A malformed [`HistoryCursor`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a cursor: expected `next` of the previous page")]
pub struct CursorError {
    pub found: String,
}

impl fmt::Display for HistoryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at_ms, self.job_id)
    }
}

impl FromStr for HistoryCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let parts = text.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, JobId::parse(id).ok()?)));
        let (at_ms, job_id) = parts.ok_or_else(|| CursorError { found: crate::domain::text::clipped(text) })?;
        Ok(Self { at_ms, job_id })
    }
}

/// A page of jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Without the accounting by source, which [`record`] has.
    pub jobs: Vec<Job>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<HistoryCursor>,
    /// Objects that were skipped because they are not records of jobs, with the reason.
    pub unreadable: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Kv(#[from] KvError),
}

/// The newest jobs of a pipeline, or those after the cursor `before`, at most `limit`. With more than
/// [`ACTIVE_JOBS_SHOWN_MAX`] active jobs the newest are omitted until others have ended.
///
/// # Errors
/// Either store failed.
pub fn page(
    store: &dyn ObjectStore,
    board: &dyn JobRegistry,
    pipeline: &Slug,
    before: Option<&HistoryCursor>,
    limit: usize,
) -> Result<Page, HistoryError> {
    let active = board.active(pipeline, ACTIVE_JOBS_SHOWN_MAX)?;
    let mut candidates = listed(store, pipeline)?;
    let ended: HashSet<JobId> = candidates.iter().map(|c| c.upper.job_id.clone()).collect();
    candidates.extend(active.into_iter().filter(|job| !ended.contains(&job.job_id)).map(Candidate::active));
    // Jobs at an exact position before the page need not be read.
    candidates.retain(|c| !c.exact || before.is_none_or(|before| c.upper < *before));
    let mut heap = BinaryHeap::from(candidates);
    let mut page = Page::default();
    let mut last = None;
    while page.jobs.len() < limit {
        read_top(&mut heap, store, pipeline, limit - page.jobs.len())?;
        let Some(Candidate { upper, found: Some(found), .. }) = heap.pop() else { break };
        match found {
            Recorded::Job(job) if before.is_some_and(|before| upper >= *before) => drop(job),
            Recorded::Job(job) => {
                page.jobs.push(*job);
                last = Some(upper);
            }
            Recorded::Unreadable(key, why) => page.unreadable.push((key, why)),
            Recorded::Missing => {}
        }
    }
    page.next = last.filter(|_| !heap.is_empty());
    Ok(page)
}

/// The complete terminal record of a job; `None` if there is none.
///
/// # Errors
/// The store failed; `Transient` with the reason if the object is not a record.
pub fn record(store: &dyn ObjectStore, pipeline: &Slug, job_id: &JobId) -> Result<Option<Job>, StoreError> {
    match read(store, pipeline, job_id)? {
        Recorded::Job(job) => Ok(Some(*job)),
        Recorded::Missing => Ok(None),
        Recorded::Unreadable(key, why) => {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
            Err(StoreError::Transient { bucket: Bucket::Pipelines, key, operation: "reading the record", source })
        }
    }
}

/// A job whose position may be known only approximately.
struct Candidate {
    /// The newest possible position.
    upper: HistoryCursor,
    /// Whether `upper` is its position.
    exact: bool,
    /// Bytes of its record.
    size: u64,
    /// The record, once read; then `upper` is exact.
    found: Option<Recorded>,
}

/// Reads candidates at the top of the heap, several at once, until the top one is read. For `wanted` more jobs the `wanted`
/// top candidates are needed in any case.
fn read_top(
    heap: &mut BinaryHeap<Candidate>,
    store: &dyn ObjectStore,
    pipeline: &Slug,
    wanted: usize,
) -> Result<(), StoreError> {
    while heap.peek().is_some_and(|top| top.found.is_none()) {
        let (mut known, mut unread, mut bytes) = (Vec::new(), Vec::new(), 0);
        while known.len() + unread.len() < wanted.max(1) {
            // A single record may be larger.
            let fits = |next: &Candidate| unread.is_empty() || bytes + next.size <= HISTORY_READ_BYTES_MAX;
            if !heap.peek().is_some_and(fits) {
                break;
            }
            match heap.pop() {
                Some(next) if next.found.is_some() => known.push(next),
                Some(next) => {
                    bytes += next.size;
                    unread.push(next);
                }
                None => break,
            }
        }
        let found = parallel_map(&unread, HISTORY_READERS_MAX, |next| next.read(store, pipeline))?;
        heap.extend(known.into_iter().chain(unread.into_iter().zip(found).map(|(next, found)| next.with(found))));
    }
    Ok(())
}

impl Candidate {
    fn active(job: Job) -> Self {
        let at_ms = minted_ms(&job.job_id).unwrap_or(job.enqueued_at.timestamp_millis());
        Self {
            upper: HistoryCursor { at_ms, job_id: job.job_id.clone() },
            exact: true,
            size: 0,
            found: Some(Recorded::Job(Box::new(job.without_sources()))),
        }
    }

    fn recorded(object: &ObjectMeta, prefix: &str) -> Option<Self> {
        let job_id = JobId::parse(object.key.strip_prefix(prefix)?.strip_suffix(".json")?).ok()?;
        let minted = minted_ms(&job_id);
        let at_ms = minted.unwrap_or(object.modified.timestamp_millis());
        Some(Self { upper: HistoryCursor { at_ms, job_id }, exact: minted.is_some(), size: object.size, found: None })
    }

    fn read(&self, store: &dyn ObjectStore, pipeline: &Slug) -> Result<Recorded, StoreError> {
        Ok(match read(store, pipeline, &self.upper.job_id)? {
            Recorded::Job(job) => Recorded::Job(Box::new(job.without_sources())),
            other => other,
        })
    }

    /// The candidate with its record and exact position.
    fn with(self, found: Recorded) -> Self {
        let Self { mut upper, exact, size, found: _ } = self;
        if let (Recorded::Job(job), false) = (&found, exact) {
            upper.at_ms = upper.at_ms.min(job.enqueued_at.timestamp_millis());
        }
        Self { upper, exact: true, size, found: Some(found) }
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.upper == other.upper
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.upper.cmp(&other.upper)
    }
}

/// The ids of jobs of a pipeline with a terminal record, newest first, at most `limit`. Reads one listing only, so ids
/// without a time are ordered by the time of their record.
///
/// # Errors
/// The store failed.
pub fn ended(store: &dyn ObjectStore, pipeline: &Slug, limit: usize) -> Result<Vec<JobId>, StoreError> {
    let mut cursors: Vec<HistoryCursor> =
        listed(store, pipeline)?.into_iter().map(|candidate| candidate.upper).collect();
    cursors.sort_unstable_by(|a, b| b.cmp(a));
    Ok(cursors.into_iter().take(limit).map(|cursor| cursor.job_id).collect())
}

fn listed(store: &dyn ObjectStore, pipeline: &Slug) -> Result<Vec<Candidate>, StoreError> {
    let prefix = job_records_prefix(pipeline);
    let objects = list_all(store, Bucket::Pipelines, &prefix)?;
    Ok(objects.iter().filter_map(|object| Candidate::recorded(object, &prefix)).collect())
}

/// The time of a UUIDv7, in milliseconds since 1970.
fn minted_ms(id: &JobId) -> Option<i64> {
    let uuid = uuid::Uuid::try_parse(id.as_str()).ok().filter(|uuid| uuid.get_version_num() == 7)?;
    let (seconds, nanos) = uuid.get_timestamp()?.to_unix();
    i64::try_from(seconds).ok()?.checked_mul(1_000)?.checked_add(i64::from(nanos / 1_000_000))
}

/// The object found at the key of a job's terminal record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    Job(Box<Job>),
    /// The object's key, and why it is not the job's record.
    Unreadable(String, String),
    Missing,
}

/// Reads the terminal record of a job.
///
/// # Errors
/// The store failed.
pub fn read(store: &dyn ObjectStore, pipeline: &Slug, job_id: &JobId) -> Result<Recorded, StoreError> {
    let key = job_record_key(pipeline, job_id.as_str());
    let reader = match store.get(Bucket::Pipelines, &key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(Recorded::Missing),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    // One byte more than allowed shows that it is too large.
    if let Err(source) = reader.body.take(JOB_RECORD_BYTES_MAX + 1).read_to_end(&mut bytes) {
        return Err(StoreError::Transient { bucket: Bucket::Pipelines, key, operation: "reading", source });
    }
    if bytes.len() as u64 > JOB_RECORD_BYTES_MAX {
        return Ok(Recorded::Unreadable(key, format!("it has more than {JOB_RECORD_BYTES_MAX} bytes")));
    }
    Ok(match serde_json::from_slice::<Job>(&bytes) {
        Ok(job) if job.job_id == *job_id => Recorded::Job(Box::new(job)),
        Ok(job) => Recorded::Unreadable(key, format!("it is the record of the job `{}`", job.job_id)),
        Err(error) => Recorded::Unreadable(key, error.to_string()),
    })
}
