//! Routes as a table, and the way of a request through it.
//!
//! Invariant: who may not send a request is told so before a byte of its body is read; a handler sees only requests
//! that its row lets in.
//! Must not: know a resource or a credential; the service brings both.

use std::fmt;

use super::error::{ApiError, ErrorCode};
use super::head::{Framing, Head};
use super::hosts::AllowedHosts;
use super::method::Method;
use super::pattern::Pattern;
use super::request::{Params, Request};
use super::response::Response;

/// What a service brings: its state, and who may do what.
pub trait Service: Send + Sync + 'static {
    /// What a route asks of its callers.
    type Credential: Copy + fmt::Debug + Send + Sync + 'static;

    /// Looks at every request before it is routed, those for unknown paths too.
    ///
    /// # Errors
    /// The answer, if the request ends here.
    fn before_routing(&self, _head: &Head) -> Result<(), ApiError> {
        Ok(())
    }

    /// Whether the request has what its route asks for. Compare secrets with [`super::credentials`].
    ///
    /// # Errors
    /// The answer, if it hasn't: commonly `unauthorized`.
    fn authorize(&self, credential: Self::Credential, head: &Head) -> Result<Caller, ApiError>;
}

/// How a request was authorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Not at all: the route is open to everybody. Its body has [`super::limits::ANONYMOUS_BODY_TIME_MAX`], and its
    /// connection is evicted while it waits for the client, if another one needs it.
    Anonymous,
    /// By what a browser attaches to any page's request: a cookie, the address it comes from.
    Ambient,
    /// By a secret that the client itself has and sends. Such a request may name any host.
    Secret,
}

/// Content types that a route takes; a request without body isn't asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    Any,
    /// Any but `multipart/form-data`, whose parts around a file would be taken for the file.
    AnyButForm,
    /// `application/json`, or no `Content-Type` at all.
    JsonOrNone,
    /// One of these (lowercase, without parameters), or no `Content-Type` at all.
    OneOf(&'static [&'static str]),
}

/// Longest form of an empty JSON object that is taken where no body is expected, in bytes.
const EMPTY_OBJECT_BYTES_MAX: u64 = 16;

/// What a route takes as body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRule {
    /// None, or an empty JSON object, which some clients always send; anything else is 413.
    Nothing,
    /// At most `max` bytes, in memory before the handler starts.
    Bytes { max: u64, types: ContentType },
    /// At most `max` bytes, which the handler reads as they come.
    Stream { max: u64, types: ContentType },
}

impl BodyRule {
    pub const fn json(max: u64) -> Self {
        Self::Bytes { max, types: ContentType::JsonOrNone }
    }

    pub const fn any(max: u64) -> Self {
        Self::Bytes { max, types: ContentType::Any }
    }

    pub const fn stream(max: u64) -> Self {
        Self::Stream { max, types: ContentType::Any }
    }

    /// Most bytes that are taken.
    pub fn max(self) -> u64 {
        match self {
            Self::Nothing => EMPTY_OBJECT_BYTES_MAX,
            Self::Bytes { max, .. } | Self::Stream { max, .. } => max,
        }
    }

    /// Whether a body that was read is one that the route takes.
    ///
    /// # Errors
    /// `payload_too_large` where there should be none.
    pub(super) fn check(self, bytes: &[u8]) -> Result<(), ApiError> {
        let inner = bytes.trim_ascii();
        let is_empty_object = || {
            inner.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")).is_some_and(|i| i.trim_ascii().is_empty())
        };
        match self {
            Self::Nothing if !inner.is_empty() && !is_empty_object() => Err(too_large(self)),
            Self::Nothing | Self::Bytes { .. } | Self::Stream { .. } => Ok(()),
        }
    }

    fn types(self) -> ContentType {
        match self {
            Self::Nothing => ContentType::Any,
            Self::Bytes { types, .. } | Self::Stream { types, .. } => types,
        }
    }
}

/// Which handler slots a route may use when the normal ones are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    Normal,
    /// Also the reserved ones: for metrics and events, whose handlers are quick.
    Reserved,
    /// Also those for health and readiness alone, which have reserved connections as well.
    Probe,
}

/// A handler. Its `Err` becomes the answer.
pub type Handler<S> = Box<dyn Fn(&S, &mut Request) -> Result<Response, ApiError> + Send + Sync>;

/// One row of the table.
pub struct Route<S: Service> {
    pub method: Method,
    /// `/a/{name}/{rest...}`: names take one segment that isn't empty, a `{name...}` at the end takes all that are
    /// left. The more exact pattern goes before. HEAD needs no row: GET's answers.
    pub pattern: &'static str,
    pub credential: S::Credential,
    pub body: BodyRule,
    pub priority: Priority,
    /// Whether requests may name any host: the answer is no secret, or asks for one that browsers don't attach.
    pub any_host: bool,
    pub handler: Handler<S>,
}

impl<S: Service> Route<S> {
    /// A route without body with normal priority, for the service's own hosts.
    pub fn new(
        method: Method,
        pattern: &'static str,
        credential: S::Credential,
        handler: fn(&S, &mut Request) -> Result<Response, ApiError>,
    ) -> Self {
        let (body, priority) = (BodyRule::Nothing, Priority::Normal);
        Self { method, pattern, credential, body, priority, any_host: false, handler: Box::new(handler) }
    }

    #[must_use]
    pub fn with_body(self, body: BodyRule) -> Self {
        Self { body, ..self }
    }

    #[must_use]
    pub fn reserved(self) -> Self {
        Self { priority: Priority::Reserved, ..self }
    }

    /// For health and readiness: probes address a service by whatever name or address they know.
    #[must_use]
    pub fn probe(self) -> Self {
        Self { priority: Priority::Probe, any_host: true, ..self }
    }

    #[must_use]
    pub fn for_any_host(self) -> Self {
        Self { any_host: true, ..self }
    }
}

/// The table. Rows keep their order in [`routes`](Self::routes).
pub struct Router<S: Service> {
    routes: Vec<Route<S>>,
    /// Of the routes, but for the last one if there is an [`otherwise`](Self::otherwise).
    patterns: Vec<Pattern>,
    otherwise: Option<usize>,
}

/// A request that may come in: its row, and the values of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Admission {
    pub(super) route: usize,
    pub(super) params: Params,
    pub(super) body: BodyRule,
    pub(super) priority: Priority,
    pub(super) caller: Caller,
}

impl<S: Service> Router<S> {
    /// A router of these routes. Two rows with equal method and pattern are a bug: the first is taken.
    pub fn new(routes: Vec<Route<S>>) -> Self {
        let patterns = routes.iter().map(|route| Pattern::new(route.pattern)).collect();
        Self { routes, patterns, otherwise: None }
    }

    /// Answers requests of `route`'s method for paths that no row has, instead of `not_found`; its pattern only names it.
    #[must_use]
    pub fn otherwise(mut self, route: Route<S>) -> Self {
        debug_assert!(self.otherwise.is_none(), "one row answers for all the rest");
        self.otherwise = Some(self.routes.len());
        self.routes.push(route);
        self
    }

    /// The rows, as given.
    pub fn routes(&self) -> &[Route<S>] {
        &self.routes
    }

    /// The row that answers, whatever its credential; with it the values of its path.
    ///
    /// # Errors
    /// `not_found`, or `method_not_allowed` with `Allow`.
    pub fn find(&self, head: &Head) -> Result<(usize, Params), ApiError> {
        let matching = || {
            let rows = self.patterns.iter().enumerate();
            rows.filter_map(|(at, pattern)| pattern.matches(head.segments()).map(|params| (at, params)))
        };
        let method = head.method().routed();
        let best = matching()
            .filter(|(at, _)| self.routes[*at].method == method)
            .min_by(|(a, _), (b, _)| self.patterns[*a].precedence(&self.patterns[*b]));
        if let Some(best) = best {
            return Ok(best);
        }
        let methods: Vec<Method> = matching().map(|(at, _)| self.routes[at].method).collect();
        if !methods.is_empty() {
            return Err(not_allowed(methods));
        }
        let otherwise = self.otherwise.filter(|at| self.routes[*at].method == method);
        otherwise.map(|at| (at, Params::default())).ok_or_else(|| ApiError::of(ErrorCode::NotFound))
    }

    pub(super) fn admit(&self, service: &S, head: &Head, hosts: &AllowedHosts) -> Result<Admission, Denied> {
        let nowhere = |error| Denied { route: None, error };
        let found = self.find(head);
        self.check_host(service, head, hosts, found.as_ref().ok().map(|(at, _)| *at))?;
        service.before_routing(head).map_err(nowhere)?;
        let (at, params) = found.map_err(nowhere)?;
        let denied = |error| Denied { route: Some(at), error };
        let Route { credential, body, priority, .. } = self.routes[at];
        let caller = service.authorize(credential, head).map_err(denied)?;
        check_type(body.types(), head).map_err(denied)?;
        match head.framing() {
            Framing::Length(length) if length > body.max() => Err(denied(too_large(body))),
            Framing::None | Framing::Length(_) | Framing::Chunked => {
                Ok(Admission { route: at, params, body, priority, caller })
            }
        }
    }
}

impl<S: Service> Router<S> {
    /// Refuses a host that is not the service's, before anything else is looked at or said. A path that no row has is
    /// refused as well: that it isn't there is for the service's own pages to know.
    fn check_host(&self, service: &S, head: &Head, hosts: &AllowedHosts, route: Option<usize>) -> Result<(), Denied> {
        let row = route.map(|at| &self.routes[at]);
        let Err(error) = hosts.check(head.authorities()) else { return Ok(()) };
        let has_secret = |row: &Route<S>| matches!(service.authorize(row.credential, head), Ok(Caller::Secret));
        match row {
            Some(row) if row.any_host || has_secret(row) => Ok(()),
            Some(_) | None => Err(Denied { route, error }),
        }
    }
}

/// A request that may not come in, and the row that said so.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) route: Option<usize>,
    pub(super) error: ApiError,
}

fn not_allowed(mut methods: Vec<Method>) -> ApiError {
    if methods.contains(&Method::Get) {
        methods.push(Method::Head);
    }
    methods.sort_unstable();
    methods.dedup();
    let allow: Vec<&str> = methods.into_iter().map(Method::as_str).collect();
    ApiError::of(ErrorCode::MethodNotAllowed).with_header("Allow", allow.join(", "))
}

fn too_large(body: BodyRule) -> ApiError {
    let message = match body {
        BodyRule::Nothing => "this path takes no body".to_owned(),
        BodyRule::Bytes { max, .. } | BodyRule::Stream { max, .. } => format!("the body is larger than {max} bytes"),
    };
    ApiError::new(ErrorCode::PayloadTooLarge, message)
}

fn check_type(types: ContentType, head: &Head) -> Result<(), ApiError> {
    let is = |value: &[u8], name: &str| {
        let value = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        value.eq_ignore_ascii_case(name.as_bytes())
    };
    let allowed: &[&str] = match types {
        ContentType::Any => return Ok(()),
        ContentType::AnyButForm => {
            let form = head.headers().all("content-type").any(|value| is(value, "multipart/form-data"));
            let message = "the content type is multipart/form-data; send the file itself as the body";
            return if form { Err(ApiError::new(ErrorCode::UnsupportedMediaType, message)) } else { Ok(()) };
        }
        ContentType::JsonOrNone => &["application/json"],
        ContentType::OneOf(allowed) => allowed,
    };
    let mut sent = head.headers().all("content-type").peekable();
    let bodyless = head.framing() == Framing::None;
    let essence = |value: &[u8]| allowed.iter().any(|allowed| is(value, allowed));
    if bodyless || sent.peek().is_none() || sent.all(essence) {
        Ok(())
    } else {
        let message = format!("the content type must be {}", allowed.join(" or "));
        Err(ApiError::new(ErrorCode::UnsupportedMediaType, message))
    }
}

/// A service with its table, without its type: what the server works on.
pub(super) trait App: Send + Sync {
    fn admit(&self, head: &Head, hosts: &AllowedHosts) -> Result<Admission, Denied>;
    fn is_quick(&self, route: usize) -> bool;
    fn handle(&self, route: usize, request: &mut Request) -> Result<Response, ApiError>;
}

/// A router with the state that its handlers get.
pub(super) struct Bound<S: Service> {
    pub(super) router: Router<S>,
    pub(super) service: std::sync::Arc<S>,
}

impl<S: Service> App for Bound<S> {
    fn admit(&self, head: &Head, hosts: &AllowedHosts) -> Result<Admission, Denied> {
        self.router.admit(&self.service, head, hosts)
    }

    fn is_quick(&self, route: usize) -> bool {
        self.router.routes.get(route).is_some_and(|route| route.priority != Priority::Normal)
    }

    fn handle(&self, route: usize, request: &mut Request) -> Result<Response, ApiError> {
        (self.router.routes[route].handler)(&self.service, request)
    }
}
