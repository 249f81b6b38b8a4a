//! Tests of the SQLite key-value store beyond the contract: file mode, version and location, processes killed in the
//! middle of a step, and a full disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lakemill::adapters::sqlite::{SqliteKv, SqliteOptions};
use lakemill::domain::job::{AttemptCost, ChangedKeys, Job, JobId, JobMessage, WaitReason};
use lakemill::domain::limits::DEAD_ENTRIES_MAX;
use lakemill::ports::Kv;
use lakemill::ports::jobs::{
    ClaimLimits, HeartbeatReply, JobQueue as _, JobRegistry as _, PipelineLocks as _, Requeue, StartOutcome,
};
use lakemill::ports::kv::{Diagnose as _, KeyLocks as _, KvError};
use lakemill::ports::schedule::{Cursor, Schedule as _};
use lakemill::ports::sessions::Sessions as _;

use crate::kv_contract::sqlite::SqliteBackend;
use crate::kv_contract::{
    Backend as _, Fixture, IDLE, IMMEDIATELY, TTL, completed, message, running, seconds, slug, start,
};
use crate::support::children::Reaped as _;
use crate::support::lake::Rng;

/// Environment variables for a process of the tests: a role, and a folder.
const ROLE: &str = "LAKEMILL_TEST_SQLITE";
const DEADLINE: Duration = Duration::from_secs(60);

/// A child that is killed with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this test binary again, in a role.
fn command(role: &str, folder: &Path) -> Command {
    role_of(Command::new(std::env::current_exe().unwrap()), role, folder)
}

fn role_of(mut command: Command, role: &str, folder: &Path) -> Command {
    command.args(["--exact", "sqlite_kv::second_process", "--include-ignored", "--nocapture"]);
    command.env(ROLE, format!("{role} {}", folder.display())).stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

#[test]
#[ignore = "not a test by itself: the tests start it as a process"]
fn second_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, folder) = role.split_once(' ').unwrap();
    let folder = Path::new(folder);
    match role {
        "write_until_killed" => write_until_killed(folder),
        "consume" => consume(folder),
        "read-only" => open_read_only(folder),
        "fill" => fill(folder),
        "lock" => hold_the_lock(folder),
        other => panic!("no role `{other}`"),
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("state/kv.db")
}

fn open(folder: &Path) -> SqliteKv {
    SqliteKv::open(SqliteOptions::new(file(folder))).unwrap()
}

fn queued(pipeline: &str) -> Job {
    Job::queued(&JobMessage::new(slug(pipeline), false, "manual", chrono::Utc::now()), 3)
}

/// Appends a line in one write.
fn log(folder: &Path, name: &str, line: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(folder.join(name)).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn lines(folder: &Path, name: &str) -> Vec<String> {
    std::fs::read_to_string(folder.join(name)).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn wait_for(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !reached() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every kind of step from four threads, until it is killed.
fn write_until_killed(folder: &Path) {
    let kv = Arc::new(open(folder));
    std::thread::scope(|scope| {
        for n in 0..4u64 {
            let kv = Arc::clone(&kv);
            scope.spawn(move || {
                let mut rng = Rng::new(n + 4 * u64::from(std::process::id()));
                loop {
                    write_once(&kv, folder, &format!("{}-{n}", std::process::id()), &mut rng);
                }
            });
        }
    });
}

fn write_once(kv: &SqliteKv, folder: &Path, consumer: &str, rng: &mut Rng) {
    let pipeline = format!("p{}", rng.below(3));
    match rng.below(6) {
        0 | 1 => {
            let job = queued(&pipeline);
            kv.enqueue(&job).unwrap();
            log(folder, "reported", &format!("{pipeline} {}", job.job_id));
        }
        2 => {
            kv.extend_windows(&[slug(&pipeline)]).unwrap();
            for due in kv.due_windows(10).unwrap() {
                let job = queued(due.as_str());
                if kv.fire_window(&job).unwrap() {
                    log(folder, "reported", &format!("{due} {}", job.job_id));
                }
            }
        }
        3 => drop(kv.release_due(10).unwrap()),
        _ => {
            for entry in kv.claim(consumer, ClaimLimits::any(2), IMMEDIATELY).unwrap() {
                let StartOutcome::Running(start) = start(kv, consumer, &entry, TTL) else { continue };
                let lease = start.lease;
                let job = kv.job(&lease.pipeline, &lease.job_id).unwrap().unwrap();
                assert!(matches!(kv.heartbeat(&lease, TTL).unwrap(), HeartbeatReply::Held { .. }));
                kv.update_record(&lease, &job).unwrap();
                if rng.below(3) == 0 {
                    let wait =
                        Requeue { job: &job, delay: IMMEDIATELY, reason: WaitReason::Retry, cost: AttemptCost::One };
                    kv.requeue(&lease, &wait).unwrap();
                } else {
                    kv.finish(&lease, &completed(&job, chrono::Utc::now())).unwrap();
                }
            }
        }
    }
}

/// Invariants of the file.
fn is_sound(backend: &SqliteBackend, kv: &dyn Kv) {
    let report = kv.report().unwrap();
    assert!(report.findings.iter().all(|finding| !finding.fatal), "{report:?}");
    let conn = backend.raw();
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let nowhere =
        "SELECT count(*) FROM jobs WHERE due_ms IS NULL AND NOT EXISTS (SELECT 1 FROM stream WHERE id = entry)";
    assert_eq!(count(nowhere), 0, "jobs that are neither in the stream nor waiting");
    let twice = "SELECT count(*) FROM jobs j JOIN ended e ON e.job_id = j.job_id";
    assert_eq!(count(twice), 0, "jobs that are active and ended");
    let unowned = "SELECT count(*) FROM stream WHERE id NOT IN (SELECT entry FROM jobs WHERE entry IS NOT NULL)";
    assert_eq!(count(unowned), 0, "entries without a job");
}

#[test]
fn killed_process_leaves_an_intact_file() {
    let folder = tempfile::tempdir().unwrap();
    let backend = SqliteBackend::at(&file(folder.path()));
    let f = Fixture::new(backend);
    let backend = SqliteBackend::at(&file(folder.path()));
    let mut rng = Rng::new(5);
    for round in 0..10 {
        let reported = lines(folder.path(), "reported").len();
        // Two at once, so that one continues while the other is killed.
        let mut children: Vec<Process> =
            (0..2).map(|_| Process(command("write_until_killed", folder.path()).spawn_reaped().unwrap())).collect();
        wait_for("both storms rage", || lines(folder.path(), "reported").len() >= reported + 20);
        for child in &mut children {
            std::thread::sleep(Duration::from_micros(rng.below(60_000)));
            assert!(child.0.try_wait().unwrap().is_none(), "round {round}: it died by itself");
            child.0.kill().unwrap();
            is_sound(&backend, &*f.kv);
        }
        drop(children);
        is_sound(&backend, &*f.kv);
    }
    // Every accepted job is active, or has just ended.
    let reported: BTreeSet<String> = lines(folder.path(), "reported").into_iter().collect();
    for line in &reported {
        let (pipeline, id) = line.split_once(' ').unwrap();
        let job = f.kv.job(&slug(pipeline), &JobId::parse(id).unwrap()).unwrap();
        assert!(job.is_some(), "`{line}` was lost, of {}", reported.len());
    }
    // And all active jobs end.
    for _ in 0..1_000 {
        f.advance(IDLE + seconds(5));
        f.kv.release_due(1_000).unwrap();
        let mut entries = f.kv.claim("last", ClaimLimits::any(1_000), IMMEDIATELY).unwrap();
        entries.extend(f.kv.reclaim("last", 1_000, IDLE).unwrap());
        for entry in entries {
            match f.start("last", &entry) {
                StartOutcome::Running(start) => f.end(&start.lease),
                StartOutcome::Deferred { .. } => {}
                other @ (StartOutcome::RunningElsewhere
                | StartOutcome::NotClaimed
                | StartOutcome::Dropped
                | StartOutcome::IdTaken) => {
                    panic!("{other:?}")
                }
            }
        }
        if f.places() == (0, 0, 0) {
            assert_eq!(f.kv.requeue_lost(&Cursor::default()).unwrap(), (0, None));
            return;
        }
    }
    panic!("jobs that never end: {:?}", f.places());
}

fn consume(folder: &Path) {
    let kv = open(folder);
    let consumer = std::process::id().to_string();
    log(folder, "ready", &consumer);
    loop {
        let entries = kv.claim(&consumer, ClaimLimits::any(1), Duration::from_millis(500)).unwrap();
        if entries.is_empty() && folder.join("enough").exists() {
            return;
        }
        for entry in entries {
            let start = running(start(&kv, &consumer, &entry, TTL));
            log(folder, &format!("done-{consumer}"), start.lease.job_id.as_str());
            let job = kv.job(&start.lease.pipeline, &start.lease.job_id).unwrap().unwrap();
            kv.finish(&start.lease, &completed(&job, chrono::Utc::now())).unwrap();
        }
    }
}

#[test]
fn processes_share_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(folder.path());
    let mut children: Vec<Process> =
        (0..3).map(|_| Process(command("consume", folder.path()).spawn_reaped().unwrap())).collect();
    wait_for("all are there", || lines(folder.path(), "ready").len() == 3);
    let mut expected = BTreeSet::new();
    for n in 0..150 {
        let job = queued(&format!("p{n}"));
        expected.insert(job.job_id.to_string());
        kv.enqueue(&job).unwrap();
    }
    wait_for("all jobs ended", || kv.counts().unwrap().stream == 0);
    log(folder.path(), "enough", "");
    for child in &mut children {
        assert!(child.0.wait().unwrap().success());
    }
    let mut done = BTreeMap::new();
    for consumer in lines(folder.path(), "ready") {
        for id in lines(folder.path(), &format!("done-{consumer}")) {
            *done.entry(id).or_insert(0) += 1;
        }
    }
    assert!(done.values().all(|times| *times == 1), "each once");
    assert_eq!(done.into_keys().collect::<BTreeSet<_>>(), expected);
}

fn hold_the_lock(folder: &Path) {
    let conn = rusqlite::Connection::open(file(folder)).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE; DELETE FROM dead").unwrap();
    log(folder, "locked", "");
    loop {
        std::thread::park();
    }
}

#[test]
fn locked_file_times_out_writes_but_not_reads() {
    let folder = tempfile::tempdir().unwrap();
    let kv = open(folder.path());
    kv.enqueue(&queued("trips")).unwrap();
    let child = Process(command("lock", folder.path()).spawn_reaped().unwrap());
    wait_for("the lock is held", || folder.path().join("locked").exists());
    assert_eq!(kv.counts().unwrap().stream, 1);
    kv.ping().unwrap();
    let error = kv.enqueue(&queued("trips")).unwrap_err();
    assert!(
        matches!(&error, KvError::Unavailable { operation: "enqueue", source }
        if source.kind() == std::io::ErrorKind::TimedOut),
        "{error}"
    );
    assert!(error.to_string().contains("another process kept the file locked for 5 s"), "{error}");
    drop(child);
    kv.enqueue(&queued("trips")).unwrap();
    assert_eq!(kv.counts().unwrap().stream, 2);
}

#[test]
fn file_and_folder_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/kv.db");
    let kv = SqliteKv::open(SqliteOptions::new(&path)).unwrap();
    kv.enqueue(&queued("trips")).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for name in ["kv.db", "kv.db-wal", "kv.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    assert_eq!((mode(path.parent().unwrap()), mode(&folder.path().join("a"))), (0o700, 0o700));
    assert_eq!(kv.report().unwrap().findings, []);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let findings = kv.report().unwrap().findings;
    assert!(findings.len() == 1 && findings[0].problem.contains("644") && !findings[0].fatal, "{findings:?}");
}

#[test]
fn data_survives_the_last_close() {
    let backend = SqliteBackend::new();
    let job = queued("trips");
    let kv = backend.sqlite();
    kv.enqueue(&job).unwrap();
    kv.mark_initialized().unwrap();
    let hold = kv.lock_pipeline(&slug("other"), TTL, 0).unwrap().unwrap();
    drop(kv);
    let kv = backend.sqlite();
    assert!(kv.is_initialized().unwrap());
    assert_eq!(kv.lock_pipeline(&slug("other"), TTL, 0).unwrap(), None);
    kv.release(&hold).unwrap();
    let entry = kv.claim("a", ClaimLimits::any(1), IMMEDIATELY).unwrap().remove(0);
    assert_eq!(message(&entry).job_id, job.job_id);
}

/// The error of opening the file.
fn refusal(path: &Path) -> KvError {
    match SqliteKv::open(SqliteOptions::new(path)) {
        Ok(_) => panic!("`{}` was opened", path.display()),
        Err(error) => error,
    }
}

#[test]
fn windows_of_version_3_check_all_keys() {
    let backend = SqliteBackend::new();
    drop(backend.sqlite().extend_windows(&[slug("trips")]).unwrap());
    backend
        .raw()
        .execute_batch(
            "DROP TABLE changed_keys; DROP TABLE change_sets; DROP TABLE notifications; DROP TABLE incidents;
             DROP TABLE notification_targets; DROP TABLE ended_jobs; DROP TABLE job_index; DROP TABLE unindexed;
             DROP TABLE pauses; DROP TABLE run_requests; DROP TRIGGER stream_entry_added; DROP INDEX stream_new;
             ALTER TABLE stream DROP COLUMN automatic; CREATE INDEX stream_new ON stream (id) WHERE consumer IS NULL;
             ALTER TABLE jobs ADD COLUMN deferred_ms INTEGER;
             PRAGMA user_version = 3",
        )
        .unwrap();
    let kv = backend.sqlite();
    kv.record_changes(&[(slug("trips"), ["a.csv"].into_iter().collect())]).unwrap();
    backend.clock.advance(Duration::from_secs(7));
    let job = queued("trips");
    assert!(kv.fire_window(&job).unwrap());
    assert_eq!(kv.changed_keys(&job.job_id).unwrap(), ChangedKeys::All);
}

#[test]
fn newer_file_is_rejected_unchanged() {
    let backend = SqliteBackend::new();
    let kv = backend.sqlite();
    kv.enqueue(&queued("trips")).unwrap();
    let own: i64 = backend.raw().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    backend.raw().pragma_update(None, "user_version", 99).unwrap();
    drop(kv);
    let error = refusal(&backend.path());
    assert!(matches!(error, KvError::Refused { operation: "open", .. }), "{error}");
    assert!(error.to_string().contains("version 99") && error.to_string().contains("newer program"), "{error}");
    backend.raw().pragma_update(None, "user_version", own).unwrap();
    assert_eq!(backend.sqlite().counts().unwrap().stream, 1);
}

#[test]
fn foreign_files_are_rejected_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (7)")
        .unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "Dear diary, ".repeat(1_000)).unwrap();
    for path in [&foreign, &text] {
        let before = std::fs::read(path).unwrap();
        let error = refusal(path);
        assert!(matches!(error, KvError::Malformed { operation: "open", .. }), "{error}");
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
    let error = refusal(folder.path());
    assert!(matches!(error, KvError::Unavailable { .. }), "a folder: {error}");
    let error = refusal(&text.join("kv.db"));
    assert!(matches!(error, KvError::Unavailable { .. }), "in a file: {error}");
}

#[test]
fn damaged_file_is_reported() {
    let backend = SqliteBackend::new();
    let kv = backend.sqlite();
    for n in 0..300 {
        kv.try_lock(&format!("{n}{}", "x".repeat(300)), "t", TTL).unwrap();
        kv.enqueue(&queued("trips")).unwrap();
    }
    drop(kv);
    let mut bytes = std::fs::read(backend.path()).unwrap();
    assert!(bytes.len() > 100_000, "the log was carried over into the file");
    // All but the header's page and the schema's.
    for byte in bytes.iter_mut().skip(4_096 * 2) {
        *byte ^= 0x5a;
    }
    std::fs::write(backend.path(), bytes).unwrap();
    let reported = SqliteKv::open(SqliteOptions::new(backend.path())).and_then(|kv| kv.active(&slug("trips"), 1_000));
    let error = reported.unwrap_err();
    assert!(matches!(error, KvError::Malformed { .. }), "{error}");
    assert!(error.to_string().contains("intact SQLite file; stop every process"), "{error}");
}

fn open_read_only(folder: &Path) {
    let error = refusal(&file(folder));
    assert!(matches!(error, KvError::Refused { operation: "open", .. }), "{error}");
    assert!(error.to_string().contains("can't be written: give the service's user"), "{error}");
}

#[test]
fn read_only_file_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    std::fs::set_permissions(file(folder.path()), PermissionsExt::from_mode(0o400)).unwrap();
    let mut child = if is_superuser() {
        // A superuser can write nevertheless, unless it drops the capability.
        let mut setpriv = Command::new("setpriv");
        setpriv.arg("--bounding-set=-dac_override").arg(std::env::current_exe().unwrap());
        role_of(setpriv, "read-only", folder.path())
    } else {
        command("read-only", folder.path())
    };
    // Where that isn't possible, nothing is tested.
    let Ok(mut child) = child.spawn_reaped() else { return };
    assert!(child.wait().unwrap().success());
}

fn is_superuser() -> bool {
    rustix::process::geteuid().is_root()
}

/// Until the disk is full; then frees space, and continues.
fn fill(folder: &Path) {
    let kv = open(folder);
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let mut jobs = Vec::new();
    let error = loop {
        let mut job = queued("trips");
        job.prefix = "x".repeat(1_000);
        match kv.enqueue(&job) {
            Ok(_) => jobs.push(job),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, KvError::Refused { operation: "enqueue", .. }), "{error}");
    assert!(error.to_string().contains("no space left") && error.to_string().contains("free some space"), "{error}");
    assert_eq!(kv.counts().unwrap().stream, jobs.len() as u64, "what was refused did not take place");
    assert!(kv.report().unwrap().findings.iter().any(|f| f.problem.contains("MiB are free") && !f.fatal));
    std::fs::remove_file(ballast).unwrap();
    kv.enqueue(&queued("trips")).unwrap();
    assert_eq!(kv.counts().unwrap().stream, jobs.len() as u64 + 1);
    log(folder, "filled", "");
}

#[test]
fn full_disk_rejects_operations_without_data_loss() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let seen = folder.path().join("seen");
    let script = r#"mount -t tmpfs -o size=4m tmpfs "$DISK" || exit 77; "$@" || exit 1; cp "$DISK/filled" "$SEEN""#;
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
    unshare.arg(std::env::current_exe().unwrap()).env("DISK", &disk).env("SEEN", &seen);
    // Mounting may not be permitted.
    let Ok(mut child) = role_of(unshare, "fill", &disk).spawn_reaped() else { return };
    let status = child.wait().unwrap();
    if status.code() == Some(77) || !status.success() && !is_superuser() {
        return;
    }
    assert!(status.success() && seen.exists(), "{status}");
}

#[test]
fn dead_letters_are_bounded() {
    let backend = SqliteBackend::new();
    let kv = backend.sqlite();
    backend
        .raw()
        .execute_batch(&format!(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {DEAD_ENTRIES_MAX})
             INSERT INTO dead (why, fields, received_ms, buried_ms) SELECT 'old ' || n, '[]', 0, 0 FROM n"
        ))
        .unwrap();
    for n in 0..3 {
        backend.add_raw(&[(b"n", b"x")]);
        let entry = kv.claim("a", ClaimLimits::any(1), IMMEDIATELY).unwrap().remove(0);
        kv.dead_letter(&entry, &format!("new {n}")).unwrap();
    }
    let dead = backend.dead();
    assert_eq!((dead.len(), kv.counts().unwrap().dead_letters), (DEAD_ENTRIES_MAX, DEAD_ENTRIES_MAX as u64));
    assert!(dead[0].starts_with("old 4 ") && dead[DEAD_ENTRIES_MAX - 1].starts_with("new 2"), "{}", dead[0]);
}

#[test]
fn clock_set_back_extends_no_ttl_and_lowers_no_fence() {
    let backend = SqliteBackend::new();
    let clock = Arc::clone(&backend.clock);
    let f = Fixture::new(backend);
    let (_, first) = f.run("a", "trips");
    f.kv.open("aa", seconds(3_600), seconds(7_200)).unwrap();
    clock.set_back(seconds(86_400));
    assert!(matches!(f.kv.heartbeat(&first.lease, TTL).unwrap(), HeartbeatReply::Held { .. }), "it is held as before");
    f.advance(TTL + seconds(1));
    f.is_lost(&first.lease);
    assert!(f.open().lock_pipeline(&slug("trips"), TTL, 0).unwrap().unwrap().fence > first.lease.fence);
    f.advance(seconds(3_600));
    assert_eq!(f.kv.touch("aa", seconds(3_600)).unwrap(), None);
    let findings = f.kv.report().unwrap().findings;
    assert!(findings.iter().any(|f| f.problem.contains("clock is 86") && !f.fatal), "{findings:?}");
    f.run("a", "other");
    clock.set_back(seconds(3_600));
    f.is_lost(&first.lease);
}

#[test]
fn heartbeat_does_not_wait_for_a_claim() {
    let f = Fixture::new(SqliteBackend::new());
    let (_, start) = f.run("a", "trips");
    std::thread::scope(|scope| {
        let claim = scope.spawn(|| f.kv.claim("a", ClaimLimits::any(1), seconds(5)).unwrap());
        for _ in 0..20 {
            assert_eq!(f.kv.heartbeat(&start.lease, TTL).unwrap(), HeartbeatReply::Held { cancelled: false });
        }
        assert!(!claim.is_finished(), "all of them went by while the claim waits");
        f.enqueue("other");
        assert_eq!(claim.join().unwrap().len(), 1);
    });
}

#[test]
fn unreadable_entry_is_claimed_without_fields() {
    let backend = SqliteBackend::new();
    let kv = backend.sqlite();
    backend.raw().execute("INSERT INTO stream (fields, received_ms) VALUES ('{broken', 5)", []).unwrap();
    kv.enqueue(&queued("trips")).unwrap();
    let entries = kv.claim("a", ClaimLimits::any(10), IMMEDIATELY).unwrap();
    assert_eq!((entries.len(), entries[0].fields.len()), (2, 0));
    kv.dead_letter(&entries[0], "it has no job id").unwrap();
}

#[test]
fn invalid_record_is_malformed() {
    let f = SqliteBackend::new();
    let kv = f.sqlite();
    let job = queued("trips");
    kv.enqueue(&job).unwrap();
    f.raw().execute("UPDATE jobs SET live = '{\"job_id\": 7}'", []).unwrap();
    let error = kv.job(&job.pipeline, &job.job_id).unwrap_err();
    assert!(
        matches!(&error, KvError::Malformed { operation: "job", found, .. } if found.contains("\"job_id\": 7")),
        "{error}"
    );
}

#[test]
fn touching_a_recently_touched_session_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kv.db");
    let kv = SqliteKv::open(SqliteOptions::new(&file)).unwrap();
    let (idle, max) = (Duration::from_secs(7_200), Duration::from_secs(86_400));
    let opened = kv.open("aa", idle, max).unwrap();
    let wal = || std::fs::read(folder.path().join("kv.db-wal")).unwrap();
    let before = wal();
    for _ in 0..3 {
        assert_eq!(kv.touch("aa", idle).unwrap(), Some(opened.clone()));
    }
    assert_eq!(wal(), before);
    // With a longer TTL it is written.
    assert_eq!(kv.touch("aa", 2 * idle).unwrap(), Some(opened));
    assert_ne!(wal(), before);
}
