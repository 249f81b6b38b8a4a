//! Runs a worker with its HTTP API, for `worker` and `up`; starts servers, for all services.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::services::{Backend, Services, open_catalog, open_event_queue};
use super::supervisor::{Notifier, Watched};
use crate::adapters::aws::SnsTopics;
use crate::adapters::fs::LakeWatch;
use crate::adapters::notify;
use crate::config::WorkerConfig;
use crate::http::credentials::MetricsAccess;
use crate::http::{AllowedHosts, Router, Server, ServerOptions, Service, StartError};
use crate::ports::Expressions;
use crate::system::ProcessFolder;
use crate::worker::http::{EventRejections, HealthChecks, WorkerApi, router};
use crate::worker::{Lifetime, Phase, QueuedEvents, Stopping, Worker, WorkerOptions, WorkerParts, WorkerState};

/// Concurrent handlers.
const HANDLERS: usize = 8;
/// The drain time reported to the service manager if the drain has no limit.
const UNBOUNDED_DRAIN: Duration = Duration::from_secs(365 * 86_400);
/// How long requeueing jobs may take once the limit of the drain has passed.
const REQUEUE_TIME_MAX: Duration = Duration::from_secs(10);
/// Exit status after repeated signals.
pub const EXIT_STATUS_KILLED: i32 = 130;
/// How long requests may take to complete once the jobs have.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// A worker that runs until it is stopped.
pub struct Serving {
    worker: Worker,
    server: Server,
    signals: Handle,
    stopping: Arc<Stopping>,
    state: Arc<WorkerState>,
    executors: usize,
    _watch: Option<LakeWatch>,
    _scratch: ProcessFolder,
}

impl Serving {
    /// `port_setting`: the name of the setting of the port. `notifier` is notified when a signal stops the worker.
    ///
    /// # Errors
    /// The part that can't be started, with advice.
    pub(super) fn start(
        config: &WorkerConfig,
        services: &Services,
        expressions: Arc<dyn Expressions>,
        port_setting: &str,
        notifier: Notifier,
        lifetime: Lifetime,
    ) -> Result<Self, String> {
        let name = worker_name();
        let scratch = ProcessFolder::make(&config.scratch_dir, &name).map_err(|error| {
            let folder = config.scratch_dir.display();
            format!("scratch folder `{folder}`: {error}; set another in SVC_SCRATCH_DIR")
        })?;
        let options = WorkerOptions {
            name,
            concurrency: config.concurrency,
            manual_executors: config.manual_executors,
            attempts_max: config.attempts_max,
            lease: config.lease,
            scratch_dir: scratch.path().to_owned(),
            run_memory_bytes: config.run_memory_bytes,
            reconcile: config.reconcile,
            job_records_days: config.job_records_days,
            public_url: config.notify.public_url.clone(),
            lifetime,
        };
        let (watch, lake_changes) = match &services.backend {
            Backend::S3(_) => (None, None),
            Backend::Folder(store) => {
                let (watch, changes) = store.watch().map_err(|e| format!("watching the lake: {e}"))?;
                (Some(watch), Some(changes))
            }
        };
        let lake_bucket = config.objects.buckets.lake.clone();
        let event_queue = open_event_queue(config, &services.backend)?;
        let event_queue = event_queue.map(|queue| QueuedEvents { queue, lake_bucket: lake_bucket.clone() });
        let has_event_queue = event_queue.is_some();
        let parts = WorkerParts {
            store: Arc::clone(&services.store),
            kv: Arc::clone(&services.kv),
            clock: Arc::clone(&services.clock),
            expressions: Arc::clone(&expressions),
            catalog: open_catalog(config.catalog.as_ref(), &config.objects, &services.backend)?,
            lake_changes,
            event_queue,
            targets: notify::open(&config.notify, &config.objects.network)?,
        };
        let topics = SnsTopics::open(&config.events, &config.objects.network);
        let topics = topics.map_err(|error| error.to_string())?;
        let state = Arc::<WorkerState>::default();
        let stopping = Arc::<Stopping>::default();
        let api = Arc::new(WorkerApi {
            store: Arc::clone(&services.store),
            kv: Arc::clone(&services.kv),
            expressions,
            state: Arc::clone(&state),
            stopping: Arc::clone(&stopping),
            lake_bucket,
            has_event_queue,
            worker_token: config.worker_token.clone(),
            webhook_secret: config.webhook_secret.clone(),
            topics: Arc::new(topics),
            metrics_access: MetricsAccess::new(
                config.server.metrics_token.clone(),
                !config.server.trusted_proxies.is_empty(),
            ),
            rejections: EventRejections::default(),
            executors: config.concurrency,
            manual_executors: config.manual_executors,
            metrics_pipelines: config.metrics_pipelines,
            scratch_dir: scratch.path().to_owned(),
            checks: HealthChecks::default(),
            http: OnceLock::new(),
        });
        let address = SocketAddr::new(config.server.bind, config.server.port);
        let listening = ServerOptions {
            trusted_proxies: config.server.trusted_proxies.clone(),
            hosts: AllowedHosts::of(config.server.allowed_hosts.iter().map(String::as_str)),
            ..ServerOptions::new(address, HANDLERS)
        };
        // Listens first, so that an occupied port costs no job an attempt.
        let server = start_server(listening, router(), Arc::clone(&api), port_setting)?;
        let _ = api.http.set(server.metrics());
        let signals = stop_on_signals(Arc::clone(&stopping), config.drain_max, notifier);
        let signals = signals.map_err(|e| format!("installing signal handlers: {e}"))?;
        let worker = Worker::start(parts, options, Arc::clone(&state), Arc::clone(&stopping))
            .map_err(|e| format!("starting threads: {e}"))?;
        tracing::info!(address = %server.local_addr(), "worker started");
        let executors = config.concurrency;
        Ok(Self { worker, server, signals, stopping, state, executors, _watch: watch, _scratch: scratch })
    }

    /// Counters of the worker, for after its end.
    pub fn state(&self) -> Arc<WorkerState> {
        Arc::clone(&self.state)
    }

    pub fn address(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The listeners and threads that the supervisor checks.
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

    /// Stops at once; jobs in flight are requeued.
    pub fn force_stop(self) {
        self.stopping.enter(Phase::ForceStop);
        self.wait(|| {});
    }

    /// Waits until the worker is stopped and its jobs are done, calls `last`, and closes the server.
    pub fn wait(self, last: impl FnOnce()) {
        self.worker.join();
        last();
        self.server.stop(LAST_REQUESTS);
        self.signals.close();
        tracing::info!("worker stopped");
    }
}

/// Starts a server. `port_setting`: the name of the setting of its port.
///
/// # Errors
/// A message with advice.
pub fn start_server<S: Service>(
    options: ServerOptions,
    router: Router<S>,
    service: Arc<S>,
    port_setting: &str,
) -> Result<Server, String> {
    Server::start(options, router, service).map_err(|error| match error {
        StartError::Bind { address, source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            port_in_use(&address, port_setting)
        }
        error => error.to_string(),
    })
}

fn port_in_use(address: &dyn std::fmt::Display, port_setting: &str) -> String {
    format!("can't listen on `{address}`: another program does; stop it, or set another port in {port_setting}")
}

/// Checks that an address is free, so that no server is started if another can't be.
///
/// # Errors
/// Another program listens there. [`start_server`] reports other errors.
pub fn check_free(address: SocketAddr, port_setting: &str) -> Result<(), String> {
    match std::net::TcpListener::bind(address) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(port_in_use(&address, port_setting)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Handles SIGTERM and SIGINT: the first drains, for `drain_max` at most if it is set; the second requeues jobs in flight;
/// the third exits at once, even if a store hangs: another worker reclaims the jobs.
fn stop_on_signals(
    stopping: Arc<Stopping>,
    drain_max: Option<Duration>,
    notifier: Notifier,
) -> std::io::Result<Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            if stopping.phase() == Phase::ForceStop {
                tracing::warn!("third stop signal; exiting, other workers reclaim the jobs");
                std::process::exit(EXIT_STATUS_KILLED);
            }
            match stopping.escalate() {
                Phase::Working => {}
                Phase::Drain => {
                    tracing::info!("stop signal; draining: no new job is claimed");
                    notifier.stopping(drain_max.unwrap_or(UNBOUNDED_DRAIN));
                    if let Some(drain_max) = drain_max {
                        bound_drain(&stopping, drain_max);
                    }
                }
                Phase::ForceStop => tracing::info!("second stop signal; requeueing jobs in flight"),
            }
        }
    })?;
    Ok(handle)
}

/// Requeues jobs that are in flight after `drain_max`, and exits if a job can't be interrupted, for example while a store
/// hangs: another worker reclaims it.
fn bound_drain(stopping: &Arc<Stopping>, drain_max: Duration) {
    let waiting = Arc::clone(stopping);
    let started = std::thread::Builder::new().name("drain".into()).spawn(move || {
        if !waiting.wait_for(Phase::ForceStop, drain_max) {
            let seconds = drain_max.as_secs();
            tracing::warn!(seconds, "SVC_DRAIN_SECONDS over; requeueing jobs in flight");
            waiting.enter(Phase::ForceStop);
        }
        std::thread::sleep(REQUEUE_TIME_MAX);
        tracing::warn!("jobs in flight not interrupted in time; exiting, other workers reclaim them");
        std::process::exit(EXIT_STATUS_KILLED);
    });
    if let Err(error) = started {
        tracing::error!(%error, "starting the drain timer failed; drain has no limit");
    }
}

/// `host-pid-random`: a unique name.
fn worker_name() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{}-{}", process_name(), &random[..8])
}

/// `host-pid`, for people.
pub fn process_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String =
        host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-.".contains(*c)).take(63).collect();
    format!("{}-{}", if host.is_empty() { "worker" } else { &host }, std::process::id())
}
