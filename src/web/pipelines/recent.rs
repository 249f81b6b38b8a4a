//! Summaries of the last ended jobs of pipelines.
//!
//! Invariant: terminal records never change, so their summaries are cached. A request reads at most [`READS_MAX`] records;
//! the pipelines beyond that are read by later requests.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::job::{JobId, JobStatus};
use crate::domain::layout::job_record_key;
use crate::domain::limits::JOB_RECORD_BYTES_MAX;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines::history::newest_ended;
use crate::ports::job_index::JobIndex;
use crate::ports::store::{Bucket, StoreError};
use crate::sync::parallel_map;
use crate::web::failure::{from_history, from_store};
use crate::web::stores::Objects;

/// Maximum number of jobs of one pipeline.
pub const JOBS_MAX: u64 = 30;
/// Maximum number of records that one request reads, and the time after which it starts no more reads.
const READS_MAX: usize = 1_500;
const TIME_MAX: Duration = Duration::from_secs(5);
/// Concurrent reads of one pipeline's records.
const PARALLEL_READS_MAX: usize = 8;
/// Maximum number of cached summaries.
const CACHED_MAX: usize = 50_000;

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecentJob {
    job_id: String,
    status: JobStatus,
    /// From the last start to the end; null if it never started.
    duration_ms: Option<u64>,
    /// RFC 3339.
    finished_at: Option<String>,
    /// Rows that it rejected, not those of files that it didn't read; null if it failed.
    rows_rejected: Option<u64>,
}

/// The recent jobs of a pipeline.
#[derive(Debug, Default)]
pub struct RecentJobs {
    /// Oldest first.
    pub jobs: Vec<RecentJob>,
    /// Rows of all tables after the last completed job.
    pub rows: Option<u64>,
    pub bytes: Option<u64>,
}

/// The summary of a record.
#[derive(Debug, Clone)]
struct JobSummary {
    job: RecentJob,
    rows: Option<u64>,
    bytes: Option<u64>,
}

/// The fields of a record that the summary needs; others are skipped while parsing.
#[derive(Deserialize)]
struct Record {
    job_id: JobId,
    status: JobStatus,
    duration_ms: Option<u64>,
    finished_at: Option<String>,
    result: Option<Tables>,
    progress: Option<RowCounts>,
}

#[derive(Deserialize)]
struct RowCounts {
    rows_rejected: u64,
}

#[derive(Deserialize)]
struct Tables {
    tables: BTreeMap<String, Totals>,
}

#[derive(Deserialize)]
struct Totals {
    rows_written: u64,
    bytes: u64,
}

/// Summaries of terminal records, by key; `None` for an unreadable record.
#[derive(Default)]
pub struct JobSummaryCache(Mutex<HashMap<String, Option<JobSummary>>>);

impl JobSummaryCache {
    fn get(&self, key: &str) -> Option<Option<JobSummary>> {
        self.0.lock().get(key).cloned()
    }

    fn insert(&self, key: String, summary: Option<JobSummary>) {
        let mut cached = self.0.lock();
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        cached.insert(key, summary);
    }
}

/// The remaining reads of a request.
pub struct Budget {
    reads: AtomicUsize,
    until: Instant,
}

impl Budget {
    pub fn new() -> Self {
        Self { reads: AtomicUsize::new(READS_MAX), until: Instant::now() + TIME_MAX }
    }

    fn take(&self, reads: usize) -> bool {
        let left = |left: usize| left.checked_sub(reads);
        reads == 0
            || Instant::now() < self.until && self.reads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok()
    }
}

/// The last `count` ended jobs of a pipeline; `None` if the budget is exhausted.
///
/// # Errors
/// `s3_error`, `bucket_not_found`, `kv_unavailable`.
pub fn recent(
    store: &Objects,
    index: &dyn JobIndex,
    cache: &JobSummaryCache,
    pipeline: &Slug,
    count: usize,
    budget: &Budget,
) -> Result<Option<RecentJobs>, ApiError> {
    let ids = newest_ended(&**store, index, pipeline, count).map_err(from_history)?;
    let keys: Vec<(JobId, String)> = ids
        .into_iter()
        .map(|position| (position.job_id.clone(), job_record_key(pipeline, position.job_id.as_str())))
        .collect();
    let unread: Vec<&(JobId, String)> = keys.iter().filter(|(_, key)| cache.get(key).is_none()).collect();
    if !budget.take(unread.len()) {
        return Ok(None);
    }
    let read = parallel_map(&unread, PARALLEL_READS_MAX, |(id, key)| read_summary(store, id, key))?;
    let mut fresh: HashMap<&str, Option<JobSummary>> = HashMap::new();
    for ((_, key), summary) in unread.into_iter().zip(read) {
        let Outcome::Read(summary) = summary else { continue };
        cache.insert(key.clone(), summary.clone());
        fresh.insert(key, summary);
    }
    let known = |key: &str| fresh.get(key).cloned().or_else(|| cache.get(key)).flatten();
    // Newest first.
    let summaries: Vec<JobSummary> = keys.iter().filter_map(|(_, key)| known(key)).collect();
    let last = summaries.iter().find(|summary| summary.job.status == JobStatus::Completed);
    let (rows, bytes) = last.map_or((None, None), |last| (last.rows, last.bytes));
    Ok(Some(RecentJobs { rows, bytes, jobs: summaries.into_iter().rev().map(|summary| summary.job).collect() }))
}

/// The outcome of a read.
enum Outcome {
    Read(Option<JobSummary>),
    /// The record was deleted.
    Deleted,
}

fn read_summary(store: &Objects, id: &JobId, key: &str) -> Result<Outcome, ApiError> {
    let reader = match store.get(Bucket::Pipelines, key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(Outcome::Deleted),
        Err(error) => return Err(from_store(error)),
    };
    let body = BufReader::with_capacity(64 << 10, reader.body.take(JOB_RECORD_BYTES_MAX));
    let record: Record = match serde_json::from_reader(body) {
        Ok(record) => record,
        Err(error) if error.is_io() => {
            return Err(ApiError::caused(ErrorCode::S3Error, format!("reading `{key}`: {error}")));
        }
        Err(error) => {
            tracing::warn!(key, %error, "job record is unreadable; skipped");
            return Ok(Outcome::Read(None));
        }
    };
    let fits = record.job_id == *id && record.status.is_terminal();
    Ok(Outcome::Read(fits.then(|| JobSummary::of(record))))
}

impl JobSummary {
    fn of(record: Record) -> Self {
        let Record { job_id, status, duration_ms, finished_at, result, progress } = record;
        let sum = |of: fn(&Totals) -> u64| {
            let tables = result.as_ref()?.tables.values();
            Some(tables.fold(0_u64, |sum, totals| sum.saturating_add(of(totals))))
        };
        let rows_rejected = result.as_ref().and(progress).map(|progress| progress.rows_rejected);
        let (rows, bytes) = (sum(|totals| totals.rows_written), sum(|totals| totals.bytes));
        let job_id = job_id.to_string();
        Self { job: RecentJob { job_id, status, duration_ms, finished_at, rows_rejected }, rows, bytes }
    }
}
