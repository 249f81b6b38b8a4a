//! Connections to Redis (passwords, databases, TLS), and its report in `doctor`.

use std::path::Path;
use std::time::Duration;

use lakemill::adapters::redis::{ClientIdentity, RedisKv, RedisOptions};
use lakemill::domain::job::{Job, JobMessage};
use lakemill::domain::name::Slug;
use lakemill::ports::jobs::JobRegistry;
use lakemill::ports::kv::{Diagnose, KvError};

use crate::support::redis_server::{RedisServer, free_port};

fn open(url: impl Into<String>) -> RedisKv {
    RedisKv::open(&RedisOptions::new(url)).unwrap()
}

fn problems(kv: &RedisKv) -> Vec<(bool, String)> {
    kv.report().unwrap().findings.into_iter().map(|finding| (finding.fatal, finding.problem)).collect()
}

#[test]
fn durable_server_has_no_findings() {
    let server = RedisServer::durable();
    let report = server.kv().report().unwrap();
    assert!(report.server.starts_with("Redis ") && report.findings.is_empty(), "{report:?}");
}

#[test]
fn risky_persistence_is_reported() {
    let server = RedisServer::with(&["--appendonly", "no", "--maxmemory-policy", "volatile-lru"]);
    let found = problems(&server.kv());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|(fatal, _)| !fatal));
    assert!(found[0].1.contains("`volatile-lru`, expected `noeviction`"), "{found:?}");
    assert!(found[1].1.contains("persistence is off"), "{found:?}");
    server.ask::<()>(&["CONFIG", "SET", "appendonly", "yes"]);
    server.ask::<()>(&["CONFIG", "SET", "appendfsync", "no"]);
    let found = problems(&server.kv());
    assert!(found[1].1.contains("appendfsync is `no`"), "{found:?}");
}

#[test]
fn cluster_mode_and_replica_are_fatal() {
    let server = RedisServer::with(&["--cluster-enabled", "yes", "--appendonly", "yes"]);
    assert!(problems(&server.kv()).iter().any(|(fatal, problem)| *fatal && problem.contains("cluster")));
    let (primary, replica) = (RedisServer::start(), RedisServer::start());
    replica.ask::<()>(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    assert!(problems(&replica.kv()).iter().any(|(fatal, problem)| *fatal && problem.contains("`slave`")));
}

#[test]
fn missing_info_permission_reports_skipped_checks() {
    let server = RedisServer::durable();
    server.ask::<()>(&["ACL", "SETUSER", "app", "on", ">s3cret", "~svc:*", "+@all", "-@dangerous"]);
    let kv = open(format!("redis://app:s3cret@127.0.0.1:{}/", server.port()));
    let findings = kv.report().unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(!findings[0].fatal, "jobs run without it");
    for part in ["may not call `INFO`", "6.2 or newer", "replica", "maxmemory-policy", "persistence"] {
        assert!(findings[0].problem.contains(part), "{part} in {findings:?}");
    }
    assert!(findings[0].advice.contains("ACL SETUSER USER +info +config|get"), "{findings:?}");
    // The permissions in the advice are sufficient.
    server.ask::<()>(&["ACL", "SETUSER", "app", "+info", "+config|get"]);
    assert_eq!(kv.report().unwrap().findings, []);
}

#[test]
fn forbidden_config_falls_back_to_info() {
    let server = RedisServer::durable();
    server.ask::<()>(&["ACL", "SETUSER", "app", "on", ">s3cret", "~svc:*", "+@all", "-@dangerous", "+info"]);
    let kv = open(format!("redis://app:s3cret@127.0.0.1:{}/", server.port()));
    let found = problems(&kv);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].1.contains("could not be checked"), "{found:?}");
}

#[test]
fn url_credentials_and_database_apply_and_the_password_is_never_shown() {
    let server = RedisServer::with(&["--requirepass", "s3cret/word"]);
    let port = server.port();
    open(format!("redis://:s3cret%2Fword@127.0.0.1:{port}/3")).ping().unwrap();
    for url in [
        format!("redis://127.0.0.1:{port}/"),
        format!("redis://:wr0ng@127.0.0.1:{port}/"),
        format!("redis://nobody:wr0ng@127.0.0.1:{port}/"),
        format!("redis://:s3cret%2Fword@127.0.0.1:{port}/99"),
    ] {
        let error = open(url.clone()).ping().unwrap_err();
        assert!(matches!(error, KvError::Refused { .. }), "{url}: {error:?}");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("wr0ng") && !text.contains("s3cret"), "{text}");
    }
    let kv = open(format!("redis://:s3cret%2Fword@127.0.0.1:{port}/3"));
    let message = JobMessage::new(Slug::parse("trips").unwrap(), false, "manual", chrono::DateTime::UNIX_EPOCH);
    kv.enqueue(&Job::queued(&message, 3)).unwrap();
    let other = open(format!("redis://:s3cret%2Fword@127.0.0.1:{port}/2"));
    assert_eq!((kv.counts().unwrap().stream, other.counts().unwrap().stream), (1, 0));
}

#[test]
fn unknown_host_is_unavailable() {
    let free = free_port();
    let options = RedisOptions {
        connect_timeout: Duration::from_secs(2),
        ..RedisOptions::new(format!("redis://user:s3cret@127.0.0.1:{free}/"))
    };
    let error = RedisKv::open(&options).unwrap().ping().unwrap_err();
    assert!(matches!(error, KvError::Unavailable { .. }) && !error.to_string().contains("s3cret"), "{error}");
}

/// A Redis with TLS on a port of its own, and certificates in a folder. `clients`: whether clients need certificates.
fn tls_server(folder: &Path, clients: &str) -> (RedisServer, u16) {
    crate::support::certificates::make(folder);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let tls_port = free_port();
    let server = RedisServer::with(&[
        "--tls-port",
        &tls_port.to_string(),
        "--tls-cert-file",
        &path("server.pem"),
        "--tls-key-file",
        &path("server.key"),
        "--tls-auth-clients",
        clients,
        "--tls-ca-cert-file",
        &path("ca.pem"),
    ]);
    (server, tls_port)
}

#[test]
fn tls_trusts_only_named_authorities() {
    let folder = tempfile::tempdir().unwrap();
    let (server, tls_port) = tls_server(folder.path(), "no");
    let ca_pem = Some(std::fs::read(folder.path().join("ca.pem")).unwrap());
    let url = format!("rediss://127.0.0.1:{tls_port}/0");
    let kv = RedisKv::open(&RedisOptions { ca_pem: ca_pem.clone(), ..RedisOptions::new(&url) }).unwrap();
    kv.ping().unwrap();
    let message = JobMessage::new(Slug::parse("trips").unwrap(), false, "manual", chrono::DateTime::UNIX_EPOCH);
    kv.enqueue(&Job::queued(&message, 3)).unwrap();
    assert_eq!(server.kv().counts().unwrap().stream, 1);
    let anonymous = open(&url).ping().unwrap_err();
    assert!(matches!(anonymous, KvError::Unavailable { .. }), "{anonymous:?}");
    let by_name = RedisOptions { ca_pem, ..RedisOptions::new(format!("rediss://localhost:{tls_port}/0")) };
    RedisKv::open(&by_name).unwrap().ping().unwrap_err();
}

#[test]
fn server_that_asks_for_client_certificates_gets_the_one_that_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, tls_port) = tls_server(folder.path(), "yes");
    let pem = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let without =
        RedisOptions { ca_pem: Some(pem("ca.pem")), ..RedisOptions::new(format!("rediss://127.0.0.1:{tls_port}/0")) };
    let refused = RedisKv::open(&without).unwrap().ping().unwrap_err();
    assert!(matches!(refused, KvError::Unavailable { .. }), "{refused:?}");
    let client = Some(ClientIdentity { chain_pem: pem("client.pem"), key_pem: pem("client.key") });
    RedisKv::open(&RedisOptions { client, ..without }).unwrap().ping().unwrap();
}
