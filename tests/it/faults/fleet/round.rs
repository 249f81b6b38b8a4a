//! One installation that gets faults for a while, recovers, and is checked: real workers, Redis, and S3 over HTTP or a
//! folder.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lakemill::domain::job::{Job, JobMessage, RunErrorCode};
use lakemill::ports::jobs::{ClaimLimits, EnqueueOutcome};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::fault_proxy::{FaultProxy, FaultRates};
use super::report::{Jobs, RoundReport};
use crate::faults::checker::{Found, Violation, records, violations};
use crate::support::cutting_proxy::CuttingProxy;
use crate::support::http_proxy::HttpProxy;
use crate::support::lake::Rng;
use crate::support::redis_server::RedisServer;
use crate::support::site::{Service, Site, slug};
use crate::worker::sharing::is_stopped;

/// Maximum attempts of a job.
pub const ATTEMPTS_MAX: u32 = 5;
/// Lock TTL: a process that pauses for longer has lost its lock.
pub const LOCK_TTL: Duration = Duration::from_millis(4_000);
/// Longest wait for anything, plus a time per pipeline.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);
const TIMEOUT_PER_PIPELINE: Duration = Duration::from_millis(900);
/// Prefix of counters of faults at failpoints.
pub const KILLED: &str = "kill -9 at ";
pub const STOPPED: &str = "SIGSTOP at ";
/// Polling interval of waits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An installation with its faults, and the history so far.
pub struct Round {
    pub site: Site,
    pub rng: Rng,
    pub proxy: FaultProxy,
    pub cutter: CuttingProxy,
    pub pipelines: Vec<String>,
    pub workers: Vec<Worker>,
    /// Numbers of workers that continued after a pause.
    pub resumed: Vec<usize>,
    faults: BTreeMap<String, u64>,
    notes: BTreeMap<String, u64>,
    logs: BTreeMap<String, String>,
    _server: Option<HttpProxy>,
}

/// A worker's process and its environment.
pub struct Worker {
    service: Service,
    env: Vec<(String, String)>,
    stands_since: Option<Instant>,
}

impl Round {
    /// With `pipelines` pipelines that run on new files, on Redis and S3.
    pub fn new(seed: u64, pipelines: usize) -> Self {
        let mut site = Site::fleet(RedisServer::durable());
        let proxy = FaultProxy::default();
        let server = proxy.start(&site.env()["S3_BUCKET_PIPELINES"], seed);
        site.set("OBJ_ENDPOINT_URL", &server.url());
        let mut round = Self::on(site, seed, proxy, Some(server));
        for n in 0..pipelines {
            round.pipeline();
            round.change(n);
        }
        round
    }

    /// Without pipelines, on Redis and a folder (in memory unless `objects` is set), which lists many pipelines fast.
    /// Writes are not recorded.
    pub fn on_folder(seed: u64, objects: Option<&Path>) -> Self {
        let mut site = Site::folder_and_redis(RedisServer::durable(), objects);
        // Once per worker start is enough.
        site.set("SVC_RECONCILE_SECONDS", "86400");
        Self::on(site, seed, FaultProxy::default(), None)
    }

    fn on(mut site: Site, seed: u64, proxy: FaultProxy, server: Option<HttpProxy>) -> Self {
        site.kv.claim("nobody", ClaimLimits::any(1), Duration::ZERO).unwrap();
        site.kv.mark_initialized().unwrap();
        proxy.history.lock().unwrap().attempts_max = ATTEMPTS_MAX;
        let cutter = CuttingProxy::new(site.redis.as_ref().unwrap().port());
        let ttl = LOCK_TTL.as_millis();
        site.set("KV_URL", &format!("redis://127.0.0.1:{}/0", cutter.port()));
        site.set("JOB_LOCK_TTL_MS", &ttl.to_string()).set("HEARTBEAT_MS", &(ttl / 5).to_string());
        site.set("SVC_RECLAIM_IDLE_MS", &(ttl * 6 / 5).to_string());
        site.set("MAX_ATTEMPTS", &ATTEMPTS_MAX.to_string()).set("WORKER_CONCURRENCY", "2");
        Self {
            site,
            rng: Rng::new(seed),
            proxy,
            cutter,
            pipelines: Vec::new(),
            workers: Vec::new(),
            resumed: Vec::new(),
            faults: BTreeMap::new(),
            notes: BTreeMap::new(),
            logs: BTreeMap::new(),
            _server: server,
        }
    }

    pub fn config() -> Value {
        json!({ "version": 1, "mappings": [{
            "table": "t", "files": ["in/*.csv"], "partition_by": ["p"],
            "columns": [{ "name": "p", "type": "int32" }, { "name": "n", "type": "int64" }] }] })
    }

    /// Adds a pipeline without files.
    pub fn pipeline(&mut self) -> String {
        let name = format!("p{}", self.pipelines.len());
        self.site.configure(&name, &Self::config());
        self.pipelines.push(name.clone());
        name
    }

    /// The address of S3.
    pub fn upstream(&self) -> SocketAddr {
        self.site.env()["OBJ_ENDPOINT_URL"].trim_start_matches("http://").parse().unwrap()
    }

    /// Counts a fault.
    pub fn count(&mut self, fault: &str, by: u64) {
        *self.faults.entry(fault.to_owned()).or_default() += by;
    }

    /// The number of faults of a kind.
    pub fn counted(&self, fault: &str) -> u64 {
        self.faults.get(fault).copied().unwrap_or(0)
    }

    pub fn note(&mut self, what: &str, by: u64) {
        *self.notes.entry(what.to_owned()).or_default() += by;
    }

    pub fn redis(&self) -> &RedisServer {
        self.site.redis.as_ref().unwrap()
    }

    /// Creates or replaces a file of a pipeline, always of the same size, so that only the tag distinguishes the
    /// versions.
    pub fn change(&mut self, pipeline: usize) {
        let rows: String = (0..20).map(|_| format!("{},{}\n", self.rng.below(4), 100 + self.rng.below(900))).collect();
        let name = format!("in/{}.csv", self.rng.below(3));
        self.site.put(&self.pipelines[pipeline], &name, format!("p,n\n{rows}"));
    }

    /// Requests a run of one of the pipelines, mostly after a change.
    pub fn enqueue(&mut self) {
        let pipeline = self.rng.below(self.pipelines.len() as u64) as usize;
        if self.rng.below(3) > 0 {
            self.change(pipeline);
        }
        let clean = self.rng.one_in(5);
        self.request_run(pipeline, clean);
    }

    /// Requests a run; retries until the queue accepts it.
    pub fn request_run(&mut self, pipeline: usize, clean: bool) {
        let message = JobMessage::new(slug(&self.pipelines[pipeline]), clean, "manual", chrono::Utc::now());
        let job = Job::queued(&message, ATTEMPTS_MAX);
        let id = job.job_id.to_string();
        self.proxy.history.lock().unwrap().perhaps.insert(id.clone());
        let kv = Arc::clone(&self.site.kv);
        self.until("the queue to take a job", |_| {
            matches!(kv.enqueue(&job), Ok(EnqueueOutcome::Queued | EnqueueOutcome::AlreadyActive))
        });
        self.proxy.history.lock().unwrap().accepted.insert(id);
    }

    /// Starts a worker with the installation's environment and `env`.
    pub fn worker(&mut self, env: &[(&str, String)]) {
        let env: Vec<(String, String)> = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let service = self.spawn(&env);
        self.workers.push(Worker { service, env, stands_since: None });
    }

    fn spawn(&self, env: &[(String, String)]) -> Service {
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.site.spawn(&env)
    }

    /// Sets the environment of the `n`th worker for its next restart.
    pub fn arm(&mut self, n: usize, failpoints: String) {
        let env = &mut self.workers[n].env;
        env.retain(|(name, _)| name != "FAILPOINTS");
        env.push(("FAILPOINTS".into(), failpoints));
    }

    fn ended(&mut self, worker: &Worker) {
        let log = worker.service.log();
        self.note("runs", log.matches("job started").count() as u64);
        for (event, fault) in [("kills the process", KILLED), ("stops the process", STOPPED)] {
            for line in log.lines().filter(|line| line.contains("a failpoint") && line.contains(event)) {
                let line: Value = serde_json::from_str(line).unwrap();
                self.count(&format!("{fault}{}", line["place"].as_str().unwrap()), 1);
            }
        }
        assert!(!log.contains("panicked"), "a worker panicked:\n{log}");
        self.logs.insert(format!("worker-{}.log", worker.service.pid()), log);
    }

    /// Restarts workers that died, and continues those that paused once they have lost their lock.
    pub fn keep_workers(&mut self) {
        for n in 0..self.workers.len() {
            let worker = &mut self.workers[n];
            if worker.service.is_alive() {
                let since = match is_stopped(worker.service.pid()) {
                    true => *worker.stands_since.get_or_insert_with(Instant::now),
                    false => continue,
                };
                if since.elapsed() > LOCK_TTL + Duration::from_millis(1_500) {
                    worker.stands_since = None;
                    worker.service.signal(Signal::CONT);
                    self.resumed.push(n);
                    self.note("stood still beyond the lock", 1);
                }
                continue;
            }
            let env = self.workers[n].env.clone();
            let service = self.spawn(&env);
            let dead = std::mem::replace(&mut self.workers[n], Worker { service, env, stands_since: None });
            self.note("died or ended", 1);
            self.ended(&dead);
        }
    }

    pub fn signal(&mut self, n: usize, signal: Signal) {
        if self.workers[n].service.is_alive() {
            self.workers[n].service.signal(signal);
        }
    }

    /// The number of matching log lines of the running workers.
    pub fn logged(&self, text: &str) -> usize {
        self.workers.iter().map(|worker| worker.service.log().matches(text).count()).sum()
    }

    /// Processes that died or exited, and were replaced.
    pub fn ended_so_far(&self) -> u64 {
        self.notes.get("died or ended").copied().unwrap_or(0)
    }

    /// Keeps the workers running for a while.
    pub fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.keep_workers();
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Keeps the workers running until a condition holds.
    pub fn until(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> bool) {
        let patience = TEST_TIMEOUT + TIMEOUT_PER_PIPELINE * self.pipelines.len() as u32;
        let until = Instant::now() + patience;
        while !look(self) {
            assert!(Instant::now() < until, "waited {} s for {what}", patience.as_secs());
            self.keep_workers();
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Jobs without a record may be lost with the data of the key-value store.
    pub fn allow_lost_jobs(&mut self) {
        let recorded: Vec<String> =
            self.pipelines.iter().flat_map(|name| records(&*self.site.store, &slug(name)).into_keys()).collect();
        let mut history = self.proxy.history.lock().unwrap();
        let lost: Vec<String> = history.accepted.iter().filter(|id| !recorded.contains(id)).cloned().collect();
        history.excused.extend(lost);
    }

    pub fn is_idle(&self) -> bool {
        let Ok(counts) = self.site.kv.counts() else { return false };
        let left = counts.stream + counts.waiting + counts.requested + counts.windows;
        left == 0 && self.site.kv.is_initialized().unwrap_or(false)
    }

    /// Ends all faults, waits for the jobs to end, and returns the violations.
    pub fn check(mut self) -> RoundReport {
        *self.proxy.rates.lock().unwrap() = FaultRates::default();
        for worker in std::mem::take(&mut self.workers) {
            let mut worker = worker;
            worker.service.kill();
            self.ended(&worker);
        }
        self.worker(&[]);
        self.until("everything to end", |round| round.is_idle());
        for name in self.pipelines.clone() {
            let records = records(&*self.site.store, &slug(&name));
            let last = records.values().max_by_key(|job| job.fence);
            if last.is_none_or(|job| job.error.is_some()) {
                self.site.kv.extend_windows(&[slug(&name)]).unwrap();
            }
        }
        self.until("everything to end", |round| round.is_idle());
        let calm = self.workers.pop().unwrap();
        self.ended(&calm);
        let names: Vec<&str> = self.pipelines.iter().map(String::as_str).collect();
        let found = Found::look(&*self.site.store, &*self.site.kv, &names);
        let mut history = self.proxy.history.lock().unwrap().clone();
        // Until then only the queue knew these jobs.
        let auto = found.records.iter().filter(|(_, job)| job.trigger == "auto").map(|(id, _)| id.clone());
        history.accepted.extend(auto);
        let mut violations = violations(&history, &found);
        let mut jobs = Jobs { accepted: history.accepted.len() as u64, ..Jobs::default() };
        for (id, job) in &found.records {
            match job.error.as_ref().map(|error| error.code) {
                None => jobs.done += 1,
                Some(code) if code.is_transient() || code == RunErrorCode::WorkerLost => jobs.failed += 1,
                Some(code) => {
                    let code = format!("{code:?}");
                    violations.push(Violation::FailedOtherwise { job: id.clone(), code });
                }
            }
        }
        jobs.excused = history.excused.iter().filter(|id| !found.records.contains_key(*id)).count() as u64;
        for (what, count) in [
            ("S3 requests disturbed", self.proxy.struck.load(Ordering::SeqCst)),
            ("connections to Redis cut", self.cutter.failed_requests() as u64),
        ] {
            self.count(what, count);
        }
        self.faults.retain(|_, count| *count > 0);
        let mut files = std::mem::take(&mut self.logs);
        files.insert("history.txt".into(), format!("{history:#?}\n{:#?}\n{violations:#?}", found.records));
        drop(calm);
        RoundReport {
            violations,
            jobs,
            faults: std::mem::take(&mut self.faults),
            notes: std::mem::take(&mut self.notes),
            files,
        }
    }
}
