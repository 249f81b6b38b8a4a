//! Concurrent callers with one key share a call.
//!
//! Invariant: a caller gets the result of a call that began after it asked, so that it sees everything done before.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Calls in flight, by key.
pub struct SingleFlight<K, T> {
    flights: Mutex<HashMap<K, Flight<T>>>,
    changed: Condvar,
}

struct Flight<T> {
    /// Calls begun.
    begun: u64,
    running: bool,
    waiting: usize,
    /// The last call that succeeded, with its number, while threads wait for it.
    result: Option<(u64, Arc<T>)>,
}

impl<T> Default for Flight<T> {
    fn default() -> Self {
        Self { begun: 0, running: false, waiting: 0, result: None }
    }
}

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { flights: Mutex::default(), changed: Condvar::new() }
    }
}

impl<K: Eq + Hash + Clone, T> SingleFlight<K, T> {
    /// Runs `call`, or waits for the next call of the same key by another thread and shares its result.
    ///
    /// # Errors
    /// Errors of `call`. A failed call is not shared: the threads that waited for it call again.
    pub fn run<E>(&self, key: &K, call: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let mut flights = self.flights.lock();
        let wanted = flights.entry(key.clone()).or_default().begun + 1;
        let number = loop {
            let flight = flights.entry(key.clone()).or_default();
            if let Some((number, result)) = &flight.result
                && *number >= wanted
            {
                let result = Arc::clone(result);
                Self::tidy(&mut flights, key);
                return Ok(result);
            }
            if !flight.running {
                flight.running = true;
                flight.begun += 1;
                break flight.begun;
            }
            flight.waiting += 1;
            self.changed.wait(&mut flights);
            flights.entry(key.clone()).or_default().waiting -= 1;
        };
        drop(flights);
        // A drop guard, so that a panic ends the call too.
        let guard = FlightGuard { owner: self, key };
        let result = Arc::new(call()?);
        if let Some(flight) = self.flights.lock().get_mut(key)
            && flight.waiting > 0
        {
            flight.result = Some((number, Arc::clone(&result)));
        }
        drop(guard);
        Ok(result)
    }

    /// Removes entries that no thread runs or waits for.
    fn tidy(flights: &mut HashMap<K, Flight<T>>, key: &K) {
        if let Some(flight) = flights.get_mut(key)
            && flight.waiting == 0
        {
            flight.result = None;
            if !flight.running {
                flights.remove(key);
            }
        }
    }
}

struct FlightGuard<'a, K: Eq + Hash + Clone, T> {
    owner: &'a SingleFlight<K, T>,
    key: &'a K,
}

impl<K: Eq + Hash + Clone, T> Drop for FlightGuard<'_, K, T> {
    fn drop(&mut self) {
        let mut flights = self.owner.flights.lock();
        if let Some(flight) = flights.get_mut(self.key) {
            flight.running = false;
        }
        SingleFlight::tidy(&mut flights, self.key);
        drop(flights);
        self.owner.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    const CALLERS: usize = 20;

    /// Holds a call until 20 others wait for its key. The first `failing` of the later calls fail. Returns the number
    /// of later calls, and the number of callers that got an error.
    fn calls_after_held_call(failing: usize) -> (usize, usize) {
        let flights = SingleFlight::<u8, ()>::default();
        let (calls, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (release, held) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        std::thread::scope(|scope| {
            let (flights, calls, failed) = (&flights, &calls, &failed);
            scope.spawn(move || {
                flights.run(&1, || {
                    begun.send(()).unwrap();
                    held.recv().unwrap();
                    Ok::<(), ()>(())
                })
            });
            has_begun.recv().unwrap();
            for _ in 0..CALLERS {
                scope.spawn(move || {
                    let call = || match calls.fetch_add(1, Ordering::SeqCst) < failing {
                        true => Err(()),
                        false => Ok(()),
                    };
                    failed.fetch_add(usize::from(flights.run(&1, call).is_err()), Ordering::SeqCst);
                });
            }
            let all_wait = || flights.flights.lock().get(&1).is_some_and(|flight| flight.waiting == CALLERS);
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while !all_wait() {
                assert!(std::time::Instant::now() < deadline, "not all callers wait");
                std::thread::yield_now();
            }
            assert_eq!(flights.run(&2, || Ok::<(), ()>(())), Ok(Arc::new(())), "other keys don't wait");
            release.send(()).unwrap();
        });
        assert!(flights.flights.lock().is_empty(), "nothing is kept of idle keys");
        (calls.into_inner(), failed.into_inner())
    }

    #[test]
    fn callers_share_the_next_call() {
        assert_eq!(calls_after_held_call(0), (1, 0));
    }

    #[test]
    fn failed_call_is_not_shared() {
        assert_eq!(calls_after_held_call(3), (4, 3));
    }

    #[test]
    fn call_after_a_panic_runs() {
        let flights = SingleFlight::<u8, u8>::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            flights.run(&1, || -> Result<u8, ()> { panic!("on purpose") })
        }));
        assert!(panicked.is_err());
        assert_eq!(flights.run(&1, || Ok::<u8, ()>(7)), Ok(Arc::new(7)));
    }
}
