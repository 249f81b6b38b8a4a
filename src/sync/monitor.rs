//! A value that threads wait on.

use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

#[cfg(feature = "failpoints")]
use crate::runtime::simulation;
use crate::runtime::threads::Instant;

/// A mutex with a condition variable: threads wait until the value satisfies a condition.
#[derive(Debug, Default)]
pub struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Monitor<T> {
    pub const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    /// Locks the value. Waiting threads don't notice changes made through the guard; see [`Monitor::update`].
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }

    /// Changes the value and wakes all waiting threads.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        #[cfg(feature = "failpoints")]
        if let Some(simulation) = simulation::current() {
            simulation.wake(self.address());
        }
        result
    }

    /// Waits until `condition`, evaluated now and after each change, returns a value; `None` after `timeout`.
    pub fn wait<R>(&self, timeout: Duration, mut condition: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let start = Instant::now();
        let mut value = self.lock();
        loop {
            if let Some(found) = condition(&mut value) {
                return Some(found);
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return None;
            }
            self.wait_once(&mut value, left);
        }
    }

    fn wait_once(&self, value: &mut MutexGuard<'_, T>, timeout: Duration) {
        #[cfg(feature = "failpoints")]
        if let Some(simulation) = simulation::current() {
            MutexGuard::unlocked(value, || simulation.wait(self.address(), timeout));
            return;
        }
        // The caller's loop handles timeouts and spurious wakeups alike.
        let _ = self.changed.wait_for(value, timeout);
    }

    #[cfg(feature = "failpoints")]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_thread_continues_once_the_condition_holds() {
        let monitor = Monitor::new(0);
        assert_eq!(monitor.wait(Duration::ZERO, |n| (*n > 0).then_some(*n)), None);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| monitor.wait(Duration::from_secs(60), |n| (*n > 1).then_some(*n)));
            monitor.update(|n| *n += 1);
            monitor.update(|n| *n += 1);
            assert_eq!(waiter.join().unwrap(), Some(2));
        });
    }
}
