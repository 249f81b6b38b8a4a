//! The real `lakemill worker`, on Redis and S3 over HTTP and on the embedded backends: jobs from the stream to their
//! record.

mod batches;
mod cancelling;
mod changes;
mod deaths;
mod draining;
mod entries;
mod expressions;
mod flights;
mod jobs;
mod order;
mod outages;
mod pausing;
mod retention;
pub mod sharing;
mod starts;
mod stopping;
mod surface;
mod unhealthy;

use serde_json::json;

use crate::support::site::{Kind, Site};

/// Runs each test on both kinds of installation.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod fleet {
            $(#[test]
            fn $test() {
                super::$test(crate::support::site::Site::new(crate::support::site::Kind::Fleet));
            })*
        }
        mod embedded {
            $(#[test]
            fn $test() {
                super::$test(crate::support::site::Site::new(crate::support::site::Kind::Embedded));
            })*
        }
    };
}
use on_both;

/// A pipeline `p` with three days in as many files, partitioned by day: enough to interrupt between two PUTs.
fn three_days(site: &Site) {
    pipeline_of_days(site);
    for day in 1..=3 {
        put_day(site, day);
    }
}

fn pipeline_of_days(site: &Site) {
    site.pipeline(
        "p",
        &json!({
            "columns": [{ "name": "day", "type": "date" }, { "name": "n", "type": "int64" }],
            "partition_by": ["day"],
            "rejects": { "max_ratio": 0.0 }
        }),
    );
}

fn put_day(site: &Site, day: u32) {
    let rows: String = (0..50).map(|n| format!("2024-01-0{day},{n}\n")).collect();
    site.put("p", &format!("in/{day}.csv"), format!("day,n\n{rows}"));
}

/// The output of a run of [`three_days`], by a worker of another installation.
fn three_days_made() -> std::collections::BTreeMap<String, Vec<u8>> {
    let site = Site::new(Kind::Embedded);
    three_days(&site);
    let job = site.enqueue("p");
    let _worker = site.worker();
    site.await_end(&job);
    site.warehouse("p")
}

/// A pipeline `p` with an expression that doesn't end within its limit, a minute.
fn endless_expression(site: &Site) {
    site.pipeline(
        "p",
        &json!({ "where": "levenshtein(a, reverse(a) || 'x') > 0", "csv": { "record_bytes_max": 1 << 20 } }),
    );
    site.put("p", "in/1.csv", format!("a,b\n{},1\n", "ab".repeat(200_000)));
}

/// The processor time that the child processes of a process have used, in s.
fn cpu_seconds_of_children(pid: u32) -> u64 {
    let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
    let ticks = std::fs::read_dir("/proc").unwrap().flatten().filter_map(stat).filter_map(|text| {
        // After the name, which may contain spaces: state, parent, …, the 12th and 13th are user and system time.
        let fields: Vec<u64> = text.rsplit_once(')')?.1.split_whitespace().map(|n| n.parse().unwrap_or(0)).collect();
        (fields[1] == u64::from(pid)).then(|| fields[11] + fields[12])
    });
    ticks.sum::<u64>() / rustix::param::clock_ticks_per_second()
}
