//! The worker: takes jobs from the stream and runs them, and serves what becomes due by itself.
//!
//! ```text
//! claimer ──entry──> executors (one a running job, each with a keeper and a teller)
//! scheduler: debounce windows, waiting jobs, lost jobs     reconciler: the lake against what was made of it
//! ```
//! Invariants:
//! - a job is claimed only when an executor is free and no circuit breaker is open;
//! - only who holds a pipeline's lock writes for it, and the terminal record comes before the acknowledgement;
//! - every job is safe to run twice, so that whatever dies can be done again by another worker.
//!
//! Must not: know a backend; it sees `ports` alone.

mod alone;
mod attempt;
mod breaker;
mod claim;
mod config;
mod execute;
mod finish;
pub mod http;
mod keeper;
mod lake;
mod observe;
mod probe;
mod reconcile;
mod retrying;
mod schedule;
mod state;
mod stopping;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::config::LeaseConfig;
use crate::ports::store::LakeChange;
use crate::ports::{Expressions, Kv, ObjectStore};
use crate::runtime::threads;
use crate::runtime::watchdog::RESPONSE_WAIT_MAX;
use crate::runtime::{Clock, WatchedThread};
use crate::sync::Monitor;

use alone::Alone;
pub use breaker::{Breakers, Dependency};
use probe::Refunds;
pub use state::{Counts, State};
pub use stopping::{Phase, Stopping};

/// What a worker works with.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    pub clock: Arc<dyn Clock>,
    pub expressions: Arc<dyn Expressions>,
    /// News of a lake that tells by itself what came into it.
    pub lake_changes: Option<Receiver<LakeChange>>,
}

/// How a worker works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names this process among all workers; never used by two at a time.
    pub name: String,
    /// Jobs at a time, from 1.
    pub concurrency: usize,
    /// Starts of a job before it has failed for good, from 1.
    pub attempts_max: u32,
    pub lease: LeaseConfig,
    /// An existing folder of this process's own.
    pub scratch_dir: PathBuf,
    /// Memory of one run.
    pub run_memory_bytes: u64,
    /// How often the lake is compared with what was made of it; `None`: only after the key-value store lost its data.
    pub reconcile: Option<Duration>,
}

/// What the threads of a worker share.
struct Shared {
    store: Arc<dyn ObjectStore>,
    kv: Arc<dyn Kv>,
    clock: Arc<dyn Clock>,
    expressions: Arc<dyn Expressions>,
    options: Options,
    stopping: Arc<Stopping>,
    state: Arc<State>,
    alone: Alone,
    refunds: Refunds,
}

/// A running worker.
pub struct Worker {
    shared: Arc<Shared>,
    /// The claimer and the executors.
    threads: Vec<threads::Thread>,
    /// How many of the threads that serve all pipelines have not ended.
    serving: Arc<Monitor<usize>>,
}

/// Counts a thread until it is dropped.
struct Serving(Arc<Monitor<usize>>);

impl Serving {
    fn begin(of: &Arc<Monitor<usize>>) -> Self {
        of.update(|serving| *serving += 1);
        Self(Arc::clone(of))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.update(|serving| *serving -= 1);
    }
}

/// How long the threads that serve all pipelines get to end.
const SERVING_END_MAX: Duration = Duration::from_secs(5);
/// Pause before a thread that panicked starts again.
const PANIC_PAUSE: Duration = Duration::from_secs(1);

impl Worker {
    /// Starts the threads; returns at once. `state` counts what happens, `stopping` tells the worker to end.
    ///
    /// # Errors
    /// If a thread can't be started.
    pub fn start(parts: Parts, options: Options, state: Arc<State>, stopping: Arc<Stopping>) -> std::io::Result<Self> {
        let lake_changes = parts.lake_changes;
        let shared = Arc::new(Shared {
            store: parts.store,
            kv: parts.kv,
            clock: parts.clock,
            expressions: parts.expressions,
            state,
            alone: Alone::default(),
            refunds: Refunds::default(),
            options,
            stopping,
        });
        // A worker that could not start or record a job must claim none.
        for dependency in [Dependency::Store, Dependency::Kv, Dependency::Host] {
            shared.state.breakers.suspect(dependency);
        }
        let mut worker = Self { threads: Vec::new(), shared: Arc::clone(&shared), serving: Arc::default() };
        let started = worker.spawn_all(lake_changes);
        if started.is_err() {
            shared.stopping.enter(Phase::Abandon);
        }
        started.map(|()| worker)
    }

    fn spawn_all(&mut self, lake_changes: Option<Receiver<LakeChange>>) -> std::io::Result<()> {
        let slots = claim::Slots::default();
        for _ in 0..self.shared.options.concurrency {
            let (shared, slots) = (Arc::clone(&self.shared), slots.clone());
            // A run may take any time: that the thread is there is all that is asked of it.
            self.spawn("executor", Duration::MAX, move |watched| {
                watched.waiting(|| claim::execute_all(&shared, &slots))
            })?;
        }
        let shared = Arc::clone(&self.shared);
        self.spawn("claimer", RESPONSE_WAIT_MAX, move |watched| claim::run(&shared, slots, watched))?;
        let shared = Arc::clone(&self.shared);
        self.serve("windows", RESPONSE_WAIT_MAX, move |_, watched| schedule::windows(&shared, watched))?;
        self.serve("waiting", RESPONSE_WAIT_MAX, schedule::waiting)?;
        self.serve("reconciler", reconcile::COMPARING_TIME_MAX, reconcile::run)?;
        if let Some(changes) = lake_changes {
            let longest = reconcile::COMPARING_TIME_MAX;
            self.serve("lake", longest, move |shared, watched| lake::run(shared, &changes, watched))?;
        }
        Ok(())
    }

    /// Starts a thread that serves all pipelines: a panic must not end it. `waiting_max`: its longest wait for others.
    fn serve(
        &mut self,
        name: &'static str,
        waiting_max: Duration,
        body: impl Fn(&Shared, &WatchedThread) + Send + 'static,
    ) -> std::io::Result<()> {
        let (shared, serving) = (Arc::clone(&self.shared), Serving::begin(&self.serving));
        let watched = shared.state.watchdog.watch(name, waiting_max);
        // Left to itself, since it may hang at a store that doesn't answer.
        threads::spawn(name, move || {
            // Dropped at the end, which tells of it.
            let _serving = serving;
            while catch_unwind(AssertUnwindSafe(|| body(&shared, &watched))).is_err() {
                tracing::error!(thread = name, "a thread of the worker panicked; it starts again");
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

    /// Waits until no job is in flight any more, then leaves the group of consumers. A thread that waits for a store
    /// which doesn't answer is left behind.
    pub fn join(self) {
        for thread in self.threads {
            thread.join();
        }
        self.serving.wait(SERVING_END_MAX, |serving| (*serving == 0).then_some(()));
        if let Err(error) = self.shared.kv.remove_consumer(&self.shared.options.name) {
            tracing::debug!(%error, "the consumer stays; a later worker removes it");
        }
    }
}
