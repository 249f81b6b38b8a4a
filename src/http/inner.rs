//! tiny_http on a private UNIX socket: it takes one checked, bodyless request a connection, hands it to a handler, and
//! writes the response.
//!
//! Invariants: what it is sent was made by us: a method and the number of a ticket, so that nothing of a client's
//! reaches its parser, and its handling of bodies is never used. When its listener dies (one failed `accept` ends it),
//! another is made. A response whose reader failed is marked, since tiny_http ends its chunks as if it were whole.

use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::error::ApiError;
use super::lanes::Slot;
use super::pool::Pool;
use super::request::Request;
use super::response::{Body, Response};
use super::router::App;
use crate::sync::Permit;
use crate::system::ProcessFolder;

const TICKET_HEADER: &str = "X-Lakemill-Ticket";
/// Of the private socket's folder, in the one for temporary files.
const FOLDER_PREFIX: &str = "lakemill-http-";
/// Between two attempts to make a listener anew.
const RENEW_PAUSE: Duration = Duration::from_millis(100);
/// Waits for a new listener before a request is given up.
const CONNECTS_MAX: u32 = 20;
/// Headers that are the server's own, whatever a handler sets.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "transfer-encoding",
    "trailer",
    "upgrade",
    "keep-alive",
    "server",
    "date",
    "x-request-id",
];

/// What became of a response's body.
#[derive(Debug, Default)]
pub(super) struct Fate {
    failed: AtomicBool,
}

impl Fate {
    /// Whether the body's reader failed: what was sent of it is not whole.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

/// A request on its way to a handler.
pub(super) struct Ticket {
    pub(super) route: usize,
    pub(super) request: Request,
    pub(super) slot: Slot,
    pub(super) memory: Option<Permit>,
    pub(super) fate: Arc<Fate>,
}

struct Current {
    generation: u64,
    path: PathBuf,
    server: Arc<tiny_http::Server>,
}

/// The inner server, as long as it is needed.
pub(super) struct Inner {
    current: Mutex<Current>,
    renewed: Condvar,
    tickets: Mutex<HashMap<u64, Ticket>>,
    next_ticket: AtomicU64,
    stopping: AtomicBool,
    /// Last, since a server that is dropped wakes its listener by connecting to it there.
    folder: ProcessFolder,
}

impl Inner {
    /// Listens in a folder that only this user can enter.
    ///
    /// # Errors
    /// The folder for temporary files can't be written, or no socket can be made there.
    pub(super) fn new() -> io::Result<Self> {
        let folder = ProcessFolder::make_shared(&std::env::temp_dir(), FOLDER_PREFIX)?;
        let current = listen(folder.path().join("0"), 0)?;
        Ok(Self {
            folder,
            current: Mutex::new(current),
            renewed: Condvar::new(),
            tickets: Mutex::default(),
            next_ticket: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        })
    }

    /// Deposits a request; tiny_http is to be sent [`ask`]'s bytes for it.
    pub(super) fn deposit(&self, ticket: Ticket) -> u64 {
        let number = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        self.tickets.lock().insert(number, ticket);
        number
    }

    /// Takes a request out: its handler, or who deposited it if no handler came.
    pub(super) fn take(&self, number: u64) -> Option<Ticket> {
        self.tickets.lock().remove(&number)
    }

    /// Whether a deposited request still waits for its handler.
    pub(super) fn holds(&self, number: u64) -> bool {
        self.tickets.lock().contains_key(&number)
    }

    /// A connection to tiny_http, perhaps after its listener was made anew.
    ///
    /// # Errors
    /// There is no descriptor left, or no listener within two seconds.
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        let mut attempt = 0;
        loop {
            let (generation, path) = {
                let current = self.current.lock();
                (current.generation, current.path.clone())
            };
            let error = match UnixStream::connect(path) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            attempt += 1;
            let gone = matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound);
            if !gone || attempt >= CONNECTS_MAX || self.stopping.load(Ordering::Acquire) {
                return Err(error);
            }
            self.renew(generation);
            let mut current = self.current.lock();
            let same = |current: &mut Current| current.generation == generation;
            self.renewed.wait_while_for(&mut current, same, RENEW_PAUSE);
        }
    }

    /// Has the listener made anew, if it is still that one.
    pub(super) fn renew(&self, generation: u64) {
        let current = self.current.lock();
        if current.generation == generation {
            current.server.unblock();
        }
    }

    pub(super) fn generation(&self) -> u64 {
        self.current.lock().generation
    }

    /// Hands requests to handlers until [`stop`](Self::stop).
    pub(super) fn dispatch(self: &Arc<Self>, app: &Arc<dyn App>, handlers: &Pool) {
        while !self.stopping.load(Ordering::Acquire) {
            let server = Arc::clone(&self.current.lock().server);
            match server.recv() {
                Ok(request) => self.hand_over(request, app, handlers),
                Err(_) if self.stopping.load(Ordering::Acquire) => break,
                Err(error) => {
                    tracing::warn!(%error, "the inner http listener ended; making another");
                    self.make_anew();
                    while let Ok(Some(request)) = server.try_recv() {
                        self.hand_over(request, app, handlers);
                    }
                }
            }
        }
    }

    fn hand_over(self: &Arc<Self>, request: tiny_http::Request, app: &Arc<dyn App>, handlers: &Pool) {
        let (inner, app) = (Arc::clone(self), Arc::clone(app));
        if let Err(error) = handlers.run(Box::new(move || inner.answer(request, app.as_ref()))) {
            tracing::error!(%error, "no thread for a handler");
        }
    }

    fn make_anew(&self) {
        let generation = self.generation() + 1;
        while !self.stopping.load(Ordering::Acquire) {
            match listen(self.folder.path().join(generation.to_string()), generation) {
                Ok(new) => {
                    let old = std::mem::replace(&mut *self.current.lock(), new);
                    self.renewed.notify_all();
                    // Dropping a server connects to it: not under the lock.
                    drop(old);
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "no inner http listener yet");
                    self.renewed.wait_for(&mut self.current.lock(), RENEW_PAUSE);
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Ends [`dispatch`](Self::dispatch).
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.current.lock().server.unblock();
        self.renewed.notify_all();
    }

    /// Runs the handler of one request and writes its response.
    fn answer(&self, http: tiny_http::Request, app: &dyn App) {
        let number = http.headers().iter().find(|header| header.field.equiv(TICKET_HEADER));
        let ticket = number.and_then(|number| number.value.as_str().parse().ok()).and_then(|number| self.take(number));
        let Some(Ticket { route, mut request, slot, memory, fate }) = ticket else {
            let _ = http.respond(tiny_http::Response::empty(404));
            return;
        };
        let response = run_handler(app, route, &mut request);
        let id = request.id().clone();
        // Gives the connection back, so that its fate is known when the response comes.
        drop(request);
        drop(memory);
        let sent = catch_unwind(AssertUnwindSafe(|| respond(http, response, &fate)));
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(request_id = %id, %error, "a response broke off"),
            Err(_) => tracing::error!(request_id = %id, "the body of a response panicked"),
        }
        drop(slot);
    }
}

fn listen(path: PathBuf, generation: u64) -> io::Result<Current> {
    let listener = UnixListener::bind(&path)?;
    let server = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
    Ok(Current { generation, path, server: Arc::new(server) })
}

/// What is sent to tiny_http for a deposited request.
pub(super) fn ask(method: &str, ticket: u64) -> String {
    format!("{method} / HTTP/1.1\r\n{TICKET_HEADER}: {ticket}\r\nConnection: close\r\n\r\n")
}

fn run_handler(app: &dyn App, route: usize, request: &mut Request) -> Response {
    let id = request.id().clone();
    // Whatever is logged while the request is handled tells its id.
    let _request = tracing::info_span!("request", request_id = %id).entered();
    let outcome = catch_unwind(AssertUnwindSafe(|| app.handle(route, request)));
    let outcome = outcome.unwrap_or_else(|panic| Err(ApiError::internal(panic_text(panic.as_ref()))));
    match outcome {
        Ok(response) => match response.malformed_header() {
            None => response,
            Some(name) => failed(ApiError::internal(format!("the response's header `{name}` can't be sent")), &id),
        },
        Err(error) => failed(error, &id),
    }
}

/// The answer to an error; one of ours is logged, once, here.
pub(super) fn failed(error: ApiError, id: &super::request_id::RequestId) -> Response {
    if let (500.., Some(cause)) = (error.status(), error.cause()) {
        tracing::error!(request_id = %id, code = error.code().as_str(), cause, "a request failed");
    }
    error.into_response(id)
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no text"))
}

/// Marks the response's fate if its reader fails or panics.
struct Watched {
    reader: Box<dyn Read + Send>,
    fate: Arc<Fate>,
}

impl Read for Watched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut harm = Harm { fate: &self.fate, done: true };
        let read = self.reader.read(out);
        harm.done = read.as_ref().err().is_some_and(|error| error.kind() != io::ErrorKind::Interrupted);
        read
    }
}

/// Marks `fate` as failed when dropped, unless no harm was done.
struct Harm<'a> {
    fate: &'a Fate,
    done: bool,
}

impl Drop for Harm<'_> {
    fn drop(&mut self) {
        if self.done {
            self.fate.failed.store(true, Ordering::Release);
        }
    }
}

fn respond(http: tiny_http::Request, response: Response, fate: &Arc<Fate>) -> io::Result<()> {
    let own = |name: &str| OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
    let headers: Vec<tiny_http::Header> = response
        .headers
        .iter()
        .filter(|(name, _)| !own(name))
        .filter_map(|(name, value)| tiny_http::Header::from_bytes(name.as_bytes(), value.as_bytes()).ok())
        .collect();
    let (reader, length): (Box<dyn Read + Send>, _) = match response.body {
        Body::Bytes(bytes) => {
            let length = bytes.len();
            (Box::new(io::Cursor::new(bytes)), Some(length))
        }
        Body::Reader { reader, length } => {
            let watched = Watched { reader, fate: Arc::clone(fate) };
            (Box::new(watched), length.map(|length| usize::try_from(length).unwrap_or(usize::MAX)))
        }
    };
    let status = tiny_http::StatusCode(response.status);
    let response = tiny_http::Response::new(status, headers, reader, length, None);
    // Bodies of known length go out with it, whatever their size.
    http.respond(response.with_chunked_threshold(usize::MAX))
}
