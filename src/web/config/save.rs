//! Saves a config: any JSON is stored, and what is wrong with it is told. A strict save stores what was found good
//! alone.

use schemars::JsonSchema;
use serde::Serialize;

use super::check::check;
use super::impact::{self, Impact};
use super::read::json_text;
use crate::domain::layout::config_key;
use crate::domain::name::Slug;
use crate::domain::problem::Problem;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, WriteOptions};
use crate::web::Web;
use crate::web::access::{IfMatch, flag_query, if_match_or_none, quoted, slug_param};
use crate::web::failure::from_store;

/// What was found.
#[derive(Serialize, JsonSchema)]
pub(super) struct Saved {
    /// There are no problems.
    ok: bool,
    problems: Vec<Problem>,
    /// What is allowed, and probably not meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Problem>,
    /// False: the config has expressions, and no worker looked at them.
    expressions_checked: bool,
    /// What the config breaks; null if that can't be told.
    impact: Option<Impact>,
    /// Why the impact can't be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    impact_unknown: Option<String>,
}

pub(super) fn put(web: &Web, request: &mut Request) -> Result<Response, ApiError> {
    let slug = slug_param(request, "pipeline")?;
    let (strict, dry_run) = (flag_query(request, "strict")?, flag_query(request, "dry_run")?);
    let wanted = if_match_or_none(request)?;
    let body = request.body_bytes()?;
    let text = json_text(&body).map_err(|problem| {
        ApiError::new(ErrorCode::InvalidRequest, format!("the body is no config: {}", problem.message))
    })?;
    wanted.precondition(look(web, &slug)?.as_ref())?;
    let checked = check(web, text);
    let problems = checked.problems().to_vec();
    let expressions_checked = checked.unchecked.is_none();
    match checked.unchecked {
        _ if strict && !problems.is_empty() => {
            return Err(ApiError::of(ErrorCode::InvalidConfig).with_problems(problems));
        }
        Some(error) if strict => return Err(ApiError::caused(ErrorCode::WorkerUnavailable, error)),
        Some(error) => tracing::warn!(%error, pipeline = %slug, dry_run, "no worker looked at a config's expressions"),
        None => {}
    }
    let (impact, impact_unknown) = match impact::of(web, &slug, checked.pipeline.as_ref().ok()) {
        Ok(impact) => (Some(impact), None),
        Err(why) => (None, Some(why)),
    };
    let (ok, warnings) = (problems.is_empty(), checked.warnings);
    let saved = Saved { ok, problems, warnings, expressions_checked, impact, impact_unknown };
    let response = Response::json(200, &saved);
    let (problems, request_id) = (saved.problems.len(), request.id().as_str());
    if dry_run {
        tracing::debug!(pipeline = %slug, problems, request_id, "a config was looked at, and not saved: a dry run");
        return Ok(response);
    }
    let tag = write(web, &slug, &body, &wanted)?.etag;
    tracing::info!(pipeline = %slug, problems, expressions_checked, request_id, "a config was saved");
    Ok(tag.iter().fold(response, |response, tag| response.with_header("ETag", quoted(tag))))
}

fn look(web: &Web, slug: &Slug) -> Result<Option<ObjectMeta>, ApiError> {
    web.store.head(Bucket::Pipelines, &config_key(slug)).map_err(from_store)
}

/// Writes when nobody moves the pipeline. The precondition is looked at again before, so that the losers of a race
/// needn't wait for their turn.
fn write(web: &Web, slug: &Slug, body: &[u8], wanted: &IfMatch) -> Result<ObjectMeta, ApiError> {
    let key = config_key(slug);
    let current = || {
        let current = look(web, slug)?;
        let precondition = wanted.precondition(current.as_ref())?;
        Ok::<_, ApiError>((current, precondition))
    };
    web.in_turn(
        slug,
        &key,
        || current().map(drop),
        || {
            let (current, precondition) = current()?;
            let options = WriteOptions::default().with(precondition);
            let written = web.store.put(Bucket::Pipelines, &key, body, &options).map_err(from_store)?;
            if current.is_none() {
                revive(web, slug);
            }
            Ok(written)
        },
    )
}

/// The pipeline exists (again): its jobs are no longer those of a deleted one.
fn revive(web: &Web, slug: &Slug) {
    if let Err(error) = web.kv.revive_pipeline(slug) {
        // The mark drops jobs that are older than it alone.
        tracing::warn!(%error, pipeline = %slug, "the mark of a deleted pipeline could not be taken away");
    }
}
