//! What the threads of one server share.

use std::collections::HashMap;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossbeam_channel::Sender;

use crate::config::AddressRange;

use super::budget::Budget;
use super::inner::Inner;
use super::lanes::Lanes;
use super::limits::GuardLimits;
use super::metrics::HttpMetrics;
use super::relay::Conn;
use super::router::App;

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
}

pub(super) struct Shared {
    pub(super) app: Arc<dyn App>,
    pub(super) limits: Arc<GuardLimits>,
    pub(super) trusted_proxies: Vec<AddressRange>,
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) inner: Arc<Inner>,
    pub(super) lanes: Arc<Lanes>,
    pub(super) budget: Arc<Budget>,
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
    pub(super) metrics: Arc<HttpMetrics>,
    pub(super) inner: Arc<Inner>,
    pub(super) lanes: Arc<Lanes>,
    pub(super) inbox: Sender<Inbound>,
    pub(super) waker: UnixStream,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        let Parts { app, limits, trusted_proxies, metrics, inner, lanes, inbox, waker } = parts;
        let budget = Budget::new(limits.buffered_bytes_max);
        let (limits, stopping, in_work) = (Arc::new(limits), AtomicBool::new(false), Mutex::default());
        Arc::new(Self { app, limits, trusted_proxies, metrics, inner, lanes, budget, inbox, waker, stopping, in_work })
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
        self.in_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections in work.
    pub(super) fn in_work(&self) -> usize {
        self.lock().len()
    }

    /// Cuts every connection in work.
    pub(super) fn cut_all(&self) {
        for InWork { client, inner } in self.lock().values() {
            let _ = client.shutdown(Shutdown::Both);
            if let Some(inner) = inner {
                let _ = inner.shutdown(Shutdown::Both);
            }
        }
    }
}

/// An entry among the connections in work, removed when dropped.
pub(super) struct Active {
    shared: Arc<Shared>,
    number: u64,
}

impl Active {
    pub(super) fn enter(shared: &Arc<Shared>, number: u64, client: &Arc<TcpStream>) -> Self {
        shared.lock().insert(number, InWork { client: Arc::clone(client), inner: None });
        Self { shared: Arc::clone(shared), number }
    }

    /// Names the connection to the handler, or that there is none any more.
    pub(super) fn set_inner(&self, inner: Option<&Arc<UnixStream>>) {
        if let Some(entry) = self.shared.lock().get_mut(&self.number) {
            entry.inner = inner.cloned();
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
