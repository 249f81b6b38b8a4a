//! Compares the docs' tables of environment variables with the code that reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;

use lakemill::config::{
    Environment, EnvironmentError, NetworkConfig, OAUTH_SCOPE_DEFAULT, StoreCredentials, WebConfig, WorkerConfig,
};

/// Source files that read a worker's config.
const SOURCES: &[&str] = &[
    "catalog.rs",
    "events.rs",
    "kv.rs",
    "logging.rs",
    "network.rs",
    "notify.rs",
    "object_store.rs",
    "server.rs",
    "worker.rs",
];
/// The headings above the worker's table, and above the web service's additional variables.
const WORKER_HEADING: &str = "\n## The worker's variables\n";
const WEB_HEADING: &str = "\n## The web service's variables\n";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The worker's part of the page, and the web service's.
fn sections() -> (String, String) {
    let page = read("docs/configuration.md");
    let (_, section) = page.split_once(WORKER_HEADING).unwrap();
    let (worker, web) = section.split_once(WEB_HEADING).unwrap();
    let web = web.split_once("\n## ").map_or(web, |(web, _)| web);
    (worker.to_owned(), web.to_owned())
}

/// The rows of the worker's table.
fn rows() -> BTreeMap<String, (String, String)> {
    rows_of(&sections().0)
}

/// The rows of a table: variable, default, meaning.
fn rows_of(section: &str) -> BTreeMap<String, (String, String)> {
    let cells = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?.to_owned();
        Some((name, (cells.next()?, cells.next()?)))
    };
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with('|')).filter_map(cells).collect();
    let count = rows.len();
    let rows: BTreeMap<_, _> = rows.into_iter().collect();
    assert_eq!(rows.len(), count, "a variable is in one row");
    rows
}

fn known() -> BTreeSet<String> {
    read_by(SOURCES)
}

/// The variables that the config's source files read.
fn read_by(files: &[&str]) -> BTreeSet<String> {
    let sources = files.iter().map(|name| read(&format!("src/config/{name}")));
    let names = sources.flat_map(|text| {
        let parts: Vec<String> = text.split("Var(\"").skip(1).map(str::to_owned).collect();
        parts.into_iter().filter_map(|part| part.split_once('"').map(|(name, _)| name.to_owned()))
    });
    names.collect()
}

#[test]
fn docs_list_exactly_the_variables_of_a_worker() {
    let documented: BTreeSet<String> = rows().into_keys().collect();
    assert_eq!(documented, known());
    for (name, (_, meaning)) in rows() {
        assert!(!meaning.is_empty(), "`{name}` has a meaning");
    }
}

#[test]
fn page_of_aws_names_its_variables() {
    let page = read("docs/aws.md");
    // The second name of a region is an old one.
    for name in read_by(&["aws.rs"]).iter().filter(|name| !["HOME", "AWS_DEFAULT_REGION"].contains(&name.as_str())) {
        assert!(page.contains(name), "docs/aws.md doesn't name {name}");
    }
}

#[test]
fn docs_and_code_agree_on_required_variables() {
    let none = Environment { get: &|_| None, read: &|_| Err(io::Error::from(io::ErrorKind::NotFound)) };
    let missed = |error: EnvironmentError| -> BTreeSet<String> {
        error.faults.iter().map(|fault| fault.name().to_owned()).collect()
    };
    let required = |section: &str| -> BTreeSet<String> {
        rows_of(section).into_iter().filter(|(_, (default, _))| default == "required").map(|(name, _)| name).collect()
    };
    let (worker, web) = sections();
    assert_eq!(missed(WorkerConfig::from_env(&none).unwrap_err()), required(&worker));
    let shared = required(&worker).into_iter().filter(|name| name.starts_with("S3_") || name.starts_with("OBJ_"));
    let expected: BTreeSet<String> = shared.chain(required(&web)).chain(["KV_URL".to_owned()]).collect();
    assert_eq!(missed(WebConfig::from_env(&none).unwrap_err()), expected);
}

#[test]
fn docs_list_the_variables_of_the_web_service() {
    let documented: BTreeSet<String> = rows_of(&sections().1).into_keys().collect();
    let mut expected = read_by(&["web.rs"]);
    expected.insert("PORT".to_owned());
    assert_eq!(documented, expected);
    let required = |name: &str| {
        Some(match name {
            "S3_BUCKET_PIPELINES" => "pipelines",
            "S3_BUCKET_LAKE" => "lake",
            "S3_BUCKET_WAREHOUSE" => "warehouse",
            "OBJ_ENDPOINT_URL" => "http://127.0.0.1:9000",
            "OBJ_ACCESS_KEY_ID" | "OBJ_SECRET_ACCESS_KEY" | "OBJ_REGION" | "SVC_WORKER_TOKEN" => "x",
            "KV_URL" => "redis://127.0.0.1:6379",
            "SVC_ADMIN_PASSWORD_HASH" => "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
            _ => return None,
        })
    };
    let get = |name: &str| required(name).map(OsString::from);
    let env = Environment { get: &get, read: &|_| Err(io::Error::from(io::ErrorKind::NotFound)) };
    let config = WebConfig::from_env(&env).unwrap().config;
    let defaults: BTreeMap<&str, String> = [
        ("SVC_WORKER_URL", config.worker_url),
        ("PORT", config.server.port.to_string()),
        ("SVC_SESSION_IDLE_S", config.session.idle.as_secs().to_string()),
        ("SVC_SESSION_MAX_S", config.session.max.as_secs().to_string()),
        ("SVC_CACHE_DIR", config.cache_dir.display().to_string()),
        ("SVC_CACHE_BYTES", config.cache_bytes.to_string()),
        ("SVC_QUERY_MEMORY_BYTES", config.query_memory_bytes.to_string()),
        ("SVC_QUERY_TIMEOUT_MS", config.query_timeout.as_millis().to_string()),
        ("SVC_IMPORT_BYTES_MAX", config.import_bytes_max.to_string()),
    ]
    .into();
    for (name, (default, _)) in rows_of(&sections().1) {
        match defaults.get(name.as_str()) {
            Some(value) => assert_eq!(default, format!("`{value}`"), "`{name}`"),
            None => assert!(default == "required" || default == "none", "`{name}`: {default}"),
        }
    }
}

#[test]
fn docs_and_worker_agree_on_defaults() {
    let required = |name: &str| {
        Some(match name {
            "S3_BUCKET_PIPELINES" => "pipelines",
            "S3_BUCKET_LAKE" => "lake",
            "S3_BUCKET_WAREHOUSE" => "warehouse",
            "OBJ_ENDPOINT_URL" => "http://127.0.0.1:9000",
            "OBJ_ACCESS_KEY_ID" | "OBJ_SECRET_ACCESS_KEY" | "OBJ_REGION" => "x",
            "KV_URL" => "redis://127.0.0.1:6379",
            "SVC_WORKER_TOKEN" | "SVC_WEBHOOK_SECRET" => "x",
            _ => return None,
        })
    };
    let get = |name: &str| required(name).map(OsString::from);
    let env = Environment { get: &get, read: &|_| Err(io::Error::from(io::ErrorKind::NotFound)) };
    let config = WorkerConfig::from_env(&env).unwrap().config;
    let ms = |time: std::time::Duration| time.as_millis().to_string();
    let expected: BTreeMap<&str, String> = [
        ("WORKER_CONCURRENCY", config.concurrency.to_string()),
        ("SVC_MANUAL_EXECUTORS", config.manual_executors.to_string()),
        ("SVC_METRICS_PIPELINES", config.metrics_pipelines.to_string()),
        ("MAX_ATTEMPTS", config.attempts_max.to_string()),
        ("JOB_LOCK_TTL_MS", ms(config.lease.lock_ttl)),
        ("HEARTBEAT_MS", ms(config.lease.heartbeat)),
        ("SVC_RECLAIM_IDLE_MS", ms(config.lease.reclaim_idle)),
        ("PORT", config.server.port.to_string()),
        ("SVC_BIND", config.server.bind.to_string()),
        ("SVC_SCRATCH_DIR", config.scratch_dir.display().to_string()),
        ("SVC_RUN_MEMORY_BYTES", config.run_memory_bytes.to_string()),
        ("SVC_RECONCILE_SECONDS", config.reconcile.unwrap().as_secs().to_string()),
        ("OBJ_CREDENTIALS", "key".to_owned()),
        ("OBJ_ADDRESSING", format!("{:?}", config.objects.requests.addressing).to_lowercase()),
        ("OBJ_SIGNATURE", format!("{:?}", config.objects.requests.signature).to_lowercase()),
        ("OBJ_REQUESTER_PAYS", config.objects.requests.is_requester_paying.to_string()),
        ("SVC_ICEBERG_CATALOG_SCOPE", OAUTH_SCOPE_DEFAULT.to_owned()),
        ("SVC_LOG", format!("{:?}", config.log.level).to_lowercase()),
    ]
    .into_iter()
    .map(|(name, value)| (name, format!("`{value}`")))
    .collect();
    // A variable without default has an empty cell.
    assert!(config.server.metrics_token.is_none() && config.server.trusted_proxies.is_empty());
    assert!(config.objects.network == NetworkConfig::default() && config.log.format.is_none());
    assert!(config.drain_max.is_none() && config.job_records_days.is_none());
    assert!(matches!(config.objects.credentials, StoreCredentials::Key { .. }));
    for (name, (default, _)) in rows() {
        match expected.get(name.as_str()) {
            Some(value) => assert_eq!(default, *value, "`{name}`"),
            None => {
                assert!(!default.starts_with('`'), "`{name}` has the default {default}, which the test doesn't know")
            }
        }
    }
}
