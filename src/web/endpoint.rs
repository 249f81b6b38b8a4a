//! A row of the route table: a route of one service, with its OpenAPI description.
//!
//! Invariant: a route's limits (credential, body) are stated once; the router and the OpenAPI document both use them.

use schemars::{JsonSchema, SchemaGenerator};

use crate::http::{
    ApiError, BodyRule, ContentType, ErrorCode, Handler, Method, Priority, Request, Response, Route, Service,
};

/// What a route requires of its callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Nothing,
    /// A session cookie.
    Session,
    /// See [`crate::http::credentials::MetricsAccess`].
    Metrics,
}

/// A handler of the service `S`.
pub type ServiceHandler<S> = fn(&S, &mut Request) -> Result<Response, ApiError>;

/// Generates the JSON Schema of a type.
pub type Schema = fn(&mut SchemaGenerator) -> schemars::Schema;

/// A route of the service `S`, with its description.
pub struct Endpoint<S> {
    pub method: Method,
    pub pattern: &'static str,
    pub credential: Credential,
    pub body: BodyRule,
    pub operation: Operation,
    /// Whether it changes something, so that the audit log has it.
    pub changes: bool,
    priority: Priority,
    any_host: bool,
    handler: Handler<S>,
}

/// A route's description in the OpenAPI document, without its limits.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `resource.verb`, unique.
    pub id: &'static str,
    pub summary: &'static str,
    pub query: Vec<QueryParameter>,
    /// Honours the request header `If-Match`.
    pub if_match: bool,
    /// Honours `If-None-Match: *` as well.
    pub if_none_match: bool,
    pub request: Option<Content>,
    pub responses: Vec<DocumentedResponse>,
    /// Error codes beyond those that all routes of its kind share.
    pub errors: Vec<ErrorCode>,
}

/// A parameter of the query string.
#[derive(Debug, Clone)]
pub struct QueryParameter {
    pub name: &'static str,
    pub description: &'static str,
    pub required: bool,
    /// May be given several times.
    pub repeated: bool,
    pub schema: Schema,
}

/// A body: JSON of a schema, or bytes of a content type.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    Json(Schema),
    Bytes(&'static str),
}

/// A successful response.
#[derive(Debug, Clone)]
pub struct DocumentedResponse {
    /// 200 to 399.
    pub status: u16,
    pub description: &'static str,
    pub content: Option<Content>,
    /// Response headers beyond those of all responses.
    pub headers: Vec<&'static str>,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

impl<S: 'static> Endpoint<S> {
    fn new(
        method: Method,
        pattern: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: ServiceHandler<S>,
    ) -> Self {
        let operation = Operation {
            id,
            summary,
            query: Vec::new(),
            if_match: false,
            if_none_match: false,
            request: None,
            responses: Vec::new(),
            errors: Vec::new(),
        };
        Self {
            method,
            pattern,
            credential: Credential::Session,
            body: BodyRule::Nothing,
            operation,
            changes: method != Method::Get,
            priority: Priority::Normal,
            any_host: false,
            handler: Box::new(handler),
        }
    }

    /// Lifts the endpoint to a larger state; `service` returns the part that handles it.
    pub fn of<W: 'static>(self, service: fn(&W) -> &S) -> Endpoint<W> {
        let Self { method, pattern, credential, body, operation, changes, priority, any_host, handler } = self;
        let handler: Handler<W> = Box::new(move |state, request| handler(service(state), request));
        Endpoint { method, pattern, credential, body, operation, changes, priority, any_host, handler }
    }

    pub fn into_route(self) -> Route<S>
    where
        S: Service<Credential = Credential>,
    {
        let Self { method, pattern, credential, body, operation: _, changes: _, priority, any_host, handler } = self;
        Route { method, pattern, credential, body, priority, any_host, handler }
    }

    /// A GET with a session. `id`: `resource.verb`.
    pub fn get(pattern: &'static str, id: &'static str, summary: &'static str, handler: ServiceHandler<S>) -> Self {
        Self::new(Method::Get, pattern, id, summary, handler)
    }

    pub fn post(pattern: &'static str, id: &'static str, summary: &'static str, handler: ServiceHandler<S>) -> Self {
        Self::new(Method::Post, pattern, id, summary, handler)
    }

    pub fn put(pattern: &'static str, id: &'static str, summary: &'static str, handler: ServiceHandler<S>) -> Self {
        Self::new(Method::Put, pattern, id, summary, handler)
    }

    pub fn patch(pattern: &'static str, id: &'static str, summary: &'static str, handler: ServiceHandler<S>) -> Self {
        Self::new(Method::Patch, pattern, id, summary, handler)
    }

    pub fn delete(pattern: &'static str, id: &'static str, summary: &'static str, handler: ServiceHandler<S>) -> Self {
        Self::new(Method::Delete, pattern, id, summary, handler)
    }

    /// Changes nothing, though its method is POST.
    #[must_use]
    pub fn changing_nothing(mut self) -> Self {
        self.changes = false;
        self
    }

    /// Requires another credential than a session.
    #[must_use]
    pub fn with_credential(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }

    /// May use the reserved handler slots: for quick handlers that must answer under load.
    #[must_use]
    pub fn reserved(mut self) -> Self {
        self.priority = Priority::Reserved;
        self
    }

    /// For health and readiness probes.
    #[must_use]
    pub fn probe(mut self) -> Self {
        (self.priority, self.any_host) = (Priority::Probe, true);
        self
    }

    /// Takes a JSON body of type `T`, at most `bytes_max` bytes.
    #[must_use]
    pub fn takes<T: JsonSchema>(mut self, bytes_max: u64) -> Self {
        self.body = BodyRule::json(bytes_max);
        self.operation.request = Some(Content::Json(schema_of::<T>));
        self
    }

    /// Takes a body in memory. `types`: the content types accepted; `described`: the one that the document names.
    #[must_use]
    pub fn takes_bytes(mut self, bytes_max: u64, types: ContentType, described: &'static str) -> Self {
        self.body = BodyRule::Bytes { max: bytes_max, types };
        self.operation.request = Some(Content::Bytes(described));
        self
    }

    /// Takes a body that the handler streams.
    #[must_use]
    pub fn takes_stream(mut self, bytes_max: u64, types: ContentType, described: &'static str) -> Self {
        self.body = BodyRule::Stream { max: bytes_max, types };
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

    /// Takes a query parameter.
    #[must_use]
    pub fn query<T: JsonSchema>(mut self, name: &'static str, description: &'static str) -> Self {
        let schema = schema_of::<T>;
        self.operation.query.push(QueryParameter { name, description, required: false, repeated: false, schema });
        self
    }

    /// The last query parameter is required.
    #[must_use]
    pub fn required(mut self) -> Self {
        if let Some(parameter) = self.operation.query.last_mut() {
            parameter.required = true;
        }
        self
    }

    /// The last query parameter may be given several times.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        if let Some(parameter) = self.operation.query.last_mut() {
            parameter.repeated = true;
        }
        self
    }

    /// Responds with JSON of type `T`.
    #[must_use]
    pub fn response<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.add_response(status, description, Some(Content::Json(schema_of::<T>)))
    }

    /// Responds with bytes of a content type; `*/*` for any.
    #[must_use]
    pub fn bytes_response(self, status: u16, content_type: &'static str, description: &'static str) -> Self {
        self.add_response(status, description, Some(Content::Bytes(content_type)))
    }

    /// Responds without a body.
    #[must_use]
    pub fn empty_response(self, status: u16, description: &'static str) -> Self {
        self.add_response(status, description, None)
    }

    fn add_response(mut self, status: u16, description: &'static str, content: Option<Content>) -> Self {
        self.operation.responses.push(DocumentedResponse { status, description, content, headers: Vec::new() });
        self
    }

    /// The last response has this header.
    #[must_use]
    pub fn header(mut self, name: &'static str) -> Self {
        if let Some(response) = self.operation.responses.last_mut() {
            response.headers.push(name);
        }
        self
    }

    /// May fail with these codes, in addition to those that all routes of its kind share.
    #[must_use]
    pub fn errors(mut self, codes: &[ErrorCode]) -> Self {
        self.operation.errors.extend_from_slice(codes);
        self
    }
}
