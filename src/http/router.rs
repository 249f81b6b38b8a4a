//! The table of routes: finds the route of a request and authorizes it.
//!
//! Invariant: a request is authorized before a byte of its body is read; a handler gets only requests that its route
//! allows.
//! Must not: know a resource or a credential; the service defines both.

use std::fmt;

use super::error::{ApiError, ErrorCode};
use super::head::{Framing, RequestHead};
use super::hosts::AllowedHosts;
use super::method::Method;
use super::pattern::Pattern;
use super::request::{PathParams, Request};
use super::response::Response;

/// A service: its state, and its authorization.
pub trait Service: Send + Sync + 'static {
    /// What a route requires of its callers.
    type Credential: Copy + fmt::Debug + Send + Sync + 'static;

    /// Checks every request before it is routed, also those for unknown paths.
    ///
    /// # Errors
    /// The response, if the request ends here.
    fn before_routing(&self, _head: &RequestHead) -> Result<(), ApiError> {
        Ok(())
    }

    /// Authorizes a request. Compare secrets with [`super::credentials`].
    ///
    /// # Errors
    /// The response, commonly `unauthorized`.
    fn authorize(&self, credential: Self::Credential, head: &RequestHead) -> Result<Caller, ApiError>;

    /// Called after each response of a route.
    fn completed(&self, _request: &CompletedRequest<'_>) {}
}

/// A request of a route, after its response.
#[derive(Debug, Clone, Copy)]
pub struct CompletedRequest<'a> {
    pub head: &'a RequestHead,
    pub method: Method,
    pub pattern: &'static str,
    pub status: u16,
}

/// How a request was authorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Not at all: the route is public. The body has [`super::limits::ANONYMOUS_BODY_TIME_MAX`], and the connection may be
    /// evicted while it waits for the client.
    Anonymous,
    /// By credentials that a browser attaches to requests of any page: a cookie, its address.
    Ambient,
    /// By a secret that the client itself sends. Such a request may use any host.
    Secret,
}

/// Content types that a route accepts; not checked without a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    Any,
    /// Any but `multipart/form-data`, which would be stored with its part headers.
    AnyButForm,
    /// `application/json`, or no `Content-Type` at all.
    JsonOrNone,
    /// One of these (lowercase, without parameters), or no `Content-Type` at all.
    OneOf(&'static [&'static str]),
}

/// Longest empty JSON object that is accepted instead of no body, in bytes.
const EMPTY_OBJECT_BYTES_MAX: u64 = 16;

/// The body that a route accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyRule {
    /// None, or an empty JSON object, which some clients always send; 413 otherwise.
    Nothing,
    /// At most `max` bytes, in memory before the handler starts.
    Bytes { max: u64, types: ContentType },
    /// At most `max` bytes, read by the handler from the client.
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

    /// The largest body, in bytes.
    pub fn max(self) -> u64 {
        match self {
            Self::Nothing => EMPTY_OBJECT_BYTES_MAX,
            Self::Bytes { max, .. } | Self::Stream { max, .. } => max,
        }
    }

    /// Checks a body that was read.
    ///
    /// # Errors
    /// `payload_too_large` if there should be none.
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

/// A handler. Its `Err` becomes the response.
pub type Handler<S> = Box<dyn Fn(&S, &mut Request) -> Result<Response, ApiError> + Send + Sync>;

/// A route.
pub struct Route<S: Service> {
    pub method: Method,
    /// `/a/{name}/{rest...}`: a name matches one non-empty segment, a `{name...}` at the end all remaining ones. The most
    /// specific pattern wins. HEAD is routed to GET.
    pub pattern: &'static str,
    pub credential: S::Credential,
    pub body: BodyRule,
    pub priority: Priority,
    /// Whether requests may use any host: the response is public, or requires a secret that browsers don't attach.
    pub any_host: bool,
    pub handler: Handler<S>,
}

impl<S: Service> Route<S> {
    /// A route without body, with normal priority, for the service's own hosts.
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

    /// For health and readiness: probes address a service by any name or address.
    #[must_use]
    pub fn probe(self) -> Self {
        Self { priority: Priority::Probe, any_host: true, ..self }
    }

    #[must_use]
    pub fn for_any_host(self) -> Self {
        Self { any_host: true, ..self }
    }
}

/// The table of routes.
pub struct Router<S: Service> {
    routes: Vec<Route<S>>,
    /// Patterns of the routes, except [`otherwise`](Self::otherwise).
    patterns: Vec<Pattern>,
    otherwise: Option<usize>,
}

/// An authorized request: its route, and the parameters of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuthorizedRoute {
    pub(super) route: usize,
    pub(super) params: PathParams,
    pub(super) body: BodyRule,
    pub(super) priority: Priority,
    pub(super) caller: Caller,
}

impl<S: Service> Router<S> {
    /// A router of these routes. Two with equal method and pattern are a bug: the first is used.
    pub fn new(routes: Vec<Route<S>>) -> Self {
        let patterns = routes.iter().map(|route| Pattern::new(route.pattern)).collect();
        Self { routes, patterns, otherwise: None }
    }

    /// Uses `route` for requests of its method without another route, instead of `not_found`. Its pattern is only a label.
    #[must_use]
    pub fn otherwise(mut self, route: Route<S>) -> Self {
        debug_assert!(self.otherwise.is_none(), "there is one fallback route");
        self.otherwise = Some(self.routes.len());
        self.routes.push(route);
        self
    }

    /// The routes, in the order given.
    pub fn routes(&self) -> &[Route<S>] {
        &self.routes
    }

    /// The route of a request, regardless of its credential, and the parameters of the path.
    ///
    /// # Errors
    /// `not_found`, or `method_not_allowed` with `Allow`.
    pub fn find(&self, head: &RequestHead) -> Result<(usize, PathParams), ApiError> {
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
        otherwise.map(|at| (at, PathParams::default())).ok_or_else(|| ApiError::of(ErrorCode::NotFound))
    }

    pub(super) fn admit(
        &self,
        service: &S,
        head: &RequestHead,
        hosts: &AllowedHosts,
    ) -> Result<AuthorizedRoute, Denied> {
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
                Ok(AuthorizedRoute { route: at, params, body, priority, caller })
            }
        }
    }
}

impl<S: Service> Router<S> {
    /// Rejects a host that is not the service's before anything else is checked, also for unknown paths.
    fn check_host(
        &self,
        service: &S,
        head: &RequestHead,
        hosts: &AllowedHosts,
        route: Option<usize>,
    ) -> Result<(), Denied> {
        let row = route.map(|at| &self.routes[at]);
        let Err(error) = hosts.check(head.authorities()) else { return Ok(()) };
        let has_secret = |row: &Route<S>| matches!(service.authorize(row.credential, head), Ok(Caller::Secret));
        match row {
            Some(row) if row.any_host || has_secret(row) => Ok(()),
            Some(_) | None => Err(Denied { route, error }),
        }
    }
}

/// A rejected request, and its route.
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
        BodyRule::Nothing => "this path accepts no body".to_owned(),
        BodyRule::Bytes { max, .. } | BodyRule::Stream { max, .. } => format!("the body is larger than {max} bytes"),
    };
    ApiError::new(ErrorCode::PayloadTooLarge, message)
}

fn check_type(types: ContentType, head: &RequestHead) -> Result<(), ApiError> {
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

/// A service with its router, type-erased.
pub(super) trait App: Send + Sync {
    fn admit(&self, head: &RequestHead, hosts: &AllowedHosts) -> Result<AuthorizedRoute, Denied>;
    fn is_prioritized(&self, route: usize) -> bool;
    fn handle(&self, route: usize, request: &mut Request) -> Result<Response, ApiError>;
    fn completed(&self, route: usize, head: &RequestHead, status: u16);
}

/// A router with the service that its handlers get.
pub(super) struct Bound<S: Service> {
    pub(super) router: Router<S>,
    pub(super) service: std::sync::Arc<S>,
}

impl<S: Service> App for Bound<S> {
    fn admit(&self, head: &RequestHead, hosts: &AllowedHosts) -> Result<AuthorizedRoute, Denied> {
        self.router.admit(&self.service, head, hosts)
    }

    fn is_prioritized(&self, route: usize) -> bool {
        self.router.routes.get(route).is_some_and(|route| route.priority != Priority::Normal)
    }

    fn handle(&self, route: usize, request: &mut Request) -> Result<Response, ApiError> {
        (self.router.routes[route].handler)(&self.service, request)
    }

    fn completed(&self, route: usize, head: &RequestHead, status: u16) {
        let Route { method, pattern, .. } = self.router.routes[route];
        self.service.completed(&CompletedRequest { head, method, pattern, status });
    }
}
