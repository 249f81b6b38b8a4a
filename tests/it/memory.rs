//! The program's memory stays near `--memory` for any data.
//!
//! The rest is the program with the SQL library (about 64 MiB) and one encoded row group in progress, which has at most
//! 128 MiB of values: the same for every size of input.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::children::Reaped as _;
use crate::support::folders::{config, lakemill};
use crate::support::lake::{Rng, in_memory_folder};
use crate::support::program::CALL_TIME_MAX;

/// Beyond `--memory`.
const CONSTANT_MIB: u64 = 192;

/// Peak memory of the run, in MiB.
fn peak_mib(config: &Path, lake: &Path, memory: u64) -> u64 {
    let output = in_memory_folder();
    let mut command = lakemill(config, lake, output.path());
    command.args(["--memory", &memory.to_string(), "--threads", "2"]);
    let mut child = command.stderr(std::process::Stdio::inherit()).spawn_reaped().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let until = Instant::now() + CALL_TIME_MAX;
    loop {
        assert!(Instant::now() < until, "the run did not end");
        if let Ok(text) = std::fs::read_to_string(&status)
            && let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            peak = peak.max(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024);
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn stays_within(name: &str, mapping: &str, mut write: impl FnMut(&mut dyn Write, &mut Rng)) {
    let folder = in_memory_folder();
    let lake = folder.path().join("lake");
    std::fs::create_dir(&lake).unwrap();
    let mut file = BufWriter::new(File::create(lake.join("a.csv")).unwrap());
    write(&mut file, &mut Rng::new(1));
    file.into_inner().unwrap();
    let config = config(folder.path(), mapping);
    for memory in [64, 128] {
        let peak = peak_mib(&config, &lake, memory);
        assert!(peak <= memory + CONSTANT_MIB, "{name}: {peak} MiB with --memory {memory}");
    }
}

const FLAT: &str = r#""columns": [ { "name": "id", "type": "int64" }, { "name": "a", "type": "float64" },
    { "name": "b", "type": "int64" }, { "name": "s", "type": "string" } ]"#;

fn flat(rows: u64) -> impl FnMut(&mut dyn Write, &mut Rng) {
    move |file, rng| {
        writeln!(file, "id,a,b,s").unwrap();
        for id in 0..rows {
            let (a, b) = (rng.below(1 << 40) as f64 / 1e6, rng.below(1 << 40));
            writeln!(file, "{id},{a},{b},{:016x}{:016x}", rng.next_u64(), rng.next_u64()).unwrap();
        }
    }
}

#[test]
fn one_large_csv_without_partitioning() {
    stays_within("flat", &format!("{{ {FLAT} }}"), flat(4_000_000));
}

#[test]
fn one_large_csv_sorted_as_a_whole() {
    stays_within("sorted", &format!("{{ {FLAT}, \"sort_by\": [\"s\"] }}"), flat(1_500_000));
}

#[test]
fn five_thousand_partitions_in_any_order() {
    let mapping = r#"{ "columns": [ { "name": "p", "type": "int32" }, { "name": "n", "type": "int64" },
        { "name": "s", "type": "string" } ], "partition_by": ["p"] }"#;
    stays_within("partitions", mapping, |file, rng| {
        writeln!(file, "p,n,s").unwrap();
        for n in 0..600_000 {
            writeln!(file, "{},{n},{:x}", rng.below(5_000), rng.next_u64()).unwrap();
        }
    });
}

#[test]
fn column_of_long_strings_in_their_order_and_sorted() {
    for sort_by in ["", r#", "sort_by": ["s"]"#] {
        let mapping = format!(
            r#"{{ "columns": [ {{ "name": "n", "type": "int32" }}, {{ "name": "s", "type": "string" }} ]{sort_by} }}"#
        );
        stays_within("long strings", &mapping, |file, rng| {
            writeln!(file, "n,s").unwrap();
            for n in 0..1_500 {
                let long: String = (0..100_000 / 16).map(|_| format!("{:016x}", rng.next_u64())).collect();
                writeln!(file, "{n},{long}").unwrap();
            }
        });
    }
}

#[test]
fn unlimited_rejects() {
    let mapping = r#"{ "columns": [ { "name": "n", "type": "int32" }, { "name": "m", "type": "int32" } ],
        "rejects": { "max_ratio": 1.0 } }"#;
    stays_within("rejects", mapping, |file, _| {
        writeln!(file, "n,m").unwrap();
        (0..1_500_000).for_each(|n| writeln!(file, "x{n},{n}").unwrap());
    });
}
