//! Lets one job run alone in its process.
//!
//! A job whose workers died with it may take down whatever runs beside it; its last start takes no company along.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Alone {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    running: usize,
    alone: bool,
    /// Waiting to be alone: nobody else starts meanwhile, or it might wait for ever.
    waiting: usize,
}

/// A job that runs.
#[derive(Debug)]
pub(super) struct Running<'a> {
    of: &'a Alone,
    alone: bool,
}

impl Alone {
    /// Waits until a job may run; `alone`: until no other does. `None` if `give_up` says so, which is asked now and
    /// then.
    pub(super) fn enter(&self, alone: bool, give_up: impl Fn() -> bool) -> Option<Running<'_>> {
        let mut now = self.lock();
        now.waiting += usize::from(alone);
        loop {
            let free = if alone { now.running == 0 && !now.alone } else { !now.alone && now.waiting == 0 };
            if free || give_up() {
                now.waiting -= usize::from(alone);
                self.changed.notify_all();
                if !free {
                    return None;
                }
                now.running += 1;
                now.alone = alone;
                return Some(Running { of: self, alone });
            }
            let look = std::time::Duration::from_millis(500);
            now = self.changed.wait_timeout(now, look).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut now = self.of.lock();
        now.running -= 1;
        if self.alone {
            now.alone = false;
        }
        self.of.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn jobs_run_side_by_side_unless_one_must_be_alone() {
        let alone = Alone::default();
        let first = alone.enter(false, || false).unwrap();
        let second = alone.enter(false, || false).unwrap();
        assert!(alone.enter(true, || true).is_none(), "others run");
        drop((first, second));
        let only = alone.enter(true, || false).unwrap();
        assert!(alone.enter(false, || true).is_none() && alone.enter(true, || true).is_none());
        drop(only);
        assert!(alone.enter(false, || true).is_some());
    }

    #[test]
    fn who_waits_to_be_alone_is_not_overtaken_for_ever() {
        let alone = Alone::default();
        let first = alone.enter(false, || false).unwrap();
        let waits = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let last = scope.spawn(|| {
                alone.enter(true, || {
                    waits.store(true, Ordering::SeqCst);
                    false
                })
            });
            while !waits.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            assert!(alone.enter(false, || true).is_none(), "it waits behind the one that wants to be alone");
            drop(first);
            drop(last.join().unwrap().unwrap());
        });
        assert!(alone.enter(false, || true).is_some());
    }
}
