//! The two programs: only `lakemill-sql` has DuckDB, and `lakemill` refuses a missing one or one of another build.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lakemill::sql::sandbox::greeting::{BUILD, Greeting};
use lakemill::sql::sandbox::{
    ChildProgram, ExpressionLimits, Sandbox, SandboxError, SandboxExpressions, SandboxOptions,
};
use serde_json::json;

use crate::cli_doctor::output_of;
use crate::container::{dynamic, put};
use crate::sql_sandbox::setup::options;
use crate::support::browser::Browser;
use crate::support::children::Reaped as _;
use crate::support::program::{Program, call};
use crate::support::site::{Kind, Site, await_that};

const LAKEMILL: &str = env!("CARGO_BIN_EXE_lakemill");
const LAKEMILL_SQL: &str = env!("CARGO_BIN_EXE_lakemill-sql");

/// A mapping with an expression.
fn computed() -> serde_json::Value {
    json!({
        "columns": [
            { "name": "a", "type": "string" },
            { "name": "b", "type": "int64" },
            { "name": "c", "type": "int64", "expr": "b + 1" }
        ]
    })
}

fn maps_duckdb(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().contains("libduckdb")
}

/// The processes that a process started.
fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect()
}

#[test]
fn worker_and_web_service_map_no_duckdb() {
    let site = Site::new(Kind::Embedded);
    site.pipeline("sums", &computed());
    site.put("sums", "in/a.csv", "a,b\nx,1\ny,2\n");
    let (worker, web) = site.worker_and_web();
    let job = site.await_end(&site.enqueue("sums"));
    assert_eq!(job.error, None, "{}", worker.log());
    let browser = Browser::log_in(&web);
    let response = browser.post("/api/p/sums/query", &json!({ "sql": "SELECT sum(c) FROM t" })).ok().json();
    assert_eq!(response["rows"], json!([[5]]));
    assert!(!maps_duckdb(worker.pid()) && !maps_duckdb(web.pid()));
    // Idle children wait for queries.
    await_that("a child with DuckDB", || children(web.pid()).into_iter().any(maps_duckdb));
    let limits = ExpressionLimits::default();
    let expressions = SandboxExpressions::new(ChildProgram::at(LAKEMILL_SQL), 1, Vec::new(), limits);
    assert!(maps_duckdb(expressions.child().unwrap().pid().unwrap()));
}

#[test]
fn only_the_child_program_is_linked_to_duckdb() {
    for (program, expected) in [(LAKEMILL, false), (LAKEMILL_SQL, true)] {
        let needed = dynamic(Path::new(program), "NEEDED");
        assert_eq!(needed.iter().any(|name| name.contains("duckdb")), expected, "{program}: {needed:?}");
        // A name of its interface: DuckDB isn't part of the program either.
        let bytes = std::fs::read(program).unwrap();
        assert_eq!(memchr::memmem::find(&bytes, b"duckdb_open").is_some(), expected, "{program}");
    }
}

/// A copy of `lakemill` in a folder of its own.
fn copy(home: &Path) -> PathBuf {
    let copy = home.join("bin/lakemill");
    put(Path::new(LAKEMILL), &copy);
    copy
}

fn at(program: &Path, site: &Site, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"))
        .envs(site.env())
        .env("SVC_SCRATCH_DIR", site.home().join("scratch"))
        .env("SVC_CACHE_DIR", site.home().join("cache"))
        .env("SVC_ADMIN_PASSWORD_HASH", site.password_hash())
        .stdin(Stdio::null());
    command
}

#[test]
fn missing_child_program_is_reported_at_start() {
    let (site, home) = (Site::new(Kind::Embedded), tempfile::tempdir().unwrap());
    let program = copy(home.path());
    let places = ["bin/lakemill-sql", "lib/lakemill/lakemill-sql"].map(|place| home.path().join(place));
    let [beside, package] = places.map(|place| format!("`{}`", place.display()));
    let missing = ["`lakemill-sql`", "is missing", &beside, &package];
    let data = home.path().join("data").display().to_string();
    let up = ["up", "--port", "0", "--worker-port", "0", "--data", &data];
    for args in [["worker"].as_slice(), &["web"], &up] {
        call(&mut at(&program, &site, args)).exits_with(1, &missing);
    }
    output_of(&mut at(&program, &site, &["doctor", "--json"])).has("problem sandbox: ", &missing);
    // A run needs it for expressions only.
    for (mapping, status) in [(json!({}), 0), (computed(), 1)] {
        let files = Program::of(&mapping);
        files.put("1.csv", "a,b\nx,1\n");
        let run = call(&mut files.command_of(&program));
        assert_eq!(run.status, status, "{}", run.stderr);
        assert_eq!(missing.iter().all(|part| run.stderr.contains(part)), status == 1, "{}", run.stderr);
    }
}

#[test]
fn program_of_another_build_is_refused() {
    let (site, home) = (Site::new(Kind::Embedded), tempfile::tempdir().unwrap());
    let program = copy(home.path());
    let (greeting, other) = (home.path().join("greeting"), home.path().join("bin/lakemill-sql"));
    let mut bytes = Vec::new();
    Greeting::write_as(&mut bytes, "0.0.9-0").unwrap();
    std::fs::write(&greeting, bytes).unwrap();
    std::fs::write(&other, format!("#!/bin/sh\ncat '{}'\nexec cat >/dev/null\n", greeting.display())).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    let options = SandboxOptions { program: ChildProgram::at(&other), ..options(home.path()) };
    let error = Sandbox::start(options).unwrap().child(Duration::from_secs(60)).map(drop).unwrap_err();
    assert!(matches!(error, SandboxError::OtherBuild { .. }), "{error}");
    let path = format!("`{}`", other.display());
    let parts = [&path, "is of build `0.0.9-0`", BUILD, "restart the services"];
    output_of(&mut at(&program, &site, &["doctor", "--json"])).has("problem sandbox: ", &parts);
    let files = Program::of(&computed());
    files.put("1.csv", "a,b\nx,1\n");
    call(&mut files.command_of(&program)).exits_with(1, &parts);
}

#[test]
fn child_program_greets_even_if_it_does_not_know_its_arguments() {
    let mut greeting = Vec::new();
    Greeting::write(&mut greeting).unwrap();
    let mut command = Command::new(LAKEMILL_SQL);
    let output = command.args(["--of", "another", "build"]).stdin(Stdio::null()).output_reaped().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(2), greeting));
}
