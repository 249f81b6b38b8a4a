//! `lakemill up`: worker and web service in one process, and what it tells of them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::support::http_client::{get, send};
use crate::support::program::{call, lakemill};
use crate::support::site::await_some;

/// A running `up`, and what it said: the last word of a line by its first.
struct Up {
    child: Child,
    said: BTreeMap<String, String>,
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(data: &Path) -> Command {
    let mut command = lakemill();
    command.args(["up", "--port", "0", "--worker-port", "0", "--data"]).arg(data);
    command.env_remove("SVC_ADMIN_PASSWORD_HASH");
    command
}

impl Up {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
        let mut said = BTreeMap::new();
        for line in lines {
            let (first, rest) = line.trim().split_once("  ").unwrap_or((&line, ""));
            said.insert(first.to_owned(), rest.trim().to_owned());
            if first == "its jobs" {
                break;
            }
        }
        Self { child, said }
    }

    fn address(&self) -> String {
        self.said["open"].strip_prefix("http://").unwrap().to_owned()
    }

    /// The status of a login.
    fn log_in(&self, password: &str) -> u16 {
        let body = json!({ "password": password }).to_string();
        send(&self.address(), "POST", "/api/auth/login", &[], &body).status
    }

    fn end(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        let status = await_some("its end", || self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
    }
}

fn password(up: &Up) -> String {
    up.said["password"].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn both_services_answer_and_the_password_is_told_the_first_time() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let up = Up::start(&mut command(&data));
    assert_eq!(get(&up.address(), "/readyz").json()["ready"], true);
    assert_eq!(get(up.said["the worker"].strip_prefix("http://").unwrap(), "/readyz").json()["ready"], true);
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
fn a_folder_is_served_by_one_process_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let up = Up::start(&mut command(&data));
    let process = format!("(process {})", up.child.id());
    call(&mut command(&data)).told(1, &["is served by another `lakemill up`", &process]);
    assert_eq!(get(&up.address(), "/readyz").json()["ready"], true);
    drop(up);
    Up::start(&mut command(&data)).end();
}

#[test]
fn a_hash_of_the_environment_is_honoured() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let hash = lakemill::adapters::password::PasswordHash::of("correct horse").unwrap().to_string();
    let up = Up::start(command(&data).env("SVC_ADMIN_PASSWORD_HASH", hash));
    assert!(up.said["password"].contains("SVC_ADMIN_PASSWORD_HASH"), "{:?}", up.said);
    assert_eq!(up.log_in("correct horse"), 200);
    assert!(!data.join("secrets/SVC_ADMIN_PASSWORD_HASH").exists());
}

#[test]
fn secrets_come_from_the_service_managers_folder_of_credentials() {
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
    assert!(up.said["password"].contains("that of SVC_ADMIN_PASSWORD_HASH"), "{:?}", up.said);
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
    let told = call(command(&data).env("CREDENTIALS_DIRECTORY", &credentials));
    assert!(!told.told(78, &["SVC_ADMIN_PASSWORD_HASH"]).stderr.contains("nonsense"));
}

#[test]
fn a_password_that_nobody_saw_is_made_anew() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut failing = lakemill();
    failing.args(["up", "--worker-port", "0", "--port", &port, "--data"]).arg(&data);
    let told = call(failing.env_remove("SVC_ADMIN_PASSWORD_HASH")).told(1, &[&port, "--port"]);
    assert!(!told.stdout.contains("password"));
    let up = Up::start(&mut command(&data));
    assert_eq!(up.log_in(&password(&up)), 200);
}
