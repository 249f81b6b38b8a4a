//! The environment: defaults, bounds, secrets from files, and one error that lists everything.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lakemill::config::*;

const REQUIRED: &[(&str, &str)] = &[
    ("S3_BUCKET_PIPELINES", "svc-pipelines"),
    ("S3_BUCKET_LAKE", "svc-lake"),
    ("S3_BUCKET_WAREHOUSE", "svc-warehouse"),
    ("OBJ_ENDPOINT_URL", "http://127.0.0.1:9000/"),
    ("OBJ_ACCESS_KEY_ID", "key-id"),
    ("OBJ_SECRET_ACCESS_KEY", "hush-key"),
    ("OBJ_REGION", "us-east-1"),
    ("KV_URL", "redis://:hush-kv@localhost:6379/0"),
    ("SVC_WORKER_TOKEN", "hush-token"),
];
const OF_WORKER: &[(&str, &str)] = &[("SVC_WEBHOOK_SECRET", "hush-hook")];
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo";
const OF_WEB: &[(&str, &str)] = &[("SVC_ADMIN_PASSWORD_HASH", HASH)];

type Changes<'a> = &'a [(&'a str, &'a str)];

/// Loads with the required variables and `changes` (an empty value counts as missing), from `files`.
fn load<T>(
    own: Changes<'_>,
    changes: Changes<'_>,
    files: Changes<'_>,
    from: fn(&Environment<'_>) -> Result<WithWarnings<T>, EnvironmentError>,
) -> Result<WithWarnings<T>, EnvironmentError> {
    let vars: HashMap<&str, OsString> =
        REQUIRED.iter().chain(own).chain(changes).map(|(k, v)| (*k, OsString::from(v))).collect();
    let get = |name: &str| vars.get(name).cloned();
    let read = |path: &Path| match files.iter().find(|(name, _)| Path::new(name) == path) {
        Some((_, "forbidden")) => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        Some((_, content)) => Ok(content.as_bytes().to_vec()),
        None => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    from(&Environment { get: &get, read: &read })
}

fn worker(changes: Changes<'_>) -> Result<WithWarnings<WorkerConfig>, EnvironmentError> {
    load(OF_WORKER, changes, &[], WorkerConfig::from_env)
}

fn web(changes: Changes<'_>) -> Result<WithWarnings<WebConfig>, EnvironmentError> {
    load(OF_WEB, changes, &[], WebConfig::from_env)
}

fn key(id: &str, secret: &str) -> StoreCredentials {
    StoreCredentials::Key { id: Secret::new(id), secret: Secret::new(secret) }
}

#[test]
fn chain_of_credentials_needs_no_keys() {
    let without = [("OBJ_ACCESS_KEY_ID", ""), ("OBJ_SECRET_ACCESS_KEY", "")];
    let error = worker(&without).unwrap_err().to_string();
    assert!(error.contains("OBJ_ACCESS_KEY_ID") && error.contains("OBJ_SECRET_ACCESS_KEY"), "{error}");
    let chain = |more: Changes<'_>| {
        let changes = [&without[..], &[("OBJ_CREDENTIALS", "chain")], more].concat();
        worker(&changes).map(|loaded| match loaded.config.objects.credentials {
            StoreCredentials::Chain(variables) => *variables,
            StoreCredentials::Key { .. } => panic!("not the chain"),
        })
    };
    let home = chain(&[("HOME", "/srv/ann")]).unwrap();
    assert_eq!(home.credentials_file, Some("/srv/ann/.aws/credentials".into()));
    assert_eq!((home.web_identity, home.container, home.metadata_endpoint), (None, None, None));
    let kubernetes = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/run/token"), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")];
    let sts = |more: (&'static str, &'static str)| {
        chain(&[&kubernetes[..], &[more]].concat()).unwrap().web_identity.unwrap().sts_endpoint
    };
    assert_eq!(sts(("AWS_PROFILE", "")), "https://sts.us-east-1.amazonaws.com", "the store's region");
    assert_eq!(sts(("AWS_REGION", "cn-north-1")), "https://sts.cn-north-1.amazonaws.com.cn");
    assert_eq!(sts(("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")), "http://127.0.0.1:1");
    for (name, value) in [
        ("OBJ_CREDENTIALS", "role"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/run/token"),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "//example.org/"),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "elsewhere"),
    ] {
        let error = chain(&[(name, value)]).unwrap_err().to_string();
        let named = if name == "AWS_WEB_IDENTITY_TOKEN_FILE" { "AWS_ROLE_ARN" } else { name };
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn required_variables_are_sufficient() {
    let WithWarnings { config, warnings } = worker(&[]).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(config.objects.buckets.lake, "svc-lake");
    assert_eq!(config.objects.endpoint, StoreEndpoint::S3("http://127.0.0.1:9000".into()));
    assert_eq!(config.objects.credentials, key("key-id", "hush-key"));
    assert_eq!((config.server.port, config.server.bind.to_string()), (8_080, "0.0.0.0".into()));
    assert_eq!((config.concurrency, config.attempts_max), (1, 3));
    let ms = Duration::from_millis;
    let lease = LeaseConfig { lock_ttl: ms(90_000), heartbeat: ms(30_000), reclaim_idle: ms(120_000) };
    assert_eq!(config.lease, lease);
    assert_eq!(config.run_memory_bytes, 512 << 20);
    assert_eq!(config.scratch_dir, PathBuf::from("/var/tmp/lakemill"));
    assert_eq!(
        (config.reconcile, config.objects.network),
        (Some(Duration::from_secs(86_400)), NetworkConfig::default())
    );
    assert_eq!(config.log, LogConfig { level: LogLevel::Info, format: None });

    let config = web(&[]).unwrap().config;
    assert_eq!((config.server.port, config.worker_url.as_str()), (3_000, "http://127.0.0.1:8080"));
    assert_eq!((config.session.idle.as_secs(), config.session.max.as_secs()), (7_200, 86_400));
    assert_eq!((config.query_memory_bytes, config.query_timeout), (1 << 30, Duration::from_secs(30)));
    assert_eq!(config.password_hash.reveal(), HASH);
}

#[test]
fn all_missing_variables_are_listed() {
    let none = Environment { get: &|_| None, read: &|_| Err(io::Error::from(io::ErrorKind::NotFound)) };
    let error = WorkerConfig::from_env(&none).unwrap_err();
    let names: Vec<&str> = error.faults.iter().map(Fault::name).collect();
    let expected: Vec<&str> = REQUIRED.iter().chain(OF_WORKER).map(|(name, _)| *name).collect();
    assert_eq!(
        {
            let mut n = names.clone();
            n.sort();
            n
        },
        {
            let mut e = expected;
            e.sort();
            e
        }
    );
    let text = error.to_string();
    assert!(text.starts_with("10 environment variables can't be used:\n"), "{text}");
    assert!(text.contains("\n  S3_BUCKET_LAKE (bucket of raw CSVs) is missing\n"), "{text}");
    assert!(text.contains("\n  SVC_WEBHOOK_SECRET (secret of POST /events/s3) is missing"), "{text}");
    let error = WebConfig::from_env(&none).unwrap_err();
    assert!(error.to_string().contains("SVC_ADMIN_PASSWORD_HASH"), "{error}");
    assert_eq!(error.faults.len(), 10);
    assert_eq!(EXIT_STATUS, 78);
}

#[test]
fn empty_values_count_as_missing() {
    let error = worker(&[("SVC_WORKER_TOKEN", ""), ("OBJ_REGION", ""), ("PORT", "")]).unwrap_err();
    let names: Vec<&str> = error.faults.iter().map(Fault::name).collect();
    assert_eq!(names, ["OBJ_REGION", "SVC_WORKER_TOKEN"]);
}

#[test]
fn malformed_values_report_found_and_expected() {
    for (name, value, expected) in [
        ("PORT", "80a", "found `80a`"),
        ("PORT", "65536", "found `65536`, expected a whole number from 0 to 65535"),
        ("PORT", "+80", "found `+80`"),
        ("SVC_BIND", "localhost", "expected an IP address"),
        ("WORKER_CONCURRENCY", "0", "from 1 to 64"),
        ("SVC_MANUAL_EXECUTORS", "1", "from 0 to 0"),
        ("SVC_METRICS_PIPELINES", "10001", "from 0 to 10000"),
        ("MAX_ATTEMPTS", "1.5", "from 1 to 100"),
        ("JOB_LOCK_TTL_MS", "5", "from 1000 to 3600000 (milliseconds)"),
        ("HEARTBEAT_MS", "-1", "(milliseconds)"),
        ("SVC_RUN_MEMORY_BYTES", "1000", "from 67108864"),
        ("SVC_SCRATCH_DIR", "tmp", "an absolute path"),
        ("SVC_LOG", "loud", "one of `error`, `warn`, `info`, `debug`, `trace`"),
        ("SVC_LOG_FORMAT", "xml", "one of `json`, `text`"),
        ("SVC_TRUSTED_PROXIES", "10.0.0.0/33", "ranges such as"),
        ("SVC_TRUSTED_PROXIES", "10.0.0.0/8,,::1", "ranges such as"),
        ("SVC_ALLOWED_HOSTS", "lake.internal,", "host names without ports"),
        ("SVC_ALLOWED_HOSTS", "lake.internal:3000", "host names without ports"),
        ("OBJ_ENDPOINT_URL", "localhost:9000", "`http://…`, `https://…` or `file:///…`"),
        ("OBJ_ENDPOINT_URL", "file://relative", "with an absolute path"),
        ("S3_BUCKET_LAKE", "My_Bucket", "3 to 63 of a-z"),
        ("OBJ_REGION", "us east", "without spaces"),
    ] {
        let error = worker(&[(name, value)]).unwrap_err();
        assert_eq!(error.faults.len(), 1, "{error}");
        assert_eq!(error.faults[0].name(), name);
        assert!(error.to_string().contains(expected), "{error}");
    }
    for (name, value, expected) in [
        ("SVC_SESSION_IDLE_S", "90000", "at most SVC_SESSION_MAX_S, `86400`"),
        ("SVC_WORKER_URL", "worker:8080", "starts with `http://`"),
        ("SVC_PUBLIC_URL", "https://x.org/app", "without a path"),
        ("SVC_PUBLIC_URL", "x.org", "starts with `http://`"),
        ("SVC_QUERY_TIMEOUT_MS", "1", "from 100"),
        ("SVC_CACHE_BYTES", "1G", "a whole number"),
    ] {
        let error = web(&[(name, value)]).unwrap_err();
        assert!(error.to_string().contains(name) && error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let config = worker(&[]).unwrap();
    assert!(!format!("{config:?}").contains("hush"), "{config:?}");
    let error = load(
        &[("SVC_ADMIN_PASSWORD_HASH", "hush-plain")],
        &[("KV_URL", "http://hush@x"), ("PORT", "x")],
        &[],
        WebConfig::from_env,
    )
    .unwrap_err();
    assert_eq!(error.faults.len(), 3, "{error}");
    assert!(!format!("{error} {error:?}").contains("hush"), "{error}");
    assert!(error.to_string().contains("expected an argon2id PHC string"), "{error}");
    assert!(error.to_string().contains("`sqlite:///…`"), "{error}");
    let error = worker(&[("OBJ_ENDPOINT_URL", "https://user:hush@host")]).unwrap_err();
    assert!(error.to_string().contains("OBJ_ENDPOINT_URL") && !error.to_string().contains("hush"), "{error}");
}

#[test]
fn secrets_come_from_files_and_from_the_credentials_directory() {
    let files = [
        ("/run/token", "from-file\n"),
        ("/creds/SVC_WORKER_TOKEN", "not this"),
        ("/creds/OBJ_SECRET_ACCESS_KEY", "from-credentials\r\n"),
        ("/creds/SVC_WEBHOOK_SECRET", "two\nlines\n\n"),
    ];
    let changes = [
        ("CREDENTIALS_DIRECTORY", "/creds"),
        ("SVC_WORKER_TOKEN", ""),
        ("SVC_WORKER_TOKEN_FILE", "/run/token"),
        ("OBJ_SECRET_ACCESS_KEY", ""),
        ("SVC_WEBHOOK_SECRET", ""),
    ];
    let config = load(OF_WORKER, &changes, &files, WorkerConfig::from_env).unwrap().config;
    assert_eq!(config.worker_token.reveal(), "from-file");
    assert_eq!(config.webhook_secret.reveal(), "two\nlines\n");
    let expected = key("key-id", "from-credentials");
    assert_eq!(config.objects.credentials, expected, "the variable goes before the directory");
}

#[test]
fn unusable_secret_files_are_errors() {
    let fault = |changes: Changes<'_>, files: Changes<'_>| {
        let error = load(OF_WORKER, changes, files, WorkerConfig::from_env).unwrap_err();
        assert_eq!(error.faults.len(), 1, "{error}");
        error.faults[0].to_string()
    };
    let both = fault(&[("SVC_WORKER_TOKEN_FILE", "/run/token")], &[("/run/token", "x")]);
    assert_eq!(
        both,
        "SVC_WORKER_TOKEN (token of POST /config/validate) is given twice, as SVC_WORKER_TOKEN and as SVC_WORKER_TOKEN_FILE"
    );
    let named = [("SVC_WORKER_TOKEN", ""), ("SVC_WORKER_TOKEN_FILE", "/run/token")];
    assert!(fault(&named, &[]).contains("reading `/run/token` failed"));
    assert!(fault(&named, &[("/run/token", "forbidden")]).contains("permission denied"));
    assert!(fault(&named, &[("/run/token", "\n")]).contains("is missing"));
}

#[test]
fn slow_heartbeat_is_clamped_with_a_warning() {
    for (ttl, heartbeat, expected_ms, warns) in [
        ("90000", "30000", 30_000, false),
        ("90000", "30001", 30_000, true),
        ("60000", "", 20_000, false),
        ("60000", "50000", 20_000, true),
        ("90000", "1000", 1_000, false),
    ] {
        let WithWarnings { config, warnings } =
            worker(&[("JOB_LOCK_TTL_MS", ttl), ("HEARTBEAT_MS", heartbeat)]).unwrap();
        assert_eq!(config.lease.heartbeat, Duration::from_millis(expected_ms), "{ttl} {heartbeat}");
        assert!(2 * config.lease.heartbeat < config.lease.lock_ttl);
        assert_eq!(
            warnings.iter().any(|w| w.contains("HEARTBEAT_MS `") && w.contains("clamped")),
            warns,
            "{warnings:?}"
        );
    }
}

#[test]
fn reclaim_waits_for_the_lock_to_expire() {
    let WithWarnings { config, warnings } = worker(&[("JOB_LOCK_TTL_MS", "300000")]).unwrap();
    assert_eq!((config.lease.reclaim_idle, warnings.len()), (Duration::from_millis(330_000), 0));
    let WithWarnings { config, warnings } = worker(&[("SVC_RECLAIM_IDLE_MS", "5000")]).unwrap();
    assert_eq!(config.lease.reclaim_idle, Duration::from_millis(120_000));
    assert!(warnings[0].contains("raised to `120000`"), "{warnings:?}");
}

#[test]
fn embedded_backends_have_urls() {
    let changes =
        [("OBJ_ENDPOINT_URL", "file:///var/lib/lakemill/objects"), ("KV_URL", "sqlite:///var/lib/lakemill/kv.db")];
    let config = worker(&changes).unwrap().config;
    assert_eq!(config.objects.endpoint, StoreEndpoint::Folder("/var/lib/lakemill/objects".into()));
    assert_eq!(config.kv, KvConfig::Sqlite("/var/lib/lakemill/kv.db".into()));
}

#[test]
fn malformed_queue_url_is_rejected_and_not_shown() {
    for url in ["redis://", "redis:///0", "redis://u:hush@:no port/0", "redis://:hush@host/db", "rediss://host:99999"] {
        let error = worker(&[("KV_URL", url)]).unwrap_err();
        assert!(error.to_string().contains("KV_URL") && error.to_string().contains("`redis://["), "{error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    for url in ["redis://host", "rediss://u:p@host:6380/3", "redis://[::1]:6379/", "redis://:p%20w@10.0.0.1"] {
        let expected = RedisConfig { url: Secret::new(url), certificate: None };
        assert_eq!(worker(&[("KV_URL", url)]).unwrap().config.kv, KvConfig::Redis(expected), "{url}");
    }
}

#[test]
fn client_certificate_of_redis_has_a_key_and_needs_tls() {
    let files =
        [("KV_CLIENT_CERT_FILE", "/etc/lakemill/client.pem"), ("KV_CLIENT_KEY_FILE", "/etc/lakemill/client.key")];
    for url in ["rediss://redis.example/0", "rediss+sentinel://a,b/main"] {
        let kv = worker(&[files[0], files[1], ("KV_URL", url)]).unwrap().config.kv;
        let KvConfig::Redis(RedisConfig { certificate: Some(certificate), .. }) = kv else { panic!("{kv:?}") };
        assert_eq!(certificate.chain, Path::new("/etc/lakemill/client.pem"));
        assert_eq!(certificate.key, Path::new("/etc/lakemill/client.key"));
    }
    for (changes, named) in [
        (vec![files[0], ("KV_URL", "rediss://a")], "KV_CLIENT_KEY_FILE, too"),
        (vec![files[1], ("KV_URL", "rediss://a")], "KV_CLIENT_CERT_FILE, too"),
        (vec![files[0], files[1], ("KV_URL", "redis://a")], "KV_URL is not `rediss://…`"),
        (vec![files[0], files[1], ("KV_URL", "sqlite:///a.db")], "KV_URL is not `rediss://…`"),
        (vec![("KV_CLIENT_CERT_FILE", "client.pem")], "absolute path"),
    ] {
        let error = worker(&changes).unwrap_err().to_string();
        assert!(error.contains(named), "{changes:?}: {error}");
    }
}

#[test]
fn trusted_proxies_are_ranges_of_addresses() {
    let changes = [("SVC_TRUSTED_PROXIES", "10.0.0.0/8, 192.168.1.7 ,fd00::/8,0.0.0.0/0")];
    let ranges = worker(&changes).unwrap().config.server.trusted_proxies;
    let within = |range: usize, address: &str| ranges[range].contains(address.parse().unwrap());
    assert!(within(0, "10.255.0.1") && !within(0, "11.0.0.1") && within(0, "::ffff:10.1.2.3"));
    assert!(within(1, "192.168.1.7") && !within(1, "192.168.1.8"));
    assert!(within(2, "fd12::1") && !within(2, "fe80::1") && !within(2, "10.0.0.1"));
    assert!(within(3, "8.8.8.8") && !within(3, "::1"));
}

#[test]
fn equal_buckets_are_rejected() {
    for (same, name, other) in [
        (["S3_BUCKET_LAKE", "S3_BUCKET_WAREHOUSE"], "S3_BUCKET_WAREHOUSE", "a bucket other than S3_BUCKET_LAKE"),
        (["S3_BUCKET_LAKE", "S3_BUCKET_PIPELINES"], "S3_BUCKET_LAKE", "a bucket other than S3_BUCKET_PIPELINES"),
        (
            ["S3_BUCKET_PIPELINES", "S3_BUCKET_WAREHOUSE"],
            "S3_BUCKET_WAREHOUSE",
            "a bucket other than S3_BUCKET_PIPELINES",
        ),
    ] {
        let error = worker(&same.map(|name| (name, "both"))).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(name) && message.contains("found `both`") && message.contains(other), "{message}");
        assert_eq!(error.faults.len(), 1, "{message}");
    }
}

#[test]
fn worker_ignores_variables_of_the_web_service() {
    assert!(worker(&[("SVC_CACHE_BYTES", "many"), ("SVC_SESSION_IDLE_S", "long")]).is_ok());
}
