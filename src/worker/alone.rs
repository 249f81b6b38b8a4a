//! Lets one job run alone in its process.
//!
//! A job whose workers died with it may take down whatever runs beside it; its last start takes no company along.

use std::time::Duration;

use crate::sync::Monitor;

/// How often whoever waits asks whether to give up.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Alone {
    now: Monitor<Now>,
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
        self.now.update(|now| now.waiting += usize::from(alone));
        let entered = loop {
            let entered = self.now.lock().enter(alone);
            if entered || give_up() {
                break entered;
            }
            self.now.wait(LOOK_EVERY, |now| now.is_free(alone).then_some(()));
        };
        self.now.update(|now| now.waiting -= usize::from(alone));
        entered.then(|| Running { of: self, alone })
    }
}

impl Now {
    fn is_free(&self, alone: bool) -> bool {
        if alone { self.running == 0 } else { !self.alone && self.waiting == 0 }
    }

    fn enter(&mut self, alone: bool) -> bool {
        let is_free = self.is_free(alone);
        if is_free {
            self.running += 1;
            self.alone = alone;
        }
        is_free
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.of.now.update(|now| {
            now.running -= 1;
            now.alone &= !self.alone;
        });
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
