//! Concurrent processes on one Redis: one winner, one run per pipeline, increasing fences.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lakemill::adapters::redis::{RedisKv, RedisOptions};
use lakemill::domain::job::{AttemptCost, Job, JobMessage, ParsedEntry, RunResult, WaitReason};
use lakemill::domain::name::Slug;
use lakemill::ports::jobs::{
    ClaimLimits, Entry, JobQueue, JobRegistry, PipelineLocks, ReleaseOutcome, Requeue, StartOutcome, StartRequest,
};
use lakemill::ports::schedule::{CloseReason, Cursor, Schedule};
use lakemill::runtime::Clock;

use crate::support::concurrent;
use crate::support::moved_clock::MovedClock;
use crate::support::redis_server::RedisServer;

const RACERS: usize = 8;
const TTL: Duration = Duration::from_secs(60);
const IMMEDIATELY: Duration = Duration::ZERO;
const DEADLINE: Duration = Duration::from_secs(60);

fn slug(text: &str) -> Slug {
    Slug::parse(text).unwrap()
}

fn job(pipeline: &Slug, n: i64) -> Job {
    let enqueued_at = chrono::DateTime::from_timestamp_millis(1_700_000_000_000 + n).unwrap();
    Job::queued(&JobMessage::new(pipeline.clone(), false, "auto", enqueued_at), 3)
}

fn message(entry: &Entry) -> JobMessage {
    let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    match JobMessage::parse(fields, entry.received_at) {
        ParsedEntry::Job(message) => message,
        odd => panic!("{odd:?}"),
    }
}

fn start(kv: &RedisKv, consumer: &str, entry: &Entry) -> StartOutcome {
    let message = message(entry);
    let request = StartRequest {
        entry: &entry.id,
        consumer,
        message: &message,
        token: &uuid::Uuid::new_v4().to_string(),
        lock_ttl: TTL,
        fence_floor: 0,
        attempts_max: 3,
    };
    kv.start(&request).unwrap()
}

/// Runs `race` on all threads at once, each with its own handle.
fn all_at_once<T: Send>(open: impl Fn() -> RedisKv, race: impl Fn(usize, &RedisKv) -> T + Sync) -> Vec<T> {
    concurrent::race(RACERS, open, race)
}

#[test]
fn one_of_eight_racing_fires_creates_the_job() {
    let server = RedisServer::start();
    let clock = Arc::new(MovedClock::default());
    let open = || {
        let clock: Arc<dyn Clock> = clock.clone();
        RedisKv::open(&RedisOptions { clock: Some(clock), ..RedisOptions::new(server.url()) }).unwrap()
    };
    let (kv, rounds) = (open(), 25);
    for round in 1..=rounds {
        kv.extend_windows(&[slug("trips")]).unwrap();
        clock.advance(Duration::from_secs(6));
        let fired = all_at_once(open, |n, kv| {
            let due = kv.due_windows(10).unwrap();
            due.iter().any(|slug| kv.fire_window(&job(slug, n as i64)).unwrap())
        });
        assert_eq!(fired.iter().filter(|fired| **fired).count(), 1, "round {round}");
        let counts = kv.counts().unwrap();
        assert_eq!((counts.stream, counts.windows), (round, 0));
        assert_eq!(kv.active(&slug("trips"), 100).unwrap().len(), round as usize);
    }
}

#[test]
fn events_racing_with_a_fire_belong_to_either_window() {
    let server = RedisServer::start();
    let clock = Arc::new(MovedClock::default());
    let open = || {
        let clock: Arc<dyn Clock> = clock.clone();
        RedisKv::open(&RedisOptions { clock: Some(clock), ..RedisOptions::new(server.url()) }).unwrap()
    };
    let kv = open();
    for round in 0..25 {
        kv.extend_windows(&[slug("trips")]).unwrap();
        clock.advance(Duration::from_secs(6));
        let before = kv.counts().unwrap().stream;
        let fired = all_at_once(open, |n, kv| {
            if n == 0 {
                kv.extend_windows(&[slug("trips")]).unwrap();
                return false;
            }
            kv.fire_window(&job(&slug("trips"), n as i64)).unwrap()
        });
        let fired = fired.into_iter().filter(|fired| *fired).count() as u64;
        let counts = kv.counts().unwrap();
        // Extended first: it is no longer due. Fired first: the event has a new window.
        assert_eq!(counts.windows, 1, "round {round}: the event is remembered");
        assert!(fired <= 1 && counts.stream == before + fired, "round {round}");
        clock.advance(Duration::from_secs(6));
        assert!(kv.close_window(&slug("trips"), CloseReason::AutoRunOff).unwrap());
    }
}

#[test]
fn one_of_eight_racing_jobs_of_a_pipeline_runs() {
    let server = RedisServer::start();
    let kv = server.kv();
    for _ in 0..10 {
        for n in 0..RACERS {
            kv.enqueue(&job(&slug("trips"), n as i64)).unwrap();
        }
        let outcomes = all_at_once(
            || server.kv(),
            |n, kv| {
                let consumer = format!("w{n}");
                let entry = kv.claim(&consumer, ClaimLimits::any(1), IMMEDIATELY).unwrap().pop();
                entry.map(|entry| start(kv, &consumer, &entry))
            },
        );
        let is_run = |outcome: &&Option<StartOutcome>| matches!(outcome, Some(StartOutcome::Running(_)));
        let runs = outcomes.iter().filter(is_run).count();
        // Deferred by its claim, by the start of the one that runs, or by its own.
        let is_wait = |outcome: &&Option<StartOutcome>| matches!(outcome, None | Some(StartOutcome::Deferred { .. }));
        let waits = outcomes.iter().filter(is_wait).count();
        assert_eq!((runs, waits), (1, RACERS - 1), "{outcomes:?}");
        let counts = kv.counts().unwrap();
        assert_eq!((counts.stream, counts.pending, counts.waiting), (1, 1, 7));
        server.ask::<()>(&["FLUSHALL"]);
    }
}

#[test]
fn one_of_eight_racing_starts_of_an_entry_runs() {
    let server = RedisServer::start();
    let kv = server.kv();
    for _ in 0..20 {
        kv.enqueue(&job(&slug("trips"), 0)).unwrap();
        let entry = kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap().remove(0);
        let outcomes = all_at_once(|| server.kv(), |_, kv| start(kv, "w", &entry));
        let runs: Vec<_> = outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                StartOutcome::Running(start) => Some(start),
                StartOutcome::RunningElsewhere => None,
                odd => panic!("{odd:?}"),
            })
            .collect();
        assert_eq!(runs.len(), 1);
        let shown = kv.job(&slug("trips"), &runs[0].lease.job_id).unwrap().unwrap();
        assert_eq!(shown.attempt, 1);
        let ended = shown.clone().completed(RunResult::default(), shown.enqueued_at);
        assert_eq!(kv.finish(&runs[0].lease, &ended).unwrap(), ReleaseOutcome::Released);
    }
}

/// Events observed by all workers of the race below.
#[derive(Default)]
struct Watch {
    is_running: AtomicBool,
    last_fence: Mutex<u64>,
}

#[test]
fn concurrent_workers_finish_every_job_once() {
    const JOBS: usize = 240;
    let server = RedisServer::start();
    let kv = server.kv();
    let pipelines: Vec<Slug> = (0..6).map(|n| slug(&format!("p{n}"))).collect();
    let watches: HashMap<&Slug, Watch> = pipelines.iter().map(|slug| (slug, Watch::default())).collect();
    for n in 0..JOBS {
        kv.enqueue(&job(&pipelines[n % pipelines.len()], n as i64)).unwrap();
    }
    let ended = AtomicUsize::new(0);
    let done: Mutex<HashMap<String, usize>> = Mutex::default();
    let deadline = Instant::now() + DEADLINE;
    all_at_once(
        || server.kv(),
        |n, kv| {
            let consumer = format!("w{n}");
            while ended.load(Ordering::SeqCst) < JOBS {
                assert!(Instant::now() < deadline, "{:?}", kv.counts());
                kv.release_due(10).unwrap();
                if n == 0 {
                    kv.requeue_lost(&Cursor::default()).unwrap();
                }
                for entry in kv.claim(&consumer, ClaimLimits::any(2), Duration::from_millis(20)).unwrap() {
                    let StartOutcome::Running(start) = start(kv, &consumer, &entry) else { continue };
                    let lease = &start.lease;
                    let watch = &watches[&lease.pipeline];
                    assert!(!watch.is_running.swap(true, Ordering::SeqCst), "two runs of `{}`", lease.pipeline);
                    let last = std::mem::replace(&mut *watch.last_fence.lock().unwrap(), lease.fence);
                    assert!(lease.fence > last, "fences rise");
                    let job = kv.job(&lease.pipeline, &lease.job_id).unwrap().unwrap();
                    watch.is_running.store(false, Ordering::SeqCst);
                    if start.attempt == 1 && n % 3 == 0 {
                        let wait = Requeue {
                            job: &job,
                            delay: IMMEDIATELY,
                            reason: WaitReason::Retry,
                            cost: AttemptCost::One,
                        };
                        assert_eq!(kv.requeue(lease, &wait).unwrap(), ReleaseOutcome::Released);
                    } else {
                        let last = job.clone().completed(RunResult::default(), job.enqueued_at);
                        assert_eq!(kv.finish(lease, &last).unwrap(), ReleaseOutcome::Released);
                        *done.lock().unwrap().entry(lease.job_id.to_string()).or_default() += 1;
                        ended.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        },
    );
    let done = done.into_inner().unwrap();
    assert!(done.len() == JOBS && done.values().all(|times| *times == 1), "each ended once");
    assert_eq!(kv.counts().unwrap(), lakemill::ports::jobs::QueueCounts::default());
    for pipeline in &pipelines {
        assert!(kv.lock_pipeline(pipeline, TTL, 0).unwrap().is_some(), "the lock is free");
        assert!(kv.active(pipeline, 10).unwrap().is_empty());
    }
}
