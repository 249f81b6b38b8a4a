//! The same for each of many things, some at a time: for what waits more than it computes.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use crate::ports::pace;

/// Does `work` with each item, on at most `threads_max` threads, of which the caller's is one: it does it all where no
/// other can be had. The results stand in the items' order.
///
/// # Errors
/// The first that any item gave; what has not begun by then is left.
pub fn at_once<T: Sync, R: Send, E: Send>(
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
        let threads = 1..pace::threads(threads_max.min(items.len()));
        let others: Vec<_> = threads.map_while(|_| Builder::new().spawn_scoped(scope, run).ok()).collect();
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
    fn results_stand_in_the_order_of_the_items_whoever_was_first() {
        let items: Vec<u32> = (0..1_000).collect();
        for threads_max in [0, 1, 8, 2_000] {
            assert_eq!(at_once(&items, threads_max, |item| Ok::<_, ()>(item * 2)).unwrap(), {
                items.iter().map(|item| item * 2).collect::<Vec<_>>()
            });
        }
        assert_eq!(at_once(&[] as &[u32], 8, |_| Err::<u32, ()>(())), Ok(vec![]));
    }

    #[test]
    fn an_error_ends_it_and_is_told_whoever_found_it() {
        let items: Vec<u32> = (0..100_000).collect();
        let begun = AtomicUsize::new(0);
        let told = at_once(&items, 8, |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            if *item == 5 { Err(*item) } else { Ok(()) }
        });
        assert_eq!(told, Err(5));
        assert!(begun.into_inner() < items.len());
    }
}
