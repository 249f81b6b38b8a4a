//! Finds jobs, of one pipeline or of all.

use std::cmp::Reverse;

use crate::cli::services::Services;
use crate::domain::job::{Job, JobStatus};
use crate::domain::limits::{ACTIVE_JOBS_SHOWN_MAX, HISTORY_PAGE_JOBS_MAX};
use crate::domain::name::Slug;
use crate::pipelines::{self, history};
use crate::ports::store::Bucket;
use crate::sync::parallel_map;

/// Pipelines read by [`of_all_pipelines`].
const PIPELINES_MAX: usize = 1_000;
/// Pipelines read concurrently.
const PARALLEL_PIPELINES_MAX: usize = 16;
/// Jobs of a pipeline searched for failed ones.
const SEARCHED_MAX: usize = 2_000;

/// A filter of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobFilter {
    Any,
    Failed,
    /// Queued and running.
    Active,
}

/// Jobs, newest first.
#[derive(Debug, Default)]
pub(super) struct FoundJobs {
    pub(super) jobs: Vec<Job>,
    /// Objects that are not records, with the reason.
    pub(super) unreadable: Vec<(String, String)>,
    /// A note about further jobs, if there are any.
    pub(super) more: Option<String>,
}

/// The newest jobs of a pipeline, at most `limit`.
///
/// # Errors
/// A store failed.
pub(super) fn of_one_pipeline(
    services: &Services,
    pipeline: &Slug,
    which: JobFilter,
    limit: usize,
) -> Result<FoundJobs, String> {
    if which == JobFilter::Active {
        let mut jobs = services.kv.active(pipeline, ACTIVE_JOBS_SHOWN_MAX).map_err(|error| error.to_string())?;
        jobs.reverse();
        return Ok(cut(jobs, limit));
    }
    let mut found = FoundJobs::default();
    let (mut before, mut looked_at) = (None, 0);
    let page_jobs = if which == JobFilter::Any { limit } else { HISTORY_PAGE_JOBS_MAX };
    loop {
        let page = history::page(&*services.store, &*services.kv, pipeline, before.as_ref(), page_jobs)
            .map_err(|error| error.to_string())?;
        looked_at += page.jobs.len();
        found.unreadable.extend(page.unreadable);
        found
            .jobs
            .extend(page.jobs.into_iter().filter(|job| which == JobFilter::Any || job.status == JobStatus::Failed));
        before = page.next;
        if before.is_none() {
            break;
        }
        if found.jobs.len() >= limit {
            found.more = Some("and older ones; --limit shows more".to_owned());
            break;
        }
        if looked_at >= SEARCHED_MAX {
            found.more = Some(format!("of the newest {looked_at} jobs; older ones were not searched"));
            break;
        }
    }
    if found.jobs.len() > limit {
        found.jobs.truncate(limit);
        found.more = Some("and older ones; --limit shows more".to_owned());
    }
    Ok(found)
}

/// The newest jobs of all pipelines, at most `limit`.
///
/// # Errors
/// A store failed.
pub(super) fn of_all_pipelines(services: &Services, which: JobFilter, limit: usize) -> Result<FoundJobs, String> {
    let (pipelines, are_all) = pipelines(services)?;
    let each =
        parallel_map(&pipelines, PARALLEL_PIPELINES_MAX, |pipeline| of_one_pipeline(services, pipeline, which, limit))?;
    let mut all = FoundJobs::default();
    let mut more = false;
    for found in each {
        more |= found.more.is_some();
        all.jobs.extend(found.jobs);
        all.unreadable.extend(found.unreadable);
    }
    all.jobs.sort_by_key(|job| Reverse((job.enqueued_at, job.job_id.clone())));
    let FoundJobs { jobs, more: cut_off, .. } = cut(all.jobs, limit);
    let older = "and older ones; --limit shows more".to_owned();
    let more = match are_all {
        true => cut_off.or_else(|| more.then_some(older)),
        false => Some(format!("of the first {PIPELINES_MAX} pipelines by name; name one to see those of others")),
    };
    Ok(FoundJobs { jobs, more, ..all })
}

fn cut(mut jobs: Vec<Job>, limit: usize) -> FoundJobs {
    let more = (jobs.len() > limit).then(|| "and older ones; --limit shows more".to_owned());
    jobs.truncate(limit);
    FoundJobs { jobs, more, unreadable: Vec::new() }
}

/// The first pipelines by name, and whether the list is complete. Includes pipelines that have only jobs.
fn pipelines(services: &Services) -> Result<(Vec<Slug>, bool), String> {
    let slugs = pipelines::slugs(&*services.store, Bucket::Pipelines).take(PIPELINES_MAX + 1);
    let mut pipelines: Vec<Slug> = slugs.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let are_all = pipelines.len() <= PIPELINES_MAX;
    pipelines.truncate(PIPELINES_MAX);
    Ok((pipelines, are_all))
}
