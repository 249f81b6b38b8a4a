//! Files are staged for publishing while others are still converted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use lakemill::adapters::fs::FsStore;
use lakemill::adapters::s3::S3Store;
use lakemill::domain::job::RunErrorCode;
use lakemill::domain::pipeline::Pipeline;
use lakemill::engine::validate::validate;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, StoreError, WriteOptions, list_all};

use crate::support::faulty_store::FaultyStore;
use crate::support::http_proxy::ProxyAction;
use crate::support::lake::{MIB, RunParams, SQL, Ticks, difference, pipeline, run_on};
use crate::support::s3_server::{moto, s3s_fs};
use crate::support::site::{TEST_TIMEOUT, await_that};

const MAPPING: &str = r#"{ "columns": [ { "name": "p", "type": "string" }, { "name": "n", "type": "int64" } ],
    "partition_by": ["p"] }"#;

/// The slug of the pipeline of [`run_on`].
const PREFIX: &str = "pipelines/x/";

fn how() -> RunParams {
    RunParams::new(2, 64 * MIB)
}

/// A store and scratch on one file system, so that files can be moved between them.
struct Fixture {
    inner: Arc<FsStore>,
    store: FaultyStore,
    clock: Ticks,
    folder: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("scratch")).unwrap();
        let inner = Arc::new(FsStore::create(&folder.path().join("store")).unwrap());
        Self { store: FaultyStore::new(inner.clone()), inner, clock: Ticks::default(), folder }
    }

    /// A source with rows in the partitions `from..to`.
    fn put(&self, name: &str, partitions: std::ops::Range<u64>, rows: u64) {
        let text: String = partitions.flat_map(|p| (0..rows).map(move |n| format!("p{p:03},{n}\n"))).collect();
        let key = format!("{PREFIX}{name}");
        self.inner.put(Bucket::Lake, &key, format!("p,n\n{text}").as_bytes(), &WriteOptions::default()).unwrap();
    }

    /// A run that doesn't begin to publish before `files` files are staged.
    fn run_staged(&self, pipeline: &Pipeline, how: RunParams, files: usize) {
        self.store.await_staged(&format!("{PREFIX}manifests/t.json"), files);
        self.run(pipeline, how).unwrap();
    }

    fn run(&self, pipeline: &Pipeline, how: RunParams) -> Result<(), RunErrorCode> {
        let scratch = self.folder.path().join("scratch");
        let (result, _) = run_on(&self.store, pipeline, &self.clock, &scratch, how);
        assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "nothing stays in scratch");
        result.map(drop).map_err(|failure| failure.error.code)
    }

    fn staged(&self) -> BTreeSet<String> {
        let staged = self.store.staged();
        let all: BTreeSet<String> = staged.iter().cloned().collect();
        assert_eq!(all.len(), staged.len(), "each file is staged once");
        all
    }

    fn warehouse(&self) -> BTreeMap<String, Arc<[u8]>> {
        let read = |key: String| {
            let mut bytes = Vec::new();
            self.inner.get(Bucket::Warehouse, &key, None).unwrap().body.read_to_end(&mut bytes).unwrap();
            (key, bytes.into())
        };
        let all = list_all(&*self.inner, Bucket::Warehouse, PREFIX).unwrap();
        all.into_iter().map(|object| read(object.key)).collect()
    }
}

#[test]
fn files_that_a_run_writes_are_staged() {
    // Few files are synced individually, many together.
    for partitions in [3, 100] {
        let (fixture, pipeline) = (Fixture::new(), pipeline(MAPPING));
        fixture.put("a.csv", 0..partitions, 20);
        fixture.put("b.csv", 0..1, 50);
        fixture.run_staged(&pipeline, how(), partitions as usize);
        assert_eq!(fixture.staged(), fixture.warehouse().into_keys().collect());

        fixture.store.reset_counts();
        fixture.put("b.csv", 0..1, 51);
        fixture.run_staged(&pipeline, how(), 1);
        let first = fixture.warehouse().into_keys().next().unwrap();
        assert_eq!(fixture.staged(), BTreeSet::from([first]));

        // Everything is rebuilt and written again, with the same bytes, regardless of the changes to the files.
        fixture.store.reset_counts();
        fixture.run_staged(&pipeline, how().clean(), partitions as usize);
        assert_eq!(fixture.staged(), fixture.warehouse().into_keys().collect());

        let fresh = Fixture::new();
        fresh.put("a.csv", 0..partitions, 20);
        fresh.put("b.csv", 0..1, 51);
        fresh.run(&pipeline, how()).unwrap();
        assert_eq!(difference(&fresh.warehouse(), &fixture.warehouse()), None);
    }
}

#[test]
fn staged_file_with_failed_put_is_written_by_the_next_run() {
    let (fixture, pipeline) = (Fixture::new(), pipeline(MAPPING));
    fixture.put("a.csv", 0..40, 20);
    // The intent and the shards come first.
    fixture.store.fail_write(5, |bucket, key| StoreError::DiskFull { bucket, key: key.to_owned() });
    fixture.run(&pipeline, how()).unwrap_err();
    assert!(fixture.warehouse().len() < 40);
    fixture.run(&pipeline, how()).unwrap();
    let fresh = Fixture::new();
    fresh.put("a.csv", 0..40, 20);
    fresh.run(&pipeline, how()).unwrap();
    assert_eq!(difference(&fresh.warehouse(), &fixture.warehouse()), None);
}

/// `t` of `a.csv` and `u` of `b.csv`.
fn two_tables() -> Pipeline {
    let mapping = |table: &str, file: &str| {
        format!(r#"{{ "table": "{table}", "files": ["{file}"], "columns": [ {{ "name": "n", "type": "int64" }} ] }}"#)
    };
    let text = format!(r#"{{ "version": 1, "mappings": [ {}, {} ] }}"#, mapping("t", "a.csv"), mapping("u", "b.csv"));
    validate(&text, &*SQL).unwrap()
}

#[test]
fn failed_run_aborts_staged_uploads() {
    let options = moto().options();
    let warehouse = options.buckets.warehouse.clone();
    let store = FaultyStore::new(Arc::new(S3Store::open(options).unwrap()));
    let put = |name: &str, text: &str| {
        store.put(Bucket::Lake, &format!("{PREFIX}{name}"), text.as_bytes(), &WriteOptions::default()).unwrap();
    };
    // Large enough for a multipart upload.
    let rows: String = (0..200_000u64).map(|n| format!("{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1)).collect();
    put("a.csv", &format!("n\n{rows}"));
    put("b.csv", "n\nnone\n");
    let pipeline = two_tables();
    let (clock, scratch) = (Ticks::default(), tempfile::tempdir().unwrap());
    let run = || run_on(&store, &pipeline, &clock, scratch.path(), how()).0;

    // The second table's source is not read before a file of the first table is sent.
    let seen = Arc::new(AtomicUsize::new(0));
    let (recorded, bucket) = (Arc::clone(&seen), warehouse.clone());
    store.before_get_of(&format!("{PREFIX}b.csv"), move || {
        let until = Instant::now() + TEST_TIMEOUT;
        while recorded.load(Ordering::SeqCst) == 0 {
            assert!(Instant::now() < until, "nothing of the first table was sent");
            recorded.store(moto().open_uploads(&bucket), Ordering::SeqCst);
        }
    });
    assert_eq!(run().unwrap_err().error.code, RunErrorCode::TooManyRejects);
    assert_eq!((seen.load(Ordering::SeqCst), moto().open_uploads(&warehouse)), (1, 0));
    assert!(list_all(&store, Bucket::Warehouse, PREFIX).unwrap().is_empty());

    put("b.csv", "n\n1\n");
    run().unwrap();
    assert_eq!(list_all(&store, Bucket::Warehouse, PREFIX).unwrap().len(), 2);
    assert_eq!(moto().open_uploads(&warehouse), 0);
}

#[test]
fn capabilities_are_probed_while_sources_are_read() {
    let probed: Arc<[AtomicUsize; 2]> = Arc::default();
    let recorded = Arc::clone(&probed);
    let mut options = s3s_fs().options();
    let names = [&options.buckets.pipelines, &options.buckets.warehouse].map(|name| format!("/{name}/"));
    let proxy = s3s_fs().behind(move |passing| {
        let is_of = |name: &String| passing.target.contains("lakemill-probe") && passing.target.starts_with(name);
        if let Some(at) = names.iter().position(is_of) {
            recorded[at].fetch_add(1, Ordering::SeqCst);
        }
        ProxyAction::Forward
    });
    options.endpoint = proxy.url();
    let store = FaultyStore::new(Arc::new(S3Store::open(options).unwrap()));
    for name in ["a.csv", "b.csv"] {
        store.put(Bucket::Lake, &format!("{PREFIX}{name}"), b"n\n1\n", &WriteOptions::default()).unwrap();
    }
    // The second table's source is not read before.
    store.before_get_of(&format!("{PREFIX}b.csv"), move || {
        await_that("both buckets to be asked", || probed.iter().all(|count| count.load(Ordering::SeqCst) > 0));
    });
    let (clock, scratch) = (Ticks::default(), tempfile::tempdir().unwrap());
    run_on(&store, &two_tables(), &clock, scratch.path(), how()).0.unwrap();
    assert_eq!(list_all(&store, Bucket::Warehouse, PREFIX).unwrap().len(), 2);
}
