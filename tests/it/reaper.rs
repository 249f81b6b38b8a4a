//! Processes started by tests end with the test process, even if it is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::children::{REAPER, Reaped as _, remove_at_end};
use crate::support::site::await_that;

const FOLDER: &str = "LAKEMILL_TEST_REAPED";

#[test]
#[ignore = "not a test by itself: the test below starts it as a process, and kills it"]
fn second_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    remove_at_end(Path::new(&folder));
    // Its parent thread ends before the process is killed, and it has a child process itself.
    let shell = std::thread::spawn(|| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 1000 & echo $!; wait"]).stdin(Stdio::null()).stdout(Stdio::piped());
        shell.spawn_reaped().unwrap()
    });
    let mut shell = shell.join().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // It exits early, so that another process may reuse its id.
    assert!(Command::new("true").output_reaped().unwrap().status.success());
    println!("started {} {}", shell.id(), line.trim());
    std::io::stdout().flush().unwrap();
    // Runs longer than any wait.
    shell.wait().unwrap();
}

/// Whether a process lives, a zombie not counted.
fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn killed_test_process_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("its folder");
    std::fs::create_dir(&folder).unwrap();
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests.args(["--exact", "reaper::second_process", "--include-ignored", "--nocapture"]);
    tests.env(FOLDER, &folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut tests = tests.spawn_reaped().unwrap();
    let lines = BufReader::new(tests.stdout.take().unwrap()).lines().map(Result::unwrap);
    let ids = lines.into_iter().find_map(|line| line.split_once("started ").map(|(_, pids)| pids.to_owned()));
    let ids = ids.expect("it says what it started");
    let pids: Vec<&str> = ids.split_whitespace().collect();
    assert!(pids.len() == 2 && pids.iter().all(|pid| lives(pid)), "{ids}");
    tests.kill().unwrap();
    tests.wait().unwrap();
    await_that("its processes to end", || !pids.iter().any(|pid| lives(pid)));
    await_that("its folder to be removed", || !folder.exists());
}

/// Its id may be one that a process of the tests had.
#[test]
fn group_of_another_session_is_left_alone() {
    let mut own = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn_reaped().unwrap();
    let mut other = Command::new("setsid");
    other.args(["--wait", "sh", "-c", "echo $$; exec sleep 1000"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut other = other.spawn_reaped().unwrap();
    let mut foreign = String::new();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut foreign).unwrap();
    let mut reaper = Command::new("sh");
    let mut reaper = reaper.args(["-c", REAPER]).stdin(Stdio::piped()).spawn_reaped().unwrap();
    let lines = format!("group {}\ngroup {}\n", own.id(), foreign.trim());
    reaper.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(reaper.wait().unwrap().success());
    assert!(!own.wait().unwrap().success() && lives(foreign.trim()));
    kill_process(Pid::from_raw(foreign.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    other.wait().unwrap();
}
