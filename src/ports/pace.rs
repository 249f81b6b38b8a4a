//! How the threads of the worker begin, wait and measure time.
//!
//! Without the feature `failpoints` it is all the standard library's. With it, a thread can belong to a [`Simulation`],
//! as its children do: that one says which of them goes on and how much time has passed, so that a test can let the
//! real protocol run in any order, and in the same one again.

use std::io;
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::Duration;

#[cfg(feature = "failpoints")]
pub use simulated::{Simulation, adopt, current};

/// A value that threads wait at until it is as they want it.
#[derive(Debug, Default)]
pub struct Gate<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Gate<T> {
    pub const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value, and lets all who wait look at it.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        #[cfg(feature = "failpoints")]
        if let Some(simulation) = current() {
            simulation.wake(self.place());
        }
        changed
    }

    /// Waits until `look` gives something, which is asked now and after each change; `None` after `at_most`.
    pub fn wait<R>(&self, at_most: Duration, mut look: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let began = Instant::now();
        let mut value = self.lock();
        loop {
            if let Some(found) = look(&mut value) {
                return Some(found);
            }
            let left = at_most.saturating_sub(began.elapsed());
            if left.is_zero() {
                return None;
            }
            value = self.wait_once(value, left);
        }
    }

    fn wait_once<'a>(&'a self, value: MutexGuard<'a, T>, at_most: Duration) -> MutexGuard<'a, T> {
        #[cfg(feature = "failpoints")]
        if let Some(simulation) = current() {
            drop(value);
            simulation.wait(self.place(), at_most);
            return self.lock();
        }
        self.changed.wait_timeout(value, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    #[cfg(feature = "failpoints")]
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// A moment, to measure how long ago it was.
#[derive(Debug, Clone, Copy)]
pub struct Instant {
    real: std::time::Instant,
    #[cfg(feature = "failpoints")]
    simulated: Option<Duration>,
}

impl Instant {
    pub fn now() -> Self {
        Self {
            real: std::time::Instant::now(),
            #[cfg(feature = "failpoints")]
            simulated: current().map(|simulation| simulation.now()),
        }
    }

    pub fn elapsed(&self) -> Duration {
        #[cfg(feature = "failpoints")]
        if let (Some(then), Some(simulation)) = (self.simulated, current()) {
            return simulation.now().saturating_sub(then);
        }
        self.real.elapsed()
    }
}

/// Random in 0.0..=1.0.
pub fn chance() -> f64 {
    #[cfg(feature = "failpoints")]
    if let Some(simulation) = current() {
        return simulation.chance();
    }
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

/// How many threads may do something at once, of the `wanted` ones: those that nobody simulates.
pub fn threads(wanted: usize) -> usize {
    #[cfg(feature = "failpoints")]
    if current().is_some() {
        return 1;
    }
    wanted
}

/// A thread that was begun.
pub struct Thread {
    handle: JoinHandle<()>,
    #[cfg(feature = "failpoints")]
    child: Option<std::sync::Arc<dyn Simulation>>,
}

/// Begins a thread.
///
/// # Errors
/// If the system has none left.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    #[cfg(feature = "failpoints")]
    let (body, child) = simulated::child(name, body);
    let handle = Builder::new().name(name.into()).spawn(body)?;
    Ok(Thread {
        handle,
        #[cfg(feature = "failpoints")]
        child,
    })
}

impl Thread {
    /// Waits for its end. A thread that panicked has said so.
    pub fn join(self) {
        #[cfg(feature = "failpoints")]
        simulated::await_end(self.child.as_ref());
        let _ = self.handle.join();
    }
}

/// A thread of a scope; whoever drops it waits for its end, and panics if it did.
pub struct ScopedThread<'scope> {
    handle: Option<ScopedJoinHandle<'scope, ()>>,
    #[cfg(feature = "failpoints")]
    child: Option<std::sync::Arc<dyn Simulation>>,
}

/// Begins a thread of a scope.
pub fn spawn_scoped<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() + Send + 'scope,
) -> io::Result<ScopedThread<'scope>> {
    #[cfg(feature = "failpoints")]
    let (body, child) = simulated::child(name, body);
    let handle = Builder::new().name(name.into()).spawn_scoped(scope, body)?;
    Ok(ScopedThread {
        handle: Some(handle),
        #[cfg(feature = "failpoints")]
        child,
    })
}

impl Drop for ScopedThread<'_> {
    fn drop(&mut self) {
        #[cfg(feature = "failpoints")]
        simulated::await_end(self.child.as_ref());
        let ended = self.handle.take().map_or(Ok(()), ScopedJoinHandle::join);
        // Who is panicking already says enough.
        if let Err(panic) = ended
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

#[cfg(feature = "failpoints")]
mod simulated {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Arc;
    use std::time::Duration;

    thread_local! {
        static CURRENT: RefCell<Option<Arc<dyn Simulation>>> = const { RefCell::new(None) };
    }

    type Body<'a> = Box<dyn FnOnce() + Send + 'a>;

    /// What one thread is told by whoever simulates it. A method that lets others go on unwinds if the thread's process
    /// was killed meanwhile; those that say so never do.
    pub trait Simulation: Send + Sync {
        /// The time that has passed. Never unwinds.
        fn now(&self) -> Duration;

        /// Lets others go on, until [`Simulation::wake`] is told of the same place, or for `at_most`.
        fn wait(&self, place: usize, at_most: Duration);

        /// Those who wait at the place go on. Never unwinds.
        fn wake(&self, place: usize);

        /// Random in 0.0..=1.0. Never unwinds.
        fn chance(&self) -> f64;

        /// For a thread that is about to begin. Never unwinds.
        fn child(&self, name: &str) -> Arc<dyn Simulation>;

        /// The first that the new thread calls: waits for its turn.
        fn begin(&self);

        /// The last that it calls. Never unwinds.
        fn end(&self);

        /// Lets others go on until the thread of `child` has ended. Never unwinds.
        fn await_end(&self, child: &dyn Simulation);

        /// Names the thread among those of the simulation.
        fn number(&self) -> usize;
    }

    pub fn current() -> Option<Arc<dyn Simulation>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Does `body` as a thread of a simulation.
    pub fn adopt<R>(simulation: Arc<dyn Simulation>, body: impl FnOnce() -> R) -> R {
        let before = CURRENT.replace(Some(simulation));
        let done = catch_unwind(AssertUnwindSafe(body));
        CURRENT.set(before);
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Waits for the end of a thread that is simulated.
    pub(super) fn await_end(child: Option<&Arc<dyn Simulation>>) {
        if let (Some(parent), Some(child)) = (current(), child) {
            parent.await_end(&**child);
        }
    }

    /// What a thread is to do, told to the simulation, and what its parent keeps of it.
    pub(super) fn child<'a>(name: &str, body: impl FnOnce() + Send + 'a) -> (Body<'a>, Option<Arc<dyn Simulation>>) {
        let Some(parent) = current() else { return (Box::new(body), None) };
        let child = parent.child(name);
        let own = Arc::clone(&child);
        let begun = move || {
            let told = Arc::clone(&own);
            let done = catch_unwind(AssertUnwindSafe(|| {
                adopt(Arc::clone(&own), || {
                    own.begin();
                    body();
                });
            }));
            told.end();
            if let Err(panic) = done {
                resume_unwind(panic);
            }
        };
        (Box::new(begun), Some(child))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn whoever_waits_goes_on_once_the_value_is_as_wanted() {
        let gate = Gate::new(0);
        assert_eq!(gate.wait(Duration::ZERO, |n| (*n > 0).then_some(*n)), None);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| gate.wait(Duration::from_secs(60), |n| (*n > 1).then_some(*n)));
            gate.change(|n| *n += 1);
            gate.change(|n| *n += 1);
            assert_eq!(waiter.join().unwrap(), Some(2));
        });
    }

    #[test]
    fn a_panic_of_a_scoped_thread_is_its_parents() {
        let told = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                drop(spawn_scoped(scope, "t", || resume_unwind(Box::new("so"))).unwrap());
            });
        }));
        assert_eq!(told.unwrap_err().downcast_ref(), Some(&"so"));
    }
}
