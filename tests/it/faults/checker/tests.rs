//! The checker finds each kind of violation, and none in a correct history.

use chrono::Utc;
use lakemill::domain::job::{Job, JobMessage, RunResult};
use lakemill::domain::name::Slug;
use lakemill::domain::table_log::entries::SourceEntry;
use lakemill::domain::table_log::root::{MANIFEST_VERSION, Root, Totals};
use lakemill::domain::table_schema::StoredSchema;

use super::{BuiltTables, Found, History, Violation, Written, violations};
use crate::support::manifests::Manifest;

fn job(attempt: u32) -> Job {
    let message = JobMessage::new(Slug::parse("p").unwrap(), false, "manual", Utc::now());
    Job::queued(&message, 3).started("w", 7, attempt, Utc::now())
}

fn root(fence: u64) -> Root {
    Root {
        version: MANIFEST_VERSION,
        table: "t".into(),
        sequence: 1,
        fence,
        job_id: "j".into(),
        committed_at: String::new(),
        fingerprint: String::new(),
        layout: String::new(),
        schema: StoredSchema { mapping: String::new(), globs: None, variants: String::new(), columns: vec![] },
        totals: Totals::default(),
        sources: vec![],
        groups: vec![],
        members: vec![],
        rejects: vec![],
        extra_columns: Default::default(),
        is_foreign: false,
        restored: None,
        rows_added_at: None,
        retained: vec![],
        delta: None,
        iceberg: None,
    }
}

fn manifest(fence: u64) -> Manifest {
    let source = SourceEntry {
        etag: None,
        size: 1,
        sha256: String::new(),
        read_at: String::new(),
        text_bytes: 1,
        rows_read: 5,
        rows_written: 4,
        rows_rejected: 1,
        rows_filtered: 0,
        partitions: [(String::new(), 4)].into(),
        variant: None,
        archived: false,
        extra_columns: vec![],
    };
    Manifest {
        root: root(fence),
        sources: [("in/a.csv".into(), source)].into(),
        groups: Default::default(),
        members: Default::default(),
        rejects: Default::default(),
    }
}

fn commit(fence: u64) -> Written {
    Written::Manifest { table: "p/t".into(), fence }
}

/// A job that completed correctly.
fn completed_job() -> (History, Found) {
    let id = "j".to_owned();
    let history = History {
        attempts_max: 3,
        accepted: [id.clone()].into(),
        written: vec![commit(7), commit(7), Written::Record { job: id.clone() }],
        ..History::default()
    };
    let objects = [("k".to_owned(), "hash".to_owned())];
    let made = BuiltTables {
        unreadable: Vec::new(),
        manifests: [("p/t".to_owned(), manifest(7))].into(),
        intents: vec![],
        objects: objects.clone().into(),
        expected: objects.into(),
        lake: [("in/a.csv".to_owned(), 5)].into(),
    };
    let record = job(1).completed(RunResult::default(), Utc::now());
    let found = Found { records: [(id, record)].into(), made: [("p".to_owned(), made)].into(), ..Found::default() };
    (history, found)
}

#[track_caller]
fn check(change: impl FnOnce(&mut History, &mut Found)) -> Vec<Violation> {
    let (mut history, mut found) = completed_job();
    change(&mut history, &mut found);
    violations(&history, &found)
}

fn made(found: &mut Found) -> &mut BuiltTables {
    found.made.get_mut("p").unwrap()
}

fn set_manifest(found: &mut Found, change: impl FnOnce(&mut Manifest)) {
    change(made(found).manifests.get_mut("p/t").unwrap());
}

#[test]
fn correct_history_has_no_violations() {
    assert_eq!(check(|_, _| {}), []);
}

#[test]
fn job_without_record_is_a_violation_unless_lost_with_the_queue() {
    let lost = |_: &mut History, found: &mut Found| found.records.clear();
    assert_eq!(check(lost), [Violation::NoRecord { job: "j".into() }]);
    let excused = |history: &mut History, found: &mut Found| {
        found.records.clear();
        history.excused = history.accepted.clone();
    };
    assert_eq!(check(excused), []);
}

#[test]
fn nonterminal_duplicate_or_unrequested_records_are_violations() {
    let running = |_: &mut History, found: &mut Found| {
        found.records.insert("j".into(), job(1));
    };
    assert_eq!(check(running), [Violation::NotTerminal { job: "j".into() }]);
    let again = |history: &mut History, _: &mut Found| history.written.push(Written::Record { job: "j".into() });
    assert_eq!(check(again), [Violation::RecordedAgain { job: "j".into(), times: 2 }]);
    let unasked = |history: &mut History, _: &mut Found| history.accepted.clear();
    assert_eq!(check(unasked), [Violation::Unasked { job: "j".into() }]);
    let perhaps = |history: &mut History, _: &mut Found| history.perhaps = std::mem::take(&mut history.accepted);
    assert_eq!(check(perhaps), []);
}

#[test]
fn too_many_attempts_are_a_violation() {
    let four = |_: &mut History, found: &mut Found| {
        found.records.insert("j".into(), job(4).completed(RunResult::default(), Utc::now()));
    };
    assert_eq!(check(four), [Violation::TooManyAttempts { job: "j".into(), attempts: 4 }]);
}

#[test]
fn stale_writer_is_a_violation() {
    let stale = |history: &mut History, _: &mut Found| {
        history.written = vec![commit(6), commit(7), commit(6), commit(7), Written::Record { job: "j".into() }];
    };
    assert_eq!(check(stale), [Violation::Overlap { table: "p/t".into(), fence: 6, after: 7 }]);
}

#[test]
fn table_without_the_highest_fence_is_a_violation() {
    let behind = |history: &mut History, _: &mut Found| history.written.push(commit(8));
    let told_of = [Violation::NotOfHighestFence { table: "p/t".into(), fence: 7, highest: 8 }];
    assert_eq!(check(behind), told_of);
}

#[test]
fn leftover_intents_and_wrong_missing_or_extra_files_are_violations() {
    let left = |_: &mut History, found: &mut Found| made(found).intents.push("p/t".into());
    assert_eq!(check(left), [Violation::IntentLeft { table: "p/t".into() }]);
    let differs = |_: &mut History, found: &mut Found| {
        made(found).objects.insert("k".into(), "other".into());
    };
    assert_eq!(check(differs), [Violation::Differs { key: "k".into() }]);
    let missing = |_: &mut History, found: &mut Found| made(found).objects.clear();
    assert_eq!(check(missing), [Violation::Differs { key: "k".into() }]);
    let surplus = |_: &mut History, found: &mut Found| made(found).expected.clear();
    assert_eq!(check(surplus), [Violation::Surplus { key: "k".into() }]);
}

#[test]
fn unaccounted_rows_are_a_violation() {
    let source = "in/a.csv".to_owned();
    let unread = |_: &mut History, found: &mut Found| set_manifest(found, |manifest| manifest.sources.clear());
    assert_eq!(check(unread), [Violation::RowsLost { source: source.clone(), expected: 5, found: None }]);
    let fewer = |_: &mut History, found: &mut Found| {
        set_manifest(found, |manifest| manifest.sources.get_mut("in/a.csv").unwrap().rows_written = 3);
    };
    assert_eq!(check(fewer), [Violation::RowsLost { source, expected: 5, found: Some(4) }]);
}

#[test]
fn remaining_queue_entries_are_a_violation() {
    let left = |_: &mut History, found: &mut Found| {
        (found.counts.stream, found.counts.pending, found.counts.waiting) = (1, 2, 3);
        (found.counts.windows, found.counts.dead_letters, found.active) = (4, 5, 6);
        found.counts.requested = 7;
    };
    let places =
        [("active", 6), ("dead", 5), ("pending", 2), ("requested", 7), ("stream", 1), ("waiting", 3), ("windows", 4)];
    assert_eq!(check(left), places.map(|(what, count)| Violation::LeftInQueue { what, count }));
}

#[test]
fn writes_are_classified_by_key() {
    use lakemill::ports::store::Bucket;
    let of = |key: &str, bytes: &[u8]| Written::of(Bucket::Pipelines, key, bytes);
    assert_eq!(of("pipelines/p/manifests/t.json", &root(7).to_json()), Some(commit(7)));
    assert_eq!(of("pipelines/p/manifests/t/intent-7.json", &root(7).to_json()), None);
    assert_eq!(of("pipelines/p/jobs/j.json", b"{}"), Some(Written::Record { job: "j".into() }));
    assert_eq!(of("pipelines/p/jobs/j.rejected.parquet", b""), None);
    assert_eq!(of("pipelines/p/pipeline.json", b"{}"), None);
    assert_eq!(Written::of(Bucket::Warehouse, "pipelines/p/jobs/j.json", b"{}"), None);
}
