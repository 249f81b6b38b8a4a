//! The jobs of a pipeline: its history merged with active jobs; runs, retries and cancellations.
//!
//! Must not: run a job or write a record; it enqueues, and a worker runs.

mod actions;
mod rejects;
mod service;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::access::{number_query, optional_query, slug_param};
use super::endpoint::Endpoint;
use super::failure::from_history;
use super::parquet::rejects::Rejects;
use crate::domain::job::Job;
use crate::domain::limits::{CONFIG_BYTES_MAX, HISTORY_PAGE_JOBS_MAX};
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::history::{CursorError, HistoryCursor, page};

pub use service::Jobs;
use service::{PARQUET, as_job_of, find_job, path_params};

pub(super) fn endpoints() -> Vec<Endpoint<Jobs>> {
    let found = [ErrorCode::InvalidSlug, ErrorCode::JobNotFound];
    vec![
        Endpoint::get("/api/p/{pipeline}/jobs", "jobs.list", "Lists jobs, newest first", list)
            .query::<u64>("limit", "Page size: 1 to 200, 50 by default.")
            .query::<String>("before", "`next` of the previous page.")
            .response::<JobPage>(200, "a page of jobs")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound]),
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

/// Default page size.
const PAGE_JOBS_DEFAULT: u64 = 50;

const _: () = assert!(PAGE_JOBS_DEFAULT <= HISTORY_PAGE_JOBS_MAX as u64);

fn list(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let limit = number_query(request, "limit", 1..=HISTORY_PAGE_JOBS_MAX as u64)?.unwrap_or(PAGE_JOBS_DEFAULT);
    let invalid = |error: CursorError| ApiError::new(ErrorCode::InvalidRequest, format!("before: {error}"));
    let before: Option<HistoryCursor> =
        optional_query(request, "before")?.map(str::parse).transpose().map_err(invalid)?;
    let limit = usize::try_from(limit).unwrap_or(HISTORY_PAGE_JOBS_MAX);
    let page = page(&*jobs.store, &*jobs.kv, &pipeline, before.as_ref(), limit).map_err(from_history)?;
    for (key, why) in &page.unreadable {
        tracing::warn!(%pipeline, key, why, "job record is unreadable; skipped");
    }
    // A pipeline may have jobs but no objects.
    if page.jobs.is_empty() && before.is_none() {
        jobs.store.existing(request, "pipeline")?;
    }
    let jobs = page.jobs.into_iter().map(|job| as_job_of(job, &pipeline)).collect();
    Ok(Response::json(200, &JobPage { jobs, next: page.next.map(|next| next.to_string()) }))
}

fn get(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = path_params(request)?;
    Ok(Response::json(200, &find_job(jobs, &pipeline, &id)?))
}
