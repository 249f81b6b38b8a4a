//! Shell completions, manual pages, and the health check of a service.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::support::children::Reaped as _;
use crate::support::http_client::get;
use crate::support::program::{call, files, lakemill};
use crate::support::site::{Kind, Site, await_that};

/// The commands that `lakemill help` lists, without `help`.
fn commands() -> Vec<String> {
    let help = call(lakemill().arg("help")).ok().stdout;
    let listed = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let first = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    listed.lines().map(first).filter(|name| name != "help").collect()
}

#[test]
fn every_shell_completes_every_command() {
    let commands = commands();
    assert!(commands.len() > 10 && commands.iter().any(|name| name == "cancel"), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = call(lakemill().args(["completions", shell])).ok().stdout;
        for name in &commands {
            assert!(text.contains(name.as_str()), "{shell} knows nothing of `{name}`");
        }
    }
    call(lakemill().args(["completions", "cobol"])).exits_with(2, &["invalid value 'cobol'"]);
}

#[test]
fn bash_accepts_the_completions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lakemill.bash");
    std::fs::write(&file, call(lakemill().args(["completions", "bash"])).ok().stdout).unwrap();
    let script = format!(
        "set -e; source {}; COMP_WORDS=(lakemill jo); COMP_CWORD=1; _lakemill lakemill jo lakemill; echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let done = Command::new("bash").args(["-c", &script]).stdin(Stdio::null()).output_reaped().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "jobs", "{done:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a/man1");
    call(lakemill().arg("man").arg("--out").arg(&out)).ok();
    let pages = files(&out);
    for name in commands() {
        let page = format!("lakemill-{name}.1");
        assert!(pages.contains(&page), "{page} is not among {pages:?}");
        let text = std::fs::read_to_string(out.join(&page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH NAME"), "{text}");
    }
    assert!(pages.contains(&"lakemill.1".to_owned()));
    let jobs = std::fs::read_to_string(out.join("lakemill-jobs.1")).unwrap();
    assert!(jobs.contains("\\-\\-failed") && jobs.contains("Exit status"), "{jobs}");
    let printed = call(lakemill().arg("man")).ok().stdout;
    assert!(printed.contains(".TH lakemill 1") && printed.contains("lakemill\\-jobs(1)"), "{printed}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    call(lakemill().arg("man").arg("--out").arg(&file)).exits_with(1, &["--out `", "file`: "]);
}

#[test]
fn health_command_reports_by_its_exit_status() {
    let site = Site::new(Kind::Embedded);
    let health = |args: &[&str], port: Option<&str>| {
        let mut command = lakemill();
        command.arg("health").args(args).env_remove("PORT").env("SVC_BIND", "127.0.0.1");
        call(command.envs(port.map(|port| ("PORT", port))))
    };
    for service in [site.worker(), site.web()] {
        let address = service.address();
        let port = address.rsplit_once(':').unwrap().1;
        let output = health(&[], Some(port)).ok();
        assert_eq!(output.stdout, format!("http://127.0.0.1:{port}/livez responds\n"));
        await_that("it to be ready", || get(&address, "/readyz").status == 200);
        health(&["--url", &format!("http://{address}/readyz")], None).ok();
        health(&["--url", &format!("http://{address}/nothing")], None)
            .exits_with(1, &["answered with status 404, expected 200"]);
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    health(&[], Some(&closed)).exits_with(1, &["nothing listens at http://127.0.0.1:"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    health(&["--timeout", "1"], Some(&port)).exits_with(1, &["/livez did not respond"]);
    health(&["--url", "nowhere"], None).exits_with(1, &["--url: expected `http://HOST:PORT`", "found `nowhere`"]);
    health(&[], Some("many")).exits_with(78, &["PORT (port to listen on): found `many`, expected a whole number"]);
}
