//! The service, and what its handlers share.

use std::sync::Arc;

use crate::domain::job::{Job, JobId};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request};
use crate::pipelines::history::{Recorded, read};
use crate::ports::job_index::JobIndex;
use crate::ports::jobs::JobRegistry;
use crate::runtime::Clock;
use crate::sql::sandbox::Sandbox;
use crate::sync::Semaphore;
use crate::web::access::slug_param;
use crate::web::failure::{from_kv, from_store};
use crate::web::parquet::UnreadableFiles;
use crate::web::stores::Objects;

pub(super) const PARQUET: &str = "application/vnd.apache.parquet";

/// The service.
pub struct Jobs {
    pub store: Objects,
    pub registry: Arc<dyn JobRegistry>,
    pub index: Arc<dyn JobIndex>,
    pub clock: Arc<dyn Clock>,
    pub sandbox: Arc<Sandbox>,
    pub unreadable: Arc<UnreadableFiles>,
    pub streams: Semaphore,
}

/// Parses pipeline and job from the path. A malformed id is an unknown job.
pub(super) fn path_params(request: &Request) -> Result<(Slug, JobId), ApiError> {
    let pipeline = slug_param(request, "pipeline")?;
    let id =
        JobId::parse(request.param("id")).map_err(|error| ApiError::new(ErrorCode::JobNotFound, error.to_string()));
    Ok((pipeline, id?))
}

/// Looks a job up. Active jobs are read first, so that a job that ends meanwhile isn't missed; its record takes
/// precedence.
///
/// # Errors
/// `job_not_found`, `s3_error`, `bucket_not_found`, `kv_unavailable`.
pub(super) fn find_job(jobs: &Jobs, pipeline: &Slug, id: &JobId) -> Result<Job, ApiError> {
    let live = jobs.registry.job(pipeline, id).map_err(from_kv)?;
    match read(&*jobs.store, pipeline, id).map_err(from_store)? {
        Recorded::Job(job) => return Ok(job.of_pipeline(pipeline)),
        Recorded::Unreadable(key, why) => tracing::warn!(%pipeline, job_id = %id, key, why, "job record is unreadable"),
        Recorded::Missing => {}
    }
    live.map(|job| job.of_pipeline(pipeline))
        .ok_or_else(|| ApiError::new(ErrorCode::JobNotFound, format!("the pipeline `{pipeline}` has no job `{id}`")))
}
