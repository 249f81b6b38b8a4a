//! Finds jobs, of one pipeline or of all.

use chrono::DateTime;

use crate::cli::services::Services;
use crate::domain::job::Job;
use crate::domain::name::Slug;
use crate::pipelines::all_jobs::{self, JobFilter};
use crate::pipelines::history;
use crate::ports::job_index::Coverage;

/// Jobs, newest first.
#[derive(Debug, Default)]
pub(super) struct FoundJobs {
    pub(super) jobs: Vec<Job>,
    /// Objects that are not records, with the reason.
    pub(super) unreadable: Vec<(String, String)>,
    /// A note about further jobs, if there are any.
    pub(super) more: Option<String>,
}

/// The newest jobs of a pipeline, or of all, at most `limit`.
///
/// # Errors
/// A store failed.
pub(super) fn newest(
    services: &Services,
    pipeline: Option<&Slug>,
    which: JobFilter,
    limit: usize,
) -> Result<FoundJobs, String> {
    let (store, kv) = (&*services.store, &*services.kv);
    let (page, coverage) = match (pipeline, which) {
        (Some(pipeline), JobFilter::All) => {
            (history::page(store, kv, kv, pipeline, None, limit).map_err(|error| error.to_string())?, Coverage::All)
        }
        _ => {
            let found =
                all_jobs::page(store, kv, kv, pipeline, which, None, limit).map_err(|error| error.to_string())?;
            (found.page, found.coverage)
        }
    };
    let more = match (&page.next, coverage) {
        (Some(_), _) => Some("and older ones; --limit shows more".to_owned()),
        (None, _) if which == JobFilter::Active => None,
        (None, Coverage::Incomplete) => {
            Some("jobs that ended before may be missing: no worker has indexed all records yet".to_owned())
        }
        (None, Coverage::Since(ms)) => {
            let since = DateTime::from_timestamp_millis(ms).unwrap_or_default();
            Some(format!("jobs before {} are listed by pipeline only", since.format("%Y-%m-%d %H:%M UTC")))
        }
        (None, Coverage::All) => None,
    };
    Ok(FoundJobs { jobs: page.jobs, unreadable: page.unreadable, more })
}
