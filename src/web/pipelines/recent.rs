//! The last ended jobs of pipelines, in brief: for cards that show many pipelines at once.
//!
//! Invariant: a terminal record never changes, so what was read of one is kept, as long as there is room. A request
//! reads no more than [`READS_MAX`] records; pipelines for which that isn't enough are told by a later one.

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
use crate::pipelines::history::ended;
use crate::ports::store::{Bucket, StoreError};
use crate::sync::parallel_map;
use crate::web::Web;
use crate::web::failure::from_store;

/// Jobs of one pipeline.
pub const JOBS_MAX: u64 = 30;
/// Records that one request reads, and its longest time in which more are begun.
const READS_MAX: usize = 1_500;
const TIME_MAX: Duration = Duration::from_secs(5);
/// Records of one pipeline that are read at a time.
const READS_AT_ONCE: usize = 8;
/// Records of which the brief is kept.
const KEPT_MAX: usize = 50_000;

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecentJob {
    job_id: String,
    status: JobStatus,
    /// From its last start to its end; null if it never started.
    duration_ms: Option<u64>,
    /// RFC 3339.
    finished_at: Option<String>,
    /// Of all its tables; null if it failed.
    rows_rejected: Option<u64>,
}

/// What is told of a pipeline.
#[derive(Debug, Default)]
pub struct Recent {
    /// The oldest first.
    pub jobs: Vec<RecentJob>,
    /// Of all tables after the last of them that completed.
    pub rows: Option<u64>,
    pub bytes: Option<u64>,
}

/// What is kept of a record.
#[derive(Debug, Clone)]
struct Brief {
    job: RecentJob,
    rows: Option<u64>,
    bytes: Option<u64>,
}

/// A record as far as it is needed; what it has beside that is passed over as it comes.
#[derive(Deserialize)]
struct Record {
    job_id: JobId,
    status: JobStatus,
    duration_ms: Option<u64>,
    finished_at: Option<String>,
    result: Option<Tables>,
}

#[derive(Deserialize)]
struct Tables {
    tables: BTreeMap<String, Totals>,
}

#[derive(Deserialize)]
struct Totals {
    rows_written: u64,
    rows_rejected: u64,
    bytes: u64,
}

/// What was read of terminal records, by key; `None` for what is none.
#[derive(Default)]
pub(in crate::web) struct Briefs(Mutex<HashMap<String, Option<Brief>>>);

impl Briefs {
    fn get(&self, key: &str) -> Option<Option<Brief>> {
        self.0.lock().get(key).cloned()
    }

    fn keep(&self, key: String, brief: Option<Brief>) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, brief);
    }
}

/// What one request may still read.
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

/// The last `count` ended jobs of a pipeline; `None` if the budget doesn't reach for them.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn recent(web: &Web, pipeline: &Slug, count: usize, budget: &Budget) -> Result<Option<Recent>, ApiError> {
    let ids = ended(&*web.store, pipeline, count).map_err(from_store)?;
    let keys: Vec<(JobId, String)> =
        ids.into_iter().map(|id| (id.clone(), job_record_key(pipeline, id.as_str()))).collect();
    let unread: Vec<&(JobId, String)> = keys.iter().filter(|(_, key)| web.briefs.get(key).is_none()).collect();
    if !budget.take(unread.len()) {
        return Ok(None);
    }
    let read = parallel_map(&unread, READS_AT_ONCE, |(id, key)| brief(web, id, key))?;
    let mut fresh: HashMap<&str, Option<Brief>> = HashMap::new();
    for ((_, key), brief) in unread.into_iter().zip(read) {
        let Outcome::Is(brief) = brief else { continue };
        web.briefs.keep(key.clone(), brief.clone());
        fresh.insert(key, brief);
    }
    let known = |key: &str| fresh.get(key).cloned().or_else(|| web.briefs.get(key)).flatten();
    // The newest first.
    let briefs: Vec<Brief> = keys.iter().filter_map(|(_, key)| known(key)).collect();
    let last = briefs.iter().find(|brief| brief.job.status == JobStatus::Completed);
    let (rows, bytes) = last.map_or((None, None), |last| (last.rows, last.bytes));
    Ok(Some(Recent { rows, bytes, jobs: briefs.into_iter().rev().map(|brief| brief.job).collect() }))
}

/// What a read gave.
enum Outcome {
    Is(Option<Brief>),
    /// It is no more: nothing that is worth keeping.
    Gone,
}

fn brief(web: &Web, id: &JobId, key: &str) -> Result<Outcome, ApiError> {
    let reader = match web.store.get(Bucket::Pipelines, key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Ok(Outcome::Gone),
        Err(error) => return Err(from_store(error)),
    };
    let body = BufReader::with_capacity(64 << 10, reader.body.take(JOB_RECORD_BYTES_MAX));
    let record: Record = match serde_json::from_reader(body) {
        Ok(record) => record,
        Err(error) if error.is_io() => {
            return Err(ApiError::caused(ErrorCode::S3Error, format!("reading `{key}`: {error}")));
        }
        Err(error) => {
            tracing::warn!(key, %error, "a record of a job is unreadable: passed over");
            return Ok(Outcome::Is(None));
        }
    };
    let fits = record.job_id == *id && record.status.is_terminal();
    Ok(Outcome::Is(fits.then(|| Brief::of(record))))
}

impl Brief {
    fn of(record: Record) -> Self {
        let Record { job_id, status, duration_ms, finished_at, result } = record;
        let sum = |of: fn(&Totals) -> u64| {
            let tables = result.as_ref()?.tables.values();
            Some(tables.fold(0_u64, |sum, totals| sum.saturating_add(of(totals))))
        };
        let rows_rejected = sum(|totals| totals.rows_rejected);
        let (rows, bytes) = (sum(|totals| totals.rows_written), sum(|totals| totals.bytes));
        let job_id = job_id.to_string();
        Self { job: RecentJob { job_id, status, duration_ms, finished_at, rows_rejected }, rows, bytes }
    }
}
