//! `lakemill doctor` finds each misconfiguration of its documented list that no other test covers. The test creates it
//! for real and checks finding and advice.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use lakemill::domain::layout::{delta_version_key, iceberg_metadata_name, iceberg_prefix};
use lakemill::domain::name::Slug;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::json;

use crate::cli_doctor::{command, doctor, output_of};
use crate::support::children::Reaped as _;
use crate::support::http_proxy::ProxyAction;
use crate::support::redis_server::{RedisServer, free_port};
use crate::support::s3_server::{REGION, s3s_fs};
use crate::support::site::{Kind, Site, await_that};

/// A valid password hash for a web service.
pub fn hash() -> String {
    lakemill::adapters::password::PasswordHash::of("correct horse").unwrap().to_string()
}

#[test]
fn equal_bucket_names_are_a_problem() {
    let site = Site::new(Kind::Fleet);
    let lake = site.env()["S3_BUCKET_LAKE"].clone();
    let found = doctor(&site, &[("S3_BUCKET_WAREHOUSE", &lake)]);
    found.has("problem worker environment: S3_BUCKET_WAREHOUSE", &["→ correct S3_BUCKET_WAREHOUSE"]);
}

#[test]
fn wrong_access_key_and_wrong_secret_are_distinguished() {
    let site = Site::new(Kind::Fleet);
    let found = doctor(&site, &[("OBJ_ACCESS_KEY_ID", "nobody")]);
    found.has("problem buckets: ", &["denied", "→ check OBJ_ACCESS_KEY_ID"]);
    let found = doctor(&site, &[("OBJ_SECRET_ACCESS_KEY", "wrong")]);
    found.has(
        "problem buckets: ",
        &["SignatureDoesNotMatch", "check OBJ_SECRET_ACCESS_KEY", "→ check OBJ_ACCESS_KEY_ID"],
    );
}

#[test]
fn wrong_region_is_a_problem() {
    let mut site = Site::new(Kind::Fleet);
    // Like AWS, which refuses a signature for another region.
    let (own, in_query) = (format!("/{REGION}/s3/"), format!("%2F{REGION}%2Fs3%2F"));
    let proxy = s3s_fs().behind(move |passing| {
        let authorization = passing.header("authorization").unwrap_or_default();
        if authorization.contains(&own) || passing.target.contains(&in_query) {
            return ProxyAction::Forward;
        }
        let body = "<Error><Code>AuthorizationQueryParametersError</Code><Message>the region is wrong; expecting \
                    'eu-test-1'</Message></Error>";
        let length = body.len();
        ProxyAction::Answer(
            format!("HTTP/1.1 400 Bad Request\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                .into_bytes(),
        )
    });
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    doctor(&site, &[]).has("ok buckets: ", &[]);
    let found = doctor(&site, &[("OBJ_REGION", "us-east-1")]);
    found.has("problem buckets: ", &["expecting 'eu-test-1'", "check OBJ_REGION"]);
}

#[test]
fn wrong_scheme_is_a_problem() {
    let site = Site::new(Kind::Fleet);
    let url = site.env()["OBJ_ENDPOINT_URL"].replace("http://", "https://");
    doctor(&site, &[("OBJ_ENDPOINT_URL", &url)]).has("problem buckets: ", &["that scheme and port are right"]);
    // Like most servers, it ignores parameters that it doesn't know.
    let polite = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", polite.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in polite.incoming().flatten() {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    doctor(&site, &[("OBJ_ENDPOINT_URL", &url)]).has(
        "problem buckets: ",
        &["→ the server at this address doesn't use TLS: correct the scheme (`http://`?) or port"],
    );
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn openssl(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn untrusted_certificate_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let made = openssl(
        folder.path(),
        &[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            "own.key",
            "-out",
            "own.pem",
            "-days",
            "2",
            "-subj",
            "/CN=store",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ],
    );
    assert!({ made }.output_reaped().unwrap().status.success());
    let port = free_port().to_string();
    let server = openssl(folder.path(), &["s_server", "-accept", &port, "-cert", "own.pem", "-key", "own.key", "-www"]);
    let _server = Running({ server }.spawn_reaped().unwrap());
    await_that("the server", || TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    let site = Site::new(Kind::Fleet);
    doctor(&site, &[("OBJ_ENDPOINT_URL", &format!("https://127.0.0.1:{port}"))])
        .has("problem buckets: ", &["certificate", "→ the store's certificate is not trusted", "SVC_CA_FILE"]);
}

#[test]
fn wrong_redis_password_is_a_problem() {
    let site = Site::fleet(RedisServer::durable());
    let redis = RedisServer::with(&["--requirepass", "correct-horse-battery"]);
    let wrong = redis.url().replace("redis://", "redis://:wrong-one@");
    let found = doctor(&site, &[("KV_URL", &wrong)]);
    found.has("problem key-value store: ", &["the user or password is wrong", "accepts its credentials"]);
    let found = doctor(&site, &[("KV_URL", &redis.url())]);
    found.has("problem key-value store: ", &["NOAUTH", "accepts its credentials"]);
    assert!(!found.ran.stdout.contains("wrong-one"));
}

/// Forwards to a Redis and replaces the version in its response.
fn older(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || age(server, client));
        }
    });
    own
}

fn age(mut server: TcpStream, mut client: TcpStream) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read @ 1..) = server.read(&mut buffer) {
        let mut bytes = buffer[..read].to_vec();
        let name = b"redis_version:";
        if let Some(at) = bytes.windows(name.len()).position(|window| window == name) {
            // Keeps the length, so that the reply stays valid.
            let version = &mut bytes[at + name.len()..];
            version[0] = b'5';
        }
        if client.write_all(&bytes).is_err() {
            return;
        }
    }
}

#[test]
fn old_redis_is_a_problem() {
    let site = Site::fleet(RedisServer::durable());
    let url = format!("redis://127.0.0.1:{}/0", older(site.redis.as_ref().unwrap().port()));
    doctor(&site, &[("KV_URL", &url)])
        .has("problem key-value store: the server is Redis `5.", &["expected 6.2 or newer", "→ install a newer Redis"]);
}

#[test]
fn redis_without_persistence_or_nearly_full_is_a_warning() {
    let site = Site::fleet(RedisServer::with(&["--appendonly", "no", "--maxmemory-policy", "noeviction"]));
    doctor(&site, &[]).has("warning key-value store: persistence is off", &["→ set `appendonly yes`"]);
    let redis = site.redis.as_ref().unwrap();
    redis.ask::<()>(&["SET", "big", &"x".repeat(20 << 20)]);
    redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "24mb"]);
    doctor(&site, &[])
        .has("warning key-value store: 2", &["MiB of its maxmemory of 24 MiB are used", "→ raise `maxmemory`"]);
}

#[test]
fn worker_with_other_secrets_is_a_problem() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    let (url, hash) = (format!("http://{}", worker.address()), hash());
    let port = worker.address().rsplit_once(':').unwrap().1.to_owned();
    let env = [("PORT", port.as_str()), ("SVC_WORKER_URL", &url), ("SVC_ADMIN_PASSWORD_HASH", &hash)];
    doctor(&site, &env)
        .has(&format!("ok shared secrets: the worker at {url} accepts SVC_WEBHOOK_SECRET"), &[])
        .has("ok shared secrets: the worker at http://", &["accepts SVC_WORKER_TOKEN"]);
    let other = [
        ("SVC_WORKER_TOKEN", "another-token-of-32-characters-x"),
        ("SVC_WEBHOOK_SECRET", "another-secret-of-32-characters-"),
    ];
    doctor(&site, &[&env[..], &other].concat())
        .has(
            &format!("problem shared secrets: the worker at {url} rejects SVC_WEBHOOK_SECRET"),
            &["another installation on this machine, set PORT", "the store's webhook target"],
        )
        .has(
            "problem shared secrets: the worker at http://",
            &["rejects SVC_WORKER_TOKEN", "correct SVC_WORKER_URL", "set the same SVC_WORKER_TOKEN"],
        );
    let nobody = format!("http://127.0.0.1:{}", free_port());
    doctor(&site, &[&env[..], &[("SVC_WORKER_URL", &nobody)]].concat())
        .has("warning shared secrets: no worker responds at", &["SVC_WORKER_URL"]);
}

#[test]
fn missing_webhook_is_a_warning() {
    let mut site = Site::new(Kind::Fleet);
    let moto = crate::support::s3_server::moto();
    let options = moto.options();
    site.set("OBJ_ENDPOINT_URL", &options.endpoint);
    for (name, value) in [
        ("S3_BUCKET_PIPELINES", &options.buckets.pipelines),
        ("S3_BUCKET_LAKE", &options.buckets.lake),
        ("S3_BUCKET_WAREHOUSE", &options.buckets.warehouse),
    ] {
        site.set(name, value);
    }
    doctor(&site, &[]).has(
        "warning webhook: the lake bucket has no notification rule for new files",
        &["→ run `lakemill webhook install"],
    );
}

#[test]
fn port_in_use_is_a_problem_of_the_web_service() {
    let site = Site::new(Kind::Embedded);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let hang_up = std::thread::spawn(move || drop(other.accept()));
    let hash = hash();
    let env = [("PORT", port.as_str()), ("SVC_ADMIN_PASSWORD_HASH", &hash), ("SVC_WEBHOOK_SECRET", "")];
    doctor(&site, &env).has("problem web service: port", &["is used by another program", "set PORT to another"]);
    hang_up.join().unwrap();
    doctor(&site, &env).has("ok web service: not running here", &["is free"]);
    let web = site.web();
    let port = web.address().rsplit_once(':').unwrap().1.to_owned();
    doctor(&site, &[("PORT", &port), env[1], env[2]]).has("ok web service: running on port", &[]);
}

#[test]
fn trusted_proxy_without_a_name_of_the_service() {
    let site = Site::new(Kind::Embedded);
    let hash = hash();
    let env = [("SVC_TRUSTED_PROXIES", "127.0.0.1"), ("SVC_ADMIN_PASSWORD_HASH", hash.as_str())];
    let warning = "warning web environment: SVC_TRUSTED_PROXIES is set";
    doctor(&site, &env).has(warning, &["answered 421", "→ set SVC_PUBLIC_URL"]);
    let named = [env[0], env[1], ("SVC_PUBLIC_URL", "https://lake.example.org")];
    doctor(&site, &named).has("ok web environment: complete", &[]);
}

#[test]
fn low_disk_space_is_a_warning() {
    let site = Site::new(Kind::Embedded);
    let (hash, cache) = (hash(), site.home().join("cache").display().to_string());
    let found = doctor(
        &site,
        &[
            ("SVC_ADMIN_PASSWORD_HASH", hash.as_str()),
            ("SVC_CACHE_DIR", &cache),
            ("SVC_CACHE_BYTES", "1125899906842624"),
            ("SVC_RUN_MEMORY_BYTES", "1125899906842624"),
        ],
    );
    found.has("warning cache: ", &["the cache may grow by 1.00 PiB", "→ lower SVC_CACHE_BYTES"]);
    found.has("warning scratch: ", &["free; runs spill", "→ free some space"]);
    let file = site.home().join("a-file");
    std::fs::write(&file, "").unwrap();
    let within = file.join("cache").display().to_string();
    doctor(&site, &[("SVC_ADMIN_PASSWORD_HASH", &hash), ("SVC_CACHE_DIR", &within)])
        .has("problem cache: ", &["is not a folder", "SVC_CACHE_DIR"]);
}

#[test]
fn too_few_file_descriptors() {
    let site = Site::new(Kind::Embedded);
    let own = command(&site, &["--json"]);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("ulimit -n 256; exec \"$0\" \"$@\"").arg(own.get_program()).args(own.get_args()).env_clear();
    shell.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let found = output_of(&mut shell);
    found.has(
        "warning file descriptors: this process may open 256",
        &["expected at least 1024", "→ raise the limit: `LimitNOFILE="],
    );
}

#[test]
fn data_folder_accessible_to_others_is_reported() {
    let site = Site::new(Kind::Embedded);
    let objects = Path::new(site.env()["OBJ_ENDPOINT_URL"].strip_prefix("file://").unwrap()).to_owned();
    let home = |mode| std::fs::set_permissions(site.home(), std::fs::Permissions::from_mode(mode)).unwrap();
    home(0o700);
    doctor(&site, &[]).has("ok data folder: ", &["other users can't access"]);
    home(0o755);
    for (mode, start, part) in [
        (0o755, "warning data folder: ", "every user of this machine may read it → chmod o-rwx "),
        (0o777, "problem data folder: ", "every user may change its objects → chmod o-rwx "),
        (0o750, "ok data folder: ", "only its user and group can access"),
    ] {
        std::fs::set_permissions(&objects, std::fs::Permissions::from_mode(mode)).unwrap();
        doctor(&site, &[]).has(start, &[part]);
    }
}

#[test]
fn sandbox_check_reports_the_kernels_features() {
    let site = Site::new(Kind::Embedded);
    let found = doctor(&site, &[("SVC_ADMIN_PASSWORD_HASH", &hash())]);
    let modules = std::fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    if modules.contains("landlock") {
        assert!(found.at("ok sandbox: ").len() + found.at("warning sandbox: the kernel knows only a part").len() == 1);
    } else if !modules.is_empty() {
        found.has("warning sandbox: the kernel has no Landlock", &["`lsm=`"]);
    }
    assert_eq!(found.lines.iter().filter(|line| line.contains(" sandbox: ")).count(), 1);
}

/// The cells of the rows of a Markdown table, found by the words of its header: the first, and the others.
fn rows(page: &str, header: &str) -> Vec<Vec<String>> {
    let lines = page.lines().skip_while(|line| !line.starts_with(header)).skip(2);
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.take_while(|line| line.starts_with('|')).map(cells).collect()
}

#[test]
fn doctor_page_lists_exactly_the_checks() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations/doctor.md");
    let rows = rows(&std::fs::read_to_string(page).unwrap(), "| what is wrong | check |");
    let documented: BTreeSet<String> =
        rows.iter().flat_map(|row| row[1].split(", ")).map(|name| name.trim_matches('`').to_owned()).collect();
    let site = Site::new(Kind::Embedded);
    let checked: BTreeSet<String> = doctor(&site, &[])
        .lines
        .iter()
        .map(|line| line.split_once(' ').unwrap().1.split(": ").next().unwrap().to_owned())
        .collect();
    assert_eq!(documented, checked);
}

#[test]
fn log_that_another_program_wrote_to_is_a_problem() {
    for kind in [Kind::Embedded, Kind::Fleet] {
        let site = Site::new(kind);
        let slug = Slug::parse("shop").unwrap();
        site.pipeline("shop", &json!({ "publish": ["delta", "iceberg"] }));
        site.put("shop", "in/a.csv", "a,b\nx,1\n");
        let worker = site.worker();
        site.await_end(&site.enqueue("shop"));
        drop(worker);
        doctor(&site, &[]).has("ok published tables: 1 match their manifests", &[]);
        let iceberg = format!("{}{}", iceberg_prefix(&slug, "t"), iceberg_metadata_name(2));
        for foreign in [iceberg, delta_version_key(&slug, "t", 1)] {
            site.store.put(Bucket::Warehouse, &foreign, b"{}", &WriteOptions::default()).unwrap();
            doctor(&site, &[]).has(
                "problem published tables: table `t` of pipeline `shop`: ",
                &[&foreign, "another program wrote it", "→ run `lakemill verify shop --repair`"],
            );
        }
    }
}

#[test]
fn entries_that_no_pipeline_can_own() {
    let site = Site::fleet(RedisServer::durable());
    let redis = site.redis.as_ref().unwrap();
    redis.ask::<i64>(&["RPUSH", "svc:jobs:dead", "{}"]);
    doctor(&site, &[]).has(
        "warning queue: 1 entries without a valid pipeline",
        &["→ correct the program that adds them to the stream"],
    );
}
