//! A row of the table of routes: how a request is handled, and what is told of it in the OpenAPI document.
//!
//! Invariant: what bounds a request (its credential, its body) stands once, in the route, and the document is made of it.

use schemars::{JsonSchema, SchemaGenerator};

use super::Web;
use super::service::Credential;
use crate::http::{BodyRule, ContentType, ErrorCode, Handler, Method, Route};

/// Makes the JSON Schema of a type.
pub type Schema = fn(&mut SchemaGenerator) -> schemars::Schema;

/// A route with its description.
pub struct Endpoint {
    pub route: Route<Web>,
    pub operation: Operation,
}

/// What the document says of a route, besides what the route itself says.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `resource.verb`, unique.
    pub id: &'static str,
    pub summary: &'static str,
    pub query: Vec<QueryParameter>,
    /// The request header `If-Match` is honoured.
    pub if_match: bool,
    /// `If-None-Match: *` is, too.
    pub if_none_match: bool,
    pub request: Option<Content>,
    pub answers: Vec<Answer>,
    /// Codes beyond those that every route of its kind may answer.
    pub errors: Vec<ErrorCode>,
}

/// A parameter of the query string.
#[derive(Debug, Clone)]
pub struct QueryParameter {
    pub name: &'static str,
    pub description: &'static str,
    pub required: bool,
    /// May stand several times.
    pub repeated: bool,
    pub schema: Schema,
}

/// A body: JSON of a schema, or bytes of a content type.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    Json(Schema),
    Bytes(&'static str),
}

/// One kind of success.
#[derive(Debug, Clone)]
pub struct Answer {
    /// 200 to 399.
    pub status: u16,
    pub description: &'static str,
    pub content: Option<Content>,
    /// Response headers beyond those that all have.
    pub headers: Vec<&'static str>,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

impl Endpoint {
    fn new(
        method: Method,
        pattern: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: Handler<Web>,
    ) -> Self {
        let operation = Operation {
            id,
            summary,
            query: Vec::new(),
            if_match: false,
            if_none_match: false,
            request: None,
            answers: Vec::new(),
            errors: Vec::new(),
        };
        Self { route: Route::new(method, pattern, Credential::Session, handler), operation }
    }

    /// A GET with a session. `id`: `resource.verb`.
    pub fn get(pattern: &'static str, id: &'static str, summary: &'static str, handler: Handler<Web>) -> Self {
        Self::new(Method::Get, pattern, id, summary, handler)
    }

    pub fn post(pattern: &'static str, id: &'static str, summary: &'static str, handler: Handler<Web>) -> Self {
        Self::new(Method::Post, pattern, id, summary, handler)
    }

    pub fn put(pattern: &'static str, id: &'static str, summary: &'static str, handler: Handler<Web>) -> Self {
        Self::new(Method::Put, pattern, id, summary, handler)
    }

    pub fn patch(pattern: &'static str, id: &'static str, summary: &'static str, handler: Handler<Web>) -> Self {
        Self::new(Method::Patch, pattern, id, summary, handler)
    }

    pub fn delete(pattern: &'static str, id: &'static str, summary: &'static str, handler: Handler<Web>) -> Self {
        Self::new(Method::Delete, pattern, id, summary, handler)
    }

    /// Asks for another credential than a session.
    #[must_use]
    pub fn with_credential(mut self, credential: Credential) -> Self {
        self.route.credential = credential;
        self
    }

    /// For handlers that are quick and must answer when all others are busy.
    #[must_use]
    pub fn light(mut self) -> Self {
        self.route = self.route.light();
        self
    }

    /// For health and readiness.
    #[must_use]
    pub fn probe(mut self) -> Self {
        self.route = self.route.probe();
        self
    }

    /// Takes JSON of the type `T`, at most `bytes_max`.
    #[must_use]
    pub fn takes<T: JsonSchema>(mut self, bytes_max: u64) -> Self {
        self.route = self.route.with_body(BodyRule::json(bytes_max));
        self.operation.request = Some(Content::Json(schema_of::<T>));
        self
    }

    /// Takes bytes in memory; `types`: what `Content-Type` may say, `described`: what the document names.
    #[must_use]
    pub fn takes_bytes(mut self, bytes_max: u64, types: ContentType, described: &'static str) -> Self {
        self.route = self.route.with_body(BodyRule::Bytes { max: bytes_max, types });
        self.operation.request = Some(Content::Bytes(described));
        self
    }

    /// Takes bytes which the handler reads as they come.
    #[must_use]
    pub fn takes_stream(mut self, bytes_max: u64, types: ContentType, described: &'static str) -> Self {
        self.route = self.route.with_body(BodyRule::Stream { max: bytes_max, types });
        self.operation.request = Some(Content::Bytes(described));
        self
    }

    /// Honours `If-Match`.
    #[must_use]
    pub fn if_match(mut self) -> Self {
        self.operation.if_match = true;
        self.errors(&[ErrorCode::PreconditionFailed])
    }

    /// Honours `If-Match` and `If-None-Match: *`.
    #[must_use]
    pub fn if_match_or_none(mut self) -> Self {
        self.operation.if_none_match = true;
        self.if_match()
    }

    /// Takes a parameter of the query string.
    #[must_use]
    pub fn query<T: JsonSchema>(mut self, name: &'static str, description: &'static str) -> Self {
        let schema = schema_of::<T>;
        self.operation.query.push(QueryParameter { name, description, required: false, repeated: false, schema });
        self
    }

    /// The last parameter of the query string is required.
    #[must_use]
    pub fn required(mut self) -> Self {
        if let Some(parameter) = self.operation.query.last_mut() {
            parameter.required = true;
        }
        self
    }

    /// The last parameter of the query string may stand several times.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        if let Some(parameter) = self.operation.query.last_mut() {
            parameter.repeated = true;
        }
        self
    }

    /// Answers JSON of the type `T`.
    #[must_use]
    pub fn answers<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.answer(status, description, Some(Content::Json(schema_of::<T>)))
    }

    /// Answers bytes of a content type; `*/*` for any.
    #[must_use]
    pub fn answers_bytes(self, status: u16, content_type: &'static str, description: &'static str) -> Self {
        self.answer(status, description, Some(Content::Bytes(content_type)))
    }

    /// Answers without a body.
    #[must_use]
    pub fn answers_nothing(self, status: u16, description: &'static str) -> Self {
        self.answer(status, description, None)
    }

    fn answer(mut self, status: u16, description: &'static str, content: Option<Content>) -> Self {
        self.operation.answers.push(Answer { status, description, content, headers: Vec::new() });
        self
    }

    /// The last answer carries this header.
    #[must_use]
    pub fn header(mut self, name: &'static str) -> Self {
        if let Some(answer) = self.operation.answers.last_mut() {
            answer.headers.push(name);
        }
        self
    }

    /// May answer these codes, besides those that every route of its kind may.
    #[must_use]
    pub fn errors(mut self, codes: &[ErrorCode]) -> Self {
        self.operation.errors.extend_from_slice(codes);
        self
    }
}
