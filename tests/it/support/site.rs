//! A whole installation: a store, a queue, and any number of real `lakemill worker` and `web` processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use chrono::Utc;
use lakemill::adapters::fs::{BucketNames, FsStore};
use lakemill::adapters::password::PasswordHash;
use lakemill::adapters::s3::S3Store;
use lakemill::adapters::sqlite::{SqliteKv, SqliteOptions};
use lakemill::config::StoreCredentials;
use lakemill::domain::job::{Job, JobId, JobMessage};
use lakemill::domain::layout::{config_key, job_record_key, pipeline_prefix};
use lakemill::domain::name::Slug;
use lakemill::ports::jobs::{ClaimLimits, EnqueueOutcome};
use lakemill::ports::store::{Bucket, StoreError, WriteOptions, list_all};
use lakemill::ports::{Kv, ObjectStore};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use serde_json::{Value, json};

use super::children::Reaped as _;
use super::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use super::lake::in_memory_folder;
use super::program::{lakemill, mapping, peak_bytes};
use super::redis_server::RedisServer;
use super::s3_server::{S3Server, moto, s3s_fs};

pub const WORKER_TOKEN: &str = "token-of-the-worker-in-tests";
pub const WEBHOOK_SECRET: &str = "secret-of-the-webhook-in-tests";
pub const PASSWORD: &str = "correct horse battery staple";
/// The log line with a service's address, once it listens.
const AT_WORK: &str = "started\",\"address\":";
static PASSWORD_HASH: LazyLock<String> = LazyLock::new(|| PasswordHash::of(PASSWORD).unwrap().to_string());
/// Longest wait for a worker. Long, since other programs may keep the machine busy.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(180);

/// The backends of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Redis, and S3 over HTTP.
    Fleet,
    /// SQLite and a folder.
    Embedded,
}

/// An installation; its processes end when it is dropped.
pub struct Site {
    pub store: Arc<dyn ObjectStore>,
    pub kv: Arc<dyn Kv>,
    pub redis: Option<RedisServer>,
    env: BTreeMap<String, String>,
    home: tempfile::TempDir,
    /// The proxy in front of the S3 server, if there is one.
    gate: Option<Monitor>,
}

/// A proxy that can be set to refuse everything, and counts.
struct Monitor {
    closed: Arc<AtomicBool>,
    objects_read: Arc<AtomicU64>,
    proxy: HttpProxy,
}

impl Monitor {
    fn new(server: &S3Server) -> Self {
        let (closed, objects_read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (shut, count) = (Arc::clone(&closed), Arc::clone(&objects_read));
        let rule = move |passing: &mut ProxiedRequest| {
            if shut.load(Ordering::SeqCst) {
                return ProxyAction::Close;
            }
            if passing.method == "GET" && !passing.target.contains("list-type=") {
                count.fetch_add(1, Ordering::SeqCst);
            }
            ProxyAction::Forward
        };
        Self { closed, objects_read, proxy: server.behind(rule) }
    }
}

/// The folders of the embedded store, and their names during an outage.
const FOLDERS: [(&str, &str); 3] =
    [("pipelines", "pipelines-away"), ("lake", "lake-away"), ("warehouse", "warehouse-away")];

impl Site {
    /// With an initialized queue, so that a worker doesn't reconcile at its start.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Fleet => Self::fleet(RedisServer::durable()),
            Kind::Embedded => Self::embedded(),
        }
        .remembering()
    }

    /// Like [`Site::new`], on an S3 server that keeps keys as they are, including those that folders can't hold.
    pub fn with_any_keys() -> Self {
        Self::fleet_on(moto(), RedisServer::durable()).remembering()
    }

    fn remembering(self) -> Self {
        self.kv.claim("nobody", ClaimLimits::any(1), Duration::ZERO).unwrap();
        self.kv.mark_initialized().unwrap();
        self
    }

    /// On a given Redis.
    pub fn fleet(redis: RedisServer) -> Self {
        Self::fleet_on(s3s_fs(), redis)
    }

    /// Also on a given S3 server.
    pub fn fleet_on(server: &S3Server, redis: RedisServer) -> Self {
        let gate = Monitor::new(server);
        let options = server.options_at(&gate.proxy.url());
        let mut env = common();
        let set = |env: &mut BTreeMap<String, String>, name: &str, value: &str| {
            env.insert(name.to_owned(), value.to_owned());
        };
        set(&mut env, "OBJ_ENDPOINT_URL", &gate.proxy.url());
        let StoreCredentials::Key { id, secret } = &options.credentials else { panic!("servers have keys") };
        set(&mut env, "OBJ_ACCESS_KEY_ID", id.reveal());
        set(&mut env, "OBJ_SECRET_ACCESS_KEY", secret.reveal());
        set(&mut env, "OBJ_REGION", &options.region);
        set(&mut env, "S3_BUCKET_PIPELINES", &options.buckets.pipelines);
        set(&mut env, "S3_BUCKET_LAKE", &options.buckets.lake);
        set(&mut env, "S3_BUCKET_WAREHOUSE", &options.buckets.warehouse);
        set(&mut env, "KV_URL", &redis.url());
        let store: Arc<dyn ObjectStore> = Arc::new(S3Store::open(options).unwrap());
        let kv: Arc<dyn Kv> = Arc::new(redis.kv());
        Self { store, kv, redis: Some(redis), env, home: tempfile::tempdir().unwrap(), gate: Some(gate) }
    }

    /// Objects in a folder (in memory, unless `objects` is set), and the queue on a given Redis.
    pub fn folder_and_redis(redis: RedisServer, objects: Option<&Path>) -> Self {
        let mut site = Self::embedded_in(in_memory_folder(), objects);
        site.set("KV_URL", &redis.url());
        site.kv = Arc::new(redis.kv());
        site.redis = Some(redis);
        site
    }

    fn embedded() -> Self {
        Self::embedded_in(tempfile::tempdir().unwrap(), None)
    }

    fn embedded_in(home: tempfile::TempDir, objects: Option<&Path>) -> Self {
        let (inside, db) = (home.path().join("objects"), home.path().join("kv.db"));
        let objects = objects.unwrap_or(&inside).to_owned();
        FsStore::create(&objects).unwrap();
        let mut env = common();
        for (name, value) in [
            ("OBJ_ENDPOINT_URL", format!("file://{}", objects.display())),
            ("OBJ_ACCESS_KEY_ID", "none".into()),
            ("OBJ_SECRET_ACCESS_KEY", "none".into()),
            ("OBJ_REGION", "none".into()),
            ("S3_BUCKET_PIPELINES", "pipelines".into()),
            ("S3_BUCKET_LAKE", "lake".into()),
            ("S3_BUCKET_WAREHOUSE", "warehouse".into()),
            ("KV_URL", format!("sqlite://{}", db.display())),
        ] {
            env.insert(name.to_owned(), value);
        }
        let store: Arc<dyn ObjectStore> = Arc::new(FsStore::open_named(&objects, &BucketNames::default()).unwrap());
        let kv: Arc<dyn Kv> = Arc::new(SqliteKv::open(SqliteOptions::new(&db)).unwrap());
        Self { store, kv, redis: None, env, home, gate: None }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Makes the object store unavailable, also for the test itself. Returns the error code of the web service during
    /// the outage.
    pub fn break_store(&self) -> &'static str {
        match &self.gate {
            Some(gate) => {
                gate.closed.store(true, Ordering::SeqCst);
                "s3_error"
            }
            None => {
                for (name, away) in FOLDERS {
                    std::fs::rename(self.objects().join(name), self.objects().join(away)).unwrap();
                }
                "bucket_not_found"
            }
        }
    }

    /// Ends the outage of the object store.
    pub fn restore_store(&self) {
        match &self.gate {
            Some(gate) => gate.closed.store(false, Ordering::SeqCst),
            None => {
                for (name, away) in FOLDERS {
                    std::fs::rename(self.objects().join(away), self.objects().join(name)).unwrap();
                }
            }
        }
    }

    /// Makes the key-value store unavailable, sessions included; the web service responds `kv_unavailable` then.
    pub fn break_kv(&self) {
        match &self.redis {
            Some(redis) => redis.kill(),
            None => {
                std::fs::rename(self.db(), self.db().with_extension("away")).unwrap();
                // Prevents the creation of a new one in its place.
                std::fs::create_dir(self.db()).unwrap();
            }
        }
    }

    /// Ends the outage of the key-value store, without loss of data.
    pub fn restore_kv(&self) {
        match &self.redis {
            Some(redis) => redis.start_again(),
            None => {
                std::fs::remove_dir(self.db()).unwrap();
                std::fs::rename(self.db().with_extension("away"), self.db()).unwrap();
            }
        }
    }

    /// The number of objects read so far, by any process; for an S3 server only.
    pub fn objects_read(&self) -> u64 {
        self.gate.as_ref().expect("an S3 server").objects_read.load(Ordering::SeqCst)
    }

    fn objects(&self) -> PathBuf {
        self.home().join("objects")
    }

    fn db(&self) -> PathBuf {
        self.home().join("kv.db")
    }

    /// Every object of the pipelines and lake buckets with its bytes, to check that nothing changed.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let of = |bucket: Bucket| {
            let listed = list_all(&*self.store, bucket, "").unwrap();
            listed.into_iter().map(move |object| (format!("{bucket}:{}", object.key), (bucket, object.key)))
        };
        let found = [Bucket::Pipelines, Bucket::Lake].into_iter().flat_map(of);
        found.map(|(name, (bucket, key))| (name, self.read(bucket, &key).unwrap())).collect()
    }

    /// The environment of this site's processes.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// The hash of [`PASSWORD`] for its web services.
    pub fn password_hash(&self) -> &'static str {
        &PASSWORD_HASH
    }

    /// Sets a variable for processes started from now on.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Starts a worker, and waits until it is ready.
    pub fn worker(&self) -> Service {
        self.worker_with(&[])
    }

    pub fn worker_with(&self, more: &[(&str, &str)]) -> Service {
        let worker = self.spawn(more);
        worker.await_log(AT_WORK);
        worker
    }

    /// Starts a worker without waiting for it.
    pub fn spawn(&self, more: &[(&str, &str)]) -> Service {
        self.start("worker", more)
    }

    /// Starts a web service, and waits until it is ready. It finds no worker unless `SVC_WORKER_URL` is set.
    pub fn web(&self) -> Service {
        self.web_with(&[])
    }

    pub fn web_with(&self, more: &[(&str, &str)]) -> Service {
        let service = self.start("web", more);
        service.await_log(AT_WORK);
        service
    }

    /// A worker, and a web service that knows its address.
    pub fn worker_and_web(&self) -> (Service, Service) {
        let worker = self.worker();
        let web = self.web_with(&[("SVC_WORKER_URL", &format!("http://{}", worker.address()))]);
        (worker, web)
    }

    /// Like [`Site::worker`], in a process with this descriptor limit.
    pub fn worker_with_files(&self, files_max: u64) -> Service {
        let worker = self.start_as(limited(files_max), &["worker"], &[]);
        worker.await_log(AT_WORK);
        worker
    }

    pub fn start(&self, command: &str, more: &[(&str, &str)]) -> Service {
        self.start_as(lakemill(), &[command], more)
    }

    /// Starts a worker that ends once nothing is left to do: `--drain` or `--once`.
    pub fn one_shot(&self, option: &str, more: &[(&str, &str)]) -> Service {
        self.start_as(lakemill(), &["worker", option], more)
    }

    fn start_as(&self, mut program: Command, words: &[&str], more: &[(&str, &str)]) -> Service {
        let name = format!("{}-{}", words[0], uuid::Uuid::new_v4().simple());
        let log = self.home().join(format!("{name}.log"));
        // Files of a killed service are removed with the site.
        let temporary = self.home().join("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        let child = program
            .args(words)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"))
            .envs(&self.env)
            .env("TMPDIR", temporary)
            .env("SVC_SCRATCH_DIR", self.home().join("scratch"))
            .env("SVC_CACHE_DIR", self.home().join(format!("{name}-cache")))
            .env("SVC_ADMIN_PASSWORD_HASH", &*PASSWORD_HASH)
            .envs(more.iter().copied())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn_reaped()
            .unwrap();
        Service { child, log }
    }

    /// Creates a pipeline with one table `t`, changed by `change`, that runs only on request.
    pub fn pipeline(&self, pipeline: &str, change: &Value) {
        self.configure(pipeline, &json!({ "version": 1, "auto_run": false, "mappings": [mapping(change)] }));
    }

    /// Like [`Site::pipeline`], but it runs on new files.
    pub fn automatic_pipeline(&self, pipeline: &str) {
        self.configure(pipeline, &json!({ "version": 1, "mappings": [mapping(&json!({}))] }));
    }

    pub fn configure(&self, pipeline: &str, config: &Value) {
        let body = serde_json::to_vec_pretty(config).unwrap();
        self.store.put(Bucket::Pipelines, &config_key(&slug(pipeline)), &body, &WriteOptions::default()).unwrap();
    }

    /// Writes a file into the pipeline's folder in the lake.
    pub fn put(&self, pipeline: &str, name: &str, body: impl AsRef<[u8]>) {
        let key = format!("{}{name}", pipeline_prefix(&slug(pipeline)));
        self.store.put(Bucket::Lake, &key, body.as_ref(), &WriteOptions::default()).unwrap();
    }

    pub fn enqueue(&self, pipeline: &str) -> Job {
        self.enqueue_as(pipeline, false)
    }

    pub fn enqueue_as(&self, pipeline: &str, clean: bool) -> Job {
        let job = Job::queued(&JobMessage::new(slug(pipeline), clean, "manual", Utc::now()), 3);
        assert_eq!(self.kv.enqueue(&job).unwrap(), EnqueueOutcome::Queued);
        job
    }

    /// The terminal record of a job, if it has one.
    pub fn record(&self, job: &Job) -> Option<Job> {
        let bytes = self.read(Bucket::Pipelines, &job_record_key(&job.pipeline, job.job_id.as_str()))?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    /// Waits for the end of a job: its record, and its acknowledgement.
    #[track_caller]
    pub fn await_end(&self, job: &Job) -> Job {
        await_some("the job's end", || {
            self.record(job).filter(|_| {
                self.kv.active(&job.pipeline, 1_000).is_ok_and(|a| a.iter().all(|other| other.job_id != job.job_id))
            })
        })
    }

    /// The job in the queue.
    pub fn seen(&self, job: &Job) -> Option<Job> {
        self.kv.job(&job.pipeline, &job.job_id).unwrap()
    }

    pub fn read(&self, bucket: Bucket, key: &str) -> Option<Vec<u8>> {
        let mut reader = match self.store.get(bucket, key, None) {
            Ok(reader) => reader,
            Err(StoreError::NotFound { .. }) => return None,
            Err(error) => panic!("{error}"),
        };
        let mut bytes = Vec::new();
        reader.body.read_to_end(&mut bytes).unwrap();
        Some(bytes)
    }

    /// Every object of a pipeline in the warehouse, by its key relative to the pipeline.
    pub fn warehouse(&self, pipeline: &str) -> BTreeMap<String, Vec<u8>> {
        let prefix = pipeline_prefix(&slug(pipeline));
        let listed = list_all(&*self.store, Bucket::Warehouse, &prefix).unwrap();
        let read = |key: String| (key[prefix.len()..].to_owned(), self.read(Bucket::Warehouse, &key).unwrap());
        listed.into_iter().map(|object| read(object.key)).collect()
    }

    /// The terminal records of a pipeline.
    pub fn records(&self, pipeline: &str) -> Vec<Job> {
        let prefix = format!("{}jobs/", pipeline_prefix(&slug(pipeline)));
        let listed = list_all(&*self.store, Bucket::Pipelines, &prefix).unwrap();
        let keys = listed.into_iter().map(|object| object.key).filter(|key| key.ends_with(".json"));
        keys.map(|key| serde_json::from_slice(&self.read(Bucket::Pipelines, &key).unwrap()).unwrap()).collect()
    }
}

/// The program, started by a shell that sets this descriptor limit.
fn limited(files_max: u64) -> Command {
    let program = lakemill();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("ulimit -n {files_max} && exec \"$0\" \"$@\"")]).arg(program.get_program());
    shell.stdin(Stdio::null());
    shell
}

fn common() -> BTreeMap<String, String> {
    [
        ("SVC_WORKER_TOKEN", WORKER_TOKEN),
        ("SVC_WEBHOOK_SECRET", WEBHOOK_SECRET),
        ("SVC_BIND", "127.0.0.1"),
        ("PORT", "0"),
        ("SVC_LOG", "debug"),
        ("JOB_LOCK_TTL_MS", "5000"),
        ("HEARTBEAT_MS", "1000"),
        ("SVC_RECLAIM_IDLE_MS", "6000"),
        ("SVC_RUN_MEMORY_BYTES", "67108864"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

pub fn slug(text: &str) -> Slug {
    Slug::parse(text).unwrap()
}

pub fn job_id(text: &str) -> JobId {
    JobId::parse(text).unwrap()
}

/// Waits until `look` returns a value.
#[track_caller]
pub fn await_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + TEST_TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited {} s for {what}", TEST_TIMEOUT.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
pub fn await_that(what: &str, mut look: impl FnMut() -> bool) {
    await_some(what, || look().then_some(()));
}

/// Memory beyond its usual size that hostile input may take in a service, in bytes.
pub const HOSTILE_MEMORY_BYTES_MAX: u64 = 400 << 20;

/// A `lakemill worker` or `web`; killed when dropped.
pub struct Service {
    child: Child,
    log: PathBuf,
}

impl Service {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The largest memory that it had resident so far, in bytes, without its child processes.
    pub fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        peak_bytes(&status).expect("a process that runs")
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn has_logged(&self, part: &str) -> bool {
        self.log().contains(part)
    }

    #[track_caller]
    pub fn await_log(&self, part: &str) {
        let until = Instant::now() + TEST_TIMEOUT;
        while !self.has_logged(part) {
            assert!(Instant::now() < until, "waited for `{part}` in the log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its address, from its log.
    pub fn address(&self) -> String {
        let line = |log: &str| log.lines().find(|line| line.contains(AT_WORK)).map(str::to_owned);
        let line = await_some("its address", || line(&self.log()));
        let event: Value = serde_json::from_str(&line).unwrap();
        event["address"].as_str().unwrap().to_owned()
    }

    /// Sets the descriptor limit of the running process; `None`: this process's limit.
    pub fn limit_files(&self, files_max: Option<u64>) {
        let hard = getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit { current: files_max.or(hard), maximum: hard };
        prlimit(Some(self.id()), Resource::Nofile, limit).unwrap();
    }

    fn id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.id(), signal).unwrap();
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end: the exit status, or `None` if a signal ended it.
    #[track_caller]
    pub fn await_exit(&mut self) -> Option<i32> {
        let log = self.log.clone();
        let until = Instant::now() + TEST_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it didn't end:\n{}", std::fs::read_to_string(&log).unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Service {
    #[expect(clippy::print_stderr, reason = "a test that failed shows what its workers said")]
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- log of process {}:\n{}", self.child.id(), self.log());
        }
    }
}
