//! A run that can wait doesn't read a file that may still be being written.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use lakemill::adapters::fs::FsStore;
use lakemill::domain::job::{RunErrorCode, RunResult};
use lakemill::domain::limits::UNSETTLED_WAIT_MS;
use lakemill::domain::pipeline::Pipeline;
use lakemill::engine::run::RunFailure;
use lakemill::engine::validate::validate;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, LocalStore as _, WriteOptions, list_all};
use lakemill::runtime::Clock;

use crate::support::faulty_store::FaultyStore;
use crate::support::lake::{MIB, RunParams, SQL, in_memory_folder, run_on};

const WAIT: TimeDelta = TimeDelta::milliseconds(UNSETTLED_WAIT_MS as i64);
const TICK: TimeDelta = TimeDelta::milliseconds(1);

/// A clock that advances only when it is set.
#[derive(Debug)]
struct SetClock(Mutex<(DateTime<Utc>, Duration)>);

impl SetClock {
    fn set(&self, now: DateTime<Utc>) {
        self.0.lock().unwrap().0 = now;
    }

    fn pass(&self, time: TimeDelta) {
        let mut now = self.0.lock().unwrap();
        *now = (now.0 + time, now.1 + time.to_std().unwrap());
    }
}

impl Clock for SetClock {
    fn now(&self) -> DateTime<Utc> {
        self.0.lock().unwrap().0
    }

    fn since_boot(&self) -> Duration {
        self.0.lock().unwrap().1
    }
}

struct Fixture {
    root: tempfile::TempDir,
    clock: Arc<SetClock>,
    store: Arc<FsStore>,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let clock = Arc::new(SetClock(Mutex::new((DateTime::UNIX_EPOCH, Duration::from_secs(1_000)))));
        let store = Arc::new(FsStore::create(root.path()).unwrap().with_clock(clock.clone()));
        Self { root, clock, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("lake/pipelines/x").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// The file's change time by the kernel.
    fn changed(&self, name: &str) -> DateTime<Utc> {
        let metadata = fs::metadata(self.path(name)).unwrap();
        DateTime::from_timestamp(metadata.ctime(), metadata.ctime_nsec() as u32).unwrap()
    }

    fn is_being_written(&self, name: &str) -> bool {
        self.store.is_being_written(Bucket::Lake, &format!("pipelines/x/{name}")).unwrap()
    }

    fn append(&self, name: &str) {
        let mut file = File::options().append(true).open(self.path(name)).unwrap();
        file.write_all(b"5\n").unwrap();
    }
}

#[test]
fn file_is_settled_once_unchanged_for_the_wait() {
    let fixture = Fixture::new();
    fixture.write("a.csv", "n\n1\n");
    for (age, unsettled) in [(TimeDelta::zero(), true), (WAIT - TICK, true), (WAIT, false), (WAIT * 100, false)] {
        fixture.clock.set(fixture.changed("a.csv") + age);
        assert_eq!(fixture.is_being_written("a.csv"), unsettled, "{age}");
    }
    assert!(!fixture.is_being_written("none.csv"), "what isn't there is not being written");
}

#[test]
fn forged_modification_times_are_ignored() {
    let fixture = Fixture::new();
    fixture.write("a.csv", "n\n1\n");
    let hour = Duration::from_secs(3_600);
    for modified in [std::time::SystemTime::now() - 9 * hour, std::time::SystemTime::now() + 9 * hour] {
        File::options().append(true).open(fixture.path("a.csv")).unwrap().set_modified(modified).unwrap();
        fixture.clock.set(fixture.changed("a.csv") + TICK);
        assert!(fixture.is_being_written("a.csv"));
        fixture.clock.pass(WAIT);
        assert!(!fixture.is_being_written("a.csv"));
    }
}

#[test]
fn stored_file_is_settled_until_it_is_modified() {
    let fixture = Fixture::new();
    fixture.store.put(Bucket::Lake, "pipelines/x/a.csv", b"n\n1\n", &WriteOptions::default()).unwrap();
    fixture.clock.set(fixture.changed("a.csv"));
    assert!(!fixture.is_being_written("a.csv"));
    fixture.append("a.csv");
    fixture.clock.set(fixture.changed("a.csv"));
    assert!(fixture.is_being_written("a.csv"));
}

#[test]
fn file_from_the_future_is_deferred_only_by_the_wait() {
    let fixture = Fixture::new();
    fixture.write("a.csv", "n\n1\n");
    fixture.clock.set(fixture.changed("a.csv") - TimeDelta::hours(9));
    assert!(fixture.is_being_written("a.csv"));
    fixture.clock.pass(WAIT - TICK);
    assert!(fixture.is_being_written("a.csv"));
    fixture.clock.pass(TICK);
    assert!(!fixture.is_being_written("a.csv"));
    // It changes again.
    fixture.append("a.csv");
    assert!(fixture.is_being_written("a.csv"));
    fixture.clock.pass(WAIT);
    assert!(!fixture.is_being_written("a.csv"));
}

/// Two tables, of `a*.csv` and of `b*.csv`.
fn two_tables() -> Pipeline {
    let table = |name: &str| {
        format!(
            r#"{{ "table": "{name}", "files": ["{name}*.csv"], "columns": [ {{ "name": "n", "type": "int64" }} ] }}"#
        )
    };
    let text = format!(r#"{{ "version": 1, "mappings": [ {}, {} ] }}"#, table("a"), table("b"));
    validate(&text, &*SQL).unwrap()
}

/// Runs on the fixture's store; returns the writes, and the number of reads of the lake.
fn run(fixture: &Fixture, how: RunParams) -> (Result<RunResult, RunFailure>, Vec<String>, u64) {
    let store = FaultyStore::new(fixture.store.clone());
    let scratch = in_memory_folder();
    let (result, _) = run_on(&store, &two_tables(), &*fixture.clock, scratch.path(), how);
    (result, store.written(), store.counts(Bucket::Lake).gets)
}

fn how() -> RunParams {
    RunParams::new(1, 64 * MIB)
}

#[test]
fn automatic_run_refuses_unsettled_source_before_reading() {
    let fixture = Fixture::new();
    fixture.write("a.csv", "n\n1\n");
    fixture.write("b.csv", "n\n2\n");
    fixture.clock.set(fixture.changed("b.csv") + WAIT - TICK);
    let (result, written, read) = run(&fixture, how().settled());
    let failure = result.unwrap_err();
    assert_eq!(failure.error.code, RunErrorCode::SourceBeingWritten);
    assert!(failure.error.code.is_transient() && !failure.partially_published);
    assert_eq!((written, read), (vec![], 0));

    // `a.csv` is settled; the other table's source makes the run wait before `a.csv` is read.
    let mut rows = 1;
    while fixture.changed("b.csv") <= fixture.changed("a.csv") {
        fixture.append("b.csv");
        rows += 1;
    }
    fixture.clock.set(fixture.changed("a.csv") + WAIT);
    let (result, written, read) = run(&fixture, how().settled());
    let error = result.unwrap_err().error;
    assert_eq!((error.code, error.path.as_deref()), (RunErrorCode::SourceBeingWritten, Some("b.csv")));
    assert!(error.message.contains("`b.csv`") && error.detail.unwrap().contains("rename"));
    assert_eq!((written, read), (vec![], 0));

    fixture.clock.set(fixture.changed("b.csv") + WAIT);
    let (result, _, _) = run(&fixture, how().settled());
    assert_eq!(result.unwrap().tables["b"].rows_written, rows);
}

#[test]
fn manual_run_reads_unsettled_sources() {
    let fixture = Fixture::new();
    fixture.write("a.csv", "n\n1\n");
    fixture.clock.set(fixture.changed("a.csv"));
    let (result, _, _) = run(&fixture, how());
    assert_eq!(result.unwrap().tables["a"].rows_written, 1);
}

#[test]
fn unread_sources_may_be_unsettled() {
    let fixture = Fixture::new();
    fixture.write("a.csv", "n\n1\n");
    fixture.write("other.txt", "being written");
    fixture.clock.set(fixture.changed("a.csv") + WAIT);
    run(&fixture, how().settled()).0.unwrap();
    fixture.clock.set(fixture.changed("a.csv"));
    assert!(fixture.is_being_written("a.csv") && fixture.is_being_written("other.txt"));
    let (result, _, read) = run(&fixture, how().settled());
    assert_eq!((result.unwrap().tables["a"].sources_read, read), (0, 0));
}

#[test]
fn unchanged_source_is_checked_before_it_is_read_again() {
    let fixture = Fixture::new();
    fixture.write("a1.csv", "n\n1\n");
    fixture.write("a2.csv", "n\n2\n");
    fixture.clock.set(fixture.changed("a2.csv") + WAIT);
    run(&fixture, how().settled()).0.unwrap();
    // Added by a put, which is settled at once. The file that it would be appended to is lost, so its other sources are
    // read as well.
    let stored = list_all(&*fixture.store, Bucket::Warehouse, "pipelines/x/a/").unwrap();
    let stored: Vec<String> = stored.into_iter().map(|object| object.key).collect();
    fixture.store.delete(Bucket::Warehouse, &stored, &WriteOptions::default()).unwrap();
    fixture.store.put(Bucket::Lake, "pipelines/x/a3.csv", b"n\n3\n", &WriteOptions::default()).unwrap();
    fixture.clock.set(fixture.changed("a2.csv"));
    let (result, written, _) = run(&fixture, how().settled());
    assert_eq!(result.unwrap_err().error.code, RunErrorCode::SourceBeingWritten);
    assert_eq!(written, [""; 0]);
    run(&fixture, how()).0.unwrap();
}

/// A log line alone would go unnoticed.
#[test]
fn files_with_invalid_keys_are_reported_in_the_result() {
    let fixture = Fixture::new();
    fixture.write("in/a.csv", "n\n1\n");
    fs::write(fixture.path("in").join(std::ffi::OsStr::from_bytes(b"caf\xe9.csv")), "n\n3\n").unwrap();
    let text = r#"{ "version": 1, "mappings": [ { "table": "t", "files": ["in/*.csv"],
        "columns": [{ "name": "n", "type": "int64" }] } ] }"#;
    let scratch = in_memory_folder();
    let pipeline = validate(text, &*SQL).unwrap();
    let (result, _) = run_on(&*fixture.store, &pipeline, &*fixture.clock, scratch.path(), how());
    let result = result.unwrap();
    assert_eq!(result.tables["t"].rows_written, 1);
    assert_eq!(result.skipped_files, ["in/caf\u{fffd}.csv"]);
}
