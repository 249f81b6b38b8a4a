//! Indexes the records of ended jobs where the end of a job didn't: after the key-value store lost its data, after an import
//! or a rename, and once a day those that workers of versions without an index wrote. Once a day old records are deleted,
//! too, if the worker's options say so.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::time::Duration;

use super::retention::{self, RetentionError};
use super::retry::OutageLog;
use super::shared::WorkerShared;
use super::stopping::Phase;
use crate::domain::job::{Job, JobId, JobPosition, JobStatus};
use crate::domain::limits::ENDED_JOBS_INDEXED_MAX;
use crate::domain::name::Slug;
use crate::pipelines::{self, history, history::Recorded};
use crate::ports::job_index::{EndedFilter, EndedJob, UnindexedPipeline};
use crate::ports::kv::KvError;
use crate::ports::store::{Bucket, StoreError};
use crate::runtime::WatchedThread;
use crate::runtime::threads::Instant;
use crate::sync::parallel_map;

/// How often there is a check for something to index.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// The lock of the worker that indexes, which it extends.
const INDEXING: &str = "indexing jobs";
const LOCK_TTL: Duration = Duration::from_secs(120);
/// The lock of the worker that indexes all pipelines today.
const DAILY: &str = "daily indexing of jobs";
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Pipelines that are indexed at a time, besides all of them.
const PIPELINES_PER_ROUND: usize = 100;
/// Records that are read and added at a time, and read concurrently.
const BATCH: usize = 500;
const READERS_MAX: usize = 8;
/// Jobs of a pipeline that one request to the index returns.
const KNOWN_PER_REQUEST: usize = 10_000;

#[derive(Debug, thiserror::Error)]
enum IndexError {
    #[error(transparent)]
    Kv(#[from] KvError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Retention(#[from] RetentionError),
}

/// The outcome of indexing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indexed {
    Done,
    /// The worker stops, or another one indexes.
    Interrupted,
}

/// Indexes until the worker stops.
pub(super) fn run(shared: &WorkerShared, watched: &WatchedThread) {
    let mut outage = OutageLog::new("indexing jobs");
    let mut indexed_at: Option<Instant> = None;
    loop {
        match watched.waiting(|| check(shared, &mut indexed_at)) {
            Ok(()) => outage.recovered(),
            Err(error) => outage.failed(&error),
        }
        if shared.stopping.wait_for(Phase::Drain, CHECK_EVERY) {
            return;
        }
    }
}

fn check(shared: &WorkerShared, indexed_at: &mut Option<Instant>) -> Result<(), IndexError> {
    let whole = !shared.kv.is_built()? || is_due(shared, indexed_at)?;
    let requested = shared.kv.unindexed(PIPELINES_PER_ROUND)?;
    if !whole && requested.is_empty() || !extend_lock(shared)? {
        return Ok(());
    }
    let indexed = index_due(shared, whole, &requested);
    shared.kv.unlock(INDEXING, &shared.options.name)?;
    if indexed? == Indexed::Done && whole {
        *indexed_at = Some(Instant::now());
    }
    Ok(())
}

/// Indexes all pipelines if `whole`, and the `requested` ones.
fn index_due(shared: &WorkerShared, whole: bool, requested: &[UnindexedPipeline]) -> Result<Indexed, IndexError> {
    if whole {
        let slugs = pipelines::slugs(&*shared.store, Bucket::Pipelines);
        if index(shared, slugs)? == Indexed::Interrupted {
            return Ok(Indexed::Interrupted);
        }
        shared.kv.mark_built()?;
        if let Some(days) = shared.options.job_records_days
            && delete_old_records(shared, days)? == Indexed::Interrupted
        {
            return Ok(Indexed::Interrupted);
        }
    }
    let indexed = index(shared, requested.iter().map(|one| Ok(one.pipeline.clone())))?;
    if indexed == Indexed::Done {
        for one in requested {
            shared.kv.mark_indexed(one)?;
        }
    }
    Ok(indexed)
}

fn delete_old_records(shared: &WorkerShared, days: u32) -> Result<Indexed, IndexError> {
    for slug in pipelines::slugs(&*shared.store, Bucket::Pipelines) {
        if shared.stopping.phase() != Phase::Working || !extend_lock(shared)? {
            return Ok(Indexed::Interrupted);
        }
        retention::delete_old_records(shared, &slug?, days)?;
    }
    Ok(Indexed::Done)
}

/// Whether this worker indexes all pipelines today.
fn is_due(shared: &WorkerShared, indexed_at: &mut Option<Instant>) -> Result<bool, IndexError> {
    if indexed_at.is_some_and(|at| at.elapsed() < DAY) {
        return Ok(false);
    }
    let is_mine = shared.kv.try_lock(DAILY, &shared.options.name, DAY)?;
    if !is_mine {
        *indexed_at = Some(Instant::now());
    }
    Ok(is_mine)
}

/// Takes or extends the lock of the worker that indexes.
fn extend_lock(shared: &WorkerShared) -> Result<bool, IndexError> {
    Ok(shared.kv.try_lock(INDEXING, &shared.options.name, LOCK_TTL)?)
}

/// Adds the newest records of these pipelines that the index lacks.
fn index(shared: &WorkerShared, slugs: impl Iterator<Item = Result<Slug, StoreError>>) -> Result<Indexed, IndexError> {
    let mut newest: BinaryHeap<Reverse<(JobPosition, Slug)>> = BinaryHeap::new();
    for slug in slugs {
        let slug = slug?;
        if shared.stopping.phase() != Phase::Working || !extend_lock(shared)? {
            return Ok(Indexed::Interrupted);
        }
        let known = known(shared, &slug)?;
        for position in history::ended(&*shared.store, &slug, ENDED_JOBS_INDEXED_MAX)? {
            if !known.contains(&position.job_id) {
                newest.push(Reverse((position, slug.clone())));
            }
            if newest.len() > ENDED_JOBS_INDEXED_MAX {
                newest.pop();
            }
        }
    }
    // Ascending by `Reverse`: the newest first.
    for batch in newest.into_sorted_vec().chunks(BATCH) {
        if shared.stopping.phase() != Phase::Working || !extend_lock(shared)? {
            return Ok(Indexed::Interrupted);
        }
        let read = parallel_map(batch, READERS_MAX, |Reverse((position, slug))| {
            let recorded = history::read_summary(&*shared.store, slug, &position.job_id)?;
            Ok::<_, StoreError>(ended_job(slug, recorded))
        })?;
        shared.kv.index_ended(&read.into_iter().flatten().collect::<Vec<EndedJob>>())?;
    }
    Ok(Indexed::Done)
}

/// The jobs of a pipeline that the index has.
fn known(shared: &WorkerShared, slug: &Slug) -> Result<HashSet<JobId>, IndexError> {
    let filter = EndedFilter { pipeline: Some(slug), failed_only: false };
    let (mut known, mut before) = (HashSet::new(), None);
    loop {
        let found = shared.kv.ended(filter, before.as_ref(), KNOWN_PER_REQUEST)?.jobs;
        before = found.last().map(|(_, position)| position.clone());
        let is_last = found.len() < KNOWN_PER_REQUEST;
        known.extend(found.into_iter().map(|(_, position)| position.job_id));
        if is_last {
            return Ok(known);
        }
    }
}

fn ended_job(slug: &Slug, recorded: Recorded) -> Option<EndedJob> {
    let of = |job: &Job| EndedJob {
        pipeline: slug.clone(),
        position: JobPosition::of(job),
        failed: job.status == JobStatus::Failed,
    };
    match recorded {
        Recorded::Job(job) if job.status.is_terminal() => Some(of(&job)),
        Recorded::Job(_) | Recorded::Missing | Recorded::Unreadable(..) => None,
    }
}
