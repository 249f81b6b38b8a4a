//! Fault tests of real workers on Redis and S3: a quick set, each scenario once, and a long one (`scripts/soak`), which
//! repeats them until the time limit.
//!
//! `LAKEMILL_TEST_SEED=N` sets the seed of the quick set.

#![expect(clippy::print_stdout, reason = "the figures of a soak, and the seeds")]

mod batches;
mod disks;
mod failpoints;
mod fault_proxy;
mod report;
mod round;
mod scenarios;
mod soak;

use scenarios::SCENARIOS;

/// The seed of the quick set: from the clock, unless it is set.
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
    // The test runner prints it on failure.
    println!("{name}: LAKEMILL_TEST_SEED={seed}");
    let report = scenario(seed, 1);
    println!("{}", report.line());
    let logs: Vec<String> = report.files.iter().map(|(name, text)| format!("--- {name}\n{text}")).collect();
    // Violations first: the logs are long and may be truncated.
    assert!(report.violations.is_empty(), "{:#?}\nseed {seed}\n{}", report.violations, logs.join("\n"));
    assert!(
        report.jobs.accepted > 0 || report.notes.contains_key(disks::MOUNT_NOT_PERMITTED),
        "nothing was done: {}",
        report.line()
    );
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
    a_store_without_room_for_a_while_loses_nothing: "store-full",
    scratch_without_room_for_a_while_loses_nothing: "scratch-full",
    clocks_ten_minutes_off_lose_nothing: "clock",
    workers_told_to_end_again_and_again_charge_nobody: "sigterm",
    a_rolling_restart_costs_no_job_an_attempt: "rolling",
}

#[test]
fn windows_with_racing_and_dying_workers_give_one_job_each() {
    let report = batches::raced(seed(), 60, 4, 10);
    println!("{}", report.line());
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert_eq!((report.jobs.accepted, report.jobs.done + report.jobs.failed), (60, 60));
}
