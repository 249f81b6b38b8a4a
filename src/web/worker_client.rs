//! Lets a worker validate configs, since workers have the SQL engine, which this process must not run.
//!
//! Invariant: a call ends within its timeout and reads at most [`ANSWER_BYTES_MAX`].
//!
//! Must not: read the environment (a proxy, for example); follow redirects, which would receive the token.

use std::io::ErrorKind;
use std::time::Duration;

use serde::Deserialize;
use ureq::Agent;
use ureq::tls::TlsConfig;

use crate::config::Secret;
use crate::domain::problem::Problem;
use crate::sync::Semaphore;
use crate::system::http_client;

/// Largest response, in bytes: a thousand problems with their messages.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Concurrent calls, so that a slow worker can't occupy all handlers.
const CALLS_MAX: usize = 8;
/// Timeout for connecting, TLS included.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Maximum number of idle connections, and their maximum age: less than a worker's.
const IDLE_CONNECTIONS_MAX: usize = 4;
const IDLE_AGE_MAX: Duration = Duration::from_secs(15);

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum WorkerClientError {
    #[error("{CALLS_MAX} calls to the worker are already in progress")]
    Busy,
    #[error("the worker at `{url}` is unreachable: {source}")]
    Unreachable { url: String, source: Box<ureq::Error> },
    #[error("the worker at `{url}` responded with status `{status}`, expected 200")]
    Refused { url: String, status: u16 },
    #[error("the worker at `{url}` sent a malformed verdict: {why}")]
    NoVerdict { url: String, why: String },
}

/// A worker's HTTP surface.
pub struct WorkerClient {
    agent: Agent,
    /// Without a trailing `/`.
    url: String,
    token: Secret,
    calls: Semaphore,
}

/// A verdict.
#[derive(Debug, Deserialize)]
struct Answer {
    ok: bool,
    #[serde(default)]
    errors: Vec<Problem>,
    #[serde(default)]
    warnings: Vec<Problem>,
}

/// A worker's findings about a config.
#[derive(Debug, PartialEq, Eq)]
pub struct Findings {
    pub problems: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

impl WorkerClient {
    /// `url`: the worker's address; it need not be reachable yet.
    pub fn new(url: &str, token: &Secret, trusted: TlsConfig) -> Self {
        let config = http_client::config(trusted)
            .max_idle_connections(IDLE_CONNECTIONS_MAX)
            .max_idle_connections_per_host(IDLE_CONNECTIONS_MAX)
            .max_idle_age(IDLE_AGE_MAX)
            .timeout_connect(Some(CONNECT_MAX))
            .build();
        let url = url.trim_end_matches('/').to_owned();
        Self { agent: config.new_agent(), url, token: token.clone(), calls: Semaphore::new(CALLS_MAX) }
    }

    /// Returns all problems of a config, including those of its expressions, and all warnings.
    ///
    /// # Errors
    /// No worker responded within `timeout`, or the response isn't a verdict.
    pub fn validate(&self, config: &[u8], timeout: Duration) -> Result<Findings, WorkerClientError> {
        let _call = self.calls.try_acquire().ok_or(WorkerClientError::Busy)?;
        let answer = match self.send(config, timeout) {
            // The worker had closed a pooled connection; a retry does no harm.
            Err(ureq::Error::Io(error)) if is_connection_error(error.kind()) => self.send(config, timeout),
            answer => answer,
        };
        let (status, body) = answer
            .map_err(|source| WorkerClientError::Unreachable { url: self.url.clone(), source: Box::new(source) })?;
        if status != 200 {
            return Err(WorkerClientError::Refused { url: self.url.clone(), status });
        }
        let no_verdict = |why: String| WorkerClientError::NoVerdict { url: self.url.clone(), why };
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| no_verdict(error.to_string()))?;
        if answer.ok != answer.errors.is_empty() {
            return Err(no_verdict(format!("`ok` is `{}` with {} errors", answer.ok, answer.errors.len())));
        }
        Ok(Findings { problems: answer.errors, warnings: answer.warnings })
    }

    fn send(&self, config: &[u8], timeout: Duration) -> Result<(u16, Vec<u8>), ureq::Error> {
        let request = self.agent.post(format!("{}/config/validate", self.url));
        let request = request.config().timeout_global(Some(timeout)).build();
        let request = request.header("authorization", format!("Bearer {}", self.token.reveal()));
        let mut response = request.content_type("application/json").send(config)?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok((response.status().as_u16(), body))
    }
}

fn is_connection_error(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::UnexpectedEof
            | ErrorKind::BrokenPipe
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn client(url: &str) -> WorkerClient {
        WorkerClient::new(url, &Secret::new("the-token"), TlsConfig::builder().build())
    }

    /// The findings parsed from a response.
    fn findings_of(answer: &'static str) -> Result<Findings, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = Vec::new();
            while !seen.ends_with(b"{}") {
                let mut bytes = [0; 1024];
                let read = stream.read(&mut bytes).unwrap();
                seen.extend_from_slice(&bytes[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(seen).unwrap()
        });
        let findings = client(&url).validate(b"{}", TIMEOUT).map_err(|error| error.to_string());
        let seen = server.join().unwrap().to_lowercase();
        assert!(seen.starts_with("post /config/validate http/1.1\r\n"), "{seen}");
        assert!(seen.contains("authorization: bearer the-token\r\n"), "{seen}");
        findings
    }

    #[test]
    fn verdict_is_parsed() {
        assert_eq!(findings_of("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"ok\":true}").unwrap().problems, []);
        let one = r#"{"ok":false,"errors":[{"kind":"syntax","message":"m","path":""}]}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{one}", one.len());
        assert_eq!(findings_of(answer.leak()).unwrap().problems[0].message, "m");
        let warned = r#"{"ok":true,"warnings":[{"kind":"reader","message":"m","path":""}]}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{warned}", warned.len());
        assert_eq!(findings_of(answer.leak()).unwrap().warnings[0].message, "m");
    }

    #[test]
    fn malformed_verdict_is_an_error_without_the_token() {
        for (answer, part) in [
            ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", "status `401`"),
            ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", "status `302`"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "malformed verdict"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"ok\":false}", "`ok` is `false` with 0 errors"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"ok\":1}", "is unreachable"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n", "is unreachable"),
            ("220 smtp.example ESMTP\r\n", "is unreachable"),
        ] {
            let error = findings_of(answer).unwrap_err();
            assert!(error.contains(part) && !error.contains("the-token"), "{error}");
        }
    }

    #[test]
    fn unresponsive_worker_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = client(&format!("http://{}/", listener.local_addr().unwrap()));
        let error = client.validate(b"{}", Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, WorkerClientError::Unreachable { .. }), "{error}");
    }

    #[test]
    fn concurrent_calls_are_bounded() {
        let client = client("http://127.0.0.1:1");
        let calls: Vec<_> = (0..CALLS_MAX).map(|_| client.calls.try_acquire().unwrap()).collect();
        assert!(matches!(client.validate(b"{}", TIMEOUT), Err(WorkerClientError::Busy)));
        drop(calls);
        assert!(matches!(client.validate(b"{}", TIMEOUT), Err(WorkerClientError::Unreachable { .. })));
    }
}
