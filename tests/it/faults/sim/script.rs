//! The events of one seed: workers that start and die, requests and store events, and injected faults.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use crate::child::DuckExpressions;
use lakemill::config::LeaseConfig;
use lakemill::domain::job::{Job, JobMessage};
use lakemill::domain::layout::{config_key, pipeline_prefix};
use lakemill::domain::name::Slug;
use lakemill::ports::ObjectStore;
use lakemill::ports::jobs::{EnqueueOutcome, JobRegistry};
use lakemill::ports::schedule::Schedule;
use lakemill::ports::store::{Bucket, WriteOptions};
use lakemill::worker::{Lifetime, Stopping, Worker, WorkerOptions, WorkerParts, WorkerState};

use super::kv::SimKv;
use super::scheduler::Scheduler;
use super::store::SimStore;
use super::world::{FaultProbabilities, Mutation, ProcessClock, World};
use crate::faults::checker::{Found, Violation, violations};

static EXPRESSIONS: LazyLock<Arc<DuckExpressions>> = LazyLock::new(Arc::default);

const PIPELINES: [&str; 2] = ["a", "b"];
const WORKERS: usize = 3;
const LOCK_TTL: Duration = Duration::from_secs(6);
/// Duration of the faults.
const ROUGH: Duration = Duration::from_secs(40);
/// Time after the faults end within which all jobs must end.
const RECOVERY_MAX: Duration = Duration::from_secs(900);
/// Pause between two events, in ms.
const PAUSE_MS: u64 = 2_500;

/// Not a violation, since the next run repairs it, but counted.
pub const CHANGED_LATE: &str = "table changed late, until its next run";

/// The result of a seed.
pub struct SeedResult {
    pub seed: u64,
    pub violations: Vec<Violation>,
    pub figures: BTreeMap<&'static str, u64>,
    pub turns: u64,
    pub trace: String,
}

pub fn play(seed: u64, mutation: Mutation) -> SeedResult {
    let attempts_max = 2 + (seed % 3) as u32;
    let world = Arc::new(World::new(seed, mutation, LOCK_TTL, attempts_max));
    let play =
        Arc::new(Play { world: Arc::clone(&world), attempts_max, workers: Mutex::default(), next: Mutex::default() });
    let scheduler = world.scheduler.clone();
    let found = scheduler.drive(|| {
        play.lay_out();
        play.rough();
        play.recover()
    });
    let (mut violations, found) = match found {
        Ok(found) => (violations(&world.history.lock().unwrap(), &found), found),
        Err(left) => (vec![left], Found::default()),
    };
    if scheduler.is_overrun() {
        violations.push(Violation::LeftInQueue { what: "turns", count: scheduler.turns() });
    }
    let mut figures = world.fault_counts();
    figures.insert("(jobs)", world.history.lock().unwrap().accepted.len() as u64);
    figures.insert("(records)", found.records.len() as u64);
    figures.insert("(turns)", scheduler.turns());
    SeedResult { seed, violations, figures, turns: scheduler.turns(), trace: scheduler.trace() }
}

/// The first difference between two traces.
pub fn first_difference(one: &str, other: &str) -> String {
    let lines = one.lines().zip(other.lines());
    let parted = lines.enumerate().find(|(_, (a, b))| a.get(..20) != b.get(..20));
    parted.map_or("they don't part".into(), |(_, (a, b))| format!("{a}\n{b}"))
}

/// A worker, if it is running.
struct Slot {
    process: usize,
    stopping: Arc<Stopping>,
    back_at: Option<Duration>,
}

struct Play {
    world: Arc<World>,
    attempts_max: u32,
    workers: Mutex<Vec<Slot>>,
    /// Number of the next file and worker.
    next: Mutex<u64>,
}

fn slug(name: &str) -> Slug {
    Slug::parse(name).unwrap()
}

impl Play {
    fn scheduler(&self) -> &Scheduler {
        &self.world.scheduler
    }

    fn below(&self, sides: u64) -> u64 {
        self.scheduler().below(sides)
    }

    fn number(&self) -> u64 {
        let mut next = self.next.lock().unwrap();
        *next += 1;
        *next
    }

    /// A client outside the simulated processes: only store faults apply.
    fn kv(&self) -> SimKv {
        SimKv { world: Arc::clone(&self.world), process: 0 }
    }

    fn lay_out(&self) {
        let column = |name: &str, ty: &str| serde_json::json!({ "name": name, "type": ty });
        let mapping = serde_json::json!({
            "table": "t", "files": ["in/*.csv"], "columns": [column("p", "int32"), column("n", "int64")],
            "partition_by": ["p"]
        });
        let config = serde_json::json!({ "version": 1, "mappings": [mapping] });
        for name in PIPELINES {
            let bytes = serde_json::to_vec(&config).unwrap();
            let put =
                self.world.store.put(Bucket::Pipelines, &config_key(&slug(name)), &bytes, &WriteOptions::default());
            put.unwrap();
            self.change(name);
        }
        let workers = (0..WORKERS).map(|_| self.worker()).collect();
        *self.workers.lock().unwrap() = workers;
    }

    fn worker(&self) -> Slot {
        let world = Arc::clone(&self.world);
        let name = format!("worker-{}", self.number());
        let process = self.scheduler().process(&name);
        let stopping = Arc::new(Stopping::default());
        let parts = WorkerParts {
            targets: Vec::new(),
            store: Arc::new(SimStore { world: Arc::clone(&world), process }),
            kv: Arc::new(SimKv { world: Arc::clone(&world), process }),
            clock: Arc::new(ProcessClock { scheduler: world.scheduler.clone(), process }),
            catalog: None,
            expressions: Arc::clone(&EXPRESSIONS) as _,
            event_queue: None,
            lake_changes: None,
        };
        let options = WorkerOptions {
            public_url: None,
            lifetime: Lifetime::UntilStopped,
            name,
            concurrency: 1 + self.below(2) as usize,
            manual_executors: 0,
            attempts_max: self.attempts_max,
            lease: LeaseConfig { lock_ttl: LOCK_TTL, heartbeat: LOCK_TTL / 3, reclaim_idle: LOCK_TTL + LOCK_TTL / 3 },
            scratch_dir: world.scratch.path().to_owned(),
            run_memory_bytes: 64 << 20,
            reconcile: None,
            job_records_days: None,
        };
        let stop = Arc::clone(&stopping);
        self.scheduler().begin(process, move || {
            Worker::start(parts, options, Arc::new(WorkerState::default()), stop).unwrap().join();
        });
        Slot { process, stopping, back_at: None }
    }

    /// Changes the lake of a pipeline, and posts the event.
    fn change(&self, name: &str) {
        let prefix = pipeline_prefix(&slug(name));
        let relative = format!("in/{}.csv", self.below(4));
        let key = format!("{prefix}{relative}");
        let rows: String =
            (0..1 + self.below(4)).map(|_| format!("{},{}\n", self.below(3), self.below(1_000))).collect();
        let body = format!("p,n\n{rows}");
        self.scheduler().note(0, format!("changes {key}"));
        self.world.store.put(Bucket::Lake, &key, body.as_bytes(), &WriteOptions::default()).unwrap();
        // Posts an event like a store, until it is accepted.
        let changes = [(slug(name), [relative.as_str()].into_iter().collect())];
        while self.kv().record_changes(&changes).is_err() {
            self.world.pause(Duration::from_millis(500));
        }
    }

    fn enqueue(&self, name: &str) {
        let clean = self.below(4) == 0;
        self.enqueue_as(name, clean);
    }

    fn enqueue_as(&self, name: &str, clean: bool) {
        let message = JobMessage::new(slug(name), clean, "manual", lakemill::runtime::Clock::now(&self.clock()));
        let job = Job::queued(&message, self.attempts_max);
        let id = job.job_id.to_string();
        self.world.history.lock().unwrap().perhaps.insert(id.clone());
        for _ in 0..3 {
            if let Ok(EnqueueOutcome::Queued | EnqueueOutcome::AlreadyActive) = self.kv().enqueue(&job) {
                self.world.history.lock().unwrap().accepted.insert(id);
                return;
            }
        }
    }

    fn clock(&self) -> ProcessClock {
        ProcessClock { scheduler: self.scheduler().clone(), process: 0 }
    }

    /// Adds the entry of an accepted job once more, like a duplicate delivery.
    fn duplicate(&self) {
        let history = self.world.history.lock().unwrap();
        let sql = "SELECT fields FROM jobs ORDER BY enqueued_ms LIMIT 1";
        let conn = rusqlite::Connection::open(&self.world.db).unwrap();
        let fields: Result<String, _> = conn.query_row(sql, [], |row| row.get(0));
        drop(history);
        if let Ok(fields) = fields {
            let now = lakemill::runtime::Clock::now(&self.clock()).timestamp_millis();
            let sql = "INSERT INTO stream (fields, received_ms) VALUES (?1, ?2)";
            conn.execute(sql, rusqlite::params![fields, now]).unwrap();
            self.world.count("message doubled");
        }
    }

    /// Accepted jobs without a record may be lost.
    fn lose_data(&self) {
        let prefix = |name: &str| format!("{}jobs/", pipeline_prefix(&slug(name)));
        let objects = self.world.store.contents(Bucket::Pipelines);
        let mut history = self.world.history.lock().unwrap();
        let recorded =
            |id: &str| PIPELINES.iter().any(|name| objects.contains_key(&format!("{}{id}.json", prefix(name))));
        let lost: Vec<String> = history.accepted.iter().filter(|id| !recorded(id)).cloned().collect();
        history.excused.extend(lost);
        drop(history);
        std::fs::remove_file(&self.world.db).unwrap();
        self.world.count("kv lost its data");
        self.scheduler().note(0, "the key-value store loses its data".into());
    }

    fn rough(&self) {
        self.world.set_fault_probabilities(FaultProbabilities::ROUGH);
        let mut lost_data = self.below(8) != 0;
        while self.scheduler().now() < ROUGH && !self.scheduler().is_overrun() {
            self.world.pause(Duration::from_millis(1 + self.below(PAUSE_MS)));
            self.revive();
            let name = PIPELINES[self.below(2) as usize];
            let time = Duration::from_millis(200 + self.below(9_000));
            match self.below(24) {
                0..5 => self.change(name),
                5..9 => self.enqueue(name),
                9..12 => self.kill(),
                12 | 13 => self.terminate(),
                14 => self.world.stop_kv(time),
                15 => self.world.fill_kv(time),
                16 => self.world.stop_store(time),
                17 => self.world.fill_disk(time),
                18 | 19 => self.set_clock(),
                20 | 21 => self.freeze(),
                22 => self.duplicate(),
                _ if !lost_data => {
                    lost_data = true;
                    self.lose_data();
                }
                _ => self.cancel(name),
            }
        }
    }

    fn any_worker(&self) -> Option<usize> {
        let workers = self.workers.lock().unwrap();
        let slot = &workers[self.below(WORKERS as u64) as usize];
        (!self.scheduler().is_dead(slot.process)).then_some(slot.process)
    }

    fn kill(&self) {
        if let Some(process) = self.any_worker() {
            self.world.count("killed");
            self.scheduler().kill_after(process, self.below(40));
        }
    }

    fn freeze(&self) {
        if let Some(process) = self.any_worker() {
            self.world.count("stopped for long");
            self.scheduler().freeze(process, LOCK_TTL + Duration::from_millis(self.below(8_000)));
        }
    }

    fn set_clock(&self) {
        if let Some(process) = self.any_worker() {
            self.world.count("clock set");
            let ahead = [-600_000, -7_000, 7_000, 600_000][self.below(4) as usize];
            self.scheduler().set_clock(process, ahead);
        }
    }

    /// A signal, sometimes two.
    fn terminate(&self) {
        let twice = self.below(3) == 0;
        let workers = self.workers.lock().unwrap();
        let slot = &workers[self.below(WORKERS as u64) as usize];
        if !self.scheduler().is_dead(slot.process) {
            self.world.count("SIGTERM");
            self.scheduler().note(slot.process, "is stop to end".into());
            slot.stopping.escalate();
            if twice {
                slot.stopping.escalate();
            }
        }
    }

    fn cancel(&self, name: &str) {
        let active = self.world.kv.active(&slug(name), 10).unwrap_or_default();
        if let Some(job) = active.first() {
            self.world.count("cancelled");
            drop(self.kv().cancel(&job.pipeline, &job.job_id));
        }
    }

    /// Restarts stopped workers after a while, under new names.
    fn revive(&self) {
        let now = self.scheduler().now();
        for n in 0..WORKERS {
            let gone = {
                let mut workers = self.workers.lock().unwrap();
                let slot = &mut workers[n];
                let gone = self.scheduler().is_dead(slot.process) || self.scheduler().has_ended(slot.process);
                if gone && slot.back_at.is_none() {
                    slot.back_at = Some(now + Duration::from_millis(self.below(8_000)));
                }
                gone && slot.back_at.is_some_and(|at| at <= now)
            };
            if gone {
                let slot = self.worker();
                self.workers.lock().unwrap()[n] = slot;
            }
        }
    }

    /// Without faults one worker completes all jobs.
    fn recover(&self) -> Result<Found, Violation> {
        self.world.end_faults();
        self.scheduler().note(0, "the faults clears up".into());
        for slot in self.workers.lock().unwrap().iter() {
            if !self.scheduler().is_dead(slot.process) {
                self.scheduler().kill(slot.process);
            }
        }
        let slot = self.worker();
        self.workers.lock().unwrap()[0] = slot;
        let until = self.scheduler().now() + RECOVERY_MAX;
        let mut quiet = 0;
        while quiet < 4 {
            self.world.pause(Duration::from_secs(3));
            let counts = self.world.kv.counts().map_err(|_| Violation::LeftInQueue { what: "kv", count: 1 })?;
            let left = counts.stream + counts.waiting + counts.requested + counts.windows;
            let active: usize = PIPELINES.iter().map(|p| self.world.kv.active(&slug(p), 100).unwrap().len()).sum();
            let remembers = self.world.kv.is_initialized().unwrap_or(false);
            let under_way = self.world.land();
            quiet = if left == 0 && active == 0 && remembers && under_way == 0 { quiet + 1 } else { 0 };
            if self.scheduler().now() > until || self.scheduler().is_overrun() {
                return Err(Violation::LeftInQueue { what: "after all that time", count: left + active as u64 });
            }
            if quiet == 2 {
                self.repair();
            }
        }
        Ok(Found::look(&self.world.store, &self.world.kv, &PIPELINES))
    }

    /// Excluded are pipelines whose last job failed, whose tables wait for the next run, and pipelines with a file
    /// written or deleted by a request that arrived after their last job: a store with preconditions but without fences
    /// can't reject it. A run doesn't list its output: a clean run creates such a file again, as would `lakemill verify
    /// --repair`.
    fn repair(&self) {
        let found = Found::look(&self.world.store, &self.world.kv, &PIPELINES);
        for name in PIPELINES {
            let records = crate::faults::checker::records(&self.world.store, &slug(name));
            let last = records.values().max_by_key(|job| job.fence);
            let failed = last.is_none_or(|job| job.error.is_some());
            let changed = found.made[name].objects != found.made[name].expected && self.world.has_landed(name);
            if changed && !failed {
                self.world.count(CHANGED_LATE);
            }
            // Files that a run couldn't delete after its commit; reconciliation would have them deleted.
            let left = !found.made[name].intents.is_empty();
            if changed {
                self.enqueue_as(name, true);
            } else if failed || left {
                self.enqueue(name);
            }
        }
    }
}
