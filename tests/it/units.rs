//! The resource limits in the systemd units, compose.yml, kubernetes.yml and cronjob.yml equal those of the operations page, which
//! follow from the default settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::children::Reaped as _;

const MIB: u64 = 1 << 20;
/// The largest machine for which the limits are right without changes.
const PROCESSORS: u64 = 32;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn unit_path(name: &str) -> PathBuf {
    root().join(format!("scripts/package/systemd/{name}.service"))
}

/// The last value of a unit's key.
fn unit_setting(name: &str, key: &str) -> String {
    let text = std::fs::read_to_string(unit_path(name)).unwrap();
    let value = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).next_back();
    value.unwrap_or_else(|| panic!("{name} has no `{key}`")).to_owned()
}

/// `1536M`, `1536m`, `1536Mi` and `6G` in MiB.
fn mib(text: &str) -> u64 {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().unwrap();
    match &text[digits.len()..] {
        "M" | "m" | "Mi" => number,
        "G" | "g" | "Gi" => number * 1_024,
        other => panic!("`{other}` is not a unit of memory"),
    }
}

/// The default of a setting in docs/configuration.md, which other tests compare with the program.
fn default(name: &str) -> u64 {
    let page = read("docs/configuration.md");
    let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` | `"))).unwrap();
    row.split('`').next().unwrap().parse().unwrap()
}

/// Maximum memory of a unit's processes with the default settings, in MiB, from the sizing table.
fn sizes() -> BTreeMap<&'static str, u64> {
    let run = default("SVC_RUN_MEMORY_BYTES") / MIB;
    let query = default("SVC_QUERY_MEMORY_BYTES") / MIB;
    let page = read("docs/operations.md");
    let worker_row = format!(
        "| memory of a worker | `WORKER_CONCURRENCY` × `SVC_RUN_MEMORY_BYTES` ({run} MiB), 256 MiB, and 64 MiB for each processor |"
    );
    let web_row = "| memory of a web service | 4 × `SVC_QUERY_MEMORY_BYTES` (1 GiB) × 1.25, and 512 MiB |";
    for row in [worker_row.as_str(), web_row] {
        assert!(page.contains(row), "docs/operations.md has no row `{row}`");
    }
    assert_eq!(query, 1_024, "of the row above");
    let worker = default("WORKER_CONCURRENCY") * run + 256 + PROCESSORS * 64;
    let web = 4 * query * 5 / 4 + 512;
    BTreeMap::from([("lakemill-worker", worker), ("lakemill-web", web), ("lakemill-up", worker + web)])
}

#[test]
fn unit_limits_match_the_documentation() {
    let page = read("docs/operations.md");
    for (name, size) in sizes() {
        let [high, max, tasks] = ["MemoryHigh", "MemoryMax", "TasksMax"].map(|key| unit_setting(name, key));
        let row = format!("| `{name}` | {size} MiB | {high} | {max} | {tasks} |");
        assert!(page.contains(&row), "docs/operations.md has no row `{row}`");
        assert!(mib(&high) >= size, "{name}: MemoryHigh={high} is less than {size} MiB");
        assert!(mib(&max) >= mib(&high) + size / 16, "{name}: MemoryMax={max} leaves no margin above {high}");
        assert_eq!(unit_setting(name, "OOMPolicy"), "continue", "{name}: a child that is killed must not end the unit");
    }
}

#[test]
fn container_limits_match_the_units() {
    let (compose, kubernetes) = (read("docs/operations/compose.yml"), read("docs/operations/kubernetes.yml"));
    for service in ["worker", "web"] {
        let unit = format!("lakemill-{service}");
        let (max, tasks) = (mib(&unit_setting(&unit, "MemoryMax")), unit_setting(&unit, "TasksMax"));
        let section = compose.split(&format!("\n  {service}:\n")).nth(1).unwrap().split("\n\n").next().unwrap();
        let of = |key: &str| {
            let value = section.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
            value.unwrap_or_else(|| panic!("compose.yml: {service} has no `{key}`"))
        };
        assert_eq!((mib(of("mem_limit")), of("pids_limit")), (max, tasks.as_str()), "compose.yml: {service}");
        let container = kubernetes.split(&format!("- name: {service}\n")).nth(1).unwrap();
        let limit = container.split("limits: { memory: ").nth(1).unwrap().split(' ').next().unwrap();
        assert_eq!(mib(limit), max, "kubernetes.yml: {service}");
    }
    let once = read("docs/operations/cronjob.yml");
    let limit = once.split("limits: { memory: ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(mib(limit), mib(&unit_setting("lakemill-worker", "MemoryMax")), "cronjob.yml");
}

#[test]
fn systemd_accepts_the_units() {
    let folder = tempfile::tempdir().unwrap();
    for name in sizes().into_keys() {
        let file = folder.path().join(format!("{name}.service"));
        let text = std::fs::read_to_string(unit_path(name)).unwrap();
        // The program is not installed here.
        std::fs::write(&file, text.replace("/usr/bin/lakemill", env!("CARGO_BIN_EXE_lakemill"))).unwrap();
        let mut verify = Command::new("systemd-analyze");
        // systemd's tools are missing on this machine.
        let Ok(said) = verify.args(["verify", "--man=no"]).arg(&file).output_reaped() else { return };
        let complaints = String::from_utf8_lossy(&said.stderr).into_owned();
        let of_the_unit: Vec<&str> = complaints.lines().filter(|line| line.contains(name)).collect();
        assert!(said.status.success() && of_the_unit.is_empty(), "{complaints}");
    }
}
