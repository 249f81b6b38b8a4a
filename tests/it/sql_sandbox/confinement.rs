//! Confinement of child processes, and their end.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lakemill::sql::sandbox::{ExportFormat, ParameterizedStatement, Sandbox, SandboxError, SqlErrorKind};
use serde_json::{Value, json};

use super::setup::*;

use crate::support::children::Reaped as _;

fn probe(child: &mut lakemill::sql::sandbox::Child, name: &str, payload: &str) -> Value {
    child.call(name, &Value::String(payload.to_owned()), far_deadline()).unwrap()
}

#[test]
fn child_reads_only_its_folder() {
    let site = Site::new();
    let mut child = site.child();
    let other = site.child();
    let own = child.folder().unwrap().join("mine");
    std::fs::write(&own, "x").unwrap();
    let foreign = other.folder().unwrap().join("theirs");
    std::fs::write(&foreign, "x").unwrap();
    let secret = site.folder.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    std::os::unix::fs::symlink(&secret, child.folder().unwrap().join("link")).unwrap();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    assert_eq!(probe(&mut child, "probe_read", &text(&own)), "done");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let folder = text(child.folder().unwrap());
    for (op, what) in [
        ("probe_read", "/etc/passwd".to_owned()),
        ("probe_read", "/proc/self/environ".to_owned()),
        ("probe_read", "/proc/self/maps".to_owned()),
        ("probe_read", format!("/proc/{}/environ", std::process::id())),
        ("probe_read", text(&foreign)),
        ("probe_read", text(&secret)),
        ("probe_read", "link".to_owned()),
        ("probe_list", "/".to_owned()),
        ("probe_list", "..".to_owned()),
        ("probe_write", format!("{folder}/new")),
        ("probe_write", text(&own)),
        ("probe_write", "/tmp/lakemill-probe".to_owned()),
        ("probe_connect", address),
        ("probe_listen", "127.0.0.1:0".to_owned()),
        ("probe_execute", "/bin/true".to_owned()),
    ] {
        assert_eq!(probe(&mut child, op, &what), "PermissionDenied", "{op} {what}");
    }
}

#[test]
fn child_has_an_empty_environment_few_files_and_one_group() {
    let site = Site::new();
    let child = site.child();
    let proc = format!("/proc/{}", child.pid().unwrap());
    let environment = String::from_utf8(std::fs::read(format!("{proc}/environ")).unwrap()).unwrap();
    let names: Vec<&str> =
        environment.split_terminator('\0').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
    assert_eq!(names, ["ICU_TIMEZONE_FILES_DIR"]);
    let limits = std::fs::read_to_string(format!("{proc}/limits")).unwrap();
    let limit = |name: &str| -> u64 {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().parse().unwrap()
    };
    assert_eq!((limit("Max core file size"), limit("Max file size")), (0, 0));
    assert!(limit("Max address space") < 2 << 30 && limit("Max open files") <= 512);
    let status = std::fs::read_to_string(format!("{proc}/status")).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    for entry in std::fs::read_dir(format!("{proc}/fd")).unwrap() {
        let target = std::fs::read_link(entry.unwrap().path()).unwrap().display().to_string();
        let known = target.starts_with("pipe:") || target.contains("cgroup") || target.starts_with("/dev/null");
        assert!(known, "an open file that is none of its own: {target}");
    }
}

#[test]
fn child_dies_with_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let zones = lakemill::domain::zones::database().zoneinfo64();
    std::fs::write(folder.path().join("zoneinfo64.res"), zones).unwrap();
    // A shell acts as the service: it starts a child, prints its id, and is killed.
    let script = format!(
        "cd {}; mkfifo in; ICU_TIMEZONE_FILES_DIR=$PWD {} 134217728 1 $$ . <in & exec 3>in; echo $!; read never",
        folder.path().display(),
        env!("CARGO_BIN_EXE_lakemill-sql")
    );
    // A child makes its stderr non-blocking, so it must not share the tests' one.
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = shell.spawn_reaped().unwrap();
    let mut received = Vec::new();
    let mut from = BufReader::new(shell.stdout.take().unwrap());
    // The shell prints the id, the child reports that it is ready, in either order.
    let id = loop {
        assert_ne!(from.read_until(b'\n', &mut received).unwrap(), 0);
        let digits: Vec<u8> = received.iter().rev().skip(1).take_while(|b| b.is_ascii_digit()).copied().collect();
        if !digits.is_empty() {
            break String::from_utf8(digits.into_iter().rev().collect()).unwrap();
        }
    };
    while !received.windows(5).any(|part| part == b"ready") {
        let mut byte = [0];
        from.read_exact(&mut byte).unwrap();
        received.push(byte[0]);
    }
    let child: u32 = id.parse().unwrap();
    let until = far_deadline();
    let alive = || {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        status.contains("Name:\tlakemill-sql") && !status.contains("State:\tZ")
    };
    assert!(alive());
    shell.kill().unwrap();
    shell.wait().unwrap();
    while alive() {
        assert!(Instant::now() < until, "the child is gone");
        std::thread::yield_now();
    }
}

#[test]
fn child_is_killed_before_its_parent_under_memory_pressure() {
    let site = Site::new();
    let child = site.child();
    let score = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    assert_eq!(score(child.pid().unwrap()).trim(), "1000");
    assert_ne!(score(std::process::id()).trim(), "1000");
}

#[test]
fn crash_of_a_child_leaves_the_next_intact() {
    let site = Site::new();
    for (op, kind) in [
        ("probe_abort", Some(SqlErrorKind::Ended)),
        ("probe_panic", Some(SqlErrorKind::Ended)),
        ("probe_exit", Some(SqlErrorKind::Ended)),
        ("probe_nonsense", None),
    ] {
        let mut child = site.child();
        let error = child.call(op, &Value::Null, far_deadline()).unwrap_err();
        assert_eq!(error.sql_kind(), kind, "{op}: {error}");
        assert_eq!(kind.is_none(), matches!(error, SandboxError::Protocol { .. }), "{op}: {error}");
        assert!(child.rows(&ParameterizedStatement::plain("SELECT 1"), LIMITS, far_deadline()).is_err(), "it is dead");
        site.works();
    }
    let mut child = site.child();
    let error = child.call("probe_memory", &json!(64_u64 << 30), far_deadline()).unwrap_err();
    assert_eq!(error.sql_kind(), Some(SqlErrorKind::OutOfMemory), "{error}");
    let error = site.child().call("nothing", &Value::Null, far_deadline()).unwrap_err();
    assert!(matches!(&error, SandboxError::Failed { message } if message.contains("`nothing`")), "{error}");
    site.works();
}

#[test]
fn deadline_and_cancellation_end_a_child() {
    let site = Site::new();
    let endless = ParameterizedStatement::plain(
        "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = -1",
    );
    let mut child = site.child();
    let error = refusal(child.rows(&endless, LIMITS, Instant::now() + Duration::from_millis(300)));
    assert_eq!(error.kind, SqlErrorKind::Timeout);
    let mut child = site.child();
    let handle = child.cancel_handle();
    let stopped = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        handle.cancel();
        handle.cancel();
    });
    let error = refusal(child.rows(&endless, LIMITS, far_deadline()));
    assert_eq!(error.kind, SqlErrorKind::Cancelled);
    stopped.join().unwrap();
    site.works();
}

#[test]
fn children_in_use_are_limited() {
    let site = Site::with(|options| lakemill::sql::sandbox::SandboxOptions { children_max: 2, ..options });
    let first = site.child();
    let _second = site.child();
    let error = site.sandbox.child(Duration::from_millis(50)).err().unwrap();
    assert!(matches!(error, SandboxError::Busy { children_max: 2, .. }), "{error}");
    drop(first);
    let third = site.child();
    assert!(third.pid().is_some());
}

#[test]
fn failed_start_of_the_program_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = |program: &str| {
        let program = lakemill::sql::sandbox::ChildProgram::at(program);
        let options = lakemill::sql::sandbox::SandboxOptions { program, ..options(folder.path()) };
        Sandbox::start(options).and_then(|sandbox| sandbox.child(Duration::from_millis(500)).map(drop))
    };
    for program in ["/nonexistent/program", "/bin/false"] {
        let error = outcome(program).unwrap_err();
        assert!(matches!(error, SandboxError::Start { .. }), "{error}");
    }
}

#[test]
fn children_leave_no_folder_or_process() {
    let site = Site::new();
    let root = site.folder.path().join("queries");
    let mut pids = Vec::new();
    for _ in 0..3 {
        let child = site.child();
        pids.push(child.pid().unwrap());
        std::fs::write(child.folder().unwrap().join("x"), "x").unwrap();
    }
    let mut from = site
        .child()
        .download(&ParameterizedStatement::plain("SELECT * FROM range(1000000000)"), ExportFormat::Csv, far_deadline())
        .unwrap();
    from.read_exact(&mut [0; 1_000]).unwrap();
    drop(from);
    let Site { sandbox, folder } = site;
    drop(sandbox);
    for pid in pids {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
    let left: Vec<_> = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    drop(folder);
}
