//! Attacks by unauthenticated clients on real services under load; they must not affect the services' work.

mod descriptors;
mod listener;
mod secrets;
mod unauthenticated;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lakemill::domain::job::{Job, JobStatus};
use serde_json::json;

use crate::support::site::Site;

/// Longest wait of an attack for a single response.
const WAIT: Duration = Duration::from_secs(5);
/// Number of files, one partition each: enough for a clean run to be disturbed.
const FILES: usize = 40;

/// A pipeline `p`, and its table after an undisturbed run.
fn many_partitions(site: &Site) {
    site.pipeline(
        "p",
        &json!({
            "columns": [{ "name": "part", "type": "string" }, { "name": "n", "type": "int64" }],
            "partition_by": ["part"]
        }),
    );
    for part in 0..FILES {
        let rows: String = (0..500).map(|n| format!("part {part},{n}\n")).collect();
        site.put("p", &format!("in/{part}.csv"), format!("part,n\n{rows}"));
    }
}

/// Consecutive clean runs, at least two, from before the attack to its end. Each must succeed at its first attempt,
/// under its own fence, with the undisturbed table.
fn runs_continue(site: &Site, attack: impl Fn(&Attack) + Sync) -> Vec<Job> {
    let ended = during_attack(attack, |attack| {
        let mut ended = Vec::new();
        while ended.len() < 2 || attack.is_running() {
            ended.push(site.await_end(&site.enqueue_as("p", true)));
            // An attack that lasts until it is stopped is stopped after the second run.
            if ended.len() >= 2 {
                attack.end();
            }
        }
        ended
    });
    for (nth, job) in ended.iter().enumerate() {
        let seen = (job.status, job.attempt, &job.error);
        assert_eq!(seen, (JobStatus::Completed, 1, &None), "run {nth} of {}", ended.len());
    }
    ended
}

/// Longest duration of an attack, so that a test ends even if something else fails.
const ATTACK_TIME_MAX: Duration = Duration::from_secs(300);

/// Tells attackers whether to continue.
struct Attack {
    over: AtomicBool,
    running: AtomicBool,
    until: Instant,
}

impl Attack {
    fn continues(&self) -> bool {
        !self.over.load(Ordering::SeqCst) && Instant::now() < self.until
    }

    fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }
}

/// Calls a function when dropped, also after a panic.
struct CallOnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for CallOnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs `work` and `attack` concurrently, and stops the attack when the work is done. A scope joins its threads, so a
/// failure of either must stop the other: a guard stops the attack, deadlines stop the work.
fn during_attack<T>(attack: impl Fn(&Attack) + Sync, work: impl FnOnce(&Attack) -> T) -> T {
    let until = Instant::now() + ATTACK_TIME_MAX;
    let state = Attack { over: AtomicBool::new(false), running: AtomicBool::new(true), until };
    std::thread::scope(|scope| {
        let _end = CallOnDrop(|| state.end());
        let attacking = scope.spawn(|| {
            let _ended = CallOnDrop(|| state.running.store(false, Ordering::SeqCst));
            attack(&state);
        });
        let done = work(&state);
        state.end();
        attacking.join().unwrap();
        done
    })
}

#[test]
fn failed_assertion_ends_the_attack() {
    let attacked = AtomicBool::new(false);
    let failed = std::panic::catch_unwind(|| {
        during_attack(
            |attack| {
                while attack.continues() {
                    attacked.store(true, Ordering::SeqCst);
                    std::thread::yield_now();
                }
            },
            |attack| {
                while !attacked.load(Ordering::SeqCst) && attack.continues() {
                    std::thread::yield_now();
                }
                panic!("on purpose")
            },
        )
    });
    assert!(failed.is_err() && attacked.load(Ordering::SeqCst));
}

/// Open descriptors of a process.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Descriptors that pools of connections and children may keep; far below the number that clients held.
const POOLED: usize = 64;

/// Resident memory of a process, in bytes.
fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// A connection with read and write timeouts; `None` if it is refused.
fn connect(address: &str) -> Option<TcpStream> {
    let address = address.parse().unwrap();
    let stream = TcpStream::connect_timeout(&address, WAIT).ok()?;
    stream.set_read_timeout(Some(WAIT)).unwrap();
    stream.set_write_timeout(Some(WAIT)).unwrap();
    Some(stream)
}

/// The response to `request`, up to where the service closes or falls silent.
fn response_to(address: &str, request: &[u8]) -> String {
    let Some(mut stream) = connect(address) else { return String::new() };
    // The service may refuse and close before everything is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.take(1 << 20).read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Counts how often each outcome occurred.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    fn one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
