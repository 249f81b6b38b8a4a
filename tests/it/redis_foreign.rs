//! Other users of the same Redis: programs that write to the stream, operators that delete keys, and keys of ours with
//! foreign content.

use std::time::Duration;

use lakemill::adapters::redis::{RedisKv, RedisOptions, keys};
use lakemill::domain::job::{
    AttemptCost, ChangedKeys, Job, JobId, JobMessage, JobStatus, ParsedEntry, RunResult, WaitReason,
};
use lakemill::domain::login::LoginScopes;
use lakemill::domain::name::Slug;
use lakemill::ports::jobs::{
    ClaimLimits, EnqueueOutcome, Entry, HeartbeatReply, JobQueue, JobRegistry, PipelineLocks, QueueCounts,
    ReleaseOutcome, Requeue, StartOutcome, StartRequest, StartedJob,
};
use lakemill::ports::kv::{KvError, KvResult};
use lakemill::ports::run_requests::RunRequests;
use lakemill::ports::schedule::{Cursor, Schedule};
use lakemill::ports::sessions::{LoginThrottle, Sessions};

use crate::support::redis_server::RedisServer;
use crate::support::site::await_that;

const TTL: Duration = Duration::from_secs(60);
const IMMEDIATELY: Duration = Duration::ZERO;

fn slug(text: &str) -> Slug {
    Slug::parse(text).unwrap()
}

fn enqueue(kv: &RedisKv, pipeline: &str) -> Job {
    let enqueued_at = chrono::DateTime::from_timestamp_millis(1_700_000_000_000).unwrap();
    let job = Job::queued(&JobMessage::new(slug(pipeline), false, "manual", enqueued_at), 3);
    kv.enqueue(&job).unwrap();
    job
}

fn claim(kv: &RedisKv) -> Entry {
    kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap().remove(0)
}

fn message(entry: &Entry) -> JobMessage {
    let fields = entry.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    match JobMessage::parse(fields, entry.received_at) {
        ParsedEntry::Job(message) => message,
        odd => panic!("{odd:?}"),
    }
}

fn start(kv: &RedisKv, entry: &Entry) -> KvResult<StartOutcome> {
    let message = message(entry);
    kv.start(&StartRequest {
        entry: &entry.id,
        consumer: "w",
        message: &message,
        token: &uuid::Uuid::new_v4().to_string(),
        lock_ttl: TTL,
        fence_floor: 0,
        attempts_max: 3,
    })
}

fn run_next(kv: &RedisKv) -> StartedJob {
    match start(kv, &claim(kv)).unwrap() {
        StartOutcome::Running(start) => start,
        odd => panic!("{odd:?}"),
    }
}

fn end(kv: &RedisKv, start: &StartedJob) {
    let job = kv.job(&start.lease.pipeline, &start.lease.job_id).unwrap().unwrap();
    let job = job.clone().completed(RunResult::default(), job.enqueued_at);
    assert_eq!(kv.finish(&start.lease, &job).unwrap(), ReleaseOutcome::Released);
}

/// Checks all active jobs; returns how many were requeued.
fn restore(kv: &RedisKv) -> usize {
    let (mut restored, mut at) = (0, Cursor::default());
    loop {
        let (count, next) = kv.requeue_lost(&at).unwrap();
        restored += count;
        match next {
            Some(next) => at = next,
            None => return restored,
        }
    }
}

fn entry_of(server: &RedisServer, job: &JobId) -> String {
    server.ask(&["HGET", &keys::message(job), "entry"])
}

fn names(server: &RedisServer) -> Vec<String> {
    let mut names: Vec<String> = server.ask(&["KEYS", "*"]);
    names.sort();
    names
}

fn everything(server: &RedisServer) -> Vec<(String, Vec<u8>)> {
    names(server).into_iter().map(|name| (name.clone(), server.ask(&["DUMP", &name]))).collect()
}

#[test]
fn foreign_entry_runs_and_leaves_only_expected_keys() {
    let (server, kv) = with_server();
    let add = ["XADD", keys::STREAM, "*", "job_id", "from-outside_1", "pipeline", "trips", "clean_run", "TRUE"];
    server.ask::<String>(&add);
    let job_id = JobId::parse("from-outside_1").unwrap();
    let queued = kv.job(&slug("trips"), &job_id).unwrap().unwrap();
    assert_eq!((queued.status, queued.attempt, queued.clean_run), (JobStatus::Queued, 0, true));
    let start = run_next(&kv);
    assert_eq!((&start.lease.job_id, start.attempt), (&job_id, 1));
    let shown = kv.job(&slug("trips"), &job_id).unwrap().unwrap();
    assert_eq!((shown.status, shown.attempt, shown.max_attempts, shown.clean_run), (JobStatus::Running, 1, 3, true));
    assert_eq!(kv.active(&slug("trips"), 10).unwrap(), std::slice::from_ref(&shown));
    let running = shown.started("w", start.lease.fence, 1, chrono::DateTime::UNIX_EPOCH);
    assert_eq!(kv.update_record(&start.lease, &running).unwrap(), HeartbeatReply::Held { cancelled: false });
    assert_eq!(server.ask::<i64>(&["PTTL", &keys::live(&job_id)]), -1, "it stays until the end");
    end(&kv, &start);
    let live = keys::live(&job_id);
    let ended = [keys::ENDED, &keys::ended_of(&queued.pipeline)];
    assert_eq!(names(&server), [keys::FENCES, keys::ADOPTED, ended[0], ended[1], &live, keys::STREAM]);
    let left: i64 = server.ask(&["PTTL", &live]);
    assert!((3_500_000..=3_600_000).contains(&left), "an hour: {left}");
    assert_eq!(server.ask::<i64>(&["XLEN", keys::STREAM]), 0);
}

#[test]
fn id_in_use_by_another_pipeline_is_rejected() {
    let (server, kv) = with_server();
    let job = enqueue(&kv, "trips");
    let start = run_next(&kv);
    server.ask::<String>(&["XADD", keys::STREAM, "*", "job_id", job.job_id.as_str(), "pipeline", "other"]);
    let entry = claim(&kv);
    assert_eq!(super::redis_foreign::start(&kv, &entry).unwrap(), StartOutcome::IdTaken);
    kv.dead_letter(&entry, "its id is another's").unwrap();
    let same_id = Job { pipeline: slug("other"), ..job.clone() };
    assert_eq!(kv.enqueue(&same_id).unwrap(), EnqueueOutcome::AlreadyActive);
    assert_eq!(kv.job(&slug("other"), &job.job_id).unwrap(), None);
    end(&kv, &start);
    assert_eq!(kv.counts().unwrap(), QueueCounts { dead_letters: 1, ..QueueCounts::default() });
}

#[test]
fn keys_have_their_documented_names_and_types() {
    let (server, kv) = with_server();
    let job = enqueue(&kv, "trips");
    let lease = run_next(&kv);
    enqueue(&kv, "trips");
    assert_eq!(kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap(), [], "it is deferred");
    kv.request_runs(&[slug("trips")]).unwrap();
    kv.extend_windows(&[slug("trips")]).unwrap();
    server.ask::<String>(&["XADD", keys::STREAM, "*", "odd", "entry"]);
    kv.dead_letter(&claim(&kv), "why").unwrap();
    kv.mark_initialized().unwrap();
    kv.open("ab12", TTL, TTL).unwrap();
    kv.admit(&client("127.0.0.1")).unwrap();
    for (name, kind) in [
        ("svc:jobs:stream", "stream"),
        ("svc:jobs:delayed", "zset"),
        ("svc:runs:requested", "zset"),
        (&format!("svc:jobs:message:{}", job.job_id), "hash"),
        (&format!("svc:jobs:live:{}", job.job_id), "string"),
        ("svc:jobs:active:trips", "zset"),
        ("svc:jobs:dead", "list"),
        ("svc:lock:run:trips", "string"),
        ("svc:fence", "hash"),
        ("svc:debounce:windows", "zset"),
        ("svc:debounce:first", "hash"),
        ("svc:epoch", "string"),
        ("svc:sessions:ab12", "string"),
        ("svc:login:127.0.0.1", "hash"),
    ] {
        assert_eq!(server.ask::<String>(&["TYPE", name]), kind, "{name}");
    }
    assert_eq!(server.ask::<String>(&["HGET", "svc:fence", "trips"]), lease.lease.fence.to_string());
    let live: String = server.ask(&["GET", &keys::live(&job.job_id)]);
    assert_eq!(serde_json::from_str::<Job>(&live).unwrap(), job);
    let fields: Vec<(String, Vec<(String, String)>)> = server.ask(&["XRANGE", keys::STREAM, "-", "+"]);
    let expected: Vec<(String, String)> = job.message().fields().map(|(name, value)| (name.to_owned(), value)).to_vec();
    assert_eq!(fields[0].1, expected, "the six fields, in the contract's order");
}

#[test]
fn invalid_utf8_is_dead_lettered_with_its_reason() {
    let (server, kv) = with_server();
    let mut command = redis::cmd("XADD");
    command.arg(keys::STREAM).arg("*").arg(b"job_id\xff".as_slice()).arg(b"\x00\xc3\x28".as_slice());
    command.arg("big").arg("x".repeat(5_000_000));
    command.exec(&mut server.connect().unwrap()).unwrap();
    let entry = claim(&kv);
    assert!(entry.fields[0].1.contains('\u{fffd}'));
    kv.dead_letter(&entry, "the field `job_id` is missing").unwrap();
    kv.dead_letter(&entry, "twice changes nothing").unwrap();
    let dead: Vec<String> = server.ask(&["LRANGE", keys::DEAD, "0", "-1"]);
    assert!(dead.len() == 1 && dead[0].contains("`job_id` is missing") && dead[0].len() < 10_000, "{}", dead[0].len());
    let counts = kv.counts().unwrap();
    assert_eq!((counts.stream, counts.pending, counts.dead_letters), (0, 0, 1));
}

#[test]
fn deleted_entry_is_requeued() {
    for command in
        [vec!["XTRIM", keys::STREAM, "MAXLEN", "0"], vec!["XDEL", keys::STREAM, "?"], vec!["DEL", keys::STREAM]]
    {
        let (server, kv) = with_server();
        let job = enqueue(&kv, "trips");
        assert_eq!(restore(&kv), 0, "nothing is lost");
        let entry = entry_of(&server, &job.job_id);
        let command: Vec<&str> = command.into_iter().map(|word| if word == "?" { &entry } else { word }).collect();
        server.ask::<()>(&command);
        assert_eq!((restore(&kv), restore(&kv)), (1, 0), "{command:?}: once");
        let start = run_next(&kv);
        assert_eq!((&start.lease.job_id, start.attempt), (&job.job_id, 1));
        end(&kv, &start);
        assert_eq!(restore(&kv), 0);
    }
}

#[test]
fn entry_deleted_between_claim_and_start_runs_once() {
    let (server, kv) = with_server();
    let job = enqueue(&kv, "trips");
    let old = claim(&kv);
    server.ask::<()>(&["XTRIM", keys::STREAM, "MAXLEN", "0"]);
    assert_eq!(restore(&kv), 1);
    assert_eq!(start(&kv, &old).unwrap(), StartOutcome::NotClaimed);
    let start = run_next(&kv);
    assert_eq!(start.lease.job_id, job.job_id);
    assert_eq!(kv.counts().unwrap().pending, 1);
}

#[test]
fn entry_deleted_during_a_run_is_requeued_only_if_it_dies() {
    let (server, kv) = with_server();
    let job = enqueue(&kv, "trips");
    let start = run_next(&kv);
    server.ask::<()>(&["XTRIM", keys::STREAM, "MAXLEN", "0"]);
    assert_eq!(restore(&kv), 0, "it runs");
    assert!(matches!(kv.heartbeat(&start.lease, TTL).unwrap(), lakemill::ports::jobs::HeartbeatReply::Held { .. }));
    assert_eq!(restore(&kv), 0);
    server.ask::<()>(&["DEL", &keys::run_lock(&job.pipeline)]);
    assert_eq!(restore(&kv), 1);
    let start = run_next(&kv);
    assert_eq!((start.attempt, start.lost_starts), (2, 1));
    end(&kv, &start);
    assert_eq!(kv.counts().unwrap(), QueueCounts::default());
}

#[test]
fn lost_message_is_rebuilt_from_the_record() {
    let (server, kv) = with_server();
    let queued = enqueue(&kv, "trips");
    server.ask::<()>(&["DEL", &keys::message(&queued.job_id), keys::STREAM]);
    assert_eq!(restore(&kv), 1);
    let entry = claim(&kv);
    assert_eq!(message(&entry), queued.message());
    let StartOutcome::Running(start) = start(&kv, &entry).unwrap() else { panic!("it runs") };
    let wait = Requeue { job: &queued, delay: IMMEDIATELY, reason: WaitReason::Retry, cost: AttemptCost::One };
    kv.requeue(&start.lease, &wait).unwrap();
    server.ask::<()>(&["DEL", &keys::message(&queued.job_id)]);
    assert_eq!(kv.release_due(10).unwrap(), 0, "there is nothing to put into the stream");
    assert_eq!(restore(&kv), 1);
    let start = run_next(&kv);
    end(&kv, &start);
}

#[test]
fn job_without_any_data_is_removed() {
    let (server, kv) = with_server();
    let job = enqueue(&kv, "trips");
    let other = enqueue(&kv, "trips");
    let (live, message) = (keys::live(&job.job_id), keys::message(&job.job_id));
    let entry = entry_of(&server, &job.job_id);
    server.ask::<()>(&["DEL", &live, &message]);
    server.ask::<()>(&["XDEL", keys::STREAM, &entry]);
    assert_eq!(restore(&kv), 0);
    assert_eq!(kv.active(&slug("trips"), 10).unwrap(), [other]);
    assert_eq!(server.ask::<i64>(&["ZCARD", &keys::active(&slug("trips"))]), 1);
}

#[test]
fn requeue_lost_covers_every_pipeline_and_job() {
    let (server, kv) = with_server();
    for n in 0..250 {
        enqueue(&kv, &format!("p{n}"));
        enqueue(&kv, "many");
    }
    // Entry ids contain the millisecond: within the same one, a new entry would get the id of an old one.
    let now = || server.ask::<(u64, u64)>(&["TIME"]);
    let (second, micro) = now();
    await_that("the next millisecond", || (now().0, now().1 / 1_000) > (second, micro / 1_000 + 1));
    server.ask::<()>(&["DEL", keys::STREAM]);
    assert_eq!(restore(&kv), 500);
    assert_eq!(kv.counts().unwrap().stream, 500);
    assert_eq!(restore(&kv), 0);
}

#[test]
fn idle_consumers_without_pending_entries_are_removed() {
    let server = RedisServer::start();
    let options = RedisOptions { consumer_idle: IMMEDIATELY, ..RedisOptions::new(server.url()) };
    let kv = RedisKv::open(&options).unwrap();
    enqueue(&kv, "trips");
    kv.claim("busy", ClaimLimits::any(1), IMMEDIATELY).unwrap();
    server.ask::<()>(&["XGROUP", "CREATECONSUMER", keys::STREAM, keys::GROUP, "idle"]);
    let consumers = || -> Vec<String> {
        let all: Vec<std::collections::HashMap<String, redis::Value>> =
            server.ask(&["XINFO", "CONSUMERS", keys::STREAM, keys::GROUP]);
        let names = all.iter().map(|one| redis::from_redis_value::<String>(one["name"].clone()).unwrap());
        // The others are of entries that no worker has claimed.
        names.filter(|name| !name.starts_with('!')).collect()
    };
    restore(&server.kv());
    assert_eq!(consumers(), ["busy", "idle"], "an hour isn't over");
    std::thread::sleep(Duration::from_millis(5));
    restore(&kv);
    assert_eq!(consumers(), ["busy"]);
}

#[test]
fn key_of_another_type_fails_its_steps_and_changes_nothing() {
    let (server, kv) = with_server();
    let job = enqueue(&kv, "trips");
    let lease = run_next(&kv).lease;
    enqueue(&kv, "waiting");
    // The stream was checked.
    kv.active(&slug("waiting"), 1).unwrap();
    let ended = job.clone().completed(RunResult::default(), job.enqueued_at);
    let wait = Requeue { job: &job, delay: IMMEDIATELY, reason: WaitReason::Retry, cost: AttemptCost::One };
    type Step<'a> = (&'static str, Box<dyn Fn() -> KvResult<()> + 'a>);
    let steps: Vec<Step<'_>> = vec![
        ("end", Box::new(|| kv.finish(&lease, &ended).map(drop))),
        ("requeue", Box::new(|| kv.requeue(&lease, &wait).map(drop))),
        ("enqueue", Box::new(|| kv.enqueue(&enqueue_later("trips")).map(drop))),
        ("cancel", Box::new(|| kv.cancel(&lease.pipeline, &lease.job_id).map(drop))),
        ("release_due", Box::new(|| kv.release_due(10).map(drop))),
        ("drop_pipeline", Box::new(|| kv.drop_pipeline(&lease.pipeline))),
        ("extend_windows", Box::new(|| kv.extend_windows(&[slug("w")]).map(drop))),
        ("hold", Box::new(|| kv.lock_pipeline(&slug("free"), TTL, 0).map(drop))),
    ];
    let (active, message) = (keys::active(&lease.pipeline), keys::message(&lease.job_id));
    let lock = keys::run_lock(&lease.pipeline);
    for (key, kind, broken) in [
        (keys::STREAM, "a stream", vec!["end", "requeue", "enqueue", "release_due", "drop_pipeline"]),
        (keys::DELAYED, "a sorted set", vec!["end", "requeue", "cancel", "release_due", "drop_pipeline"]),
        (active.as_str(), "a sorted set", vec!["end", "requeue", "enqueue", "cancel", "drop_pipeline"]),
        (message.as_str(), "a hash", vec!["end", "requeue", "cancel"]),
        (lock.as_str(), "a string", vec!["end", "requeue", "drop_pipeline"]),
        (keys::WINDOWS, "a sorted set", vec!["drop_pipeline", "extend_windows"]),
        (keys::FIRST_EVENTS, "a hash", vec!["drop_pipeline", "extend_windows"]),
        (keys::FENCES, "a hash", vec!["hold"]),
    ] {
        let _ = server.try_ask::<()>(&["RENAME", key, "kept"]);
        server.ask::<()>(&["GEOADD", key, "0", "0", "x"]);
        if kind == "a sorted set" {
            server.ask::<()>(&["SET", key, "x"]);
        }
        let before = everything(&server);
        for (name, step) in steps.iter().filter(|(name, _)| broken.contains(name)) {
            let outcome = step();
            let Err(error @ KvError::Malformed { .. }) = outcome else { panic!("{name} with {key}: {outcome:?}") };
            let text = error.to_string();
            assert!(text.contains(key) && text.contains(&format!("expected {kind}")), "{name}: {text}");
            assert_eq!(everything(&server), before, "{name} with {key}: nothing took place");
        }
        server.ask::<()>(&["DEL", key]);
        let _ = server.try_ask::<()>(&["RENAME", "kept", key]);
    }
    for (name, step) in steps.iter().filter(|(name, _)| *name != "requeue" && *name != "drop_pipeline") {
        step().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

fn enqueue_later(pipeline: &str) -> Job {
    let enqueued_at = chrono::DateTime::from_timestamp_millis(1_700_000_000_000).unwrap();
    Job::queued(&JobMessage::new(slug(pipeline), false, "manual", enqueued_at), 3)
}

#[test]
fn changed_keys_of_another_type_mean_all_keys() {
    let (server, kv) = with_server();
    let of_window = keys::window_changes(&slug("trips"));
    for words in [["SET", &of_window, "x"], ["LPUSH", &of_window, "x"]] {
        server.ask::<()>(&["DEL", &of_window]);
        server.ask::<()>(&words);
        kv.record_changes(&[(slug("trips"), ["a.csv"].into_iter().collect())]).unwrap();
        assert_eq!(server.ask::<Vec<String>>(&["HGETALL", &of_window]), ["", "all"]);
    }
    let job = enqueue(&kv, "trips");
    // Partially lost.
    server.ask::<()>(&["HSET", &keys::job_changes(&job.job_id), "a.csv", ""]);
    assert_eq!(kv.changed_keys(&job.job_id).unwrap(), ChangedKeys::All);
}

#[test]
fn malformed_record_hides_no_other_job() {
    let (server, kv) = with_server();
    let jobs: Vec<Job> = (0..4).map(|_| enqueue(&kv, "trips")).collect();
    server.ask::<()>(&["SET", &keys::live(&jobs[0].job_id), "{ no JSON"]);
    server.ask::<()>(&["DEL", &keys::live(&jobs[1].job_id)]);
    server.ask::<()>(&["LPUSH", &keys::live(&jobs[1].job_id), "x"]);
    server.ask::<()>(&["DEL", &keys::live(&jobs[2].job_id)]);
    let malformed = kv.job(&slug("trips"), &jobs[0].job_id);
    assert!(matches!(malformed, Err(KvError::Malformed { .. })), "{malformed:?}");
    assert_eq!(kv.job(&slug("trips"), &jobs[2].job_id).unwrap().as_ref(), Some(&jobs[2]), "rebuilt from its message");
    assert_eq!(kv.active(&slug("trips"), 10).unwrap(), jobs[1..]);
    // All of them run nevertheless, and end with a valid record.
    for _ in 0..4 {
        kv.release_due(10).unwrap();
        let start = run_next(&kv);
        let job = jobs.iter().find(|job| job.job_id == start.lease.job_id).unwrap();
        assert_eq!(
            kv.finish(&start.lease, &job.clone().completed(RunResult::default(), job.enqueued_at)).unwrap(),
            ReleaseOutcome::Released
        );
        assert!(kv.job(&slug("trips"), &job.job_id).unwrap().unwrap().status.is_terminal());
    }
}

#[test]
fn malformed_pipeline_blocks_no_other() {
    let (server, kv) = with_server();
    server.ask::<()>(&["SET", &keys::active(&slug("bad")), "x"]);
    server.ask::<()>(&["ZADD", keys::WINDOWS, "1", "no slug/", "1", "good"]);
    server.ask::<()>(&["ZADD", keys::DELAYED, "1", "nobody"]);
    server.ask::<()>(&["SET", &keys::message(&JobId::parse("odd").unwrap()), "x"]);
    server.ask::<()>(&["ZADD", keys::DELAYED, "1", "odd"]);
    enqueue(&kv, "good");
    server.ask::<()>(&["DEL", keys::STREAM]);
    assert_eq!(restore(&kv), 1);
    assert_eq!(kv.due_windows(10).unwrap(), [slug("good")]);
    assert_eq!(kv.counts().unwrap().windows, 1, "the window of nobody is closed");
    assert_eq!(kv.release_due(10).unwrap(), 0);
    assert_eq!(kv.counts().unwrap().waiting, 0);
    run_next(&kv);
}

fn client(address: &str) -> LoginScopes {
    LoginScopes::of(address.parse().unwrap())
}

#[test]
fn malformed_sessions_and_logins_are_reported() {
    let (server, kv) = with_server();
    server.ask::<()>(&["SET", &keys::session("ab"), "let me in"]);
    assert!(matches!(kv.touch("ab", TTL), Err(KvError::Malformed { .. })));
    server.ask::<()>(&["SET", &keys::login("1.2.3.4"), "x"]);
    assert!(matches!(kv.admit(&client("1.2.3.4")), Err(KvError::Malformed { .. })));
    kv.record_success(&client("1.2.3.4")).unwrap();
    kv.admit(&client("1.2.3.4")).unwrap();
    server.ask::<()>(&["SET", &keys::login("all"), "x"]);
    assert!(matches!(kv.admit(&client("1.2.3.5")), Err(KvError::Malformed { .. })));
    kv.admit(&client("1.2.3.4")).unwrap();
    kv.close("ab").unwrap();
    assert_eq!(kv.touch("ab", TTL).unwrap(), None);
}

#[test]
fn overwritten_counters_restart() {
    let (server, kv) = with_server();
    let job = enqueue(&kv, "trips");
    server.ask::<()>(&["HSET", &keys::message(&job.job_id), "attempts", "many", "lost", "x"]);
    server.ask::<()>(&["HSET", keys::FENCES, "trips", "x"]);
    let start = run_next(&kv);
    assert_eq!((start.attempt, start.lost_starts), (1, 0));
    assert!(start.lease.fence > 1_700_000_000_000_000);
}

fn with_server() -> (RedisServer, RedisKv) {
    let server = RedisServer::start();
    let kv = server.kv();
    kv.claim("w", ClaimLimits::any(1), IMMEDIATELY).unwrap();
    (server, kv)
}
