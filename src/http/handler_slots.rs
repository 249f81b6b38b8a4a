//! Permits for handlers: some for all requests, additional ones for quick requests, and some for health checks only.

use std::sync::Arc;
use std::time::Duration;

use super::router::Priority;
use crate::sync::Monitor;

/// Maximum numbers of concurrent handlers.
#[derive(Debug)]
pub(super) struct HandlerSlots {
    state: Monitor<State>,
    total: usize,
}

#[derive(Debug)]
struct State {
    /// By [`Priority`].
    free: [usize; 3],
    waiting: usize,
}

impl State {
    /// Takes a slot of that priority or of one before it.
    fn take(&mut self, priority: Priority) -> Option<Priority> {
        let usable: &[Priority] = match priority {
            Priority::Normal => &[Priority::Normal],
            Priority::Reserved => &[Priority::Normal, Priority::Reserved],
            Priority::Probe => &[Priority::Normal, Priority::Reserved, Priority::Probe],
        };
        let slot = *usable.iter().find(|slot| self.free[**slot as usize] > 0)?;
        self.free[slot as usize] -= 1;
        Some(slot)
    }
}

/// Allows one handler to run, until dropped.
#[derive(Debug)]
pub(super) struct HandlerPermit {
    slots: Arc<HandlerSlots>,
    slot: Priority,
}

impl HandlerSlots {
    /// `normal` slots for all requests, `reserved` more for [`Priority::Reserved`] and [`Priority::Probe`], and `probe`
    /// for the latter only.
    pub(super) fn new(normal: usize, reserved: usize, probe: usize) -> Arc<Self> {
        let state = Monitor::new(State { free: [normal, reserved, probe], waiting: 0 });
        Arc::new(Self { state, total: normal + reserved + probe })
    }

    /// Acquires a permit, waiting up to `timeout`; `None` at once if `queue_max` requests wait already.
    pub(super) fn acquire(
        self: &Arc<Self>,
        priority: Priority,
        timeout: Duration,
        queue_max: usize,
    ) -> Option<HandlerPermit> {
        let permit = |slot| HandlerPermit { slots: Arc::clone(self), slot };
        {
            let mut state = self.state.lock();
            if let Some(slot) = state.take(priority) {
                return Some(permit(slot));
            }
            // Probes are few and must not be refused because others queue.
            if state.waiting >= queue_max && priority != Priority::Probe {
                return None;
            }
            state.waiting += 1;
        }
        let slot = self.state.wait(timeout, |state| state.take(priority));
        self.state.lock().waiting -= 1;
        slot.map(permit)
    }

    /// Handlers in use.
    pub(super) fn busy(&self) -> usize {
        self.total - self.state.lock().free.iter().sum::<usize>()
    }
}

impl Drop for HandlerPermit {
    fn drop(&mut self) {
        self.slots.state.update(|state| state.free[self.slot as usize] += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WAIT: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn reserved_requests_and_probes_run_when_normal_slots_are_taken() {
        let slots = HandlerSlots::new(1, 1, 1);
        let acquire = |priority| slots.acquire(priority, NO_WAIT, 8);
        let normal = acquire(Priority::Normal).unwrap();
        assert!(acquire(Priority::Normal).is_none());
        let reserved = acquire(Priority::Reserved).unwrap();
        assert!(acquire(Priority::Reserved).is_none());
        let probe = acquire(Priority::Probe).unwrap();
        assert!(acquire(Priority::Reserved).is_none() && acquire(Priority::Probe).is_none());
        assert_eq!(slots.busy(), 3);
        drop((reserved, probe));
        assert!(acquire(Priority::Normal).is_none(), "a reserved slot is not for all");
        drop(normal);
        assert!(acquire(Priority::Normal).is_some());
        assert_eq!(slots.busy(), 0);
    }

    #[test]
    fn released_slot_wakes_a_waiting_request_and_the_queue_is_bounded() {
        let slots = HandlerSlots::new(1, 0, 0);
        let held = slots.acquire(Priority::Normal, NO_WAIT, 1).unwrap();
        let waiter = {
            let slots = Arc::clone(&slots);
            std::thread::spawn(move || slots.acquire(Priority::Normal, LONG, 1).is_some())
        };
        while slots.state.lock().waiting == 0 {
            std::thread::yield_now();
        }
        assert!(slots.acquire(Priority::Normal, LONG, 1).is_none(), "one waits already");
        drop(held);
        assert!(waiter.join().unwrap());
    }
}
