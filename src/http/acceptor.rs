//! Accepts connections, and holds those without a complete head, on one thread.
//!
//! Invariants: it never waits for one client. A connection counts against the limits once a byte has arrived, and costs
//! a thread only once its head is complete. At the limit it evicts the client without credentials that has kept the
//! server waiting longest: for a head, a body, or to read a response. A complete head is never evicted, even before it
//! was read. Must not: interpret a head.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::address::subscriber;
use super::buffered::BufferedConnection;
use super::connection::{Connection, ConnectionPermit};
use super::refusal::RefusedRequest;
use super::request_id::RequestId;
use super::respond::refusal_bytes;
use super::scan::{HeadScanner, HeadState};
use super::serve::serve_connection;
use super::shared::{AcceptorMessage, Evict, ServedGuard, ServerShared};
use super::thread_pool::ThreadPool;

/// Connections accepted before the open ones are polled again.
const ACCEPTS_PER_ROUND: usize = 64;
/// Bytes discarded at a time.
const DISCARD_BYTES: usize = 16 << 10;
/// Reads discarded of one client before the others are polled again.
const DISCARDS_PER_ROUND: usize = 8;

const TOO_MANY: RefusedRequest = RefusedRequest { status: 503, message: "too many connections" };
const TOO_MANY_OF_ADDRESS: RefusedRequest =
    RefusedRequest { status: 429, message: "too many connections from this address" };
const HEAD_TOO_SLOW: RefusedRequest = RefusedRequest { status: 408, message: "the request head was sent too slowly" };

/// A source of connections.
pub(super) trait Listener: Send {
    /// Accepts a connection, without waiting.
    fn accept(&self) -> io::Result<(TcpStream, SocketAddr)>;
    /// Becomes readable when there is a connection.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

impl Listener for TcpListener {
    fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// A connection that has sent nothing.
struct SilentConnection {
    stream: TcpStream,
    peer: SocketAddr,
    since: Instant,
}

/// A connection without a complete head.
struct Idle {
    connection: Connection,
    scanner: HeadScanner,
    since: Instant,
    /// When the head's first byte arrived.
    head_started: Option<Instant>,
}

/// A connection that got its last response.
struct LingeringConnection {
    stream: Arc<TcpStream>,
    until: Instant,
    discarded: u64,
}

pub(super) struct Acceptor<L> {
    shared: Arc<ServerShared>,
    /// `None` once the server stops.
    listener: Option<L>,
    inbox: Receiver<AcceptorMessage>,
    woken: UnixStream,
    threads: ThreadPool,
    /// By age, the oldest first.
    silent: Vec<SilentConnection>,
    idle: Vec<Idle>,
    lingering: Vec<LingeringConnection>,
    /// No accept before this.
    paused_until: Option<Instant>,
    /// Set once the server stops: idle connections are closed at this time.
    idle_until: Option<Instant>,
    /// Whether the last accept failed, so that a series of failures is logged once.
    failing: bool,
    exit: bool,
    next_number: u64,
}

/// Indexes of sources that are ready to be read.
struct Ready {
    accept: bool,
    silent: Vec<usize>,
    idle: Vec<usize>,
    lingering: Vec<usize>,
}

impl<L: Listener> Acceptor<L> {
    /// `listener` and `woken` are non-blocking.
    pub(super) fn new(
        shared: Arc<ServerShared>,
        listener: L,
        inbox: Receiver<AcceptorMessage>,
        woken: UnixStream,
        threads: ThreadPool,
    ) -> Self {
        Self {
            shared,
            listener: Some(listener),
            inbox,
            woken,
            threads,
            silent: Vec::new(),
            idle: Vec::new(),
            lingering: Vec::new(),
            paused_until: None,
            idle_until: None,
            failing: false,
            exit: false,
            next_number: 0,
        }
    }

    /// Runs until the server stops and no connection is served.
    pub(super) fn run(mut self) {
        while !self.exit {
            let ready = self.wait();
            // From the end, since removing an element moves later ones.
            for at in ready.lingering.into_iter().rev() {
                self.discard(at);
            }
            for at in ready.idle.into_iter().rev() {
                self.receive(at);
            }
            for (removed, at) in ready.silent.into_iter().enumerate() {
                let silent = self.silent.remove(at - removed);
                self.promote(silent);
            }
            self.drain_inbox();
            self.expire(Instant::now());
            if ready.accept {
                self.accept();
            }
            let is_empty = self.silent.is_empty() && self.idle.is_empty() && self.lingering.is_empty();
            if self.listener.is_none() && is_empty && self.shared.served() == 0 {
                // A thread sends its last message before it ends.
                self.drain_inbox();
                if self.lingering.is_empty() {
                    return;
                }
            }
        }
    }

    /// Waits for a client, a message, or the next deadline.
    fn wait(&mut self) -> Ready {
        let now = Instant::now();
        let accepting = self.paused_until.is_none_or(|until| until <= now);
        let timeout =
            self.next_deadline().map(|deadline| deadline.saturating_duration_since(now) + Duration::from_millis(1));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let listener = self.listener.as_ref().filter(|_| accepting);
        let mut polled: Vec<PollFd<'_>> = vec![PollFd::new(&self.woken, PollFlags::IN)];
        polled.extend(listener.map(|listener| PollFd::from_borrowed_fd(listener.descriptor(), PollFlags::IN)));
        let first_idle = polled.len();
        polled.extend(self.idle.iter().map(|idle| PollFd::new(&**idle.connection.stream.stream(), PollFlags::IN)));
        let first_lingering = polled.len();
        polled.extend(self.lingering.iter().map(|l| PollFd::new(&*l.stream, PollFlags::IN)));
        let first_silent = polled.len();
        polled.extend(self.silent.iter().map(|silent| PollFd::new(&silent.stream, PollFlags::IN)));
        let outcome = poll(&mut polled, timeout.as_ref());
        let failed = outcome.is_err();
        if outcome.is_err_and(|error| error != rustix::io::Errno::INTR) {
            // Most likely out of memory: avoids a busy loop.
            std::thread::sleep(self.shared.limits.accept_pause);
        }
        let ready = |at: usize| !failed && !polled[at].revents().is_empty();
        let indexes = |from: usize, to: usize| (from..to).filter(|at| ready(*at)).map(|at| at - from).collect();
        Ready {
            accept: first_idle == 2 && ready(1),
            idle: indexes(first_idle, first_lingering),
            lingering: indexes(first_lingering, first_silent),
            silent: indexes(first_silent, polled.len()),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let idle = self.idle.iter().map(|idle| self.deadline(idle));
        let idle_until = self.idle_until.filter(|_| !self.idle.is_empty() || !self.silent.is_empty());
        let silent = self.silent.first().map(|silent| silent.since + self.shared.limits.idle_time_max);
        let lingering = self.lingering.iter().map(|lingering| lingering.until);
        let handler = self.shared.next_silent_handler();
        idle.chain(silent).chain(lingering).chain(self.paused_until).chain(idle_until).chain(handler).min()
    }

    fn deadline(&self, idle: &Idle) -> Instant {
        let limits = &self.shared.limits;
        if idle.connection.permit.is_reserved() {
            return idle.since + limits.probe_head_time_max;
        }
        idle.head_started.map_or(idle.since + limits.idle_time_max, |started| started + limits.head_time_max)
    }

    fn drain_inbox(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(read) if read > 0) {}
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                AcceptorMessage::Idle(connection) if self.listener.is_some() => self.hold(connection),
                // The server is stopping; no byte of the next request has been consumed.
                AcceptorMessage::Idle(_) => {}
                AcceptorMessage::Linger(stream) => self.linger(stream),
                AcceptorMessage::Stop { idle_until } => {
                    // Connections in the backlog would be reset with the listener, and their requests lost.
                    self.accept();
                    self.listener = None;
                    self.idle_until = Some(idle_until);
                }
                AcceptorMessage::Exit => self.exit = true,
            }
        }
    }

    fn hold(&mut self, connection: Connection) {
        let since = Instant::now();
        let head_started = (!connection.stream.buffered().is_empty()).then_some(since);
        self.idle.push(Idle { connection, scanner: HeadScanner::default(), since, head_started });
    }

    /// Reads from a client. A complete or malformed head is passed to a thread. Returns whether the connection still
    /// waits for its head, at the same index.
    fn receive(&mut self, at: usize) -> bool {
        let limits = &self.shared.limits;
        let idle = &mut self.idle[at];
        loop {
            match idle.connection.stream.receive() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Ok(0) | Err(_) => {
                    self.idle.swap_remove(at);
                    return false;
                }
                Ok(_) => {
                    idle.head_started.get_or_insert_with(Instant::now);
                    let bytes = idle.connection.stream.buffered();
                    let scanned = idle.scanner.advance(bytes, limits.head_bytes_max, limits.head_fields_max);
                    if scanned != HeadState::Partial {
                        let connection = self.idle.swap_remove(at).connection;
                        self.start(connection);
                        return false;
                    }
                }
            }
        }
    }

    fn start(&mut self, connection: Connection) {
        self.next_number += 1;
        let (stream, address) = (connection.stream.stream(), connection.permit.address());
        let guard = ServedGuard::new(&self.shared, self.next_number, stream, address);
        let shared = Arc::clone(&self.shared);
        if let Err(error) = self.threads.run(Box::new(move || serve_connection(&shared, connection, &guard))) {
            tracing::warn!(%error, "starting a thread failed; connection closed");
        }
    }

    /// Closes connections whose deadline has passed.
    fn expire(&mut self, now: Instant) {
        self.lingering.retain(|lingering| lingering.until > now);
        self.paused_until = self.paused_until.filter(|until| *until > now);
        self.shared.cut_silent_handlers(now);
        if self.idle_until.is_some_and(|until| until <= now) {
            self.idle.clear();
            self.silent.clear();
        }
        let idle_time_max = self.shared.limits.idle_time_max;
        self.silent.retain(|silent| silent.since + idle_time_max > now);
        for at in (0..self.idle.len()).rev() {
            if self.deadline(&self.idle[at]) <= now {
                let Idle { connection, head_started, .. } = self.idle.swap_remove(at);
                if connection.permit.is_reserved() {
                    self.shared.metrics.refused.fetch_add(1, Ordering::Relaxed);
                    self.refuse(connection.stream.stream(), TOO_MANY);
                } else if head_started.is_some() {
                    self.refuse(connection.stream.stream(), HEAD_TOO_SLOW);
                }
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_ROUND {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, peer)) => {
                    self.failing = false;
                    self.admit(stream, peer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    self.shared.metrics.accept_errors.fetch_add(1, Ordering::Relaxed);
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::warn!(%error, "accept failed; retrying");
                    }
                    self.paused_until = Some(Instant::now() + self.shared.limits.accept_pause);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        // Otherwise small responses wait for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        self.shared.metrics.accepted.fetch_add(1, Ordering::Relaxed);
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        self.promote(SilentConnection { stream, peer, since: Instant::now() });
    }

    /// Counts a connection that sent its first byte against the limits, and reads it. The head often arrives with the
    /// connection.
    fn promote(&mut self, silent: SilentConnection) {
        let SilentConnection { stream, peer, .. } = &silent;
        match stream.peek(&mut [0]) {
            Ok(0) => return,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return self.hold_silent(silent);
            }
            Err(_) => return,
            Ok(_) => {}
        }
        let permit = self.permit(peer.ip());
        let SilentConnection { stream, peer, .. } = silent;
        match permit {
            Ok(permit) => {
                let stream = BufferedConnection::new(stream);
                self.hold(Connection { stream, peer, served: 0, authenticated: false, permit });
                self.receive(self.idle.len() - 1);
            }
            Err(refusal) => {
                self.shared.metrics.refused.fetch_add(1, Ordering::Relaxed);
                self.refuse(&Arc::new(stream), refusal);
            }
        }
    }

    /// A permit for a connection, evicting another one if needed: of the same address if that has its share, of any
    /// address if all permits are taken. The last ones are reserved for probes.
    fn permit(&mut self, peer: IpAddr) -> Result<ConnectionPermit, RefusedRequest> {
        let shared = Arc::clone(&self.shared);
        let address = (!shared.is_trusted(peer)).then(|| subscriber(peer));
        if let Some(address) = address
            && shared.connections.count(address) >= shared.limits.connections_per_address_max
            && !self.evict(Evict::From(address))
        {
            return Err(TOO_MANY_OF_ADDRESS);
        }
        let client = || address.map(|address| shared.connections.acquire(address));
        let reserved = shared.reserved_open.load(Ordering::Relaxed);
        if shared.open() < shared.limits.connections_max || self.evict(Evict::Any) {
            return Ok(ConnectionPermit::new(&shared.metrics, client(), None));
        }
        if reserved >= shared.limits.probe_connections_max && !self.evict_reserved() {
            return Err(TOO_MANY);
        }
        Ok(ConnectionPermit::new(&shared.metrics, client(), Some(&shared.reserved_open)))
    }

    /// Keeps a connection that has sent nothing. At the limit the oldest one is closed, of one address if that has three
    /// quarters of them.
    fn hold_silent(&mut self, silent: SilentConnection) {
        let max = self.shared.limits.silent_connections_max;
        if self.silent.len() >= max {
            let client = subscriber(silent.peer.ip());
            let is_own = |other: &SilentConnection| subscriber(other.peer.ip()) == client;
            let own = self.silent.iter().filter(|other| is_own(other)).count();
            let oldest_own = self.silent.iter().position(is_own).filter(|_| own * 4 >= max * 3);
            self.silent.remove(oldest_own.unwrap_or(0));
            self.shared.metrics.evicted.fetch_add(1, Ordering::Relaxed);
        }
        self.silent.push(silent);
    }

    /// Closes the connection that has waited for its client longest: for a head, or in an anonymous request. Those whose
    /// last request had credentials are closed after all others. False if there is none.
    fn evict(&mut self, which: Evict) -> bool {
        let may_be_evicted = |idle: &Idle| match which {
            Evict::Any => !idle.connection.permit.is_reserved(),
            Evict::From(address) => idle.connection.permit.address() == Some(address),
            Evict::HandlerSince(_) => false,
        };
        loop {
            let candidates = (0..self.idle.len()).filter(|at| may_be_evicted(&self.idle[*at]));
            let rank = |at: usize| (self.idle[at].connection.authenticated, self.idle[at].since);
            let first = candidates.min_by_key(|at| rank(*at));
            let served = self.shared.longest_wait(which);
            match first {
                Some(at) if served.is_none_or(|since| rank(at) <= (false, since)) => {
                    // The rest of its head may have come since the last poll; a reset would lose that request.
                    if self.receive(at) {
                        self.close(at);
                        return true;
                    }
                }
                Some(_) | None => return self.shared.evict(which),
            }
        }
    }

    /// Closes the oldest reserved connection without a complete head; false if there is none.
    fn evict_reserved(&mut self) -> bool {
        let reserved = (0..self.idle.len()).filter(|at| self.idle[*at].connection.permit.is_reserved());
        let oldest = reserved.min_by_key(|at| self.idle[*at].since);
        oldest.map(|at| self.close(at)).is_some()
    }

    fn close(&mut self, at: usize) {
        self.idle.swap_remove(at);
        self.shared.metrics.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a refusal without waiting for the client.
    fn refuse(&mut self, stream: &Arc<TcpStream>, refusal: RefusedRequest) {
        let id = RequestId::new();
        let _ = (&**stream).write(&refusal_bytes(refusal, &id));
        self.shared.metrics.count(None, refusal.status, Duration::ZERO);
        tracing::debug!(request_id = %id, status = refusal.status, reason = refusal.message, "connection refused");
        self.linger(Arc::clone(stream));
    }

    /// Ends our side and discards input for a while: closing at once would reset a client that is still sending, which
    /// may lose the response.
    fn linger(&mut self, stream: Arc<TcpStream>) {
        let ended = stream.set_nonblocking(true).and_then(|()| stream.shutdown(Shutdown::Write));
        if ended.is_err() {
            return;
        }
        if self.lingering.len() >= self.shared.limits.lingering_max {
            // Input that is left unread would make the system reset the client, which may lose the response.
            if self.discard(0) {
                self.lingering.remove(0);
            }
        }
        let until = Instant::now() + self.shared.limits.linger_time_max;
        self.lingering.push(LingeringConnection { stream, until, discarded: 0 });
    }

    /// Discards received bytes. Returns whether the connection still lingers, at the same index.
    fn discard(&mut self, at: usize) -> bool {
        let mut bytes = [0; DISCARD_BYTES];
        let lingering = &mut self.lingering[at];
        for _ in 0..DISCARDS_PER_ROUND {
            match (&*lingering.stream).read(&mut bytes) {
                Ok(read) if read > 0 && lingering.discarded < self.shared.limits.linger_bytes_max => {
                    lingering.discarded += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    self.lingering.remove(at);
                    return false;
                }
            }
        }
        true
    }
}
