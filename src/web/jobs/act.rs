//! Doing something about jobs.

use super::{known, named};
use crate::domain::job::message::TRIGGER_MANUAL;
use crate::domain::job::{Job, JobId, JobMessage};
use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::{ATTEMPTS_DEFAULT, KEY_BYTES_MAX};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::is_in_use;
use crate::ports::jobs::{CancelOutcome, EnqueueOutcome};
use crate::ports::store::Bucket;
use crate::web::Web;
use crate::web::access::{flag_query, only_query, optional_query, prefix, slug_param};
use crate::web::failure::from_kv;

/// Queues for any pipeline that is there: a missing config fails in the run, a busy pipeline defers it.
pub fn run(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    only_query(request, &["clean", "prefix"])?;
    let clean = flag_query(request, "clean")?;
    let mut message = JobMessage::new(pipeline, clean, TRIGGER_MANUAL, web.clock.now());
    if let Some(text) = optional_query(request, "prefix")? {
        message.prefix = whole_prefix(&message.pipeline, text)?;
        message.relative_prefix().map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.message))?;
    }
    enqueue(web, message)
}

pub fn cancel(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = named(request)?;
    let too_late = |message: &str| Err(ApiError::new(ErrorCode::PipelineBusy, message));
    match web.kv.cancel(&pipeline, &id).map_err(from_kv)? {
        CancelOutcome::Requested => {
            tracing::info!(%pipeline, job_id = %id, "a job is to be cancelled");
            Ok(Response::json(202, &known(web, &pipeline, &id)?))
        }
        CancelOutcome::TooLate => too_late("the job publishes already, and can't be cancelled any more"),
        CancelOutcome::NotActive => {
            known(web, &pipeline, &id)?;
            too_late("the job has ended, and can't be cancelled any more")
        }
    }
}

/// The same again, under a new id.
pub fn retry(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = named(request)?;
    let job = known(web, &pipeline, &id)?;
    if !job.status.is_terminal() {
        let message = "the job has not ended; cancel it, or wait for its end";
        return Err(ApiError::new(ErrorCode::PipelineBusy, message));
    }
    let (job_id, enqueued_at) = (JobId::mint(), web.clock.now());
    enqueue(web, JobMessage { job_id, pipeline, enqueued_at, trigger: TRIGGER_MANUAL.to_owned(), ..job.message() })
}

fn enqueue(web: &Web, message: JobMessage) -> Result<Response, ApiError> {
    // Records of jobs alone make no pipeline. A store that is away keeps nobody from queueing.
    if matches!(is_in_use(&*web.store, &message.pipeline, &Bucket::ALL), Ok(false)) {
        let message = format!("there is no pipeline `{}`", message.pipeline);
        return Err(ApiError::new(ErrorCode::PipelineNotFound, message));
    }
    let attempts_max = web.kv.attempts_max().map_err(from_kv)?.unwrap_or(ATTEMPTS_DEFAULT);
    let job = Job::queued(&message, attempts_max);
    // With a fresh id both mean that it is queued: the first answer may have been lost.
    match web.kv.enqueue(&job).map_err(from_kv)? {
        EnqueueOutcome::Queued | EnqueueOutcome::AlreadyActive => {}
    }
    tracing::info!(pipeline = %job.pipeline, job_id = %job.job_id, clean_run = job.clean_run, "a run was asked for");
    Ok(Response::json(202, &job))
}

/// The prefix as jobs have it: from the lake's root.
fn whole_prefix(pipeline: &Slug, text: &str) -> Result<String, ApiError> {
    let (own, given) = (pipeline_prefix(pipeline), prefix(text)?);
    let whole = if given.starts_with("pipelines/") { given } else { format!("{own}{given}") };
    if whole.len() > KEY_BYTES_MAX {
        let message = format!("the prefix has {} bytes with `{own}`, expected at most {KEY_BYTES_MAX}", whole.len());
        return Err(ApiError::new(ErrorCode::InvalidKey, message));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_taken_from_the_root_and_from_the_pipeline() {
        let slug = Slug::parse("trips").unwrap();
        for (given, whole) in [
            ("", "pipelines/trips/"),
            ("2024/", "pipelines/trips/2024/"),
            ("2024/a", "pipelines/trips/2024/a"),
            ("pipelines/trips/2024/", "pipelines/trips/2024/"),
        ] {
            assert_eq!(whole_prefix(&slug, given).unwrap(), whole);
        }
        for bad in ["../other/", "/", "a//b", "a\u{202e}", &"x".repeat(KEY_BYTES_MAX)] {
            assert_eq!(whole_prefix(&slug, bad).unwrap_err().code(), ErrorCode::InvalidKey, "{bad}");
        }
    }
}
