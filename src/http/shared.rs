//! What the threads of one server share.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_channel::Sender;

use crate::config::AddressRange;

use super::address::PerClient;
use super::hosts::AllowedHosts;
use super::inner::Inner;
use super::lanes::Lanes;
use super::limits::GuardLimits;
use super::metrics::HttpMetrics;
use super::relay::Conn;
use super::router::App;
use crate::sync::Semaphore;

/// What the front is told.
pub(super) enum Inbound {
    /// A connection without a complete head.
    Waiting(Conn),
    /// A connection that was answered for the last time and whose client may still be sending.
    Linger(Arc<TcpStream>),
    /// Take no more connections than already wait to be accepted; end when none is in work. Those that are idle are
    /// served until then, since a proxy may have a request on its way, and are closed after their next response.
    Stop { idle_until: Instant },
}

/// The sockets of a connection in work, so that it can be cut.
struct InWork {
    client: Arc<TcpStream>,
    inner: Option<Arc<UnixStream>>,
    /// The subscriber it comes from; none of a trusted proxy's.
    address: Option<IpAddr>,
    /// Since when an anonymous request has been waiting for its client: it may be evicted.
    evictable_since: Option<Instant>,
}

/// Which connections in work may be evicted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Evict {
    /// Any.
    Any,
    /// Those of one subscriber.
    From(IpAddr),
    /// Those that have held up a response, and so a handler, since then.
    HandlerSince(Instant),
}

impl InWork {
    fn may_go(&self, which: Evict) -> bool {
        match which {
            Evict::Any => true,
            Evict::From(address) => self.address == Some(address),
            Evict::HandlerSince(since) => self.inner.is_some() && self.evictable_since.is_some_and(|own| own <= since),
        }
    }

    fn cut(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        if let Some(inner) = &self.inner {
            let _ = inner.shutdown(Shutdown::Both);
        }
    }
}

pub(super) struct Shared {
    pub(super) app: Arc<dyn App>,
    pub(super) limits: Arc<GuardLimits>,
    pub(super) trusted_proxies: Vec<AddressRange>,
    pub(super) hosts: AllowedHosts,
    /// Connections by the peer's subscriber, those of trusted proxies excepted.
    pub(super) connections: Arc<PerClient>,
    /// Requests that trusted proxies forward, by the client they name.
    pub(super) forwarded: Arc<PerClient>,
    /// Open connections that are reserved for probes.
    pub(super) reserved_open: AtomicUsize,
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) inner: Arc<Inner>,
    pub(super) lanes: Arc<Lanes>,
    /// Bytes for request bodies, shared by all requests.
    pub(super) body_memory: Semaphore,
    pub(super) inbox: Sender<Inbound>,
    /// A byte written here wakes the front.
    pub(super) waker: UnixStream,
    pub(super) stopping: AtomicBool,
    in_work: Mutex<HashMap<u64, InWork>>,
}

/// The parts of [`Shared`] that come from outside.
pub(super) struct Parts {
    pub(super) app: Arc<dyn App>,
    pub(super) limits: GuardLimits,
    pub(super) trusted_proxies: Vec<AddressRange>,
    pub(super) hosts: AllowedHosts,
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) inner: Arc<Inner>,
    pub(super) lanes: Arc<Lanes>,
    pub(super) inbox: Sender<Inbound>,
    pub(super) waker: UnixStream,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let Parts { app, limits, trusted_proxies, hosts, metrics, inner, lanes, inbox, waker } = parts;
        Arc::new(Self {
            app,
            body_memory: Semaphore::new(usize::try_from(limits.buffered_bytes_max).unwrap_or(usize::MAX)),
            limits: Arc::new(limits),
            trusted_proxies,
            hosts,
            connections: Arc::default(),
            forwarded: Arc::default(),
            reserved_open: AtomicUsize::new(0),
            metrics,
            inner,
            lanes,
            inbox,
            waker,
            stopping: AtomicBool::new(false),
            in_work: Mutex::default(),
        })
    }

    pub(super) fn is_trusted(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|range| range.contains(peer))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Tells the front; if it has ended, the connection is closed.
    pub(super) fn give_back(&self, what: Inbound) {
        if self.inbox.send(what).is_ok() {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        // A full pipe wakes as well.
        let _ = (&self.waker).write(&[0]);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, InWork>> {
        self.in_work.lock()
    }

    /// Connections in work.
    pub(super) fn in_work(&self) -> usize {
        self.lock().len()
    }

    /// Cuts every connection in work.
    pub(super) fn cut_all(&self) {
        self.lock().values().for_each(InWork::cut);
    }

    /// Since when the anonymous request has waited that has waited for its client longest; none if there is none.
    pub(super) fn longest_wait(&self, which: Evict) -> Option<Instant> {
        let in_work = self.lock();
        in_work.values().filter(|entry| entry.may_go(which)).filter_map(|entry| entry.evictable_since).min()
    }

    /// Cuts the anonymous request that has waited for its client longest; false if there is none.
    pub(super) fn evict(&self, which: Evict) -> bool {
        let mut in_work = self.lock();
        let candidates = in_work.values_mut().filter(|entry| entry.evictable_since.is_some() && entry.may_go(which));
        let Some(oldest) = candidates.min_by_key(|entry| entry.evictable_since) else { return false };
        // Its thread ends soon; until then it is no candidate any more.
        oldest.evictable_since = None;
        oldest.cut();
        drop(in_work);
        self.metrics.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// An entry among the connections in work, removed when dropped.
pub(super) struct Active {
    shared: Arc<Shared>,
    number: u64,
}

impl Active {
    /// `address`: the subscriber whose share the connection counts in, if it does.
    pub(super) fn enter(shared: &Arc<Shared>, number: u64, client: &Arc<TcpStream>, address: Option<IpAddr>) -> Self {
        let client = Arc::clone(client);
        shared.lock().insert(number, InWork { client, inner: None, address, evictable_since: None });
        Self { shared: Arc::clone(shared), number }
    }

    /// Names the connection to the handler, or that there is none any more.
    pub(super) fn set_inner(&self, inner: Option<&Arc<UnixStream>>) {
        if let Some(entry) = self.shared.lock().get_mut(&self.number) {
            entry.inner = inner.cloned();
        }
    }
}

impl Active {
    /// Says that the request waits for its client from now on, or no longer. Only anonymous requests may say so.
    pub(super) fn set_evictable(&self, evictable: bool) {
        if let Some(entry) = self.shared.lock().get_mut(&self.number) {
            entry.evictable_since = evictable.then(Instant::now);
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.shared.lock().remove(&self.number);
        if self.shared.is_stopping() {
            self.shared.wake();
        }
    }
}
