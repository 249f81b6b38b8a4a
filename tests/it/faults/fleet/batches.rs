//! Debounce windows under deaths, and the rhythm of their jobs.

use std::time::{Duration, Instant};

use lakemill::ports::store::{Bucket, WriteOptions};

use super::round::{ATTEMPTS_MAX, Round, Told};
use super::scenarios::Scenario;
use crate::faults::checker::{Violation, records};
use crate::support::site::slug;

/// What takes too long for the quick set.
pub const LONG: [Scenario; 3] =
    [("windows", two_thousand_windows), ("rhythm", an_event_a_second), ("seeds", two_thousand_seeds)];

/// Windows of the long set, and workers that race for them.
const WINDOWS: usize = 2_000;
const RACERS: usize = 8;
/// How long events come, one a second.
const EVENTS: Duration = Duration::from_secs(300);
/// Between two jobs then, and what a look at the queue and the start of a job may add.
const BATCH_MS: i64 = 30_000;
const SLACK_MS: i64 = 1_000;

fn two_thousand_windows(seed: u64, _: u64) -> Told {
    raced(seed, WINDOWS, RACERS)
}

/// A window each of so many pipelines; each becomes exactly one job.
pub fn raced(seed: u64, windows: usize, racers: usize) -> Told {
    let mut round = Round::new(seed, windows);
    let slugs: Vec<_> = round.pipelines.iter().map(|name| slug(name)).collect();
    round.site.kv.extend_windows(&slugs).unwrap();
    for _ in 0..racers {
        let places = "worker::before_fire=1%return(kill);worker::fired=1%return(kill)";
        round.worker(&[("FAILPOINTS", places.into())]);
    }
    round.until("every window to be fired", |round| round.site.kv.counts().is_ok_and(|counts| counts.windows == 0));
    round.count("windows raced for", windows as u64);
    let mut told = round.check();
    let jobs = told.figures.get("jobs ended").copied().unwrap_or(0);
    if jobs != windows as u64 {
        told.violations.push(Violation::LeftInQueue { what: "jobs of windows", count: jobs });
    }
    told
}

fn two_thousand_seeds(seed: u64, _: u64) -> Told {
    Told { figures: crate::faults::sim::long(seed), ..Told::default() }
}

fn an_event_a_second(seed: u64, _: u64) -> Told {
    let mut round = Round::new(seed, 1);
    round.worker(&[]);
    round.pass(Duration::from_secs(1));
    let began = Instant::now();
    let (name, mut n) = (slug("p0"), 0u32);
    while began.elapsed() < EVENTS {
        let body = format!("p,n\n1,{n}\n");
        let key = format!("pipelines/p0/in/event-{}.csv", n % 20);
        round.site.store.put(Bucket::Lake, &key, body.as_bytes(), &WriteOptions::default()).unwrap();
        round.site.kv.extend_windows(std::slice::from_ref(&name)).unwrap();
        n += 1;
        let next = Duration::from_secs(u64::from(n));
        round.pass(next.saturating_sub(began.elapsed()));
    }
    round.count("events", u64::from(n));
    let times: Vec<i64> = {
        let records = records(&*round.site.store, &name);
        let mut times: Vec<i64> = records.values().map(|job| job.enqueued_at.timestamp_millis()).collect();
        times.sort_unstable();
        times
    };
    let mut told = round.check();
    let apart = times.windows(2).map(|pair| pair[1] - pair[0]);
    let odd: Vec<i64> = apart.filter(|ms| (ms - BATCH_MS).abs() > SLACK_MS).collect();
    let expected = EVENTS.as_millis() as usize / BATCH_MS as usize;
    if !odd.is_empty() || times.len() + 1 < expected {
        told.files.insert("rhythm.txt".into(), format!("{times:?}\n{odd:?}, at most {ATTEMPTS_MAX} attempts"));
        told.violations.push(Violation::LeftInQueue { what: "jobs out of their rhythm", count: odd.len() as u64 });
    }
    told
}
