//! DuckDB, Polars and pyarrow read the program's output, and agree with Python's `csv` module on the input.
//!
//! The comparison is `tests/peers/check.py`; it shares no code with the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::children::Reaped as _;

pub fn in_package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The interpreter that has the peers installed.
pub fn python() -> PathBuf {
    let path = std::env::var_os("LAKEMILL_TEST_PYTHON").map(PathBuf::from);
    path.expect("LAKEMILL_TEST_PYTHON names a Python with duckdb, polars and pyarrow: run this through `scripts/test`")
}

/// A script of `tests/peers`.
pub fn script(name: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(in_package("tests/peers").join(name)).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

pub fn succeed(what: &str, command: &mut Command) -> Output {
    let output = command.output_reaped().unwrap_or_else(|error| panic!("{what} can't be started: {error}"));
    assert!(
        output.status.success(),
        "{what}: {}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Runs the program on a pipeline, into a folder below `scratch`.
fn run_pipeline(config: &Path, lake: &Path, scratch: &Path) -> PathBuf {
    let warehouse = scratch.join("warehouse");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakemill"));
    command.arg("run").arg(config).arg("--input").arg(lake).arg("--output").arg(&warehouse);
    succeed("lakemill run", &mut command);
    warehouse
}

fn compare(config: &Path, lake: &Path, warehouse: &Path) -> Command {
    let mut command = script("check.py");
    command.arg(config).arg(lake).arg(warehouse);
    command
}

fn peers_agree(config: &Path, lake: &Path, warehouse: &Path, tables: usize) {
    let output = succeed("the comparison", &mut compare(config, lake, warehouse));
    let compared = String::from_utf8_lossy(&output.stdout).lines().count();
    assert_eq!(compared, tables, "every table was compared");
}

#[test]
fn three_readers_agree_with_the_flights_csvs() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (config, lake) = (in_package("testdata/flights/pipeline.json"), in_package("testdata/flights/lake"));
    let warehouse = run_pipeline(&config, &lake, scratch.path());
    peers_agree(&config, &lake, &warehouse, 5);
}

/// Generates the lake of `tests/peers/nasty.py` in `scratch`; returns its config and the lake.
fn nasty(scratch: &Path) -> (PathBuf, PathBuf) {
    succeed("nasty.py", script("nasty.py").arg(scratch));
    (scratch.join("pipeline.json"), scratch.join("lake"))
}

#[test]
fn three_readers_agree_with_csvs_that_are_hard_to_read() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (config, lake) = nasty(scratch.path());
    let warehouse = run_pipeline(&config, &lake, scratch.path());
    peers_agree(&config, &lake, &warehouse, 8);
}

/// Collects how the test environment's readers read every type; `docs/readers.md` must match.
#[test]
fn readers_match_the_documented_support() {
    let scratch = tempfile::tempdir().expect("a folder");
    let python = python();
    let mut command = Command::new(&python);
    command.arg(in_package("tests/peers/readers/table.py")).arg(scratch.path().join("made"));
    command.arg(env!("CARGO_BIN_EXE_lakemill")).arg("--check").arg(in_package("docs/readers.md")).arg("--types");
    command.args(["DuckDB", "Polars", "pyarrow"].map(|reader| format!("{reader}={}", python.display())));
    succeed("the readers' table", command.env("PYTHONDONTWRITEBYTECODE", "1"));
}

/// The comparison itself must be able to fail.
#[test]
fn every_reader_detects_a_missing_file() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (config, lake) = nasty(scratch.path());
    let warehouse = run_pipeline(&config, &lake, scratch.path());
    let partition = warehouse.join("partitioned/day=2024-02-28/key=a b");
    let mut files = std::fs::read_dir(partition).expect("the partition is there");
    let lost = files.next().and_then(Result::ok).expect("it has a file").path();
    std::fs::remove_file(lost).expect("the file is there");
    let output = compare(&config, &lake, &warehouse).output_reaped().expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for reader in ["pyarrow", "DuckDB", "Polars"] {
        assert!(text.contains(&format!("WRONG partitioned: {reader} finds")), "{reader}: {text}");
    }
}
