//! Reads a pipeline's config from the store.

use std::io::Read;

use super::shared::WorkerShared;
use crate::domain::job::{JobMessage, RunError, RunErrorCode};
use crate::domain::layout::{config_key, dry_run_config_key, unfinished_key};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::domain::problem::Problem;
use crate::engine::run_error::store_error;
use crate::engine::validate::{ValidateError, validate};
use crate::pipelines::is_in_use;
use crate::ports::Expressions;
use crate::ports::store::{Bucket, StoreError};

/// Problems listed in an error; the rest is counted.
const PROBLEMS_LISTED: usize = 20;

/// # Errors
/// `pipeline_config_not_found`, the errors of [`check`], or the store's error.
pub(super) fn read(shared: &WorkerShared, expressions: &dyn Expressions, slug: &Slug) -> Result<Pipeline, RunError> {
    check(expressions, slug, &read_text(shared, slug)?)
}

/// The config of a dry run.
///
/// # Errors
/// Same as for [`read`].
pub(super) fn read_of_dry_run(
    shared: &WorkerShared,
    expressions: &dyn Expressions,
    message: &JobMessage,
) -> Result<Pipeline, RunError> {
    let (slug, key) = (&message.pipeline, dry_run_config_key(&message.pipeline, message.job_id.as_str()));
    let text = read_object(shared, &key, || {
        RunError::new(RunErrorCode::PipelineConfigNotFound, "the config of the dry run is gone")
            .detail("start the dry run again")
            .path(key.clone())
    })?;
    check(expressions, slug, &text)
}

/// # Errors
/// `invalid_config` with its problems; `internal` if its expressions can't be checked now.
pub(super) fn check(expressions: &dyn Expressions, slug: &Slug, text: &str) -> Result<Pipeline, RunError> {
    validate(text, expressions).map_err(|error| match error {
        ValidateError::Invalid(problems) => invalid(slug, &problems),
        ValidateError::Unchecked { reason } => RunError::new(RunErrorCode::Internal, reason),
    })
}

/// Whether events start runs of the pipeline. A missing or unreadable config counts as yes, so that a run reports the
/// problem.
pub(super) fn auto_run(text: &Result<String, RunError>) -> bool {
    let Ok(text) = text else { return true };
    let config: Result<serde_json::Value, _> = serde_json::from_str(text);
    config.ok().and_then(|config| config.get("auto_run")?.as_bool()).unwrap_or(true)
}

/// Whether a pipeline without config doesn't exist: its folders contain only records of jobs, or objects of an
/// unfinished create, import or rename. False if the store fails.
pub(super) fn is_gone(shared: &WorkerShared, slug: &Slug) -> bool {
    matches!(is_in_use(&*shared.store, slug, &Bucket::ALL), Ok(false))
        || matches!(shared.store.head(Bucket::Pipelines, &unfinished_key(slug)), Ok(Some(_)))
}

/// The config as stored.
///
/// # Errors
/// `pipeline_config_not_found`, `invalid_config` if it is not UTF-8 or too large, or the store's error.
pub(super) fn read_text(shared: &WorkerShared, slug: &Slug) -> Result<String, RunError> {
    read_object(shared, &config_key(slug), || not_found(slug))
}

fn read_object(shared: &WorkerShared, key: &str, missing: impl FnOnce() -> RunError) -> Result<String, RunError> {
    let reader = match shared.store.get(Bucket::Pipelines, key, None) {
        Ok(reader) => reader,
        Err(StoreError::NotFound { .. }) => return Err(missing()),
        Err(error) => return Err(store_error(error)),
    };
    let mut bytes = Vec::new();
    // One byte more than allowed, to detect a longer one.
    reader.body.take(CONFIG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|source| {
        let (bucket, key) = (Bucket::Pipelines, key.to_owned());
        store_error(StoreError::Transient { bucket, key, operation: "reading", source })
    })?;
    if bytes.len() > CONFIG_BYTES_MAX {
        let message = format!("`{key}` has more than {CONFIG_BYTES_MAX} bytes, the most that a config may have");
        return Err(RunError::new(RunErrorCode::InvalidConfig, message).path(key));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) => Err(RunError::new(RunErrorCode::InvalidConfig, format!("`{key}` is not UTF-8")).path(key)),
    }
}

fn not_found(slug: &Slug) -> RunError {
    let key = config_key(slug);
    RunError::new(RunErrorCode::PipelineConfigNotFound, format!("the pipeline `{slug}` has no config"))
        .detail(format!("create one at `{key}` in the pipelines bucket"))
        .path(key)
}

fn invalid(slug: &Slug, problems: &[Problem]) -> RunError {
    let listed: Vec<String> =
        problems.iter().take(PROBLEMS_LISTED).map(|p| format!("{}: {}", p.path, p.message)).collect();
    let more = problems.len().saturating_sub(PROBLEMS_LISTED);
    let more = if more == 0 { String::new() } else { format!("\nand {more} more") };
    let first = problems.first().map_or_else(String::new, |p| p.message.clone());
    let count = match problems.len() {
        1 => "a problem".to_owned(),
        n => format!("{n} problems"),
    };
    let error = RunError::new(RunErrorCode::InvalidConfig, format!("the config of `{slug}` has {count}: {first}"))
        .detail(format!("{}{more}", listed.join("\n")));
    match problems.first() {
        Some(problem) => error.path(problem.path.clone()),
        None => error,
    }
}
