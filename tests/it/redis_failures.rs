//! Redis that disconnects, restarts, pauses, loses data or is full: steps are atomic, responses match their requests,
//! accepted jobs are not lost.

use std::time::{Duration, Instant};

use lakemill::adapters::redis::{RedisKv, RedisOptions, keys};
use lakemill::domain::job::{AttemptCost, Job, JobMessage, RunResult, WaitReason};
use lakemill::domain::name::Slug;
use lakemill::ports::jobs::{
    ClaimLimits, EnqueueOutcome, Entry, HeartbeatReply, JobQueue, JobRegistry, PipelineLocks, ReleaseOutcome, Requeue,
    StartOutcome, StartRequest, StartedJob,
};
use lakemill::ports::kv::{Diagnose, KeyLocks, KvError, KvResult};
use lakemill::ports::schedule::Schedule;
use lakemill::ports::sessions::Sessions;

use crate::support::cutting_proxy::{CuttingProxy, Moment};
use crate::support::redis_server::RedisServer;

const TTL: Duration = Duration::from_secs(60);
const IMMEDIATELY: Duration = Duration::ZERO;
const DEADLINE: Duration = Duration::from_secs(20);
/// Response timeout of a handle that must detect a pause quickly.
const SOON: Duration = Duration::from_millis(700);

fn slug(text: &str) -> Slug {
    Slug::parse(text).unwrap()
}

fn job(pipeline: &str) -> Job {
    let enqueued_at = chrono::DateTime::from_timestamp_millis(1_700_000_000_000).unwrap();
    Job::queued(&JobMessage::new(slug(pipeline), false, "manual", enqueued_at), 3)
}

fn enqueue(kv: &RedisKv, pipeline: &str) -> Job {
    let job = job(pipeline);
    assert_eq!(kv.enqueue(&job).unwrap(), EnqueueOutcome::Queued);
    job
}

fn claim(kv: &RedisKv) -> Entry {
    kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap().remove(0)
}

fn start(kv: &RedisKv, entry: &Entry, job: &Job) -> KvResult<StartOutcome> {
    start_under(kv, entry, job, &uuid::Uuid::new_v4().to_string())
}

fn start_under(kv: &RedisKv, entry: &Entry, job: &Job, token: &str) -> KvResult<StartOutcome> {
    let message = job.message();
    kv.start(&StartRequest {
        entry: &entry.id,
        consumer: "w",
        message: &message,
        token,
        lock_ttl: TTL,
        fence_floor: 0,
        attempts_max: 3,
    })
}

fn run(kv: &RedisKv, pipeline: &str) -> (Job, StartedJob) {
    let job = enqueue(kv, pipeline);
    let entry = claim(kv);
    let StartOutcome::Running(start) = start(kv, &entry, &job).unwrap() else { panic!("it runs") };
    (job, start)
}

fn ended(job: &Job) -> Job {
    job.clone().completed(RunResult::default(), job.enqueued_at)
}

fn is_away<T: std::fmt::Debug>(outcome: KvResult<T>) {
    assert!(matches!(outcome, Err(KvError::Unavailable { .. })), "{outcome:?}");
}

/// Retries until it succeeds, like a worker.
fn eventually<T>(mut attempt: impl FnMut() -> KvResult<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(error) if Instant::now() > deadline => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// All data of a server, serialized by key.
fn everything(server: &RedisServer) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = server.ask(&["KEYS", "*"]);
    names.sort();
    names.into_iter().map(|name| (name.clone(), server.ask(&["DUMP", &name]))).collect()
}

#[test]
fn server_is_used_once_it_is_reachable() {
    let server = RedisServer::start();
    server.kill();
    let kv = server.kv();
    is_away(kv.ping());
    is_away(kv.enqueue(&job("trips")));
    is_away(kv.claim("w", ClaimLimits::any(1), IMMEDIATELY));
    server.start_again();
    kv.ping().unwrap();
    enqueue(&kv, "trips");
    claim(&kv);
}

#[test]
fn restarted_server_continues_with_its_data() {
    let server = RedisServer::durable();
    let kv = server.kv();
    let (running, first) = run(&kv, "trips");
    let waiting = {
        let (job, start) = run(&kv, "later");
        let wait = Requeue { job: &job, delay: IMMEDIATELY, reason: WaitReason::Retry, cost: AttemptCost::One };
        assert_eq!(kv.requeue(&start.lease, &wait).unwrap(), ReleaseOutcome::Released);
        job
    };
    let queued = enqueue(&kv, "queued");
    kv.extend_windows(&[slug("windowed")]).unwrap();
    kv.is_initialized().unwrap();
    kv.mark_initialized().unwrap();
    let before = everything(&server);
    server.kill();
    is_away(kv.heartbeat(&first.lease, TTL));
    server.start_again();
    assert_eq!(everything(&server).len(), before.len());
    // The scripts are lost with the process; the handle loads them again.
    assert_eq!(eventually(|| kv.heartbeat(&first.lease, TTL)), HeartbeatReply::Held { cancelled: false });
    assert!(kv.is_initialized().unwrap());
    assert_eq!(kv.finish(&first.lease, &ended(&running)).unwrap(), ReleaseOutcome::Released);
    assert_eq!(kv.release_due(10).unwrap(), 1);
    for job in [&queued, &waiting] {
        let entry = claim(&kv);
        let StartOutcome::Running(start) = start(&kv, &entry, job).unwrap() else { panic!("it runs") };
        assert!(start.lease.fence > first.lease.fence || start.lease.pipeline != first.lease.pipeline);
        assert_eq!(kv.finish(&start.lease, &ended(job)).unwrap(), ReleaseOutcome::Released);
    }
    assert_eq!(kv.counts().unwrap().windows, 1);
}

#[test]
fn data_loss_after_a_restart_is_detected() {
    let server = RedisServer::start();
    let kv = server.kv();
    assert!(!kv.is_initialized().unwrap(), "a new server");
    kv.mark_initialized().unwrap();
    assert!(kv.is_initialized().unwrap());
    let (_, lost) = run(&kv, "trips");
    server.stop();
    server.start_empty();
    assert!(!eventually(|| kv.is_initialized()));
    assert_eq!(kv.heartbeat(&lost.lease, TTL).unwrap(), HeartbeatReply::Lost);
    let job = enqueue(&kv, "trips");
    let entry = claim(&kv);
    let StartOutcome::Running(start) = start(&kv, &entry, &job).unwrap() else { panic!("it runs") };
    assert!(start.lease.fence > lost.lease.fence, "fences follow the time");
    kv.mark_initialized().unwrap();
    assert!(kv.is_initialized().unwrap());
}

#[test]
fn data_loss_is_detected_despite_mark_initialized() {
    let server = RedisServer::start();
    let kv = server.kv();
    assert!(!kv.is_initialized().unwrap());
    kv.mark_initialized().unwrap();
    server.ask::<()>(&["FLUSHALL"]);
    kv.mark_initialized().unwrap();
    assert_eq!(kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap(), []);
    assert!(!kv.is_initialized().unwrap(), "the group was recreated");
}

#[test]
fn destroyed_group_is_recreated_with_all_entries() {
    let server = RedisServer::start();
    let kv = server.kv();
    kv.is_initialized().unwrap();
    kv.mark_initialized().unwrap();
    let first = enqueue(&kv, "one");
    claim(&kv);
    server.ask::<()>(&["XGROUP", "DESTROY", keys::STREAM, keys::GROUP]);
    assert_eq!(kv.counts().unwrap().pending, 0);
    assert_eq!(kv.reclaim("w", 10, IMMEDIATELY).unwrap(), []);
    let entry = claim(&kv);
    assert!(matches!(start(&kv, &entry, &first).unwrap(), StartOutcome::Running(_)));
    assert!(!kv.is_initialized().unwrap());
}

#[test]
fn waiting_claim_survives_the_loss_of_the_stream() {
    let server = RedisServer::start();
    let kv = server.kv();
    assert_eq!(kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap(), []);
    for command in [&["FLUSHALL"] as &[&str], &["DEL", keys::STREAM], &["XGROUP", "DESTROY", keys::STREAM, keys::GROUP]]
    {
        std::thread::scope(|scope| {
            let claimed = scope.spawn(|| kv.claim("w", ClaimLimits::any(1), Duration::from_secs(5)));
            wait_until(|| server.ask::<String>(&["INFO", "clients"]).contains("blocked_clients:1"));
            server.ask::<()>(command);
            let job = enqueue(&server.kv(), "trips");
            let mut entries = claimed.join().unwrap().unwrap();
            if entries.is_empty() {
                entries = kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap();
            }
            assert!(entries[0].fields.contains(&("job_id".into(), job.job_id.to_string())), "{entries:?}");
        });
        server.ask::<()>(&["FLUSHALL"]);
        kv.is_initialized().unwrap();
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn late_replies_of_a_paused_server_are_discarded() {
    let server = RedisServer::start();
    let kv = server.impatient(SOON);
    let jobs: Vec<Job> = (0..2).map(|n| enqueue(&kv, &format!("p{n}"))).collect();
    let paused = server.pause();
    for job in &jobs {
        let error = kv.job(&job.pipeline, &job.job_id).unwrap_err();
        let KvError::Unavailable { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::TimedOut, "{error}");
    }
    is_away(kv.claim("w", ClaimLimits::any(1), IMMEDIATELY));
    is_away(kv.ping());
    drop(paused);
    eventually(|| kv.ping());
    for job in jobs.iter().rev() {
        assert_eq!(kv.job(&job.pipeline, &job.job_id).unwrap().unwrap().job_id, job.job_id);
    }
}

#[test]
fn steps_are_atomic_when_connections_are_cut() {
    let late = Moment::LateReply(SOON * 3);
    for moment in [Moment::BeforeRequest, Moment::MidRequest, Moment::BeforeReply, Moment::MidReply, late] {
        let server = RedisServer::start();
        let proxy = CuttingProxy::new(server.port());
        let options = RedisOptions {
            connect_timeout: SOON * 10,
            response_timeout: SOON,
            ..RedisOptions::new(format!("redis://127.0.0.1:{}/", proxy.port()))
        };
        let kv = RedisKv::open(&options).unwrap();
        // The scripts are loaded before any connection is cut.
        let (warm, start_of_warm) = run(&kv, "warm");
        kv.finish(&start_of_warm.lease, &ended(&warm)).unwrap();
        kv.reclaim("w", 1, IMMEDIATELY).unwrap();

        let other = enqueue(&kv, "other");
        let job = job("trips");
        proxy.fail_next(moment, "EVALSHA");
        is_away(kv.enqueue(&job));
        let known = kv.job(&job.pipeline, &job.job_id).unwrap();
        assert_eq!(
            known.is_some(),
            kv.enqueue(&job).unwrap() == EnqueueOutcome::AlreadyActive,
            "{moment:?}: whole or not"
        );
        assert_eq!(kv.counts().unwrap().stream, 2, "{moment:?}: once in the stream");

        // An argument of the script that claims.
        proxy.fail_next(moment, keys::RUN_LOCK);
        is_away(kv.claim("w", ClaimLimits::any(1), IMMEDIATELY));
        assert_eq!(kv.job(&other.pipeline, &other.job_id).unwrap().as_ref(), Some(&other), "{moment:?}");
        let mut entries = kv.claim("w", ClaimLimits::any(10), IMMEDIATELY).unwrap();
        entries.extend(kv.reclaim("w", 10, IMMEDIATELY).unwrap());
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        entries.dedup();
        assert_eq!(entries.len(), 2, "{moment:?}: nothing is lost");

        proxy.fail_next(moment, "EVALSHA");
        // It is retried only if that is safe and useful; callers may retry it themselves.
        let begun = start_under(&kv, &entries[1], &job, "one").or_else(|error| {
            assert!(matches!(error, KvError::Unavailable { .. }), "{moment:?}: {error}");
            start_under(&kv, &entries[1], &job, "one")
        });
        let StartOutcome::Running(started) = begun.unwrap() else { panic!("{moment:?}") };
        assert_eq!((started.attempt, started.lost_starts), (1, 0), "{moment:?}: it counts once");

        proxy.fail_next(moment, "EVALSHA");
        is_away(kv.finish(&started.lease, &ended(&job)));
        let shown = kv.job(&job.pipeline, &job.job_id).unwrap().unwrap();
        let again = kv.finish(&started.lease, &ended(&job)).unwrap();
        assert_eq!(again == ReleaseOutcome::Lost, shown.status.is_terminal(), "{moment:?}: whole or not");
        assert!(kv.lock_pipeline(&job.pipeline, TTL, 0).unwrap().is_some(), "{moment:?}: the lock is free");
        assert_eq!(kv.counts().unwrap().stream, 1, "{moment:?}");
        assert_eq!(proxy.failed_requests(), 4, "{moment:?}: each cut took place");
    }
}

#[test]
fn idempotent_requests_are_retried_on_a_new_connection() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::new(server.port());
    let kv = RedisKv::open(&RedisOptions::new(format!("redis://127.0.0.1:{}/", proxy.port()))).unwrap();
    let (job, start) = run(&kv, "trips");
    for moment in [Moment::BeforeRequest, Moment::MidRequest, Moment::BeforeReply, Moment::MidReply] {
        proxy.fail_next(moment, "EVALSHA");
        assert_eq!(kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false }, "{moment:?}");
        proxy.fail_next(moment, "EVALSHA");
        assert_eq!(
            kv.update_record(&start.lease, &job).unwrap(),
            HeartbeatReply::Held { cancelled: false },
            "{moment:?}"
        );
    }
    assert_eq!(proxy.failed_requests(), 8);
    proxy.cut_all();
    kv.ping().unwrap();
}

#[test]
fn replies_match_requests_under_random_failures() {
    let server = RedisServer::start();
    let proxy = CuttingProxy::new(server.port());
    let options = RedisOptions {
        connect_timeout: SOON * 10,
        response_timeout: SOON / 10,
        ..RedisOptions::new(format!("redis://127.0.0.1:{}/", proxy.port()))
    };
    let kv = RedisKv::open(&options).unwrap();
    let direct = server.kv();
    let jobs: Vec<Job> = (0..20).map(|n| enqueue(&direct, &format!("p{n}"))).collect();
    let late = Moment::LateReply(SOON / 5);
    let moments = [Moment::BeforeReply, Moment::MidReply, late, Moment::MidRequest, Moment::BeforeRequest];
    let mut answered = 0;
    for round in 0..400_usize {
        if round % 4 == 0 {
            proxy.fail_next(moments[round / 4 % moments.len()], "EVALSHA");
        }
        let job = &jobs[round * 7 % jobs.len()];
        match kv.job(&job.pipeline, &job.job_id) {
            Ok(found) => {
                assert_eq!(found.as_ref(), Some(job));
                answered += 1;
            }
            Err(KvError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(answered > 200, "{answered} answers");
}

#[test]
fn flushed_scripts_are_loaded_again() {
    let server = RedisServer::start();
    let kv = server.kv();
    let (job, start) = run(&kv, "trips");
    server.ask::<()>(&["SCRIPT", "FLUSH"]);
    assert_eq!(kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    server.ask::<()>(&["SCRIPT", "FLUSH"]);
    assert_eq!(kv.finish(&start.lease, &ended(&job)).unwrap(), ReleaseOutcome::Released);
}

#[test]
fn full_server_rejects_new_jobs_and_lets_running_ones_finish() {
    let server = RedisServer::with(&["--maxmemory-policy", "noeviction"]);
    let kv = server.kv();
    let (running, start) = run(&kv, "trips");
    let (again, retried) = run(&kv, "again");
    kv.extend_windows(&[slug("windowed")]).unwrap();
    let before = everything(&server);
    server.ask::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let refused = |outcome: KvResult<()>| {
        let Err(KvError::Refused { reason, .. }) = outcome else { panic!("{outcome:?}") };
        assert!(reason.starts_with("OOM"), "{reason}");
    };
    refused(kv.enqueue(&job("more")).map(drop));
    refused(kv.extend_windows(&[slug("more")]).map(drop));
    refused(kv.lock_pipeline(&slug("more"), TTL, 0).map(drop));
    refused(kv.open("ab", TTL, TTL).map(drop));
    refused(kv.try_lock("name", "token", TTL).map(drop));
    refused(kv.probe_write());
    assert_eq!(everything(&server), before, "nothing took place");
    assert_eq!(kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
    assert_eq!(kv.finish(&start.lease, &ended(&running)).unwrap(), ReleaseOutcome::Released);
    let wait = Requeue { job: &again, delay: IMMEDIATELY, reason: WaitReason::Retry, cost: AttemptCost::One };
    assert_eq!(kv.requeue(&retried.lease, &wait).unwrap(), ReleaseOutcome::Released);
    assert_eq!(kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap(), []);
    assert_eq!(kv.counts().unwrap().waiting, 1);
    server.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(kv.release_due(10).unwrap(), 1);
    enqueue(&kv, "more");
}

#[test]
fn replica_rejects_writes() {
    let (primary, server) = (RedisServer::start(), RedisServer::start());
    let kv = server.kv();
    enqueue(&kv, "trips");
    server.ask::<()>(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let outcome = kv.enqueue(&job("more"));
    // Until it has synchronised it may report that it is unavailable.
    assert!(matches!(outcome, Err(KvError::Refused { .. } | KvError::Unavailable { .. })), "{outcome:?}");
}

#[test]
fn write_probe_fails_if_any_writing_command_is_forbidden() {
    let server = RedisServer::start();
    let kv = server.kv();
    kv.probe_write().unwrap();
    for command in ["xadd", "hset", "zadd", "set", "del", "xack", "zrem", "pexpire"] {
        server.ask::<()>(&["ACL", "SETUSER", "default", &format!("-{command}")]);
        let Err(KvError::Refused { reason, .. }) = kv.probe_write() else { panic!("{command}") };
        assert!(reason.contains("NOPERM") || reason.contains("user executing the script"), "{reason}");
        server.ask::<()>(&["ACL", "SETUSER", "default", &format!("+{command}")]);
        kv.probe_write().unwrap();
    }
    server.ask::<()>(&["ACL", "SETUSER", "default", "resetkeys", "~other:*"]);
    assert!(matches!(kv.probe_write(), Err(KvError::Refused { .. })));
}
