//! `lakemill up`: worker and web service in one process, and its output.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use lakemill::adapters::sqlite::{SqliteKv, SqliteOptions};
use lakemill::ports::schedule::Schedule;
use rustix::process::{Pid, Signal};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::cli_doctor::output_of;
use crate::support::children::Reaped as _;
use crate::support::http_client::{get, send};
use crate::support::program::{call, lakemill};
use crate::support::site::{await_some, await_that};

/// A running `up`, and its output: the last word of each line by its first.
pub struct Up {
    child: Child,
    said: BTreeMap<String, String>,
    log: NamedTempFile,
}

impl Drop for Up {
    #[expect(clippy::print_stderr, reason = "a test that failed shows the log")]
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of `lakemill up`:\n{}", self.log());
        }
    }
}

fn command(data: &Path) -> Command {
    up_of(lakemill(), data)
}

/// `up` of a `lakemill` that is somewhere.
pub fn up_of(mut command: Command, data: &Path) -> Command {
    command.args(["up", "--port", "0", "--worker-port", "0", "--data"]).arg(data);
    command.env_remove("SVC_ADMIN_PASSWORD_HASH");
    command
}

impl Up {
    pub fn start(command: &mut Command) -> Self {
        let log = NamedTempFile::new().unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log.reopen().unwrap()).spawn_reaped().unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
        let mut said = BTreeMap::new();
        for line in lines {
            let (first, rest) = line.trim().split_once("  ").unwrap_or((&line, ""));
            said.insert(first.to_owned(), rest.trim().to_owned());
            if first == "its jobs" {
                break;
            }
        }
        let up = Self { child, said, log };
        assert!(up.said.contains_key("its jobs"), "it does not start");
        up
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    pub fn address(&self) -> String {
        self.said["open"].strip_prefix("http://").unwrap().to_owned()
    }

    /// Retries: a store check that exceeds its time limit counts as failed, and the next may pass.
    pub fn await_ready(address: &str) {
        await_that("it to be ready", || get(address, "/readyz").json()["ready"] == true);
    }

    /// The status of a login.
    fn log_in(&self, password: &str) -> u16 {
        let body = json!({ "password": password }).to_string();
        send(&self.address(), "POST", "/api/auth/login", &[], &body).status
    }

    pub fn end(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        let status = await_some("its end", || self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
    }
}

pub fn password(up: &Up) -> String {
    up.said["password"].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn both_services_respond_and_the_password_is_shown_once() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let up = Up::start(&mut command(&data));
    Up::await_ready(&up.address());
    Up::await_ready(up.said["the worker"].strip_prefix("http://").unwrap());
    let first = password(&up);
    assert_eq!((up.log_in("something else"), up.log_in(&first)), (401, 200));
    for name in ["SVC_ADMIN_PASSWORD_HASH", "SVC_WORKER_TOKEN", "SVC_WEBHOOK_SECRET"] {
        let file = data.join("secrets").join(name);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        assert!(!std::fs::read_to_string(file).unwrap().contains(&first));
    }
    up.end();
    let up = Up::start(&mut command(&data));
    assert!(!up.said["password"].contains(&first) && up.said["password"].contains("SVC_ADMIN_PASSWORD_HASH"));
    assert_eq!(up.log_in(&first), 200, "it is still the same");
    up.end();
    std::fs::remove_file(data.join("secrets/SVC_ADMIN_PASSWORD_HASH")).unwrap();
    let up = Up::start(&mut command(&data));
    let second = password(&up);
    assert_eq!((second == first, up.log_in(&second), up.log_in(&first)), (false, 200, 401));
}

#[test]
fn folder_is_served_by_one_process_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let up = Up::start(&mut command(&data));
    let process = format!("(process {})", up.child.id());
    call(&mut command(&data)).exits_with(1, &["is used by another `lakemill up`", &process]);
    Up::await_ready(&up.address());
    drop(up);
    Up::start(&mut command(&data)).end();
}

#[test]
fn password_hash_of_the_environment_is_used() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let hash = lakemill::adapters::password::PasswordHash::of("correct horse").unwrap().to_string();
    let up = Up::start(command(&data).env("SVC_ADMIN_PASSWORD_HASH", hash));
    assert!(up.said["password"].contains("SVC_ADMIN_PASSWORD_HASH"), "{:?}", up.said);
    assert_eq!(up.log_in("correct horse"), 200);
    assert!(!data.join("secrets/SVC_ADMIN_PASSWORD_HASH").exists());
}

#[test]
fn secrets_are_read_from_the_credentials_directory() {
    let home = tempfile::tempdir().unwrap();
    let (data, credentials) = (home.path().join("data"), home.path().join("credentials"));
    std::fs::create_dir(&credentials).unwrap();
    let hash = lakemill::adapters::password::PasswordHash::of("correct horse").unwrap().to_string();
    for (name, secret) in
        [("SVC_ADMIN_PASSWORD_HASH", hash.as_str()), ("SVC_WORKER_TOKEN", "a token given from outside")]
    {
        std::fs::write(credentials.join(name), format!("{secret}\n")).unwrap();
    }
    let up = Up::start(command(&data).env("CREDENTIALS_DIRECTORY", &credentials));
    assert!(up.said["password"].contains("as set in SVC_ADMIN_PASSWORD_HASH"), "{:?}", up.said);
    assert_eq!((up.log_in("correct horse"), up.log_in("something else")), (200, 401));
    assert!(!data.join("secrets/SVC_ADMIN_PASSWORD_HASH").exists(), "none is made beside the one that is given");
    let worker = up.said["the worker"].strip_prefix("http://").unwrap();
    let validate = |token: &str| {
        send(worker, "POST", "/config/validate", &[("Authorization", &format!("Bearer {token}"))], "{}").status
    };
    assert_eq!(validate("a token given from outside"), 200);
    let made = std::fs::read_to_string(data.join("secrets/SVC_WORKER_TOKEN")).unwrap();
    assert_eq!(validate(made.trim()), 401, "the folder's own is not used");
    up.end();
    std::fs::write(credentials.join("SVC_ADMIN_PASSWORD_HASH"), "nonsense\n").unwrap();
    let output = call(command(&data).env("CREDENTIALS_DIRECTORY", &credentials));
    assert!(!output.exits_with(78, &["SVC_ADMIN_PASSWORD_HASH"]).stderr.contains("nonsense"));
}

#[test]
fn password_that_was_not_shown_is_regenerated() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut failing = lakemill();
    failing.args(["up", "--worker-port", "0", "--port", &port, "--data"]).arg(&data);
    let output = call(failing.env_remove("SVC_ADMIN_PASSWORD_HASH")).exits_with(1, &[&port, "--port"]);
    assert!(!output.stdout.contains("password") && !output.stderr.contains("worker started"), "{output:?}");
    let up = Up::start(&mut command(&data));
    assert_eq!(up.log_in(&password(&up)), 200);
}

#[test]
fn all_faults_are_reported_before_start() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut wrong = command(&data);
    wrong.env("MAX_ATTEMPTS", "many").env("SVC_QUERY_TIMEOUT_MS", "1").env("SVC_BIND", "here").env("SVC_LOG", "info");
    let output = call(&mut wrong).exits_with(78, &["MAX_ATTEMPTS", "SVC_QUERY_TIMEOUT_MS", "3 environment variables"]);
    assert_eq!(
        output.stderr.matches("SVC_BIND").count(),
        1,
        "settings of both services are reported once: {}",
        output.stderr
    );
    assert!(
        !output.stderr.contains("worker started") && output.stdout.is_empty(),
        "{}{}",
        output.stderr,
        output.stdout
    );
    // A prefix of an invalid hash.
    let weak = "$argon2id$v=19$m=4096,t=1,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo";
    let output = call(command(&data).env("SVC_ADMIN_PASSWORD_HASH", weak)).exits_with(78, &["SVC_ADMIN_PASSWORD_HASH"]);
    assert!(!output.stderr.contains("worker started"), "{}", output.stderr);
    let up = Up::start(&mut command(&data));
    assert_eq!(up.log_in(&password(&up)), 200, "a password that was never shown is replaced");
}

#[test]
fn folder_is_private_unless_its_owner_opened_it() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("above/data");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let up = Up::start(&mut command(&data));
    for (name, expected) in
        [("", 0o700), ("secrets", 0o700), ("scratch", 0o700), ("cache", 0o700), ("kv.db", 0o600), ("up.lock", 0o600)]
    {
        assert_eq!(mode(&data.join(name)), expected, "`{name}`");
    }
    for name in ["objects", "objects/svc-lake", "objects/svc-pipelines", "objects/svc-warehouse"] {
        assert_eq!(mode(&data.join(name)) & 0o007, 0, "`{name}` is nothing to others");
    }
    up.end();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o750)).unwrap();
    Up::start(&mut command(&data)).end();
    assert_eq!(mode(&data), 0o750);
}

#[test]
fn first_start_reports_no_loss() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let up = Up::start(command(&data).arg("--demo"));
    // So that reconciliation doesn't enqueue the sample as a pipeline with lost events.
    assert!(SqliteKv::open(SqliteOptions::new(data.join("kv.db"))).unwrap().is_initialized().unwrap());
    let logged = up.log();
    assert!(logged.contains("worker started") && !logged.contains("lost"), "{logged}");
    drop(up);
    // The previous start's queue is deleted, but the pipeline exists.
    for file in ["kv.db", "kv.db-wal", "kv.db-shm"].map(|name| data.join(name)) {
        if file.exists() {
            std::fs::remove_file(file).unwrap();
        }
    }
    let up = Up::start(&mut command(&data));
    for part in ["key-value store is new", "lost its data"] {
        await_that("a look at the queue", || up.log().contains(part));
    }
}

#[test]
fn doctor_checks_the_ports_of_up() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let up = Up::start(&mut command(&data));
    let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
    let (web, worker) = (port(&up.said["open"]), port(&up.said["the worker"]));
    let doctor = || {
        let mut doctor = lakemill();
        // `up` ignores the port in the environment.
        doctor.env("PORT", "1").args(["doctor", "--json", "--data"]).arg(&data);
        output_of(&mut doctor)
    };
    let found = doctor();
    assert_eq!(found.at("problem"), Vec::<&str>::new());
    found
        .has(&format!("ok worker: running on port {worker}"), &["0 jobs in flight"])
        .has(&format!("ok web service: running on port {web}"), &[])
        .has(&format!("ok shared secrets: the worker at http://127.0.0.1:{worker} accepts SVC_WEBHOOK_SECRET"), &[])
        .has(&format!("ok shared secrets: the worker at http://127.0.0.1:{worker} accepts SVC_WORKER_TOKEN"), &[])
        .has("ok data folder: ", &[])
        .has("ok queue: 0 queued, 0 running", &[])
        .has("ok key-value store: SQLite ", &[])
        .has("ok webhook: not needed", &[]);
    up.end();
    doctor()
        .has("ok worker: not running here", &[&format!("port {worker} is free")])
        .has("ok web service: not running here", &[&format!("port {web} is free")]);
    std::fs::remove_file(data.join("secrets/SVC_ADMIN_PASSWORD_HASH")).unwrap();
    doctor().has("skipped web environment: ", &["run `doctor` with the environment of `up`"]);
}
