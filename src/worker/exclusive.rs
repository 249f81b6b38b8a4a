//! Lets a job run exclusively in its process.
//!
//! A job whose workers died may crash jobs that run beside it, so its last attempt runs alone.

use std::time::Duration;

use crate::sync::Monitor;

/// How often a waiting job checks whether to give up.
const CHECK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct ExclusiveGate {
    state: Monitor<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    exclusive: bool,
    /// Jobs that wait to run exclusively. No other starts meanwhile, or they might never run.
    waiting: usize,
}

/// A running job.
#[derive(Debug)]
pub(super) struct Running<'a> {
    gate: &'a ExclusiveGate,
    exclusive: bool,
}

impl ExclusiveGate {
    /// Waits until a job may run, `exclusive` until no other does. Checks `give_up` every [`CHECK_EVERY`] and returns `None`
    /// if it is true.
    pub(super) fn enter(&self, exclusive: bool, give_up: impl Fn() -> bool) -> Option<Running<'_>> {
        self.state.update(|state| state.waiting += usize::from(exclusive));
        let entered = loop {
            let entered = self.state.lock().enter(exclusive);
            if entered || give_up() {
                break entered;
            }
            self.state.wait(CHECK_EVERY, |state| state.is_free(exclusive).then_some(()));
        };
        self.state.update(|state| state.waiting -= usize::from(exclusive));
        entered.then(|| Running { gate: self, exclusive })
    }
}

impl State {
    fn is_free(&self, exclusive: bool) -> bool {
        if exclusive { self.running == 0 } else { !self.exclusive && self.waiting == 0 }
    }

    fn enter(&mut self, exclusive: bool) -> bool {
        let is_free = self.is_free(exclusive);
        if is_free {
            self.running += 1;
            self.exclusive = exclusive;
        }
        is_free
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.gate.state.update(|state| {
            state.running -= 1;
            state.exclusive &= !self.exclusive;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn jobs_run_concurrently_unless_one_is_exclusive() {
        let gate = ExclusiveGate::default();
        let first = gate.enter(false, || false).unwrap();
        let second = gate.enter(false, || false).unwrap();
        assert!(gate.enter(true, || true).is_none(), "others run");
        drop((first, second));
        let only = gate.enter(true, || false).unwrap();
        assert!(gate.enter(false, || true).is_none() && gate.enter(true, || true).is_none());
        drop(only);
        assert!(gate.enter(false, || true).is_some());
    }

    #[test]
    fn waiting_exclusive_job_is_not_overtaken() {
        let gate = ExclusiveGate::default();
        let first = gate.enter(false, || false).unwrap();
        let waits = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let last = scope.spawn(|| {
                gate.enter(true, || {
                    waits.store(true, Ordering::SeqCst);
                    false
                })
            });
            while !waits.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            assert!(gate.enter(false, || true).is_none(), "it queues behind the exclusive job");
            drop(first);
            drop(last.join().unwrap().unwrap());
        });
        assert!(gate.enter(false, || true).is_some());
    }
}
