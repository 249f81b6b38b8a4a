//! The accept guard: one thread that takes connections and holds all those without a complete head.
//!
//! Invariant: it never waits for one client. A connection costs a thread only once its head is complete; at the cap
//! the one makes room that has waited longest for a client without credentials: for a head, a body, or to take a response.
//! Must not: know what a head says.

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
use super::head::Refusal;
use super::pool::Pool;
use super::relay::{Conn, Seat, refusal_bytes, relay};
use super::request_id::RequestId;
use super::scan::{Scan, Scanned};
use super::shared::{Active, Evict, Inbound, Shared};
use super::wire::Wire;

/// Connections taken between two looks at those that are there.
const ACCEPTS_A_ROUND: usize = 64;
/// Bytes thrown away at a time.
const DISCARD_BYTES: usize = 16 << 10;
/// Pieces thrown away of one client between two looks at the others.
const DISCARDS_A_ROUND: usize = 8;

const TOO_MANY: Refusal = Refusal { status: 503, message: "too many connections" };
const TOO_MANY_OF_ADDRESS: Refusal = Refusal { status: 429, message: "too many connections from this address" };
const HEAD_TOO_SLOW: Refusal = Refusal { status: 408, message: "the request head came too slowly" };

/// Where connections come from.
pub(super) trait Acceptor: Send {
    /// Takes a connection, without waiting.
    fn accept(&self) -> io::Result<(TcpStream, SocketAddr)>;
    /// What becomes readable when there is one.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

impl Acceptor for TcpListener {
    fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// A connection without a complete head.
struct Waiting {
    conn: Conn,
    scan: Scan,
    since: Instant,
    /// When the head's first byte was there.
    begun: Option<Instant>,
}

/// A connection that was answered for the last time.
struct Lingering {
    stream: Arc<TcpStream>,
    until: Instant,
    discarded: u64,
}

pub(super) struct Front<L> {
    shared: Arc<Shared>,
    listener: Option<L>,
    inbox: Receiver<Inbound>,
    woken: UnixStream,
    relays: Pool,
    waiting: Vec<Waiting>,
    lingering: Vec<Lingering>,
    /// No accept before this.
    paused_until: Option<Instant>,
    /// Stopping: connections without a complete head are closed then.
    idle_until: Option<Instant>,
    /// Whether the last accept failed: each spell of failures is logged once.
    failing: bool,
    next_number: u64,
}

/// What is ready, by place.
struct Ready {
    accept: bool,
    waiting: Vec<usize>,
    lingering: Vec<usize>,
}

impl<L: Acceptor> Front<L> {
    /// `listener` and `woken` don't block.
    pub(super) fn new(
        shared: Arc<Shared>,
        listener: L,
        inbox: Receiver<Inbound>,
        woken: UnixStream,
        relays: Pool,
    ) -> Self {
        let (waiting, lingering) = (Vec::new(), Vec::new());
        let listener = Some(listener);
        Self {
            shared,
            listener,
            inbox,
            woken,
            relays,
            waiting,
            lingering,
            paused_until: None,
            idle_until: None,
            failing: false,
            next_number: 0,
        }
    }

    /// Works until it is told to stop and nothing is in work any more.
    pub(super) fn run(mut self) {
        loop {
            let ready = self.wait();
            // From the end, so that the places before stay right.
            for at in ready.lingering.into_iter().rev() {
                self.discard(at);
            }
            for at in ready.waiting.into_iter().rev() {
                self.receive(at);
            }
            self.drain_inbox();
            self.expire(Instant::now());
            if ready.accept {
                self.accept();
            }
            let is_idle = self.waiting.is_empty() && self.lingering.is_empty();
            if self.listener.is_none() && is_idle && self.shared.in_work() == 0 {
                // Whoever left work before that has told.
                self.drain_inbox();
                if self.lingering.is_empty() {
                    return;
                }
            }
        }
    }

    /// Waits for a client, a message, or the next time that something ends.
    fn wait(&mut self) -> Ready {
        let now = Instant::now();
        let accepting = self.paused_until.is_none_or(|until| until <= now);
        let timeout = self.next_end().map(|end| end.saturating_duration_since(now) + Duration::from_millis(1));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let listener = self.listener.as_ref().filter(|_| accepting);
        let mut polled: Vec<PollFd<'_>> = vec![PollFd::new(&self.woken, PollFlags::IN)];
        polled.extend(listener.map(|listener| PollFd::from_borrowed_fd(listener.descriptor(), PollFlags::IN)));
        let first_waiting = polled.len();
        polled.extend(self.waiting.iter().map(|w| PollFd::new(&**w.conn.wire.stream(), PollFlags::IN)));
        let first_lingering = polled.len();
        polled.extend(self.lingering.iter().map(|l| PollFd::new(&*l.stream, PollFlags::IN)));
        let outcome = poll(&mut polled, timeout.as_ref());
        let failed = outcome.is_err();
        if outcome.is_err_and(|error| error != rustix::io::Errno::INTR) {
            // Out of memory, most likely: not in a tight loop.
            std::thread::sleep(self.shared.limits.accept_pause);
        }
        let ready = |at: usize| !failed && !polled[at].revents().is_empty();
        let places = |from: usize, to: usize| (from..to).filter(|at| ready(*at)).map(|at| at - from).collect();
        Ready {
            accept: first_waiting == 2 && ready(1),
            waiting: places(first_waiting, first_lingering),
            lingering: places(first_lingering, polled.len()),
        }
    }

    fn next_end(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().map(|waiting| self.end_of(waiting));
        let idle_until = self.idle_until.filter(|_| !self.waiting.is_empty());
        waiting.chain(self.lingering.iter().map(|l| l.until)).chain(self.paused_until).chain(idle_until).min()
    }

    fn end_of(&self, waiting: &Waiting) -> Instant {
        let limits = &self.shared.limits;
        if waiting.conn.seat.is_reserved() {
            return waiting.since + limits.probe_head_time_max;
        }
        waiting.begun.map_or(waiting.since + limits.idle_time_max, |begun| begun + limits.head_time_max)
    }

    fn drain_inbox(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(read) if read > 0) {}
        while let Ok(inbound) = self.inbox.try_recv() {
            match inbound {
                Inbound::Waiting(conn) if self.listener.is_some() => self.hold(conn),
                // Stopping: nothing of a next request has been taken on.
                Inbound::Waiting(_) => {}
                Inbound::Linger(stream) => self.linger(stream),
                Inbound::Stop { idle_until } => {
                    // Those that wait to be accepted would be reset with the listener, and their requests lost.
                    self.accept();
                    self.listener = None;
                    self.idle_until = Some(idle_until);
                }
            }
        }
    }

    fn hold(&mut self, conn: Conn) {
        let since = Instant::now();
        let begun = (!conn.wire.buffered().is_empty()).then_some(since);
        self.waiting.push(Waiting { conn, scan: Scan::default(), since, begun });
    }

    /// Reads what a client sent; a head that is complete, or can't become one, goes to a thread.
    fn receive(&mut self, at: usize) {
        let limits = &self.shared.limits;
        let waiting = &mut self.waiting[at];
        loop {
            match waiting.conn.wire.receive() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => {
                    self.waiting.swap_remove(at);
                    return;
                }
                Ok(_) => {
                    waiting.begun.get_or_insert_with(Instant::now);
                    let bytes = waiting.conn.wire.buffered();
                    let scanned = waiting.scan.advance(bytes, limits.head_bytes_max, limits.head_fields_max);
                    if scanned != Scanned::Partial {
                        let conn = self.waiting.swap_remove(at).conn;
                        return self.start(conn);
                    }
                }
            }
        }
    }

    fn start(&mut self, conn: Conn) {
        self.next_number += 1;
        let active = Active::enter(&self.shared, self.next_number, conn.wire.stream(), conn.seat.address());
        let shared = Arc::clone(&self.shared);
        if let Err(error) = self.relays.run(Box::new(move || relay(&shared, conn, active))) {
            tracing::warn!(%error, "no thread for a connection");
        }
    }

    /// Closes what has waited long enough.
    fn expire(&mut self, now: Instant) {
        self.lingering.retain(|lingering| lingering.until > now);
        self.paused_until = self.paused_until.filter(|until| *until > now);
        if self.idle_until.is_some_and(|until| until <= now) {
            self.waiting.clear();
        }
        for at in (0..self.waiting.len()).rev() {
            if self.end_of(&self.waiting[at]) <= now {
                let Waiting { conn, begun, .. } = self.waiting.swap_remove(at);
                if conn.seat.is_reserved() {
                    self.shared.metrics.refused.fetch_add(1, Ordering::Relaxed);
                    self.refuse(conn.wire.stream(), TOO_MANY);
                } else if begun.is_some() {
                    self.refuse(conn.wire.stream(), HEAD_TOO_SLOW);
                }
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_A_ROUND {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, peer)) => {
                    self.failing = false;
                    self.take(stream, peer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    self.shared.metrics.accept_errors.fetch_add(1, Ordering::Relaxed);
                    if !std::mem::replace(&mut self.failing, true) {
                        tracing::warn!(%error, "no connection could be accepted; trying on");
                    }
                    self.paused_until = Some(Instant::now() + self.shared.limits.accept_pause);
                    return;
                }
            }
        }
    }

    fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        // Without it, small answers wait for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        self.shared.metrics.accepted.fetch_add(1, Ordering::Relaxed);
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        match self.seat(peer.ip()) {
            Ok(seat) => {
                self.hold(Conn { wire: Wire::new(stream), peer, served: 0, seat });
                // What came with the connection needs no other wait.
                self.receive(self.waiting.len() - 1);
            }
            Err(refusal) => {
                self.shared.metrics.refused.fetch_add(1, Ordering::Relaxed);
                self.refuse(&Arc::new(stream), refusal);
            }
        }
    }

    /// A place for a connection, evicting another one where that is needed: of the same address if that has its share, of
    /// any address if all places are taken. What is left then is reserved for probes.
    fn seat(&mut self, peer: IpAddr) -> Result<Seat, Refusal> {
        let shared = Arc::clone(&self.shared);
        let address = (!shared.is_trusted(peer)).then(|| subscriber(peer));
        if let Some(address) = address
            && shared.connections.count(address) >= shared.limits.connections_per_address_max
            && !self.evict(Evict::From(address))
        {
            return Err(TOO_MANY_OF_ADDRESS);
        }
        let open = usize::try_from(shared.metrics.open.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let reserved = shared.reserved_open.load(Ordering::Relaxed);
        if open.saturating_sub(reserved) < shared.limits.connections_max || self.evict(Evict::Any) {
            return Ok(Seat::take(&shared, address, false));
        }
        if reserved >= shared.limits.probe_connections_max && !self.evict_reserved() {
            return Err(TOO_MANY);
        }
        Ok(Seat::take(&shared, address, true))
    }

    /// Closes the connection that has waited for its client longest: for a head, or in an anonymous request; false if there
    /// is none.
    fn evict(&mut self, which: Evict) -> bool {
        let may_go = |waiting: &Waiting| match which {
            Evict::Any => !waiting.conn.seat.is_reserved(),
            Evict::From(address) => waiting.conn.seat.address() == Some(address),
            Evict::HandlerSince(_) => false,
        };
        let places = (0..self.waiting.len()).filter(|at| may_go(&self.waiting[*at]));
        let oldest = places.min_by_key(|at| self.waiting[*at].since);
        let in_work = self.shared.longest_wait(which);
        match oldest {
            Some(at) if in_work.is_none_or(|since| self.waiting[at].since <= since) => {
                self.close(at);
                true
            }
            Some(_) | None => self.shared.evict(which),
        }
    }

    /// Closes the oldest reserved connection that has no complete head; false if there is none.
    fn evict_reserved(&mut self) -> bool {
        let places = (0..self.waiting.len()).filter(|at| self.waiting[*at].conn.seat.is_reserved());
        let oldest = places.min_by_key(|at| self.waiting[*at].since);
        oldest.map(|at| self.close(at)).is_some()
    }

    fn close(&mut self, at: usize) {
        self.waiting.swap_remove(at);
        self.shared.metrics.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers at once what isn't served, as far as the socket takes it.
    fn refuse(&mut self, stream: &Arc<TcpStream>, refusal: Refusal) {
        let id = RequestId::new();
        let _ = (&**stream).write(&refusal_bytes(refusal, &id));
        self.shared.metrics.count(None, refusal.status, Duration::ZERO);
        tracing::debug!(request_id = %id, status = refusal.status, reason = refusal.message, "a connection refused");
        self.linger(Arc::clone(stream));
    }

    /// Ends our side, and listens on for a while: closing at once would reset a client that is still sending, and with
    /// that its answer may be lost.
    fn linger(&mut self, stream: Arc<TcpStream>) {
        let ended = stream.set_nonblocking(true).and_then(|()| stream.shutdown(Shutdown::Write));
        if ended.is_err() {
            return;
        }
        if self.lingering.len() >= self.shared.limits.lingering_max {
            self.lingering.remove(0);
        }
        let until = Instant::now() + self.shared.limits.linger_time_max;
        self.lingering.push(Lingering { stream, until, discarded: 0 });
    }

    fn discard(&mut self, at: usize) {
        let mut bytes = [0; DISCARD_BYTES];
        let lingering = &mut self.lingering[at];
        for _ in 0..DISCARDS_A_ROUND {
            match (&*lingering.stream).read(&mut bytes) {
                Ok(read) if read > 0 && lingering.discarded < self.shared.limits.linger_bytes_max => {
                    lingering.discarded += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    self.lingering.remove(at);
                    return;
                }
            }
        }
    }
}
