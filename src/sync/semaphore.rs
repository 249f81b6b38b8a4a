//! Bounds concurrent use of a resource.

use std::sync::Arc;
use std::time::Duration;

use super::Monitor;

/// A number of permits: concurrent calls, bytes in memory. Clones share them.
#[derive(Debug, Clone)]
pub struct Semaphore {
    available: Arc<Monitor<usize>>,
    total: usize,
}

/// Acquired permits, released when dropped.
#[derive(Debug)]
pub struct Permit {
    available: Arc<Monitor<usize>>,
    count: usize,
}

impl Semaphore {
    pub fn new(total: usize) -> Self {
        Self { available: Arc::new(Monitor::new(total)), total }
    }

    /// All permits, available or not.
    pub fn total(&self) -> usize {
        self.total
    }

    /// An empty permit, to grow later.
    pub fn empty(&self) -> Permit {
        self.permit(0)
    }

    /// Acquires a permit; `None` if none is available.
    pub fn try_acquire(&self) -> Option<Permit> {
        take(&mut self.available.lock(), 1)?;
        Some(self.permit(1))
    }

    /// Acquires a permit, waiting for it up to `timeout`.
    pub fn acquire(&self, timeout: Duration) -> Option<Permit> {
        self.available.wait(timeout, |available| take(available, 1))?;
        Some(self.permit(1))
    }

    fn permit(&self, count: usize) -> Permit {
        Permit { available: Arc::clone(&self.available), count }
    }
}

fn take(available: &mut usize, count: usize) -> Option<()> {
    *available = available.checked_sub(count)?;
    Some(())
}

impl Permit {
    /// Acquires more permits, so that the permit covers `count`; returns false, changing nothing, if too few are
    /// available.
    pub fn try_grow_to(&mut self, count: usize) -> bool {
        let more = count.saturating_sub(self.count);
        let grown = take(&mut self.available.lock(), more).is_some();
        if grown {
            self.count += more;
        }
        grown
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.available.update(|available| *available += self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_permit_is_available_again() {
        let semaphore = Semaphore::new(2);
        let (one, _two) = (semaphore.try_acquire().unwrap(), semaphore.try_acquire().unwrap());
        assert!(semaphore.try_acquire().is_none() && semaphore.try_acquire().is_none());
        drop(one);
        assert!(semaphore.try_acquire().is_some());
    }

    #[test]
    fn permits_grow_up_to_the_total() {
        let semaphore = Semaphore::new(10);
        let (mut a, mut b) = (semaphore.empty(), semaphore.empty());
        assert!(a.try_grow_to(6) && a.try_grow_to(3) && !b.try_grow_to(5) && b.try_grow_to(4));
        assert!(!a.try_grow_to(7) && !a.try_grow_to(usize::MAX));
        drop(b);
        assert!(a.try_grow_to(10));
        drop(a);
        assert!(semaphore.empty().try_grow_to(10), "all permits are back");
    }

    #[test]
    fn waiting_thread_gets_a_released_permit() {
        let semaphore = Semaphore::new(1);
        let held = semaphore.try_acquire().unwrap();
        assert!(semaphore.acquire(Duration::ZERO).is_none());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| semaphore.acquire(Duration::from_secs(60)).is_some());
            drop(held);
            assert!(waiter.join().unwrap());
        });
    }
}
