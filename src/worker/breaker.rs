//! Circuit breakers, one for each dependency of all jobs. While one is open the worker claims no jobs.
//!
//! Holds state only: `probe` decides when a breaker opens and closes.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::runtime::threads::Instant;

/// Pause between two probes of an open breaker; it doubles from the first to the longest.
const PROBE_PAUSE_FIRST: Duration = Duration::from_secs(1);
const PROBE_PAUSE_MAX: Duration = Duration::from_secs(5);

/// A dependency of all jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependency {
    /// The object store: it must let this worker list, write and delete.
    Store,
    /// The key-value store: it must accept writes.
    Kv,
    /// The scratch folder: it must be writable and have free space.
    Scratch,
    /// This machine: it must have threads, descriptors and memory left.
    Host,
}

impl Dependency {
    pub const ALL: [Self; 4] = [Self::Store, Self::Kv, Self::Scratch, Self::Host];
}

/// The name in metrics and `/readyz`.
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
    /// When it last closed.
    closed: Option<Instant>,
}

/// The breakers of a process.
#[derive(Debug, Default)]
pub struct Breakers {
    breakers: [Mutex<Breaker>; Dependency::ALL.len()],
    passed: AtomicBool,
}

impl Breakers {
    fn of(&self, dependency: Dependency) -> MutexGuard<'_, Breaker> {
        self.breakers[dependency as usize].lock()
    }

    /// Requires a probe before the next claim.
    pub(super) fn suspect(&self, dependency: Dependency) {
        self.of(dependency).suspected = true;
    }

    /// The dependency that has failed for longest, for how long, and why.
    pub(super) fn longest_open(&self) -> Option<(Dependency, Duration, String)> {
        let open = |dependency: Dependency| {
            let breaker = self.of(dependency);
            breaker.open.as_ref().map(|open| (dependency, open.since.elapsed(), open.reason.clone()))
        };
        Dependency::ALL.into_iter().filter_map(open).max_by_key(|(_, since, _)| *since)
    }

    /// Whether a probe is due now.
    pub(super) fn is_probe_due(&self, dependency: Dependency) -> bool {
        let breaker = self.of(dependency);
        match &breaker.open {
            Some(open) => open.probed.elapsed() >= open.pause,
            None => breaker.suspected,
        }
    }

    /// Applies the outcome of a probe: opens the breaker, keeps it open, or closes it.
    pub(super) fn record_probe(&self, dependency: Dependency, outcome: Result<(), String>) {
        let mut breaker = self.of(dependency);
        breaker.suspected = false;
        let reason = match outcome {
            Ok(()) => {
                if let Some(open) = breaker.open.take() {
                    breaker.closed = Some(Instant::now());
                    let seconds = open.since.elapsed().as_secs();
                    tracing::info!(%dependency, seconds, "probe passed; claims resumed");
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
                tracing::warn!(%dependency, reason, "probe failed; claims paused until it passes");
                breaker.open = Some(Open { reason, since: now, probed: now, pause: PROBE_PAUSE_FIRST });
            }
        }
    }

    /// Whether the breaker is open, or has been at any time since `then`.
    pub(super) fn was_open_since(&self, dependency: Dependency, then: Instant) -> bool {
        let breaker = self.of(dependency);
        breaker.open.is_some() || breaker.closed.is_some_and(|closed| closed.elapsed() <= then.elapsed())
    }

    /// All probes at start have passed.
    pub(super) fn set_passed(&self) {
        self.passed.store(true, Ordering::SeqCst);
    }

    /// Whether the breakers allow claims.
    pub fn are_closed(&self) -> bool {
        self.passed.load(Ordering::SeqCst) && self.open().is_empty()
    }

    /// The open breakers with their reasons.
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
            "suspicion alone pauses nothing"
        );
        breakers.record_probe(Dependency::Store, Err("away".into()));
        assert_eq!(breakers.open(), [(Dependency::Store, "away".to_owned())]);
        assert!(breakers.was_open_since(Dependency::Store, Instant::now()));
        assert!(!breakers.was_open_since(Dependency::Scratch, began));
        breakers.record_probe(Dependency::Store, Err("refused".into()));
        assert_eq!(breakers.open(), [(Dependency::Store, "refused".to_owned())], "shows the latest reason");
        breakers.record_probe(Dependency::Store, Ok(()));
        assert!(breakers.open().is_empty() && !breakers.is_probe_due(Dependency::Store));
        assert!(breakers.was_open_since(Dependency::Store, began), "attempts of that time are still refunded");
    }

    #[test]
    fn pause_between_probes_doubles_up_to_a_bound() {
        let breakers = Breakers::default();
        for _ in 0..20 {
            breakers.record_probe(Dependency::Kv, Err("away".into()));
        }
        assert_eq!(breakers.of(Dependency::Kv).open.as_ref().unwrap().pause, PROBE_PAUSE_MAX);
        assert!(!breakers.is_probe_due(Dependency::Kv));
        breakers.record_probe(Dependency::Kv, Ok(()));
        breakers.record_probe(Dependency::Kv, Err("away".into()));
        assert_eq!(breakers.of(Dependency::Kv).open.as_ref().unwrap().pause, PROBE_PAUSE_FIRST);
    }
}
