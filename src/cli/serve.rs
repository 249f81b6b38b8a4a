//! A worker and its HTTP surface, from start to end: what `worker` and `up` share; and what every server shares.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::services::{Backend, Services};
use super::supervisor::{EndTeller, Watched};
use crate::adapters::fs::LakeWatch;
use crate::config::{Endpoint, WorkerConfig};
use crate::http::credentials::MetricsAccess;
use crate::http::{AllowedHosts, Router, Server, ServerOptions, Service, StartError};
use crate::ports::Expressions;
use crate::system::ProcessFolder;
use crate::worker::http::health::Checks;
use crate::worker::http::{Refusals, Surface, router};
use crate::worker::{Options, Parts, Phase, State, Stopping, Worker};

/// Comparing the lake of a folder with its tables needs only listings, so it is done often.
const RECONCILE_FOLDER: Duration = Duration::from_secs(60);
/// Threads that handle requests.
const HANDLERS: usize = 8;
/// What the service manager is told of a drain without a limit.
const UNBOUNDED_DRAIN: Duration = Duration::from_secs(365 * 86_400);
/// How long jobs get to go back to the queue once the limit of the drain has passed.
const ABANDON_MAX: Duration = Duration::from_secs(10);
/// Exit status of a process that a signal ended.
pub const EXIT_STATUS_KILLED: i32 = 130;
/// How long requests may take to end once the jobs have.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// A worker that runs until it is told to end.
pub struct Serving {
    worker: Worker,
    server: Server,
    signals: Handle,
    stopping: Arc<Stopping>,
    state: Arc<State>,
    executors: usize,
    _watch: Option<LakeWatch>,
    _scratch: ProcessFolder,
}

impl Serving {
    /// `port_setting`: what the port is set by. `ends` is told when a signal says that the worker is to end.
    ///
    /// # Errors
    /// A message for what can't be started, and what to do.
    pub(super) fn start(
        config: &WorkerConfig,
        services: &Services,
        expressions: Arc<dyn Expressions>,
        port_setting: &str,
        ends: EndTeller,
    ) -> Result<Self, String> {
        let name = worker_name();
        let scratch = ProcessFolder::make(&config.scratch_dir, &name).map_err(|error| {
            let folder = config.scratch_dir.display();
            format!("scratch folder `{folder}`: {error}; SVC_SCRATCH_DIR names another")
        })?;
        let folder = matches!(config.objects.endpoint, Endpoint::Folder(_));
        let options = Options {
            name,
            concurrency: config.concurrency,
            attempts_max: config.attempts_max,
            lease: config.lease,
            scratch_dir: scratch.path().to_owned(),
            run_memory_bytes: config.run_memory_bytes,
            reconcile: config.reconcile.or(folder.then_some(RECONCILE_FOLDER)),
        };
        let (watch, lake_changes) = match &services.backend {
            Backend::S3(_) => (None, None),
            Backend::Folder(store) => {
                let (watch, changes) = store.watch().map_err(|e| format!("watching the lake: {e}"))?;
                (Some(watch), Some(changes))
            }
        };
        let parts = Parts {
            store: Arc::clone(&services.store),
            kv: Arc::clone(&services.kv),
            clock: Arc::clone(&services.clock),
            expressions: Arc::clone(&expressions),
            lake_changes,
        };
        let state = Arc::<State>::default();
        let stopping = Arc::<Stopping>::default();
        let surface = Arc::new(Surface {
            store: Arc::clone(&services.store),
            kv: Arc::clone(&services.kv),
            expressions,
            state: Arc::clone(&state),
            stopping: Arc::clone(&stopping),
            lake_bucket: config.objects.buckets.lake.clone(),
            worker_token: config.worker_token.clone(),
            webhook_secret: config.webhook_secret.clone(),
            metrics_access: MetricsAccess::new(
                config.server.metrics_token.clone(),
                !config.server.trusted_proxies.is_empty(),
            ),
            refusals: Refusals::default(),
            executors: config.concurrency,
            scratch_dir: scratch.path().to_owned(),
            checks: Checks::default(),
            http: OnceLock::new(),
        });
        let address = SocketAddr::new(config.server.bind, config.server.port);
        let listening = ServerOptions {
            trusted_proxies: config.server.trusted_proxies.clone(),
            hosts: AllowedHosts::of(config.server.allowed_hosts.iter().map(String::as_str)),
            ..ServerOptions::new(address, HANDLERS)
        };
        // Listening first: a port that is taken must not cost a job its attempt.
        let server = start_server(listening, router(), Arc::clone(&surface), port_setting)?;
        let _ = surface.http.set(server.metrics());
        let signals = urge_at_signals(Arc::clone(&stopping), config.drain_max, ends);
        let signals = signals.map_err(|e| format!("listening to signals: {e}"))?;
        let worker = Worker::start(parts, options, Arc::clone(&state), Arc::clone(&stopping))
            .map_err(|e| format!("starting threads: {e}"))?;
        tracing::info!(address = %server.local_addr(), "the worker is at work");
        let executors = config.concurrency;
        Ok(Self { worker, server, signals, stopping, state, executors, _watch: watch, _scratch: scratch })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// What tells whether it is alive.
    pub(super) fn watched(&self) -> Watched {
        let (state, executors) = (Arc::clone(&self.state), self.executors);
        let status = move || {
            let counts = state.counts();
            let (running, completed, failed) = (counts.in_flight, counts.completed, counts.failed);
            format!("{running} of {executors} executors run jobs; {completed} jobs completed here, {failed} failed")
        };
        Watched {
            addresses: vec![self.address()],
            watchdogs: vec![Arc::clone(&self.state.watchdog)],
            status: Box::new(status),
        }
    }

    /// Ends at once; jobs in flight go back to the queue.
    pub fn abandon(self) {
        self.stopping.enter(Phase::Abandon);
        self.wait(|| {});
    }

    /// Waits until the worker was told to end and its jobs are done; then does `last`, and ends.
    pub fn wait(self, last: impl FnOnce()) {
        self.worker.join();
        last();
        self.server.stop(LAST_REQUESTS);
        self.signals.close();
        tracing::info!("the worker has ended");
    }
}

/// Starts a server. `port_setting`: what its port is set by.
///
/// # Errors
/// A message, and what to do.
pub fn start_server<S: Service>(
    options: ServerOptions,
    router: Router<S>,
    service: Arc<S>,
    port_setting: &str,
) -> Result<Server, String> {
    Server::start(options, router, service).map_err(|error| match error {
        StartError::Bind { address, source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            taken(&address, port_setting)
        }
        error => error.to_string(),
    })
}

fn taken(address: &dyn std::fmt::Display, port_setting: &str) -> String {
    format!("can't listen on `{address}`: another program does; stop it, or set another port by {port_setting}")
}

/// Looks whether an address can be had, for who starts several servers, so that none is at work when another can't be.
///
/// # Errors
/// As [`start_server`], if another program has it; whatever else there is to say is left to that.
pub fn look_free(address: SocketAddr, port_setting: &str) -> Result<(), String> {
    match std::net::TcpListener::bind(address) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(taken(&address, port_setting)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// SIGTERM and SIGINT: the first lets the jobs end, for `drain_max` at most if it is set, the second gives them back, and the third
/// ends the process where it stands (waiting for a store that doesn't answer, say): another worker takes its jobs over.
fn urge_at_signals(stopping: Arc<Stopping>, drain_max: Option<Duration>, ends: EndTeller) -> std::io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            if stopping.phase() == Phase::Abandon {
                tracing::warn!("told to end once more: the process ends; its jobs will be taken over");
                std::process::exit(EXIT_STATUS_KILLED);
            }
            match stopping.urge() {
                Phase::Working => {}
                Phase::Drain => {
                    tracing::info!("told to end: no new job is taken, those in flight go on to their end");
                    ends.ending(drain_max.unwrap_or(UNBOUNDED_DRAIN));
                    if let Some(drain_max) = drain_max {
                        bound_drain(&stopping, drain_max);
                    }
                }
                Phase::Abandon => tracing::info!("told to end at once: jobs in flight go back to the queue"),
            }
        }
    })?;
    Ok(handle)
}

/// Has the jobs given back that are still on after `drain_max`, and ends the process if a job can't be interrupted, for
/// example while a store doesn't answer: another worker takes it over.
fn bound_drain(stopping: &Arc<Stopping>, drain_max: Duration) {
    let waiting = Arc::clone(stopping);
    let started = std::thread::Builder::new().name("drain".into()).spawn(move || {
        if !waiting.wait_for(Phase::Abandon, drain_max) {
            let seconds = drain_max.as_secs();
            tracing::warn!(seconds, "jobs are in flight after SVC_DRAIN_SECONDS still; they go back to the queue");
            waiting.enter(Phase::Abandon);
        }
        std::thread::sleep(ABANDON_MAX);
        tracing::warn!("jobs in flight could not be interrupted: the process ends; its jobs will be taken over");
        std::process::exit(EXIT_STATUS_KILLED);
    });
    if let Err(error) = started {
        tracing::error!(%error, "the time of the last jobs is not bounded");
    }
}

/// `host-pid-random`: a name that no other worker has, nor had.
fn worker_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String =
        host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).take(63).collect();
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}-{}", if host.is_empty() { "worker" } else { &host }, std::process::id(), &random[..8])
}
