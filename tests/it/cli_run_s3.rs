//! `lakemill run` between folders and buckets, on an S3 server.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lakemill::adapters::s3::{S3Options, S3Store};
use lakemill::config::{Buckets, StoreCredentials};
use lakemill::ports::ObjectStore as _;
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::children::Reaped as _;
use crate::support::http_proxy::ProxyAction;
use crate::support::program::{CommandOutput, Program, call, lakemill, mapping};
use crate::support::s3_server::s3s_fs;
use crate::support::site::{TEST_TIMEOUT, await_some, await_that};

const ACCESS: [&str; 4] = ["OBJ_ENDPOINT_URL", "OBJ_REGION", "OBJ_ACCESS_KEY_ID", "OBJ_SECRET_ACCESS_KEY"];
const LOCK: &str = "_lakemill/run.lock";
/// Of the lock of a run that dies or is suspended: short enough to wait for its end, long enough for a busy machine to renew it.
const SHORT_TTL: &str = "run_lock::ttl_ms=return(15000)";

/// A pipeline whose lake and tables are in a folder or in buckets.
struct RunFixture {
    program: Program,
    options: S3Options,
    store: S3Store,
    env: Vec<(&'static str, String)>,
}

impl RunFixture {
    fn new(mappings: &[Value]) -> Self {
        Self::at(mappings, s3s_fs().options())
    }

    fn at(mappings: &[Value], options: S3Options) -> Self {
        let StoreCredentials::Key { id, secret } = &options.credentials else { panic!("servers have keys") };
        let values =
            [&options.endpoint, &options.region, id.reveal(), secret.reveal()].map(|text: &str| text.to_owned());
        let env = ACCESS.into_iter().zip(values).collect();
        Self { program: Program::new(mappings), store: S3Store::open(options.clone()).unwrap(), options, env }
    }

    /// Three days in as many files, partitioned by day: enough to interrupt between two PUTs.
    fn three_days() -> Self {
        let fixture = Self::new(&[mapping(&json!({ "files": ["**/*.csv"], "partition_by": ["a"] }))]);
        for day in ["x", "y", "z"] {
            fixture.put(&format!("{day}.csv"), &format!("a,b\n{day},1\n{day},2\n{day},bad\n"));
        }
        fixture
    }

    fn buckets(&self) -> &Buckets {
        &self.options.buckets
    }

    /// Writes a source into the folder and into the bucket, below `shop/`.
    fn put(&self, name: &str, text: &str) {
        self.program.put(&format!("in/{name}"), text);
        let key = format!("shop/in/{name}");
        self.store.put(Bucket::Lake, &key, text.as_bytes(), &WriteOptions::default()).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.program.source(&format!("in/{name}"))).unwrap();
        self.store.delete(Bucket::Lake, &[format!("shop/in/{name}")], &WriteOptions::default()).unwrap();
    }

    fn lake(&self) -> String {
        format!("s3://{}/shop", self.buckets().lake)
    }

    fn tables(&self) -> String {
        format!("s3://{}/tables/of shop", self.buckets().warehouse)
    }

    fn command(&self, input: &str, output: &str) -> Command {
        let mut command = lakemill();
        command.arg("run").arg(self.program.config()).args(["--input", input, "--output", output, "--quiet"]);
        command.env("SVC_SCRATCH_DIR", self.program.home().join("scratch"));
        command.envs(self.env.iter().map(|(name, value)| (*name, value.as_str())));
        command
    }

    fn run(&self, input: &str, output: &str) -> CommandOutput {
        call(&mut self.command(input, output))
    }

    /// Every object below a prefix of the warehouse, by its key relative to that.
    fn objects(&self, prefix: &str) -> BTreeMap<String, Vec<u8>> {
        let read = |key: String| {
            let mut bytes = Vec::new();
            self.store.get(Bucket::Warehouse, &key, None).unwrap().body.read_to_end(&mut bytes).unwrap();
            (key[prefix.len()..].to_owned(), bytes)
        };
        let listed = list_all(&self.store, Bucket::Warehouse, prefix).unwrap();
        listed.into_iter().map(|object| read(object.key)).collect()
    }

    fn output_objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.objects("tables/of shop/")
    }

    /// The tables that a run from folder to folder makes of the same sources.
    fn expected(&self) -> (BTreeMap<String, Vec<u8>>, usize) {
        self.program.run(&["--quiet"]).ok();
        tables_of(self.program.tree())
    }

    /// Starts a run to the bucket with these failpoints.
    fn start(&self, failpoints: &str) -> Child {
        let mut command = self.command(&self.lake(), &self.tables());
        command.env("FAILPOINTS", failpoints).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn_reaped().unwrap()
    }

    fn await_lock(&self) {
        let key = format!("tables/of shop/{LOCK}");
        await_some("the lock", || self.store.head(Bucket::Warehouse, &key).unwrap());
    }
}

/// The files of the table, and how many there are of rejected rows, which differ in the id of their run.
fn tables_of(files: BTreeMap<String, Vec<u8>>) -> (BTreeMap<String, Vec<u8>>, usize) {
    let rejects = files.keys().filter(|name| name.starts_with("_rejected_rows/table=t/")).count();
    (files.into_iter().filter(|(name, _)| name.starts_with("t/")).collect(), rejects)
}

/// Waits for the end: the exit status, `None` if a signal ended it, and what it wrote to stderr.
fn end_of(mut child: Child) -> (Option<i32>, String) {
    let until = Instant::now() + TEST_TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        assert!(Instant::now() < until, "the run ends");
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status, text)
}

fn is_stopped(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    status.lines().any(|line| line.starts_with("State:") && line.contains("T (stopped)"))
}

#[test]
fn run_between_buckets_and_folders_builds_the_tables_of_a_run_between_folders() {
    let fixture = RunFixture::three_days();
    let (folder, out) = (fixture.program.lake().display().to_string(), fixture.program.home().join("of-bucket"));
    let out_text = out.display().to_string();
    let within = format!("s3://{}/shop/out", fixture.buckets().lake);
    let routes = [
        (fixture.lake(), fixture.tables()),
        (folder, format!("s3://{}/from-folder", fixture.buckets().warehouse)),
        (fixture.lake(), out_text),
        // The output in the input is not a source.
        (fixture.lake(), within),
    ];
    let made = |fixture: &RunFixture| {
        let read = |path: std::path::PathBuf, name: &str| std::fs::read(path.join(name)).unwrap();
        let in_folder = crate::support::program::files(&out).into_iter().filter(|name| !name.starts_with('.'));
        let in_folder = in_folder.map(|name| (name.clone(), read(out.clone(), &name))).collect();
        let of_lake = list_all(&fixture.store, Bucket::Lake, "shop/out/").unwrap();
        let of_lake = of_lake.into_iter().map(|object| {
            let mut bytes = Vec::new();
            fixture.store.get(Bucket::Lake, &object.key, None).unwrap().body.read_to_end(&mut bytes).unwrap();
            (object.key["shop/out/".len()..].to_owned(), bytes)
        });
        [fixture.output_objects(), fixture.objects("from-folder/"), in_folder, of_lake.collect()].map(tables_of)
    };
    let check = |summary: &str| {
        let expected = fixture.expected();
        for (input, output) in &routes {
            let ran = fixture.run(input, output).ok();
            assert!(ran.stdout.contains(summary), "{input} to {output}: {}", ran.stdout);
            assert_eq!(ran.stderr, "");
        }
        for (made, route) in made(&fixture).into_iter().zip(&routes) {
            assert_eq!(Vec::from_iter(made.0.keys()), Vec::from_iter(expected.0.keys()), "{route:?}");
            assert!(made == expected, "{route:?}: other bytes");
        }
    };
    check("3 files read, 3 partitions written");
    check("nothing changed: 3 files are unchanged");
    fixture.put("y.csv", "a,b\ny,7\nw,1\n");
    fixture.remove("x.csv");
    check("1 file read, 2 partitions written");
    let left = list_all(&fixture.store, Bucket::Warehouse, "").unwrap();
    assert!(left.iter().all(|object| !object.key.contains("probe") && !object.key.contains("intent-")), "{left:?}");
}

#[test]
fn published_logs_name_the_bucket_and_earlier_runs_are_found_again() {
    let fixture = RunFixture::new(&[mapping(&json!({ "files": ["**/*.csv"], "publish": ["iceberg"] }))]);
    fixture.put("1.csv", "a,b\nx,1\n");
    fixture.run(&fixture.lake(), &fixture.tables()).ok();
    let metadata = fixture.output_objects();
    let (name, json) = metadata.iter().find(|(name, _)| name.ends_with(".metadata.json")).unwrap();
    let json: Value = serde_json::from_slice(json).unwrap();
    let location = format!("{}/t", fixture.tables());
    assert_eq!(json["location"], json!(location), "{name}");
}

#[test]
fn dry_run_writes_nothing_to_the_bucket() {
    let fixture = RunFixture::three_days();
    let ran = call(fixture.command(&fixture.lake(), &fixture.tables()).arg("--dry-run")).ok();
    assert!(ran.stdout.contains("would write 3 partitions") && ran.stdout.contains("dry run"), "{}", ran.stdout);
    assert_eq!(list_all(&fixture.store, Bucket::Warehouse, "").unwrap(), []);
}

#[test]
fn missing_permission_for_the_bucket_is_named_and_no_other_is_required() {
    let fixture = RunFixture::three_days();
    for (input, output) in [
        (fixture.lake(), fixture.program.output().display().to_string()),
        (fixture.program.lake().display().to_string(), fixture.tables()),
    ] {
        let mut command = fixture.command(&input, &output);
        for name in ACCESS {
            command.env_remove(name);
        }
        let ran = call(&mut command).exits_with(78, &ACCESS);
        assert!(ran.stderr.contains("OBJ_REGION (region of the object store) is missing"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("S3_BUCKET") && !ran.stderr.contains("KV_URL"), "{}", ran.stderr);
        call(fixture.command(&input, &output).env_remove("OBJ_REGION"))
            .exits_with(78, &["1 environment variable can't be used:", "OBJ_REGION"]);
    }
    call(fixture.command(&fixture.lake(), &fixture.tables()).env("OBJ_SECRET_ACCESS_KEY", "wrong"))
        .exits_with(1, &[&format!("--input `{}`", fixture.lake()), "check OBJ_SECRET_ACCESS_KEY"]);
    call(fixture.command(&fixture.lake(), &fixture.tables()).env("OBJ_ENDPOINT_URL", "file:///srv/objects"))
        .exits_with(1, &["OBJ_ENDPOINT_URL: it is a folder of this machine; give a path instead of `s3://…`"]);
    assert_eq!(fixture.output_objects(), BTreeMap::new());
}

#[test]
fn addresses_that_cannot_be_used_are_refused() {
    let fixture = RunFixture::three_days();
    let (lake, tables) = (fixture.lake(), fixture.tables());
    fixture.run("gs://bucket/x", &tables).exits_with(2, &["--input", "expected a folder or `s3://bucket/prefix`"]);
    fixture.run(&lake, "s3://No_Bucket/x").exits_with(2, &["--output", "bucket `No_Bucket`: expected 3 to 63 of a-z"]);
    fixture
        .run(&lake, &lake)
        .exits_with(1, &[&format!("`{lake}` is both --input and --output: expected two prefixes")]);
    fixture
        .run(&format!("{lake}/in"), &lake)
        .exits_with(1, &[&format!("--input `{lake}/in` is inside --output `{lake}`, whose folders are tables")]);
    fixture
        .run("s3://no-such-bucket/x", &tables)
        .exits_with(1, &["--input `s3://no-such-bucket/x`: the bucket `no-such-bucket` does not exist"]);
    fixture
        .run(&lake, "s3://no-such-bucket/x")
        .exits_with(1, &["--output `s3://no-such-bucket/x`: the bucket `no-such-bucket` does not exist"]);
    fixture.store.put(Bucket::Warehouse, "tables/of shop/mine.txt", b"x", &WriteOptions::default()).unwrap();
    fixture.run(&lake, &tables).exits_with(
        1,
        &[&format!("--output `{tables}` contains `mine.txt`, which no run created: name an empty prefix")],
    );
    let nothing = format!("s3://{}/nothing", fixture.buckets().lake);
    let ran = fixture.run(&nothing, &format!("{tables}/new"));
    ran.exits_with(1, &["(no_input)", &format!("globs are relative to `{nothing}`"), "the tables are unchanged"]);
}

#[test]
fn failed_run_names_its_rejects_by_address() {
    let fixture =
        RunFixture::new(&[mapping(&json!({ "files": ["**/*.csv"], "rejects": { "max_rows": 0, "max_ratio": 0.0 } }))]);
    fixture.put("1.csv", "a,b\nx,bad\n");
    let rejects = format!("rejected rows: {}/_lakemill/jobs/", fixture.tables());
    fixture
        .run(&fixture.lake(), &fixture.tables())
        .exits_with(1, &["(too_many_rejects)", "`in/1.csv` line 2", &rejects]);
    assert!(fixture.output_objects().keys().any(|name| name.ends_with(".rejected.parquet")));
}

/// A run that dies at a failpoint, and the one after it, which waits until the lock of the first expires.
fn dies_at(point: &str) {
    let fixture = RunFixture::three_days();
    let (status, text) = end_of(fixture.start(&format!("{SHORT_TTL};{point}")));
    assert_eq!(status, None, "{point}: {text}");
    let left = fixture.output_objects();
    assert!(left.keys().any(|name| name.contains("intent-")), "{point}: {:?}", left.keys());
    let ran = fixture.run(&fixture.lake(), &fixture.tables()).ok();
    assert!(ran.stderr.is_empty() || ran.stderr.contains("waiting up to"), "{point}: {}", ran.stderr);
    let made = fixture.output_objects();
    assert!(!made.keys().any(|name| name.contains("intent-")), "{point}: {:?}", made.keys());
    assert!(tables_of(made) == fixture.expected(), "{point}");
}

#[test]
fn run_after_a_killed_one_takes_over_its_lock_and_builds_complete_tables() {
    std::thread::scope(|scope| {
        for point in [
            "publish::between_puts=1*off->return(kill)",
            "commit::before_root=return(kill)",
            "commit::after_root=return(kill)",
        ] {
            scope.spawn(move || dies_at(point));
        }
    });
}

#[test]
fn stop_signal_ends_a_run_with_a_distinct_exit_status_and_unlocks_the_output() {
    let fixture = RunFixture::three_days();
    let run = fixture.start("convert::piece=1*sleep(3000)->off");
    fixture.await_lock();
    kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    let (status, text) = end_of(run);
    assert_eq!(status, Some(75), "{text}");
    assert!(text.contains("the run was cancelled (cancelled)") && text.contains("stopped by a signal"), "{text}");
    assert_eq!(fixture.run(&fixture.lake(), &fixture.tables()).ok().stderr, "", "nobody is waited for");
    assert!(tables_of(fixture.output_objects()) == fixture.expected());
}

#[test]
fn second_run_on_an_output_ends_while_the_first_is_alive() {
    let fixture = RunFixture::three_days();
    // The first renews its lock several times in this pause.
    let first = fixture.start("run_lock::ttl_ms=return(15000);commit::before_root=sleep(40000)");
    fixture.await_lock();
    fixture.run(&fixture.lake(), &fixture.tables()).exits_with(
        1,
        &["waiting up to", &format!("--output `{}`: it is being written by another run, of `", fixture.tables())],
    );
    // By this machine's clock the lock would have expired.
    let folder = fixture.program.lake().display().to_string();
    let mut ahead = fixture.command(&folder, &fixture.tables());
    ahead.env("FAILPOINTS", "clock::ahead_ms=return(600000)");
    call(&mut ahead).exits_with(1, &["it is being written by another run"]);
    let (status, text) = end_of(first);
    assert_eq!(status, Some(0), "{text}");
    assert!(tables_of(fixture.output_objects()) == fixture.expected());
    let ran = fixture.run(&fixture.lake(), &fixture.tables()).ok();
    assert_eq!(ran.stderr, "", "a released lock is free");
}

#[test]
fn run_that_lost_its_lock_while_suspended_writes_nothing() {
    let fixture = RunFixture::three_days();
    let first = fixture.start(&format!("{SHORT_TTL};commit::before_root=return(stop)"));
    await_that("the first run to be stopped", || is_stopped(&first));
    fixture.run(&fixture.lake(), &fixture.tables()).ok();
    let made = fixture.output_objects();
    kill_process(Pid::from_child(&first), Signal::CONT).unwrap();
    let (status, text) = end_of(first);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("(lease_lost)") && text.contains("nothing was published"), "{text}");
    assert!(fixture.output_objects() == made, "not even its lock");
    assert!(tables_of(made) == fixture.expected());
}

#[test]
fn store_without_conditional_writes_is_an_input_but_not_an_output() {
    let proxy = s3s_fs().behind(|passing| {
        passing.drop_header("if-match");
        passing.drop_header("if-none-match");
        ProxyAction::Forward
    });
    let fixture = RunFixture::at(&[mapping(&json!({ "files": ["**/*.csv"] }))], s3s_fs().options_at(&proxy.url()));
    fixture.put("1.csv", "a,b\nx,1\n");
    fixture.run(&fixture.lake(), &fixture.tables()).exits_with(1, &["the store does not enforce conditional writes"]);
    assert_eq!(fixture.output_objects(), BTreeMap::new());
    fixture.run(&fixture.lake(), &fixture.program.output().display().to_string()).ok();
    assert_eq!(fixture.program.rows("t"), ["x|1"]);
}
