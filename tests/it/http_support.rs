//! A service with a route for each case, and a client that sends raw bytes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use lakemill::config::Secret;
use lakemill::http::{
    ApiError, BodyRule, Caller, ContentType, ErrorCode, GuardLimits, Method, PEER_HEADER, Request, RequestHead,
    Response, Route, Router, Server, ServerOptions, Service, credentials,
};
use lakemill::observability::METRICS_CONTENT_TYPE;
use serde_json::json;

/// Longest wait of a test.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);
pub const MIB: u64 = 1 << 20;
pub const BYTES_MAX: u64 = 2_000;
pub const STREAM_MAX: u64 = 20 * MIB;
pub const TOKEN: &str = "t0ken";

/// The service's counters and gate.
#[derive(Default)]
pub struct Seen {
    open: Mutex<bool>,
    opened: Condvar,
    /// Handlers that wait at the gate, now or before.
    pub held: AtomicUsize,
    /// One line per request that reached a handler.
    pub handled: Mutex<Vec<String>>,
    /// Results of uploads.
    pub uploads: Mutex<Vec<String>>,
    pub panic_in_authorize: AtomicBool,
}

impl Seen {
    /// Releases waiting handlers, and opens the gate.
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn hold(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_timeout_while(open, TEST_TIMEOUT, |open| !*open).unwrap());
    }

    pub fn handled(&self) -> Vec<String> {
        self.handled.lock().unwrap().clone()
    }

    pub fn uploads(&self) -> Vec<String> {
        self.uploads.lock().unwrap().clone()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    Nothing,
    Token,
    Webhook,
}

impl Service for Seen {
    type Credential = Auth;

    fn before_routing(&self, head: &RequestHead) -> Result<(), ApiError> {
        if head.is_under(&["closed"]) { Err(ApiError::of(ErrorCode::Unauthorized)) } else { Ok(()) }
    }

    fn authorize(&self, credential: Auth, head: &RequestHead) -> Result<Caller, ApiError> {
        assert!(!self.panic_in_authorize.load(Ordering::SeqCst), "a service's bug");
        let secret = Secret::new(TOKEN);
        let ok = match credential {
            Auth::Nothing => return Ok(Caller::Anonymous),
            Auth::Token => credentials::has_bearer(head, &secret),
            Auth::Webhook => credentials::has_webhook_secret(head, &secret),
        };
        if ok { Ok(Caller::Secret) } else { Err(ApiError::of(ErrorCode::Unauthorized)) }
    }
}

type Answer = Result<Response, ApiError>;

/// Responds with the request's body.
fn echo(seen: &Seen, request: &mut Request) -> Answer {
    let body = request.body_bytes()?;
    seen.handled.lock().unwrap().push(format!("{} {}", request.method(), request.head().raw_path()));
    let query: Vec<_> = request.query().iter().collect();
    let peers: Vec<_> = request.headers().all(PEER_HEADER).map(String::from_utf8_lossy).collect();
    let value = json!({
        "method": request.method().as_str(), "a": request.param("a"), "b": request.param("b"), "query": query,
        "peers": peers, "peer": request.peer().to_string(), "client": request.client().to_string(),
        "id": request.id().as_str(), "length": body.len(), "body": String::from_utf8_lossy(&body),
    });
    Ok(Response::json(200, &value))
}

fn upload(seen: &Seen, request: &mut Request) -> Answer {
    let read = io::copy(request.body_reader(), &mut io::sink());
    let again = request.body_reader().read(&mut [0; 8]);
    let line = match (&read, again) {
        (Ok(read), Ok(0)) => format!("whole {read}"),
        (Err(error), Err(_)) => format!("failed: {error}"),
        (_, again) => format!("read {read:?}, then {again:?}"),
    };
    seen.uploads.lock().unwrap().push(line);
    let read = read.map_err(|error| lakemill::http::body_failure(&error))?;
    Ok(Response::text(200, read.to_string()))
}

fn number(request: &Request, name: &str) -> Option<u64> {
    request.query().get(name).and_then(|text| text.parse().ok())
}

/// Yields `left` bytes, then fails, panics or ends.
struct Source {
    left: u64,
    end: &'static str,
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return match self.end {
                "fail" => Err(io::Error::other("the source failed")),
                "panic" => panic!("the source panicked"),
                _ => Ok(0),
            };
        }
        let read = out.len().min(usize::try_from(self.left).unwrap());
        out[..read].fill(b'x');
        self.left -= read as u64;
        Ok(read)
    }
}

/// `n` bytes; `say`: the length to announce; `end`: fail, panic.
fn give(seen: &Seen, request: &mut Request) -> Answer {
    seen.handled.lock().unwrap().push(format!("{} {}", request.method(), request.head().raw_path()));
    let end = match request.query().get("end") {
        Some("fail") => "fail",
        Some("panic") => "panic",
        _ => "",
    };
    let source = Source { left: number(request, "n").unwrap_or(0), end };
    Ok(Response::reader(200, "application/octet-stream", source, number(request, "say")))
}

fn hold(seen: &Seen, _: &mut Request) -> Answer {
    seen.hold();
    Ok(Response::text(200, "let go"))
}

fn misbehave(_: &Seen, request: &mut Request) -> Answer {
    match request.param("a") {
        "panic" => panic!("a handler's bug"),
        "internal" => Err(ApiError::internal("a secret of the inside")),
        "problems" => Err(ApiError::new(ErrorCode::InvalidConfig, "two problems").with_problems(["one", "two"])),
        "slow-down" => Err(ApiError::of(ErrorCode::TooManyRequests).with_retry_after(Duration::from_millis(1_500))),
        "header" => Ok(Response::empty(200).with_header("X-A", "b\r\nX-Evil: 1")),
        "own-headers" => Ok(Response::text(200, "abc")
            .with_header("Content-Length", "99")
            .with_header("Connection", "upgrade")
            .with_header("X-Request-Id", "mine")
            .with_header("Transfer-Encoding", "chunked")
            .with_header("Cache-Control", "max-age=60")),
        "nothing" => Ok(Response::empty(204)),
        "unchanged" => Ok(Response::empty(304).with_header("ETag", "\"x\"")),
        _ => Err(ApiError::of(ErrorCode::NotFound)),
    }
}

fn at_once(_: &Seen, _: &mut Request) -> Answer {
    Ok(Response::text(200, "not read"))
}

pub fn routes() -> Vec<Route<Seen>> {
    use Method::{Delete, Get, Patch, Post, Put};
    let typed = BodyRule::Bytes { max: BYTES_MAX, types: ContentType::OneOf(&["application/yaml", "text/yaml"]) };
    vec![
        Route::new(Get, "/health", Auth::Nothing, |_, _| Ok(Response::text(200, "well"))).probe(),
        Route::new(Get, "/", Auth::Nothing, |_, _| Ok(Response::bytes(200, METRICS_CONTENT_TYPE, &b"root"[..])))
            .reserved(),
        Route::new(Get, "/echo", Auth::Nothing, echo),
        Route::new(Post, "/echo", Auth::Nothing, echo).with_body(BodyRule::any(BYTES_MAX)),
        Route::new(Delete, "/echo", Auth::Nothing, echo),
        Route::new(Get, "/echo/{a}", Auth::Nothing, echo),
        Route::new(Get, "/echo/{a}/{b}", Auth::Nothing, echo),
        Route::new(Get, "/echo/{a}/exact", Auth::Nothing, echo),
        Route::new(Get, "/rest/{a...}", Auth::Nothing, echo),
        Route::new(Post, "/json", Auth::Nothing, |_, request| {
            let value: std::collections::BTreeMap<String, u32> = request.json()?;
            Ok(Response::json(200, &value.values().sum::<u32>()))
        })
        .with_body(BodyRule::json(BYTES_MAX)),
        Route::new(Put, "/yaml", Auth::Nothing, echo).with_body(typed),
        Route::new(Patch, "/yaml", Auth::Nothing, echo).with_body(typed),
        Route::new(Post, "/token", Auth::Token, echo).with_body(BodyRule::any(MIB)),
        Route::new(Post, "/webhook", Auth::Webhook, echo).with_body(BodyRule::any(MIB)),
        Route::new(Put, "/upload", Auth::Nothing, upload).with_body(BodyRule::stream(STREAM_MAX)),
        Route::new(Put, "/at-once", Auth::Nothing, at_once).with_body(BodyRule::stream(STREAM_MAX)),
        Route::new(Get, "/hold", Auth::Nothing, hold),
        Route::new(Get, "/hold-light", Auth::Nothing, hold).reserved(),
        Route::new(Get, "/give", Auth::Nothing, give),
        Route::new(Get, "/odd/{a}", Auth::Nothing, misbehave),
    ]
}

/// A running server, stopped when dropped.
pub struct Running {
    pub server: Option<Server>,
    pub seen: Arc<Seen>,
    pub address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Waiting handlers would keep their threads.
        self.seen.open();
    }
}

pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub fn start(limits: GuardLimits) -> Running {
    start_with(ServerOptions { limits, ..ServerOptions::new(loopback(), 8) })
}

pub fn start_with(options: ServerOptions) -> Running {
    let seen = Arc::new(Seen::default());
    let server = Server::start(options, Router::new(routes()), Arc::clone(&seen)).unwrap();
    let address = server.local_addr();
    Running { server: Some(server), seen, address }
}

impl Running {
    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// The response to one request on a new connection.
    pub fn ask(&self, request: &str) -> Reply {
        let mut client = self.connect();
        client.send(request);
        client.reply()
    }

    pub fn get(&self, target: &str) -> Reply {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"))
    }

    pub fn metrics(&self) -> Arc<lakemill::http::HttpMetrics> {
        self.server.as_ref().unwrap().metrics()
    }
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A client that sends raw bytes.
pub struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let first = found.next();
        assert!(found.next().is_none(), "`{name}` came once: {:?}", self.headers);
        first.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn closes(&self) -> bool {
        self.header("connection") == Some("close")
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// Like [`Client::connect`], from another loopback address.
    pub fn connect_from(own: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((own, 0)).into()).unwrap();
        socket.connect(&address.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends and waits for the response.
    pub fn try_ask(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<Reply> {
        self.stream.write_all(bytes.as_ref())?;
        self.try_reply()
    }

    pub fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut piece = [0; 65_536];
        let read = self.stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..read]);
        Ok(read)
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).take(at).collect();
                return Ok(String::from_utf8(line).unwrap());
            }
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// The next response's status and headers.
    pub fn head(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Reply { status, headers, body: Vec::new() });
            }
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// The next complete response, except to HEAD.
    pub fn try_reply(&mut self) -> io::Result<Reply> {
        let mut reply = self.head()?;
        if matches!(reply.status, 100..200 | 204 | 304) {
            return Ok(reply);
        }
        if let Some(length) = reply.header("content-length") {
            let length = length.parse().unwrap();
            reply.body = self.exactly(length)?;
        } else if reply.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).unwrap();
                let chunk = self.exactly(size)?;
                reply.body.extend(chunk);
                assert_eq!(self.line()?, "");
                if size == 0 {
                    break;
                }
            }
        } else {
            while self.more()? > 0 {}
            reply.body = std::mem::take(&mut self.buffer);
        }
        Ok(reply)
    }

    /// Reads `length` bytes of a body.
    pub fn body(&mut self, length: usize) -> Vec<u8> {
        self.exactly(length).unwrap()
    }

    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap()
    }

    /// Whether the server closes the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.buffer.is_empty()
            && match self.more() {
                Ok(read) => read == 0,
                Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
            }
    }
}
