//! The worker of this machine: whether it answers, or its port is free for it.

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::Value;

use super::check::Finding;
use super::surroundings::Surroundings;
use crate::config::{Loaded, ServerConfig};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// What came of a request to the worker.
pub(super) enum Answer {
    /// Status and the beginning of the body.
    Http(u16, String),
    /// Nobody listens.
    Nobody,
    /// Somebody listens who doesn't speak HTTP, or not now.
    Silent(String),
}

pub(super) fn answers(around: &Surroundings) -> Vec<Finding> {
    let Ok(Loaded { config, .. }) = &around.worker else {
        return vec![Finding::skipped("the worker's environment is not complete")];
    };
    let server = &config.server;
    let (bind, port) = (server.bind, server.port);
    if port == 0 {
        return vec![Finding::skipped("PORT is 0: the worker takes any free one, which its log tells")];
    }
    // A worker that runs has the port, so that whether it is free is asked first.
    vec![match TcpListener::bind((bind, port)) {
        Ok(_) => Finding::ok(format!("none runs here; port {port} is free for one")),
        Err(error) => match error.kind() {
            ErrorKind::AddrInUse | ErrorKind::PermissionDenied => match ask(server, "GET", "/health") {
                Answer::Http(status, body) => judge(port, status, &body),
                Answer::Nobody if error.kind() == ErrorKind::PermissionDenied => Finding::warning(
                    format!("none runs here, and this user may not listen at port {port}"),
                    "set PORT to 1024 or more, or let the service's user listen there",
                ),
                Answer::Nobody => taken(port, "listens at another address"),
                Answer::Silent(why) => taken(port, &format!("does not answer as a worker does: {why}")),
            },
            ErrorKind::AddrNotAvailable => {
                Finding::problem(format!("SVC_BIND `{bind}` is no address of this machine"), "correct SVC_BIND")
            }
            _ => Finding::problem(format!("listening at port {port}: {error}"), "correct PORT and SVC_BIND"),
        },
    }]
}

fn judge(port: u16, status: u16, body: &str) -> Finding {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let is_worker = body.get("kv").is_some() && body.get("in_flight").is_some();
    match (status, is_worker) {
        (200, true) => Finding::ok(format!("one answers at port {port}, {} jobs in flight", body["in_flight"])),
        (_, true) => {
            let advice = "see the check of the key-value store, and the worker's log";
            Finding::problem(format!("the one at port {port} can't reach its key-value store"), advice)
        }
        (_, false) => taken(port, &format!("answers /health with status {status}")),
    }
}

fn taken(port: u16, what: &str) -> Finding {
    Finding::problem(format!("port {port} is taken by something that {what}"), "end it, or set PORT to another")
}

/// Sends a request to the worker at its own address.
pub(super) fn ask(server: &ServerConfig, method: &str, path: &str) -> Answer {
    let host = match server.bind {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        own => own,
    };
    let url = format!("http://{}{path}", SocketAddr::new(host, server.port));
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWER_TIME_MAX))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .build()
        .new_agent();
    let sent = if method == "HEAD" { agent.head(url).call() } else { agent.get(url).call() };
    match sent {
        Ok(mut answer) => {
            let mut body = Vec::new();
            // What of it came is enough.
            let _ = answer.body_mut().as_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut body);
            Answer::Http(answer.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
        }
        Err(ureq::Error::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => Answer::Nobody,
        Err(ureq::Error::ConnectionFailed) => Answer::Nobody,
        Err(error) => Answer::Silent(error.to_string()),
    }
}
