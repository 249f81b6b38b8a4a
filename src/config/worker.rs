//! The worker.

use std::path::PathBuf;
use std::time::Duration;

use super::catalog::CatalogConfig;
use super::env::{Environment, Var, VariableReader, WithWarnings, secret};
use super::error::EnvironmentError;
use super::events::EventsConfig;
use super::kv::KvConfig;
use super::logging::LogConfig;
use super::notify::NotifyConfig;
use super::object_store::ObjectStoreConfig;
use super::secret::Secret;
use super::server::ServerConfig;
use super::values::{absolute_path, interval, millis, number, seconds};
use crate::domain::limits::{ATTEMPTS_DEFAULT, RUN_MEMORY_BYTES_DEFAULT, RUN_MEMORY_BYTES_MIN};

const PORT_DEFAULT: u16 = 8_080;
const CONCURRENCY_DEFAULT: usize = 1;
const CONCURRENCY_MAX: usize = 64;
const METRICS_PIPELINES_DEFAULT: usize = 1_000;
const METRICS_PIPELINES_MAX: usize = 10_000;
const ATTEMPTS_MAX: u32 = 100;
const LOCK_TTL_MS_DEFAULT: u64 = 90_000;
const LOCK_TTL_MS_MIN: u64 = 1_000;
const HEARTBEAT_MS_DEFAULT: u64 = 30_000;
const HEARTBEAT_MS_MIN: u64 = 100;
/// Default of `SVC_RECLAIM_IDLE_MS`.
pub const RECLAIM_IDLE_MS_DEFAULT: u64 = 120_000;
const RECLAIM_IDLE_MS_MIN: u64 = 1_000;
const HOUR_MS: u64 = 3_600_000;
/// Maximum heartbeat as a fraction of the lock's TTL, so that one may be lost without losing the lock.
const HEARTBEATS_PER_TTL_MIN: u64 = 3;
const RECONCILE_DEFAULT: Duration = Duration::from_secs(86_400);
const DRAIN_SECONDS_MAX: u64 = 86_400;
const JOB_RECORDS_DAYS_MAX: u32 = 36_500;
const SCRATCH_DIR_DEFAULT: &str = "/var/tmp/lakemill";

const _: () = assert!(2 * HEARTBEAT_MS_DEFAULT < LOCK_TTL_MS_DEFAULT && HEARTBEATS_PER_TTL_MIN > 2);
const _: () = assert!(HEARTBEAT_MS_DEFAULT * HEARTBEATS_PER_TTL_MIN <= LOCK_TTL_MS_DEFAULT);
const _: () = assert!(HEARTBEAT_MS_MIN * HEARTBEATS_PER_TTL_MIN <= LOCK_TTL_MS_MIN);
const _: () = assert!(LOCK_TTL_MS_DEFAULT + HEARTBEAT_MS_DEFAULT <= RECLAIM_IDLE_MS_DEFAULT);

/// The run lock and its timing. Invariant: 2 × heartbeat < lock TTL, and lock TTL + heartbeat ≤ reclaim idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseConfig {
    /// `JOB_LOCK_TTL_MS`: TTL of the run lock without a heartbeat; default 90000, 1000 to 3600000.
    pub lock_ttl: Duration,
    /// `HEARTBEAT_MS`: default 30000; above a third of the lock's TTL it is clamped to that, with a warning.
    pub heartbeat: Duration,
    /// `SVC_RECLAIM_IDLE_MS`: time without a heartbeat after which another worker takes a job over; default 120000;
    /// below lock TTL + heartbeat it is raised to that, with a warning if it was set.
    pub reclaim_idle: Duration,
}

/// The environment of `lakemill worker`.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerConfig {
    pub objects: ObjectStoreConfig,
    pub kv: KvConfig,
    pub server: ServerConfig,
    pub log: LogConfig,
    /// `SVC_WORKER_TOKEN`, required: bearer token of `POST /config/validate`; may come from a file.
    pub worker_token: Secret,
    /// `SVC_WEBHOOK_SECRET`, required: secret of `POST /events/s3`; may come from a file.
    pub webhook_secret: Secret,
    /// `WORKER_CONCURRENCY`: concurrent jobs; default 1, at most 64.
    pub concurrency: usize,
    /// `SVC_MANUAL_EXECUTORS`: how many of the concurrent jobs are never automatic ones; default 0, below
    /// `WORKER_CONCURRENCY`.
    pub manual_executors: usize,
    /// `SVC_METRICS_PIPELINES`: pipelines with metrics of their own; default 1,000, at most 10,000.
    pub metrics_pipelines: usize,
    /// `MAX_ATTEMPTS`: attempts of a job before it fails permanently; default 3, at most 100.
    pub attempts_max: u32,
    pub lease: LeaseConfig,
    /// `SVC_SCRATCH_DIR`: folder for temporary files of runs; default `/var/tmp/lakemill`.
    pub scratch_dir: PathBuf,
    /// `SVC_RUN_MEMORY_BYTES`: memory of one run; default 536870912, at least 67108864.
    pub run_memory_bytes: u64,
    /// `SVC_RECONCILE_SECONDS`: interval at which the whole lake is compared with the tables; default 86400, at least
    /// 10, at most 86400; 0: never. `lakemill up` has the default 3600.
    pub reconcile: Option<Duration>,
    /// `SVC_JOB_RECORDS_DAYS`: days after which the records of ended jobs are deleted, but not the newest of a pipeline;
    /// default none, so that they are kept; 1 to 36500.
    pub job_records_days: Option<u32>,
    /// `SVC_DRAIN_SECONDS`: how long running jobs may continue after a stop signal before they are requeued without
    /// charging an attempt; default none, so that they all finish; at most 86400; 0: they are requeued at once.
    pub drain_max: Option<Duration>,
    pub notify: NotifyConfig,
    pub events: EventsConfig,
    /// The catalog that Iceberg tables are published in.
    pub catalog: Option<CatalogConfig>,
}

impl WorkerConfig {
    /// # Errors
    /// Lists every variable that is missing or malformed.
    pub fn from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let memory = Var("SVC_RUN_MEMORY_BYTES", "memory of one run");
        let objects = ObjectStoreConfig::read(&reader);
        let concurrency = reader.or(
            Var("WORKER_CONCURRENCY", "number of concurrent jobs"),
            CONCURRENCY_DEFAULT,
            number(1..=CONCURRENCY_MAX),
        );
        let config = Self {
            events: EventsConfig::read(&reader, &objects),
            catalog: CatalogConfig::read(&reader, &objects),
            objects,
            kv: KvConfig::read(&reader),
            worker_token: reader.required_secret(Var("SVC_WORKER_TOKEN", "token of POST /config/validate"), secret),
            webhook_secret: reader.required_secret(Var("SVC_WEBHOOK_SECRET", "secret of POST /events/s3"), secret),
            concurrency,
            manual_executors: reader.or(
                Var("SVC_MANUAL_EXECUTORS", "concurrent jobs that are never automatic, fewer than WORKER_CONCURRENCY"),
                0,
                number(0..=concurrency - 1),
            ),
            metrics_pipelines: reader.or(
                Var("SVC_METRICS_PIPELINES", "pipelines with metrics of their own"),
                METRICS_PIPELINES_DEFAULT,
                number(0..=METRICS_PIPELINES_MAX),
            ),
            attempts_max: attempts_max(&reader),
            lease: LeaseConfig::read(&reader),
            server: ServerConfig::read(&reader, PORT_DEFAULT),
            scratch_dir: scratch_dir(&reader).unwrap_or_else(|| SCRATCH_DIR_DEFAULT.into()),
            run_memory_bytes: reader.or(memory, RUN_MEMORY_BYTES_DEFAULT, number(RUN_MEMORY_BYTES_MIN..=u64::MAX)),
            reconcile: reader.or(
                Var("SVC_RECONCILE_SECONDS", "interval of comparing the lake"),
                Some(RECONCILE_DEFAULT),
                interval(10..=86_400),
            ),
            job_records_days: reader.optional(
                Var("SVC_JOB_RECORDS_DAYS", "days after which job records are deleted"),
                number(1..=JOB_RECORDS_DAYS_MAX),
            ),
            drain_max: reader.optional(
                Var("SVC_DRAIN_SECONDS", "time for running jobs after a stop signal"),
                seconds(0..=DRAIN_SECONDS_MAX),
            ),
            notify: NotifyConfig::read(&reader),
            log: LogConfig::read(&reader),
        };
        reader.finish(config)
    }
}

pub(super) fn attempts_max(reader: &VariableReader<'_>) -> u32 {
    let var = Var("MAX_ATTEMPTS", "attempts of a job before it fails");
    reader.or(var, ATTEMPTS_DEFAULT, number(1..=ATTEMPTS_MAX))
}

pub(super) fn scratch_dir(reader: &VariableReader<'_>) -> Option<PathBuf> {
    reader.optional(Var("SVC_SCRATCH_DIR", "folder for temporary files of runs"), absolute_path)
}

pub(super) fn lock_ttl(reader: &VariableReader<'_>) -> Duration {
    let var = Var("JOB_LOCK_TTL_MS", "TTL of the run lock");
    reader.or(var, Duration::from_millis(LOCK_TTL_MS_DEFAULT), millis(LOCK_TTL_MS_MIN..=HOUR_MS))
}

impl LeaseConfig {
    fn read(reader: &VariableReader<'_>) -> Self {
        let lock_ttl = lock_ttl(reader);
        let heartbeat_var = Var("HEARTBEAT_MS", "heartbeat of the run lock");
        let given = reader.optional(heartbeat_var, millis(HEARTBEAT_MS_MIN..=HOUR_MS));
        let longest = Duration::from_millis(lock_ttl.as_millis() as u64 / HEARTBEATS_PER_TTL_MIN);
        let heartbeat = given.unwrap_or(Duration::from_millis(HEARTBEAT_MS_DEFAULT)).min(longest);
        if let Some(given) = given.filter(|given| *given > longest) {
            let (given, longest, ttl) = (given.as_millis(), longest.as_millis(), lock_ttl.as_millis());
            reader
                .warn(format!("HEARTBEAT_MS `{given}` is clamped to `{longest}`, a third of JOB_LOCK_TTL_MS `{ttl}`"));
        }
        let idle_var = Var("SVC_RECLAIM_IDLE_MS", "time without a heartbeat before a job is taken over");
        let given = reader.optional(idle_var, millis(RECLAIM_IDLE_MS_MIN..=24 * HOUR_MS));
        let shortest = lock_ttl + heartbeat;
        let reclaim_idle = given.unwrap_or(Duration::from_millis(RECLAIM_IDLE_MS_DEFAULT)).max(shortest);
        if let Some(given) = given.filter(|given| *given < shortest) {
            let (given, shortest) = (given.as_millis(), shortest.as_millis());
            reader.warn(format!(
                "SVC_RECLAIM_IDLE_MS `{given}` is raised to `{shortest}`, JOB_LOCK_TTL_MS and HEARTBEAT_MS together"
            ));
        }
        Self { lock_ttl, heartbeat, reclaim_idle }
    }
}
