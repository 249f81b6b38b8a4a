//! How a worker is told to end.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How far the end has come. Phases only ever go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Phase {
    #[default]
    Working,
    /// No new job is claimed; what is in flight goes on to its end.
    Drain,
    /// Jobs in flight go back to the queue, uncharged.
    Abandon,
}

/// The phase, for whoever waits for it.
#[derive(Debug, Default)]
pub struct Stopping {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Stopping {
    /// Enters `phase`, unless a later one was entered.
    pub fn enter(&self, phase: Phase) {
        let mut now = self.lock();
        *now = (*now).max(phase);
        self.changed.notify_all();
    }

    /// Drains at the first call, abandons at the second.
    pub fn urge(&self) -> Phase {
        let mut now = self.lock();
        *now = match *now {
            Phase::Working => Phase::Drain,
            Phase::Drain | Phase::Abandon => Phase::Abandon,
        };
        self.changed.notify_all();
        *now
    }

    pub fn phase(&self) -> Phase {
        *self.lock()
    }

    /// Waits at most `wait`; true once `phase` has been entered.
    pub fn wait_for(&self, phase: Phase, wait: Duration) -> bool {
        let deadline = Instant::now() + wait;
        let mut now = self.lock();
        while *now < phase {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            now = self.changed.wait_timeout(now, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_only_go_on() {
        let stopping = Stopping::default();
        assert!(!stopping.wait_for(Phase::Drain, Duration::ZERO));
        assert_eq!((stopping.urge(), stopping.urge(), stopping.urge()), (Phase::Drain, Phase::Abandon, Phase::Abandon));
        stopping.enter(Phase::Drain);
        assert_eq!(stopping.phase(), Phase::Abandon);
        assert!(stopping.wait_for(Phase::Drain, Duration::ZERO));
    }

    #[test]
    fn whoever_waits_is_woken() {
        let stopping = Stopping::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| stopping.wait_for(Phase::Drain, Duration::from_secs(60)));
            stopping.urge();
            assert!(waiter.join().unwrap());
        });
    }
}
