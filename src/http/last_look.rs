//! The last look at what a service depends on. One caller looks at a time, and the others take what it saw: anybody may
//! ask, and each look costs requests to the stores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, mpsc};
use std::time::{Duration, Instant};

/// How old a look may be.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub struct LastLook<T> {
    last: Mutex<Option<(Instant, T)>>,
    /// Held by the one who looks.
    looking: Mutex<()>,
    /// Somebody looks who isn't waited for any more.
    left_behind: AtomicBool,
}

impl<T> Default for LastLook<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None), looking: Mutex::new(()), left_behind: AtomicBool::new(false) }
    }
}

impl<T: Copy> LastLook<T> {
    /// What was seen last, if that is fresh or somebody else is looking right now; else what `look` sees. `none`: where
    /// nobody has seen anything yet.
    pub fn look(&self, none: T, look: impl FnOnce() -> T) -> T {
        let last = || *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || last().filter(|(at, _)| at.elapsed() < LOOK_EVERY).map(|(_, found)| found);
        if let Some(found) = fresh() {
            return found;
        }
        let _looking = match self.looking.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
            // Somebody is waiting for the stores right now: nobody else need.
            Err(TryLockError::WouldBlock) => return last().map_or(none, |(_, found)| found),
        };
        let found = fresh().unwrap_or_else(look);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), found));
        found
    }
}

impl<T: Copy + Send + 'static> LastLook<T> {
    /// As [`LastLook::look`], but waits no longer than `wait_max`, however long the look takes: `None` then, and for as
    /// long as that look is on.
    pub fn look_within(self: &Arc<Self>, wait_max: Duration, look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.left_behind.swap(true, Ordering::SeqCst) {
            return None;
        }
        let (tell, told) = mpsc::sync_channel(1);
        let own = Arc::clone(self);
        let looking = std::thread::Builder::new().name("look".into()).spawn(move || {
            let found = {
                let _looking = own.looking.lock().unwrap_or_else(PoisonError::into_inner);
                let last = *own.last.lock().unwrap_or_else(PoisonError::into_inner);
                let fresh = last.filter(|(at, _)| at.elapsed() < LOOK_EVERY).map(|(_, found)| found);
                let found = fresh.unwrap_or_else(look);
                if fresh.is_none() {
                    *own.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), found));
                }
                found
            };
            own.left_behind.store(false, Ordering::SeqCst);
            // Nobody may be waiting any more.
            let _ = tell.try_send(found);
        });
        if looking.is_err() {
            self.left_behind.store(false, Ordering::SeqCst);
            return None;
        }
        told.recv_timeout(wait_max).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_hangs_is_not_waited_for_and_not_joined_by_others() {
        let look = Arc::<LastLook<u8>>::default();
        let (go_on, held) = mpsc::channel::<()>();
        let hung = look.look_within(Duration::from_millis(1), move || {
            let _ = held.recv();
            7
        });
        assert_eq!(hung, None);
        assert_eq!(look.look_within(Duration::from_secs(30), || unreachable!()), None, "one is on");
        drop(go_on);
        while look.left_behind.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert_eq!(look.look_within(Duration::from_secs(30), || unreachable!()), Some(7), "its outcome is fresh");
    }

    #[test]
    fn a_fresh_look_serves_all_and_nobody_waits_for_one_that_is_on() {
        let look = LastLook::default();
        assert_eq!(look.look(0, || look.look(7, || unreachable!())), 7);
        assert_eq!(look.look(0, || unreachable!()), 7);
    }
}
