//! The jobs of a pipeline: their history merged with what is on, and what people do about them.
//!
//! Must not: run anything, or write a record; it asks the queue, and a worker does it.

mod act;
mod history;
mod rejects;

use schemars::JsonSchema;
use serde::Serialize;

use super::Web;
use super::access::slug_param;
use super::endpoint::Endpoint;
use super::failure::{from_kv, from_store};
use super::parquet::rejects::Rejects;
use crate::domain::job::{Job, JobId};
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request};
use crate::pipelines::history::{Recorded, read};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let found = [ErrorCode::InvalidSlug, ErrorCode::JobNotFound];
    vec![
        Endpoint::get("/api/p/{pipeline}/jobs", "jobs.list", "Lists jobs, the newest first", history::list)
            .query::<u64>("limit", "How many at most: 1 to 200, 50 if it is missing.")
            .query::<String>("before", "What `next` of the page before said.")
            .answers::<Jobs>(200, "a page of jobs")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound]),
        Endpoint::post("/api/p/{pipeline}/jobs", "jobs.run", "Asks for a run", act::run)
            .query::<bool>("clean", "Whether all tables are made anew.")
            .query::<String>("prefix", "Only sources under this prefix may start new work.")
            .answers::<Job>(202, "the job, queued")
            .errors(&[ErrorCode::InvalidSlug, ErrorCode::InvalidKey, ErrorCode::PipelineNotFound]),
        Endpoint::get("/api/p/{pipeline}/jobs/{id}", "jobs.get", "Tells of a job, with its sources", history::get)
            .answers::<Job>(200, "the job")
            .errors(&found),
        Endpoint::post("/api/p/{pipeline}/jobs/{id}/cancel", "jobs.cancel", "Ends a job before its time", act::cancel)
            .answers::<Job>(202, "the job as it is now; it ends soon")
            .errors(&found)
            .errors(&[ErrorCode::PipelineBusy]),
        Endpoint::post("/api/p/{pipeline}/jobs/{id}/retry", "jobs.retry", "Asks for an ended job again", act::retry)
            .answers::<Job>(202, "the new job, queued")
            .errors(&found)
            .errors(&[ErrorCode::PipelineBusy, ErrorCode::PipelineNotFound]),
        Endpoint::get(
            "/api/p/{pipeline}/jobs/{id}/rejects",
            "jobs.rejects",
            "Downloads the rows for which a job failed, or shows the first of them",
            rejects::rejects,
        )
        .query::<String>("format", "`parquet` for all of them as a file, which is the default, or `json`.")
        .query::<u64>("limit", "How many rows of JSON at most: 1 to 1,000, 100 if it is missing.")
        .answers_bytes(200, PARQUET, "the rows and why each was rejected")
        .header("Content-Disposition")
        .answers::<Rejects>(200, "the first of them, as JSON")
        .errors(&found)
        .errors(&[ErrorCode::ObjectNotFound, ErrorCode::QueryTooLarge]),
    ]
}

const PARQUET: &str = "application/vnd.apache.parquet";

/// A page of a history.
#[derive(Serialize, JsonSchema)]
struct Jobs {
    /// Without the accounting of single sources.
    jobs: Vec<Job>,
    /// Give it back as `before` for what comes after; null on the last page.
    next: Option<String>,
}

/// Pipeline and job of the path. Another alphabet than that of ids is no job.
fn named(request: &Request) -> Result<(Slug, JobId), ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let id =
        JobId::parse(request.param("id")).map_err(|error| ApiError::new(ErrorCode::JobNotFound, error.to_string()));
    Ok((pipeline, id?))
}

/// What is known of a job, whole. Live state is read first, so that a job that ends meanwhile is not missed; a record
/// counts more.
///
/// # Errors
/// `job_not_found`, `s3_error`, `bucket_not_found`, `kv_unavailable`.
fn known(web: &Web, pipeline: &Slug, id: &JobId) -> Result<Job, ApiError> {
    let live = web.kv.job(pipeline, id).map_err(from_kv)?;
    match read(&*web.store, pipeline, id).map_err(from_store)? {
        Recorded::Job(job) => return Ok(moved(*job, pipeline)),
        Recorded::Unreadable(key, why) => tracing::warn!(%pipeline, job_id = %id, key, why, "a record is unreadable"),
        Recorded::Gone => {}
    }
    live.map(|job| moved(job, pipeline))
        .ok_or_else(|| ApiError::new(ErrorCode::JobNotFound, format!("the pipeline `{pipeline}` has no job `{id}`")))
}

/// A job as one of `pipeline`: one that was renamed or copied has the jobs of its time under another name.
fn moved(job: Job, pipeline: &Slug) -> Job {
    if job.pipeline == *pipeline {
        return job;
    }
    let prefix = match job.message().relative_prefix() {
        Ok(relative) => format!("{}{relative}", pipeline_prefix(pipeline)),
        Err(_) => job.prefix.clone(),
    };
    Job { pipeline: pipeline.clone(), prefix, ..job }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobMessage;

    #[test]
    fn a_job_moves_with_its_pipeline() {
        let (old, new) = (Slug::parse("h8").unwrap(), Slug::parse("h9").unwrap());
        for (prefix, expect) in [
            ("pipelines/h8/", "pipelines/h9/"),
            ("pipelines/h8/in/a", "pipelines/h9/in/a"),
            ("", "pipelines/h9/"),
            ("in/", "pipelines/h9/in/"),
        ] {
            let at = chrono::DateTime::UNIX_EPOCH;
            let message = JobMessage { prefix: prefix.into(), ..JobMessage::new(old.clone(), false, "manual", at) };
            let job = moved(Job::queued(&message, 1), &new);
            assert_eq!((job.pipeline, job.prefix.as_str()), (new.clone(), expect));
        }
    }
}
