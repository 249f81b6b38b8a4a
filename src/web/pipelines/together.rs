//! One piece of work for all who ask for the same at a time.
//!
//! Invariant: whoever asks gets what a piece of work found that began after the question, so that nobody misses what was
//! done before.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::http::ApiError;

/// What is asked for by a key, each of which has work of its own.
pub(in crate::web) struct Together<K, T> {
    all: Mutex<BTreeMap<K, Turns<T>>>,
    changed: Condvar,
}

struct Turns<T> {
    begun: u64,
    is_on: bool,
    waiting: usize,
    /// The last that came to a good end, and what it found, as long as anybody waits.
    found: Option<(u64, Arc<T>)>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { begun: 0, is_on: false, waiting: 0, found: None }
    }
}

impl<K, T> Default for Together<K, T> {
    fn default() -> Self {
        Self { all: Mutex::new(BTreeMap::new()), changed: Condvar::new() }
    }
}

impl<K: Ord + Copy, T> Together<K, T> {
    /// What `work` finds, done here or by another who asked for the same. Keys must be few: each is kept.
    ///
    /// # Errors
    /// As `work`. Who waited for one that failed does it again.
    pub(in crate::web) fn ask(&self, key: K, work: impl FnOnce() -> Result<T, ApiError>) -> Result<Arc<T>, ApiError> {
        let mut all = self.lock();
        let wanted = all.entry(key).or_default().begun + 1;
        let turn = loop {
            let turns = all.entry(key).or_default();
            let found = turns.found.as_ref().filter(|(turn, _)| *turn >= wanted).map(|(_, found)| Arc::clone(found));
            if turns.waiting == 0 {
                turns.found = None;
            }
            if let Some(found) = found {
                return Ok(found);
            }
            if !turns.is_on {
                turns.is_on = true;
                turns.begun += 1;
                break turns.begun;
            }
            turns.waiting += 1;
            all = self.changed.wait(all).unwrap_or_else(PoisonError::into_inner);
            all.entry(key).or_default().waiting -= 1;
        };
        drop(all);
        // Also when the work panics.
        let over = Over { together: self, key };
        let found = Arc::new(work()?);
        let mut all = self.lock();
        let turns = all.entry(key).or_default();
        if turns.waiting > 0 {
            turns.found = Some((turn, Arc::clone(&found)));
        }
        drop(all);
        drop(over);
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Turns<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Over<'a, K: Ord + Copy, T> {
    together: &'a Together<K, T>,
    key: K,
}

impl<K: Ord + Copy, T> Drop for Over<'_, K, T> {
    fn drop(&mut self) {
        self.together.lock().entry(self.key).or_default().is_on = false;
        self.together.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::http::ErrorCode;

    #[test]
    fn who_asks_while_others_are_at_it_shares_what_begins_afterwards() {
        let together = Together::<u8, usize>::default();
        let works = AtomicUsize::new(0);
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let (shared, counted) = (&together, &works);
            let first = scope.spawn(move || {
                shared.ask(1, || {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    Ok(counted.fetch_add(1, Ordering::SeqCst))
                })
            });
            has_begun.recv().unwrap();
            let asked: Vec<_> =
                (0..20).map(|_| scope.spawn(|| together.ask(1, || Ok(works.fetch_add(1, Ordering::SeqCst))))).collect();
            // Another key waits for nobody.
            assert_eq!(*together.ask(2, || Ok(100)).unwrap(), 100);
            assert!(!first.is_finished() && asked.iter().all(|asked| !asked.is_finished()));
            go_on.send(()).unwrap();
            assert_eq!(*first.join().unwrap().unwrap(), 0);
            let found: Vec<usize> = asked.into_iter().map(|asked| *asked.join().unwrap().unwrap()).collect();
            assert!(found.iter().all(|found| *found > 0), "what began before they asked may lack something: {found:?}");
        });
        // A late comer's thread may have asked only then.
        assert!(works.load(Ordering::SeqCst) <= 21);
        let before = works.load(Ordering::SeqCst);
        assert_eq!(*together.ask(1, || Ok(works.fetch_add(1, Ordering::SeqCst))).unwrap(), before, "nothing is kept");
    }

    #[test]
    fn work_that_fails_or_panics_is_done_by_the_next() {
        let together = Together::<u8, u8>::default();
        assert!(together.ask(1, || Err(ApiError::of(ErrorCode::KvUnavailable))).is_err());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| together.ask(1, || panic!("no"))));
        assert!(panicked.is_err());
        assert_eq!(*together.ask(1, || Ok(7)).unwrap(), 7);
    }
}
