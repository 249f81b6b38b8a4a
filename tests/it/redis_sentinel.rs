//! The key-value store on a Redis that moves to another server, as Sentinels decide.

use std::process::{Child, Command, Stdio};

use lakemill::adapters::redis::{RedisKv, RedisOptions};
use lakemill::domain::job::{Job, JobMessage};
use lakemill::ports::jobs::{EnqueueOutcome, JobRegistry as _};
use lakemill::ports::kv::{Diagnose as _, KvError};

use crate::support::children::Reaped as _;
use crate::support::redis_server::{RedisServer, free_port};
use crate::support::site::{await_some, await_that, slug};

const SERVICE: &str = "main";

/// A Sentinel that decides alone.
struct Sentinel {
    port: u16,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    fn of(primary: &RedisServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, port) = (folder.path().join("sentinel.conf"), free_port());
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {SERVICE} 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds {SERVICE} 1000\nsentinel failover-timeout {SERVICE} 5000\n",
            folder.path().display(),
            primary.port()
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn_reaped().unwrap();
        Self { port, child, _folder: folder }
    }

    fn ask(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", self.port)).unwrap();
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]).query(&mut client.get_connection()?)
    }

    /// Whether it knows a replica, to which it can move the service.
    fn knows_replica(&self) -> bool {
        let replicas = self.ask(&["SENTINEL", "REPLICAS", SERVICE]);
        matches!(replicas, Ok(redis::Value::Array(found)) if !found.is_empty())
    }

    /// A Sentinel that isn't there is skipped.
    fn kv(&self) -> RedisKv {
        let url = format!("redis+sentinel://127.0.0.1:{},127.0.0.1:{}/{SERVICE}/0", free_port(), self.port);
        RedisKv::open(&RedisOptions::new(url)).unwrap()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn enqueue(kv: &RedisKv) -> Result<Job, KvError> {
    let job = Job::queued(&JobMessage::new(slug("trips"), false, "manual", chrono::Utc::now()), 3);
    kv.enqueue(&job).map(|outcome| {
        assert_eq!(outcome, EnqueueOutcome::Queued);
        job
    })
}

/// Waits until a job is accepted.
fn enqueued(kv: &RedisKv) -> Job {
    await_some("a server that takes writes", || enqueue(kv).ok())
}

fn has(server: &RedisServer, job: &Job) -> bool {
    server.kv().job(&job.pipeline, &job.job_id).unwrap().is_some()
}

#[test]
fn service_moves_to_another_server_after_a_crash_and_on_request() {
    let first = RedisServer::start();
    let second = RedisServer::with(&["--appendonly", "no", "--replicaof", "127.0.0.1", &first.port().to_string()]);
    let sentinel = Sentinel::of(&first);
    await_that("the Sentinel to know the replica", || sentinel.knows_replica());
    let kv = sentinel.kv();
    let before = enqueued(&kv);
    await_that("the replica", || second.ask::<i64>(&["EXISTS", &format!("svc:jobs:live:{}", before.job_id)]) == 1);
    first.kill();
    let after = enqueued(&kv);
    assert!(has(&second, &before) && has(&second, &after));
    assert_eq!(kv.job(&before.pipeline, &before.job_id).unwrap().unwrap().job_id, before.job_id);

    // The old primary returns as a replica, and becomes the primary again.
    first.start_again();
    // A server that changes its role closes its connections.
    let has_role = |server: &RedisServer, role: &str| {
        let told: redis::RedisResult<Vec<redis::Value>> = server.try_ask(&["ROLE"]);
        told.is_ok_and(|told| redis::from_redis_value::<String>(told[0].clone()).unwrap() == role)
    };
    await_that("the old primary to be a replica", || has_role(&first, "slave"));
    await_that("the service to move", || {
        let _ = sentinel.ask(&["SENTINEL", "FAILOVER", SERVICE]);
        has_role(&first, "master")
    });
    // Until then it takes writes, which are lost.
    await_that("the other one to be a replica", || has_role(&second, "slave"));
    let last = enqueued(&kv);
    assert!(has(&first, &last));
}

#[test]
fn replica_that_was_the_primary_is_left_although_its_connections_stay_open() {
    let first = RedisServer::start();
    let second = RedisServer::with(&["--appendonly", "no", "--replicaof", "127.0.0.1", &first.port().to_string()]);
    let sentinel = Sentinel::of(&first);
    await_that("the Sentinel to know the replica", || sentinel.knows_replica());
    let kv = sentinel.kv();
    enqueued(&kv);
    // By hand, without the Sentinel, which would close the connections.
    second.ask::<()>(&["REPLICAOF", "NO", "ONE"]);
    first.ask::<()>(&["REPLICAOF", "127.0.0.1", &second.port().to_string()]);
    if let Err(error) = enqueue(&kv) {
        let text = error.to_string();
        assert!(text.contains("is not the primary") || text.contains("READONLY"), "{text}");
    }
    enqueued(&kv);
}

#[test]
fn missing_service_and_sentinels_are_named_without_the_password() {
    let server = RedisServer::start();
    let sentinel = Sentinel::of(&server);
    await_that("the Sentinel", || sentinel.ask(&["PING"]).is_ok());
    let url = format!("redis+sentinel://app:hunter2@127.0.0.1:{}/other", sentinel.port);
    let error = RedisKv::open(&RedisOptions::new(&url)).unwrap().ping().unwrap_err().to_string();
    assert!(error.contains(&format!("service `other` of the Sentinels 127.0.0.1:{}", sentinel.port)), "{error}");
    assert!(error.contains("knows no service `other`") && !error.contains("hunter2"), "{error}");
    let url = format!("redis+sentinel://:hunter2@127.0.0.1:{}/main", free_port());
    let error = RedisKv::open(&RedisOptions::new(&url)).unwrap().ping().unwrap_err();
    assert!(matches!(error, KvError::Unavailable { .. }) && !error.to_string().contains("hunter2"), "{error}");
}
