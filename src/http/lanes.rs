//! Permits for handlers: so many requests at a time, some more for quick ones, and some for health and readiness alone.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

use super::router::Lane;

#[derive(Debug)]
struct State {
    /// By [`Kind`].
    free: [usize; 3],
    waiting: usize,
}

/// Kinds of places. A lane may take those of its own kind and of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Common,
    Light,
    Probe,
}

impl State {
    /// Takes a place that `lane` may have.
    fn take(&mut self, lane: Lane) -> Option<Kind> {
        let kinds: &[Kind] = match lane {
            Lane::Common => &[Kind::Common],
            Lane::Light => &[Kind::Common, Kind::Light],
            Lane::Probe => &[Kind::Common, Kind::Light, Kind::Probe],
        };
        let kind = *kinds.iter().find(|kind| self.free[**kind as usize] > 0)?;
        self.free[kind as usize] -= 1;
        Some(kind)
    }

    fn has_room(&mut self, lane: Lane) -> bool {
        self.take(lane).map(|kind| self.free[kind as usize] += 1).is_some()
    }
}

/// The places for requests in work.
#[derive(Debug)]
pub(super) struct Lanes {
    state: Mutex<State>,
    freed: Condvar,
    total: usize,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    lanes: Arc<Lanes>,
    kind: Kind,
}

impl Lanes {
    /// `common` places for all, `light` more for [`Lane::Light`] and [`Lane::Probe`], `probe` for the latter alone.
    pub(super) fn new(common: usize, light: usize, probe: usize) -> Arc<Self> {
        let state = State { free: [common, light, probe], waiting: 0 };
        Arc::new(Self { state: Mutex::new(state), freed: Condvar::new(), total: common + light + probe })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A place, perhaps after a wait of at most `wait_max`; none if none gets free or `queue_max` others wait.
    pub(super) fn acquire(self: &Arc<Self>, lane: Lane, wait_max: Duration, queue_max: usize) -> Option<Slot> {
        let mut state = self.lock();
        let slot = |kind| Slot { lanes: Arc::clone(self), kind };
        if let Some(kind) = state.take(lane) {
            return Some(slot(kind));
        }
        // Probes are few and must not be refused because others queue.
        if state.waiting >= queue_max && lane != Lane::Probe {
            return None;
        }
        state.waiting += 1;
        self.freed.wait_while_for(&mut state, |state| !state.has_room(lane), wait_max);
        state.waiting -= 1;
        state.take(lane).map(slot)
    }

    /// Requests in work, once none is or `wait_max` is over.
    pub(super) fn busy_after(&self, wait_max: Duration) -> usize {
        let busy = |state: &State| self.total - state.free.iter().sum::<usize>();
        let mut state = self.lock();
        self.freed.wait_while_for(&mut state, |state| busy(state) > 0, wait_max);
        busy(&state)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.lanes.lock();
        state.free[self.kind as usize] += 1;
        drop(state);
        // Not just one: it might be one that waits for the other kind.
        self.lanes.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WAIT: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn light_requests_and_probes_get_through_when_the_common_places_are_taken() {
        let lanes = Lanes::new(1, 1, 1);
        let common = lanes.acquire(Lane::Common, NO_WAIT, 8).unwrap();
        assert!(lanes.acquire(Lane::Common, NO_WAIT, 8).is_none());
        let light = lanes.acquire(Lane::Light, NO_WAIT, 8).unwrap();
        assert!(lanes.acquire(Lane::Light, NO_WAIT, 8).is_none());
        let probe = lanes.acquire(Lane::Probe, NO_WAIT, 8).unwrap();
        assert!(lanes.acquire(Lane::Light, NO_WAIT, 8).is_none() && lanes.acquire(Lane::Probe, NO_WAIT, 8).is_none());
        assert_eq!(lanes.busy_after(NO_WAIT), 3);
        drop((light, probe));
        assert!(lanes.acquire(Lane::Common, NO_WAIT, 8).is_none(), "a reserved place is not for all");
        drop(common);
        assert!(lanes.acquire(Lane::Common, NO_WAIT, 8).is_some());
        assert_eq!(lanes.busy_after(NO_WAIT), 0);
    }

    #[test]
    fn a_freed_place_wakes_one_who_waits_and_the_queue_is_bounded() {
        let lanes = Lanes::new(1, 0, 0);
        let held = lanes.acquire(Lane::Common, NO_WAIT, 1).unwrap();
        let waiter = {
            let lanes = Arc::clone(&lanes);
            std::thread::spawn(move || lanes.acquire(Lane::Common, LONG, 1).is_some())
        };
        while lanes.lock().waiting == 0 {
            std::thread::yield_now();
        }
        assert!(lanes.acquire(Lane::Common, LONG, 1).is_none(), "one waits already");
        drop(held);
        assert!(waiter.join().unwrap());
    }
}
