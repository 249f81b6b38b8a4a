//! Pauses and resumes runs: of a pipeline, or of all.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::Endpoint;
use super::failure::from_kv;
use super::stores::Objects;
use crate::domain::limits::PAUSE_REASON_BYTES_MAX;
use crate::domain::name::Slug;
use crate::domain::pause::Pause;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::pauses::RunPauses;
use crate::runtime::{Clock, rfc3339};

/// Largest body, in bytes: a reason of [`PAUSE_REASON_BYTES_MAX`] in escapes fits.
const BODY_BYTES_MAX: u64 = 16 << 10;

const OF_ALL: &str = "/api/pause";
const OF_PIPELINE: &str = "/api/p/{pipeline}/pause";

/// The service.
pub struct PauseService {
    pub store: Objects,
    pub kv: Arc<dyn RunPauses>,
    pub clock: Arc<dyn Clock>,
}

pub(super) fn endpoints() -> Vec<Endpoint<PauseService>> {
    const KV: &[ErrorCode] = &[ErrorCode::KvUnavailable];
    const PIPELINE: &[ErrorCode] = &[ErrorCode::InvalidSlug, ErrorCode::PipelineNotFound];
    vec![
        Endpoint::get("/api/pauses", "pauses.list", "Lists the pauses in force", list)
            .response::<PauseList>(200, "the pauses, by pipeline")
            .errors(KV),
        Endpoint::put(OF_ALL, "pauses.pause_all", "Pauses the runs of all pipelines", pause_all)
            .takes::<PauseRequest>(BODY_BYTES_MAX)
            .response::<PauseView>(200, "the pause")
            .errors(KV),
        Endpoint::delete(OF_ALL, "pauses.resume_all", "Ends the pause of all pipelines", resume_all)
            .response::<Resumed>(200, "the runs start again, except those of pipelines that are paused themselves")
            .errors(KV),
        Endpoint::put(OF_PIPELINE, "pauses.pause", "Pauses the runs of a pipeline", pause)
            .takes::<PauseRequest>(BODY_BYTES_MAX)
            .response::<PauseView>(200, "the pause")
            .errors(PIPELINE)
            .errors(KV),
        Endpoint::delete(OF_PIPELINE, "pauses.resume", "Ends the pause of a pipeline", resume)
            .response::<Resumed>(200, "its runs start again, unless all pipelines are paused")
            .errors(PIPELINE)
            .errors(KV),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PauseRequest {
    /// Shown to everybody; at most 500 bytes.
    #[serde(default)]
    reason: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pause")]
struct PauseView {
    /// RFC 3339.
    since: String,
    reason: String,
}

impl From<&Pause> for PauseView {
    fn from(pause: &Pause) -> Self {
        Self { since: rfc3339(pause.since), reason: pause.reason.clone() }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pauses")]
struct PauseList {
    /// The pause of all pipelines; null if there is none.
    all: Option<PauseView>,
    pipelines: Vec<PausedPipeline>,
}

#[derive(Serialize, JsonSchema)]
struct PausedPipeline {
    pipeline: String,
    #[serde(flatten)]
    pause: PauseView,
}

#[derive(Serialize, JsonSchema)]
struct Resumed {
    /// False if there was no pause.
    resumed: bool,
}

fn list(service: &PauseService, _: &mut Request) -> Result<Response, ApiError> {
    let found = service.kv.pauses().map_err(from_kv)?;
    let paused =
        |(pipeline, pause): &(Slug, Pause)| PausedPipeline { pipeline: pipeline.to_string(), pause: pause.into() };
    let all = found.all.as_ref().map(PauseView::from);
    let list = PauseList { all, pipelines: found.pipelines.iter().map(paused).collect() };
    Ok(Response::json(200, &list))
}

fn pause_all(service: &PauseService, request: &mut Request) -> Result<Response, ApiError> {
    begin(service, None, request)
}

fn pause(service: &PauseService, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = service.store.existing(request, "pipeline")?;
    begin(service, Some(&pipeline), request)
}

fn begin(service: &PauseService, pipeline: Option<&Slug>, request: &mut Request) -> Result<Response, ApiError> {
    let PauseRequest { reason } = request.json()?;
    let reason = reason.trim().to_owned();
    if reason.len() > PAUSE_REASON_BYTES_MAX {
        let message = format!("reason: expected at most {PAUSE_REASON_BYTES_MAX} bytes, found {}", reason.len());
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    let pause = Pause { since: service.clock.now(), reason };
    service.kv.pause(pipeline, &pause).map_err(from_kv)?;
    tracing::info!(pipeline = pipeline.map_or("*", Slug::as_str), request_id = request.id().as_str(), "runs paused");
    Ok(Response::json(200, &PauseView::from(&pause)))
}

fn resume_all(service: &PauseService, request: &mut Request) -> Result<Response, ApiError> {
    end(service, None, request)
}

fn resume(service: &PauseService, request: &mut Request) -> Result<Response, ApiError> {
    let pipeline = service.store.existing(request, "pipeline")?;
    end(service, Some(&pipeline), request)
}

fn end(service: &PauseService, pipeline: Option<&Slug>, request: &Request) -> Result<Response, ApiError> {
    let resumed = service.kv.resume(pipeline).map_err(from_kv)?;
    if resumed {
        let name = pipeline.map_or("*", Slug::as_str);
        tracing::info!(pipeline = name, request_id = request.id().as_str(), "runs resumed");
    }
    Ok(Response::json(200, &Resumed { resumed }))
}
