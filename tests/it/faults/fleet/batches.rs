//! Debounce windows while workers die, and the interval of their jobs.

use std::time::{Duration, Instant};

use lakemill::domain::layout::{manifest_key, pipeline_prefix};
use lakemill::domain::table_log::root::Root;
use lakemill::pipelines::tables::{TableStore, put_retagged};
use lakemill::ports::store::{Bucket, WriteOptions};

use super::report::RoundReport;
use super::round::Round;
use super::scenarios::Scenario;
use crate::faults::checker::{Violation, clean_store, records};
use crate::support::site::slug;

/// Cases too long for the quick set.
pub const LONG: [Scenario; 3] =
    [("windows", two_thousand_windows), ("rhythm", steady_events), ("seeds", two_thousand_seeds)];

/// Windows of the long set, and the number of workers that compete for them.
const WINDOWS: usize = 2_000;
const RACERS: usize = 8;
/// Failpoints at which the workers die.
const CRASH_FAILPOINTS: [&str; 6] = [
    "worker::before_fire",
    "worker::fired",
    "worker::claimed",
    "worker::started",
    "worker::before_record",
    "worker::recorded",
];
/// Duration of a steady stream of one event per second.
const EVENTS: Duration = Duration::from_secs(300);
/// Time from a window's first event to its job, plus the polling interval of the queue.
const BATCH_MS: i64 = 30_000;
const SLACK_MS: i64 = 1_000;
const SOURCE: &str = "in/0.csv";

fn two_thousand_windows(seed: u64, _: u64) -> RoundReport {
    raced(seed, WINDOWS, RACERS, 3)
}

/// One window for each of many pipelines, all due at once; each becomes exactly one job. Workers die at `per_mille` of
/// the arrivals at each failpoint.
pub fn raced(seed: u64, windows: usize, racers: usize, per_mille: u32) -> RoundReport {
    let mut round = Round::on_folder(seed, None);
    lay_out(&mut round, windows);
    let slugs: Vec<_> = round.pipelines.iter().map(|name| slug(name)).collect();
    let failpoints =
        CRASH_FAILPOINTS.map(|place| format!("{place}={}%return(kill)", f64::from(per_mille) / 10.0)).join(";");
    for _ in 0..racers {
        round.worker(&[("FAILPOINTS", failpoints.clone())]);
    }
    for slugs in slugs.chunks(500) {
        round.site.kv.extend_windows(slugs).unwrap();
    }
    round.note("windows raced for", windows as u64);
    round.note("workers", racers as u64);
    round.until("every window's job to end", |round| round.is_idle());
    let jobs: Vec<u64> = slugs.iter().map(|slug| records(&*round.site.store, slug).len() as u64).collect();
    let mut report = round.check();
    let odd = slugs.iter().zip(jobs).filter(|(_, jobs)| *jobs != 1);
    let odd = odd.map(|(slug, jobs)| Violation::JobsOfWindow { pipeline: slug.to_string(), jobs });
    report.violations.extend(odd);
    report
}

/// Pipelines whose manifests match their lake, but have another config and no files in the warehouse: a comparison by a
/// restarting worker finds nothing new and enqueues no run, but a run must create all files.
fn lay_out(round: &mut Round, pipelines: usize) {
    let body = b"p,n\n0,1\n1,2\n";
    let source = |pipeline: &str| format!("{}{SOURCE}", pipeline_prefix(&slug(pipeline)));
    let first = slug("p0");
    let lake = [(source("p0"), body.to_vec())].into();
    let clean = clean_store(&first, &Round::config().to_string(), &lake);
    let (own, root) = (pipeline_prefix(&first), manifest_key(&first, "t"));
    let made = clean.contents(Bucket::Pipelines);
    let other = Root { fingerprint: "of another config".into(), ..Root::parse(&made[&root]).unwrap() }.to_json();
    for _ in 0..pipelines {
        let name = round.pipeline();
        let store = &round.site.store;
        let options = WriteOptions::default();
        let put = |bucket, key: &str, body: &[u8]| store.put(bucket, key, body, &options).unwrap();
        let tag = put(Bucket::Lake, &source(&name), body).etag.map(|tag| tag.0);
        let slug = slug(&name);
        for (key, bytes) in made.iter().filter(|(key, _)| key.contains("/manifests/") && **key != root) {
            put(Bucket::Pipelines, &format!("{}{}", pipeline_prefix(&slug), &key[own.len()..]), bytes);
        }
        let table = TableStore::new(&**store, &slug, "t");
        put_retagged(&table, &other, false, &options, |_, _| tag.clone()).unwrap();
    }
}

fn two_thousand_seeds(seed: u64, _: u64) -> RoundReport {
    let figures = crate::faults::sim::long(seed);
    let (of_jobs, faults) = figures.into_iter().partition(|(what, _)| what.starts_with('('));
    RoundReport { faults, notes: of_jobs, ..RoundReport::default() }
}

fn steady_events(seed: u64, _: u64) -> RoundReport {
    events(seed, EVENTS)
}

/// One event per second: a job 30 s after each window's first event.
pub fn events(seed: u64, time: Duration) -> RoundReport {
    let mut round = Round::new(seed, 1);
    round.worker(&[]);
    round.pass(Duration::from_secs(1));
    let began = Instant::now();
    let (name, mut came) = (slug("p0"), Vec::new());
    while began.elapsed() < time {
        let n = came.len();
        let body = format!("p,n\n1,{n}\n");
        let relative = format!("in/event-{}.csv", n % 20);
        let key = format!("pipelines/p0/{relative}");
        round.site.store.put(Bucket::Lake, &key, body.as_bytes(), &WriteOptions::default()).unwrap();
        came.push(chrono::Utc::now().timestamp_millis());
        let changed = [relative.as_str()].into_iter().collect();
        round.site.kv.record_changes(&[(name.clone(), changed)]).unwrap();
        let next = Duration::from_secs(n as u64 + 1);
        round.pass(next.saturating_sub(began.elapsed()));
    }
    round.note("events", came.len() as u64);
    let mut jobs: Vec<i64> = {
        let records = records(&*round.site.store, &name);
        records.values().map(|job| job.enqueued_at.timestamp_millis()).collect()
    };
    jobs.sort_unstable();
    let after = since_first_events(&came, &jobs);
    let apart: Vec<i64> = jobs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (what, times) in [("of a window until its job", &after), ("between two jobs", &apart)] {
        for (which, time) in [("shortest", times.iter().min()), ("longest", times.iter().max())] {
            round.note(&format!("{which} time {what}, ms"), time.copied().unwrap_or(0).unsigned_abs());
        }
    }
    round.note("jobs in rhythm", jobs.len() as u64);
    let mut report = round.check();
    let is_odd = |ms: &i64| (ms - BATCH_MS).abs() > SLACK_MS;
    // Each window begins with the first event after the previous window's job, at most a second later.
    let expected = time.as_millis() as i64 / (BATCH_MS + SLACK_MS);
    if after.iter().any(is_odd) || (jobs.len() as i64) < expected {
        report.files.insert("rhythm.txt".into(), format!("events {came:?}\njobs {jobs:?}\nbetween jobs {apart:?}"));
        report.violations.push(Violation::DebounceIntervalMissed { after_ms: after });
    }
    report
}

/// Delay of each job after the first event since the previous job.
fn since_first_events(came: &[i64], jobs: &[i64]) -> Vec<i64> {
    let mut last = 0;
    let mut after = Vec::new();
    for job in jobs {
        let first = came.iter().find(|event| **event > last).copied().unwrap_or(last);
        after.push(job - first);
        last = *job;
    }
    after
}
