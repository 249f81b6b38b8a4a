//! Crashes and pauses at every failpoint of a worker.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Signal;

use super::fault_proxy::holding;
use super::report::RoundReport;
use super::round::{KILLED, LOCK_TTL, Round, STOPPED};
use crate::support::site::slug;

/// Every failpoint of a worker.
const CRASH_FAILPOINTS: [&str; 15] = [
    "worker::claimed",
    "worker::started",
    "convert::fetch",
    "convert::piece",
    "commit::after_intent",
    "publish::checked",
    "publish::between_puts",
    "commit::before_root",
    "commit::after_root",
    "worker::before_record",
    "worker::recorded",
    "worker::before_fire",
    "worker::fired",
    "worker::before_request",
    "worker::requested",
];
/// Before the lease check, between it and the PUT, between two PUTs, before and after the root, before and after the
/// record.
const PAUSE_FAILPOINTS: [&str; 7] = [
    "convert::piece",
    "publish::checked",
    "publish::between_puts",
    "commit::before_root",
    "commit::after_root",
    "worker::before_record",
    "worker::recorded",
];
/// Failpoints at which the notification tests kill the worker.
const NOTIFICATION_FAILPOINTS: [&str; 3] = ["notify::claimed", "notify::sent", "worker::notified"];
const PIPELINES: usize = 4;
const WORKERS: usize = 3;
/// Maximum number of jobs to enqueue; a failpoint not reached by then never is.
const REQUESTS_MAX: u64 = 2_000;
/// Log message of a pause during an upload.
const MID_BODY: &str = "SIGSTOP in mid-body";

/// The next failpoint for a worker: one of those with too few hits so far.
fn next(round: &mut Round, failpoints: &[&str], fault: &str, wanted: u64, action: &str) -> String {
    let open: Vec<&&str> =
        failpoints.iter().filter(|place| round.counted(&format!("{fault}{place}")) < wanted).collect();
    match open.len() {
        0 => String::new(),
        n => format!("{}={action}", open[round.rng.below(n as u64) as usize]),
    }
}

fn is_done(round: &Round, failpoints: &[&str], fault: &str, wanted: u64) -> bool {
    failpoints.iter().all(|place| round.counted(&format!("{fault}{place}")) >= wanted)
}

/// Creates work: requests for runs, and occasionally an event or the request of a comparison.
fn ask(round: &mut Round, asked: &mut u64) {
    round.enqueue();
    if asked.is_multiple_of(2) {
        let n = round.rng.below(PIPELINES as u64) as usize;
        let name = slug(&round.pipelines[n]);
        round.site.kv.extend_windows(&[name]).unwrap();
    }
    if asked.is_multiple_of(3) {
        let n = round.rng.below(PIPELINES as u64) as usize;
        let name = slug(&round.pipelines[n]);
        round.site.kv.request_runs(&[name]).unwrap();
    }
    *asked += 1;
    assert!(*asked < REQUESTS_MAX, "a place was never reached");
}

/// Starts the workers, each with its own failpoint.
fn start(round: &mut Round, failpoints: &[&str], fault: &str, wanted: u64, action: &str) {
    for _ in 0..WORKERS {
        let place = next(round, failpoints, fault, wanted, action);
        round.worker(&[("FAILPOINTS", place)]);
    }
}

/// Runs until workers have crashed at each failpoint `intensity` times; each process crashes at one failpoint.
pub fn killed_at_every_failpoint(seed: u64, intensity: u64) -> RoundReport {
    let mut round = Round::new(seed, PIPELINES);
    // In the shortest round at the first arrival; otherwise after some or many.
    let action = if intensity == 1 { "return(kill)" } else { "30%return(kill)" };
    start(&mut round, &CRASH_FAILPOINTS, KILLED, intensity, action);
    let mut asked = 0;
    while !is_done(&round, &CRASH_FAILPOINTS, KILLED, intensity) {
        ask(&mut round, &mut asked);
        for n in 0..WORKERS {
            let place = next(&mut round, &CRASH_FAILPOINTS, KILLED, intensity, action);
            round.arm(n, place);
        }
        let pause = Duration::from_millis(100 + round.rng.below(500));
        round.pass(pause);
    }
    round.check()
}

/// Runs until workers have paused at each failpoint, and during an upload, `intensity` times.
pub fn stopped_for_longer_than_the_lock(seed: u64, intensity: u64) -> RoundReport {
    let mut round = Round::new(seed, PIPELINES);
    let action = if intensity == 1 { "1*return(stop)->off" } else { "50%1*return(stop)->off" };
    start(&mut round, &PAUSE_FAILPOINTS, STOPPED, intensity, action);
    // The write arrives once the worker has lost its lock, and before the worker continues.
    let warehouse = round.site.env()["S3_BUCKET_WAREHOUSE"].clone();
    let (proxy, held_up) = holding(round.upstream(), &warehouse, LOCK_TTL + Duration::from_millis(500));
    round.worker(&[("OBJ_ENDPOINT_URL", proxy.url())]);
    let (mut asked, mut random) = (0, 0);
    while !is_done(&round, &PAUSE_FAILPOINTS, STOPPED, intensity)
        || round.counted(MID_BODY) < intensity
        || random < intensity
    {
        ask(&mut round, &mut asked);
        held_up.armed.store(round.counted(MID_BODY) < intensity, Ordering::SeqCst);
        let pause = Duration::from_millis(100 + round.rng.below(500));
        round.pass(pause);
        if held_up.held.swap(false, Ordering::SeqCst) {
            round.signal(WORKERS, Signal::STOP);
            round.count(MID_BODY, 1);
        }
        if random < intensity && round.rng.one_in(8) {
            // Pauses a worker at its current position.
            let n = round.rng.below(WORKERS as u64) as usize;
            round.signal(n, Signal::STOP);
            round.count("SIGSTOP at random", 1);
            random += 1;
        }
        // A worker that paused is restarted with another failpoint.
        for n in std::mem::take(&mut round.resumed) {
            if n < WORKERS {
                let place = next(&mut round, &PAUSE_FAILPOINTS, STOPPED, intensity, action);
                round.arm(n, place);
                round.signal(n, Signal::TERM);
            }
        }
    }
    round.pass(LOCK_TTL * 2);
    round.check()
}

/// Failpoints in a worker's code must be listed here.
#[test]
fn all_failpoints_of_a_worker_are_listed() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = std::collections::BTreeSet::new();
    for layer in ["worker", "engine", "pipelines"] {
        for (name, path) in crate::support::folders::files(&root.join(layer)) {
            // Workers make no backups.
            if !name.ends_with(".rs") || (layer == "pipelines" && name.starts_with("backup/")) {
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            found.extend(text.split("reach(\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    let known: std::collections::BTreeSet<String> =
        CRASH_FAILPOINTS.iter().chain(&NOTIFICATION_FAILPOINTS).map(|place| (*place).to_owned()).collect();
    assert_eq!(found, known);
}
