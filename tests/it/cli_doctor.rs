//! `lakemill doctor` on healthy and on misconfigured installations.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use lakemill::ports::store::{Bucket, list_all};
use serde_json::Value;

use crate::support::http_proxy::{Answered, ProxyAction};
use crate::support::program::{CommandOutput, call, lakemill};
use crate::support::redis_server::{RedisServer, free_port};
use crate::support::s3_server::s3s_fs;
use crate::support::site::{Kind, Site};

pub fn command(site: &Site, args: &[&str]) -> Command {
    let mut command = lakemill();
    command
        .arg("doctor")
        .args(args)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"))
        .envs(site.env())
        .env("SVC_SCRATCH_DIR", site.home().join("scratch"));
    command
}

/// Findings as `level check: message → advice`, one per line.
pub struct Found {
    pub ran: CommandOutput,
    pub lines: Vec<String>,
}

pub fn doctor(site: &Site, more: &[(&str, &str)]) -> Found {
    output_of(command(site, &["--json"]).envs(more.iter().copied()))
}

pub fn output_of(command: &mut Command) -> Found {
    let ran = call(command);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(report["ok"].as_bool(), Some(ran.status == 0), "{}", ran.stdout);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = report["checks"].as_array().unwrap().iter();
    let line = |check: &Value| {
        let [level, name, message, advice] = ["level", "check", "message", "advice"].map(|part| text(&check[part]));
        format!("{level} {name}: {message} → {advice}")
    };
    Found { lines: checks.map(line).collect(), ran }
}

impl Found {
    #[track_caller]
    pub fn has(&self, start: &str, parts: &[&str]) -> &Self {
        let fits = |line: &&String| line.starts_with(start) && parts.iter().all(|part| line.contains(part));
        assert!(
            self.lines.iter().any(|line| fits(&line)),
            "expected `{start}` … {parts:?} in\n{}",
            self.lines.join("\n")
        );
        self
    }

    /// The lines of that level.
    pub fn at(&self, level: &str) -> Vec<&str> {
        self.lines.iter().filter(|line| line.starts_with(level)).map(String::as_str).collect()
    }
}

#[test]
fn healthy_installation_has_no_problems_and_is_unchanged() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let site = Site::new(kind);
        let worker = site.worker();
        let port = worker.address().rsplit_once(':').unwrap().1.to_owned();
        let found = doctor(&site, &[("PORT", &port)]);
        assert_eq!(found.at("problem"), Vec::<&str>::new());
        assert_eq!(found.ran.status, 0);
        for name in [
            "worker environment",
            "secrets",
            "buckets",
            "objects",
            "store features",
            "key-value store",
            "queue",
            "memory",
            "scratch",
        ] {
            found.has(&format!("ok {name}: "), &[]);
        }
        found.has("ok worker: running on port", &["0 jobs in flight"]);
        found.has("skipped web environment: ", &["SVC_ADMIN_PASSWORD_HASH is not set"]);
        match kind {
            Kind::Embedded => found.has("ok webhook: not needed", &[]).has("ok key-value store: SQLite ", &[]),
            Kind::Fleet => found
                .has(
                    "warning webhook: reading the notification rules of the lake bucket failed",
                    &["set SVC_RECONCILE_SECONDS"],
                )
                .has("ok key-value store: Redis ", &[])
                .has("ok clock: within 5 s of the object store's", &[])
                .has("ok clock: within 5 s of the key-value store's", &[])
                .has("warning store features: listings have no ETags", &[]),
        };
        for bucket in Bucket::ALL {
            assert_eq!(list_all(&*site.store, bucket, "").unwrap(), []);
        }
        let text = call(command(&site, &[]).env("PORT", &port)).ok();
        let last = text.stdout.lines().last().unwrap().to_owned();
        assert!(last == "no problems" || last.starts_with("0 problems, "), "{}", text.stdout);
        assert_eq!(text.stdout.lines().count(), found.lines.len() + 1);
        assert_eq!(text.stderr, "");
    }
}

#[test]
fn missing_variables_are_reported_and_the_rest_is_checked() {
    let site = Site::new(Kind::Embedded);
    let found = doctor(&site, &[("SVC_WORKER_TOKEN", ""), ("HEARTBEAT_MS", "x"), ("WORKER_CONCURRENCY", "0")]);
    assert_eq!(found.ran.status, 1);
    found.has("problem worker environment: SVC_WORKER_TOKEN", &["is missing", "set SVC_WORKER_TOKEN"]);
    found.has("problem worker environment: HEARTBEAT_MS", &["found `x`"]);
    found.has("problem worker environment: WORKER_CONCURRENCY", &["found `0`"]);
    found.has("ok buckets: ", &[]).has("ok key-value store: ", &[]).has("skipped scratch: ", &[]);
    let nothing = call(lakemill().arg("doctor").env_clear());
    assert_eq!(nothing.status, 1, "{nothing:?}");
    assert_eq!(nothing.stdout.matches(" is missing → set ").count(), 10, "{}", nothing.stdout);
}

#[test]
fn adjusted_values_are_warnings() {
    let site = Site::new(Kind::Embedded);
    let found = doctor(&site, &[("HEARTBEAT_MS", "4000")]);
    assert_eq!(found.ran.status, 0, "{:?}", found.lines);
    found.has("warning worker environment: HEARTBEAT_MS `4000` is clamped", &["JOB_LOCK_TTL_MS `5000`"]);
}

#[test]
fn web_only_machine_needs_no_webhook_secret() {
    let site = Site::new(Kind::Embedded);
    let hash = lakemill::adapters::password::PasswordHash::of("correct horse").unwrap().to_string();
    let found = doctor(&site, &[("SVC_WEBHOOK_SECRET", ""), ("SVC_ADMIN_PASSWORD_HASH", &hash)]);
    assert_eq!(found.at("problem"), Vec::<&str>::new());
    found
        .has("skipped worker environment: SVC_WEBHOOK_SECRET is not set", &[])
        .has("ok web environment: complete", &[]);
    let weak = "$argon2id$v=19$m=4096,t=1,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo";
    let found = doctor(&site, &[("SVC_ADMIN_PASSWORD_HASH", weak)]);
    found.has("problem secrets: SVC_ADMIN_PASSWORD_HASH: the hash is too weak", &["hash-password"]);
}

#[test]
fn weak_secrets_are_reported_and_never_shown() {
    let site = Site::new(Kind::Embedded);
    let found = doctor(&site, &[("SVC_WORKER_TOKEN", "changeme123"), ("SVC_WEBHOOK_SECRET", "k9#v2")]);
    found.has("problem secrets: SVC_WORKER_TOKEN is a common placeholder and easily guessed", &[]);
    found.has("warning secrets: SVC_WEBHOOK_SECRET has 5 bytes, expected at least 16", &[]);
    let same = "0123456789abcdef0123456789abcdef";
    let found_same = doctor(&site, &[("SVC_WORKER_TOKEN", same), ("SVC_WEBHOOK_SECRET", same)]);
    found_same.has("warning secrets: SVC_WORKER_TOKEN and SVC_WEBHOOK_SECRET are the same", &[]);
    for secret in ["changeme123", "k9#v2", same] {
        for ran in [&found.ran, &found_same.ran] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{}", ran.stdout);
        }
    }
    doctor(&site, &[]).has("ok secrets: without SVC_METRICS_TOKEN", &[]);
}

#[test]
fn wrong_buckets_and_wrong_credentials_are_distinguished() {
    let site = Site::new(Kind::Fleet);
    let found = doctor(&site, &[("S3_BUCKET_LAKE", "no-such-bucket")]);
    found.has("problem buckets: ", &["`no-such-bucket` does not exist", "S3_BUCKET_LAKE"]);
    found.has("ok buckets: the pipelines bucket", &[]).has("skipped objects: the lake bucket", &[]);
    let found = doctor(&site, &[("OBJ_SECRET_ACCESS_KEY", "wrong")]);
    found.has("problem buckets: ", &["denied", "OBJ_SECRET_ACCESS_KEY"]);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = doctor(&site, &[("OBJ_ENDPOINT_URL", &format!("http://{nobody}"))]);
    let refused = format!("listing: the store at http://{nobody}: Connection refused");
    found.has("problem buckets: ", &[&refused, "OBJ_ENDPOINT_URL"]).has("ok key-value store: ", &[]);
    found.has("skipped webhook: reading the lake bucket failed: ", &[&refused]);
    assert_eq!(found.at("problem buckets").len(), 1);
}

#[test]
fn folder_store_without_buckets_is_a_problem() {
    let site = Site::new(Kind::Embedded);
    let home = tempfile::tempdir().unwrap();
    let kv = home.path().join("kv.db");
    let scratch = home.path().join("a/b");
    let more = [
        ("OBJ_ENDPOINT_URL", format!("file://{}", home.path().display())),
        ("KV_URL", format!("sqlite://{}", kv.display())),
        ("SVC_SCRATCH_DIR", scratch.display().to_string()),
    ];
    let more: Vec<(&str, &str)> = more.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let found = doctor(&site, &more);
    assert_eq!(found.at("problem buckets").len(), 3);
    found.has("ok key-value store: ", &["does not exist yet: the first worker creates it"]);
    found.has("ok scratch: ", &["does not exist yet, and can be created"]);
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == ".lakemill"), "{left:?}");
}

#[test]
fn store_that_ignores_preconditions_is_a_warning() {
    let mut site = Site::new(Kind::Fleet);
    let proxy = s3s_fs().behind(|passing| {
        passing.drop_header("if-match");
        passing.drop_header("if-none-match");
        ProxyAction::Forward
    });
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    let found = doctor(&site, &[]);
    found.has(
        "warning store features: the store does not enforce If-Match",
        &["the pipelines bucket", "the lake bucket"],
    );
    assert_eq!(found.ran.status, 0, "{:?}", found.lines);
}

#[test]
fn store_with_a_wrong_clock_is_a_problem() {
    fn shift_date(answered: &mut Answered) {
        for (name, value) in &mut answered.headers {
            if name.eq_ignore_ascii_case("date") {
                *value =
                    (chrono::Utc::now() + chrono::TimeDelta::hours(2)).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
            }
        }
        if !answered.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("date")) {
            let date = chrono::Utc::now() + chrono::TimeDelta::hours(2);
            answered.headers.push(("date".into(), date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()));
        }
    }
    let mut site = Site::new(Kind::Fleet);
    let proxy = s3s_fs().behind(|_| ProxyAction::Change(shift_date));
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    doctor(&site, &[]).has("problem clock: this machine's clock is 7", &["s behind that of the object store", "NTP"]);
}

#[test]
fn unsafe_redis_settings_are_reported() {
    let site = Site::fleet(RedisServer::with(&["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"]));
    let found = doctor(&site, &[]);
    found.has("warning key-value store: ", &["`allkeys-lru`, expected `noeviction`"]);
    assert_eq!(found.ran.status, 0, "{:?}", found.lines);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = doctor(&site, &[("KV_URL", &format!("redis://:hush@{nobody}/0"))]);
    found.has("problem key-value store: ", &["can't be reached", "KV_URL"]).has("ok buckets: ", &[]);
    assert!(!found.ran.stdout.contains("hush"));
}

#[test]
fn taken_port_is_a_problem() {
    let site = Site::new(Kind::Embedded);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let hang_up = std::thread::spawn(move || {
        // A connection for the worker's check; dropped unread.
        drop(other.accept());
        other
    });
    doctor(&site, &[("PORT", &port)]).has("problem worker: port", &["is used by a program"]);
    drop(hang_up.join().unwrap());
    doctor(&site, &[("PORT", &port)]).has("ok worker: not running here", &["is free"]);
    doctor(&site, &[("PORT", &port), ("SVC_BIND", "192.0.2.1")]).has("problem worker: ", &["SVC_BIND `192.0.2.1`"]);
}

#[test]
fn foreign_address_is_one_problem() {
    let site = Site::new(Kind::Fleet);
    let found = doctor(&site, &[("PORT", &free_port().to_string()), ("SVC_BIND", "192.0.2.1")]);
    found.has("problem worker: SVC_BIND `192.0.2.1` is not an address of this machine", &[]);
    assert!(!found.lines.iter().any(|line| line.contains("GET /") || line.contains("HEAD /")), "{:?}", found.lines);
}

#[test]
fn too_much_memory_for_runs_is_a_problem() {
    let site = Site::new(Kind::Embedded);
    let found = doctor(&site, &[("SVC_RUN_MEMORY_BYTES", "1099511627776"), ("WORKER_CONCURRENCY", "4")]);
    found.has("problem memory: 1.00 TiB (SVC_RUN_MEMORY_BYTES) × 4 (WORKER_CONCURRENCY)", &["lower one of them"]);
}

#[test]
fn unwritable_scratch_is_a_problem() {
    let site = Site::new(Kind::Embedded);
    let file = site.home().join("a-file");
    std::fs::write(&file, "").unwrap();
    let within = file.join("scratch").display().to_string();
    // A superuser may write even to a read-only folder.
    let locked = site.home().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).unwrap();
    if !rustix::process::geteuid().is_root() {
        let found = doctor(&site, &[("SVC_SCRATCH_DIR", &locked.display().to_string())]);
        found.has("problem scratch: ", &["SVC_SCRATCH_DIR"]);
    }
    doctor(&site, &[("SVC_SCRATCH_DIR", &within)]).has("problem scratch: ", &["is not a folder"]);
}

#[test]
fn reconciled_lake_needs_no_webhook() {
    let site = Site::new(Kind::Fleet);
    let found = doctor(&site, &[("SVC_RECONCILE_SECONDS", "300")]);
    found.has("ok webhook: ", &["compared every 300 s (SVC_RECONCILE_SECONDS)"]);
    assert!(!found.lines.iter().any(|line| line.contains("set SVC_RECONCILE_SECONDS")), "{:?}", found.lines);
}

#[test]
fn shared_port_is_attributed_to_its_service() {
    let site = Site::new(Kind::Embedded);
    let (worker, web) = (site.worker(), site.web());
    let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
    let (hash, url) = (crate::cli_doctor_finds::hash(), format!("http://{}", worker.address()));
    let both = |port: &str| {
        let found = doctor(&site, &[("PORT", port), ("SVC_ADMIN_PASSWORD_HASH", &hash), ("SVC_WORKER_URL", &url)]);
        // Programs that listen on the default ports of this machine are not part of the test.
        let ours = |line: &&&str| !line.contains(":8080") && !line.contains(":3000");
        assert_eq!(found.at("problem").iter().filter(ours).count(), 0, "{:?}", found.lines);
        found
    };
    let (of_worker, of_web) = (port(&worker.address()), port(&web.address()));
    both(&of_worker).has(&format!("ok worker: running on port {of_worker}"), &[]);
    both(&of_web).has(&format!("ok web service: running on port {of_web}"), &[]);
    // A service on another port is not detected; doctor reports the one on the default port, or how to check.
    let check_port_known = |found: &Found, check: &str| {
        let line = found.lines.iter().find(|line| line.contains(&format!(" {check}: "))).unwrap();
        assert!(line.contains(" running on port ") || line.contains("`PORT=… lakemill doctor` with the"), "{line}");
    };
    check_port_known(&both(&of_worker), "web service");
    check_port_known(&both(&of_web), "worker");
}
