//! Readers of Delta Lake see a published table as written, at every version and with filters, and its log is as the protocol
//! requires.

use crate::peers::{script, succeed};

#[test]
fn readers_of_delta_tables_agree_at_every_version() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = script("delta.py");
    command.args(["--binary", env!("CARGO_BIN_EXE_lakemill")]).arg("--folder").arg(folder.path().join("w"));
    command.args(["--steps", "12", "--older", "3", "--filters", "2", "--readers", "deltalake,deltalake SQL,Polars"]);
    succeed("delta.py", &mut command);
}

#[test]
fn check_of_delta_logs_finds_each_damage_and_accepts_logs_of_another_writer() {
    succeed("delta_protocol.py", script("delta_protocol.py").arg("--self-test"));
}
