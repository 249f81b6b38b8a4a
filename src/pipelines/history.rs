//! The jobs of a pipeline, newest first: what the key-value store knows of those that are active, and the records of
//! those that ended.
//!
//! Jobs are ordered by when they were enqueued. Ids of ours (UUIDv7) tell it, so that one listing and the records that
//! are shown are all that is read, however many there are. Of another id only the record tells, which is no younger than
//! its object: such records are read as far as they could belong to what is asked for.
//!
//! Invariant: a job that is active when the reading begins is found, even if it ends meanwhile: active jobs are read
//! first. Where both tell of a job, the record counts.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::io::Read;
use std::str::FromStr;

use crate::domain::job::{Job, JobId};
use crate::domain::layout::{job_record_key, job_records_prefix};
use crate::domain::limits::{ACTIVE_JOBS_SHOWN_MAX, HISTORY_READ_BYTES_MAX, HISTORY_READERS_MAX, JOB_RECORD_BYTES_MAX};
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::jobs::JobRegistry;
use crate::ports::kv::KvError;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, list_all};
use crate::sync::parallel_map;

/// Where a job stands in the order. As text (`<ms>-<job id>`) it goes to clients and comes back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Milliseconds since 1970.
    at_ms: i64,
    job_id: JobId,
}

/// A text that is no [`Place`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no place in a history: expected what `next` of the page before said")]
pub struct PlaceError {
    pub found: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at_ms, self.job_id)
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let parts = text.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, JobId::parse(id).ok()?)));
        let (at_ms, job_id) = parts.ok_or_else(|| PlaceError { found: crate::domain::text::clipped(text) })?;
        Ok(Self { at_ms, job_id })
    }
}

/// Some jobs, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Without the accounting of single sources; [`record`] has it.
    pub jobs: Vec<Job>,
    /// Give it back for what comes after; `None` on the last page.
    pub next: Option<Place>,
    /// Records that are no records of jobs, which were passed over, with the reason.
    pub unreadable: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Kv(#[from] KvError),
}

/// The newest jobs of a pipeline, or those after the place `before`: at most `limit`. Of more than
/// [`ACTIVE_JOBS_SHOWN_MAX`] active jobs the newest are left out until others have ended.
///
/// # Errors
/// What either store says.
pub fn page(
    store: &dyn ObjectStore,
    board: &dyn JobRegistry,
    pipeline: &Slug,
    before: Option<&Place>,
    limit: usize,
) -> Result<Page, HistoryError> {
    let active = board.active(pipeline, ACTIVE_JOBS_SHOWN_MAX)?;
    let mut candidates = listed(store, pipeline)?;
    let ended: HashSet<JobId> = candidates.iter().map(|c| c.upper.job_id.clone()).collect();
    candidates.extend(active.into_iter().filter(|job| !ended.contains(&job.job_id)).map(Candidate::active));
    // A place that is exact and not asked for needs no look.
    candidates.retain(|c| !c.exact || before.is_none_or(|before| c.upper < *before));
    let mut heap = BinaryHeap::from(candidates);
    let mut page = Page::default();
    let mut last = None;
    while page.jobs.len() < limit {
        read_on(&mut heap, store, pipeline, limit - page.jobs.len())?;
        let Some(Candidate { upper, found: Some(found), .. }) = heap.pop() else { break };
        match found {
            Recorded::Job(job) if before.is_some_and(|before| upper >= *before) => drop(job),
            Recorded::Job(job) => {
                page.jobs.push(*job);
                last = Some(upper);
            }
            Recorded::Unreadable(key, why) => page.unreadable.push((key, why)),
            Recorded::Gone => {}
        }
    }
    page.next = last.filter(|_| !heap.is_empty());
    Ok(page)
}

/// The terminal record of a job, whole; `None` if there is none.
///
/// # Errors
/// What the store says; `Transient` with the reason if the object is no record.
pub fn record(store: &dyn ObjectStore, pipeline: &Slug, job_id: &JobId) -> Result<Option<Job>, StoreError> {
    match read(store, pipeline, job_id)? {
        Recorded::Job(job) => Ok(Some(*job)),
        Recorded::Gone => Ok(None),
        Recorded::Unreadable(key, why) => {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
            Err(StoreError::Transient { bucket: Bucket::Pipelines, key, operation: "reading the record", source })
        }
    }
}

/// A job of which perhaps no more is known than where it stands at most.
struct Candidate {
    /// The job stands here, or is older.
    upper: Place,
    /// It stands here.
    exact: bool,
    /// Bytes of its record.
    size: u64,
    /// If it was read already: then it stands here.
    found: Option<Recorded>,
}

/// Reads what stands at the top of the order, several records at once, until what stands there was read. Of `wanted`
/// candidates at the top each is needed for as many jobs: a job that was read is shown once no unread one can come
/// before it.
fn read_on(
    heap: &mut BinaryHeap<Candidate>,
    store: &dyn ObjectStore,
    pipeline: &Slug,
    wanted: usize,
) -> Result<(), StoreError> {
    while heap.peek().is_some_and(|top| top.found.is_none()) {
        let (mut known, mut unread, mut bytes) = (Vec::new(), Vec::new(), 0);
        while known.len() + unread.len() < wanted.max(1) {
            // One alone may have more.
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
            upper: Place { at_ms, job_id: job.job_id.clone() },
            exact: true,
            size: 0,
            found: Some(Recorded::Job(Box::new(job.without_sources()))),
        }
    }

    fn recorded(object: &ObjectMeta, prefix: &str) -> Option<Self> {
        let job_id = JobId::parse(object.key.strip_prefix(prefix)?.strip_suffix(".json")?).ok()?;
        let minted = minted_ms(&job_id);
        let at_ms = minted.unwrap_or(object.modified.timestamp_millis());
        Some(Self { upper: Place { at_ms, job_id }, exact: minted.is_some(), size: object.size, found: None })
    }

    fn read(&self, store: &dyn ObjectStore, pipeline: &Slug) -> Result<Recorded, StoreError> {
        Ok(match read(store, pipeline, &self.upper.job_id)? {
            Recorded::Job(job) => Recorded::Job(Box::new(job.without_sources())),
            other => other,
        })
    }

    /// Where it stands, now that it was read.
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

/// The ids of the jobs of a pipeline that have a terminal record, the newest first: at most `limit`. One listing is all
/// that is read, so an id that doesn't tell when its job was enqueued stands where its record was written.
///
/// # Errors
/// What the store says.
pub fn ended(store: &dyn ObjectStore, pipeline: &Slug, limit: usize) -> Result<Vec<JobId>, StoreError> {
    let mut places: Vec<Place> = listed(store, pipeline)?.into_iter().map(|candidate| candidate.upper).collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    Ok(places.into_iter().take(limit).map(|place| place.job_id).collect())
}

fn listed(store: &dyn ObjectStore, pipeline: &Slug) -> Result<Vec<Candidate>, StoreError> {
    let prefix = job_records_prefix(pipeline);
    let objects = list_all(store, Bucket::Pipelines, &prefix)?;
    Ok(objects.iter().filter_map(|object| Candidate::recorded(object, &prefix)).collect())
}

/// When a UUIDv7 was made, in milliseconds since 1970.
fn minted_ms(id: &JobId) -> Option<i64> {
    let uuid = uuid::Uuid::try_parse(id.as_str()).ok().filter(|uuid| uuid.get_version_num() == 7)?;
    let (seconds, nanos) = uuid.get_timestamp()?.to_unix();
    i64::try_from(seconds).ok()?.checked_mul(1_000)?.checked_add(i64::from(nanos / 1_000_000))
}

/// What lies where the terminal record of a job belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    Job(Box<Job>),
    /// The object's key, and why it is no record of the job.
    Unreadable(String, String),
    Gone,
}

/// Looks for the terminal record of a job.
///
/// # Errors
/// What the store says.
pub fn read(store: &dyn ObjectStore, pipeline: &Slug, job_id: &JobId) -> Result<Recorded, StoreError> {
    let key = job_record_key(pipeline, job_id.as_str());
    let reader = match store.get(Bucket::Pipelines, &key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(Recorded::Gone),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    // One byte more than is allowed tells that there are more.
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
