//! The jobs of a pipeline: its history merged with active jobs; runs, retries and cancellations.
//!
//! Must not: run a job or write a record; it enqueues, and a worker runs.

mod actions;
mod rejects;
mod service;

use chrono::DateTime;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::access::{number_query, optional_query, slug_param};
use super::endpoint::Endpoint;
use super::failure::from_history;
use super::parquet::rejects::Rejects;
use crate::domain::job::{Job, JobPosition, PositionError};
use crate::domain::limits::{CONFIG_BYTES_MAX, HISTORY_PAGE_JOBS_MAX};
use crate::domain::text::clipped;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::all_jobs::{self, JobFilter};
use crate::pipelines::history::page;
use crate::ports::job_index::Coverage;
use crate::runtime::rfc3339;

pub use service::Jobs;
use service::{PARQUET, find_job, path_params};

pub(super) fn endpoints() -> Vec<Endpoint<Jobs>> {
    let found = [ErrorCode::InvalidSlug, ErrorCode::JobNotFound];
    vec![
        Endpoint::get("/api/p/{pipeline}/jobs", "jobs.list", "Lists jobs, newest first", list)
            .query::<u64>("limit", "Page size: 1 to 200, 50 by default.")
            .query::<String>("before", "`next` of the previous page.")
            .response::<JobPage>(200, "a page of jobs")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound]),
        Endpoint::get("/api/jobs", "jobs.list_all", "Lists the jobs of all pipelines, newest first", list_all)
            .query::<String>(
                "status",
                "`active` for queued and running jobs, `failed` for failed ones; all by default.",
            )
            .query::<u64>("limit", "Page size: 1 to 200, 50 by default.")
            .query::<String>("before", "`next` of the previous page.")
            .response::<AllJobsPage>(200, "a page of jobs"),
        Endpoint::post("/api/p/{pipeline}/jobs", "jobs.run", "Starts a run", actions::run)
            .query::<bool>("clean", "Whether to rebuild all tables.")
            .query::<String>("prefix", "Only process sources under this prefix.")
            .response::<Job>(202, "the job, queued")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::InvalidKey, ErrorCode::PipelineNotFound]),
        Endpoint::post(
            "/api/p/{pipeline}/dry-runs",
            "jobs.dry_run",
            "Starts a run of the config in the body over all files, which writes nothing",
            actions::dry_run,
        )
        .takes::<Value>(CONFIG_BYTES_MAX as u64)
        .response::<Job>(202, "the job, queued; once it has ended, it can be read for an hour")
        .errors(&[ErrorCode::InvalidSlug, ErrorCode::InvalidConfig, ErrorCode::PipelineNotFound]),
        Endpoint::get("/api/p/{pipeline}/jobs/{id}", "jobs.get", "Shows a job, with its sources", get)
            .response::<Job>(200, "the job")
            .errors(&found),
        Endpoint::post("/api/p/{pipeline}/jobs/{id}/cancel", "jobs.cancel", "Cancels a job", actions::cancel)
            .response::<Job>(202, "the job, which will end soon")
            .errors(&found)
            .errors(&[ErrorCode::PipelineBusy]),
        Endpoint::post("/api/p/{pipeline}/jobs/{id}/retry", "jobs.retry", "Runs an ended job again", actions::retry)
            .response::<Job>(202, "the new job, queued")
            .errors(&found)
            .errors(&[ErrorCode::InvalidRequest, ErrorCode::PipelineBusy, ErrorCode::PipelineNotFound]),
        Endpoint::get(
            "/api/p/{pipeline}/jobs/{id}/rejects",
            "jobs.rejects",
            "Downloads a failed job's rejected rows, or shows the first of them",
            rejects::rejects,
        )
        .query::<String>("format", "`parquet` (the default) for all rows as a file, or `json`.")
        .query::<u64>("limit", "Maximum number of JSON rows: 1 to 1,000, 100 by default.")
        .bytes_response(200, PARQUET, "the rows, with the reason of each")
        .header("Content-Disposition")
        .response::<Rejects>(200, "the first rows, as JSON")
        .errors(&found)
        .errors(&[ErrorCode::ObjectNotFound, ErrorCode::QueryTooLarge]),
    ]
}

/// A page of a history.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Jobs")]
struct JobPage {
    /// Without the accounting of each source.
    jobs: Vec<Job>,
    /// `before` of the next page; null on the last page.
    next: Option<String>,
}

/// A page of the jobs of all pipelines.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AllJobs")]
struct AllJobsPage {
    /// Without the accounting of each source.
    jobs: Vec<Job>,
    /// `before` of the next page; null on the last page.
    next: Option<String>,
    /// False while a worker still indexes records: jobs that ended before may be missing.
    complete: bool,
    /// RFC 3339. Jobs that were enqueued before are listed by pipeline only; null if all are listed.
    since: Option<String>,
}

/// Default page size.
const PAGE_JOBS_DEFAULT: u64 = 50;

const _: () = assert!(PAGE_JOBS_DEFAULT <= HISTORY_PAGE_JOBS_MAX as u64);

fn list(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let (before, limit) = position(request)?;
    let page =
        page(&*jobs.store, &*jobs.registry, &*jobs.index, &pipeline, before.as_ref(), limit).map_err(from_history)?;
    for (key, why) in &page.unreadable {
        tracing::warn!(%pipeline, key, why, "job record is unreadable; skipped");
    }
    // A pipeline may have jobs but no objects.
    if page.jobs.is_empty() && before.is_none() {
        jobs.store.existing(request, "pipeline")?;
    }
    let jobs = page.jobs.into_iter().map(|job| job.of_pipeline(&pipeline)).collect();
    Ok(Response::json(200, &JobPage { jobs, next: page.next.map(|next| next.to_string()) }))
}

/// `before` and `limit` of a page.
fn position(request: &Request) -> Result<(Option<JobPosition>, usize), ApiError> {
    let limit = number_query(request, "limit", 1..=HISTORY_PAGE_JOBS_MAX as u64)?.unwrap_or(PAGE_JOBS_DEFAULT);
    let invalid = |error: PositionError| ApiError::new(ErrorCode::InvalidRequest, format!("before: {error}"));
    let before = optional_query(request, "before")?.map(str::parse).transpose().map_err(invalid)?;
    Ok((before, usize::try_from(limit).unwrap_or(HISTORY_PAGE_JOBS_MAX)))
}

fn list_all(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let (before, limit) = position(request)?;
    let which = match optional_query(request, "status")? {
        None => JobFilter::All,
        Some("failed") => JobFilter::Failed,
        Some("active") => JobFilter::Active,
        Some(other) => {
            let text = format!("status: expected `active` or `failed`, found `{}`", clipped(other));
            return Err(ApiError::new(ErrorCode::InvalidRequest, text));
        }
    };
    let found = all_jobs::page(&*jobs.store, &*jobs.registry, &*jobs.index, None, which, before.as_ref(), limit)
        .map_err(from_history)?;
    for (key, why) in &found.page.unreadable {
        tracing::warn!(key, why, "job record is unreadable; skipped");
    }
    let since = match found.coverage {
        Coverage::Since(ms) => DateTime::from_timestamp_millis(ms),
        Coverage::Incomplete | Coverage::All => None,
    };
    Ok(Response::json(
        200,
        &AllJobsPage {
            jobs: found.page.jobs,
            next: found.page.next.map(|next| next.to_string()),
            complete: found.coverage != Coverage::Incomplete,
            since: since.map(rfc3339),
        },
    ))
}

fn get(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = path_params(request)?;
    Ok(Response::json(200, &find_job(jobs, &pipeline, &id)?))
}
