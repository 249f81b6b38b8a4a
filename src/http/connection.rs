//! A client's connection between its requests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::address::ClientPermit;
use super::buffered::BufferedConnection;
use super::metrics::HttpMetrics;

pub(super) struct Connection {
    pub(super) stream: BufferedConnection,
    pub(super) peer: SocketAddr,
    /// Requests so far.
    pub(super) served: u32,
    /// Whether its last request had credentials.
    pub(super) authenticated: bool,
    pub(super) permit: ConnectionPermit,
}

/// Counts a connection as open until dropped.
pub(super) struct ConnectionPermit {
    metrics: Arc<HttpMetrics>,
    /// The client's permit under the limit per address; `None` for trusted proxies.
    client: Option<ClientPermit>,
    /// The count of reserved connections, if this is one.
    reserved: Option<Arc<AtomicUsize>>,
}

impl ConnectionPermit {
    /// `reserved`: the count of connections for probes alone, if this is one.
    pub(super) fn new(
        metrics: &Arc<HttpMetrics>,
        client: Option<ClientPermit>,
        reserved: Option<&Arc<AtomicUsize>>,
    ) -> Self {
        metrics.open.fetch_add(1, Ordering::Relaxed);
        reserved.inspect(|count| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        Self { metrics: Arc::clone(metrics), client, reserved: reserved.cloned() }
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.client.as_ref().map(ClientPermit::client)
    }

    pub(super) fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.metrics.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(count) = &self.reserved {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
