//! The real worker (claims, runs, heartbeats, ends, windows, lost data) in a deterministic simulation: a seed decides
//! which thread runs next, how long each call takes and whether it fails, which processes die, pause or have a wrong
//! clock.
//!
//! `LAKEMILL_TEST_SEED=N` runs that seed alone and prints its steps; `LAKEMILL_TEST_SEEDS=N` sets the number of seeds.

mod kv;
mod scheduler;
mod script;
mod store;
mod world;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub use scheduler::Scheduler;
use script::{CHANGED_LATE, SeedResult, play};
use world::Mutation;

/// Seeds of the quick set, and per round of the long one.
const SEEDS: u64 = 300;
const SEEDS_LONG: u64 = 2_000;
/// Seeds within which a mutation must be detected.
const MUTATION_SEEDS: u64 = 300;
/// Concurrent seeds: each has one running thread.
const CONCURRENCY: u64 = 2;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`, expected a number")))
}

/// Runs seeds until one fails; returns the failure and the number of seeds.
#[expect(clippy::print_stdout, reason = "seeds worth a look")]
fn play_all(
    seeds: std::ops::Range<u64>,
    mutation: Mutation,
    enough: usize,
) -> (Vec<SeedResult>, BTreeMap<String, u64>) {
    let next = AtomicU64::new(seeds.start);
    let (failed, figures) = (Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENCY {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    let many = failed.lock().unwrap_or_else(PoisonError::into_inner).len();
                    if seed >= seeds.end || many >= enough {
                        return;
                    }
                    let result = play(seed, mutation);
                    if result.figures.contains_key(CHANGED_LATE) && mutation == Mutation::None {
                        println!("seed {seed}: {CHANGED_LATE}");
                    }
                    let mut figures = figures.lock().unwrap();
                    for (name, count) in &result.figures {
                        *figures.entry((*name).to_owned()).or_default() += count;
                    }
                    drop(figures);
                    if !result.violations.is_empty() {
                        failed.lock().unwrap().push(result);
                    }
                }
            });
        }
    });
    (failed.into_inner().unwrap(), figures.into_inner().unwrap())
}

#[test]
fn protocol_holds_for_every_seed() {
    let seeds = match number("LAKEMILL_TEST_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LAKEMILL_TEST_SEEDS").unwrap_or(SEEDS),
    };
    let figures = hold(seeds.clone());
    println!("{} seeds: {figures:?}", seeds.end - seeds.start);
}

/// Runs the seeds; panics with the trace of the first that fails.
fn hold(seeds: std::ops::Range<u64>) -> BTreeMap<String, u64> {
    let (failed, figures) = play_all(seeds, Mutation::None, 1);
    if let Some(result) = failed.first() {
        let SeedResult { seed, violations, trace, .. } = result;
        panic!("{trace}seed {seed}: {violations:#?}\nalone: LAKEMILL_TEST_SEED={seed}");
    }
    figures
}

/// A round of the long set: 2,000 new seeds.
pub fn long(round: u64) -> BTreeMap<String, u64> {
    hold(round * SEEDS_LONG..(round + 1) * SEEDS_LONG)
}

#[test]
fn seed_is_deterministic() {
    for seed in 0..6 {
        let (first, second) = (play(seed, Mutation::None), play(seed, Mutation::None));
        assert_eq!(first.turns, second.turns, "{}", script::first_difference(&first.trace, &second.trace));
        assert_eq!(first.figures, second.figures);
    }
}

/// A lock that anybody may take is not among the mutations: the fences alone protect the tables, only later.
#[test]
fn deliberate_bugs_are_detected() {
    for mutation in [
        Mutation::AnyoneWrites,
        Mutation::AcknowledgesFirst,
        Mutation::OverwritesRecords,
        Mutation::ForgetsEvents,
        Mutation::DropsDueJobs,
        Mutation::LateWritesUnchecked,
    ] {
        let (failed, _) = play_all(0..MUTATION_SEEDS, mutation, 1);
        assert!(!failed.is_empty(), "no seed of {MUTATION_SEEDS} notices {mutation:?}");
    }
}
