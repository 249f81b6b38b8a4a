//! A server: the guard, the handlers behind it, and their end.
//!
//! Invariant: after [`Server::stop`] nothing listens, and no connection is open; a handler that doesn't come to an end
//! is left behind with its thread alone.

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

use super::descriptors;
use super::front::{Acceptor, Front};
use super::hosts::AllowedHosts;
use super::inner::Inner;
use super::lanes::Lanes;
use super::limits::{CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS_MAX, GuardLimits};
use super::metrics::HttpMetrics;
use super::pool::Pool;
use super::router::{App, Bound, Router, Service};
use super::shared::{Inbound, Parts, Shared};

/// Connections that the system holds for us before they are accepted.
const BACKLOG: i32 = 1_024;
/// Handlers beside the common ones, for [`super::router::Lane::Light`].
const LIGHT_HANDLERS: usize = 4;
/// Handlers beside those, for [`super::router::Lane::Probe`].
const PROBE_HANDLERS: usize = 4;
/// Stack of a thread that serves a connection, in bytes; only touched pages cost memory.
const RELAY_STACK_BYTES: usize = 1 << 20;
/// Stack of a handler's thread, in bytes.
const HANDLER_STACK_BYTES: usize = 4 << 20;
/// Stack of the two threads that distribute, in bytes.
const FRONT_STACK_BYTES: usize = 512 << 10;
/// How long idle connections are served after a stop has begun.
const IDLE_DRAIN_MAX: Duration = Duration::from_secs(1);
/// How long a handler takes, at most, to give its place back once its answer is sent.
const PLACES_BACK_MAX: Duration = Duration::from_millis(500);
/// What connections get to end after they were cut.
const CUT_TIME_MAX: Duration = Duration::from_secs(2);

/// How a server runs.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Requests that handlers work on at a time, besides light ones; at least 1.
    pub handlers: usize,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<AddressRange>,
    /// Names under which requests may address the service.
    pub hosts: AllowedHosts,
    pub limits: GuardLimits,
}

impl ServerOptions {
    /// Options with the figures of [`GuardLimits::default`], no trusted proxies, and any host.
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
    #[error("can't make a private socket under `{}`: {source}; set TMPDIR to a folder that can be written", folder.display())]
    PrivateSocket { folder: std::path::PathBuf, source: io::Error },
    #[error("can't start a thread of the http server: {source}")]
    Thread { source: io::Error },
}

/// A running server. Dropped, it stops at once.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    front_ended: Receiver<()>,
    threads: Vec<JoinHandle<()>>,
    pools: [Pool; 2],
    stopped: bool,
}

impl Server {
    /// Listens, and serves `router`'s routes on `service`.
    ///
    /// # Errors
    /// [`StartError`]: the address can't be had, or the system has no room for socket or threads.
    pub fn start<S: Service>(options: ServerOptions, router: Router<S>, service: Arc<S>) -> Result<Self, StartError> {
        let labels = router.routes().iter().map(|route| (route.method.as_str(), route.pattern)).collect();
        let metrics = Arc::new(HttpMetrics::new(labels));
        let (listener, address) = bind(options.address)?;
        Self::start_on(listener, ServerOptions { address, ..options }, Arc::new(Bound { router, service }), metrics)
    }

    fn start_on<L: Acceptor + 'static>(
        listener: L,
        options: ServerOptions,
        app: Arc<dyn App>,
        metrics: Arc<HttpMetrics>,
    ) -> Result<Self, StartError> {
        let ServerOptions { address, handlers, trusted_proxies, hosts, mut limits } = options;
        leave_descriptors(&mut limits);
        let private = |source| StartError::PrivateSocket { folder: std::env::temp_dir(), source };
        let inner = Arc::new(Inner::new().map_err(private)?);
        let (waker, woken) = waker_pair().map_err(private)?;
        let (inbox, mail) = unbounded();
        let handlers = handlers.max(1);
        let lanes = Lanes::new(handlers, LIGHT_HANDLERS, PROBE_HANDLERS);
        let relays_max = limits.connections_max + limits.probe_connections_max;
        let relays = Pool::new("http-relay", RELAY_STACK_BYTES, relays_max);
        let handlers_max = handlers + LIGHT_HANDLERS + PROBE_HANDLERS;
        let handler_pool = Pool::new("http-handler", HANDLER_STACK_BYTES, handlers_max);
        let shared = Shared::new(Parts { app, limits, trusted_proxies, hosts, metrics, inner, lanes, inbox, waker });
        let pools = [relays.clone(), handler_pool.clone()];
        let (ended, front_ended) = bounded(1);
        let mut server = Self { shared, address, front_ended, threads: Vec::new(), pools, stopped: false };
        let front = Front::new(Arc::clone(&server.shared), listener, mail, woken, relays);
        server.thread("http-front", move || {
            front.run();
            // Nobody waits for it if the server is gone.
            let _ = ended.send(());
        })?;
        let shared = Arc::clone(&server.shared);
        server.thread("http-dispatch", move || shared.inner.dispatch(&shared.app, &handler_pool))?;
        Ok(server)
    }

    fn thread(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StartError> {
        let builder = Builder::new().name(name.into()).stack_size(FRONT_STACK_BYTES);
        self.threads.push(builder.spawn(work).map_err(|source| StartError::Thread { source })?);
        Ok(())
    }

    /// Where it listens, with the port that was taken.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub fn metrics(&self) -> Arc<HttpMetrics> {
        Arc::clone(&self.shared.metrics)
    }

    /// Takes no more connections, closes the idle ones after [`IDLE_DRAIN_MAX`], waits at most `grace` for requests in work, and cuts the rest.
    /// Returns how many handlers were still at work at the end.
    pub fn stop(mut self, grace: Duration) -> usize {
        self.end(grace)
    }

    fn end(&mut self, grace: Duration) -> usize {
        if std::mem::replace(&mut self.stopped, true) {
            return 0;
        }
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.give_back(Inbound::Stop { idle_until: Instant::now() + grace.min(IDLE_DRAIN_MAX) });
        if self.front_ended.recv_timeout(grace).is_err() {
            tracing::warn!(connections = self.shared.in_work(), "cutting connections that are still in work");
            self.shared.cut_all();
            let _ = self.front_ended.recv_timeout(CUT_TIME_MAX);
        }
        self.shared.inner.stop();
        self.pools.iter().for_each(Pool::close);
        let left = self.shared.lanes.busy_after(PLACES_BACK_MAX);
        let joined = std::mem::take(&mut self.threads).into_iter().filter(|thread| left == 0 || thread.is_finished());
        for thread in joined {
            if thread.join().is_err() {
                tracing::error!("a thread of the http server panicked");
            }
        }
        left
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Takes fewer clients at a time where the process has few descriptors.
fn leave_descriptors(limits: &mut GuardLimits) {
    let files = descriptors::raise_limit();
    let fit = descriptors::connections_that_fit(files, limits.connections_max);
    if fit < limits.connections_max {
        let usual = limits.connections_max;
        tracing::warn!(limit = files, clients = fit, usual, "fewer clients than usual: the limit of open files is low");
        limits.connections_max = fit;
        let share = (fit * CONNECTIONS_PER_ADDRESS_MAX).div_ceil(CONNECTIONS_MAX);
        limits.connections_per_address_max = limits.connections_per_address_max.min(share);
        limits.probe_connections_max = (fit * limits.probe_connections_max).div_ceil(CONNECTIONS_MAX);
    }
}

fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let listen = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() {
            // `::` takes IPv4 too, as people expect of it.
            socket.set_only_v6(false)?;
        }
        // A restart need not wait for the connections of the last run.
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

    use super::super::{ApiError, Caller, Head, Method, Response, Route};
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    struct Nothing;

    impl Service for Nothing {
        type Credential = ();

        fn authorize(&self, (): (), _: &Head) -> Result<Caller, ApiError> {
            Ok(Caller::Anonymous)
        }
    }

    /// Fails so many times before it works.
    struct Failing {
        listener: TcpListener,
        errors: [i32; 4],
        failed: AtomicUsize,
    }

    impl Acceptor for Failing {
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

    fn start_on(listener: impl Acceptor + 'static, address: SocketAddr) -> Server {
        let routes = vec![Route::<Nothing>::new(Method::Get, "/", (), |_, _| Ok(Response::text(200, "here")))];
        let app = Arc::new(Bound { router: Router::new(routes), service: Arc::new(Nothing) });
        let limits = GuardLimits { accept_pause: Duration::from_millis(5), ..GuardLimits::default() };
        let options = ServerOptions { limits, ..ServerOptions::new(address, 2) };
        Server::start_on(listener, options, app, Arc::new(HttpMetrics::new(vec![("GET", "/")]))).unwrap()
    }

    fn ask(server: &Server) -> String {
        let mut client = TcpStream::connect(server.local_addr()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn accept_goes_on_after_the_system_had_no_descriptor_left() {
        let (emfile, enfile, econnaborted) = (24, 23, 103);
        let (listener, address) = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let errors = [emfile, enfile, econnaborted, emfile];
        let server = start_on(Failing { listener, errors, failed: AtomicUsize::new(0) }, address);
        assert!(ask(&server).ends_with("here"));
        assert_eq!(server.metrics().connections().accept_errors, 3, "a client that went away is no failure");
        assert_eq!(server.stop(PATIENCE), 0);
    }

    #[test]
    fn the_inner_listener_is_made_anew_when_it_ends() {
        let (listener, address) = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let server = start_on(listener, address);
        let inner = Arc::clone(&server.shared.inner);
        for generation in 0..3 {
            assert!(ask(&server).ends_with("here"));
            inner.renew(generation);
            let begun = Instant::now();
            while inner.generation() == generation {
                assert!(begun.elapsed() < PATIENCE);
                std::thread::yield_now();
            }
        }
        assert!(ask(&server).ends_with("here"));
        assert_eq!(server.stop(PATIENCE), 0);
    }

    #[test]
    fn the_private_socket_is_in_a_folder_of_its_owner_and_goes_with_the_server() {
        use std::os::unix::fs::PermissionsExt;
        let (listener, address) = bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let server = start_on(listener, address);
        let folder = server.shared.inner.folder();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(server.stop(PATIENCE), 0);
        let begun = Instant::now();
        while folder.exists() {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
    }
}
