//! `lakemill verify` finds differences from the manifests, and repairs or deletes the files.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use lakemill::domain::job::JobStatus;
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use serde_json::{Value, json};

use crate::support::program::{CommandOutput, call, lakemill};
use crate::support::site::{Kind, Site, job_id, slug};

const KINDS: [Kind; 2] = [Kind::Embedded, Kind::Fleet];

fn verify(site: &Site, more: &[&str]) -> CommandOutput {
    let mut command: Command = lakemill();
    command
        .args(["verify", "trips"])
        .args(more)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"))
        .envs(site.env());
    call(&mut command)
}

/// A pipeline that ran: two sources in three partitions, with a rejected row each.
fn site(kind: Kind) -> Site {
    let site = Site::new(kind);
    site.pipeline("trips", &json!({ "partition_by": ["a"], "rejects": { "max_ratio": 1.0 } }));
    site.put("trips", "in/1.csv", "a,b\nx,1\ny,2\nx,bad\n");
    site.put("trips", "in/2.csv", "a,b\ny,3\nz,4\nz,worse\n");
    let _worker = site.worker();
    assert_eq!(site.await_end(&site.enqueue("trips")).status, JobStatus::Completed);
    site
}

/// The data files of the table.
fn table(site: &Site) -> BTreeMap<String, Vec<u8>> {
    let data = site.warehouse("trips").into_iter().filter(|(key, _)| !key.contains("_rejected_rows"));
    data.map(|(key, bytes)| (format!("pipelines/trips/{key}"), bytes)).collect()
}

fn keys(site: &Site, bucket: Bucket, part: &str) -> Vec<String> {
    let all = list_all(&*site.store, bucket, "pipelines/trips/").unwrap();
    all.into_iter().map(|object| object.key).filter(|key| key.contains(part)).collect()
}

fn delete(site: &Site, bucket: Bucket, key: &str) {
    site.store.delete(bucket, &[key.to_owned()], &WriteOptions::default()).unwrap();
}

fn put(site: &Site, key: &str, bytes: &[u8]) {
    site.store.put(Bucket::Warehouse, key, bytes, &WriteOptions::default()).unwrap();
}

/// The kind of each fault, by key.
fn faults(ran: &CommandOutput) -> BTreeMap<String, String> {
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let fault = |line: Value| {
        let fault = line.get("fault")?;
        Some((text(&line["key"]), text(fault)))
    };
    lines.filter_map(fault).collect()
}

/// Repairs, and lets a worker rebuild lost files.
fn repair(site: &Site) -> CommandOutput {
    let ran = verify(site, &["--repair", "--json"]).ok();
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    if let Some(id) = last.get("job_id") {
        let _worker = site.worker();
        let job = site.kv.job(&slug("trips"), &job_id(id.as_str().unwrap())).unwrap().unwrap();
        assert_eq!(site.await_end(&job).status, JobStatus::Completed);
    }
    ran
}

#[test]
fn lost_files_are_rebuilt_and_unknown_ones_deleted() {
    for kind in KINDS {
        let site = site(kind);
        let ran = verify(&site, &[]).ok();
        assert!(ran.stdout.starts_with("table `t`: all files match its manifest: 5 files, "), "{}", ran.stdout);
        let sound = table(&site);
        let data: Vec<&String> = sound.keys().collect();
        let rejects = keys(&site, Bucket::Warehouse, "_rejected_rows");
        // One is lost, one has other bytes of the same size, one is truncated.
        delete(&site, Bucket::Warehouse, data[0]);
        let mut other = sound[data[1]].clone();
        other[20] ^= 1;
        put(&site, data[1], &other);
        put(&site, data[2], &sound[data[2]][..50]);
        delete(&site, Bucket::Warehouse, &rejects[0]);
        let stray = "pipelines/trips/t/a=x/part-00000.parquet";
        put(&site, stray, b"stray");
        let shard = keys(&site, Bucket::Pipelines, ".json.zst")[0].replace(".json.zst", "0.json.zst");
        site.store.put(Bucket::Pipelines, &shard, b"?", &WriteOptions::default()).unwrap();
        let expected: BTreeMap<String, String> = [
            (data[0].clone(), "missing"),
            (data[1].clone(), "changed"),
            (data[2].clone(), "changed"),
            (rejects[0].clone(), "missing"),
            (stray.to_owned(), "unknown"),
            (shard.clone(), "unknown"),
        ]
        .map(|(key, fault)| (key, fault.to_owned()))
        .into();
        let ran = verify(&site, &["--json"]);
        assert_eq!((ran.status, faults(&ran)), (1, expected.clone()), "{}", ran.stderr);
        let ran = verify(&site, &[]);
        let summary = "table `t`: 2 missing, 2 changed, 2 unknown; 1 files, ";
        assert!(ran.status == 1 && ran.stdout.contains(summary), "{}", ran.stdout);
        assert!(ran.stdout.contains(&format!("missing  warehouse: {}", data[0])), "{}", ran.stdout);

        assert_eq!(faults(&repair(&site)), expected);
        verify(&site, &[]).ok();
        assert_eq!(table(&site), sound);
        assert_eq!(keys(&site, Bucket::Warehouse, "_rejected_rows").len(), 2);
        assert_eq!(keys(&site, Bucket::Pipelines, &shard), [""; 0]);
    }
}

#[test]
fn table_with_a_lost_shard_is_rebuilt() {
    for kind in KINDS {
        let site = site(kind);
        let sound = table(&site);
        for shard in keys(&site, Bucket::Pipelines, ".json.zst") {
            // Each rewrites the manifest, and the shards of its sources, which contain the run's id.
            if site.read(Bucket::Pipelines, &shard).is_none() {
                continue;
            }
            delete(&site, Bucket::Pipelines, &shard);
            let found = faults(&verify(&site, &["--json"]));
            assert_eq!(found, BTreeMap::from([(shard.clone(), "missing".to_owned())]));
            repair(&site);
            verify(&site, &[]).ok();
            assert_eq!(table(&site), sound);
        }
    }
}

/// A run that finds a lost shard rebuilds the table.
#[test]
fn run_rebuilds_a_table_with_a_lost_shard() {
    let site = site(Kind::Embedded);
    let _worker = site.worker();
    for n in 0..4 {
        let shards = keys(&site, Bucket::Pipelines, ".json.zst");
        delete(&site, Bucket::Pipelines, &shards[n % shards.len()]);
        site.put("trips", "in/3.csv", format!("a,b\nx,{n}\n"));
        assert_eq!(site.await_end(&site.enqueue("trips")).status, JobStatus::Completed);
        verify(&site, &[]).ok();
    }
}

#[test]
fn repair_waits_for_no_run_and_unknown_pipelines_are_reported() {
    let site = site(Kind::Embedded);
    let lock = site.kv.lock_pipeline(&slug("trips"), Duration::from_secs(60), 0).unwrap().unwrap();
    verify(&site, &["--repair"]).exits_with(1, &["`trips`", "run in progress"]);
    verify(&site, &[]).ok();
    site.kv.release(&lock).unwrap();
    verify(&site, &["--repair"]).ok();
    let mut command = lakemill();
    command.args(["verify", "trip"]).envs(site.env());
    call(&mut command).exits_with(1, &["no pipeline `trip`", "`trips`"]);
}
