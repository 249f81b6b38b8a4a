//! How a worker is told to end.

use std::time::Duration;

use crate::sync::Monitor;

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
    phase: Monitor<Phase>,
}

impl Stopping {
    /// Enters `phase`, unless a later one was entered.
    pub fn enter(&self, phase: Phase) {
        self.phase.update(|now| *now = (*now).max(phase));
    }

    /// Drains at the first call, abandons at the second.
    pub fn urge(&self) -> Phase {
        self.phase.update(|now| {
            *now = match *now {
                Phase::Working => Phase::Drain,
                Phase::Drain | Phase::Abandon => Phase::Abandon,
            };
            *now
        })
    }

    pub fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    /// Waits at most `wait`; true once `phase` has been entered.
    pub fn wait_for(&self, phase: Phase, wait: Duration) -> bool {
        self.phase.wait(wait, |now| (*now >= phase).then_some(())).is_some()
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
