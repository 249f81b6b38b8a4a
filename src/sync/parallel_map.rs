//! Maps a slice on several threads, for work that waits more than it computes.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use crate::runtime::threads;

/// Maps each item on at most `threads_max` threads, the caller's included; on the caller's alone if no other can be
/// spawned. Results are in the order of the items.
///
/// # Errors
/// The first error of any item; items not begun by then are skipped.
pub fn parallel_map<T: Sync, R: Send, E: Send>(
    items: &[T],
    threads_max: usize,
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let run = || {
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            match work(item) {
                Ok(result) => done.push((at, result)),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let mut done = scope(|scope| {
        let others = 1..threads::parallelism(threads_max.min(items.len()));
        let others: Vec<_> = others.map_while(|_| Builder::new().spawn_scoped(scope, run).ok()).collect();
        let mut done = run()?;
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(done)
    })?;
    done.sort_unstable_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1_000).collect();
        for threads_max in [0, 1, 8, 2_000] {
            assert_eq!(parallel_map(&items, threads_max, |item| Ok::<_, ()>(item * 2)).unwrap(), {
                items.iter().map(|item| item * 2).collect::<Vec<_>>()
            });
        }
        assert_eq!(parallel_map(&[] as &[u32], 8, |_| Err::<u32, ()>(())), Ok(vec![]));
    }

    #[test]
    fn first_error_stops_the_map() {
        let items: Vec<u32> = (0..100_000).collect();
        let begun = AtomicUsize::new(0);
        let result = parallel_map(&items, 8, |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *item == 5 { Err(*item) } else { Ok(()) }
        });
        assert_eq!(result, Err(5));
        assert!(begun.into_inner() < items.len());
    }
}
