//! The example configs of nginx and HAProxy, with two web services that are restarted one after the other under load.
//!
//! The files are those of `docs/operations` with other ports, certificates and services.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use ureq::Agent;

use crate::support::browser::{Browser, RESPONSE_WAIT_MAX};
use crate::support::children::Reaped as _;
use crate::support::concurrent::{Body, with_background};
use crate::support::redis_server::free_port;
use crate::support::site::{Kind, Service, Site, await_that};

const HOST: &str = "lakemill.example.org";
const CLIENTS: usize = 4;
/// Restarts of each of the two services.
const ROUNDS: usize = 2;

fn example(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations").join(name)).unwrap()
}

/// `text` with the first of each pair, which must occur, replaced by the second.
fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "the example has no `{old}`");
        text.replace(old, new)
    })
}

/// `text` without the lines that begin with one of these words.
fn without_lines(text: &str, words: &[&str]) -> String {
    let is_kept = |line: &&str| !words.iter().any(|word| line.trim_start().starts_with(word));
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// Killed when dropped.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command, folder: &Path, address: &str) -> Proxy {
    let log = folder.join("proxy.log");
    let log_to = || std::fs::File::create(&log).unwrap();
    let child = command.stdin(Stdio::null()).stdout(log_to()).stderr(log_to()).spawn_reaped();
    let mut proxy =
        Proxy(child.unwrap_or_else(|error| panic!("{error}: run the tests by scripts/test, which installs it")));
    await_that("the proxy", || {
        let ended = proxy.0.try_wait().unwrap();
        assert!(ended.is_none(), "{}", std::fs::read_to_string(&log).unwrap());
        std::net::TcpStream::connect(address).is_ok()
    });
    proxy
}

fn nginx(folder: &Path, port: u16, webs: [u16; 2]) -> Proxy {
    let text = example("nginx.conf");
    let (before, rest) = text.split_once("server {\n    listen 80;").unwrap();
    let (_, rest) = rest.split_once("\n}\n").unwrap();
    let text = without_lines(&format!("{before}{rest}"), &["listen [::]", "ssl_"]);
    let servers = webs.map(|port| format!("server 127.0.0.1:{port} max_fails=0;")).join("\n");
    let text = changed(
        &text,
        &[
            ("server 127.0.0.1:3000 max_fails=0;", &servers),
            ("listen 443 ssl http2;", &format!("listen 127.0.0.1:{port};")),
        ],
    );
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()))
        .concat();
    let at = folder.display();
    let whole = format!(
        "daemon off;\nmaster_process off;\npid {at}/nginx.pid;\nerror_log {at}/error.log;\n\
         events {{ worker_connections 512; }}\nhttp {{\naccess_log off;\n{paths}{text}}}\n"
    );
    std::fs::write(folder.join("nginx.conf"), whole).unwrap();
    // Debian's, which is only on root's path.
    let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).arg("-e").arg(folder.join("error.log"));
    start(&mut command, folder, &format!("127.0.0.1:{port}"))
}

fn haproxy_program() -> &'static str {
    if Path::new("/usr/sbin/haproxy").exists() { "/usr/sbin/haproxy" } else { "haproxy" }
}

fn haproxy(folder: &Path, port: u16, webs: [u16; 2]) -> Proxy {
    let text = without_lines(&example("haproxy.cfg"), &["log ", "bind :80", "http-request redirect"]);
    let server = "server web1 127.0.0.1:3000 check";
    let rest = text.split_once(server).unwrap().1.lines().next().unwrap().to_owned();
    let servers = webs.map(|port| format!("server web{port} 127.0.0.1:{port} check{rest}")).join("\n    ");
    let text = changed(
        &text,
        &[
            (&format!("{server}{rest}"), &servers),
            ("bind :443 ssl crt /etc/ssl/lakemill/lakemill.pem alpn h2,http/1.1", &format!("bind 127.0.0.1:{port}")),
        ],
    );
    std::fs::write(folder.join("haproxy.cfg"), text).unwrap();
    let mut command = Command::new(haproxy_program());
    command.arg("-db").arg("-f").arg(folder.join("haproxy.cfg"));
    start(&mut command, folder, &format!("127.0.0.1:{port}"))
}

/// Whether the service has logged a request for `path`.
fn has_served(web: &Service, path: &str) -> bool {
    web.has_logged(&format!("\"path\":\"{path}\""))
}

fn restarts_cause_no_errors(start_proxy: fn(&Path, u16, [u16; 2]) -> Proxy) {
    let mut site = Site::new(Kind::Embedded);
    let url = format!("https://{HOST}");
    site.set("SVC_PUBLIC_URL", &url).set("SVC_TRUSTED_PROXIES", "127.0.0.1");
    let ports = [free_port(), free_port()];
    let web = |port: u16| site.web_with(&[("PORT", &port.to_string())]);
    let mut webs = ports.map(web);
    let cookie = Browser::log_in(&webs[0]).cookie.unwrap();
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let _proxy = start_proxy(folder.path(), port, ports);

    let agent: Agent =
        Agent::config_builder().http_status_as_error(false).timeout_global(Some(RESPONSE_WAIT_MAX)).build().into();
    let (answered, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let ask = |path: &str| {
        let request =
            agent.get(format!("http://127.0.0.1:{port}{path}")).header("Host", HOST).header("Cookie", &cookie);
        let response = request.call().map_err(|error| error.to_string()).and_then(|mut answer| {
            let body = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
            Ok((answer.status().as_u16(), body))
        });
        match response {
            Ok((200, _)) => drop(answered.fetch_add(1, Ordering::SeqCst)),
            other => wrong.lock().unwrap().push(format!("GET {path}: {other:?}")),
        }
    };
    let asks = |number: usize, body: &Body| {
        let paths = ["/session", "/api/pipelines", "/livez", "/"];
        for path in (number..).map(|at| paths[at % paths.len()]) {
            if !body.is_running() {
                return;
            }
            ask(path);
            // With pauses: connections to the services are idle in between, too.
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    with_background(CLIENTS, asks, || {
        for _ in 0..ROUNDS {
            for (at, port) in ports.into_iter().enumerate() {
                await_that("requests to be served", || has_served(&webs[at], "/session"));
                webs[at].signal(Signal::TERM);
                assert_eq!(webs[at].await_exit(), Some(0), "{}", webs[at].log());
                webs[at] = web(port);
            }
        }
        await_that("requests to be served", || has_served(&webs[1], "/session"));
    });
    let wrong = wrong.into_inner().unwrap();
    let answered = answered.into_inner();
    assert!(wrong.is_empty(), "{} of {}: {:?}", wrong.len(), wrong.len() + answered, &wrong[..wrong.len().min(5)]);
    assert!(answered > 100, "{answered} answers");
}

#[test]
fn nginx_returns_no_errors_during_restarts() {
    restarts_cause_no_errors(nginx);
}

#[test]
fn haproxy_returns_no_errors_during_restarts() {
    restarts_cause_no_errors(haproxy);
}

#[test]
fn haproxy_accepts_the_example_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("lakemill.pem");
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl
        .args(["-subj", &format!("/CN={HOST}"), "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path());
    assert!(openssl.output_reaped().unwrap().status.success());
    let part = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    std::fs::write(&pem, part("cert.pem") + &part("key.pem")).unwrap();
    let text = changed(&example("haproxy.cfg"), &[("/etc/ssl/lakemill/lakemill.pem", &pem.display().to_string())]);
    let file = folder.path().join("haproxy.cfg");
    std::fs::write(&file, text).unwrap();
    let said = Command::new(haproxy_program()).arg("-c").arg("-f").arg(file).output_reaped().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
