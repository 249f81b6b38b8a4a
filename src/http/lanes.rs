//! Who may have a handler: so many requests at a time, and some more for those that must always get through.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::router::Lane;

#[derive(Debug)]
struct State {
    common_free: usize,
    reserved_free: usize,
    waiting: usize,
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
    reserved: bool,
}

impl Lanes {
    /// `common` places for all, `reserved` more for [`Lane::Light`].
    pub(super) fn new(common: usize, reserved: usize) -> Arc<Self> {
        let state = State { common_free: common, reserved_free: reserved, waiting: 0 };
        Arc::new(Self { state: Mutex::new(state), freed: Condvar::new(), total: common + reserved })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, perhaps after a wait of at most `wait_max`; none if none gets free or `queue_max` others wait.
    pub(super) fn acquire(self: &Arc<Self>, lane: Lane, wait_max: Duration, queue_max: usize) -> Option<Slot> {
        let mut state = self.lock();
        let take = |state: &mut State| {
            let slot = |reserved| Some(Slot { lanes: Arc::clone(self), reserved });
            if state.common_free > 0 {
                state.common_free -= 1;
                return slot(false);
            }
            if lane == Lane::Light && state.reserved_free > 0 {
                state.reserved_free -= 1;
                return slot(true);
            }
            None
        };
        if let Some(slot) = take(&mut state) {
            return Some(slot);
        }
        if state.waiting >= queue_max {
            return None;
        }
        state.waiting += 1;
        let full = |state: &mut State| state.common_free == 0 && (lane == Lane::Common || state.reserved_free == 0);
        let waited = self.freed.wait_timeout_while(state, wait_max, full);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        take(&mut state)
    }

    /// Requests in work, once none is or `wait_max` is over.
    pub(super) fn busy_after(&self, wait_max: Duration) -> usize {
        let busy = |state: &State| self.total - state.common_free - state.reserved_free;
        let waited = self.freed.wait_timeout_while(self.lock(), wait_max, |state| busy(state) > 0);
        busy(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.lanes.lock();
        if self.reserved {
            state.reserved_free += 1;
        } else {
            state.common_free += 1;
        }
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
    fn light_requests_get_through_when_the_common_places_are_taken() {
        let lanes = Lanes::new(1, 1);
        let common = lanes.acquire(Lane::Common, NO_WAIT, 8).unwrap();
        assert!(lanes.acquire(Lane::Common, NO_WAIT, 8).is_none());
        let light = lanes.acquire(Lane::Light, NO_WAIT, 8).unwrap();
        assert!(lanes.acquire(Lane::Light, NO_WAIT, 8).is_none());
        assert_eq!(lanes.busy_after(NO_WAIT), 2);
        drop(light);
        assert!(lanes.acquire(Lane::Common, NO_WAIT, 8).is_none(), "a reserved place is not for all");
        drop(common);
        assert!(lanes.acquire(Lane::Common, NO_WAIT, 8).is_some());
        assert_eq!(lanes.busy_after(NO_WAIT), 0);
    }

    #[test]
    fn a_freed_place_wakes_one_who_waits_and_the_queue_is_bounded() {
        let lanes = Lanes::new(1, 0);
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
