//! A server: starts the acceptor and its threads, and stops them.
//!
//! Invariant: after [`Server::stop`] nothing listens and no connection is open; only a handler that doesn't return keeps
//! its thread.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded, unbounded};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::AddressRange;

use super::acceptor::{Acceptor, Listener};
use super::descriptors;
use super::handler_slots::HandlerSlots;
use super::hosts::AllowedHosts;
use super::limits::{CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX, GuardLimits};
use super::metrics::HttpMetrics;
use super::router::{App, Bound, Router, Service};
use super::shared::{AcceptorMessage, ServerParts, ServerShared};
use super::thread_pool::ThreadPool;

/// Connections that the system queues before they are accepted.
const BACKLOG: i32 = 1_024;
/// Handlers besides the normal ones, for [`super::router::Priority::Reserved`].
const RESERVED_HANDLERS: usize = 4;
/// Further handlers, for [`super::router::Priority::Probe`].
const PROBE_HANDLERS: usize = 4;
/// Stack of a thread that serves a connection, in bytes; only touched pages cost memory.
const SERVING_STACK_BYTES: usize = 4 << 20;
/// Stack of the acceptor's thread, in bytes.
const ACCEPTOR_STACK_BYTES: usize = 512 << 10;
/// How long idle connections are served after a stop has begun.
const IDLE_DRAIN_MAX: Duration = Duration::from_secs(1);
/// How long threads may take to end once their connections are cut.
const CUT_TIME_MAX: Duration = Duration::from_secs(1);

/// How a server runs.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to listen; port 0 uses any free port.
    pub address: SocketAddr,
    /// Concurrent handlers, not counting reserved ones; at least 1.
    pub handlers: usize,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<AddressRange>,
    /// Names under which requests may address the service.
    pub hosts: AllowedHosts,
    pub limits: GuardLimits,
}

impl ServerOptions {
    /// Options with [`GuardLimits::default`], no trusted proxies, and any host.
    pub fn new(address: SocketAddr, handlers: usize) -> Self {
        let (trusted_proxies, hosts, limits) = (Vec::new(), AllowedHosts::any(), GuardLimits::default());
        Self { address, handlers, trusted_proxies, hosts, limits }
    }
}

/// Why a server didn't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("can't listen on `{address}`: {source}; {advice}")]
    Bind { address: SocketAddr, advice: &'static str, source: io::Error },
    #[error("can't create a socket pair for the http server: {source}")]
    SocketPair { source: io::Error },
    #[error("can't start a thread of the http server: {source}")]
    Thread { source: io::Error },
}

/// A running server; stops immediately when dropped.
pub struct Server {
    shared: Arc<ServerShared>,
    address: SocketAddr,
    threads: ThreadPool,
    acceptor: Option<JoinHandle<()>>,
    acceptor_ended: Receiver<()>,
}

impl Server {
    /// Listens, and serves `router`'s routes on `service`.
    ///
    /// # Errors
    /// [`StartError`]: the address can't be bound, or the system has no resources for sockets or threads.
    pub fn start<S: Service>(options: ServerOptions, router: Router<S>, service: Arc<S>) -> Result<Self, StartError> {
        let labels = router.routes().iter().map(|route| (route.method.as_str(), route.pattern)).collect();
        let metrics = Arc::new(HttpMetrics::new(labels));
        let (listener, address) = bind(options.address)?;
        Self::start_on(listener, ServerOptions { address, ..options }, Arc::new(Bound { router, service }), metrics)
    }

    fn start_on<L: Listener + 'static>(
        listener: L,
        options: ServerOptions,
        app: Arc<dyn App>,
        metrics: Arc<HttpMetrics>,
    ) -> Result<Self, StartError> {
        let ServerOptions { address, handlers, trusted_proxies, hosts, mut limits } = options;
        fit_to_descriptor_limit(&mut limits);
        let (waker, woken) = waker_pair().map_err(|source| StartError::SocketPair { source })?;
        let (acceptor, inbox) = unbounded();
        let handlers = HandlerSlots::new(handlers.max(1), RESERVED_HANDLERS, PROBE_HANDLERS);
        let connections_max = limits.connections_max + limits.probe_connections_max;
        let threads = ThreadPool::new("http-connection", SERVING_STACK_BYTES, connections_max);
        let shared =
            ServerShared::new(ServerParts { app, limits, trusted_proxies, hosts, metrics, handlers, acceptor, waker });
        let (ended, acceptor_ended) = bounded(1);
        let acceptor = Acceptor::new(Arc::clone(&shared), listener, inbox, woken, threads.clone());
        let builder = Builder::new().name("http-acceptor".into()).stack_size(ACCEPTOR_STACK_BYTES);
        let acceptor = builder.spawn(move || {
            acceptor.run();
            // The receiver exists as long as the server.
            let _ = ended.send(());
        });
        let acceptor = Some(acceptor.map_err(|source| StartError::Thread { source })?);
        Ok(Self { shared, address, threads, acceptor, acceptor_ended })
    }

    /// The address it listens on, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub fn metrics(&self) -> Arc<HttpMetrics> {
        Arc::clone(&self.shared.metrics)
    }

    /// Accepts no more connections, closes idle ones after [`IDLE_DRAIN_MAX`], waits up to `grace` for requests to complete,
    /// and cuts the rest. Returns how many handlers still run.
    pub fn stop(mut self, grace: Duration) -> usize {
        self.end(grace)
    }

    fn end(&mut self, grace: Duration) -> usize {
        let Some(acceptor) = self.acceptor.take() else { return 0 };
        self.shared.stopping.store(true, Ordering::Release);
        let idle_until = Instant::now() + grace.min(IDLE_DRAIN_MAX);
        self.shared.send_to_acceptor(AcceptorMessage::Stop { idle_until });
        if self.acceptor_ended.recv_timeout(grace).is_err() {
            tracing::warn!(connections = self.shared.served(), "grace period over; connections cut");
            self.shared.cut_all();
            if self.acceptor_ended.recv_timeout(CUT_TIME_MAX).is_err() {
                self.shared.send_to_acceptor(AcceptorMessage::Exit);
            }
        }
        self.threads.close();
        if acceptor.join().is_err() {
            tracing::error!("the acceptor of the http server panicked");
        }
        self.shared.handlers.busy()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Lowers the connection limits if the process has few file descriptors.
fn fit_to_descriptor_limit(limits: &mut GuardLimits) {
    let files = descriptors::raise_limit();
    let fit = descriptors::connections_that_fit(files, limits.connections_max);
    if fit < limits.connections_max {
        let usual = limits.connections_max;
        tracing::warn!(limit = files, clients = fit, usual, "limit of open files is low; fewer connections allowed");
        limits.connections_max = fit;
        limits.silent_connections_max = limits.silent_connections_max.min(2 * fit);
        let share = (fit * CONNECTIONS_PER_ADDRESS_MAX).div_ceil(CONNECTIONS_MAX);
        limits.connections_per_address_max = limits.connections_per_address_max.min(share);
        limits.probe_connections_max = (fit * limits.probe_connections_max).div_ceil(CONNECTIONS_MAX);
    }
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listen = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            // `::` accepts IPv4 as well.
            socket.set_only_v6(false)?;
        }
        // Otherwise a restart would wait for connections of the previous process.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from(socket);
        let bound = listener.local_addr()?;
        Ok((listener, bound))
    };
    listen().map_err(|source: io::Error| {
        let advice = match source.kind() {
            io::ErrorKind::AddrInUse => "another program listens there; stop it, or set another PORT",
            io::ErrorKind::PermissionDenied => "ports below 1024 need a permission; set another PORT",
            io::ErrorKind::AddrNotAvailable => "this machine has no such address; set another SVC_BIND",
            _ => "set another SVC_BIND or PORT",
        };
        StartError::Bind { address, advice, source }
    })
}

fn waker_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (waker, woken) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    Ok((waker, woken))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::AtomicUsize;

    use super::super::{ApiError, Caller, Method, RequestHead, Response, Route};
    use super::*;

    const WAIT_MAX: Duration = Duration::from_secs(30);

    struct EmptyService;

    impl Service for EmptyService {
        type Credential = ();

        fn authorize(&self, (): (), _: &RequestHead) -> Result<Caller, ApiError> {
            Ok(Caller::Anonymous)
        }
    }

    /// Fails with these errors, then succeeds.
    struct Failing {
        listener: TcpListener,
        errors: [i32; 4],
        failed: AtomicUsize,
    }

    impl Listener for Failing {
        fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
            match self.errors.get(self.failed.fetch_add(1, Ordering::Relaxed)) {
                Some(error) => Err(io::Error::from_raw_os_error(*error)),
                None => self.listener.accept(),
            }
        }

        fn descriptor(&self) -> BorrowedFd<'_> {
            self.listener.descriptor()
        }
    }

    fn start_on(listener: impl Listener + 'static, address: SocketAddr) -> Server {
        let routes = vec![Route::<EmptyService>::new(Method::Get, "/", (), |_, _| Ok(Response::text(200, "here")))];
        let app = Arc::new(Bound { router: Router::new(routes), service: Arc::new(EmptyService) });
        let limits = GuardLimits { accept_pause: Duration::from_millis(5), ..GuardLimits::default() };
        let options = ServerOptions { limits, ..ServerOptions::new(address, 2) };
        Server::start_on(listener, options, app, Arc::new(HttpMetrics::new(vec![("GET", "/")]))).unwrap()
    }

    fn response_to_get(server: &Server) -> String {
        let mut client = TcpStream::connect(server.local_addr()).unwrap();
        client.set_read_timeout(Some(WAIT_MAX)).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn accept_continues_after_running_out_of_descriptors() {
        let (emfile, enfile, econnaborted) = (24, 23, 103);
        let (listener, address) = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let errors = [emfile, enfile, econnaborted, emfile];
        let server = start_on(Failing { listener, errors, failed: AtomicUsize::new(0) }, address);
        assert!(response_to_get(&server).ends_with("here"));
        assert_eq!(server.metrics().connections().accept_errors, 3, "a client that went away is no failure");
        assert_eq!(server.stop(WAIT_MAX), 0);
    }
}
