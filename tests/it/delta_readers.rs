//! Readers of Delta Lake see a published table as written, at every version and with filters, and its log is as the protocol
//! requires.

use std::path::Path;
use std::process::Command;

use crate::support::children::Reaped as _;

fn succeeds(script: &str, arguments: &[&str]) {
    let python = std::env::var_os("LAKEMILL_TEST_PYTHON")
        .expect("LAKEMILL_TEST_PYTHON names a Python with deltalake and polars: run this through `scripts/test`");
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(script)).args(arguments);
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output_reaped().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn readers_of_delta_tables_agree_at_every_version() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("w");
    let arguments = ["--binary", env!("CARGO_BIN_EXE_lakemill"), "--folder", made.to_str().unwrap()];
    let extent = ["--steps", "12", "--older", "3", "--filters", "2", "--readers", "deltalake,deltalake SQL,Polars"];
    succeeds("delta.py", &[arguments.as_slice(), &extent].concat());
}

#[test]
fn check_of_delta_logs_finds_each_damage_and_accepts_logs_of_another_writer() {
    succeeds("delta_protocol.py", &["--self-test"]);
}
