//! One connection while requests of it are in work: from a complete head to the last byte of the answer.
//!
//! Invariant: a connection goes on only if its request was read to the end and its answer was written to the end;
//! otherwise it is closed, so that nothing is ever read as something else.

use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};

use super::address::{HeldByClient, subscriber};
use super::body::{ClientBody, RequestBody};
use super::error::{ApiError, ErrorCode};
use super::head::{Framing, Head, Refusal};
use super::inner::{self, Fate, Ticket};
use super::lanes::Slot;
use super::method::Method;
use super::pass::{InnerHead, InnerReader, pass_chunks, pass_length, reader_of};
use super::reply::{self, End};
use super::request::Request;
use super::request_id::RequestId;
use super::response::{Body, Response};
use super::router::{Admission, BodyRule, Caller, Denied, Lane};
use super::scan::{Flaw, Scan, Scanned};
use super::shared::{Active, Evict, Inbound, Shared};
use super::wire::{ClientWriter, Wire};
use crate::sync::Permit;

/// A body read into memory grows by this much at a time, in bytes.
const GROWTH_BYTES: usize = 64 << 10;
/// A handler that was granted has a request within this, or something is wrong inside.
const DISPATCH_MAX: Duration = Duration::from_secs(10);
/// A handler that answered has given the connection back within this.
const GIVE_BACK_MAX: Duration = Duration::from_secs(5);

/// A client's connection.
pub(super) struct Conn {
    pub(super) wire: Wire,
    pub(super) peer: SocketAddr,
    /// Requests so far.
    pub(super) served: u32,
    pub(super) seat: Seat,
}

/// A place among the connections, given back when dropped.
pub(super) struct Seat {
    shared: Arc<Shared>,
    address: Option<IpAddr>,
    _share: Option<HeldByClient>,
    reserved: bool,
}

impl Seat {
    /// `address`: the subscriber in whose share it counts, if it does. `reserved`: for a probe alone.
    pub(super) fn take(shared: &Arc<Shared>, address: Option<IpAddr>, reserved: bool) -> Self {
        shared.metrics.open.fetch_add(1, Ordering::Relaxed);
        shared.reserved_open.fetch_add(usize::from(reserved), Ordering::Relaxed);
        let share = address.map(|address| shared.connections.hold(address));
        Self { shared: Arc::clone(shared), address, _share: share, reserved }
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.reserved
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.metrics.open.fetch_sub(1, Ordering::Relaxed);
        self.shared.reserved_open.fetch_sub(usize::from(self.reserved), Ordering::Relaxed);
    }
}

/// What is left of a connection after an answer.
enum After {
    /// It may have another request.
    Open(Conn),
    /// It ends, and its client may still be sending.
    Linger(Conn),
    Closed,
}

/// Serves the request whose head is complete, and those that follow without a wait; then gives the connection back.
pub(super) fn relay(shared: &Arc<Shared>, mut conn: Conn, active: Active) {
    if conn.wire.stream().set_nonblocking(false).is_err() {
        return;
    }
    loop {
        match serve(shared, conn, &active) {
            After::Open(next) => conn = next,
            After::Linger(conn) => return shared.give_back(Inbound::Linger(Arc::clone(conn.wire.stream()))),
            After::Closed => return,
        }
        let limits = &shared.limits;
        let scanned = Scan::default().advance(conn.wire.buffered(), limits.head_bytes_max, limits.head_fields_max);
        if scanned == Scanned::Partial {
            conn.wire.compact();
            if conn.wire.stream().set_nonblocking(true).is_ok() {
                shared.give_back(Inbound::Waiting(conn));
            }
            return;
        }
    }
}

impl Flaw {
    pub(super) fn refusal(self) -> Refusal {
        let (status, message) = match self {
            Self::Control => (400, "the request head has a control character or a line that doesn't end in CR LF"),
            Self::TooLong => (431, "the request head is too long"),
            Self::TooManyFields => (431, "the request has too many header fields"),
        };
        Refusal { status, message }
    }
}

fn serve(shared: &Arc<Shared>, mut conn: Conn, active: &Active) -> After {
    let limits = &shared.limits;
    let begun = Instant::now();
    conn.served += 1;
    let scanned = Scan::default().advance(conn.wire.buffered(), limits.head_bytes_max, limits.head_fields_max);
    let head = match scanned {
        Scanned::Complete(end) => {
            let bytes = &conn.wire.buffered()[..end];
            let head = Head::parse(bytes, limits.head_fields_max, conn.peer, &shared.trusted_proxies);
            conn.wire.consume(end);
            head
        }
        Scanned::Bad(flaw) => Err(flaw.refusal()),
        Scanned::Partial => return After::Open(conn),
    };
    match head {
        Ok(head) => {
            let last = conn.served >= limits.requests_per_connection_max;
            let keep = head.keep_alive && !last && !conn.seat.is_reserved();
            let head = Arc::new(head);
            let caller = Caller::Anonymous;
            Exchange { shared, head, begun, route: None, caller, keep, status: 0, sent: 0 }.run(conn, active)
        }
        Err(refusal) => {
            refuse(shared, conn.wire.stream(), refusal, begun);
            After::Linger(conn)
        }
    }
}

/// The answer to what is no request.
pub(super) fn refusal_bytes(refusal: Refusal, id: &RequestId) -> Vec<u8> {
    let code = match refusal.status {
        503 => ErrorCode::Overloaded,
        429 => ErrorCode::TooManyRequests,
        _ => ErrorCode::InvalidRequest,
    };
    let mut response = ApiError::new(code, refusal.message).into_response(id);
    response.status = refusal.status;
    let (mut bytes, body) = direct(&response, id, false);
    bytes.extend_from_slice(body);
    bytes
}

fn refuse(shared: &Shared, stream: &TcpStream, refusal: Refusal, begun: Instant) {
    let id = RequestId::new();
    let written = ClientWriter::new(stream, &shared.limits).write_all(&refusal_bytes(refusal, &id));
    shared.metrics.count(None, refusal.status, begun.elapsed());
    let Refusal { status, message } = refusal;
    tracing::info!(request_id = %id, status, reason = message, answered = written.is_ok(), "a malformed request");
}

/// Head and body of a response that is in memory.
fn direct<'a>(response: &'a Response, id: &RequestId, keep: bool) -> (Vec<u8>, &'a [u8]) {
    let body: &[u8] = match &response.body {
        Body::Bytes(bytes) => bytes,
        Body::Reader { .. } => &[],
    };
    let headers = response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    (reply::head(response.status, headers, End::Length(body.len() as u64), id.as_str(), keep), body)
}

/// One request and its answer.
struct Exchange<'a> {
    shared: &'a Arc<Shared>,
    head: Arc<Head>,
    begun: Instant,
    route: Option<usize>,
    caller: Caller,
    /// Whether the connection may go on.
    keep: bool,
    status: u16,
    sent: u64,
}

/// A request that is answered without a handler: with this, and the connection may go on only if its body was read.
struct Early {
    response: Response,
    body_read: bool,
}

impl Exchange<'_> {
    fn run(mut self, conn: Conn, active: &Active) -> After {
        let after = self.exchange(conn, active);
        active.set_evictable(false);
        self.shared.metrics.count(self.route, self.status, self.begun.elapsed());
        self.log();
        after
    }

    fn log(&self) {
        let (method, path) = (&self.head.method_text, self.head.raw_path());
        let (request_id, status, bytes) = (self.head.id(), self.status, self.sent);
        let duration_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Health checks and scrapes come every few seconds: not worth a line unless they fail.
        if self.route.is_some_and(|route| self.shared.app.is_light(route)) && status < 500 {
            tracing::debug!(%request_id, method, path, status, duration_ms, bytes, "request");
        } else {
            tracing::info!(%request_id, method, path, status, duration_ms, bytes, "request");
        }
    }

    fn exchange(&mut self, mut conn: Conn, active: &Active) -> After {
        let Ok(_share) = self.forwarded_share() else {
            let error = ApiError::of(ErrorCode::TooManyRequests).with_retry_after(Duration::from_secs(1));
            let response = error.into_response(self.head.id());
            return self.answer(conn, Early { response, body_read: self.has_no_body() });
        };
        let admission = match self.admit() {
            Ok(admission) => admission,
            Err(response) => return self.answer(conn, Early { response, body_read: self.has_no_body() }),
        };
        if conn.seat.is_reserved() && admission.lane != Lane::Probe {
            self.shared.metrics.refused.fetch_add(1, Ordering::Relaxed);
            return self.answer(conn, self.overloaded(false));
        }
        self.caller = admission.caller;
        self.wait_for_client(active, true);
        let (body, memory, back) = match self.take_body(&mut conn, &admission) {
            Ok(taken) => taken,
            Err(early) => return self.answer(conn, early),
        };
        self.wait_for_client(active, back.is_some());
        let Some(slot) = self.handler_slot(admission.lane) else {
            // A streamed body has the connection, and gives it back.
            drop(body);
            let body_read = self.take_back(&mut conn, back);
            return self.answer(conn, self.overloaded(body_read));
        };
        let request = Request::new(Arc::clone(&self.head), admission.params, body);
        let fate = Arc::new(Fate::default());
        let ticket = Ticket { route: admission.route, request, slot, memory, fate: Arc::clone(&fate) };
        self.ask(conn, ticket, &fate, back, active)
    }

    /// What a client may have at a time through trusted proxies, whose connections are not counted.
    fn forwarded_share(&self) -> Result<Option<HeldByClient>, ()> {
        let (peer, client) = (self.head.peer().ip(), self.head.client());
        if client == peer || !self.shared.is_trusted(peer) {
            return Ok(None);
        }
        let max = self.shared.limits.connections_per_address_max;
        self.shared.forwarded.try_hold(subscriber(client), max).map(Some).ok_or(())
    }

    /// Lets an anonymous request be evicted while it waits for its client.
    fn wait_for_client(&self, active: &Active, waits: bool) {
        if self.caller == Caller::Anonymous {
            active.set_evictable(waits);
        }
    }

    /// A handler; if all are busy, one that an anonymous client holds by not taking its response is freed.
    fn handler_slot(&self, lane: Lane) -> Option<Slot> {
        let (lanes, limits) = (&self.shared.lanes, &self.shared.limits);
        lanes.acquire(lane, Duration::ZERO, 0).or_else(|| {
            if let Some(since) = Instant::now().checked_sub(limits.anonymous_stall_max) {
                self.shared.evict(Evict::HandlerSince(since));
            }
            lanes.acquire(lane, limits.handler_wait_max, limits.handler_queue_max)
        })
    }

    fn has_no_body(&self) -> bool {
        self.head.framing() == Framing::None
    }

    fn overloaded(&self, body_read: bool) -> Early {
        let error = ApiError::of(ErrorCode::Overloaded).with_retry_after(Duration::from_secs(1));
        Early { response: error.into_response(self.head.id()), body_read }
    }

    /// Asks the router, whose service is not ours and may panic.
    fn admit(&mut self) -> Result<Admission, Response> {
        let admitted = catch_unwind(AssertUnwindSafe(|| self.shared.app.admit(&self.head, &self.shared.hosts)));
        let panicked = |panic: Box<dyn std::any::Any + Send>| {
            Err(Denied { route: None, error: ApiError::internal(inner::panic_text(panic.as_ref())) })
        };
        match admitted.unwrap_or_else(panicked) {
            Ok(admission) => {
                self.route = Some(admission.route);
                Ok(admission)
            }
            Err(Denied { route, error }) => {
                self.route = route;
                Err(inner::failed(error, self.head.id()))
            }
        }
    }

    /// The body as the route wants it: read whole, or lent to the handler with the connection.
    fn take_body(&self, conn: &mut Conn, admission: &Admission) -> Result<Taken, Early> {
        let limits = &self.shared.limits;
        let max = match admission.body {
            BodyRule::Nothing | BodyRule::Bytes { .. } if self.has_no_body() => {
                return Ok((RequestBody::Bytes(io::Cursor::default()), None, None));
            }
            rule @ (BodyRule::Nothing | BodyRule::Bytes { .. } | BodyRule::Stream { .. }) => rule.max(),
        };
        let wire = conn.wire.lend();
        let (expects, anonymous) = (self.head.expects_continue, self.caller == Caller::Anonymous);
        let body = ClientBody::new(wire, self.head.framing(), max, expects, anonymous, Arc::clone(limits));
        if matches!(admission.body, BodyRule::Stream { .. }) {
            let (sender, receiver) = bounded(1);
            return Ok((RequestBody::Stream(body.give_back_to(sender)), None, Some(receiver)));
        }
        let mut body = body;
        let read = self.read_whole(&mut body);
        let complete = body.into_wire().is_some_and(|(wire, complete)| {
            conn.wire = wire;
            complete
        });
        let early = |response| Early { response, body_read: complete };
        let (bytes, memory) = read.map_err(early)?;
        admission.body.check(&bytes).map_err(|error| early(error.into_response(self.head.id())))?;
        Ok((RequestBody::Bytes(io::Cursor::new(bytes)), Some(memory), None))
    }

    fn read_whole(&self, body: &mut ClientBody) -> Result<(Vec<u8>, Permit), Response> {
        let mut share = self.shared.body_memory.empty();
        let declared = match self.head.framing() {
            Framing::Length(length) => length,
            Framing::None | Framing::Chunked => 0,
        };
        let declared = usize::try_from(declared).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if !share.try_grow_to(declared) {
            return Err(self.overloaded(false).response);
        }
        loop {
            let used = bytes.len();
            let left = declared.saturating_sub(used);
            // At least one byte, to see the end.
            let room = if declared == 0 { GROWTH_BYTES } else { left.clamp(1, GROWTH_BYTES) };
            if declared == 0 && !share.try_grow_to(used + room) {
                return Err(self.overloaded(false).response);
            }
            bytes.resize(used + room, 0);
            match body.read(&mut bytes[used..]) {
                Ok(read) => {
                    bytes.truncate(used + read);
                    if read == 0 {
                        return Ok((bytes, share));
                    }
                }
                Err(error) => return Err(self.body_refusal(&error)),
            }
        }
    }

    fn body_refusal(&self, error: &io::Error) -> Response {
        let mut response = super::request::body_failure(error).into_response(self.head.id());
        if let Some(error) = super::body::BodyError::within(error) {
            response.status = error.status();
        }
        response
    }

    /// Takes the connection back from a streamed body; false if the body was not read to its end.
    fn take_back(&self, conn: &mut Conn, back: Option<Receiver<(Wire, bool)>>) -> bool {
        let Some(back) = back else { return true };
        match back.recv_timeout(GIVE_BACK_MAX) {
            Ok((wire, complete)) => {
                conn.wire = wire;
                complete
            }
            Err(_) => false,
        }
    }

    /// Writes an answer that is in memory.
    fn answer(&mut self, conn: Conn, early: Early) -> After {
        self.keep &= early.body_read && !self.shared.is_stopping();
        self.status = early.response.status;
        let (mut bytes, body) = direct(&early.response, self.head.id(), self.keep);
        if self.head.method() != Method::Head {
            bytes.extend_from_slice(body);
        }
        let mut client = ClientWriter::new(conn.wire.stream(), &self.shared.limits);
        let written = client.write_all(&bytes);
        self.sent = client.written();
        match (written, self.keep) {
            (Ok(()), true) => After::Open(conn),
            (Ok(()), false) => After::Linger(conn),
            (Err(_), _) => After::Closed,
        }
    }

    /// Sends the request to its handler by way of tiny_http, and the response to the client.
    fn ask(
        &mut self,
        mut conn: Conn,
        ticket: Ticket,
        fate: &Fate,
        back: Option<Receiver<(Wire, bool)>>,
        active: &Active,
    ) -> After {
        let inner = &self.shared.inner;
        let number = inner.deposit(ticket);
        let asked = inner.connect().and_then(|stream| {
            let stream = Arc::new(stream);
            active.set_inner(Some(&stream));
            (&*stream).write_all(inner::ask(self.head.method().as_str(), number).as_bytes())?;
            self.await_response(&stream, number)
        });
        // A ticket that is still there never met a handler.
        let unmet = inner.take(number).is_some();
        let outcome = match asked {
            Ok((response, stream)) if !unmet => {
                self.keep &= self.take_back(&mut conn, back);
                self.wait_for_client(active, true);
                self.pass_on(&conn, &response, stream, fate)
            }
            Ok(_) | Err(_) => {
                if let Err(error) = &asked {
                    tracing::error!(request_id = %self.head.id(), %error, unmet, "no response came from the handler");
                }
                active.set_inner(None);
                if !unmet {
                    // The handler may still be reading the body: that must end.
                    let _ = conn.wire.stream().shutdown(Shutdown::Read);
                }
                let body_read = self.take_back(&mut conn, back) && unmet;
                let early = if unmet { self.overloaded(body_read) } else { self.broken() };
                return self.answer(conn, early);
            }
        };
        active.set_inner(None);
        match (outcome, self.keep) {
            (Ok(()), true) => After::Open(conn),
            (Ok(()), false) => After::Linger(conn),
            (Err(error), _) => {
                tracing::debug!(request_id = %self.head.id(), %error, "a response broke off");
                // Not a clean end: whatever the client got is not whole.
                let _ = conn.wire.stream().shutdown(Shutdown::Both);
                After::Closed
            }
        }
    }

    fn broken(&self) -> Early {
        let error = ApiError::of(ErrorCode::Internal);
        Early { response: error.into_response(self.head.id()), body_read: false }
    }

    /// The head of tiny_http's response, once the handler is done.
    fn await_response(&self, stream: &Arc<UnixStream>, number: u64) -> io::Result<(InnerHead, InnerReader)> {
        let silence = self.shared.limits.handler_silence_max;
        stream.set_read_timeout(Some(DISPATCH_MAX.min(silence)))?;
        let mut reader = reader_of(stream);
        if let Err(error) = reader.fill_buf() {
            let generation = self.shared.inner.generation();
            if error.kind() == io::ErrorKind::WouldBlock && !self.shared.inner.holds(number) {
                stream.set_read_timeout(Some(silence))?;
            } else {
                self.shared.inner.renew(generation);
                return Err(error);
            }
        }
        stream.set_read_timeout(Some(silence))?;
        InnerHead::read(&mut reader).map(|head| (head, reader))
    }

    /// Passes a response on to the client.
    fn pass_on(&mut self, conn: &Conn, response: &InnerHead, mut body: InnerReader, fate: &Fate) -> io::Result<()> {
        self.status = response.status;
        let bodyless = self.head.method() == Method::Head || matches!(response.status, 100..200 | 204 | 304);
        let end = match (response.length, bodyless) {
            (Some(length), false) => End::Length(length),
            (Some(length), true) if self.head.method() == Method::Head => End::Length(length),
            (_, true) => End::NoBody,
            (None, false) if self.head.http_1_0 => End::Close,
            (None, false) => End::Chunks,
        };
        self.keep &= end != End::Close && !self.shared.is_stopping();
        let headers = response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let bytes = reply::head(response.status, headers, end, self.head.id().as_str(), self.keep);
        let mut client = ClientWriter::new(conn.wire.stream(), &self.shared.limits);
        let passed = match (bodyless, end) {
            (true, _) | (false, End::NoBody) => client.write_all(&bytes),
            (false, End::Length(length)) => pass_length(bytes, length, &mut body, &mut client),
            (false, End::Chunks | End::Close) => pass_chunks(bytes, end, &mut body, &mut client, fate),
        };
        self.sent = client.written();
        passed
    }
}

type Taken = (RequestBody, Option<Permit>, Option<Receiver<(Wire, bool)>>);
