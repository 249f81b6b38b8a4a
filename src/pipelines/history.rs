//! The jobs of a pipeline, newest first: active ones from the key-value store, ended ones from their records.
//!
//! A page needs the records shown and their positions, which the index of ended jobs has. Where it lacks any, the records
//! are listed: generated ids (UUIDv7) contain their position; for other ids only the record has it, which is not newer than
//! its object, so such records are read as long as they could belong to the page.
//!
//! Invariant: a job that is active when reading begins is found, even if it ends meanwhile: active jobs are read first. If
//! both have a job, the record counts.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::io::Read;

use parking_lot::Mutex;

use crate::domain::job::{Job, JobId, JobPosition};
use crate::domain::layout::{job_record_key, job_records_prefix};
use crate::domain::limits::{ACTIVE_JOBS_SHOWN_MAX, JOB_RECORD_BYTES_MAX};
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::job_index::{Coverage, EndedFilter, JobIndex};
use crate::ports::jobs::JobRegistry;
use crate::ports::kv::KvError;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, list_all};
use crate::sync::parallel_map;

/// Job records read concurrently.
const READERS_MAX: usize = 8;
/// Of records with more bytes a process reads one at a time.
const LARGE_RECORD_BYTES: u64 = 8 << 20;
static LARGE_RECORD: Mutex<()> = Mutex::new(());

/// A page of jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Without the accounting by source, which [`record`] has.
    pub jobs: Vec<Job>,
    /// The cursor of the next page; `None` on the last one.
    pub next: Option<JobPosition>,
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
    registry: &dyn JobRegistry,
    index: &dyn JobIndex,
    pipeline: &Slug,
    before: Option<&JobPosition>,
    limit: usize,
) -> Result<Page, HistoryError> {
    let active = registry.active(pipeline, ACTIVE_JOBS_SHOWN_MAX)?;
    if let Some(candidates) = indexed(index, pipeline, before, limit)? {
        let page = page_of(store, pipeline, candidates, active.clone(), before, limit)?;
        // None: records were removed by others.
        if page.next.is_some() {
            return Ok(page);
        }
    }
    page_of(store, pipeline, listed(store, pipeline)?, active, before, limit)
}

/// The ended jobs of a page and one more, from the index; `None` if it may lack any, or has no more.
fn indexed(
    index: &dyn JobIndex,
    pipeline: &Slug,
    before: Option<&JobPosition>,
    limit: usize,
) -> Result<Option<Vec<Candidate>>, HistoryError> {
    let filter = EndedFilter { pipeline: Some(pipeline), failed_only: false };
    let found = index.ended(filter, before, limit + 1)?;
    if found.coverage == Coverage::Incomplete || found.jobs.len() <= limit {
        return Ok(None);
    }
    let candidate = |(_, upper)| Candidate { upper, exact: true, found: None };
    Ok(Some(found.jobs.into_iter().map(candidate).collect()))
}

fn page_of(
    store: &dyn ObjectStore,
    pipeline: &Slug,
    mut candidates: Vec<Candidate>,
    active: Vec<Job>,
    before: Option<&JobPosition>,
    limit: usize,
) -> Result<Page, HistoryError> {
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
    upper: JobPosition,
    /// Whether `upper` is its position.
    exact: bool,
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
        let (mut known, mut unread) = (Vec::new(), Vec::new());
        while known.len() + unread.len() < wanted.max(1) {
            match heap.pop() {
                Some(next) if next.found.is_some() => known.push(next),
                Some(next) => unread.push(next),
                None => break,
            }
        }
        let found = parallel_map(&unread, READERS_MAX, |next| read_summary(store, pipeline, &next.upper.job_id))?;
        heap.extend(known.into_iter().chain(unread.into_iter().zip(found).map(|(next, found)| next.with(found))));
    }
    Ok(())
}

impl Candidate {
    fn active(job: Job) -> Self {
        Self { upper: JobPosition::of(&job), exact: true, found: Some(Recorded::Job(Box::new(job.without_sources()))) }
    }

    fn recorded(object: &ObjectMeta, prefix: &str) -> Option<Self> {
        let job_id = JobId::parse(object.key.strip_prefix(prefix)?.strip_suffix(".json")?).ok()?;
        let exact = JobPosition::generated(&job_id).is_some();
        Some(Self { upper: JobPosition::new(&job_id, object.modified), exact, found: None })
    }

    /// The candidate with its record and exact position.
    fn with(self, found: Recorded) -> Self {
        let Self { mut upper, exact, found: _ } = self;
        if let (Recorded::Job(job), false) = (&found, exact) {
            upper.at_ms = upper.at_ms.min(job.enqueued_at.timestamp_millis());
        }
        Self { upper, exact: true, found: Some(found) }
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

/// The positions of jobs of a pipeline with a terminal record, newest first, at most `limit`. Reads one listing only, so ids
/// without a time are ordered by the time of their record.
///
/// # Errors
/// The store failed.
pub fn ended(store: &dyn ObjectStore, pipeline: &Slug, limit: usize) -> Result<Vec<JobPosition>, StoreError> {
    let mut ended: Vec<JobPosition> = listed(store, pipeline)?.into_iter().map(|candidate| candidate.upper).collect();
    ended.sort_unstable_by(|a, b| b.cmp(a));
    ended.truncate(limit);
    Ok(ended)
}

/// [`ended`], from the index if it has as many.
///
/// # Errors
/// Either store failed.
pub fn newest_ended(
    store: &dyn ObjectStore,
    index: &dyn JobIndex,
    pipeline: &Slug,
    limit: usize,
) -> Result<Vec<JobPosition>, HistoryError> {
    let filter = EndedFilter { pipeline: Some(pipeline), failed_only: false };
    let found = index.ended(filter, None, limit)?;
    if found.coverage != Coverage::Incomplete && found.jobs.len() == limit {
        return Ok(found.jobs.into_iter().map(|(_, position)| position).collect());
    }
    Ok(ended(store, pipeline, limit)?)
}

fn listed(store: &dyn ObjectStore, pipeline: &Slug) -> Result<Vec<Candidate>, StoreError> {
    let prefix = job_records_prefix(pipeline);
    let objects = list_all(store, Bucket::Pipelines, &prefix)?;
    Ok(objects.iter().filter_map(|object| Candidate::recorded(object, &prefix)).collect())
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
    read_as(store, pipeline, job_id, |job| job)
}

/// Reads the terminal record of a job, without the accounting by source.
///
/// # Errors
/// The store failed.
pub fn read_summary(store: &dyn ObjectStore, pipeline: &Slug, job_id: &JobId) -> Result<Recorded, StoreError> {
    read_as(store, pipeline, job_id, Job::without_sources)
}

fn read_as(
    store: &dyn ObjectStore,
    pipeline: &Slug,
    job_id: &JobId,
    needed: impl Fn(Job) -> Job,
) -> Result<Recorded, StoreError> {
    let key = job_record_key(pipeline, job_id.as_str());
    let reader = match store.get(Bucket::Pipelines, &key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(Recorded::Missing),
        Err(error) => return Err(error),
    };
    let _large = (reader.meta.size > LARGE_RECORD_BYTES).then(|| LARGE_RECORD.lock());
    let mut bytes = Vec::new();
    // One byte more than allowed shows that it is too large.
    if let Err(source) = reader.body.take(JOB_RECORD_BYTES_MAX + 1).read_to_end(&mut bytes) {
        return Err(StoreError::Transient { bucket: Bucket::Pipelines, key, operation: "reading", source });
    }
    if bytes.len() as u64 > JOB_RECORD_BYTES_MAX {
        return Ok(Recorded::Unreadable(key, format!("it has more than {JOB_RECORD_BYTES_MAX} bytes")));
    }
    Ok(match serde_json::from_slice::<Job>(&bytes) {
        Ok(job) if job.job_id == *job_id => Recorded::Job(Box::new(needed(job))),
        Ok(job) => Recorded::Unreadable(key, format!("it is the record of the job `{}`", job.job_id)),
        Err(error) => Recorded::Unreadable(key, error.to_string()),
    })
}
