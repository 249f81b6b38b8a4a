//! S3 servers: s3s-fs, which checks signatures, and moto, for a second opinion. Each is started once, on a free port,
//! and ends with the test's process, however that ends. Every test has buckets of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use lakemill::adapters::clock::SystemClock;
use lakemill::adapters::s3::{S3Options, S3Store};
use lakemill::config::{Buckets, Secret};

use super::http_proxy::{Act, HttpProxy, Passing};

pub const ACCESS_KEY: &str = "lakemill-test";
/// With characters that must be encoded wherever they are not hashed.
pub const SECRET_KEY: &str = "se/cr+et=& %key";
pub const REGION: &str = "eu-test-1";

const START_DEADLINE: Duration = Duration::from_secs(60);
const PORT_TRIES_MAX: usize = 5;

/// Runs the server of its arguments from the third on until its standard input ends; then removes the folder that is
/// the second. Signals to the group of the terminal do not end it, so that nothing stays behind.
const KEEPER: &str = r#"trap '' INT TERM HUP; folder=$1; shift; "$@" & cat >/dev/null; kill -9 $!; rm -rf "$folder""#;

/// A server that runs.
pub struct S3Server {
    pub address: SocketAddr,
    /// Where the buckets are folders, if they are.
    root: Option<PathBuf>,
    /// Its standard input is what keeps the server alive.
    _keeper: std::process::Child,
    serial: HttpProxy,
}

static S3S_FS: LazyLock<S3Server> = LazyLock::new(|| {
    let binary = s3s_binary();
    S3Server::start(true, move |port, root| {
        let mut words: Vec<String> = vec![binary.display().to_string()];
        let port = port.to_string();
        let arguments =
            ["--host", "127.0.0.1", "--port", &port, "--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY];
        words.extend(arguments.map(str::to_owned));
        words.push(root.display().to_string());
        words
    })
});

static MOTO: LazyLock<S3Server> = LazyLock::new(|| {
    let python = std::env::var("LAKEMILL_TEST_PYTHON")
        .expect("LAKEMILL_TEST_PYTHON names a Python with moto: run the tests by scripts/test");
    let has_moto = Command::new(&python).args(["-c", "import moto.server"]).status();
    assert!(has_moto.is_ok_and(|status| status.success()), "`{python}` has no moto: run the tests by scripts/test");
    S3Server::start(false, move |port, _| {
        let port = port.to_string();
        [&python, "-m", "moto.server", "-H", "127.0.0.1", "-p", &port].map(str::to_owned).to_vec()
    })
});

/// Checks credentials. Writes are let through one at a time by [`S3Server::url`]: its checks of preconditions and its
/// writes are not one step, as they are in real stores.
pub fn s3s_fs() -> &'static S3Server {
    &S3S_FS
}

/// Checks no credentials. Writes one at a time, as [`s3s_fs`].
pub fn moto() -> &'static S3Server {
    &MOTO
}

fn s3s_binary() -> PathBuf {
    let set = std::env::var_os("LAKEMILL_TEST_S3S_FS").map(PathBuf::from);
    let cache = || {
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home)?;
        Some(cache.join("lakemill/s3s-fs-0.14.1/bin/s3s-fs"))
    };
    let binary = set.or_else(cache).unwrap_or_default();
    assert!(binary.is_file(), "no S3 server at `{}`: run the tests by scripts/test, which builds it", binary.display());
    binary
}

impl S3Server {
    fn start(buckets_are_folders: bool, words: impl Fn(u16, &Path) -> Vec<String>) -> Self {
        for _ in 0..PORT_TRIES_MAX {
            let folder = tempfile::Builder::new().prefix("lakemill-s3-").tempdir().unwrap().keep();
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let keeper = Command::new("sh")
                .args(["-c", KEEPER, "keeper"])
                .arg(&folder)
                .args(words(port, &folder))
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            if answers(address) {
                let serial = HttpProxy::one_write_at_a_time(address, |_| Act::Forward);
                let root = buckets_are_folders.then(|| folder.clone());
                return Self { address, root, _keeper: keeper, serial };
            }
        }
        panic!("the S3 server does not start: {:?}", words(0, Path::new("")));
    }

    pub fn url(&self) -> String {
        self.serial.url()
    }

    /// A proxy before the server that does what `rule` says, and lets one write at a time through.
    pub fn behind(&self, rule: impl Fn(&mut Passing) -> Act + Send + Sync + 'static) -> HttpProxy {
        HttpProxy::one_write_at_a_time(self.address, rule)
    }

    /// Makes three buckets.
    pub fn buckets(&self) -> Buckets {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let buckets = Buckets {
            pipelines: format!("t{number}-pipelines"),
            lake: format!("t{number}-lake"),
            warehouse: format!("t{number}-warehouse"),
        };
        for name in [&buckets.pipelines, &buckets.lake, &buckets.warehouse] {
            match &self.root {
                Some(root) => std::fs::create_dir(root.join(name)).unwrap(),
                None => drop(ureq::put(format!("http://{}/{name}", self.address)).send_empty().unwrap()),
            }
        }
        buckets
    }

    /// Where s3s-fs keeps its files.
    pub fn root(&self) -> &Path {
        self.root.as_deref().expect("its buckets are folders")
    }

    /// How to open new buckets, through the proxy of [`S3Server::url`].
    pub fn options(&self) -> S3Options {
        self.options_at(&self.url())
    }

    /// How to open new buckets at another URL of the server.
    pub fn options_at(&self, url: &str) -> S3Options {
        let (id, secret) = (Secret::new(ACCESS_KEY), Secret::new(SECRET_KEY));
        S3Options::new(url, REGION, id, secret, self.buckets(), Arc::new(SystemClock))
    }

    /// A store with new buckets, through a proxy.
    pub fn store_at(&self, proxy: &HttpProxy) -> S3Store {
        S3Store::open(self.options_at(&proxy.url())).unwrap()
    }
}

fn answers(address: SocketAddr) -> bool {
    let end = Instant::now() + START_DEADLINE;
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    while Instant::now() < end {
        if agent.get(format!("http://{address}/")).call().is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
