//! Threads, monotonic time and random numbers.
//!
//! With the feature `failpoints`, a thread can belong to a simulation (`runtime::simulation`), which then schedules it
//! and supplies time and randomness. Otherwise all of this is the standard library's.

use std::io;
use std::panic::resume_unwind;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::Duration;

#[cfg(feature = "failpoints")]
use super::simulation::{self, Simulation};

/// A point in monotonic time.
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
            simulated: simulation::current().map(|simulation| simulation.now()),
        }
    }

    pub fn elapsed(&self) -> Duration {
        #[cfg(feature = "failpoints")]
        if let (Some(then), Some(simulation)) = (self.simulated, simulation::current()) {
            return simulation.now().saturating_sub(then);
        }
        self.real.elapsed()
    }
}

/// A random number in 0.0..=1.0.
pub fn random_unit() -> f64 {
    #[cfg(feature = "failpoints")]
    if let Some(simulation) = simulation::current() {
        return simulation.random_unit();
    }
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

/// The number of threads to use, at most `wanted`: one in a simulation, which doesn't schedule scoped threads.
pub fn parallelism(wanted: usize) -> usize {
    #[cfg(feature = "failpoints")]
    if simulation::current().is_some() {
        return 1;
    }
    wanted
}

/// A spawned thread.
pub struct Thread {
    handle: JoinHandle<()>,
    #[cfg(feature = "failpoints")]
    child: Option<std::sync::Arc<dyn Simulation>>,
}

/// Spawns a thread.
///
/// # Errors
/// If the system refuses another thread.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    #[cfg(feature = "failpoints")]
    let (body, child) = simulation::register(name, body);
    let handle = Builder::new().name(name.into()).spawn(body)?;
    Ok(Thread {
        handle,
        #[cfg(feature = "failpoints")]
        child,
    })
}

impl Thread {
    /// Waits for the thread's end. The panic hook has logged its panic, if any.
    pub fn join(self) {
        #[cfg(feature = "failpoints")]
        simulation::join(self.child.as_ref());
        let _ = self.handle.join();
    }
}

/// A scoped thread; dropping it waits for the thread's end and resumes its panic.
pub struct ScopedThread<'scope> {
    handle: Option<ScopedJoinHandle<'scope, ()>>,
    #[cfg(feature = "failpoints")]
    child: Option<std::sync::Arc<dyn Simulation>>,
}

/// Spawns a scoped thread.
///
/// # Errors
/// If the system refuses another thread.
pub fn spawn_scoped<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() + Send + 'scope,
) -> io::Result<ScopedThread<'scope>> {
    #[cfg(feature = "failpoints")]
    let (body, child) = simulation::register(name, body);
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
        simulation::join(self.child.as_ref());
        let ended = self.handle.take().map_or(Ok(()), ScopedJoinHandle::join);
        // A second panic would abort the process.
        if let Err(panic) = ended
            && !std::thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn panic_of_scoped_thread_is_resumed_by_its_parent() {
        let panic = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                drop(spawn_scoped(scope, "t", || resume_unwind(Box::new("so"))).unwrap());
            });
        }));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"so"));
    }
}
