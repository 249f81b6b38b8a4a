//! Real workers on Redis and S3, mistreated: a quick set, each scenario once, and a long one (`scripts/soak`), in which
//! they go round until the time is over.
//!
//! `LAKEMILL_TEST_SEED=N` sets the seed of the quick set.

#![expect(clippy::print_stdout, reason = "the figures of a soak, and the seeds")]

mod batches;
mod round;
mod scenarios;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use round::Told;
use scenarios::SCENARIOS;

use super::checker::Violation;

/// The seed of the quick set: the clock's, unless it is set.
fn seed() -> u64 {
    match std::env::var("LAKEMILL_TEST_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("LAKEMILL_TEST_SEED is `{text}`, expected a number")),
        Err(_) => uuid::Uuid::new_v4().as_fields().0.into(),
    }
}

#[track_caller]
fn quick(name: &str) {
    let seed = seed();
    let (_, scenario) = SCENARIOS.iter().find(|(known, _)| *known == name).expect("a scenario of that name");
    // Told by the test's runner if it fails.
    println!("{name}: LAKEMILL_TEST_SEED={seed}");
    let told = scenario(seed, 1);
    println!("{:?}", told.figures);
    let logs: Vec<String> = told.files.iter().map(|(name, text)| format!("--- {name}\n{text}")).collect();
    assert!(told.violations.is_empty(), "{}\n{:#?}\nseed {seed}", logs.join("\n"), told.violations);
}

macro_rules! quick_set {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            quick($name);
        })*
    };
}

quick_set! {
    workers_killed_at_every_place_lose_nothing: "kill",
    workers_that_stand_still_beyond_their_lock_write_nothing_after: "stop",
    redis_killed_and_paused_loses_nothing: "redis-kill",
    redis_without_its_data_costs_what_only_it_knew: "redis-loss",
    redis_out_of_memory_loses_nothing: "redis-full",
    connections_to_redis_cut_at_any_moment_lose_nothing: "redis-cut",
    s3_that_fails_delays_and_loses_its_answers_loses_nothing: "s3",
    s3_that_is_away_for_longer_than_the_lock_loses_nothing: "s3-away",
    clocks_ten_minutes_off_lose_nothing: "clock",
    workers_told_to_end_again_and_again_charge_nobody: "sigterm",
    a_rolling_restart_costs_no_job_an_attempt: "rolling",
}

#[test]
fn windows_that_workers_race_for_and_die_at_give_one_job_each() {
    let told = batches::raced(seed(), 60, 4);
    assert!(told.violations.is_empty(), "{:#?}", told.violations);
}

fn setting(name: &str) -> Option<String> {
    std::env::var(format!("LAKEMILL_SOAK_{name}")).ok().filter(|text| !text.is_empty())
}

fn numbered(name: &str, default: u64) -> u64 {
    setting(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, expected a number")))
}

/// The long set.
#[test]
#[ignore = "takes as long as it is told to; scripts/soak runs it"]
fn soak() {
    let minutes = numbered("MINUTES", 30);
    let (first, much) = (numbered("SEED", 1), numbered("MUCH", 3));
    let only = setting("ONLY");
    let folder = setting("FOLDER").expect("LAKEMILL_SOAK_FOLDER: scripts/soak sets it");
    let mut all: Vec<scenarios::Scenario> = SCENARIOS.to_vec();
    all.extend(batches::LONG);
    all.retain(|(name, _)| only.as_deref().is_none_or(|only| only == *name));
    assert!(!all.is_empty(), "no scenario is called {only:?}");
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let (mut figures, mut broken) = (BTreeMap::<String, u64>::new(), Vec::new());
    let mut seed = first;
    'time: loop {
        for (name, scenario) in &all {
            if Instant::now() >= until && seed > first {
                break 'time;
            }
            println!("{name}, seed {seed}");
            let told = catch_unwind(AssertUnwindSafe(|| scenario(seed, much)));
            *figures.entry(format!("rounds of {name}")).or_default() += 1;
            match told {
                Ok(told) => {
                    for (what, count) in &told.figures {
                        *figures.entry(what.clone()).or_default() += count;
                    }
                    if !told.violations.is_empty() {
                        keep(Path::new(&folder), name, seed, &told);
                        println!("  VIOLATIONS: {:?}", told.violations);
                        broken.extend(told.violations);
                    }
                }
                Err(_) => {
                    println!("  PANICKED, see above");
                    broken.push(Violation::LeftInQueue { what: "a round that panicked", count: 1 });
                }
            }
            seed += 1;
        }
    }
    tell(&figures, &broken);
    assert!(broken.is_empty(), "{} violations; `{folder}` has what happened", broken.len());
}

fn keep(folder: &Path, name: &str, seed: u64, told: &Told) {
    let folder = folder.join(format!("{name}-{seed}"));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in &told.files {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

fn tell(figures: &BTreeMap<String, u64>, broken: &[Violation]) {
    let count = |is: fn(&Violation) -> bool| broken.iter().filter(|violation| is(violation)).count();
    println!("\nfigures:");
    for (what, count) in figures {
        println!("{count:9}  {what}");
    }
    let lost = |v: &Violation| matches!(v, Violation::NoRecord { .. } | Violation::RowsLost { .. });
    let doubled = |v: &Violation| matches!(v, Violation::RecordedAgain { .. } | Violation::Unasked { .. });
    let over = |v: &Violation| matches!(v, Violation::TooManyAttempts { .. });
    println!("{:9}  lost\n{:9}  doubled\n{:9}  attempts over the limit", count(lost), count(doubled), count(over));
    println!("{:9}  violations in all", broken.len());
}
