//! Does the same with many things, several at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::http::ApiError;

/// What `work` makes of each item, in their order, with at most `threads_max` (from 1) at work, the caller among them.
///
/// # Errors
/// The first that failed; nobody begins another item then.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    threads_max: usize,
    work: impl Fn(&T) -> Result<R, ApiError> + Sync,
) -> Result<Vec<R>, ApiError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::with_capacity(items.len()), None));
    let run = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(at) else { return };
        let result = work(item);
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(result) => done.0.push((at, result)),
            Err(error) => {
                next.store(items.len(), Ordering::Relaxed);
                done.1.get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads_max.min(items.len()) {
            // Fewer are slower, and no more than that.
            let _ = std::thread::Builder::new().name("one-of-several".into()).spawn_scoped(scope, run);
        }
        run();
    });
    let (mut results, failed) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failed {
        return Err(error);
    }
    results.sort_unstable_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ErrorCode;

    #[test]
    fn results_come_in_the_order_of_their_items_and_the_first_failure_ends_it() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(each(&items, 8, |item| Ok(item * 2)).unwrap(), (0..200).step_by(2).collect::<Vec<_>>());
        assert!(each(&[] as &[u8], 8, |_| Ok(())).unwrap().is_empty());
        let fails = |item: &usize| if *item < 5 { Ok(()) } else { Err(ApiError::of(ErrorCode::NotFound)) };
        assert_eq!(each(&items, 8, fails).unwrap_err().code(), ErrorCode::NotFound);
    }
}
