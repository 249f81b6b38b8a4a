//! Runs, cancels and retries jobs.

use super::service::{Jobs, find_job, path_params};
use crate::domain::job::message::{TRIGGER_DRY_RUN, TRIGGER_MANUAL};
use crate::domain::job::{Job, JobId, JobMessage};
use crate::domain::layout::{dry_run_config_key, pipeline_prefix};
use crate::domain::limits::{ATTEMPTS_DEFAULT, KEY_BYTES_MAX};
use crate::domain::name::Slug;
use crate::domain::pipeline::validate::parse;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::pipelines::is_in_use;
use crate::ports::jobs::{CancelOutcome, EnqueueOutcome};
use crate::ports::store::{Bucket, WriteOptions};
use crate::web::access::{flag_query, only_query, optional_query, prefix, slug_param};
use crate::web::config::text_of_body;
use crate::web::failure::{from_kv, from_store, pipeline_not_found};

/// Enqueues for any existing pipeline: a missing config fails the run, a busy pipeline delays it.
pub fn run(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    only_query(request, &["clean", "prefix"])?;
    let clean = flag_query(request, "clean")?;
    let mut message = JobMessage::new(pipeline, clean, TRIGGER_MANUAL, jobs.clock.now());
    if let Some(text) = optional_query(request, "prefix")? {
        message.prefix = whole_prefix(&message.pipeline, text)?;
        message.relative_prefix().map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.message))?;
    }
    exists(jobs, &message.pipeline)?;
    enqueue(jobs, message)
}

/// Enqueues a run of the config in the body over all files, which writes nothing.
pub fn dry_run(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    exists(jobs, &pipeline)?;
    let body = request.body_bytes()?;
    let text = text_of_body(&body)?;
    parse(text).map_err(|problems| ApiError::of(ErrorCode::InvalidConfig).with_problems(problems))?;
    // Not a clean run: a worker of an older version runs the stored config, which then does no harm.
    let message = JobMessage::new(pipeline, false, TRIGGER_DRY_RUN, jobs.clock.now());
    let key = dry_run_config_key(&message.pipeline, message.job_id.as_str());
    jobs.store.put(Bucket::Pipelines, &key, &body, &WriteOptions::default()).map_err(from_store)?;
    enqueue(jobs, message).inspect_err(|_| remove_config(jobs, &key))
}

fn remove_config(jobs: &Jobs, key: &str) {
    if let Err(error) = jobs.store.delete(Bucket::Pipelines, &[key.to_owned()], &WriteOptions::default()) {
        tracing::warn!(key, %error, "removing the config of a dry run failed");
    }
}

pub fn cancel(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = path_params(request)?;
    let too_late = |message: &str| Err(ApiError::new(ErrorCode::PipelineBusy, message));
    match jobs.registry.cancel(&pipeline, &id).map_err(from_kv)? {
        CancelOutcome::Requested => {
            tracing::info!(%pipeline, job_id = %id, "job cancellation requested");
            let job = find_job(jobs, &pipeline, &id)?;
            if job.is_dry_run() {
                remove_config(jobs, &dry_run_config_key(&pipeline, id.as_str()));
            }
            Ok(Response::json(202, &job))
        }
        CancelOutcome::TooLate => too_late("the job is already publishing and can no longer be cancelled"),
        CancelOutcome::NotActive => {
            find_job(jobs, &pipeline, &id)?;
            too_late("the job has already ended")
        }
    }
}

/// Enqueues the same job under a new id.
pub fn retry(jobs: &Jobs, request: &mut Request) -> Result<Response, ApiError> {
    let (pipeline, id) = path_params(request)?;
    let job = find_job(jobs, &pipeline, &id)?;
    if !job.status.is_terminal() {
        let message = "the job has not ended; cancel it or wait";
        return Err(ApiError::new(ErrorCode::PipelineBusy, message));
    }
    if job.is_dry_run() {
        let message = "the config of a dry run isn't kept; start it again from the config";
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    exists(jobs, &pipeline)?;
    let (job_id, enqueued_at) = (JobId::mint(), jobs.clock.now());
    enqueue(jobs, JobMessage { job_id, pipeline, enqueued_at, trigger: TRIGGER_MANUAL.to_owned(), ..job.message() })
}

/// Job records alone don't make a pipeline. An unavailable store doesn't prevent enqueueing.
fn exists(jobs: &Jobs, pipeline: &Slug) -> Result<(), ApiError> {
    match is_in_use(&*jobs.store, pipeline, &Bucket::ALL) {
        Ok(false) => Err(pipeline_not_found(pipeline)),
        Ok(true) | Err(_) => Ok(()),
    }
}

fn enqueue(jobs: &Jobs, message: JobMessage) -> Result<Response, ApiError> {
    let attempts_max = jobs.registry.attempts_max().map_err(from_kv)?.unwrap_or(ATTEMPTS_DEFAULT);
    let job = Job::queued(&message, attempts_max);
    // The id is new, so both outcomes mean that it is queued: the first reply may have been lost.
    match jobs.registry.enqueue(&job).map_err(from_kv)? {
        EnqueueOutcome::Queued | EnqueueOutcome::AlreadyActive => {}
    }
    tracing::info!(pipeline = %job.pipeline, job_id = %job.job_id, clean_run = job.clean_run, "job enqueued");
    Ok(Response::json(202, &job))
}

/// The prefix from the lake's root, as in a job's message.
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
    fn prefix_is_relative_to_root_or_pipeline() {
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
