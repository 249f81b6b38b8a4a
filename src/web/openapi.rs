//! The OpenAPI 3.1 document, generated from the route table and the types of requests and responses; and the routes that
//! serve it and the JSON Schemas of configs and dashboards.
//!
//! Invariant: nothing is written by hand that a row of the table can say, so that code and document can't diverge.

use std::sync::LazyLock;

use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

use super::endpoint::{Content, Credential, DocumentedResponse, Endpoint, QueryParameter};
use crate::domain::dashboard;
use crate::domain::pipeline::document::{SCHEMA_PATH, schema};
use crate::http::{ApiError, BodyRule, ContentType, ErrorCode, Method, Request, Response};

const COMPONENTS: &str = "/components/schemas";
/// Error codes of all routes.
const COMMON: &[ErrorCode] =
    &[ErrorCode::InvalidRequest, ErrorCode::PayloadTooLarge, ErrorCode::Internal, ErrorCode::Overloaded];
/// Error codes of all routes under `/api/`, which need the stores.
const API: &[ErrorCode] = &[ErrorCode::KvUnavailable, ErrorCode::S3Error, ErrorCode::BucketNotFound];

/// Generates the document.
pub fn document<S>(endpoints: &[Endpoint<S>]) -> Value {
    let mut writer = Writer::new();
    let mut paths = Map::new();
    for endpoint in endpoints {
        let path = endpoint.pattern.replace("...}", "}");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[method(endpoint.method)] = writer.operation(endpoint);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lakemill web",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The JSON API of the browser UI. It is not a stable interface: programs should use the object store.",
        },
        "paths": paths,
        "components": {
            "schemas": writer.components(),
            "securitySchemes": {
                "session": { "type": "apiKey", "in": "cookie", "name": "svc_session" },
                "metrics": { "type": "http", "scheme": "bearer" },
            },
        },
    })
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Head => "head",
        Method::Post => "post",
        Method::Put => "put",
        Method::Patch => "patch",
        Method::Delete => "delete",
        Method::Options => "options",
        Method::Other => "trace",
    }
}

/// Collects schemas while it describes operations.
struct Writer {
    /// Schemas of requests, inlined where they are used.
    reading: SchemaGenerator,
    /// Schemas of responses.
    writing: SchemaGenerator,
}

impl Writer {
    fn new() -> Self {
        let settings = |contract, inline_subschemas| {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.contract = contract;
                settings.meta_schema = None;
                settings.definitions_path = COMPONENTS.into();
                settings.inline_subschemas = inline_subschemas;
            })
        };
        Self {
            reading: settings(Contract::Deserialize, true).into_generator(),
            writing: settings(Contract::Serialize, false).into_generator(),
        }
    }

    fn components(&mut self) -> Value {
        let mut schemas = Map::from_iter(self.writing.take_definitions(true));
        schemas.insert("Error".into(), error_schema());
        Value::Object(schemas)
    }

    fn operation<S>(&mut self, endpoint: &Endpoint<S>) -> Value {
        let Endpoint { credential, body, operation, .. } = endpoint;
        let mut described = json!({
            "operationId": operation.id,
            "summary": operation.summary,
            "tags": [operation.id.split('.').next().unwrap_or_default()],
            "parameters": self.parameters(endpoint),
            "responses": self.responses(endpoint),
            "x-body-bytes-max": body.max(),
        });
        described["security"] = match credential {
            Credential::Nothing => json!([]),
            Credential::Session => json!([{ "session": [] }]),
            // Optional for loopback peers.
            Credential::Metrics => json!([{}, { "metrics": [] }]),
        };
        if let Some(content) = operation.request {
            let required = matches!(content, Content::Json(_));
            described["requestBody"] =
                json!({ "required": required, "content": content_of(&mut self.reading, content) });
        }
        described
    }

    fn parameters<S>(&mut self, endpoint: &Endpoint<S>) -> Vec<Value> {
        let mut parameters = Vec::new();
        for part in endpoint.pattern.split('{').skip(1) {
            let name = part.split('}').next().unwrap_or_default().trim_end_matches("...");
            let schema = json!({ "type": "string", "minLength": 1 });
            parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
        for QueryParameter { name, description, required, repeated, schema } in &endpoint.operation.query {
            let mut schema = schema(&mut self.reading).to_value();
            if *repeated {
                schema = json!({ "type": "array", "items": schema });
            }
            parameters.push(json!({
                "name": name, "in": "query", "required": required, "description": description, "schema": schema,
            }));
        }
        let mut header = |name: &str, description: &str, schema: Value| {
            parameters.push(json!({ "name": name, "in": "header", "description": description, "schema": schema }));
        };
        if endpoint.operation.if_match {
            header("If-Match", "Only if the object still has this tag.", json!({ "type": "string" }));
        }
        if endpoint.operation.if_none_match {
            let description = "Only if the object doesn't exist yet; not with `If-Match`.";
            header("If-None-Match", description, json!({ "type": "string", "enum": ["*"] }));
        }
        parameters
    }

    fn responses<S>(&mut self, endpoint: &Endpoint<S>) -> Value {
        let mut responses = Map::new();
        for DocumentedResponse { status, description, content, headers } in &endpoint.operation.responses {
            let mut response = json!({ "description": description });
            if let Some(content) = *content {
                response["content"] = content_of(&mut self.writing, content);
            }
            if !headers.is_empty() {
                let described =
                    headers.iter().map(|name| ((*name).to_owned(), json!({ "schema": { "type": "string" } })));
                response["headers"] = Value::Object(described.collect());
            }
            // Several content types of one response.
            match responses.get_mut(&status.to_string()) {
                Some(own) => merge_content(own, response),
                None => drop(responses.insert(status.to_string(), response)),
            }
        }
        for (status, codes) in errors_by_status(endpoint) {
            let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
            let schema = json!({ "$ref": format!("#{COMPONENTS}/Error") });
            let error = json!({
                "description": names.join(", "),
                "content": { "application/json": { "schema": schema } },
            });
            // A status that success and errors share may have either schema.
            responses.entry(status.to_string()).and_modify(|own| merge_error(own, &error)).or_insert(error);
        }
        Value::Object(responses)
    }
}

/// Adds another content type to a response.
fn merge_content(own: &mut Value, other: Value) {
    let text = |response: &Value| response["description"].as_str().unwrap_or_default().to_owned();
    own["description"] = format!("{}; {}", text(own), text(&other)).into();
    for part in ["content", "headers"] {
        if let Some(more) = other[part].as_object() {
            own[part]
                .as_object_mut()
                .map(|own| own.extend(more.clone()))
                .unwrap_or_else(|| own[part] = more.clone().into());
        }
    }
}

/// Adds the error schema to a response.
fn merge_error(own: &mut Value, error: &Value) {
    let schema = &mut own["content"]["application/json"]["schema"];
    *schema = json!({ "anyOf": [schema.clone(), error["content"]["application/json"]["schema"]] });
}

fn content_of(generator: &mut SchemaGenerator, content: Content) -> Value {
    match content {
        Content::Json(schema) => json!({ "application/json": { "schema": schema(generator).to_value() } }),
        Content::Bytes(content_type) => json!({ content_type: {} }),
    }
}

/// The error codes of a route, in the order of [`ErrorCode::ALL`].
pub fn errors_of<S>(endpoint: &Endpoint<S>) -> Vec<ErrorCode> {
    let Endpoint { method, pattern, credential, body, operation, .. } = endpoint;
    let mut codes = COMMON.to_vec();
    codes.extend_from_slice(&operation.errors);
    if pattern.starts_with("/api/") {
        codes.extend_from_slice(API);
    }
    match credential {
        Credential::Nothing => {}
        Credential::Session | Credential::Metrics => codes.push(ErrorCode::Unauthorized),
    }
    if !matches!(method, Method::Get | Method::Head | Method::Options) {
        codes.push(ErrorCode::ForbiddenOrigin);
    }
    match body {
        BodyRule::Nothing
        | BodyRule::Bytes { types: ContentType::Any, .. }
        | BodyRule::Stream { types: ContentType::Any, .. } => {}
        BodyRule::Bytes { .. } | BodyRule::Stream { .. } => codes.push(ErrorCode::UnsupportedMediaType),
    }
    ErrorCode::ALL.iter().copied().filter(|code| codes.contains(code)).collect()
}

fn errors_by_status<S>(endpoint: &Endpoint<S>) -> Vec<(u16, Vec<ErrorCode>)> {
    let mut by_status: Vec<(u16, Vec<ErrorCode>)> = Vec::new();
    for code in errors_of(endpoint) {
        match by_status.iter_mut().find(|(status, _)| *status == code.status()) {
            Some((_, codes)) => codes.push(code),
            None => by_status.push((code.status(), vec![code])),
        }
    }
    by_status
}

fn error_schema() -> Value {
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "required": ["error", "message", "request_id"],
        "additionalProperties": false,
        "properties": {
            "error": { "type": "string", "enum": codes },
            "message": { "type": "string" },
            "problems": { "type": "array", "items": { "type": "object" } },
            "request_id": { "type": "string" },
        },
    })
}

/// The service of these routes.
pub struct Documents {
    openapi: LazyLock<String, Box<dyn FnOnce() -> String + Send + Sync>>,
}

impl Documents {
    /// `openapi` generates the document when it is first requested.
    pub fn new(openapi: fn() -> Value) -> Self {
        Self { openapi: LazyLock::new(Box::new(move || openapi().to_string())) }
    }
}

pub(super) fn endpoints() -> Vec<Endpoint<Documents>> {
    let open = |endpoint: Endpoint<Documents>| endpoint.with_credential(Credential::Nothing);
    vec![
        open(Endpoint::get("/openapi.json", "service.openapi", "This document", openapi)).bytes_response(
            200,
            "application/json",
            "the document",
        ),
        open(Endpoint::get(SCHEMA_PATH, "service.pipeline_schema", "The JSON Schema of a config", pipeline_schema))
            .bytes_response(200, "application/schema+json", "the schema"),
        open(Endpoint::get(
            dashboard::SCHEMA_PATH,
            "service.dashboard_schema",
            "The JSON Schema of a dashboard",
            dashboard_schema,
        ))
        .bytes_response(200, "application/schema+json", "the schema"),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn openapi(documents: &Documents, _: &mut Request) -> Result<Response, ApiError> {
    Ok(Response::bytes(200, "application/json", documents.openapi.as_bytes().to_vec()))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn pipeline_schema(_: &Documents, _: &mut Request) -> Result<Response, ApiError> {
    static TEXT: LazyLock<String> = LazyLock::new(|| schema().to_string());
    Ok(Response::bytes(200, "application/schema+json", TEXT.as_bytes()))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a handler")]
fn dashboard_schema(_: &Documents, _: &mut Request) -> Result<Response, ApiError> {
    static TEXT: LazyLock<String> = LazyLock::new(|| dashboard::schema().to_string());
    Ok(Response::bytes(200, "application/schema+json", TEXT.as_bytes()))
}
