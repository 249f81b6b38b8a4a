//! Indented (not fenced) commands are for the machine on which the package is installed: the package's check
//! (`scripts/package/check.d`) or a test runs them, or the list states why nothing runs them.

use super::markdown::{Page, pages, root};

/// How a command is covered.
enum CommandCoverage {
    /// The file that runs it, and its text there.
    In(&'static str, &'static str),
    /// The reason why nothing runs it.
    Not(&'static str),
}
use CommandCoverage::{In, Not};

const BACKUP: &str = "scripts/package/check.d/backup.sh";
const DISASTER: &str = "scripts/package/check.d/disaster.sh";
const FLEET: &str = "scripts/package/check.d/fleet.sh";
const INSTALL: &str = "scripts/package/check.d/install.sh";
const OBSERVE: &str = "scripts/package/check.d/observe.sh";
const SYSTEM: &str = "scripts/package/check.d/system.sh";
const UP: &str = "scripts/package/check.d/up.sh";
const UPGRADE: &str = "scripts/package/check.d/upgrade.sh";
const NO_ENGINE: &str = "there is no engine for containers where the tests run";

/// First words of a line that make it a command.
const PROGRAMS: &[&str] = &[
    "apt",
    "cd",
    "cp",
    "curl",
    "docker",
    "done",
    "echo",
    "for",
    "install",
    "journalctl",
    "kubectl",
    "lakemill",
    "lakemill-ctl",
    "podman",
    "podman-compose",
    "promtool",
    "redis-cli",
    "rsync",
    "runuser",
    "scripts/package/build",
    "sqlite3",
    "sudo",
    "sudoedit",
    "systemctl",
    "systemd-analyze",
];

/// Commands by their beginning; the longest that fits counts.
const COMMANDS: &[(&str, CommandCoverage)] = &[
    ("scripts/package/build", In("scripts/package/check", "scripts/package/build")),
    ("sudo apt install ./lakemill_*", In(INSTALL, "apt-get install -y /srv/check/old.deb")),
    ("sudo apt install ./lakemill_NEW", In(UPGRADE, "apt-get install -y -o Dpkg::Options::=--force-confold")),
    ("sudo lakemill-ctl password", In(UP, "lakemill-ctl password")),
    ("cd /var/lib/lakemill/objects", Not("it only leads to where the next two are")),
    ("runuser -u lakemill -- mkdir -p", In(UPGRADE, "runuser -u lakemill -- mkdir -p")),
    ("install -o lakemill -g lakemill -m 0640", In(UP, "install -o lakemill -g lakemill -m 0640")),
    ("sudo systemctl disable --now lakemill-up", In(FLEET, "systemctl disable --now lakemill-up")),
    ("echo 'redis://127.0.0.1:6379/0' | sudo lakemill-ctl secret KV_URL", In(FLEET, "| lakemill-ctl secret KV_URL")),
    ("sudo lakemill-ctl secret OBJ_ACCESS_KEY_ID", In(FLEET, "lakemill-ctl secret OBJ_ACCESS_KEY_ID")),
    ("sudo lakemill-ctl secret OBJ_SECRET_ACCESS_KEY", In(FLEET, "lakemill-ctl secret OBJ_SECRET_ACCESS_KEY")),
    ("sudoedit /etc/lakemill/worker.env", In(FLEET, "/etc/lakemill/worker.env /etc/lakemill/web.env")),
    ("sudo lakemill-ctl doctor", In(UP, "lakemill-ctl doctor")),
    ("sudo lakemill-ctl jobs", In(UP, "lakemill-ctl jobs flights")),
    ("sudo systemctl enable --now lakemill-worker", In(FLEET, "systemctl enable --now lakemill-worker lakemill-web")),
    ("sudo systemctl restart lakemill-worker", In(UPGRADE, "systemctl restart lakemill-up")),
    ("systemctl status", In(SYSTEM, "systemctl status --no-pager")),
    ("systemctl is-active", In(SYSTEM, "systemctl is-active")),
    ("redis-cli --scan", In(FLEET, "redis-cli --scan --pattern 'svc:sessions:*' | xargs -r redis-cli del")),
    ("sqlite3 /var/lib/lakemill/kv.db 'DELETE", In(UP, "sqlite3 /var/lib/lakemill/kv.db 'DELETE FROM sessions'")),
    ("journalctl -u lakemill-worker -o cat", In(DISASTER, "journalctl --no-pager -u lakemill-worker -o cat")),
    ("journalctl -u 'lakemill-*'", In(DISASTER, "journalctl --no-pager -u lakemill-worker -o cat")),
    ("curl -fsS http://127.0.0.1:3000/readyz", In(UP, "answers http://127.0.0.1:3000/readyz")),
    ("curl -fsS http://127.0.0.1:8080/health", In(UPGRADE, "http://127.0.0.1:8080/health")),
    ("curl -fsS http://127.0.0.1:8080/metrics", In(SYSTEM, "http://127.0.0.1:$1/metrics")),
    ("promtool check rules", In(OBSERVE, "promtool check rules")),
    ("systemd-analyze security", In(INSTALL, "systemd-analyze security")),
    ("podman build", Not(NO_ENGINE)),
    ("podman-compose", Not(NO_ENGINE)),
    ("kubectl", Not(NO_ENGINE)),
    ("lakemill backup DEST", In("tests/it/backup.rs", "\"backup\"")),
    ("lakemill restore DEST", In("tests/it/backup.rs", "\"restore\"")),
    ("sudo install -d -o lakemill", In(BACKUP, "install -d -o lakemill -g lakemill -m 0700 /backup")),
    ("sudo lakemill-ctl backup", In(BACKUP, "lakemill-ctl backup /backup/lakemill")),
    ("sudo lakemill-ctl restore", In(BACKUP, "lakemill-ctl restore /backup/lakemill")),
    ("sudo rsync -a --delete /etc/lakemill/", In(BACKUP, "rsync -a --delete /etc/lakemill/ /backup/etc/")),
    ("sudo systemctl stop lakemill-up", In(BACKUP, "systemctl stop lakemill-up")),
    ("sudo rm -rf /var/lib/lakemill/*", In(BACKUP, "rm -rf /var/lib/lakemill/*")),
    ("sudo rsync -a /backup/etc/", In(BACKUP, "rsync -a /backup/etc/ /etc/lakemill/")),
    ("sudo systemctl start lakemill-up", In(BACKUP, "systemctl start lakemill-up")),
    (
        "sudo rsync -aHX /var/lib/lakemill/ /mnt",
        Not("it takes a second disk; the restoration of a backup copies the same way"),
    ),
    ("sudo mount --bind", Not("it takes a second disk")),
    ("lakemill doctor --data", In("tests/it/cli_up.rs", "[\"doctor\", \"--json\", \"--data\"]")),
    ("lakemill doctor", In("tests/it/cli_doctor.rs", ".arg(\"doctor\")")),
    ("lakemill --version", In(INSTALL, "lakemill --version")),
];

/// The indented lines of a page that are commands, with their numbers.
fn commands(page: &Page) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (at, line) in page.text.lines().enumerate() {
        fenced ^= line.starts_with("```");
        let first = line.split_whitespace().next().unwrap_or_default();
        if !fenced && line.starts_with("    ") && PROGRAMS.contains(&first) {
            found.push((at + 1, line.trim().to_owned()));
        }
    }
    found
}

#[test]
fn every_indented_command_is_tested_or_exempted() {
    let mut used = vec![false; COMMANDS.len()];
    let mut faults = Vec::new();
    for page in pages() {
        for (line, command) in commands(&page) {
            let fits = COMMANDS.iter().enumerate().filter(|(_, (start, _))| command.starts_with(start));
            match fits.max_by_key(|(_, (start, _))| start.len()) {
                Some((at, _)) => used[at] = true,
                None => faults.push(format!("{}:{line}: `{command}` is tried by nothing", page.path)),
            }
        }
    }
    for ((start, tried), used) in COMMANDS.iter().zip(used) {
        if !used {
            faults.push(format!("no page has `{start}`"));
        }
        match tried {
            In(file, text) => {
                let there = std::fs::read_to_string(root().join(file)).unwrap_or_default().contains(text);
                if !there {
                    faults.push(format!("`{start}`: {file} has no `{text}`"));
                }
            }
            Not(why) => assert!(why.split_whitespace().count() >= 4, "`{why}` is no reason"),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn indented_lines_are_commands_by_their_first_word() {
    let text = "    sudo ls\n    a folder\ntext\n```sh\n    sudo no\n```\n    curl x | sh\n";
    let page = Page { path: "x.md".into(), text: text.into() };
    assert_eq!(commands(&page), [(1, "sudo ls".to_owned()), (7, "curl x | sh".to_owned())]);
}

#[test]
fn listed_steps_exist_in_the_package_check() {
    let check = std::fs::read_to_string(root().join("scripts/package/check")).unwrap();
    let steps = check.lines().find_map(|line| line.strip_prefix("steps=(")?.strip_suffix(')')).unwrap();
    for file in [BACKUP, DISASTER, FLEET, INSTALL, OBSERVE, UP, UPGRADE] {
        let step = file.rsplit('/').next().unwrap().trim_end_matches(".sh");
        assert!(steps.split(' ').any(|there| there == step), "`{step}` is none of `{steps}`");
    }
}
