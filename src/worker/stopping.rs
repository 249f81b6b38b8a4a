//! Stops a worker in phases.

use std::time::Duration;

use crate::sync::Monitor;

/// The progress of a stop. Phases only advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Phase {
    #[default]
    Working,
    /// No new job is claimed; jobs in flight run to their end.
    Drain,
    /// Jobs in flight are requeued without charging an attempt.
    ForceStop,
}

/// The current phase, which threads can wait for.
#[derive(Debug, Default)]
pub struct Stopping {
    phase: Monitor<Phase>,
}

impl Stopping {
    /// Advances to `phase`; a later phase stays.
    pub fn enter(&self, phase: Phase) {
        self.phase.update(|now| *now = (*now).max(phase));
    }

    /// Advances to [`Phase::Drain`], and with the second call to [`Phase::ForceStop`].
    pub fn escalate(&self) -> Phase {
        self.phase.update(|now| {
            *now = match *now {
                Phase::Working => Phase::Drain,
                Phase::Drain | Phase::ForceStop => Phase::ForceStop,
            };
            *now
        })
    }

    pub fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    /// Waits up to `wait`; true once `phase` is reached.
    pub fn wait_for(&self, phase: Phase, wait: Duration) -> bool {
        self.phase.wait(wait, |now| (*now >= phase).then_some(())).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_only_advance() {
        let stopping = Stopping::default();
        assert!(!stopping.wait_for(Phase::Drain, Duration::ZERO));
        assert_eq!(
            (stopping.escalate(), stopping.escalate(), stopping.escalate()),
            (Phase::Drain, Phase::ForceStop, Phase::ForceStop)
        );
        stopping.enter(Phase::Drain);
        assert_eq!(stopping.phase(), Phase::ForceStop);
        assert!(stopping.wait_for(Phase::Drain, Duration::ZERO));
    }

    #[test]
    fn waiting_threads_are_woken() {
        let stopping = Stopping::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| stopping.wait_for(Phase::Drain, Duration::from_secs(60)));
            stopping.escalate();
            assert!(waiter.join().unwrap());
        });
    }
}
