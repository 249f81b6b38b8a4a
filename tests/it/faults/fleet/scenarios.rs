//! Fault scenarios, one function each. A parameter gives the number or duration of faults: few in the quick set, many
//! in the long one.

use std::time::Duration;

use lakemill::domain::job::JobStatus;
use lakemill::domain::job::message::TRIGGER_AUTO;
use rustix::process::Signal;

use super::fault_proxy::FaultRates;
use super::report::RoundReport;
use super::round::Round;
use super::{disks, failpoints};
use crate::faults::checker::records;
use crate::support::cutting_proxy::Moment;
use crate::support::site::slug;

/// A scenario's name, and its function of a seed and an amount.
pub type Scenario = (&'static str, fn(u64, u64) -> RoundReport);

pub const SCENARIOS: [Scenario; 13] = [
    ("kill", failpoints::killed_at_every_failpoint),
    ("stop", failpoints::stopped_for_longer_than_the_lock),
    ("redis-kill", redis_killed_and_paused),
    ("redis-loss", redis_without_its_data),
    ("redis-full", redis_out_of_memory),
    ("redis-cut", connections_cut),
    ("s3", s3_with_random_faults),
    ("s3-away", s3_long_outage),
    ("store-full", disks::store_full),
    ("scratch-full", disks::scratch_full),
    ("clock", clocks_ten_minutes_off),
    ("sigterm", repeated_stops),
    ("rolling", rolling_restart),
];

pub fn busy(seed: u64, jobs: u64) -> Round {
    let mut round = Round::new(seed, 3);
    for _ in 0..2 {
        // Long enough for events in between.
        round.worker(&[("FAILPOINTS", "publish::between_puts=50%sleep(300)".into())]);
    }
    for _ in 0..jobs {
        round.enqueue();
    }
    round
}

fn redis_killed_and_paused(seed: u64, intensity: u64) -> RoundReport {
    let mut round = busy(seed, 4);
    for n in 0..2 * intensity {
        let pause = Duration::from_millis(300 + round.rng.below(1_500));
        round.pass(pause);
        if n % 2 == 0 {
            round.redis().kill();
            round.count("Redis killed", 1);
            let pause = Duration::from_millis(round.rng.below(3_000));
            round.pass(pause);
            round.redis().start_again();
        } else {
            round.redis().signal(Signal::STOP);
            round.count("Redis paused", 1);
            let pause = Duration::from_millis(500 + round.rng.below(6_000));
            round.pass(pause);
            round.redis().signal(Signal::CONT);
        }
        round.enqueue();
        round.enqueue();
    }
    round.check()
}

fn redis_without_its_data(seed: u64, intensity: u64) -> RoundReport {
    let mut round = busy(seed, 4);
    for _ in 0..intensity {
        let pause = Duration::from_millis(300 + round.rng.below(2_500));
        round.pass(pause);
        round.redis().kill();
        round.allow_lost_jobs();
        round.redis().start_empty();
        round.count("Redis lost its data", 1);
        round.enqueue();
        // Workers check every 5 s whether it has lost its data.
        round.until("the loss to be noticed", |round| round.site.kv.is_initialized().unwrap_or(false));
        round.enqueue();
    }
    round.check()
}

fn redis_out_of_memory(seed: u64, intensity: u64) -> RoundReport {
    let mut round = busy(seed, 4);
    for _ in 0..intensity {
        round.redis().ask::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        round.count("Redis out of memory", 1);
        let pause = Duration::from_millis(500 + round.rng.below(4_000));
        round.pass(pause);
        round.redis().ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        round.enqueue();
        round.enqueue();
    }
    round.check()
}

fn connections_cut(seed: u64, intensity: u64) -> RoundReport {
    let mut round = busy(seed, 6);
    for _ in 0..40 * intensity {
        let late = Moment::LateReply(Duration::from_millis(round.rng.below(4_000)));
        let moments = [Moment::BeforeRequest, Moment::MidRequest, Moment::BeforeReply, Moment::MidReply, late];
        let moment = moments[round.rng.below(5) as usize];
        // Every script, and the command that waits for new entries.
        let text = ["EVALSHA", "XREAD", "EVALSHA"][round.rng.below(3) as usize];
        round.cutter.fail_next(moment, text);
        let pause = Duration::from_millis(20 + round.rng.below(250));
        round.pass(pause);
        if round.rng.one_in(10) {
            round.cutter.cut_all();
            round.count("all connections to Redis cut", 1);
        }
        if round.rng.one_in(6) {
            round.enqueue();
        }
    }
    round.check()
}

fn s3_with_random_faults(seed: u64, intensity: u64) -> RoundReport {
    let mut round = busy(seed, 3);
    let bad = FaultRates { status_500: 10, status_503: 10, slow: 30, reset: 15, lost_answer: 25, away: false };
    *round.proxy.rates.lock().unwrap() = bad;
    for _ in 0..5 * intensity {
        round.enqueue();
        let pause = Duration::from_millis(200 + round.rng.below(1_500));
        round.pass(pause);
    }
    round.check()
}

fn s3_long_outage(seed: u64, intensity: u64) -> RoundReport {
    let mut round = busy(seed, 4);
    round.pass(Duration::from_millis(700));
    round.proxy.rates.lock().unwrap().away = true;
    round.count("seconds without S3", 8 * intensity);
    round.enqueue();
    // Longer than the lock with its heartbeats, and than many retries of writing a record.
    round.pass(Duration::from_secs(8 * intensity));
    round.proxy.rates.lock().unwrap().away = false;
    round.enqueue();
    round.check()
}

fn clocks_ten_minutes_off(seed: u64, intensity: u64) -> RoundReport {
    // One pipeline, so that workers with different clocks run after each other on the same files.
    let mut round = Round::new(seed, 1);
    for ahead in ["600000", "-600000", "0"] {
        let failpoints = format!("clock::ahead_ms=return({ahead});publish::between_puts=10%return(kill)");
        round.worker(&[("FAILPOINTS", failpoints)]);
    }
    round.count("clocks ten minutes off", 2);
    for _ in 0..6 * intensity {
        round.enqueue();
        let pause = Duration::from_millis(round.rng.below(700));
        round.pass(pause);
    }
    round.pass(Duration::from_secs(3));
    round.check()
}

fn repeated_stops(seed: u64, intensity: u64) -> RoundReport {
    let mut round = busy(seed, 4);
    for _ in 0..6 * intensity {
        round.enqueue();
        let pause = Duration::from_millis(100 + round.rng.below(500));
        round.pass(pause);
        let n = round.rng.below(2) as usize;
        round.signal(n, Signal::TERM);
        round.count("SIGTERM", 1);
        if round.rng.one_in(3) {
            round.signal(n, Signal::TERM);
            round.count("SIGTERM, a second one", 1);
        }
    }
    let report = round.check();
    // A graceful stop doesn't use an attempt.
    assert_eq!(report.jobs.failed, 0, "{:#?}", report.files.get("history.txt"));
    report
}

/// Stops and replaces each of three workers, one after the other, until all jobs have completed.
fn rolling_restart(seed: u64, intensity: u64) -> RoundReport {
    let jobs = 50 * intensity;
    let mut round = Round::new(seed, 5);
    for _ in 0..3 {
        round.worker(&[]);
    }
    for _ in 0..jobs {
        round.enqueue();
    }
    let mut n = 0;
    round.until("all jobs to be done", |round| {
        round.signal(n % 3, Signal::TERM);
        round.count("SIGTERM", 1);
        let ended = round.ended_so_far();
        round.until("a worker to end", |round| round.ended_so_far() > ended);
        n += 1;
        round.pass(Duration::from_millis(700));
        round.site.kv.counts().is_ok_and(|counts| counts.stream + counts.waiting == 0)
    });
    let names = round.pipelines.clone();
    let ended = names.iter().flat_map(|name| records(&*round.site.store, &slug(name)).into_values());
    // A worker that reconciles before all jobs are enqueued requests one more.
    let asked = ended.filter(|job| job.trigger != TRIGGER_AUTO);
    let completed = asked.filter(|job| job.status == JobStatus::Completed && job.attempt == 1).count() as u64;
    assert_eq!(completed, jobs, "each of the jobs is done at its first attempt");
    round.check()
}
