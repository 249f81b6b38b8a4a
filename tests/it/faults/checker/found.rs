//! The final state of an installation.

use std::collections::BTreeMap;
use std::io::Read;

use lakemill::domain::digest::sha256_hex;
use lakemill::domain::job::ChangedKeys;
use lakemill::domain::job::Job;
use lakemill::domain::layout::{config_key, pipeline_prefix};
use lakemill::domain::name::Slug;
use lakemill::engine::convert::Resources;
use lakemill::engine::run::{CsvConverter, LocalLease, RunRequest, run};
use lakemill::engine::validate::validate;
use lakemill::pipelines::tables::{TableStore, tables};
use lakemill::ports::jobs::QueueCounts;
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use lakemill::ports::{Kv, ObjectStore};

use crate::model::world::Unobserved;
use crate::support::lake::{SQL, Ticks, in_memory_folder};
use crate::support::manifests::Manifest;
use crate::support::memory_store::MemoryStore;

/// Jobs of a pipeline to read.
const ACTIVE_MAX: usize = 10_000;

/// A pipeline's tables.
#[derive(Debug, Clone, Default)]
pub struct BuiltTables {
    /// By `pipeline/table`.
    pub manifests: BTreeMap<String, Manifest>,
    /// Tables whose manifest has a missing or wrong shard, by `pipeline/table`.
    pub unreadable: Vec<String>,
    /// Tables with the intent of a dead run, by `pipeline/table`.
    pub intents: Vec<String>,
    /// SHA-256 of each object of the warehouse, by key.
    pub objects: BTreeMap<String, String>,
    /// The same after a clean run of the same lake into an empty warehouse.
    pub expected: BTreeMap<String, String>,
    /// Rows of each source in the lake, by key relative to the pipeline.
    pub lake: BTreeMap<String, u64>,
}

/// The state's source: stores and queue.
#[derive(Debug, Clone, Default)]
pub struct Found {
    pub records: BTreeMap<String, Job>,
    pub counts: QueueCounts,
    /// Jobs in the queue that have not ended.
    pub active: u64,
    /// By pipeline.
    pub made: BTreeMap<String, BuiltTables>,
}

impl Found {
    pub fn look(store: &dyn ObjectStore, kv: &dyn Kv, pipelines: &[&str]) -> Self {
        let mut found = Self { counts: kv.counts().unwrap(), ..Self::default() };
        let mut known = Known::new();
        for name in pipelines {
            let slug = Slug::parse(name).unwrap();
            found.records.extend(records(store, &slug));
            found.active += kv.active(&slug, ACTIVE_MAX).unwrap().len() as u64;
            found.made.insert((*name).to_owned(), BuiltTables::look(store, &slug, &mut known));
        }
        found
    }
}

pub fn records(store: &dyn ObjectStore, slug: &Slug) -> BTreeMap<String, Job> {
    let prefix = format!("{}jobs/", pipeline_prefix(slug));
    let job = |(key, bytes): (String, Vec<u8>)| {
        let id = key.strip_prefix(&prefix)?.strip_suffix(".json")?.to_owned();
        Some((id, serde_json::from_slice(&bytes).expect("a record is a job")))
    };
    objects(store, Bucket::Pipelines, &prefix).into_iter().filter_map(job).collect()
}

fn objects(store: &dyn ObjectStore, bucket: Bucket, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let read = |key: String| {
        let mut bytes = Vec::new();
        store.get(bucket, &key, None).unwrap().body.read_to_end(&mut bytes).unwrap();
        (key, bytes)
    };
    list_all(store, bucket, prefix).unwrap().into_iter().map(|object| read(object.key)).collect()
}

impl BuiltTables {
    fn look(store: &dyn ObjectStore, slug: &Slug, known: &mut Known) -> Self {
        let prefix = pipeline_prefix(slug);
        let lake = objects(store, Bucket::Lake, &prefix);
        let hash = |(key, bytes): (String, Vec<u8>)| (key, sha256_hex(&bytes));
        let names = tables(store, slug).unwrap();
        let (mut manifests, mut unreadable) = (BTreeMap::new(), Vec::new());
        for name in &names {
            let table = format!("{slug}/{name}");
            match Manifest::try_read(store, slug, name) {
                Ok(found) => manifests.extend(found.map(|manifest| (table, manifest))),
                Err(_) => unreadable.push(table),
            }
        }
        let is_left = |name: &&String| TableStore::new(store, slug, name).needs_recovery().unwrap();
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().count() as u64;
        let rows = |(key, bytes): (&String, &Vec<u8>)| (key[prefix.len()..].to_owned(), lines(bytes) - 1);
        Self {
            manifests,
            unreadable,
            intents: names.iter().filter(is_left).map(|name| format!("{slug}/{name}")).collect(),
            objects: objects(store, Bucket::Warehouse, &prefix).into_iter().map(hash).collect(),
            expected: clean_run(store, slug, &lake, known),
            lake: lake.iter().map(rows).collect(),
        }
    }
}

/// Objects by key relative to the pipeline.
type Relative<T> = BTreeMap<String, T>;
/// Output of clean runs, by config and lake: many pipelines are identical.
type Known = BTreeMap<(String, Relative<Vec<u8>>), Relative<String>>;

/// SHA-256 of each object that a clean run of a lake creates, by key.
fn clean_run(
    store: &dyn ObjectStore,
    slug: &Slug,
    lake: &BTreeMap<String, Vec<u8>>,
    known: &mut Known,
) -> BTreeMap<String, String> {
    let mut config = String::new();
    store.get(Bucket::Pipelines, &config_key(slug), None).unwrap().body.read_to_string(&mut config).unwrap();
    let prefix = pipeline_prefix(slug);
    let relative = |key: &String| key[prefix.len()..].to_owned();
    let sources: Relative<Vec<u8>> = lake.iter().map(|(key, bytes)| (relative(key), bytes.clone())).collect();
    let made = known.entry((config, sources)).or_insert_with_key(|(config, _)| {
        let made = objects(&clean_store(slug, config, lake), Bucket::Warehouse, &prefix);
        made.iter().map(|(key, bytes)| (relative(key), sha256_hex(bytes))).collect()
    });
    made.iter().map(|(key, hash)| (format!("{prefix}{key}"), hash.clone())).collect()
}

/// A store after a clean run of a lake.
pub fn clean_store(slug: &Slug, config: &str, lake: &BTreeMap<String, Vec<u8>>) -> MemoryStore {
    let fresh = MemoryStore::new();
    for (key, bytes) in lake {
        fresh.put(Bucket::Lake, key, bytes, &WriteOptions::default()).unwrap();
    }
    let (scratch, ticks) = (in_memory_folder(), Ticks::default());
    let lease = LocalLease::next(&fresh, slug, &ticks).unwrap();
    let request = RunRequest {
        pipeline: &validate(config, &*SQL).unwrap(),
        job_id: "clean",
        prefix: "",
        changed: &ChangedKeys::All,
        clean: true,
        dry_run: false,
        settle: false,
        versions: &lakemill::engine::versions(),
        store: &fresh,
        expressions: &*SQL,
        catalog: None,
        clock: &ticks,
        lease: &lease,
        observer: &Unobserved,
        resources: &Resources { threads: 1, memory_bytes: 64 << 20, scratch: scratch.path().to_owned() },
    };
    run(&request, &CsvConverter).unwrap();
    drop(lease);
    fresh
}
