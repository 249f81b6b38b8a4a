//! Saves a config. Any JSON is stored, and its problems are reported; a strict save stores only configs without problems.

use schemars::JsonSchema;
use serde::Serialize;

use super::history::{History, Save};
use super::impact::{self, Impact};
use super::service::{BYTES_MAX, Configs, VALIDATE_TIMEOUT, text_of_body};
use crate::domain::layout::config_key;
use crate::domain::name::Slug;
use crate::domain::pipeline::Pipeline;
use crate::domain::pipeline::validate::examine;
use crate::domain::problem::Problem;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, WriteOptions};
use crate::web::access::{IfMatch, flag_query, if_match_or_none, number_query, quoted, slug_param};
use crate::web::failure::from_store;
use crate::web::worker_client::WorkerClientError;

/// The findings.
#[derive(Serialize, JsonSchema)]
pub(super) struct Saved {
    /// Whether there are no problems.
    ok: bool,
    problems: Vec<Problem>,
    /// Valid, but probably unintended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Problem>,
    /// False if the config has expressions and no worker checked them.
    expressions_checked: bool,
    /// What the config would break; null if unknown.
    impact: Option<Impact>,
    /// Why the impact is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    impact_unknown: Option<String>,
}

pub(super) fn put(configs: &Configs, request: &mut Request) -> Result<Response, ApiError> {
    let slug = slug_param(request, "pipeline")?;
    let (strict, dry_run) = (flag_query(request, "strict")?, flag_query(request, "dry_run")?);
    let restores = number_query(request, "restores", 1..=u64::MAX)?;
    let wanted = if_match_or_none(request)?;
    let body = request.body_bytes()?;
    let text = text_of_body(&body)?;
    wanted.precondition(head(configs, &slug)?.as_ref())?;
    let checked = check(configs, text);
    let problems = checked.problems().to_vec();
    let expressions_checked = checked.unchecked.is_none();
    match checked.unchecked {
        _ if strict && !problems.is_empty() => {
            return Err(ApiError::of(ErrorCode::InvalidConfig).with_problems(problems));
        }
        Some(error) if strict => return Err(ApiError::caused(ErrorCode::WorkerUnavailable, error)),
        Some(error) => {
            tracing::warn!(%error, pipeline = %slug, dry_run, "expressions of a config not checked: no worker")
        }
        None => {}
    }
    let (impact, impact_unknown) = match impact::of(configs, &slug, checked.pipeline.as_ref().ok()) {
        Ok(impact) => (Some(impact), None),
        Err(reason) => (None, Some(reason)),
    };
    let (ok, warnings) = (problems.is_empty(), checked.warnings);
    let saved = Saved { ok, problems, warnings, expressions_checked, impact, impact_unknown };
    let response = Response::json(200, &saved);
    let (problems, request_id) = (saved.problems.len(), request.id().as_str());
    if dry_run {
        tracing::debug!(pipeline = %slug, problems, request_id, "config checked (dry run)");
        return Ok(response);
    }
    let save = Save { config: &body, restores, address: request.client() };
    let tag = write(configs, &slug, &save, &wanted)?.etag;
    tracing::info!(pipeline = %slug, problems, expressions_checked, request_id, "config saved");
    Ok(tag.iter().fold(response, |response, tag| response.with_header("ETag", quoted(tag))))
}

fn head(configs: &Configs, slug: &Slug) -> Result<Option<ObjectMeta>, ApiError> {
    configs.store.head(Bucket::Pipelines, &config_key(slug)).map_err(from_store)
}

/// Writes under the write lock. The precondition is checked while waiting, so that the losers of a race don't wait.
fn write(configs: &Configs, slug: &Slug, save: &Save<'_>, wanted: &IfMatch) -> Result<ObjectMeta, ApiError> {
    let key = config_key(slug);
    configs.locks.with_write_lock(
        slug,
        &key,
        || wanted.precondition(head(configs, slug)?.as_ref()).map(drop),
        || {
            let current = configs.store.read_start(Bucket::Pipelines, &key, BYTES_MAX)?;
            let precondition = wanted.precondition(current.as_ref().map(|(meta, _)| meta))?;
            let mut history = History::read(configs, slug)?;
            if let Some((meta, config)) = &current {
                history.keep_found(meta, config)?;
            }
            let options = WriteOptions::default().with(precondition);
            let written = configs.store.put(Bucket::Pipelines, &key, save.config, &options).map_err(from_store)?;
            if current.is_none() {
                revive(configs, slug);
            }
            if let Err(error) = history.keep_saved(save) {
                // The next save adds it to the history, as a config from elsewhere.
                tracing::warn!(%error, pipeline = %slug, "a saved config is not in its history yet");
            }
            Ok(written)
        },
    )
}

/// Clears the deletion mark of the pipeline, which exists again, so that its jobs aren't dropped.
fn revive(configs: &Configs, slug: &Slug) {
    if let Err(error) = configs.kv.revive_pipeline(slug) {
        // The deletion mark only drops jobs that are older than it.
        tracing::warn!(%error, pipeline = %slug, "clearing deletion mark failed");
    }
}

/// The findings about a config.
struct Checked {
    /// The pipeline, or every problem in the order of the document.
    pipeline: Result<Pipeline, Vec<Problem>>,
    warnings: Vec<Problem>,
    /// Why no worker checked the expressions, if there are any and none did.
    unchecked: Option<WorkerClientError>,
}

impl Checked {
    fn problems(&self) -> &[Problem] {
        self.pipeline.as_ref().err().map_or(&[], Vec::as_slice)
    }
}

/// Checks a config as far as possible: its own rules here, its expressions by a worker.
fn check(configs: &Configs, text: &str) -> Checked {
    let mut examined = examine(text);
    let warnings = std::mem::take(&mut examined.warnings);
    if !examined.drafts.iter().any(|draft| draft.mapping.has_expressions()) {
        return Checked { pipeline: examined.conclude(text, Vec::new()), warnings, unchecked: None };
    }
    let (found, unchecked) = match configs.worker.validate(text.as_bytes(), VALIDATE_TIMEOUT) {
        Ok(found) => (found.problems, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let more = found.into_iter().filter(|problem| !examined.problems.contains(problem)).collect();
    Checked { pipeline: examined.conclude(text, more), warnings, unchecked }
}
