//! Runs, compared with a naive model over thousands of random sequences.

use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::steps::Sequence;

/// `LAKEMILL_TEST_SEQUENCES` sets the number of sequences.
const SEQUENCES: u64 = 10_000;
/// Concurrent sequences.
const CONCURRENCY: usize = 2;

fn outcome(sequence: &Sequence) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| sequence.play())).unwrap_or_else(|_| Err("it panicked".into()))
}

#[test]
fn tables_match_the_model_after_any_changes_runs_and_crashes() {
    let sequences = std::env::var("LAKEMILL_TEST_SEQUENCES").map_or(SEQUENCES, |text| text.parse().unwrap());
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENCY {
            scope.spawn(|| {
                while failed.lock().unwrap().is_empty() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= sequences {
                        break;
                    }
                    if let Err(error) = outcome(&Sequence::random(seed)) {
                        failed.lock().unwrap().push((seed, error));
                    }
                }
            });
        }
    });
    if let Some((seed, first)) = failed.into_inner().unwrap().into_iter().min() {
        let shortest = Sequence::random(seed).shrink(|s| outcome(s).is_err());
        let error = outcome(&shortest).err().unwrap_or(first);
        panic!("sequence {seed} diverged: {error}\nits shortest form: {shortest:#?}");
    }
}
