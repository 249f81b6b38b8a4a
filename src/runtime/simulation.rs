//! Deterministic simulation of threads, for tests.
//!
//! A thread can belong to a [`Simulation`], as do the threads that it spawns. The simulation decides which of them runs
//! and how much time has passed, so that a test runs the real protocol in any order, repeatably.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Simulation>>> = const { RefCell::new(None) };
}

/// One thread's handle on the simulation. Methods that yield unwind if the thread's process was killed meanwhile; the
/// others say "never unwinds".
pub trait Simulation: Send + Sync {
    /// Simulated time since the start. Never unwinds.
    fn now(&self) -> Duration;

    /// Yields until [`Simulation::wake`] is called for the same `address`, or for `timeout`.
    fn wait(&self, address: usize, timeout: Duration);

    /// Wakes the threads that wait for `address`. Never unwinds.
    fn wake(&self, address: usize);

    /// A random number in 0.0..=1.0. Never unwinds.
    fn random_unit(&self) -> f64;

    /// The handle of a thread that is about to be spawned. Never unwinds.
    fn child(&self, name: &str) -> Arc<dyn Simulation>;

    /// Called first by the new thread: yields until it is scheduled.
    fn begin(&self);

    /// Called last by the thread. Never unwinds.
    fn end(&self);

    /// Yields until the thread of `child` has ended. Never unwinds.
    fn join(&self, child: &dyn Simulation);

    /// Identifies the thread within the simulation.
    fn number(&self) -> usize;
}

/// The simulation of this thread.
pub fn current() -> Option<Arc<dyn Simulation>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `body` as a thread of a simulation.
pub fn adopt<R>(simulation: Arc<dyn Simulation>, body: impl FnOnce() -> R) -> R {
    let before = CURRENT.replace(Some(simulation));
    let done = catch_unwind(AssertUnwindSafe(body));
    CURRENT.set(before);
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Waits until a simulated thread has ended.
pub(super) fn join(child: Option<&Arc<dyn Simulation>>) {
    if let (Some(parent), Some(child)) = (current(), child) {
        parent.join(&**child);
    }
}

type Body<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Registers a new thread with this thread's simulation, and wraps its body accordingly.
pub(super) fn register<'a>(name: &str, body: impl FnOnce() + Send + 'a) -> (Body<'a>, Option<Arc<dyn Simulation>>) {
    let Some(parent) = current() else { return (Box::new(body), None) };
    let child = parent.child(name);
    let own = Arc::clone(&child);
    let wrapped = move || {
        let done = catch_unwind(AssertUnwindSafe(|| {
            adopt(Arc::clone(&own), || {
                own.begin();
                body();
            });
        }));
        own.end();
        if let Err(panic) = done {
            resume_unwind(panic);
        }
    };
    (Box::new(wrapped), Some(child))
}
