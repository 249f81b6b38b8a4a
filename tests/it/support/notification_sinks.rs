//! Receivers of notifications: a webhook and a mail server.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

use super::children::Reaped as _;

/// A request to the webhook.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// The response to the n-th request, counted from 0: status and `Location`.
type Respond = dyn Fn(usize) -> (u16, Option<String>) + Send + Sync;

/// A webhook.
pub struct WebhookSink {
    server: Arc<tiny_http::Server>,
    received: Arc<Mutex<Vec<Received>>>,
    thread: Option<JoinHandle<()>>,
}

impl WebhookSink {
    /// Accepts everything.
    pub fn start() -> Self {
        Self::responding(|_| (204, None))
    }

    pub fn responding(respond: impl Fn(usize) -> (u16, Option<String>) + Send + Sync + 'static) -> Self {
        let respond: Arc<Respond> = Arc::new(respond);
        let server = Arc::new(tiny_http::Server::http("127.0.0.1:0").unwrap());
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (served, kept) = (Arc::clone(&server), Arc::clone(&received));
        let thread = std::thread::spawn(move || {
            for mut request in served.incoming_requests() {
                let mut body = Vec::new();
                let _ = request.as_reader().read_to_end(&mut body);
                let header = |header: &tiny_http::Header| {
                    (header.field.as_str().as_str().to_ascii_lowercase(), header.value.to_string())
                };
                let headers = request.headers().iter().map(header).collect();
                let mut kept = kept.lock().unwrap();
                let (status, location) = respond(kept.len());
                kept.push(Received { path: request.url().to_owned(), headers, body });
                drop(kept);
                let mut response =
                    tiny_http::Response::from_string("the response is not read").with_status_code(status);
                if let Some(location) = location {
                    response.add_header(tiny_http::Header::from_bytes("Location", location).unwrap());
                }
                let _ = request.respond(response);
            }
        });
        Self { server, received, thread: Some(thread) }
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        self.server.server_addr().to_string()
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The bodies with this `event`.
    pub fn events(&self, event: &str) -> Vec<Value> {
        self.received().iter().map(Received::json).filter(|body| body["event"] == event).collect()
    }
}

impl Drop for WebhookSink {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A mail server.
pub struct MailSink {
    child: Child,
    pub port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl MailSink {
    /// `mode`: `plain`, `starttls` or `tls`. `certificates`: a folder with `server.pem` and `server.key`.
    pub fn start(mode: &str, certificates: Option<&Path>) -> Self {
        let python = std::env::var("LAKEMILL_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let mut command = Command::new(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/support/smtp_sink.py")).arg(mode);
        if let Some(folder) = certificates {
            command.arg(folder.join("server.pem")).arg(folder.join("server.key"));
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn_reaped().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().expect("the port").unwrap().parse().unwrap();
        let mails = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&mails);
        // Ends with the child.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, port, mails }
    }

    pub fn mails(&self) -> Vec<Value> {
        self.mails.lock().unwrap().clone()
    }
}

impl Drop for MailSink {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
