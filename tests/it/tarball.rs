//! The tarball: unpacked into an empty folder, it is an installation.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::cli_up::{Up, password, up_of};
use crate::support::browser::Browser;
use crate::support::children::Reaped as _;
use crate::support::program::{Program, call, mapping};
use crate::support::site::await_that;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Makes the tarball of the tested programs.
fn tarball(output: &Path) -> PathBuf {
    let programs = Path::new(env!("CARGO_BIN_EXE_lakemill")).parent().unwrap();
    // The test's own folder of programs: another run may pack that one too.
    let copy = output.join("programs");
    for name in ["lakemill", "lakemill-sql"] {
        crate::container::put(&programs.join(name), &copy.join(name));
    }
    let mut script = Command::new(root().join("scripts/package/tarball"));
    script.arg("--programs").arg(&copy).arg("--output").arg(output);
    let printed = call(&mut script).ok().stdout;
    PathBuf::from(printed.trim())
}

fn unpack(tarball: &Path, into: &Path) -> PathBuf {
    std::fs::create_dir(into).unwrap();
    let status = Command::new("tar").arg("-xzf").arg(tarball).arg("-C").arg(into).output_reaped().unwrap().status;
    assert!(status.success());
    let folders: Vec<PathBuf> = std::fs::read_dir(into).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [folder] = &folders[..] else { panic!("expected one folder, found {folders:?}") };
    folder.clone()
}

#[test]
fn unpacked_tarball_converts_and_answers_sql_without_any_setup() {
    let home = tempfile::tempdir().unwrap();
    let packed = tarball(home.path());
    let name = format!("lakemill-{}-linux-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    assert_eq!(packed, home.path().join(format!("{name}.tar.gz")));
    // A copy elsewhere works as well as the folder that the tarball was made beside.
    let folder = unpack(&packed, &home.path().join("empty"));
    assert_eq!(folder.file_name().unwrap().to_str(), Some(&*name));
    let content: BTreeSet<String> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let expected = "CHANGELOG.md LICENSE README.md THIRD-PARTY completions lakemill lakemill-sql libduckdb.so man";
    assert_eq!(content.into_iter().collect::<Vec<_>>().join(" "), expected);
    for some in ["man/lakemill.1", "man/lakemill-run.1", "completions/lakemill.bash", "completions/_lakemill"] {
        assert!(folder.join(some).metadata().unwrap().len() > 0, "{some}");
    }
    std::fs::remove_dir_all(home.path().join("programs")).unwrap();
    let lakemill = folder.join("lakemill");

    // An expression is evaluated by DuckDB in the other program, which finds its library.
    let program = Program::new(&[mapping(&json!({ "columns": [
        { "name": "a", "type": "string" }, { "name": "b", "type": "int64" },
        { "name": "c", "type": "int64", "expr": "b * 2 + length(a)" }] }))]);
    program.put("x.csv", "a,b\nxyz,4\n");
    call(program.command_of(&lakemill).env_clear()).ok();
    assert_eq!(program.rows("t"), ["xyz|4|11"]);

    let mut bare = Command::new(&lakemill);
    bare.env_clear();
    let up = Up::start(&mut up_of(bare, &home.path().join("data")));
    Up::await_ready(&up.address());
    let browser = Browser::log_in_at(up.address(), &password(&up));
    let config = json!({ "version": 1, "mappings": [{ "table": "t", "files": ["*.csv"],
        "columns": [{ "name": "a", "type": "string" }, { "name": "b", "type": "int64" }] }] });
    browser.send("PUT", "/api/lake?key=pipelines/shop/x.csv", &[], b"a,b\nxyz,4\nuvw,38\n").ok();
    browser.put("/api/p/shop/config", &config).ok();
    browser.post("/api/p/shop/jobs", &json!({})).ok();
    // Until the run has published, the table has no rows.
    let sum = || browser.post("/api/p/shop/query", &json!({ "sql": "SELECT sum(b) FROM t" })).json();
    await_that("the rows", || sum()["rows"][0][0].to_string().trim_matches('"') == "42");
    up.end();
}
