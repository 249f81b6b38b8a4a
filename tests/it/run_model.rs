//! Runs, compared with a naive model over thousands of random sequences.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::model::steps::Sequence;

const SEQUENCES: u64 = 4_000;

fn outcome(sequence: &Sequence) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| sequence.play())).unwrap_or_else(|_| Err("it panicked".into()))
}

#[test]
fn tables_match_the_model_after_any_changes_runs_and_crashes() {
    for seed in 0..SEQUENCES {
        let sequence = Sequence::random(seed);
        if let Err(first) = outcome(&sequence) {
            let shortest = sequence.shrink(|s| outcome(s).is_err());
            let error = outcome(&shortest).err().unwrap_or(first);
            panic!("sequence {seed} diverged: {error}\nits shortest form: {shortest:#?}");
        }
    }
}
