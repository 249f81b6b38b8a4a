//! Jobs of all pipelines, or the failed ones of one, newest first: active ones from the key-value store, ended ones found by
//! its index.
//!
//! Invariant: as in [`super::history`], active jobs are read first, so that a job that ends meanwhile is found.

use std::collections::HashSet;

use super::history::{HistoryError, Page, Recorded, read_summary};
use crate::domain::job::{Job, JobId, JobPosition};
use crate::domain::limits::ACTIVE_JOBS_SHOWN_MAX;
use crate::domain::name::Slug;
use crate::ports::ObjectStore;
use crate::ports::job_index::{Coverage, EndedFilter, JobIndex};
use crate::ports::jobs::JobRegistry;
use crate::ports::store::StoreError;
use crate::sync::parallel_map;

/// Pipelines whose active jobs are listed, the first by name; and requests made concurrently.
const ACTIVE_PIPELINES_MAX: usize = 10_000;
const PARALLEL_MAX: usize = 8;

/// Which jobs are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobFilter {
    All,
    Failed,
    /// Queued and running.
    Active,
}

/// A page of jobs of all pipelines.
#[derive(Debug)]
pub struct AllJobsPage {
    pub page: Page,
    /// Which ended jobs can be on a page.
    pub coverage: Coverage,
}

/// The newest jobs, of one pipeline or of all, or those after the cursor `before`, at most `limit`.
///
/// # Errors
/// Either store failed.
pub fn page(
    store: &dyn ObjectStore,
    registry: &dyn JobRegistry,
    index: &dyn JobIndex,
    pipeline: Option<&Slug>,
    which: JobFilter,
    before: Option<&JobPosition>,
    limit: usize,
) -> Result<AllJobsPage, HistoryError> {
    let mut found: Vec<(Slug, JobPosition, Option<Job>)> = Vec::new();
    if which != JobFilter::Failed {
        for job in active(registry, index, pipeline)? {
            let position = JobPosition::of(&job);
            if before.is_none_or(|before| position < *before) {
                found.push((job.pipeline.clone(), position, Some(job.without_sources())));
            }
        }
    }
    let filter = EndedFilter { pipeline, failed_only: which == JobFilter::Failed };
    let wanted = if which == JobFilter::Active { 0 } else { limit + 1 };
    let ended = index.ended(filter, before, wanted)?;
    let ids: HashSet<&JobId> = ended.jobs.iter().map(|(_, position)| &position.job_id).collect();
    found.retain(|(_, position, _)| !ids.contains(&position.job_id));
    found.extend(ended.jobs.iter().map(|(slug, position)| (slug.clone(), position.clone(), None)));
    found.sort_by(|a, b| (&b.1, &b.0).cmp(&(&a.1, &a.0)));
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|(_, position, _)| position.clone());

    let read = parallel_map(&found, PARALLEL_MAX, |(slug, position, job)| match job {
        Some(job) => Ok::<_, StoreError>(Recorded::Job(Box::new(job.clone()))),
        None => match read_summary(store, slug, &position.job_id)? {
            Recorded::Job(job) => Ok(Recorded::Job(Box::new(job.of_pipeline(slug)))),
            other => Ok(other),
        },
    })?;
    let mut page = Page { next, ..Page::default() };
    for recorded in read {
        match recorded {
            Recorded::Job(job) => page.jobs.push(*job),
            Recorded::Unreadable(key, why) => page.unreadable.push((key, why)),
            // Removed by others.
            Recorded::Missing => {}
        }
    }
    Ok(AllJobsPage { page, coverage: ended.coverage })
}

/// The active jobs, in no order.
fn active(registry: &dyn JobRegistry, index: &dyn JobIndex, pipeline: Option<&Slug>) -> Result<Vec<Job>, HistoryError> {
    let pipelines = match pipeline {
        Some(pipeline) => vec![pipeline.clone()],
        None => index.active_pipelines(ACTIVE_PIPELINES_MAX)?,
    };
    let each = parallel_map(&pipelines, PARALLEL_MAX, |pipeline| registry.active(pipeline, ACTIVE_JOBS_SHOWN_MAX))?;
    Ok(each.into_iter().flatten().collect())
}
