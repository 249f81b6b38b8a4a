//! What strangers do to the real services while these work, and what must not be noticed of it.

mod descriptors;
mod listener;
mod secrets;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lakemill::domain::job::{Job, JobStatus};
use serde_json::json;

use crate::support::site::Site;

/// No attack waits longer for a single answer.
const WAIT: Duration = Duration::from_secs(5);
/// Files, each of which is a partition: a clean run of them lasts long enough to be disturbed.
const FILES: usize = 40;

/// A pipeline `p`, and what its table is when nobody disturbs.
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

/// Clean runs one after the other, from before the attack to its end, at least two of them. Each must be as if nothing
/// had been: done at its first start, under its own fence.
fn runs_go_on(site: &Site, attack: impl Fn(&AtomicBool) + Sync) -> Vec<Job> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attack = scope.spawn(|| attack(&over));
        let mut ended = Vec::new();
        while ended.len() < 2 || !attack.is_finished() {
            ended.push(site.await_end(&site.enqueue_as("p", true)));
            // Whatever lasts until it is told to end, ends after the second run.
            over.store(ended.len() >= 2, Ordering::SeqCst);
        }
        attack.join().unwrap();
        for (nth, job) in ended.iter().enumerate() {
            let seen = (job.status, job.attempt, &job.error);
            assert_eq!(seen, (JobStatus::Completed, 1, &None), "run {nth} of {}", ended.len());
        }
        ended
    })
}

/// Descriptors that a process holds.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Descriptors that pools of connections and of children may keep, far below what clients held.
const POOLED: usize = 64;

/// Resident memory of a process, in bytes.
fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// A connection with bounded waits; `None` where nobody takes it.
fn connect(address: &str) -> Option<TcpStream> {
    let address = address.parse().unwrap();
    let stream = TcpStream::connect_timeout(&address, WAIT).ok()?;
    stream.set_read_timeout(Some(WAIT)).unwrap();
    stream.set_write_timeout(Some(WAIT)).unwrap();
    Some(stream)
}

/// What a service says to `request`, as far as it says anything before it closes or falls silent.
fn said(address: &str, request: &[u8]) -> String {
    let Some(mut stream) = connect(address) else { return String::new() };
    // A refusal may come, and the connection end, before all is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.take(1 << 20).read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// How often each of a set of things was done.
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
