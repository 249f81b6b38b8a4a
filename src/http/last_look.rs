//! The last look at what a service depends on. One caller looks at a time, and the others take what it saw: anybody may
//! ask, and each look costs requests to the stores.

use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How old a look may be.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug)]
pub struct LastLook<T> {
    last: Mutex<Option<(Instant, T)>>,
    /// Held by the one who looks.
    looking: Mutex<()>,
}

impl<T> Default for LastLook<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None), looking: Mutex::new(()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_look_serves_all_and_nobody_waits_for_one_that_is_on() {
        let look = LastLook::default();
        assert_eq!(look.look(0, || look.look(7, || unreachable!())), 7);
        assert_eq!(look.look(0, || unreachable!()), 7);
    }
}
