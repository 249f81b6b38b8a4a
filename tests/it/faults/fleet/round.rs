//! One installation that is mistreated for a while, put right, and checked: real workers, Redis, and S3 over HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lakemill::domain::job::{Job, JobMessage};
use lakemill::ports::jobs::Enqueued;
use lakemill::ports::store::Bucket;
use rustix::process::Signal;
use serde_json::json;

use crate::faults::checker::{Found, History, Violation, Written, records, violations};
use crate::support::cutting_proxy::CuttingProxy;
use crate::support::http_proxy::{Act, HttpProxy, Passing};
use crate::support::lake::Dice;
use crate::support::redis_server::RedisServer;
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Service, Site, slug};
use crate::worker::sharing::stands;

/// Starts of a job.
pub const ATTEMPTS_MAX: u32 = 5;
/// Life of the lock: a process that stands still for longer has lost it.
pub const LOCK_TTL: Duration = Duration::from_millis(4_000);
/// Longest wait for anything, and as much more for each pipeline.
const PATIENCE: Duration = Duration::from_secs(240);
const PATIENCE_EACH: Duration = Duration::from_millis(900);
/// How often whoever waits looks.
const LOOK: Duration = Duration::from_millis(50);

/// What S3 does to requests: chances in 1,000 of each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    pub status_500: u64,
    pub status_503: u64,
    pub slow: u64,
    pub reset: u64,
    pub lost_answer: u64,
    pub away: bool,
}

/// What a round tells.
#[derive(Debug, Default)]
pub struct Told {
    pub violations: Vec<Violation>,
    pub figures: BTreeMap<String, u64>,
    /// Logs and history, by file name.
    pub files: BTreeMap<String, String>,
}

/// See the module.
pub struct Round {
    pub site: Site,
    pub dice: Dice,
    pub weather: Arc<Mutex<Weather>>,
    pub cutter: CuttingProxy,
    pub pipelines: Vec<String>,
    pub workers: Vec<Worker>,
    history: Arc<Mutex<History>>,
    figures: BTreeMap<String, u64>,
    struck: Arc<AtomicU64>,
    logs: BTreeMap<String, String>,
    _proxy: HttpProxy,
}

/// A worker's process, and what it is started with.
pub struct Worker {
    service: Service,
    env: Vec<(String, String)>,
    stands_since: Option<Instant>,
}

const ANSWER_500: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const ANSWER_503: &[u8] = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

fn act(weather: &Weather, dice: &mut Dice, passing: &Passing) -> Act {
    if weather.away {
        return Act::Close;
    }
    let roll = dice.below(1_000);
    let chances = [weather.status_500, weather.status_503, weather.slow, weather.reset, weather.lost_answer];
    let mut upto = 0;
    let chosen = chances.iter().position(|chance| {
        upto += chance;
        roll < upto
    });
    let writes = passing.method == "PUT" || passing.method == "POST" || passing.method == "DELETE";
    match chosen {
        Some(0) => Act::Answer(ANSWER_500.to_vec()),
        Some(1) => Act::Answer(ANSWER_503.to_vec()),
        Some(2) => Act::Delay(Duration::from_millis(100 + dice.below(1_500))),
        Some(3) => Act::CutAfter(dice.below(40) as usize),
        Some(_) if writes => Act::LoseAnswer,
        Some(_) => Act::Close,
        None => Act::Forward,
    }
}

impl Round {
    /// With `pipelines` pipelines that run when new files come.
    pub fn new(seed: u64, pipelines: usize) -> Self {
        let mut site = Site::fleet(RedisServer::durable());
        site.kv.claim("nobody", 1, Duration::ZERO).unwrap();
        site.kv.remember().unwrap();
        let weather = Arc::new(Mutex::new(Weather::default()));
        let history = Arc::new(Mutex::new(History { attempts_max: ATTEMPTS_MAX, ..History::default() }));
        let struck = Arc::new(AtomicU64::new(0));
        let proxy = Self::proxy(&site, seed, Arc::clone(&weather), Arc::clone(&history), Arc::clone(&struck));
        let cutter = CuttingProxy::to(site.redis.as_ref().unwrap().port());
        let ttl = LOCK_TTL.as_millis();
        site.set("OBJ_ENDPOINT_URL", &proxy.url());
        site.set("KV_URL", &format!("redis://127.0.0.1:{}/0", cutter.port()));
        site.set("JOB_LOCK_TTL_MS", &ttl.to_string()).set("HEARTBEAT_MS", &(ttl / 5).to_string());
        site.set("SVC_RECLAIM_IDLE_MS", &(ttl * 6 / 5).to_string());
        site.set("MAX_ATTEMPTS", &ATTEMPTS_MAX.to_string()).set("WORKER_CONCURRENCY", "2");
        let pipelines: Vec<String> = (0..pipelines).map(|n| format!("p{n}")).collect();
        let config = json!({ "version": 1, "mappings": [{
            "table": "t", "files": ["in/*.csv"], "partition_by": ["p"],
            "columns": [{ "name": "p", "type": "int32" }, { "name": "n", "type": "int64" }] }] });
        for name in &pipelines {
            site.configure(name, &config);
        }
        let mut round = Self {
            site,
            dice: Dice::new(seed),
            weather,
            cutter,
            pipelines,
            workers: Vec::new(),
            history,
            figures: BTreeMap::new(),
            struck,
            logs: BTreeMap::new(),
            _proxy: proxy,
        };
        for n in 0..round.pipelines.len() {
            round.change(n);
        }
        round
    }

    fn proxy(
        site: &Site,
        seed: u64,
        weather: Arc<Mutex<Weather>>,
        history: Arc<Mutex<History>>,
        struck: Arc<AtomicU64>,
    ) -> HttpProxy {
        let dice = Mutex::new(Dice::new(seed ^ 0x5333));
        let prefix = format!("/{}/", site.env()["S3_BUCKET_PIPELINES"]);
        let rule = move |passing: &mut Passing| {
            let act = act(&weather.lock().unwrap(), &mut dice.lock().unwrap(), passing);
            struck.fetch_add(u64::from(!matches!(act, Act::Forward)), Ordering::SeqCst);
            act
        };
        let seen = move |passing: &Passing, status: &str| {
            let key = passing.target.strip_prefix(&prefix).filter(|_| passing.method == "PUT" && status == "200");
            let key = key.and_then(|rest| rest.split('?').next());
            let written = key.and_then(|key| Written::of(Bucket::Pipelines, key, &passing.body));
            history.lock().unwrap().written.extend(written);
        };
        HttpProxy::start_seen(s3s_fs().address, rule, seen)
    }

    pub fn count(&mut self, what: &str, by: u64) {
        *self.figures.entry(what.to_owned()).or_default() += by;
    }

    pub fn redis(&self) -> &RedisServer {
        self.site.redis.as_ref().unwrap()
    }

    /// A file of a pipeline is new or another.
    pub fn change(&mut self, pipeline: usize) {
        let rows: String = (0..20).map(|_| format!("{},{}\n", self.dice.below(4), self.dice.below(1_000))).collect();
        let name = format!("in/{}.csv", self.dice.below(3));
        self.site.put(&self.pipelines[pipeline], &name, format!("p,n\n{rows}"));
    }

    /// A person's wish; tried until the queue takes it.
    pub fn enqueue(&mut self) {
        let pipeline = self.dice.below(self.pipelines.len() as u64) as usize;
        if self.dice.below(3) > 0 {
            self.change(pipeline);
        }
        let clean = self.dice.one_in(5);
        let message = JobMessage::new(slug(&self.pipelines[pipeline]), clean, "manual", chrono::Utc::now());
        let job = Job::queued(&message, ATTEMPTS_MAX);
        let id = job.job_id.to_string();
        self.history.lock().unwrap().perhaps.insert(id.clone());
        let kv = Arc::clone(&self.site.kv);
        self.until("the queue to take a job", |_| {
            matches!(kv.enqueue(&job), Ok(Enqueued::Queued | Enqueued::AlreadyActive))
        });
        self.history.lock().unwrap().accepted.insert(id);
    }

    /// Starts a worker; `env` beside the installation's.
    pub fn worker(&mut self, env: &[(&str, String)]) {
        let env: Vec<(String, String)> = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let service = self.spawn(&env);
        self.workers.push(Worker { service, env, stands_since: None });
    }

    fn spawn(&self, env: &[(String, String)]) -> Service {
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.site.spawn(&env)
    }

    fn ended(&mut self, worker: &Worker) {
        let log = worker.service.log();
        self.count("runs", log.matches("the job has started").count() as u64);
        assert!(!log.contains("panicked"), "a worker panicked:\n{log}");
        self.logs.insert(format!("worker-{}.log", worker.service.pid()), log);
    }

    /// Workers that died come back, and those that stand still go on once they have lost their lock.
    pub fn tend(&mut self) {
        for n in 0..self.workers.len() {
            let worker = &mut self.workers[n];
            if worker.service.is_alive() {
                let since = match stands(worker.service.pid()) {
                    true => *worker.stands_since.get_or_insert_with(Instant::now),
                    false => continue,
                };
                if since.elapsed() > LOCK_TTL + Duration::from_millis(1_500) {
                    worker.stands_since = None;
                    worker.service.signal(Signal::CONT);
                    self.count("stood still beyond the lock", 1);
                }
                continue;
            }
            let env = self.workers[n].env.clone();
            let service = self.spawn(&env);
            let dead = std::mem::replace(&mut self.workers[n], Worker { service, env, stands_since: None });
            self.count("died or ended", 1);
            self.ended(&dead);
        }
    }

    pub fn signal(&mut self, n: usize, signal: Signal) {
        if self.workers[n].service.is_alive() {
            self.workers[n].service.signal(signal);
        }
    }

    /// Processes that died or ended, and were replaced.
    pub fn ended_so_far(&self) -> u64 {
        self.figures.get("died or ended").copied().unwrap_or(0)
    }

    /// Tends the workers for a while.
    pub fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.tend();
            std::thread::sleep(LOOK);
        }
    }

    /// Tends the workers until something is so.
    pub fn until(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> bool) {
        let patience = PATIENCE + PATIENCE_EACH * self.pipelines.len() as u32;
        let until = Instant::now() + patience;
        while !look(self) {
            assert!(Instant::now() < until, "waited {} s for {what}", patience.as_secs());
            self.tend();
            std::thread::sleep(LOOK);
        }
    }

    /// What has no record yet may be gone with the data of the key-value store.
    pub fn excuse(&mut self) {
        let recorded: Vec<String> =
            self.pipelines.iter().flat_map(|name| records(&*self.site.store, &slug(name)).into_keys()).collect();
        let mut history = self.history.lock().unwrap();
        let lost: Vec<String> = history.accepted.iter().filter(|id| !recorded.contains(id)).cloned().collect();
        history.excused.extend(lost);
    }

    fn is_idle(&self) -> bool {
        let Ok(counts) = self.site.kv.counts() else { return false };
        counts.stream + counts.waiting + counts.windows == 0 && self.site.kv.remembers().unwrap_or(false)
    }

    /// Everything is put right; then it is told what is wrong.
    pub fn check(mut self) -> Told {
        *self.weather.lock().unwrap() = Weather::default();
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
        let mut history = self.history.lock().unwrap().clone();
        // Nobody but the queue knew of them before.
        let auto = found.records.iter().filter(|(_, job)| job.trigger == "auto").map(|(id, _)| id.clone());
        history.accepted.extend(auto);
        let violations = violations(&history, &found);
        let mut figures = std::mem::take(&mut self.figures);
        figures.insert("S3 requests disturbed".into(), self.struck.load(Ordering::SeqCst));
        figures.insert("connections to Redis cut".into(), self.cutter.struck() as u64);
        figures.insert("jobs accepted".into(), history.accepted.len() as u64);
        figures.insert("jobs ended".into(), found.records.len() as u64);
        figures.insert("jobs failed".into(), found.records.values().filter(|job| job.error.is_some()).count() as u64);
        figures.insert("excused: the queue lost its data".into(), history.excused.len() as u64);
        let mut files = std::mem::take(&mut self.logs);
        files.insert("history.txt".into(), format!("{history:#?}\n{:#?}\n{violations:#?}", found.records));
        drop(calm);
        Told { violations, figures, files }
    }
}
