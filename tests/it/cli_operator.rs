//! Commands for operators: `enqueue`, `jobs`, `hash-password`, through the program on the real backends.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use lakemill::adapters::password::PasswordHash;
use lakemill::domain::job::{Job, JobStatus};
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use crate::support::children::Reaped as _;
use crate::support::program::{CommandOutput, call, lakemill, mapping};
use crate::support::site::{Kind, Site, await_some, await_that, job_id, slug};

const KINDS: [Kind; 2] = [Kind::Embedded, Kind::Fleet];

/// `lakemill` with nothing but the site's environment.
fn command(site: &Site, args: &[&str]) -> Command {
    let mut command = lakemill();
    command
        .args(args)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"))
        .envs(site.env());
    command
}

fn operator(site: &Site, args: &[&str]) -> CommandOutput {
    call(&mut command(site, args))
}

/// Enqueues a run and returns its id.
fn enqueue(site: &Site, args: &[&str]) -> String {
    let ran = operator(site, &[&["enqueue"], args].concat()).ok();
    assert_eq!(ran.stderr, "");
    ran.stdout.trim_end().to_owned()
}

fn jobs(site: &Site, more: &[&str]) -> Vec<Value> {
    let ran = operator(site, &[&["jobs", "trips", "--json"], more].concat()).ok();
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn queued(site: &Site, id: &str) -> Job {
    site.kv.job(&slug("trips"), &job_id(id)).unwrap().unwrap()
}

#[test]
fn enqueued_job_runs_and_appears_in_the_history() {
    for kind in KINDS {
        let site = Site::new(kind);
        // So that only the test enqueues jobs.
        site.configure("trips", &json!({ "version": 1, "auto_run": false, "mappings": [mapping(&json!({}))] }));
        site.put("trips", "in/1.csv", "a,b\nx,1\ny,bad\n");
        let id = enqueue(&site, &["trips", "--clean", "--prefix", "in/"]);
        let job = queued(&site, &id);
        assert_eq!((job.clean_run, job.prefix.as_str(), job.trigger.as_str()), (true, "pipelines/trips/in/", "manual"));
        let _worker = site.worker();
        assert_eq!(site.await_end(&job).status, JobStatus::Completed);
        let later = enqueue(&site, &["trips"]);
        site.await_end(&queued(&site, &later));
        let ran = operator(&site, &["jobs", "trips"]).ok();
        let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["job", "status", "trigger", "enqueued", "(UTC)", "duration", "rows"], "{}", ran.stdout);
        assert_eq!(lines[1][..3], [later.as_str(), "completed", "manual"]);
        assert_eq!(lines[2][..4], [id.as_str(), "completed", "manual,", "clean"]);
        assert!(ran.stdout.ends_with("1  1 row rejected\n"), "{}", ran.stdout);
        assert_eq!((lines.len(), ran.stderr.as_str()), (3, ""));
        let output = jobs(&site, &["--limit", "1"]);
        assert_eq!(
            (output.len(), output[0]["job_id"].as_str(), output[0]["status"].as_str()),
            (1, Some(later.as_str()), Some("completed"))
        );
    }
}

#[test]
fn jobs_are_filtered_by_status_and_across_pipelines() {
    for kind in KINDS {
        let site = Site::new(kind);
        site.pipeline("good", &json!({}));
        site.put("good", "in/1.csv", "a,b\nx,1\n");
        // Without a file its run fails.
        site.pipeline("bad", &json!({}));
        let worker = site.worker();
        let ended = |args: &[&str], pipeline: &str| {
            let id = enqueue(&site, args);
            site.await_end(&site.kv.job(&slug(pipeline), &job_id(&id)).unwrap().unwrap());
            id
        };
        let good = ended(&["good"], "good");
        let bad = ended(&["bad"], "bad");
        await_that("the index of jobs", || site.kv.is_built().unwrap());
        drop(worker);
        let waiting = enqueue(&site, &["good"]);
        let ids = |args: &[&str]| -> Vec<String> {
            let ran = operator(&site, &[&["jobs", "--json"], args].concat()).ok();
            let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["job_id"].as_str().unwrap().to_owned();
            ran.stdout.lines().map(id).collect()
        };
        assert_eq!(ids(&["--all"]), [&*waiting, &*bad, &*good]);
        assert_eq!(ids(&["--all", "--limit", "2"]), [&*waiting, &*bad]);
        assert_eq!(ids(&["--all", "--failed"]), [&*bad]);
        assert_eq!(ids(&["--all", "--active"]), [&*waiting]);
        assert_eq!(ids(&["good", "--active"]), [&*waiting]);
        assert_eq!((ids(&["bad", "--failed"]), ids(&["good", "--failed"])), (vec![bad.clone()], vec![]));
        let output = operator(&site, &["jobs", "--all"]).ok();
        assert!(
            output.stdout.starts_with("pipeline/job ") && output.stdout.contains(&format!("bad/{bad} ")),
            "{output:?}"
        );
        let output = operator(&site, &["jobs", "--all", "--limit", "1"]).ok();
        assert_eq!(output.stderr, "and older ones; --limit shows more\n");
        assert_eq!(operator(&site, &["jobs", "good", "--failed"]).ok().stderr, "no such jobs\n");
        operator(&site, &["jobs"]).exits_with(2, &["required", "Usage: lakemill jobs [OPTIONS] <SLUG | --all>"]);
        operator(&site, &["jobs", "good", "--all"]).exits_with(2, &["cannot be used with"]);
        operator(&site, &["jobs", "good", "--failed", "--active"]).exits_with(2, &["cannot be used with"]);
    }
}

#[test]
fn job_is_cancelled_unless_ended_or_unknown() {
    for kind in KINDS {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        let id = enqueue(&site, &["trips"]);
        let output = operator(&site, &["cancel", "trips", &id]).ok();
        assert_eq!(output.stdout, format!("cancellation of {id} requested\n"));
        let job = queued(&site, &id);
        let _worker = site.worker();
        let end = site.await_end(&job);
        assert_eq!(end.error.unwrap().code.to_string(), "cancelled");
        operator(&site, &["cancel", "trips", &id]).exits_with(1, &["has failed"]);
        operator(&site, &["cancel", "trips", "never-was"])
            .exits_with(1, &["the pipeline `trips` has no job never-was"]);
        operator(&site, &["cancel", "trips", "a b"]).exits_with(2, &["a b"]);
    }
}

#[test]
fn run_of_an_unknown_pipeline_is_rejected() {
    for kind in KINDS {
        let site = Site::new(kind);
        let begins = "\nA new pipeline starts with its config: create one at `pipelines/tirps/pipeline.json`\n";
        let message = format!("there is no pipeline `tirps`; there are none yet{begins}");
        operator(&site, &["enqueue", "tirps"]).exits_with(1, &[&message]);
        site.pipeline("trips", &json!({}));
        let message = format!("there is no pipeline `tirps`: did you mean `trips`?{begins}");
        let ran = operator(&site, &["enqueue", "tirps"]).exits_with(1, &[&message]);
        assert_eq!((ran.stdout.as_str(), site.kv.counts().unwrap().stream), ("", 0));
        // Leftovers of another kind of run don't count as a pipeline.
        let key = "pipelines/tirps/jobs/j-1.json";
        site.store.put(Bucket::Pipelines, key, b"{}", &WriteOptions::default()).unwrap();
        operator(&site, &["enqueue", "tirps"]).exits_with(1, &[&message]);
    }
}

#[test]
fn run_without_files_under_its_prefix_is_enqueued_with_a_warning() {
    for kind in KINDS {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        site.put("trips", "in/1.csv", "a,b\nx,1\n");
        let ran = operator(&site, &["enqueue", "trips", "--prefix", "nonsense"]).ok();
        let warning = "warning: no file of the lake starts with `pipelines/trips/nonsense`: the run will have no new \
                       file to read\n";
        assert_eq!(ran.stderr, warning);
        let _worker = site.worker();
        site.await_end(&queued(&site, ran.stdout.trim_end()));
        let output = operator(&site, &["jobs", "trips"]).ok();
        let note = "  no file read: no new or changed file under `nonsense`\n";
        assert!(output.stdout.ends_with(note), "{}", output.stdout);
        assert_eq!(enqueue(&site, &["trips", "--prefix", "in/1"]).len(), 36, "one that has a file has no warning");
    }
}

#[test]
fn job_of_a_dead_worker_is_shown_as_silent() {
    for kind in KINDS {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        site.put("trips", "in/1.csv", "a,b\nx,1\n");
        let id = enqueue(&site, &["trips"]);
        let mut worker = site.worker_with(&[("FAILPOINTS", "worker::started=pause")]);
        let shown = || operator(&site, &["jobs", "trips"]).ok().stdout;
        await_that("its start", || shown().contains(" running "));
        assert!(!shown().contains("no heartbeat"), "its worker lives");
        worker.kill();
        await_that("its silence", || shown().contains("no heartbeat for "));
        let row = shown().lines().find(|line| line.starts_with(&id)).unwrap().to_owned();
        assert!(row.contains(" running ") && row.contains("SVC_RECLAIM_IDLE_MS (120 s by default)"), "{row}");
        assert!(jobs(&site, &[])[0]["silent_ms"].as_u64().is_some_and(|ms| ms >= 5_000), "beyond its lock's life");
        let output = operator(&site, &["cancel", "trips", &id]).ok();
        assert!(output.stderr.contains("its worker doesn't respond now: no heartbeat for "), "{}", output.stderr);
        let _worker = site.worker();
        let end = site.await_end(&queued(&site, &id));
        assert_eq!((end.error.unwrap().code.to_string().as_str(), end.silent_ms), ("cancelled", None));
        assert!(!shown().contains("no heartbeat"));
    }
}

#[test]
fn run_without_a_config_is_enqueued_with_a_warning() {
    for kind in KINDS {
        let site = Site::new(kind);
        site.put("trips", "in/1.csv", "a,b\nx,1\n");
        let ran = operator(&site, &["enqueue", "trips"]).ok();
        let warning = "warning: the pipeline `trips` has no config: the run will fail unless one is created at \
                       `pipelines/trips/pipeline.json` before\n";
        assert_eq!(ran.stderr, warning);
        assert_eq!(queued(&site, ran.stdout.trim_end()).status, JobStatus::Queued);
    }
}

#[test]
fn invalid_arguments_enqueue_nothing() {
    let site = Site::new(Kind::Embedded);
    operator(&site, &["enqueue", "Trips!"]).exits_with(2, &["`Trips!` is not a slug: expected 1 to 63 of a-z"]);
    operator(&site, &["jobs", "trips", "--limit", "201"]).exits_with(2, &["201 is not in 1..=200"]);
    operator(&site, &["enqueue", "trips", "--prefix", "pipelines/other/"]).exits_with(
        1,
        &["--prefix: prefix: expected one that starts with `pipelines/trips/`, found `pipelines/other/`"],
    );
    let long = "x".repeat(1_100);
    operator(&site, &["enqueue", "trips", "--prefix", &long]).exits_with(1, &["expected at most 1024 bytes"]);
    let nowhere = site.home().join("nowhere").display().to_string();
    operator(&site, &["enqueue", "trips", "--data", &nowhere])
        .exits_with(1, &["--data `", "nowhere` does not exist: expected the data folder"]);
    assert_eq!(site.kv.counts().unwrap().stream, 0);
}

#[test]
fn invalid_environment_has_a_distinct_exit_status() {
    for args in [&["enqueue", "trips"][..], &["jobs", "trips"]] {
        let mut site = Site::new(Kind::Embedded);
        site.set("KV_URL", "mysql://x").set("OBJ_REGION", "");
        let parts = [
            "lakemill: 2 environment variables can't be used:\n",
            "\n  OBJ_REGION (region of the object store) is missing\n",
            "\n  KV_URL (URL of the key-value store): expected `redis://[user]",
        ];
        operator(&site, args).exits_with(78, &parts);
    }
    let site = Site::new(Kind::Embedded);
    let ran = call(command(&site, &["webhook", "show"]).env_remove("OBJ_ENDPOINT_URL"));
    ran.exits_with(
        78,
        &["1 environment variable can't be used:", "OBJ_ENDPOINT_URL (URL of the object store) is missing"],
    );
}

#[test]
fn enqueue_needs_neither_a_worker_nor_its_secrets() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("trips", &json!({}));
    for args in [&["enqueue", "trips"][..], &["jobs", "trips"]] {
        call(command(&site, args).env_remove("SVC_WORKER_TOKEN").env_remove("SVC_WEBHOOK_SECRET")).ok();
    }
}

#[test]
fn pipeline_without_jobs_has_an_empty_history() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("trips", &json!({}));
    let ran = operator(&site, &["jobs", "trips"]).ok();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "no jobs; `lakemill enqueue trips` enqueues one\n"));
    operator(&site, &["jobs", "trips", "--follow"]).ok();
    operator(&site, &["jobs", "tirps"]).exits_with(1, &["there is no pipeline `tirps`: did you mean `trips`?"]);
}

#[test]
fn newest_failure_is_shown_in_full() {
    let site = Site::new(Kind::Embedded);
    site.configure(
        "trips",
        &json!({ "version": 1, "mappings": [{ "table": "T", "files": ["*.csv"], "columns": [] }] }),
    );
    site.await_end(&{
        let job = site.enqueue("trips");
        let _worker = site.worker();
        site.await_end(&job);
        job
    });
    let ran = operator(&site, &["jobs", "trips"]).ok();
    assert!(
        ran.stderr.contains("failed: invalid_config: ") && ran.stderr.contains("\n  /mappings/0/table: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn malformed_records_are_skipped_with_a_warning() {
    let site = Site::new(Kind::Embedded);
    let key = "pipelines/trips/jobs/broken.json";
    site.store.put(Bucket::Pipelines, key, b"{\x1b[2J", &WriteOptions::default()).unwrap();
    let id = enqueue_anyway(&site);
    let ran = operator(&site, &["jobs", "trips"])
        .ok()
        .exits_with(0, &["warning: `pipelines/trips/jobs/broken.json` is not a record"]);
    assert!(ran.stdout.contains(&id), "{}", ran.stdout);
}

/// A run of a pipeline that has a file and no config.
fn enqueue_anyway(site: &Site) -> String {
    site.put("trips", "in/1.csv", "a,b\nx,1\n");
    operator(site, &["enqueue", "trips"]).ok().stdout.trim_end().to_owned()
}

/// A running command; killed when dropped.
struct RunningCommand(Child);

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl RunningCommand {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn_reaped().unwrap())
    }

    /// Its exit status and the rest of its output.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (self.0.wait().unwrap().code(), text)
    }
}

#[test]
fn follow_ends_with_the_last_active_job() {
    for kind in KINDS {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        site.put("trips", "in/1.csv", "a,b\nx,1\n");
        let ids = [enqueue(&site, &["trips"]), enqueue(&site, &["trips"])];
        let mut following = RunningCommand::start(&mut command(&site, &["jobs", "trips", "--follow"]));
        let _worker = site.worker();
        let (status, text) = following.end();
        assert_eq!(status, Some(0), "{text}");
        for id in &ids {
            let last = text.lines().rfind(|line| line.contains(id.as_str())).unwrap();
            assert!(last.split_whitespace().nth(1) == Some("completed"), "{text}");
        }
    }
}

#[test]
fn following_a_failing_job_fails() {
    let site = Site::new(Kind::Embedded);
    let id = enqueue_anyway(&site);
    let mut following = RunningCommand::start(&mut command(&site, &["jobs", "trips", "--follow", "--json"]));
    let _worker = site.worker();
    let (status, text) = following.end();
    assert_eq!(status, Some(1), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((last["job_id"].as_str(), last["status"].as_str()), (Some(id.as_str()), Some("failed")));
    assert_eq!(last["error"]["code"], "pipeline_config_not_found");
    // The job has ended and is the newest.
    assert_eq!(operator(&site, &["jobs", "trips", "--follow"]).status, 1);
}

#[test]
fn unavailable_store_is_reported_with_the_operation() {
    let mut site = Site::new(Kind::Fleet);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    site.pipeline("trips", &json!({}));
    site.set("KV_URL", &format!("redis://:hush@{nobody}/0"));
    let away = format!("the key-value store can't be reached: Redis at {nobody}: Connection refused");
    for (args, step) in [(&["enqueue", "trips"][..], "(step `enqueue`)"), (&["jobs", "trips"], "(step `unadopted`)")] {
        let ran = operator(&site, args).exits_with(1, &[&away, step]);
        assert!(!ran.stderr.contains("hush") && ran.stdout.is_empty(), "{}", ran.stderr);
    }
}

#[test]
fn port_without_redis_is_reported() {
    let mut site = Site::new(Kind::Fleet);
    site.pipeline("trips", &json!({}));
    let http = site.env()["OBJ_ENDPOINT_URL"].clone();
    let address = http.strip_prefix("http://").unwrap();
    site.set("KV_URL", &format!("redis://{address}"));
    let message = format!("the key-value store can't be reached: Redis at {address}: the server is not Redis");
    operator(&site, &["jobs", "trips"]).exits_with(1, &[&message, "check host and port of KV_URL"]);
}

#[test]
fn unavailable_object_store_is_reported_with_its_address() {
    let mut site = Site::new(Kind::Fleet);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    site.set("OBJ_ENDPOINT_URL", &format!("http://{nobody}"));
    let away = format!("the store at http://{nobody}: Connection refused");
    for (args, operation) in [
        (&["jobs", "trips"][..], "pipelines bucket: listing `pipelines/trips/jobs/`: "),
        (&["webhook", "show"], "lake bucket: reading the notification rules: "),
    ] {
        let ran = operator(&site, args).exits_with(1, &[&format!("{operation}{away}")]);
        assert!(!ran.stderr.contains("``"), "{}", ran.stderr);
    }
}

#[test]
fn commands_accept_the_folder_of_up() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let up = lakemill()
        .args(["up", "--port", "0", "--worker-port", "0", "--data"])
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn_reaped();
    let mut up = RunningCommand(up.unwrap());
    let mut first = String::new();
    // Kept open: the command prints more.
    let mut says = BufReader::new(up.0.stdout.take().unwrap());
    says.read_line(&mut first).unwrap();
    assert!(first.starts_with("lakemill is running"), "{first}");
    let ask = |args: &[&str]| call(lakemill().args(args).arg("--data").arg(&data).env_clear().env("PATH", "/usr/bin"));
    ask(&["enqueue", "trips"]).exits_with(1, &["there is no pipeline `trips`; there are none yet"]);
    let config = data.join("objects/svc-pipelines/pipelines/trips/pipeline.json");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "{}").unwrap();
    let id = ask(&["enqueue", "trips"]).ok().stdout.trim_end().to_owned();
    await_that("the job's end", || ask(&["jobs", "trips"]).stdout.contains("failed"));
    let output = ask(&["jobs", "trips", "--json"]).ok();
    let job: Value = serde_json::from_str(output.stdout.trim_end()).unwrap();
    assert_eq!(job["job_id"].as_str(), Some(id.as_str()));
    let output = ask(&["doctor", "--json"]);
    let output: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(
        output["checks"].as_array().unwrap().iter().any(|check| check["check"] == "queue" && check["level"] == "ok")
    );
}

fn hash(input: &[u8]) -> CommandOutput {
    let mut child = lakemill()
        .arg("hash-password")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn_reaped()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let status = output.status.code().unwrap();
    CommandOutput { status, stdout: text(output.stdout), stderr: text(output.stderr), memory_bytes: 0 }
}

#[test]
fn password_from_a_pipe_is_hashed() {
    for (input, password) in
        [("correct horse\n", "correct horse"), ("correct horse\r\nmore\n", "correct horse"), ("pässwörd", "pässwörd")]
    {
        let ran = hash(input.as_bytes()).ok();
        assert_eq!((ran.stderr.as_str(), ran.stdout.lines().count()), ("", 1));
        let hash = PasswordHash::parse(ran.stdout.trim_end()).unwrap();
        assert!(hash.verify(password) && !hash.verify("correct horse\n"));
        assert!(ran.stdout.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", ran.stdout);
    }
}

#[test]
fn invalid_passwords_are_rejected_and_not_shown() {
    for (input, why) in [
        (&b""[..], "the password is empty"),
        (b"\n", "the password is empty"),
        (b"hunter2\n", "the password has 7 characters, expected at least 8"),
        (b"\xff\xfe12345678\n", "the password is not UTF-8"),
    ] {
        let ran = hash(input).exits_with(1, &[why]);
        assert!(ran.stdout.is_empty() && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
    hash("x".repeat(5_000).as_bytes()).exits_with(1, &["expected at most 1024"]);
}

/// Types each argument as a line after a prompt, in a separate terminal, and prints the terminal's output.
const AT_A_TERMINAL: &str = r#"
import os, pty, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "hash-password"])
shown = b""
def read():
    global shown
    try:
        more = os.read(fd, 4096)
    except OSError:
        more = b""
    shown += more
    return more
for prompt, line in zip((b"Password: ", b"Repeat it: "), sys.argv[2:]):
    while not shown.rstrip(b" ").endswith(prompt.rstrip(b" ")) and read():
        pass
    # Until then the terminal would show what is typed.
    while termios.tcgetattr(fd)[3] & termios.ECHO:
        time.sleep(0.01)
    os.write(fd, line.encode() + b"\n")
while read():
    pass
_, status = os.waitpid(pid, 0)
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(status))
"#;

fn at_a_terminal(lines: &[&str]) -> CommandOutput {
    let python = std::env::var("LAKEMILL_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    call(Command::new(python).args(["-c", AT_A_TERMINAL, env!("CARGO_BIN_EXE_lakemill")]).args(lines))
}

#[test]
fn password_at_a_terminal_is_requested_twice_and_not_shown() {
    let ran = at_a_terminal(&["correct horse", "correct horse"]).ok();
    assert!(!ran.stdout.contains("correct horse"), "{}", ran.stdout);
    let hash = ran.stdout.lines().rfind(|line| line.starts_with("$argon2id$")).unwrap();
    assert!(PasswordHash::parse(hash.trim_end()).unwrap().verify("correct horse"));
    let ran = at_a_terminal(&["correct horse", "correct hearse"]);
    assert!(ran.status == 1 && ran.stdout.contains("the passwords don't match"), "{}", ran.stdout);
}

#[test]
fn running_job_is_shown_with_its_progress() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("trips", &json!({}));
    site.put("trips", "in/1.csv", "a,b\nx,1\n");
    let id = enqueue(&site, &["trips"]);
    let worker = site.worker_with(&[("FAILPOINTS", "convert::fetch=return(stop)")]);
    let line = await_some("a running job", || {
        let text = operator(&site, &["jobs", "trips"]).stdout;
        text.lines().find(|line| line.starts_with(&id) && line.contains(" running ")).map(str::to_owned)
    });
    assert!(["planning", "converting", "publishing", "finishing"].iter().any(|stage| line.contains(stage)), "{line}");
    drop(worker);
}

#[test]
fn runs_are_paused_shown_and_resumed() {
    for kind in KINDS {
        let site = Site::new(kind);
        site.pipeline("trips", &json!({}));
        assert_eq!(operator(&site, &["pause"]).ok().stdout, "no pipeline is paused\n");
        operator(&site, &["pause", "tripz"]).exits_with(1, &["there is no pipeline `tripz`", "did you mean `trips`?"]);
        let ran = operator(&site, &["pause", "trips", "--reason", "Ann\u{1b} moves the lake"]).ok();
        assert_eq!(ran.stdout, "the runs of `trips` are paused\n");
        operator(&site, &["pause", "--all"]).ok();
        let shown = operator(&site, &["pause"]).ok().stdout;
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert!(lines[0].starts_with("all pipelines, since 2") && lines[0].ends_with('Z'), "{shown}");
        assert!(lines[1].starts_with("trips, since 2") && lines[1].ends_with(" moves the lake"), "{shown}");
        assert!(!shown.contains('\u{1b}'));
        let ran = operator(&site, &["resume", "trips"]).ok();
        assert_eq!(ran.stdout, "the runs of `trips` are resumed\n");
        assert!(ran.stderr.contains("end that with `lakemill resume --all`"), "{}", ran.stderr);
        operator(&site, &["resume", "trips"]).exits_with(1, &["the pipeline `trips` is not paused"]);
        operator(&site, &["resume", "--all"]).ok();
        operator(&site, &["resume", "--all"]).exits_with(1, &["all pipelines are not paused"]);
        operator(&site, &["resume"]).exits_with(2, &["--all"]);
        operator(&site, &["pause", "trips", "--all"]).exits_with(2, &["cannot be used with"]);
    }
}
