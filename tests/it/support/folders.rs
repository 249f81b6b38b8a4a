//! `lakemill run` on folders of a test, to be killed and measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lakemill::domain::digest::sha256_hex;

use super::children::Reaped as _;

/// `lakemill run` of `config` from `lake` to `output`, quiet.
pub fn lakemill(config: &Path, lake: &Path, output: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakemill"));
    command.arg("run").arg(config).arg("--input").arg(lake).arg("--output").arg(output).arg("--quiet");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

pub fn succeed(command: &mut Command) {
    let output = command.output_reaped().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// Writes a config of one table `t` over all CSVs; `mapping` is JSON without `table` and `files`.
pub fn config(folder: &Path, mapping: &str) -> PathBuf {
    let path = folder.join("pipeline.json");
    let mapping = mapping.trim().strip_prefix('{').unwrap();
    let text = format!(r#"{{ "version": 1, "mappings": [ {{ "table": "t", "files": ["**/*.csv"], {mapping} ] }}"#);
    std::fs::write(&path, text).unwrap();
    path
}

/// Every file under `folder`, by its relative path.
pub fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                    found.insert(name, path);
                }
            }
        }
    }
    found
}

/// The published Parquet files under `folder` with the hash of their bytes.
pub fn published(folder: &Path) -> BTreeMap<String, String> {
    let hidden =
        |name: &str| name.split('/').any(|part| part.starts_with('.') || ["_lakemill", "_delta_log"].contains(&part));
    let parquet = files(folder).into_iter().filter(|(name, _)| name.ends_with(".parquet") && !hidden(name));
    parquet.map(|(name, path)| (name, sha256_hex(&std::fs::read(path).unwrap()))).collect()
}
