//! Circuit breakers, one for each thing that every job needs. While one is open the worker claims no jobs.
//!
//! State alone: `probe` decides when a breaker opens and closes.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::runtime::threads::Instant;

/// Pause between two probes of an open breaker; it doubles from the first to the longest.
const PROBE_PAUSE_FIRST: Duration = Duration::from_secs(1);
const PROBE_PAUSE_MAX: Duration = Duration::from_secs(5);

/// What every job of the worker needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// The object store: reachable, and it lets this worker list, write and delete.
    Store,
    /// The key-value store: reachable, and it takes this worker's writes.
    Kv,
    /// The scratch folder: it can be written, and has some room.
    Scratch,
    /// Threads, descriptors and memory of this machine.
    Host,
}

impl Dependency {
    pub const ALL: [Self; 4] = [Self::Store, Self::Kv, Self::Scratch, Self::Host];
}

/// As metrics and `/readyz` name it.
impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "store",
            Self::Kv => "kv",
            Self::Scratch => "scratch",
            Self::Host => "host",
        })
    }
}

/// An open breaker.
#[derive(Debug)]
struct Open {
    reason: String,
    since: Instant,
    probed: Instant,
    pause: Duration,
}

#[derive(Debug, Default)]
struct Breaker {
    /// A probe must pass before the next claim.
    suspected: bool,
    open: Option<Open>,
    /// When it closed last.
    closed: Option<Instant>,
}

/// The breakers of a process.
#[derive(Debug, Default)]
pub struct Breakers {
    of: [Mutex<Breaker>; Dependency::ALL.len()],
    passed: AtomicBool,
}

impl Breakers {
    fn of(&self, dependency: Dependency) -> MutexGuard<'_, Breaker> {
        self.of[dependency as usize].lock()
    }

    /// Has it probed before the next claim.
    pub(super) fn suspect(&self, dependency: Dependency) {
        self.of(dependency).suspected = true;
    }

    /// Whether it must be probed now, before a claim.
    pub(super) fn is_probe_due(&self, dependency: Dependency) -> bool {
        let breaker = self.of(dependency);
        match &breaker.open {
            Some(open) => open.probed.elapsed() >= open.pause,
            None => breaker.suspected,
        }
    }

    /// Takes the outcome of a probe: opens the breaker, keeps it open, or closes it.
    pub(super) fn probed(&self, dependency: Dependency, outcome: Result<(), String>) {
        let mut breaker = self.of(dependency);
        breaker.suspected = false;
        let reason = match outcome {
            Ok(()) => {
                if let Some(open) = breaker.open.take() {
                    breaker.closed = Some(Instant::now());
                    let seconds = open.since.elapsed().as_secs();
                    tracing::info!(%dependency, seconds, "probe passed; claiming jobs again");
                }
                return;
            }
            Err(reason) => reason,
        };
        let now = Instant::now();
        match &mut breaker.open {
            Some(open) => {
                open.pause = (open.pause * 2).min(PROBE_PAUSE_MAX);
                (open.reason, open.probed) = (reason, now);
            }
            None => {
                tracing::warn!(%dependency, reason, "probe failed; no job is claimed until it passes");
                breaker.open = Some(Open { reason, since: now, probed: now, pause: PROBE_PAUSE_FIRST });
            }
        }
    }

    /// Whether the breaker is open, or has been at any time since `then`.
    pub(super) fn was_open_since(&self, dependency: Dependency, then: Instant) -> bool {
        let breaker = self.of(dependency);
        breaker.open.is_some() || breaker.closed.is_some_and(|closed| closed.elapsed() <= then.elapsed())
    }

    /// Every probe that a worker starts with has passed.
    pub(super) fn set_passed(&self) {
        self.passed.store(true, Ordering::SeqCst);
    }

    /// Whether jobs are claimed, as far as the breakers are concerned.
    pub fn are_closed(&self) -> bool {
        self.passed.load(Ordering::SeqCst) && self.open().is_empty()
    }

    /// The open breakers, with the reason.
    pub fn open(&self) -> Vec<(Dependency, String)> {
        let open = |dependency| Some((dependency, self.of(dependency).open.as_ref()?.reason.clone()));
        Dependency::ALL.into_iter().filter_map(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaker_opens_on_a_failed_probe_and_closes_on_one_that_passes() {
        let breakers = Breakers::default();
        let began = Instant::now();
        assert!(!breakers.is_probe_due(Dependency::Store) && breakers.open().is_empty());
        breakers.suspect(Dependency::Store);
        assert!(
            breakers.is_probe_due(Dependency::Store) && breakers.open().is_empty(),
            "suspicion alone stops nothing"
        );
        breakers.probed(Dependency::Store, Err("away".into()));
        assert_eq!(breakers.open(), [(Dependency::Store, "away".to_owned())]);
        assert!(breakers.was_open_since(Dependency::Store, Instant::now()));
        assert!(!breakers.was_open_since(Dependency::Scratch, began));
        breakers.probed(Dependency::Store, Err("refused".into()));
        assert_eq!(breakers.open(), [(Dependency::Store, "refused".to_owned())], "the latest reason is shown");
        breakers.probed(Dependency::Store, Ok(()));
        assert!(breakers.open().is_empty() && !breakers.is_probe_due(Dependency::Store));
        assert!(breakers.was_open_since(Dependency::Store, began), "attempts of that time are still excused");
    }

    #[test]
    fn pause_between_probes_doubles_up_to_a_bound() {
        let breakers = Breakers::default();
        for _ in 0..20 {
            breakers.probed(Dependency::Kv, Err("away".into()));
        }
        assert_eq!(breakers.of(Dependency::Kv).open.as_ref().unwrap().pause, PROBE_PAUSE_MAX);
        assert!(!breakers.is_probe_due(Dependency::Kv));
        breakers.probed(Dependency::Kv, Ok(()));
        breakers.probed(Dependency::Kv, Err("away".into()));
        assert_eq!(breakers.of(Dependency::Kv).open.as_ref().unwrap().pause, PROBE_PAUSE_FIRST);
    }
}
