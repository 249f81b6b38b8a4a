//! Runs the commands of the docs, page by page, in a folder of its own, against the built program.
//!
//! `sh` and `console` blocks run in one shell, in order. In a `console` block lines after `$ ` are commands; the lines
//! below them must occur in the output in that order, where blanks don't count and `…` matches anything. Hidden
//! comments before a block refine this:
//!
//! - `<!-- file: NAME -->`: the block, of any language, is saved as a file;
//! - `<!-- in another terminal: COMMAND -->`: runs in the background in a new shell; the next block starts once COMMAND
//!   succeeds;
//! - `<!-- wait for: COMMAND -->`: the block starts once COMMAND succeeds;
//! - `<!-- exit status: N -->`: the expected exit status;
//! - `<!-- not run: REASON -->`: the block is skipped; `<!-- this page is not run: REASON -->` skips a page.
//!
//! Ports of the docs are replaced by free ones. Commands that would change the machine must be marked as not run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::markdown::{Block, Page, pages};
use crate::support::children::Reaped as _;
use crate::support::s3_server::s3s_binary;

/// Time limit of a page.
const PAGE_DEADLINE: Duration = Duration::from_secs(150);
/// Longest wait for a condition of a page, in seconds.
const WAIT_SECONDS_MAX: u32 = 60;
/// Longest time for a page's processes to stop.
const END_DEADLINE: Duration = Duration::from_secs(20);
/// The ports used in the docs: the web service, workers, Redis, the S3 server, and a second web service.
const PORTS: &[&str] = &["3000", "8080", "8081", "6379", "9000", "3001"];
/// Words and paths of commands that change the machine. Some are split, since no source file may contain a machine's
/// paths.
const OF_THE_MACHINE: &[&str] = &[
    "sudo",
    "apt",
    "apt-get",
    "dpkg",
    "systemctl",
    "journalctl",
    "docker",
    "podman",
    "kubectl",
    "pkill",
    "killall",
    "useradd",
    "mount",
    "chown",
    "/etc/",
    "/var/",
    "/usr/",
    concat!("/ro", "ot"),
    "/opt/",
    "/srv/",
    concat!("/ho", "me/"),
    "/dev/sd",
    "/run/",
];

/// A block that is not run: its place and reason.
pub struct Exception {
    pub place: String,
    pub reason: String,
}

/// A command of a page.
struct Step {
    line: usize,
    command: String,
    shown: Vec<String>,
    status: i32,
    wait_for: Option<String>,
    /// For a command in another terminal: the command that succeeds once it is ready.
    ready: Option<String>,
}

/// The steps of a page, and its skipped blocks.
struct Plan {
    steps: Vec<Step>,
    exceptions: Vec<Exception>,
}

fn is_command(block: &Block) -> bool {
    matches!(block.language.as_str(), "sh" | "bash" | "console" | "shell")
}

impl Plan {
    fn of(page: &Page) -> Self {
        let whole = page.text.lines().find_map(|line| {
            line.trim().strip_prefix("<!-- this page is not run:")?.strip_suffix("-->").map(|why| why.trim().to_owned())
        });
        let mut plan = Self { steps: Vec::new(), exceptions: Vec::new() };
        for block in page.blocks() {
            let file = block.note("file");
            if !is_command(&block) && file.is_none() {
                continue;
            }
            let reason = block.note("not run").map(str::to_owned).or_else(|| whole.clone());
            match (reason, file) {
                (Some(reason), _) => {
                    plan.exceptions.push(Exception { place: format!("{}:{}", page.path, block.line), reason });
                }
                (None, Some(name)) => plan.steps.push(saved(&block, name)),
                (None, None) => plan.steps.extend(typed(&block)),
            }
        }
        plan
    }
}

fn saved(block: &Block, name: &str) -> Step {
    let command = format!("mkdir -p \"$(dirname '{name}')\"\ncat >'{name}' <<'END-OF-FILE'\n{}END-OF-FILE", block.text);
    Step { line: block.line, command, shown: Vec::new(), status: 0, wait_for: None, ready: None }
}

fn typed(block: &Block) -> Vec<Step> {
    let status = block.note("exit status").map_or(0, |text| text.parse().unwrap());
    let step = |line: usize, command: String| Step {
        line,
        command,
        shown: Vec::new(),
        status,
        wait_for: None,
        ready: block.note("in another terminal").map(str::to_owned),
    };
    let mut steps = Vec::new();
    if block.language == "console" {
        for (at, line) in block.text.lines().enumerate() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(step(block.line + 1 + at, command.to_owned())),
                (None, Some(Step { shown, .. })) => shown.push(line.to_owned()),
                (None, None) => panic!("line {}: a console block starts with `$ `", block.line),
            }
        }
    } else {
        steps.push(step(block.line, block.text.trim_end().to_owned()));
    }
    if let Some(first) = steps.first_mut() {
        first.wait_for = block.note("wait for").map(str::to_owned);
    }
    steps
}

/// The reason why a test must not run a command, if any.
fn changes_the_machine(command: &str) -> Option<&'static str> {
    let words: Vec<&str> = command.split(|c: char| c.is_whitespace() || "|;&()\"'`=<>".contains(c)).collect();
    OF_THE_MACHINE.iter().copied().find(|bad| match bad.starts_with('/') {
        true => words.iter().any(|word| word.starts_with(bad) || word.contains(&format!("://{bad}"))),
        false => words.contains(bad),
    })
}

/// A free port, outside the range of outgoing connections.
fn free_port() -> u16 {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    loop {
        let number = std::process::id() * 13 + u32::from(COUNT.fetch_add(1, Ordering::Relaxed)) * 97;
        let port = 10_000 + u16::try_from(number % 9_000).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// `text` with the docs' ports replaced, where they are whole words.
fn with_ports(text: &str, ports: &BTreeMap<&str, u16>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len() - at, |length| length);
        let (before, number) = (&rest[..at], &rest[at..at + digits]);
        let part = before.ends_with(|c: char| c.is_alphanumeric() || c == '.' || c == '_');
        out.push_str(before);
        match ports.get(number) {
            Some(port) if !part => write!(out, "{port}").unwrap(),
            Some(_) | None => out.push_str(number),
        }
        rest = &rest[at + digits..];
    }
    out + rest
}

/// A running page. Its processes end when the value is dropped.
struct Run {
    home: tempfile::TempDir,
    shell: Option<Child>,
}

impl Run {
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.home.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Programs that pages call by name.
    fn programs(&self, ports: &BTreeMap<&str, u16>) -> PathBuf {
        let bin = self.folder("bin");
        let put = |name: &str, text: &str| {
            let path = bin.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let lakemill = env!("CARGO_BIN_EXE_lakemill");
        let (web, worker) = (ports["3000"], ports["8080"]);
        // The default ports are also replaced for commands without a port.
        put(
            "lakemill",
            &format!(
                "case ${{1:-}} in\n\
                 up) case \" $* \" in *' --port '*) ;; *) set -- \"$@\" --port {web} --worker-port {worker} ;; esac ;;\n\
                 web) export PORT=\"${{PORT:-{web}}}\" ;;\nworker) export PORT=\"${{PORT:-{worker}}}\" ;;\nesac\n\
                 exec '{lakemill}' \"$@\""
            ),
        );
        put("s3s-fs", &format!("exec '{}' \"$@\"", s3s_binary().display()));
        if let Some(python) = std::env::var_os("LAKEMILL_TEST_PYTHON") {
            put("python3", &format!("exec '{}' \"$@\"", PathBuf::from(python).display()));
        }
        bin
    }

    fn start(&mut self, script: &Path, ports: &BTreeMap<&str, u16>) {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("bash");
        command.arg(script).current_dir(self.folder("work")).stdin(Stdio::null()).process_group(0);
        command.stdout(Stdio::null()).stderr(std::fs::File::create(self.home.path().join("shell")).unwrap());
        command.env_clear().env("PATH", format!("{}:{path}", self.programs(ports).display()));
        command.env("HOME", self.folder("home")).env("TMPDIR", self.folder("tmp"));
        command.env("LANG", "C.UTF-8").env("COLUMNS", "100");
        self.shell = Some(command.spawn_reaped().unwrap());
    }

    /// Whether the script finished within the page's time.
    fn succeeded(&mut self) -> bool {
        let end = Instant::now() + PAGE_DEADLINE;
        let shell = self.shell.as_mut().unwrap();
        while Instant::now() < end {
            if let Some(status) = shell.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn output(&self, number: usize) -> String {
        std::fs::read_to_string(self.home.path().join(format!("out/{number}"))).unwrap_or_default()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let Some(mut shell) = self.shell.take() else { return };
        let group = Pid::from_child(&shell);
        let end = Instant::now() + END_DEADLINE;
        let mut signal = Signal::TERM;
        // Until the process group is empty.
        while kill_process_group(group, signal).is_ok() {
            drop(shell.try_wait());
            if Instant::now() > end {
                signal = Signal::KILL;
            } else {
                // Once is enough: a second signal forces an immediate stop.
                while Instant::now() < end && rustix::process::test_kill_process_group(group).is_ok() {
                    drop(shell.try_wait());
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        drop(shell.wait());
    }
}

/// The script of all steps; each step's output goes to its own file.
fn script(steps: &[Step]) -> String {
    let mut text = format!(
        "set -euo pipefail\n\
         wait_for() {{\n  local end=$((SECONDS + {WAIT_SECONDS_MAX}))\n  \
         until (eval \"$1\") >/dev/null 2>&1; do\n    \
         [ $SECONDS -lt $end ] || {{ echo \"waited in vain for: $1\"; (eval \"$1\") || true; return 1; }}\n    \
         sleep 0.1\n  done\n}}\n"
    );
    for (number, Step { command, status, wait_for, ready, .. }) in steps.iter().enumerate() {
        let out = format!("\"$HOME/../out/{number}\"");
        writeln!(text, "echo {number} >\"$HOME/../at\"").unwrap();
        if let Some(condition) = wait_for {
            writeln!(text, "wait_for {} >>{out} 2>&1", quoted(condition)).unwrap();
        }
        if let Some(ready) = ready {
            let clean = "env -i PATH=\"$PATH\" HOME=\"$HOME\" TMPDIR=\"$TMPDIR\" LANG=\"$LANG\" COLUMNS=\"$COLUMNS\"";
            writeln!(
                text,
                "(cd \"$HOME/../work\" && exec {clean} bash -euo pipefail -c {}) >>{out} 2>&1 &",
                quoted(command)
            )
            .unwrap();
            writeln!(text, "wait_for {} >>{out} 2>&1", quoted(ready)).unwrap();
        } else if *status == 0 {
            writeln!(text, "{{\n{command}\n}} >>{out} 2>&1").unwrap();
        } else {
            writeln!(text, "ended=0\n{{\n{command}\n}} >>{out} 2>&1 || ended=$?").unwrap();
            let message = format!("echo \"exit status $ended instead of {status}\" >>{out}");
            writeln!(text, "[ $ended = {status} ] || {{ {message}; exit 1; }}").unwrap();
        }
    }
    text
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The first expected line that is missing from the output.
fn missing<'a>(shown: &'a [String], output: &str) -> Option<&'a str> {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = output.lines().map(squeezed).collect();
    let mut rest = lines.iter();
    shown.iter().map(String::as_str).find(|line| {
        let line = squeezed(line);
        !line.is_empty() && line != "…" && !rest.any(|there| matches_pattern(&line, there))
    })
}

/// Whether `there` matches `line`, where `…` matches anything.
fn matches_pattern(line: &str, there: &str) -> bool {
    let parts: Vec<&str> = line.split('…').collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    if parts.len() == 1 {
        return there == line;
    }
    let Some(mut rest) = there.strip_prefix(first) else { return false };
    for part in &parts[1..parts.len() - 1] {
        match rest.find(part.trim()) {
            Some(at) => rest = &rest[at + part.trim().len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Runs the commands of a page.
fn run(path: &str) {
    let page = Page::read(path);
    let mut plan = Plan::of(&page);
    assert!(!plan.steps.is_empty(), "{path} has commands");
    let ports: BTreeMap<&str, u16> = PORTS.iter().map(|port| (*port, free_port())).collect();
    for step in &mut plan.steps {
        if let Some(what) = changes_the_machine(&step.command) {
            panic!("{path}:{}: a command with `{what}` must be marked as not run, with the reason", step.line);
        }
        step.command = with_ports(&step.command, &ports);
        step.shown.iter_mut().for_each(|line| *line = with_ports(line, &ports));
        for condition in [&mut step.wait_for, &mut step.ready].into_iter().flatten() {
            *condition = with_ports(condition, &ports);
        }
    }
    let mut run = Run { home: tempfile::Builder::new().prefix("lakemill-docs-").tempdir().unwrap(), shell: None };
    run.folder("out");
    let file = run.home.path().join("script");
    std::fs::write(&file, script(&plan.steps)).unwrap();
    run.start(&file, &ports);
    if !run.succeeded() {
        let at = std::fs::read_to_string(run.home.path().join("at")).unwrap_or_default();
        let at: usize = at.trim().parse().unwrap_or_default();
        let step = &plan.steps[at];
        let others: String = (0..at)
            .filter(|other| plan.steps[*other].ready.is_some())
            .map(|other| format!("\n--- line {} says:\n{}", plan.steps[other].line, run.output(other)))
            .collect();
        let shell = std::fs::read_to_string(run.home.path().join("shell")).unwrap_or_default();
        panic!("{path}:{}: failed:\n{}\n---\n{}{shell}{others}", step.line, step.command, run.output(at));
    }
    for (number, step) in plan.steps.iter().enumerate() {
        let output = run.output(number);
        if let Some(line) = missing(&step.shown, &output) {
            panic!("{path}:{}: `{}` doesn't say\n{line}\nbut\n{output}", step.line, step.command);
        }
    }
}

macro_rules! run_pages {
    ($($test:ident $path:literal)*) => {
        const RUN: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $test() {
                run($path);
            }
        )*
    };
}

run_pages! {
    the_commands_of_the_readme_do_what_it_says "README.md"
    the_commands_of_the_quick_start_do_what_it_says "docs/quickstart.md"
    the_commands_of_the_fleet_do_what_they_say "docs/fleet.md"
    the_commands_beside_the_pipeline_reference_do_what_they_say "docs/pipelines.md"
    the_commands_about_readers_do_what_they_say "docs/readers.md"
    the_commands_beside_the_api_reference_do_what_they_say "docs/api.md"
    the_commands_of_the_configuration_do_what_they_say "docs/configuration.md"
    the_commands_of_a_backup_by_hand_do_what_they_say "docs/operations/backup.md"
}

#[test]
fn every_page_with_commands_is_run_or_exempted() {
    let mut not_run = Vec::new();
    let mut exceptions: BTreeMap<String, usize> = BTreeMap::new();
    for page in pages() {
        let plan = Plan::of(&page);
        let has_steps = plan.steps.iter().any(|step| !step.command.starts_with("mkdir -p \"$(dirname"));
        if has_steps && !RUN.contains(&page.path.as_str()) {
            not_run.push(page.path.clone());
        }
        for Exception { place, reason } in plan.exceptions {
            assert!(reason.split_whitespace().count() >= 4, "{place}: `{reason}` is not a reason for a reader");
            *exceptions.entry(page.path.clone()).or_default() += 1;
        }
    }
    assert!(not_run.is_empty(), "put these among the pages that are run, or mark their blocks: {not_run:?}");
    // Adding another exception requires an explicit change here.
    let expected: BTreeMap<String, usize> =
        EXCEPTIONS.iter().map(|(page, count)| ((*page).to_owned(), *count)).collect();
    assert_eq!(exceptions, expected, "blocks that are not run, by page");
}

/// The number of a page's blocks that no test runs.
const EXCEPTIONS: &[(&str, usize)] = &[
    ("README.md", 3),
    ("docs/commands.md", 1),
    ("docs/development.md", 3),
    ("docs/engines.md", 1),
    ("docs/fleet.md", 3),
    ("docs/operations.md", 1),
    ("docs/operations/upgrade.md", 1),
    ("docs/quickstart.md", 1),
    ("docs/readers.md", 1),
    ("docs/scheduled.md", 1),
];

#[test]
fn shown_output_is_found_in_order_and_with_gaps() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let output = "a  1\nsomething\nb took 12 ms\n";
    assert_eq!(missing(&shown("a 1\nb took … ms"), output), None);
    assert_eq!(missing(&shown("…\nb …"), output), None);
    assert_eq!(missing(&shown("b …\na 1"), output), Some("a 1"));
    assert_eq!(missing(&shown("b took … s"), output), Some("b took … s"));
}

#[test]
fn ports_are_replaced_as_whole_words() {
    let ports = BTreeMap::from([("3000", 10_001)]);
    assert_eq!(
        with_ports("http://x:3000/a --port 3000 a3000 1.3000 30001", &ports),
        "http://x:10001/a --port 10001 a3000 1.3000 30001"
    );
}

#[test]
fn commands_that_change_the_machine_are_not_run() {
    assert_eq!(changes_the_machine("echo x | sudo tee y"), Some("sudo"));
    assert_eq!(changes_the_machine("cp x /etc/lakemill"), Some("/etc/"));
    assert_eq!(changes_the_machine("KV_URL=sqlite:///var/lib/x lakemill worker"), Some("/var/"));
    assert_eq!(changes_the_machine("lakemill run shop.json --input etc/x"), None);
}
