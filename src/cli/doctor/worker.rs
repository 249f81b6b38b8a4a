//! The worker of this machine: whether it answers, or its port is free for it.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use serde_json::Value;

use super::check::Finding;
use super::surroundings::Surroundings;
use crate::cli::probe::{self, Answer, own_address};
use crate::config::{Loaded, ServerConfig};

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

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

/// Whether a service of this machine can listen there.
pub(super) fn is_of_this_machine(bind: IpAddr) -> bool {
    !TcpListener::bind((bind, 0)).is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
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
    let url = format!("http://{}{path}", own_address(server.bind, server.port));
    probe::ask(&url, method, &[], ANSWER_TIME_MAX)
}
