//! State shared by the simulated processes: the real stores behind injected faults, and the history.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use lakemill::adapters::sqlite::{SqliteKv, SqliteOptions};
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, Precondition, WriteOptions};
use lakemill::runtime::Clock;
use lakemill::runtime::simulation;

use super::scheduler::Scheduler;
use crate::faults::checker::{History, Written};
use crate::support::lake::in_memory_folder;
use crate::support::memory_store::MemoryStore;

/// Start of the simulated time.
const BEGIN_S: i64 = 1_700_000_000;
/// Time since boot at the start.
const BOOTED: Duration = Duration::from_secs(1_000);
/// A wait address that is never woken.
const NEVER_WOKEN: usize = 1;
/// The wait address of consumers waiting for new entries.
pub const CLAIMS: usize = 2;

/// Deliberate bugs that the checker must detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    None,
    /// The store accepts all writes: no fence, no lease, no precondition.
    AnyoneWrites,
    /// Entries are acknowledged before the record is written.
    AcknowledgesFirst,
    /// A record may overwrite an existing one.
    OverwritesRecords,
    /// An event is acknowledged before its window is extended; a crash loses it.
    ForgetsEvents,
    /// Waiting jobs are dropped when they are due.
    DropsDueJobs,
    /// A write that arrives late overwrites the object, regardless of its precondition.
    LateWritesUnchecked,
}

/// Fault rates, in 1,000 calls.
#[derive(Debug, Clone, Copy)]
pub struct FaultProbabilities {
    pub error: u64,
    pub lost_reply: u64,
    pub freeze: u64,
    pub crash: u64,
    /// Writes that are still in flight after their sender timed out or died.
    pub late: u64,
}

impl FaultProbabilities {
    pub const NO_FAULTS: Self = Self { error: 0, lost_reply: 0, freeze: 0, crash: 0, late: 0 };
    pub const ROUGH: Self = Self { error: 15, lost_reply: 15, freeze: 4, crash: 5, late: 12 };
}

pub struct World {
    pub scheduler: Scheduler,
    pub kv: SqliteKv,
    pub db: std::path::PathBuf,
    pub store: MemoryStore,
    pub scratch: tempfile::TempDir,
    pub mutation: Mutation,
    pub lock_ttl: Duration,
    faults: Mutex<Faults>,
    late: Mutex<Vec<DelayedWrite>>,
    /// Keys of the warehouse that were written or deleted late.
    landed: Mutex<Vec<String>>,
    pub history: Mutex<History>,
    /// Records that a mutation delays until their job is acknowledged.
    pub held_back: Mutex<BTreeMap<String, (String, Vec<u8>)>>,
    _folder: tempfile::TempDir,
}

struct Faults {
    odds: FaultProbabilities,
    kv_away_until: Duration,
    kv_full_until: Duration,
    store_away_until: Duration,
    disk_full_until: Duration,
    counts: BTreeMap<&'static str, u64>,
}

/// A write in flight. The store accepted it while the lease was valid; when it takes effect, the store checks only its
/// precondition, as S3 does.
struct DelayedWrite {
    at: Duration,
    bucket: Bucket,
    what: LateWrite,
}

pub enum LateWrite {
    Put { key: String, bytes: Vec<u8>, precondition: Precondition },
    Delete { keys: Vec<String> },
}

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    Good,
    /// It fails without effect.
    Error,
    /// It takes effect, but its response is lost.
    LostReply,
}

/// The true time, used by the stores.
struct TrueClock(Scheduler);

impl Clock for TrueClock {
    fn now(&self) -> DateTime<Utc> {
        wall(self.0.now(), 0)
    }

    fn since_boot(&self) -> Duration {
        BOOTED + self.0.now()
    }
}

fn wall(now: Duration, ahead_ms: i64) -> DateTime<Utc> {
    let since = TimeDelta::from_std(now).unwrap() + TimeDelta::milliseconds(ahead_ms);
    DateTime::from_timestamp(BEGIN_S, 0).unwrap() + since
}

/// A process's own clock.
pub struct ProcessClock {
    pub scheduler: Scheduler,
    pub process: usize,
}

impl Clock for ProcessClock {
    fn now(&self) -> DateTime<Utc> {
        wall(self.scheduler.now(), self.scheduler.ahead_ms(self.process))
    }

    fn since_boot(&self) -> Duration {
        BOOTED + self.scheduler.now()
    }
}

impl World {
    pub fn new(seed: u64, mutation: Mutation, lock_ttl: Duration, attempts_max: u32) -> Self {
        let scheduler = Scheduler::new(seed);
        let clock: Arc<dyn Clock> = Arc::new(TrueClock(scheduler.clone()));
        let folder = in_memory_folder();
        let db = folder.path().join("kv.db");
        let kv = SqliteKv::open(SqliteOptions { path: db.clone(), clock: Arc::clone(&clock) }).unwrap();
        let faults = Faults {
            odds: FaultProbabilities::NO_FAULTS,
            kv_away_until: Duration::ZERO,
            kv_full_until: Duration::ZERO,
            store_away_until: Duration::ZERO,
            disk_full_until: Duration::ZERO,
            counts: BTreeMap::new(),
        };
        Self {
            kv,
            db,
            store: MemoryStore::new().timed_by(clock),
            scratch: in_memory_folder(),
            mutation,
            lock_ttl,
            faults: Mutex::new(faults),
            late: Mutex::default(),
            landed: Mutex::default(),
            history: Mutex::new(History { attempts_max, ..History::default() }),
            held_back: Mutex::default(),
            scheduler,
            _folder: folder,
        }
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }

    pub fn set_fault_probabilities(&self, odds: FaultProbabilities) {
        self.faults().odds = odds;
    }

    fn until(&self, time: Duration) -> Duration {
        self.scheduler.now() + time
    }

    pub fn stop_kv(&self, time: Duration) {
        self.faults().kv_away_until = self.until(time);
        self.count("kv away");
    }

    pub fn fill_kv(&self, time: Duration) {
        self.faults().kv_full_until = self.until(time);
        self.count("kv out of memory");
    }

    pub fn stop_store(&self, time: Duration) {
        self.faults().store_away_until = self.until(time);
        self.count("store away");
    }

    pub fn fill_disk(&self, time: Duration) {
        self.faults().disk_full_until = self.until(time);
        self.count("disk full");
    }

    pub fn end_faults(&self) {
        let mut faults = self.faults();
        faults.odds = FaultProbabilities::NO_FAULTS;
        let past = Duration::ZERO;
        (faults.kv_away_until, faults.kv_full_until) = (past, past);
        (faults.store_away_until, faults.disk_full_until) = (past, past);
    }

    pub fn is_kv_stopped(&self) -> bool {
        self.scheduler.now() < self.faults().kv_away_until
    }

    pub fn is_kv_full(&self) -> bool {
        self.scheduler.now() < self.faults().kv_full_until
    }

    pub fn is_store_stopped(&self) -> bool {
        self.scheduler.now() < self.faults().store_away_until
    }

    pub fn is_disk_full(&self) -> bool {
        self.scheduler.now() < self.faults().disk_full_until
    }

    pub fn count(&self, fault: &'static str) {
        *self.faults().counts.entry(fault).or_default() += 1;
    }

    pub fn fault_counts(&self) -> BTreeMap<&'static str, u64> {
        self.faults().counts.clone()
    }

    /// Time passes while other threads run.
    pub fn pause(&self, time: Duration) {
        if let Some(thread) = simulation::current() {
            thread.wait(NEVER_WOKEN, time);
        }
    }

    /// Whether the sender of a write times out, and perhaps dies, before the write takes effect. Writes of files and
    /// deletes are rare, so their rates are higher.
    pub fn is_late(&self, process: usize, bucket: Bucket, deletes: bool) -> bool {
        let weight = match bucket {
            Bucket::Warehouse if deletes => 20,
            Bucket::Warehouse => 5,
            Bucket::Pipelines | Bucket::Lake => 1,
        };
        let odds = self.faults().odds.late * weight;
        // Threads that are not scheduled must not use the random numbers.
        if process == 0 || simulation::current().is_none() || !self.scheduler.happens(odds) {
            return false;
        }
        if self.scheduler.below(2) == 0 {
            self.scheduler.kill_after(process, 0);
        }
        true
    }

    /// Takes effect after up to twice the lock's TTL, when another process may have taken over.
    pub fn send_late(&self, bucket: Bucket, what: LateWrite) {
        let ms = self.lock_ttl.as_millis() as u64;
        let at = self.until(Duration::from_millis(1 + self.scheduler.below(2 * ms)));
        self.count(match what {
            LateWrite::Put { .. } => "late: put sent",
            LateWrite::Delete { .. } => "late: delete sent",
        });
        self.late.lock().unwrap().push(DelayedWrite { at, bucket, what });
    }

    /// Applies requests in flight that are due. Returns the number still in flight.
    pub fn land(&self) -> usize {
        let now = self.scheduler.now();
        let mut late = self.late.lock().unwrap();
        let mut due: Vec<DelayedWrite> = late.extract_if(.., |late| late.at <= now).collect();
        due.sort_by_key(|late| late.at);
        for DelayedWrite { bucket, what, .. } in due {
            let keys = match &what {
                LateWrite::Put { key, .. } => std::slice::from_ref(key),
                LateWrite::Delete { keys } => keys,
            };
            if bucket == Bucket::Warehouse {
                self.landed.lock().unwrap().extend_from_slice(keys);
            }
            let landed = match what {
                LateWrite::Delete { keys } => {
                    self.store.delete(bucket, &keys, &WriteOptions::default()).map(|()| format!("delete {keys:?}"))
                }
                LateWrite::Put { key, bytes, precondition } => {
                    let options = WriteOptions { precondition, ..WriteOptions::default() };
                    let put = self.store.put(bucket, &key, &bytes, &options);
                    put.map(|_| {
                        self.history.lock().unwrap().written.extend(Written::of(bucket, &key, &bytes));
                        format!("put {key}")
                    })
                }
            };
            self.count(if landed.is_ok() { "late: took place" } else { "late: refused" });
            let outcome = landed.unwrap_or_else(|error| format!("a write is refused: {error}"));
            self.scheduler.note(0, format!("late: {bucket}: {outcome}"));
        }
        late.len()
    }

    /// Whether a file of a pipeline was written or deleted late.
    pub fn has_landed(&self, pipeline: &str) -> bool {
        self.landed.lock().unwrap().iter().any(|key| key.starts_with(&format!("pipelines/{pipeline}/")))
    }

    /// The latency of a call.
    fn latency(&self) -> Duration {
        if self.faults().odds.error == 0 {
            return Duration::from_millis(1);
        }
        let below = |n| self.scheduler.below(n);
        Duration::from_millis(match below(20) {
            0 => 100 + below(1_400),
            1..5 => 5 + below(95),
            _ => 1 + below(4),
        })
    }

    /// Starts a call and decides its fate. `rare`: a call that is polled repeatedly while idle.
    pub fn set_out(&self, process: usize, rare: bool) -> CallOutcome {
        self.scheduler.unwind_if_killed(process);
        let odds = self.faults().odds;
        if rare {
            self.pause(Duration::from_millis(1));
            return if self.scheduler.happens(odds.error / 4) { CallOutcome::Error } else { CallOutcome::Good };
        }
        self.disturb(process, odds);
        self.pause(self.latency());
        if self.scheduler.happens(odds.error) {
            self.count("call failed");
            return CallOutcome::Error;
        }
        if self.scheduler.happens(odds.lost_reply) {
            self.count("reply lost");
            return CallOutcome::LostReply;
        }
        CallOutcome::Good
    }

    /// The response is in flight.
    pub fn send_response(&self, process: usize) {
        let odds = self.faults().odds;
        if odds.error > 0 && self.scheduler.below(4) == 0 {
            self.disturb(process, odds);
            self.pause(self.latency());
        }
    }

    /// The process may pause or die here.
    fn disturb(&self, process: usize, odds: FaultProbabilities) {
        // Clients outside the processes continue.
        if process == 0 {
            return;
        }
        if self.scheduler.happens(odds.freeze) {
            let ms = self.lock_ttl.as_millis() as u64;
            self.scheduler.freeze(process, Duration::from_millis(ms / 2 + self.scheduler.below(2 * ms)));
            self.count("stood still");
        }
        if self.scheduler.happens(odds.crash) {
            self.scheduler.kill_after(process, self.scheduler.below(3));
            self.count("killed in a call");
        }
    }
}
