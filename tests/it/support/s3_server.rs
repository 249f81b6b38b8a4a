//! S3 servers: s3s-fs, which checks signatures, and moto, as a second implementation. Each is started once, on a free
//! port, and ends with the test's process, however that ends. Every test has its own buckets.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use lakemill::adapters::s3::{S3Options, S3Store};
use lakemill::config::{Buckets, Secret, StoreCredentials};
use lakemill::runtime::SystemClock;

use super::children::{Reaped as _, remove_at_end};
use super::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};

pub const ACCESS_KEY: &str = "lakemill-test";
/// With characters that must be encoded wherever they are not hashed.
pub const SECRET_KEY: &str = "se/cr+et=& %key";
pub const REGION: &str = "eu-test-1";

const START_DEADLINE: Duration = Duration::from_secs(60);
const PORT_TRIES_MAX: usize = 5;

/// A server that runs.
pub struct S3Server {
    pub address: SocketAddr,
    /// The buckets' folder, if they are folders.
    root: Option<PathBuf>,
    has_tls: bool,
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
    let python = python_with_moto();
    S3Server::start(false, move |port, _| moto_words(&python, port))
});

fn python_with_moto() -> String {
    let python = std::env::var("LAKEMILL_TEST_PYTHON")
        .expect("LAKEMILL_TEST_PYTHON names a Python with moto: run the tests by scripts/test");
    let has_moto = Command::new(&python).args(["-c", "import moto.server"]).output_reaped();
    assert!(
        has_moto.is_ok_and(|output| output.status.success()),
        "`{python}` has no moto: run the tests by scripts/test"
    );
    python
}

fn moto_words(python: &str, port: u16) -> Vec<String> {
    [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned).to_vec()
}

/// Writes `ca.pem`, and `server.pem` and `server.key` for 127.0.0.1 and localstack.example, into the folder of its argument.
const MAKE_CERTIFICATES: &str = r#"
import datetime, ipaddress, pathlib, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
folder, now = pathlib.Path(sys.argv[1]), datetime.datetime.now(datetime.timezone.utc)
day = datetime.timedelta(days=1)
def make(name, key, issuer, issuer_key, extension):
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer or subject)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - day).not_valid_after(now + day).add_extension(extension, True)
    return builder.sign(issuer_key, hashes.SHA256())
ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
ca = make("test authority", ca_key, None, ca_key, x509.BasicConstraints(True, None))
names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localstack.example")])
server = make("server", key, ca.subject, ca_key, names)
pem = serialization.Encoding.PEM
(folder / "ca.pem").write_bytes(ca.public_bytes(pem))
(folder / "server.pem").write_bytes(server.public_bytes(pem))
plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
(folder / "server.key").write_bytes(key.private_bytes(pem, *plain))
"#;

/// Checks credentials. Through [`S3Server::url`] one write at a time passes: its precondition checks and writes are not
/// atomic, unlike in real stores.
pub fn s3s_fs() -> &'static S3Server {
    &S3S_FS
}

/// Checks no credentials. One write at a time passes, as in [`s3s_fs`].
pub fn moto() -> &'static S3Server {
    &MOTO
}

pub fn s3s_binary() -> PathBuf {
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
    /// Pending multipart uploads of a bucket. For moto, which requires no signature.
    pub fn open_uploads(&self, bucket: &str) -> usize {
        let answer = ureq::get(format!("http://{}/{bucket}?uploads=", self.address)).call().unwrap();
        answer.into_body().read_to_string().unwrap().matches("<Upload>").count()
    }

    fn start(buckets_are_folders: bool, words: impl Fn(u16, &Path) -> Vec<String>) -> Self {
        for _ in 0..PORT_TRIES_MAX {
            let folder = tempfile::Builder::new().prefix("lakemill-s3-").tempdir().unwrap().keep();
            let port = free_port();
            remove_at_end(&folder);
            let words = words(port, &folder);
            let mut server = Command::new(&words[0]);
            server.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut server = server.spawn_reaped().unwrap();
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            if answers(address, &mut server) {
                let serial = HttpProxy::start(address, |_| ProxyAction::Forward);
                let root = buckets_are_folders.then(|| folder.clone());
                return Self { address, root, has_tls: false, serial };
            }
        }
        panic!("the S3 server does not start: {:?}", words(0, Path::new("")));
    }

    /// A moto with TLS, whose certificate is signed by `ca.pem` in the folder.
    pub fn with_tls(folder: &Path) -> Self {
        let python = python_with_moto();
        let made = Command::new(&python).args(["-c", MAKE_CERTIFICATES]).arg(folder).output_reaped();
        assert!(made.is_ok_and(|output| output.status.success()), "certificates can be made");
        let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
        let plain = Self::start(false, move |port, _| {
            let mut words = moto_words(&python, port);
            words.extend(["-c".to_owned(), certificate.display().to_string()]);
            words.extend(["-k".to_owned(), key.display().to_string()]);
            words
        });
        Self { has_tls: true, ..plain }
    }

    pub fn url(&self) -> String {
        self.serial.url()
    }

    /// A proxy in front of the server that applies `rule`, and passes one write at a time.
    pub fn behind(&self, rule: impl Fn(&mut ProxiedRequest) -> ProxyAction + Send + Sync + 'static) -> HttpProxy {
        HttpProxy::start(self.address, rule)
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
                None => self.make_bucket(name),
            }
        }
        buckets
    }

    fn make_bucket(&self, name: &str) {
        let scheme = if self.has_tls { "https" } else { "http" };
        let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
        let agent = ureq::Agent::config_builder().tls_config(tls).build().new_agent();
        drop(agent.put(format!("{scheme}://{}/{name}", self.address)).send_empty().unwrap());
    }

    /// Options to open new buckets, through the proxy of [`S3Server::url`].
    pub fn options(&self) -> S3Options {
        self.options_at(&self.url())
    }

    /// Options to open new buckets at another URL of the server.
    pub fn options_at(&self, url: &str) -> S3Options {
        let credentials = StoreCredentials::Key { id: Secret::new(ACCESS_KEY), secret: Secret::new(SECRET_KEY) };
        S3Options::new(url, REGION, credentials, self.buckets(), Arc::new(SystemClock))
    }

    /// A store with new buckets, through a proxy.
    pub fn store_at(&self, proxy: &HttpProxy) -> S3Store {
        S3Store::open(self.options_at(&proxy.url())).unwrap()
    }
}

/// A free port, outside the range of outgoing connections.
fn free_port() -> u16 {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let number = std::process::id() as usize * 17 + COUNT.fetch_add(1, Ordering::Relaxed) * 131;
        let port = 20_000 + u16::try_from(number % 12_000).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Waits until the server accepts connections; false if it exits before.
fn answers(address: SocketAddr, server: &mut Child) -> bool {
    let end = Instant::now() + START_DEADLINE;
    while Instant::now() < end && server.try_wait().unwrap().is_none() {
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}
