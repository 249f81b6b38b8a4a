//! The program agrees with an oracle in Python on random configs and files: cell by cell, reject by reject, count by count.
//!
//! The oracle is in `tests/differential`; it is written from the docs and shares no code with the program. `scripts/fuzz`
//! runs the same for hours.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::peers::{in_package, python, succeed};
use crate::support::children::Reaped as _;

const MINUTE: Duration = Duration::from_secs(60);

fn script(name: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(in_package("tests/differential").join(name)).args(["--binary", env!("CARGO_BIN_EXE_lakemill")]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Runs a fuzzer on the first `count` seeds, then on new ones for the rest of a minute.
fn agrees(fuzzer: &str, count: u32) {
    let kept = tempfile::tempdir().expect("a folder").keep();
    let began = Instant::now();
    let compare = |cases: String| {
        let mut command = script("fuzz.py");
        command.arg(fuzzer).args(cases.split(' ')).arg("--keep").arg(&kept);
        // On failure: the output of the first failing seed.
        succeed("the comparison", &mut command);
    };
    compare(format!("--seed=0 --count={count}"));
    compare(format!("--seconds={}", MINUTE.saturating_sub(began.elapsed()).as_secs()));
    std::fs::remove_dir_all(kept).expect("the folder of kept cases is removed");
}

#[test]
fn dialects_agree_with_an_independent_oracle() {
    agrees("dialects", 480);
}

#[test]
fn types_agree_with_an_independent_oracle() {
    agrees("types", 400);
}

#[test]
fn formats_agree_with_an_independent_oracle() {
    agrees("formats", 400);
}

#[test]
fn bytes_are_independent_of_chunks_and_agree_with_an_independent_oracle() {
    agrees("chunks", 240);
}

#[test]
fn former_differences_agree_with_the_oracle() {
    let Output { stdout, .. } =
        succeed("the comparison", script("replay.py").arg(in_package("tests/differential/kept")));
    let compared = String::from_utf8_lossy(&stdout).lines().count();
    let kept = std::fs::read_dir(in_package("tests/differential/kept")).expect("the kept cases are there").count();
    assert_eq!(compared, kept, "every case was compared");
}

/// The comparison itself must be able to fail.
#[test]
fn oracle_detects_faults_of_every_kind() {
    let output = script("mutations.py").output_reaped().expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let noticed = text.lines().filter(|line| line.contains(": noticed in ")).count();
    assert!(output.status.success() && noticed > 40, "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}
