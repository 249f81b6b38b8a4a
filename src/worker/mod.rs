//! The worker: claims jobs from the stream and runs them, and fires debounce windows and waiting jobs when they are due.
//!
//! ```text
//! claimer ──entry──> executors (one per running job, each with a heartbeat and a progress thread)
//! scheduler: debounce windows, requested runs, waiting jobs, lost jobs
//! reconciler: compares the lake with the tables
//! event queue: events of new objects from SQS
//! notifier: delivers notifications                         conditions: silent sources, full disks, jobs that can't run
//! ```
//! Invariants:
//! - a job is claimed only when an executor is free and no circuit breaker is open;
//! - only the holder of a pipeline's lock writes for it, and the terminal record comes before the acknowledgement;
//! - every job is safe to run twice, so that another worker can repeat the job of a worker that died.
//!
//! Must not: know a backend; it uses `ports` only.

mod breaker;
mod claim;
mod config;
mod drain;
mod event_queue;
mod event_queue_state;
pub mod events;
mod exclusive;
mod execute;
mod finish;
mod heartbeat;
pub mod http;
mod index_jobs;
mod lake;
mod left_to_others;
mod lifetime;
mod notify;
mod observe;
mod probe;
mod reconcile;
mod record;
mod refunds;
mod retention;
mod retry;
mod run;
mod schedule;
mod shared;
mod state;
mod stopping;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::ports::event_queue::QUEUE_CALL_TIME_MAX;
use crate::ports::store::LakeChange;
use crate::ports::{Expressions, IcebergCatalog, Kv, NotificationTarget, ObjectStore};
use crate::runtime::threads;
use crate::runtime::watchdog::RESPONSE_WAIT_MAX;
use crate::runtime::{Clock, WatchedThread};
use crate::sync::Monitor;

pub use breaker::{Breakers, Dependency};
pub use event_queue::QueuedEvents;
use exclusive::ExclusiveGate;
use left_to_others::LeftToOthers;
pub use lifetime::Lifetime;
use lifetime::{WorkSource, WorkSources};
use refunds::Refunds;
pub use shared::WorkerOptions;
use shared::WorkerShared;
pub use state::{WorkerCounts, WorkerState};
pub use stopping::{Phase, Stopping};

/// The ports that a worker uses.
#[derive(Clone)]
pub struct WorkerParts {
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    pub clock: Arc<dyn Clock>,
    pub expressions: Arc<dyn Expressions>,
    /// The catalog that Iceberg tables are published in.
    pub catalog: Option<Arc<dyn IcebergCatalog>>,
    /// Change notifications, if the lake's store can watch it.
    pub lake_changes: Option<Receiver<LakeChange>>,
    /// A queue that events of the lake come from.
    pub event_queue: Option<QueuedEvents>,
    /// Notification targets; without any, no notifications are sent.
    pub targets: Vec<Arc<dyn NotificationTarget>>,
}

/// A running worker.
pub struct Worker {
    shared: Arc<WorkerShared>,
    /// The claimer and the executors.
    threads: Vec<threads::Thread>,
    /// How many service threads run.
    services: Arc<Monitor<usize>>,
}

/// Counts a service thread until dropped.
struct ServiceGuard(Arc<Monitor<usize>>);

impl ServiceGuard {
    fn new(services: &Arc<Monitor<usize>>) -> Self {
        services.update(|running| *running += 1);
        Self(Arc::clone(services))
    }
}

impl Drop for ServiceGuard {
    fn drop(&mut self) {
        self.0.update(|running| *running -= 1);
    }
}

/// How long service threads may take to end.
const SERVICES_END_MAX: Duration = Duration::from_secs(5);
/// Pause before a panicked thread restarts.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

impl Worker {
    /// Starts the threads and returns. `state` counts events; `stopping` ends the worker.
    ///
    /// # Errors
    /// If a thread can't be started.
    pub fn start(
        parts: WorkerParts,
        options: WorkerOptions,
        state: Arc<WorkerState>,
        stopping: Arc<Stopping>,
    ) -> std::io::Result<Self> {
        let (lake_changes, event_queue) = (parts.lake_changes, parts.event_queue);
        let shared = Arc::new(WorkerShared {
            store: parts.store,
            kv: parts.kv,
            clock: parts.clock,
            expressions: parts.expressions,
            catalog: parts.catalog,
            targets: parts.targets,
            state,
            gate: ExclusiveGate::default(),
            refunds: Refunds::default(),
            left_to_others: LeftToOthers::default(),
            sources: WorkSources::default(),
            options,
            stopping,
        });
        // A worker that can't start or record jobs must not claim any.
        for dependency in [Dependency::Store, Dependency::Kv, Dependency::Host] {
            shared.state.breakers.suspect(dependency);
        }
        let mut worker = Self { threads: Vec::new(), shared: Arc::clone(&shared), services: Arc::default() };
        let started = worker.spawn_all(lake_changes, event_queue);
        if started.is_err() {
            shared.stopping.enter(Phase::ForceStop);
        }
        started.map(|()| worker)
    }

    fn spawn_all(
        &mut self,
        lake_changes: Option<Receiver<LakeChange>>,
        event_queue: Option<QueuedEvents>,
    ) -> std::io::Result<()> {
        let queue = claim::ExecutorQueue::default();
        for _ in 0..self.shared.options.concurrency {
            let (shared, queue) = (Arc::clone(&self.shared), queue.clone());
            // A run may take any time, so only the thread's existence is checked.
            self.spawn("executor", Duration::MAX, move |watched| {
                watched.waiting(|| claim::execute_all(&shared, &queue))
            })?;
        }
        let shared = Arc::clone(&self.shared);
        let executors = queue.clone();
        self.spawn("claimer", RESPONSE_WAIT_MAX, move |watched| claim::run(&shared, queue, watched))?;
        let shared = Arc::clone(&self.shared);
        self.spawn_service("windows", RESPONSE_WAIT_MAX, move |_, watched| {
            schedule::windows(&shared, &executors, watched);
        })?;
        self.spawn_service("waiting", RESPONSE_WAIT_MAX, schedule::waiting)?;
        self.shared.sources.expect(WorkSource::Comparison);
        self.spawn_service("job-index", reconcile::COMPARING_TIME_MAX, index_jobs::run)?;
        self.spawn_service("reconciler", reconcile::COMPARING_TIME_MAX, reconcile::run)?;
        if !self.shared.targets.is_empty() {
            self.shared.sources.expect(WorkSource::Notifications);
            let longest = notify::deliver::DELIVERY_TIME_MAX;
            self.spawn_service("notifier", longest, notify::deliver::run)?;
            let longest = reconcile::COMPARING_TIME_MAX;
            self.spawn_service("conditions", longest, notify::conditions::run)?;
        }
        if let Some(source) = event_queue {
            self.shared.sources.expect(WorkSource::EventQueue);
            let longest = 2 * QUEUE_CALL_TIME_MAX + RESPONSE_WAIT_MAX;
            self.spawn_service("event-queue", longest, move |shared, watched| {
                event_queue::run(shared, &source, watched);
            })?;
        }
        if let Some(changes) = lake_changes {
            let longest = reconcile::COMPARING_TIME_MAX;
            self.spawn_service("lake", longest, move |shared, watched| lake::run(shared, &changes, watched))?;
        }
        Ok(())
    }

    /// Starts a service thread, which a panic doesn't end. `waiting_max`: its longest wait for a dependency.
    fn spawn_service(
        &mut self,
        name: &'static str,
        waiting_max: Duration,
        body: impl Fn(&WorkerShared, &WatchedThread) + Send + 'static,
    ) -> std::io::Result<()> {
        let (shared, guard) = (Arc::clone(&self.shared), ServiceGuard::new(&self.services));
        let watched = shared.state.watchdog.watch(name, waiting_max);
        // Never joined: it may hang in a call to a store.
        threads::spawn(name, move || {
            let _guard = guard;
            while catch_unwind(AssertUnwindSafe(|| body(&shared, &watched))).is_err() {
                tracing::error!(thread = name, "worker thread panicked; restarting");
                if shared.stopping.wait_for(Phase::Drain, PANIC_PAUSE) {
                    return;
                }
            }
        })?;
        Ok(())
    }

    fn spawn(
        &mut self,
        name: &'static str,
        waiting_max: Duration,
        body: impl FnOnce(&WatchedThread) + Send + 'static,
    ) -> std::io::Result<()> {
        let watched = self.shared.state.watchdog.watch(name, waiting_max);
        self.threads.push(threads::spawn(name, move || body(&watched))?);
        Ok(())
    }

    /// Waits until no job is in flight, then leaves the consumer group. A thread that hangs in a call to a store is left
    /// behind.
    pub fn join(self) {
        for thread in self.threads {
            thread.join();
        }
        self.services.wait(SERVICES_END_MAX, |running| (*running == 0).then_some(()));
        if let Err(error) = self.shared.kv.remove_consumer(&self.shared.options.name) {
            tracing::debug!(%error, "leaving the consumer group failed; a later worker removes the consumer");
        }
    }
}
