//! What describes the service itself: its OpenAPI document and the schemas of what people write.

use std::sync::LazyLock;

use super::Web;
use super::endpoint::Endpoint;
use super::openapi;
use super::service::Credential;
use crate::domain::dashboard;
use crate::domain::pipeline::document::{SCHEMA_PATH, schema};
use crate::http::{ApiError, Request, Response};

pub(super) fn endpoints() -> Vec<Endpoint> {
    let open = |endpoint: Endpoint| endpoint.with_credential(Credential::Nothing);
    vec![
        open(Endpoint::get("/openapi.json", "service.openapi", "This document", document)).answers_bytes(
            200,
            "application/json",
            "the document",
        ),
        open(Endpoint::get(SCHEMA_PATH, "service.pipeline_schema", "The JSON Schema of a config", pipeline_schema))
            .answers_bytes(200, "application/schema+json", "the schema"),
        open(Endpoint::get(
            dashboard::SCHEMA_PATH,
            "service.dashboard_schema",
            "The JSON Schema of a dashboard",
            dashboard_schema,
        ))
        .answers_bytes(200, "application/schema+json", "the schema"),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn document(_: &Web, _: &mut Request) -> Result<Response, ApiError> {
    static TEXT: LazyLock<String> = LazyLock::new(|| openapi::document(&super::endpoints()).to_string());
    Ok(Response::bytes(200, "application/json", TEXT.as_bytes()))
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn pipeline_schema(_: &Web, _: &mut Request) -> Result<Response, ApiError> {
    static TEXT: LazyLock<String> = LazyLock::new(|| schema().to_string());
    Ok(Response::bytes(200, "application/schema+json", TEXT.as_bytes()))
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a handler")]
fn dashboard_schema(_: &Web, _: &mut Request) -> Result<Response, ApiError> {
    static TEXT: LazyLock<String> = LazyLock::new(|| dashboard::schema().to_string());
    Ok(Response::bytes(200, "application/schema+json", TEXT.as_bytes()))
}
