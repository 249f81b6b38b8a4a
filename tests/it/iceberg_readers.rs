//! Iceberg readers see the rows that were written, at every snapshot and with filters.

use std::path::Path;
use std::process::Command;

use crate::support::children::Reaped as _;

#[test]
fn readers_of_iceberg_tables_agree_at_every_snapshot() {
    let python = std::env::var_os("LAKEMILL_TEST_PYTHON")
        .expect("LAKEMILL_TEST_PYTHON names a Python with pyiceberg and polars: run this through `scripts/test`");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/iceberg.py");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command.arg(script).args(["--binary", env!("CARGO_BIN_EXE_lakemill")]).arg("--folder").arg(folder.path().join("w"));
    command.args(["--steps", "12", "--older", "3", "--filters", "2", "--readers", "pyiceberg,Polars"]);
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output_reaped().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
}
