//! `lakemill backup` and `lakemill restore`, from and to folders and S3 servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use lakemill::adapters::fs::OutputLock;
use lakemill::domain::backup::PART_BYTES;
use lakemill::domain::job::{Job, JobStatus};
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use serde_json::{Value, json};

use crate::support::concurrent::{Body, with_background};
use crate::support::program::{CommandOutput, call, files, lakemill};
use crate::support::site::{Kind, Site, await_that, slug};

/// Of the lock of a restore that is killed.
const SHORT_TTL: &str = "pipeline_lock::ttl_ms=return(5000)";
const KINDS: [Kind; 2] = [Kind::Embedded, Kind::Fleet];

/// A site, and the place of its backups.
struct Fixture {
    site: Site,
    place: String,
    kind: Kind,
}

impl Fixture {
    /// A pipeline that ran: two sources in three partitions, with rejected rows, published in all formats.
    fn new(kind: Kind) -> Self {
        let site = Site::new(kind);
        let change = json!({ "partition_by": ["a"], "publish": ["delta", "iceberg"], "keep_history": "7d" });
        site.pipeline("trips", &change);
        site.put("trips", "in/1.csv", "a,b\nx,1\ny,2\nx,bad\n");
        site.put("trips", "in/2.csv", "a,b\ny,3\nz,4\nz,worse\n");
        let place = match kind {
            Kind::Embedded => site.home().join("backup").display().to_string(),
            Kind::Fleet => format!("s3://{}/of the site", site.env()["S3_BUCKET_WAREHOUSE"]),
        };
        let fixture = Self { site, place, kind };
        fixture.run();
        fixture
    }

    fn run(&self) -> Job {
        let _worker = self.site.worker();
        let job = self.site.await_end(&self.site.enqueue("trips"));
        assert_eq!(job.status, JobStatus::Completed, "{:?}", job.error);
        job
    }

    fn backup(&self, more: &[&str]) -> CommandOutput {
        call(command(&self.site, "backup", &self.place).args(more))
    }

    /// The JSON line of a backup that succeeds.
    fn backed_up(&self, more: &[&str]) -> Value {
        let output = self.backup(&[&["--json"], more].concat()).ok();
        serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap()
    }

    fn restore(&self, to: &Site, more: &[&str]) -> CommandOutput {
        call(command(to, "restore", &self.place).args(more))
    }

    /// An empty installation with a backup restored.
    fn restored(&self, more: &[&str]) -> Site {
        let site = Site::new(self.kind);
        self.restore(&site, more).ok();
        site
    }

    /// The files of a place in a folder.
    fn folder(&self) -> PathBuf {
        assert_eq!(self.kind, Kind::Embedded);
        PathBuf::from(&self.place)
    }

    fn parts(&self) -> Vec<PathBuf> {
        let data = self.folder().join("data");
        files(&data).into_iter().filter(|name| !name.starts_with('.')).map(|name| data.join(name)).collect()
    }

    /// The parts that have this text.
    fn parts_with(&self, text: &str) -> Vec<PathBuf> {
        let has = |part: &PathBuf| std::fs::read(part).unwrap().windows(text.len()).any(|some| some == text.as_bytes());
        self.parts().into_iter().filter(has).collect()
    }
}

fn command(site: &Site, name: &str, place: &str) -> Command {
    let mut command = lakemill();
    command
        .args([name, place, "--quiet"])
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"))
        .envs(site.env())
        .env("SVC_SCRATCH_DIR", site.home().join("scratch"));
    command
}

/// All objects of a bucket but intents and locks, with their bytes.
fn objects(site: &Site, bucket: Bucket) -> BTreeMap<String, Vec<u8>> {
    let listed = list_all(&*site.store, bucket, "pipelines/").unwrap();
    listed.into_iter().map(|object| (object.key.clone(), site.read(bucket, &object.key).unwrap())).collect()
}

/// Objects of the pipelines bucket that a restore doesn't change: the manifests get the tags of the new CSVs.
fn plain(site: &Site) -> BTreeMap<String, Vec<u8>> {
    let is_manifest = |key: &String| key.contains("/manifests/");
    objects(site, Bucket::Pipelines).into_iter().filter(|(key, _)| !is_manifest(key)).collect()
}

fn verify_tables(site: &Site) {
    let mut command = lakemill();
    command.args(["verify", "trips"]).env_clear();
    command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"));
    call(command.envs(site.env())).ok();
}

fn sources_read(job: &Job) -> u64 {
    job.result.as_ref().unwrap().tables["t"].sources_read
}

#[test]
fn restored_pipeline_equals_the_original_and_its_csvs_are_not_read_again() {
    for kind in KINDS {
        let fixture = Fixture::new(kind);
        fixture.site.put("trips", "in/3.csv", "a,b\nx,5\n");
        fixture.run();
        fixture.backed_up(&[]);
        let restored = fixture.restored(&[]);
        for bucket in [Bucket::Lake, Bucket::Warehouse] {
            assert_eq!(objects(&fixture.site, bucket), objects(&restored, bucket), "{kind:?} {bucket}");
        }
        assert_eq!(plain(&fixture.site), plain(&restored), "{kind:?}");
        verify_tables(&restored);
        let _worker = restored.worker();
        let job = restored.await_end(&restored.enqueue("trips"));
        assert_eq!((job.status, sources_read(&job)), (JobStatus::Completed, 0), "{kind:?} {:?}", job.error);
    }
}

#[test]
fn second_backup_copies_only_what_is_new() {
    for kind in KINDS {
        let fixture = Fixture::new(kind);
        let first = fixture.backed_up(&[]);
        assert!(first["copied_objects"].as_u64().unwrap() > 10, "{first}");
        let second = fixture.backed_up(&[]);
        assert_eq!((&second["copied_objects"], &second["objects"]), (&json!(0), &first["objects"]), "{kind:?}");
        fixture.site.put("trips", "in/3.csv", "a,b\nx,5\n");
        let third = fixture.backed_up(&[]);
        assert_eq!(third["copied_objects"], 1, "{kind:?}");
        fixture.backup(&["--verify"]).ok();
    }
}

#[test]
fn objects_of_several_parts_are_restored_whole() {
    for kind in KINDS {
        let fixture = Fixture::new(kind);
        let large: Vec<u8> = (0..PART_BYTES * 2 + 12_345).map(|n| ((n * n) >> 7) as u8).collect();
        fixture.site.put("trips", "other/large.bin", &large);
        fixture.site.put("trips", "other/two parts.bin", &large[..PART_BYTES as usize * 2]);
        fixture.site.put("trips", "other/empty.csv", "");
        fixture.backed_up(&[]);
        assert_eq!(fixture.backed_up(&[])["copied_objects"], 0, "{kind:?}");
        let restored = fixture.restored(&[]);
        assert_eq!(objects(&fixture.site, Bucket::Lake), objects(&restored, Bucket::Lake), "{kind:?}");
    }
}

#[test]
fn interrupted_backup_leaves_the_former_one_usable() {
    let fixture = Fixture::new(Kind::Embedded);
    let first = fixture.backed_up(&[]);
    let lake = objects(&fixture.site, Bucket::Lake);
    let mut failpoints: Vec<String> = ["backup::root_read", "backup::before_lake", "backup::before_root"]
        .map(|place| format!("{place}=return(kill)"))
        .into();
    failpoints.extend([0, 3, 6].map(|n| format!("backup::copied={n}*off->return(kill)")));
    failpoints.extend([0, 4, 8, 12].map(|n| format!("fs::before_write={n}*off->return(kill)")));
    for (n, failpoint) in failpoints.iter().enumerate() {
        fixture.site.put("trips", &format!("in/new-{n}.csv"), format!("a,b\nx,{n}\n"));
        fixture.site.put("trips", "in/1.csv", format!("a,b\nx,{n}\n"));
        fixture.run();
        let killed = call(command(&fixture.site, "backup", &fixture.place).env("FAILPOINTS", failpoint));
        assert_ne!(killed.status, 0, "{failpoint}: {}", killed.stdout);
        fixture.backup(&["--verify"]).ok();
        let listed = fixture.backup(&["--list", "--json"]).ok();
        assert_eq!(listed.stdout.lines().count(), 1, "{failpoint}: {}", listed.stdout);
    }
    let restored = fixture.restored(&["--backup", first["backup"].as_str().unwrap()]);
    assert_eq!(objects(&restored, Bucket::Lake), lake);
    verify_tables(&restored);
    // The next one deletes what they left behind.
    fixture.backed_up(&["--keep", "1"]);
    fixture.backup(&["--verify"]).ok();
    assert_eq!(objects(&fixture.restored(&[]), Bucket::Lake), objects(&fixture.site, Bucket::Lake));
    let after = fixture.parts().len();
    let fresh = Fixture { place: fixture.site.home().join("fresh").display().to_string(), ..fixture };
    fresh.backed_up(&[]);
    assert_eq!(after, fresh.parts().len());
}

#[test]
fn backup_killed_while_it_deletes_is_whole_and_the_next_one_deletes_the_rest() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.backed_up(&[]);
    fixture.site.put("trips", "in/1.csv", "a,b\nx,7\n");
    for failpoint in ["backup::after_root=return(kill)", "backup::before_sweep=return(kill)"] {
        let killed =
            call(command(&fixture.site, "backup", &fixture.place).args(["--keep", "1"]).env("FAILPOINTS", failpoint));
        assert_ne!(killed.status, 0, "{failpoint}");
        fixture.backup(&["--verify"]).ok();
        assert_eq!(objects(&fixture.restored(&[]), Bucket::Lake), objects(&fixture.site, Bucket::Lake));
    }
    assert!(!fixture.parts_with("y,2").is_empty());
    fixture.backed_up(&["--keep", "1"]);
    assert!(fixture.parts_with("x,bad").iter().all(|part| !std::fs::read(part).unwrap().starts_with(b"a,b")));
}

#[test]
fn backups_that_runs_overlap_have_whole_tables() {
    for kind in KINDS {
        let fixture = Fixture::new(kind);
        let runs = AtomicU64::new(0);
        let write = |_: usize, body: &Body| {
            let _worker = fixture.site.worker();
            while body.is_running() {
                let n = runs.fetch_add(1, Ordering::SeqCst);
                fixture.site.put("trips", &format!("in/{}.csv", n % 5), format!("a,b\nx,{n}\ny,{n}\n"));
                let job = fixture.site.await_end(&fixture.site.enqueue_as("trips", n.is_multiple_of(3)));
                assert_eq!(job.status, JobStatus::Completed, "{:?}", job.error);
            }
        };
        with_background(1, write, || {
            for _ in 0..5 {
                fixture.backed_up(&[]);
                let restored = fixture.restored(&[]);
                verify_tables(&restored);
            }
        });
        assert!(runs.into_inner() > 1);
    }
}

#[test]
fn earlier_backups_are_kept_up_to_a_number() {
    let fixture = Fixture::new(Kind::Embedded);
    let lake = objects(&fixture.site, Bucket::Lake);
    let first = fixture.backed_up(&["--keep", "2"]);
    let keys: Vec<String> = lake.keys().cloned().collect();
    fixture.site.store.delete(Bucket::Lake, &keys, &WriteOptions::default()).unwrap();
    fixture.backed_up(&["--keep", "2"]);
    let earlier = fixture.restored(&["--backup", first["backup"].as_str().unwrap()]);
    assert_eq!(objects(&earlier, Bucket::Lake), lake);
    assert!(!fixture.parts_with("z,worse").is_empty());
    let third = fixture.backed_up(&["--keep", "2"]);
    assert_eq!(third["deleted_backups"], 1);
    assert_eq!(fixture.backup(&["--list"]).ok().stdout.lines().count(), 2);
    let site = Site::new(Kind::Embedded);
    fixture.restore(&site, &["--backup", first["backup"].as_str().unwrap()]).exits_with(1, &["there is no backup"]);
}

#[test]
fn damaged_objects_are_named_and_a_full_backup_copies_them_again() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.backed_up(&[]);
    let damaged: BTreeSet<PathBuf> =
        fixture.parts_with("z,worse").into_iter().chain(fixture.parts_with("PAR1")).collect();
    assert!(damaged.len() > 3);
    for part in damaged {
        let mut bytes = std::fs::read(&part).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        std::fs::write(&part, bytes).unwrap();
    }
    let text = fixture.backup(&["--verify"]).exits_with(1, &[]).stdout;
    assert!(text.contains("damaged  `pipelines/trips/in/2.csv`: its SHA-256 is"), "{text}");
    assert!(text.contains("--full"), "{text}");
    let site = Site::new(Kind::Embedded);
    let restored = fixture.restore(&site, &[]).exits_with(1, &["`pipelines/trips/in/2.csv`", "table `t`", "paused"]);
    assert!(restored.stderr.contains("its SHA-256 is"), "{}", restored.stderr);
    assert!(site.kv.paused(Some(&slug("trips"))).unwrap().is_some(), "a run would remove rows");
    assert!(objects(&site, Bucket::Pipelines).keys().all(|key| key != "pipelines/trips/manifests/t.json"));
    // An incremental backup trusts the sizes; a full one writes everything.
    fixture.backed_up(&["--full"]);
    fixture.backup(&["--verify"]).ok();
}

#[test]
fn lost_data_is_copied_again_or_named() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.backed_up(&[]);
    for part in
        fixture.parts_with("z,worse").into_iter().filter(|part| std::fs::read(part).unwrap().starts_with(b"a,b"))
    {
        std::fs::remove_file(part).unwrap();
    }
    assert_eq!(fixture.backed_up(&[])["copied_objects"], 1);
    for part in fixture.parts_with("PAR1") {
        std::fs::remove_file(part).unwrap();
    }
    fixture.backup(&[]).exits_with(1, &["lacks the data of", "--full"]);
    fixture.backup(&["--verify"]).exits_with(1, &[]);
    fixture.backed_up(&["--full"]);
    fixture.backup(&["--verify"]).ok();
}

/// A hostile or broken index never writes outside of the pipelines, and is never a crash.
#[test]
fn hostile_index_is_refused() {
    let fixture = Fixture::new(Kind::Embedded);
    let made = fixture.backed_up(&[]);
    let root = fixture.folder().join(format!("backups/{}.json", made["backup"].as_str().unwrap()));
    let json: Value = serde_json::from_slice(&std::fs::read(&root).unwrap()).unwrap();
    let site = Site::new(Kind::Embedded);
    let refused = |text: &[u8], part: &str| {
        std::fs::write(&root, text).unwrap();
        fixture.restore(&site, &[]).exits_with(1, &[part]);
        fixture.backup(&["--verify"]).exits_with(1, &[part]);
    };
    refused(b"", "no readable index");
    refused(b"{\"version\":99}", "a newer Lakemill made it");
    refused(&b"[".repeat(100_000), "no readable index");
    let change = |path: &str, value: Value| {
        let mut changed = json.clone();
        *changed.pointer_mut(path).unwrap() = value;
        serde_json::to_vec(&changed).unwrap()
    };
    refused(&change("/id", json!("20200101T000000Z-00000000")), "another backup");
    refused(&change("/lake/0/name", json!("../../../../../../../etc/passwd")), "its name is not a hash");
    refused(&change("/lake/0/name", json!("0".repeat(32))), "no object");
    refused(&change("/lake/0/name", json["plain"][0]["name"].clone()), "entries are not those");
    refused(&change("/lake/0/entries", json!(u64::MAX)), "entries are not those");
    std::fs::write(&root, serde_json::to_vec(&json).unwrap()).unwrap();
    // Entries with other keys, in a shard whose hash fits.
    let shard = fixture.folder().join(format!("index/{}.json.zst", json["lake"][0]["name"].as_str().unwrap()));
    let text = zstd::stream::decode_all(&*std::fs::read(&shard).unwrap()).unwrap();
    let entries: Vec<(String, Value)> = serde_json::from_slice(&text).unwrap();
    for key in ["pipelines/trips/../../../../escaped.csv", "pipelines/trips/./x", "pipelines/trips/a\0b"] {
        for (field, value) in
            [("size", json!(entries[0].1["size"])), ("data", json!("../".repeat(10) + "ab")), ("size", json!(u64::MAX))]
        {
            let mut entry = entries[0].1.clone();
            entry[field] = value;
            let text = serde_json::to_vec(&json!([[key, entry]])).unwrap();
            let bytes = zstd::bulk::compress(&text, 3).unwrap();
            let name = lakemill::domain::digest::sha256_hex(&bytes)[..32].to_owned();
            std::fs::write(fixture.folder().join(format!("index/{name}.json.zst")), bytes).unwrap();
            let mut changed = json.clone();
            changed["lake"] = json!([{ "name": name, "size": 1, "entries": 1, "first": key }]);
            std::fs::write(&root, serde_json::to_vec(&changed).unwrap()).unwrap();
            let site = Site::new(Kind::Embedded);
            fixture.restore(&site, &[]).exits_with(1, &["not the key of a pipeline's object"]);
            let outside: Vec<String> = files(site.home()).into_iter().filter(|name| name.contains("escaped")).collect();
            assert!(outside.is_empty(), "{outside:?}");
            assert!(objects(&site, Bucket::Lake).is_empty());
        }
    }
}

#[test]
fn restore_refuses_existing_pipelines_and_completes_what_is_missing_on_request() {
    for kind in KINDS {
        let fixture = Fixture::new(kind);
        fixture.site.pipeline("other", &json!({}));
        fixture.backed_up(&[]);
        let refused = fixture.restore(&fixture.site, &[]);
        refused.exits_with(1, &["`other`, `trips`", "--pipeline", "--missing-only"]);
        let before = [Bucket::Lake, Bucket::Warehouse, Bucket::Pipelines].map(|bucket| objects(&fixture.site, bucket));
        fixture.site.put("trips", "in/later.csv", "a,b\nx,9\n");
        for (bucket, part) in
            [(Bucket::Lake, "in/1.csv"), (Bucket::Warehouse, "/t/"), (Bucket::Pipelines, "pipeline.json")]
        {
            let keys = objects(&fixture.site, bucket).into_keys().filter(|key| key.contains(part));
            fixture.site.store.delete(bucket, &keys.collect::<Vec<_>>(), &WriteOptions::default()).unwrap();
        }
        fixture.restore(&fixture.site, &["--missing-only"]).ok();
        let mut after =
            [Bucket::Lake, Bucket::Warehouse, Bucket::Pipelines].map(|bucket| objects(&fixture.site, bucket));
        assert!(after[0].remove("pipelines/trips/in/later.csv").is_some(), "newer objects stay");
        assert_eq!(before, after, "{kind:?}");
        verify_tables(&fixture.site);
        let site = Site::new(kind);
        fixture.restore(&site, &["--pipeline", "other"]).ok();
        let found: BTreeSet<String> = objects(&site, Bucket::Pipelines).into_keys().collect();
        assert_eq!(found, BTreeSet::from(["pipelines/other/pipeline.json".to_owned()]));
        fixture.restore(&site, &["--pipeline", "none"]).exits_with(1, &["has no pipeline `none`"]);
    }
}

#[test]
fn interrupted_restore_is_completed_by_the_next() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.backed_up(&[]);
    let places = ["restore::after_lake", "restore::before_root", "restore::after_tables", "restore::before_config"];
    let mut failpoints: Vec<String> = places.map(|place| format!("{place}=return(kill)")).into();
    failpoints.extend([0, 8].map(|n| format!("restore::object={n}*off->return(kill)")));
    for failpoint in failpoints {
        let site = Site::new(Kind::Embedded);
        let killed =
            call(command(&site, "restore", &fixture.place).env("FAILPOINTS", format!("{failpoint};{SHORT_TTL}")));
        assert_ne!(killed.status, 0, "{failpoint}");
        let config = site.read(Bucket::Pipelines, "pipelines/trips/pipeline.json");
        assert!(config.is_none(), "{failpoint}: the config is the last object");
        // The lock of the killed process expires.
        await_that("the pipeline's lock", || fixture.restore(&site, &["--missing-only"]).status == 0);
        verify_tables(&site);
        assert_eq!(objects(&site, Bucket::Lake), objects(&fixture.site, Bucket::Lake), "{failpoint}");
    }
}

#[test]
fn backups_of_some_pipelines_keep_the_others() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.site.pipeline("a-first", &json!({}));
    fixture.site.pipeline("z-last", &json!({}));
    fixture.site.put("z-last", "in/1.csv", "a,b\nx,1\n");
    let all = fixture.backed_up(&[]);
    fixture.site.put("trips", "in/3.csv", "a,b\nx,5\n");
    fixture.site.put("z-last", "in/2.csv", "a,b\nx,5\n");
    let some = fixture.backed_up(&["--pipeline", "trips"]);
    assert_eq!(some["objects"].as_u64(), all["objects"].as_u64().map(|count| count + 1));
    let lake: Vec<String> = objects(&fixture.restored(&[]), Bucket::Lake).into_keys().collect();
    let expected = ["trips/in/1.csv", "trips/in/2.csv", "trips/in/3.csv", "z-last/in/1.csv"];
    assert_eq!(lake, expected.map(|key| format!("pipelines/{key}")));
    fixture.backup(&["--pipeline", "tripz"]).exits_with(1, &["tripz"]);
}

#[test]
fn parts_can_be_left_out() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.backed_up(&["--without-tables"]);
    let site = fixture.restored(&[]);
    assert!(objects(&site, Bucket::Warehouse).is_empty());
    let _worker = site.worker();
    assert_eq!(site.await_end(&site.enqueue_as("trips", true)).status, JobStatus::Completed);
    verify_tables(&site);
    fixture.backed_up(&["--without-csvs"]);
    // Without a lake, a run would empty the tables.
    let site = Site::new(Kind::Embedded);
    fixture.restore(&site, &[]).exits_with(1, &["paused"]);
    assert!(site.kv.paused(Some(&slug("trips"))).unwrap().is_some());
    let site = Site::new(Kind::Embedded);
    for (key, bytes) in objects(&fixture.site, Bucket::Lake) {
        site.store.put(Bucket::Lake, &key, &bytes, &WriteOptions::default()).unwrap();
    }
    fixture.restore(&site, &[]).ok();
    assert!(site.kv.paused(Some(&slug("trips"))).unwrap().is_none());
}

#[test]
fn damaged_tables_keep_their_earlier_state_in_the_backup() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.backed_up(&[]);
    let warehouse = objects(&fixture.site, Bucket::Warehouse);
    fixture.site.put("trips", "in/3.csv", "a,b\nx,5\n");
    fixture.run();
    let is_new = |key: &String| !warehouse.contains_key(key) && key.ends_with(".parquet") && key.contains("/t/a=");
    let lost: Vec<String> = objects(&fixture.site, Bucket::Warehouse).into_keys().filter(is_new).collect();
    assert!(!lost.is_empty());
    fixture.site.store.delete(Bucket::Warehouse, &lost, &WriteOptions::default()).unwrap();
    fixture.backup(&[]).exits_with(1, &[&lost[0], "the backup has its earlier state"]);
    let restored = fixture.restored(&[]);
    verify_tables(&restored);
    assert_eq!(objects(&restored, Bucket::Warehouse), warehouse);
}

#[test]
fn places_in_use_and_places_of_others_are_refused() {
    let fixture = Fixture::new(Kind::Embedded);
    let lock = OutputLock::acquire(&fixture.folder()).unwrap();
    fixture.backup(&[]).exits_with(1, &["is being written"]);
    drop(lock);
    std::fs::write(fixture.folder().join("thesis.txt"), "x").unwrap();
    fixture.backup(&[]).exits_with(1, &["`thesis.txt`, which no backup created"]);
    let refused = |place: &Path, part: &str| {
        call(&mut command(&fixture.site, "backup", &place.display().to_string())).exits_with(1, &[part]);
    };
    refused(&fixture.site.home().join("objects/lake/backup"), "is in the store that is backed up");
    call(&mut command(&fixture.site, "restore", "/nowhere")).exits_with(1, &["`/nowhere` does not exist"]);
    let empty = fixture.site.home().join("empty");
    std::fs::create_dir(&empty).unwrap();
    call(&mut command(&fixture.site, "restore", &empty.display().to_string()))
        .exits_with(1, &["there is no backup here"]);
}

#[test]
fn folder_of_up_is_made_by_a_restore() {
    let fixture = Fixture::new(Kind::Embedded);
    fixture.backed_up(&[]);
    let data = fixture.site.home().join("new/data");
    let mut restore = command(&fixture.site, "restore", &fixture.place);
    call(restore.arg("--data").arg(&data)).ok();
    let lake = data.join("objects/svc-lake/pipelines/trips/in/1.csv");
    assert_eq!(std::fs::read_to_string(lake).unwrap(), "a,b\nx,1\ny,2\nx,bad\n");
    let mut verify = lakemill();
    call(verify.args(["verify", "trips", "--data"]).arg(&data)).ok();
}
