//! The worker's HTTP API: health, config validation, events of the object store, metrics.
//!
//! Must not: run or enqueue jobs; an event only extends a debounce window.

pub mod api;
mod health;
mod metrics;
mod rejections;

use serde_json::json;

use crate::domain::limits::{CONFIG_BYTES_MAX, EVENT_BYTES_MAX, VALIDATE_BYTES_MAX};
use crate::domain::problem::{Problem, ProblemKind};
use crate::engine::validate::{ValidateError, validate_with_warnings};
use crate::http::{ApiError, BodyRule, ErrorCode, Method, Request, Response, Route, Router};
use crate::ports::event_topics::{TopicError, TopicMessage, TopicMessageKind};
use crate::worker::events::{self, EventBody, EventError, EventSummary};
use crate::worker::record::record_events;

use api::WorkerCredential;
pub use api::{HealthChecks, WorkerApi};
pub use rejections::{EventRejections, Rejection};

/// The routes of the worker.
pub fn router() -> Router<WorkerApi> {
    let route = |method, pattern, credential, handler| Route::<WorkerApi>::new(method, pattern, credential, handler);
    Router::new(vec![
        route(Method::Get, "/", WorkerCredential::Nothing, root).probe(),
        route(Method::Get, "/health", WorkerCredential::Nothing, health::health).probe(),
        route(Method::Get, "/livez", WorkerCredential::Nothing, health::live).probe(),
        route(Method::Get, "/readyz", WorkerCredential::Nothing, health::ready).probe(),
        route(Method::Get, "/metrics", WorkerCredential::Metrics, metrics::metrics).reserved(),
        route(Method::Post, "/config/validate", WorkerCredential::WorkerToken, validate_config)
            .with_body(BodyRule::stream(VALIDATE_BYTES_MAX))
            .for_any_host(),
        route(Method::Post, "/events/s3", WorkerCredential::WebhookSecret, post_events)
            .with_body(BodyRule::any(EVENT_BYTES_MAX))
            .for_any_host()
            .reserved(),
    ])
}

/// Requested by object stores before they deliver events.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn root(_: &WorkerApi, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::json(200, &json!({ "service": "lakemill-worker", "version": env!("CARGO_PKG_VERSION") })))
}

/// 200 with the result in the body, also for invalid bodies; 503 only while expressions can't be checked.
fn validate_config(api: &WorkerApi, request: &mut Request) -> Result<Response, ApiError> {
    let (body, bytes) = request.body_start(CONFIG_BYTES_MAX)?;
    let mut warnings = Vec::new();
    let problems = match std::str::from_utf8(&body) {
        _ if bytes > CONFIG_BYTES_MAX as u64 => vec![Problem::config_too_large(bytes)],
        Err(error) => {
            let message = format!("expected UTF-8; byte {} is not", error.valid_up_to());
            vec![Problem::new(ProblemKind::Syntax, String::new(), message)]
        }
        Ok(text) => {
            let (pipeline, found) = validate_with_warnings(text, &*api.expressions);
            warnings = found;
            match pipeline {
                Ok(_) => Vec::new(),
                Err(ValidateError::Invalid(problems)) => problems,
                Err(ValidateError::Unchecked { reason }) => return Err(ApiError::new(ErrorCode::Overloaded, reason)),
            }
        }
    };
    let mut result = json!({ "ok": problems.is_empty() });
    for (name, found) in [("errors", problems), ("warnings", warnings)] {
        if !found.is_empty() {
            result[name] = json!(found);
        }
    }
    Ok(Response::json(200, &result))
}

/// Extends the windows of the pipelines that got new objects. Responds 503 if that fails, so that the store retries.
fn post_events(api: &WorkerApi, request: &mut Request) -> Result<Response, ApiError> {
    let client = request.client();
    let rejected = |reason: Rejection, code: ErrorCode, why: String| {
        api.rejections.add(reason, client, &why);
        ApiError::new(code, why)
    };
    let invalid = |error: EventError| rejected(Rejection::InvalidBody, ErrorCode::InvalidEvent, error.to_string());
    let body = request.body_bytes().inspect_err(|error| {
        api.rejections.add(Rejection::InvalidBody, client, &error.to_string());
    })?;
    let summary = match events::read(&body, &api.lake_bucket).map_err(invalid)? {
        EventBody::Events(summary) => summary,
        EventBody::Topic(message) => {
            verify_topic(api, &message).map_err(|error| match error {
                TopicError::Refused { reason } => rejected(Rejection::UntrustedTopic, ErrorCode::InvalidEvent, reason),
                TopicError::Unavailable { reason } => {
                    rejected(Rejection::TopicUnavailable, ErrorCode::Overloaded, reason)
                }
            })?;
            match message.kind {
                TopicMessageKind::Notification => events::read_message(&message, &api.lake_bucket).map_err(invalid)?,
                TopicMessageKind::SubscriptionConfirmation | TopicMessageKind::UnsubscribeConfirmation => {
                    EventSummary::default()
                }
            }
        }
    };
    let (accepted, ignored) = (summary.accepted, summary.ignored);
    record_events(&*api.kv, &api.state, summary)
        .map_err(|error| rejected(Rejection::KvUnavailable, ErrorCode::KvUnavailable, error.to_string()))?;
    Ok(Response::json(200, &json!({ "accepted": accepted, "ignored": ignored })))
}

/// Checks that a message comes from a permitted topic, and confirms a subscription.
fn verify_topic(api: &WorkerApi, message: &TopicMessage) -> Result<(), TopicError> {
    api.topics.verify(message)?;
    let topic = &message.topic_arn;
    match message.kind {
        TopicMessageKind::Notification => {}
        TopicMessageKind::SubscriptionConfirmation => {
            api.topics.confirm(message)?;
            tracing::info!(topic, "subscription to the SNS topic confirmed");
        }
        TopicMessageKind::UnsubscribeConfirmation => {
            tracing::warn!(topic, "unsubscribed from the SNS topic: it sends no more events");
        }
    }
    Ok(())
}
