//! Serves requests of one connection, from a complete head to the last byte of the response.
//!
//! Invariant: a connection is kept only if its request was read to the end and its response was written to the end;
//! otherwise it is closed, so that leftover bytes are never parsed as another request.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::address::{ClientPermit, subscriber};
use super::body::{BodyError, ClientBody, RequestBody};
use super::buffered::ClientWriter;
use super::connection::Connection;
use super::error::{ApiError, ErrorCode};
use super::handler_slots::HandlerPermit;
use super::head::{Framing, RequestHead};
use super::method::Method;
use super::refusal::RefusedRequest;
use super::request::{Request, body_failure};
use super::request_id::RequestId;
use super::respond::{BodyEnd, Envelope, SendError, refusal_bytes, send};
use super::response::{Body, Response};
use super::router::{AuthorizedRoute, BodyRule, Caller, Denied, Priority};
use super::scan::{HeadScanner, HeadState};
use super::shared::{AcceptorMessage, Evict, ServedGuard, ServerShared};
use crate::sync::Permit;

/// A body is read into memory in pieces of this size.
const READ_BYTES: usize = 64 << 10;
/// A response up to this size doesn't hold its handler's slot while the client reads it.
const DETACHED_BYTES_MAX: usize = 64 << 10;

/// The next state of a connection after a response.
enum After {
    /// It may have another request.
    Keep(Connection),
    /// It ends, and its client may still be sending.
    Linger(Connection),
    Close,
}

/// Serves the request whose head is complete and those that are buffered behind it, then returns the connection to the
/// acceptor.
pub(super) fn serve_connection(shared: &Arc<ServerShared>, mut connection: Connection, guard: &ServedGuard) {
    if connection.stream.stream().set_nonblocking(false).is_err() {
        return;
    }
    loop {
        match serve(shared, connection, guard) {
            After::Keep(next) => connection = next,
            After::Linger(connection) => {
                let stream = Arc::clone(connection.stream.stream());
                // Gives up the connection's permit first.
                drop(connection);
                return shared.send_to_acceptor(AcceptorMessage::Linger(stream));
            }
            After::Close => return,
        }
        if scan(shared, &connection) == HeadState::Partial {
            connection.stream.compact();
            if connection.stream.stream().set_nonblocking(true).is_ok() {
                shared.send_to_acceptor(AcceptorMessage::Idle(connection));
            }
            return;
        }
    }
}

fn scan(shared: &ServerShared, connection: &Connection) -> HeadState {
    let limits = &shared.limits;
    HeadScanner::default().advance(connection.stream.buffered(), limits.head_bytes_max, limits.head_fields_max)
}

fn serve(shared: &Arc<ServerShared>, mut connection: Connection, guard: &ServedGuard) -> After {
    let limits = &shared.limits;
    let start = Instant::now();
    connection.served += 1;
    let head = match scan(shared, &connection) {
        HeadState::Complete(end) => {
            let bytes = &connection.stream.buffered()[..end];
            let head = RequestHead::parse(bytes, limits.head_fields_max, connection.peer, &shared.trusted_proxies);
            connection.stream.consume(end);
            head
        }
        HeadState::Malformed(flaw) => Err(flaw.refusal()),
        HeadState::Partial => return After::Keep(connection),
    };
    match head {
        Ok(head) => {
            let last = connection.served >= limits.requests_per_connection_max;
            let keep = head.keep_alive && !last && !connection.permit.is_reserved();
            let (head, caller) = (Arc::new(head), Caller::Anonymous);
            Exchange { shared, guard, head, start, route: None, caller, keep, status: 0, sent: 0 }.run(connection)
        }
        Err(refusal) => {
            refuse(shared, connection.stream.stream(), refusal, start);
            After::Linger(connection)
        }
    }
}

fn refuse(shared: &ServerShared, stream: &TcpStream, refusal: RefusedRequest, start: Instant) {
    let id = RequestId::new();
    let written = ClientWriter::new(stream, &shared.limits).write_all(&refusal_bytes(refusal, &id));
    shared.metrics.count(None, refusal.status, start.elapsed());
    let RefusedRequest { status, message } = refusal;
    tracing::info!(request_id = %id, status, reason = message, answered = written.is_ok(), "malformed request");
}

/// The response to an error. An internal cause is logged here, once.
fn error_response(error: ApiError, id: &RequestId) -> Response {
    if let (500.., Some(cause)) = (error.status(), error.cause()) {
        tracing::error!(request_id = %id, code = error.code().as_str(), cause, "request failed");
    }
    error.into_response(id)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no text"))
}

/// One request and its response.
struct Exchange<'a> {
    shared: &'a Arc<ServerShared>,
    guard: &'a ServedGuard,
    head: Arc<RequestHead>,
    start: Instant,
    route: Option<usize>,
    caller: Caller,
    /// Whether the connection may be kept.
    keep: bool,
    status: u16,
    sent: u64,
}

/// A response given without a handler. The connection may be kept only if the body was read.
struct EarlyResponse {
    response: Response,
    body_read: bool,
}

impl Exchange<'_> {
    fn run(mut self, connection: Connection) -> After {
        let after = self.exchange(connection);
        self.guard.set_handler(false);
        self.guard.set_evictable(false);
        self.shared.metrics.count(self.route, self.status, self.start.elapsed());
        self.log();
        if let Some(route) = self.route {
            self.shared.app.completed(route, &self.head, self.status);
        }
        after
    }

    fn log(&self) {
        let (method, path) = (&self.head.method_text, self.head.raw_path());
        let (request_id, status, bytes) = (self.head.id(), self.status, self.sent);
        let duration_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Health checks and scrapes come every few seconds: logged only if they fail.
        if self.route.is_some_and(|route| self.shared.app.is_prioritized(route)) && status < 500 {
            tracing::debug!(%request_id, method, path, status, duration_ms, bytes, "request");
        } else {
            tracing::info!(%request_id, method, path, status, duration_ms, bytes, "request");
        }
    }

    fn exchange(&mut self, mut connection: Connection) -> After {
        let Ok(_forwarded) = self.forwarded_permit() else {
            let error = ApiError::of(ErrorCode::TooManyRequests).with_retry_after(Duration::from_secs(1));
            let response = error.into_response(self.head.id());
            return self.respond_early(connection, EarlyResponse { response, body_read: self.has_no_body() });
        };
        let admission = match self.admit() {
            Ok(admission) => admission,
            Err(response) => {
                return self.respond_early(connection, EarlyResponse { response, body_read: self.has_no_body() });
            }
        };
        if connection.permit.is_reserved() && admission.priority != Priority::Probe {
            self.shared.metrics.refused.fetch_add(1, Ordering::Relaxed);
            return self.respond_early(connection, self.overloaded(false));
        }
        self.caller = admission.caller;
        connection.authenticated = self.caller != Caller::Anonymous;
        self.wait_for_client(true);
        let (body, memory) = match self.take_body(&mut connection, &admission) {
            Ok(taken) => taken,
            Err(early) => return self.respond_early(connection, early),
        };
        self.wait_for_client(matches!(body, RequestBody::Stream(_)));
        let Some(permit) = self.handler_permit(admission.priority) else {
            let body_read = body.return_to(&mut connection);
            return self.respond_early(connection, self.overloaded(body_read));
        };
        let mut request = Request::new(Arc::clone(&self.head), admission.params, body);
        self.guard.set_handler(true);
        let response = self.handle(admission.route, &mut request);
        self.keep &= request.into_body().return_to(&mut connection);
        drop(memory);
        self.wait_for_client(true);
        self.respond(connection, response, Some(permit))
    }

    /// Runs the handler, which may panic.
    fn handle(&self, route: usize, request: &mut Request) -> Response {
        let id = self.head.id();
        // All log lines of the request carry its id.
        let _span = tracing::info_span!("request", request_id = %id).entered();
        let outcome = catch_unwind(AssertUnwindSafe(|| self.shared.app.handle(route, request)));
        let outcome = outcome.unwrap_or_else(|panic| Err(ApiError::internal(panic_text(panic.as_ref()))));
        match outcome {
            Ok(response) => match response.malformed_header() {
                None => response,
                Some(name) => {
                    error_response(ApiError::internal(format!("the response's header `{name}` is malformed")), id)
                }
            },
            Err(error) => error_response(error, id),
        }
    }

    /// Counts a request of a client behind a trusted proxy, whose connections are not counted.
    fn forwarded_permit(&self) -> Result<Option<ClientPermit>, ()> {
        let (peer, client) = (self.head.peer().ip(), self.head.client());
        if client == peer || !self.shared.is_trusted(peer) {
            return Ok(None);
        }
        let max = self.shared.limits.connections_per_address_max;
        self.shared.forwarded.try_acquire(subscriber(client), max).map(Some).ok_or(())
    }

    /// Lets an anonymous request be evicted while it waits for its client.
    fn wait_for_client(&self, waits: bool) {
        if self.caller == Caller::Anonymous {
            self.guard.set_evictable(waits);
        }
    }

    /// Acquires a handler slot. If all are taken, evicts an anonymous client that blocks one by not reading its response.
    fn handler_permit(&self, priority: Priority) -> Option<HandlerPermit> {
        let (handlers, limits) = (&self.shared.handlers, &self.shared.limits);
        handlers.acquire(priority, Duration::ZERO, 0).or_else(|| {
            if let Some(since) = Instant::now().checked_sub(limits.anonymous_stall_max) {
                self.shared.evict(Evict::HandlerSince(since));
            }
            handlers.acquire(priority, limits.handler_wait_max, limits.handler_queue_max)
        })
    }

    fn has_no_body(&self) -> bool {
        self.head.framing() == Framing::None
    }

    fn overloaded(&self, body_read: bool) -> EarlyResponse {
        let error = ApiError::of(ErrorCode::Overloaded).with_retry_after(Duration::from_secs(1));
        EarlyResponse { response: error.into_response(self.head.id()), body_read }
    }

    /// Routes and authorizes the request; the service may panic.
    fn admit(&mut self) -> Result<AuthorizedRoute, Response> {
        let admitted = catch_unwind(AssertUnwindSafe(|| self.shared.app.admit(&self.head, &self.shared.hosts)));
        let panicked = |panic: Box<dyn std::any::Any + Send>| {
            Err(Denied { route: None, error: ApiError::internal(panic_text(panic.as_ref())) })
        };
        match admitted.unwrap_or_else(panicked) {
            Ok(admission) => {
                self.route = Some(admission.route);
                Ok(admission)
            }
            Err(Denied { route, error }) => {
                self.route = route;
                Err(error_response(error, self.head.id()))
            }
        }
    }

    /// The body in the form that the route requires: in memory, or to be read by the handler.
    fn take_body(
        &self,
        connection: &mut Connection,
        admission: &AuthorizedRoute,
    ) -> Result<(RequestBody, Option<Permit>), EarlyResponse> {
        let is_stream = matches!(admission.body, BodyRule::Stream { .. });
        if self.has_no_body() && !is_stream {
            return Ok((RequestBody::Bytes(io::Cursor::default()), None));
        }
        let (expects, anonymous) = (self.head.expects_continue, self.caller == Caller::Anonymous);
        let (reader, limits) = (connection.stream.split_reader(), Arc::clone(&self.shared.limits));
        let max = admission.body.max();
        let mut body = ClientBody::new(reader, self.head.framing(), max, expects, anonymous, limits);
        if is_stream {
            return Ok((RequestBody::Stream(body), None));
        }
        let read = self.read_whole(&mut body);
        let body_read = RequestBody::Stream(body).return_to(connection);
        let early = |response| EarlyResponse { response, body_read };
        let (bytes, memory) = read.map_err(early)?;
        admission.body.check(&bytes).map_err(|error| early(error.into_response(self.head.id())))?;
        Ok((RequestBody::Bytes(io::Cursor::new(bytes)), Some(memory)))
    }

    fn read_whole(&self, body: &mut ClientBody) -> Result<(Vec<u8>, Permit), Response> {
        let mut memory = self.shared.body_memory.empty();
        let declared = match self.head.framing() {
            Framing::Length(length) => length,
            Framing::None | Framing::Chunked => 0,
        };
        let declared = usize::try_from(declared).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if !memory.try_grow_to(declared) {
            return Err(self.overloaded(false).response);
        }
        loop {
            let used = bytes.len();
            let left = declared.saturating_sub(used);
            // At least one byte, to detect the end.
            let room = if declared == 0 { READ_BYTES } else { left.clamp(1, READ_BYTES) };
            if declared == 0 && !memory.try_grow_to(used + room) {
                return Err(self.overloaded(false).response);
            }
            bytes.resize(used + room, 0);
            match body.read(&mut bytes[used..]) {
                Ok(read) => {
                    bytes.truncate(used + read);
                    if read == 0 {
                        return Ok((bytes, memory));
                    }
                }
                Err(error) => return Err(self.body_refusal(&error)),
            }
        }
    }

    fn body_refusal(&self, error: &io::Error) -> Response {
        let mut response = body_failure(error).into_response(self.head.id());
        if let Some(error) = BodyError::within(error) {
            response.status = error.status();
        }
        response
    }

    fn respond_early(&mut self, connection: Connection, early: EarlyResponse) -> After {
        self.keep &= early.body_read;
        self.respond(connection, early.response, None)
    }

    fn respond(&mut self, connection: Connection, response: Response, permit: Option<HandlerPermit>) -> After {
        let end = BodyEnd::of(&response, &self.head);
        self.status = response.status;
        // A kept connection may be evicted while its client sends the next request, so it isn't kept if that is likely.
        let is_evictable = self.caller == Caller::Anonymous && self.shared.is_crowded(connection.permit.address());
        self.keep &= end != BodyEnd::Close && !is_evictable && !self.shared.is_stopping();
        let is_small = matches!(&response.body, Body::Bytes(bytes) if bytes.len() <= DETACHED_BYTES_MAX);
        let _permit = permit.filter(|_| !is_small);
        let with_body = self.head.method() != Method::Head;
        let envelope = Envelope { request_id: self.head.id(), end, with_body, keep_alive: self.keep };
        let mut client = ClientWriter::new(connection.stream.stream(), &self.shared.limits);
        let outcome = send(response, &envelope, &mut client, &|| self.guard.handler_is_active());
        self.sent = client.written();
        let request_id = self.head.id();
        match outcome {
            Ok(()) if self.keep => After::Keep(connection),
            Ok(()) => After::Linger(connection),
            // A closed connection tells the client that the response is incomplete.
            Err(error @ SendError::Client(_)) => {
                tracing::debug!(%request_id, %error, "response interrupted");
                After::Close
            }
            Err(error @ (SendError::Body(_) | SendError::Panic)) => {
                tracing::warn!(%request_id, %error, "response interrupted");
                After::Close
            }
        }
    }
}
