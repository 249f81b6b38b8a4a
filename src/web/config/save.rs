//! Saves a config: any JSON is stored, and what is wrong with it is told.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use super::check::check;
use super::impact::{self, Impact};
use super::read::json_text;
use super::turn::Turn;
use crate::domain::layout::config_key;
use crate::domain::name::Slug;
use crate::domain::problem::Problem;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ObjectMeta, WriteOptions};
use crate::web::Web;
use crate::web::access::{IfMatch, flag_query, if_match, quoted, slug_param};
use crate::web::failure::from_store;

/// How long a save waits for who renames or deletes the pipeline, and for other saves.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);
const TURN_PAUSE_MIN: Duration = Duration::from_millis(5);
const TURN_PAUSE_MAX: Duration = Duration::from_millis(100);

/// What was found.
#[derive(Serialize, JsonSchema)]
pub(super) struct Saved {
    /// There are no problems.
    ok: bool,
    problems: Vec<Problem>,
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
    let wanted = if_match(request)?;
    let body = request.body_bytes()?;
    let text = json_text(&body).map_err(|problem| {
        ApiError::new(ErrorCode::InvalidRequest, format!("the body is no config: {}", problem.message))
    })?;
    wanted.precondition(look(web, &slug)?.as_ref())?;
    let checked = check(web, text);
    let problems = checked.problems().to_vec();
    if strict && !problems.is_empty() {
        return Err(ApiError::of(ErrorCode::InvalidConfig).with_problems(problems));
    }
    let (impact, impact_unknown) = match impact::of(web, &slug, checked.pipeline.as_ref().ok()) {
        Ok(impact) => (Some(impact), None),
        Err(why) => (None, Some(why)),
    };
    let expressions_checked = checked.expressions_checked;
    let saved = Saved { ok: problems.is_empty(), problems, expressions_checked, impact, impact_unknown };
    let response = Response::json(200, &saved);
    if dry_run {
        return Ok(response);
    }
    let tag = write(web, &slug, &body, &wanted)?.etag;
    Ok(tag.iter().fold(response, |response, tag| response.with_header("ETag", quoted(tag))))
}

fn look(web: &Web, slug: &Slug) -> Result<Option<ObjectMeta>, ApiError> {
    web.store.head(Bucket::Pipelines, &config_key(slug)).map_err(from_store)
}

/// Writes in a [`Turn`]. Between two tries to get one the precondition is looked at again, so that the losers of a race
/// needn't wait for their turn.
fn write(web: &Web, slug: &Slug, body: &[u8], wanted: &IfMatch) -> Result<ObjectMeta, ApiError> {
    let until = Instant::now() + TURN_WAIT_MAX;
    let mut pause = TURN_PAUSE_MIN;
    loop {
        let current = look(web, slug)?;
        let options = WriteOptions::default().with(wanted.precondition(current.as_ref())?);
        if let Some(turn) = Turn::take(web, slug)? {
            let written = web.store.put(Bucket::Pipelines, &config_key(slug), body, &options).map_err(from_store)?;
            if current.is_none() {
                revive(web, slug);
            }
            if turn.end()? || stands(web, slug)? {
                return Ok(written);
            }
            return Err(busy(slug));
        }
        if Instant::now() >= until {
            return Err(busy(slug));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(TURN_PAUSE_MAX);
    }
}

/// The pipeline exists (again): its jobs are no longer those of a deleted one.
fn revive(web: &Web, slug: &Slug) {
    if let Err(error) = web.kv.revive_pipeline(slug) {
        // The mark drops jobs that are older than it alone.
        tracing::warn!(%error, pipeline = %slug, "the mark of a deleted pipeline could not be taken away");
    }
}

/// Whether a config is there although the turn in which it was written was lost on the way.
fn stands(web: &Web, slug: &Slug) -> Result<bool, ApiError> {
    match Turn::take(web, slug)? {
        Some(_turn) => Ok(look(web, slug)?.is_some()),
        None => Ok(false),
    }
}

fn busy(slug: &Slug) -> ApiError {
    let message = format!("the pipeline `{slug}` is being moved or deleted: look again in a moment");
    ApiError::new(ErrorCode::PipelineBusy, message)
}
