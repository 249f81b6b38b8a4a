//! Iceberg readers see the rows that were written, at every snapshot and with filters.

use crate::peers::{script, succeed};

#[test]
fn readers_of_iceberg_tables_agree_at_every_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = script("iceberg.py");
    command.args(["--binary", env!("CARGO_BIN_EXE_lakemill")]).arg("--folder").arg(folder.path().join("w"));
    command.args(["--steps", "12", "--older", "3", "--filters", "2", "--readers", "pyiceberg,Polars"]);
    succeed("iceberg.py", &mut command);
}
