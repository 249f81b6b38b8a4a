//! State shared by the threads of one server, and the registry of connections that are being served.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_channel::Sender;

use crate::config::AddressRange;

use super::address::ClientCounts;
use super::connection::Connection;
use super::handler_slots::HandlerSlots;
use super::hosts::AllowedHosts;
use super::limits::GuardLimits;
use super::metrics::HttpMetrics;
use super::router::App;
use crate::sync::Semaphore;

/// Sent to the acceptor.
pub(super) enum AcceptorMessage {
    /// A connection without a complete head.
    Idle(Connection),
    /// A connection that got its last response and whose client may still be sending.
    Linger(Arc<TcpStream>),
    /// Stop: accept only the connections in the listener's backlog, and end once no connection is served. Idle
    /// connections are served until then, since a proxy may have a request on its way, and are closed after their next
    /// response.
    Stop { idle_until: Instant },
    /// End now.
    Exit,
}

/// Which connections may be evicted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Evict {
    Any,
    /// Connections of one client address.
    From(IpAddr),
    /// Connections that have blocked a handler since then, by not reading the response.
    HandlerSince(Instant),
}

/// A connection that is being served.
struct ServedConnection {
    client: Arc<TcpStream>,
    /// The client address whose limit it counts against; `None` for trusted proxies.
    address: Option<IpAddr>,
    /// Since when an anonymous request has waited for its client: it may be evicted.
    evictable_since: Option<Instant>,
    /// Time of the last progress of its handler, if one runs.
    handler_active_at: Option<Instant>,
}

impl ServedConnection {
    fn may_be_evicted(&self, which: Evict) -> bool {
        match which {
            Evict::Any => true,
            Evict::From(address) => self.address == Some(address),
            Evict::HandlerSince(since) => {
                self.handler_active_at.is_some() && self.evictable_since.is_some_and(|own| own <= since)
            }
        }
    }

    /// Ends all reads and writes of the connection's thread.
    fn cut(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
    }
}

pub(super) struct ServerShared {
    pub(super) app: Arc<dyn App>,
    pub(super) limits: Arc<GuardLimits>,
    pub(super) trusted_proxies: Vec<AddressRange>,
    pub(super) hosts: AllowedHosts,
    /// Connections by client address, except those of trusted proxies.
    pub(super) connections: Arc<ClientCounts>,
    /// Requests forwarded by trusted proxies, by the client they name.
    pub(super) forwarded: Arc<ClientCounts>,
    /// Open connections that are reserved for probes.
    pub(super) reserved_open: Arc<AtomicUsize>,
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) handlers: Arc<HandlerSlots>,
    /// Bytes for request bodies, shared by all requests.
    pub(super) body_memory: Semaphore,
    pub(super) acceptor: Sender<AcceptorMessage>,
    /// A byte written here wakes the acceptor.
    pub(super) waker: UnixStream,
    pub(super) stopping: AtomicBool,
    served: Mutex<HashMap<u64, ServedConnection>>,
}

/// The parts of [`ServerShared`] that the caller provides.
pub(super) struct ServerParts {
    pub(super) app: Arc<dyn App>,
    pub(super) limits: GuardLimits,
    pub(super) trusted_proxies: Vec<AddressRange>,
    pub(super) hosts: AllowedHosts,
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) handlers: Arc<HandlerSlots>,
    pub(super) acceptor: Sender<AcceptorMessage>,
    pub(super) waker: UnixStream,
}

impl ServerShared {
    pub(super) fn new(parts: ServerParts) -> Arc<Self> {
        let ServerParts { app, limits, trusted_proxies, hosts, metrics, handlers, acceptor, waker } = parts;
        Arc::new(Self {
            app,
            body_memory: Semaphore::new(usize::try_from(limits.buffered_bytes_max).unwrap_or(usize::MAX)),
            limits: Arc::new(limits),
            trusted_proxies,
            hosts,
            connections: Arc::default(),
            forwarded: Arc::default(),
            reserved_open: Arc::default(),
            metrics,
            handlers,
            acceptor,
            waker,
            stopping: AtomicBool::new(false),
            served: Mutex::default(),
        })
    }

    pub(super) fn is_trusted(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|range| range.contains(peer))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Sends to the acceptor; if it has ended, a connection is closed.
    pub(super) fn send_to_acceptor(&self, message: AcceptorMessage) {
        if self.acceptor.send(message).is_ok() {
            self.wake_acceptor();
        }
    }

    fn wake_acceptor(&self) {
        // A full pipe wakes as well.
        let _ = (&self.waker).write(&[0]);
    }

    /// Connections that count against the total limit.
    pub(super) fn open(&self) -> usize {
        let open = usize::try_from(self.metrics.open.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        open.saturating_sub(self.reserved_open.load(Ordering::Relaxed))
    }

    /// Whether three quarters of the connections are taken: of all, or of those that `address` may have.
    pub(super) fn is_crowded(&self, address: Option<IpAddr>) -> bool {
        let is_crowded = |count: usize, max: usize| count.saturating_mul(4) >= max.saturating_mul(3);
        let of_address = address.map_or(0, |address| self.connections.count(address));
        is_crowded(self.open(), self.limits.connections_max)
            || is_crowded(of_address, self.limits.connections_per_address_max)
    }

    /// How many connections are being served.
    pub(super) fn served(&self) -> usize {
        self.served.lock().len()
    }

    /// Cuts every connection that is being served.
    pub(super) fn cut_all(&self) {
        self.served.lock().values().for_each(ServedConnection::cut);
    }

    /// When the handler that has made no progress longest exceeds its time limit.
    pub(super) fn next_silent_handler(&self) -> Option<Instant> {
        let oldest = self.served.lock().values().filter_map(|served| served.handler_active_at).min();
        oldest.and_then(|at| at.checked_add(self.limits.handler_silence_max))
    }

    /// Cuts connections whose handler has made no progress for too long.
    pub(super) fn cut_silent_handlers(&self, now: Instant) {
        for served in self.served.lock().values_mut() {
            let idle = served.handler_active_at.map(|at| now.saturating_duration_since(at));
            if idle.is_some_and(|idle| idle >= self.limits.handler_silence_max) {
                tracing::error!(
                    seconds = self.limits.handler_silence_max.as_secs(),
                    "handler silent; connection closed"
                );
                served.handler_active_at = None;
                served.cut();
            }
        }
    }

    /// The start of the longest wait of an anonymous request for its client.
    pub(super) fn longest_wait(&self, which: Evict) -> Option<Instant> {
        let served = self.served.lock();
        served.values().filter(|entry| entry.may_be_evicted(which)).filter_map(|entry| entry.evictable_since).min()
    }

    /// Cuts the anonymous request that has waited for its client longest; false if there is none.
    pub(super) fn evict(&self, which: Evict) -> bool {
        let mut served = self.served.lock();
        let evictable = |entry: &ServedConnection| entry.evictable_since.is_some() && entry.may_be_evicted(which);
        let candidates = served.values_mut().filter(|entry| evictable(entry));
        let Some(oldest) = candidates.min_by_key(|entry| entry.evictable_since) else { return false };
        // Its thread ends soon, and must not be chosen again until then.
        oldest.evictable_since = None;
        oldest.cut();
        drop(served);
        self.metrics.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// An entry among the connections that are being served, removed when dropped.
pub(super) struct ServedGuard {
    shared: Arc<ServerShared>,
    number: u64,
}

impl ServedGuard {
    /// `address`: the client address whose limit the connection counts against, if any.
    pub(super) fn new(
        shared: &Arc<ServerShared>,
        number: u64,
        client: &Arc<TcpStream>,
        address: Option<IpAddr>,
    ) -> Self {
        let client = Arc::clone(client);
        let entry = ServedConnection { client, address, evictable_since: None, handler_active_at: None };
        shared.served.lock().insert(number, entry);
        Self { shared: Arc::clone(shared), number }
    }

    fn update(&self, change: impl FnOnce(&mut ServedConnection)) {
        self.shared.served.lock().get_mut(&self.number).map(change);
    }

    /// Records that the request starts or stops waiting for its client. For anonymous requests only.
    pub(super) fn set_evictable(&self, evictable: bool) {
        self.update(|entry| entry.evictable_since = evictable.then(Instant::now));
    }

    /// Records that a handler starts or stops running.
    pub(super) fn set_handler(&self, running: bool) {
        self.update(|entry| entry.handler_active_at = running.then(Instant::now));
    }

    /// Records progress of the handler's response.
    pub(super) fn handler_is_active(&self) {
        self.update(|entry| entry.handler_active_at = entry.handler_active_at.map(|_| Instant::now()));
    }
}

impl Drop for ServedGuard {
    fn drop(&mut self) {
        self.shared.served.lock().remove(&self.number);
        if self.shared.is_stopping() {
            self.shared.wake_acceptor();
        }
    }
}
