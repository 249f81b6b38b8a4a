//! The worker of this machine: whether it answers, or its port is free for it.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::Value;

use super::check::Finding;
use super::surroundings::Surroundings;
use crate::cli::probe::{self, Answer, own_address};
use crate::config::Loaded;

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

pub(super) fn answers(around: &Surroundings) -> Vec<Finding> {
    let Ok(Loaded { config, .. }) = &around.worker else {
        return vec![Finding::skipped("the worker's environment is not complete")];
    };
    let server = &config.server;
    let (bind, port) = (server.bind, server.port);
    let Some(at) = around.worker_address() else {
        return vec![Finding::skipped("PORT is 0: the worker takes any free one, which its log tells")];
    };
    if around.shares_port() && super::web::answers_at(own_address(bind, port)) {
        return vec![elsewhere(port, at)];
    }
    // A worker that runs has the port, so that whether it is free is asked first.
    vec![match TcpListener::bind((bind, port)) {
        Ok(_) => Finding::ok(format!("none runs here; port {port} is free for one")),
        Err(error) => match error.kind() {
            ErrorKind::AddrInUse | ErrorKind::PermissionDenied => match ask(at, "GET", "/health") {
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

/// Where `port`, the shared PORT, is the web service's.
fn elsewhere(port: u16, at: SocketAddr) -> Finding {
    match ask(at, "GET", "/health") {
        Answer::Http(status, body) if is_worker(&body) => judge(at.port(), status, &body),
        Answer::Http(..) | Answer::Nobody | Answer::Silent(_) => Finding::skipped(format!(
            "the web service has PORT {port}, and no worker answers at {at}: `PORT=… lakemill doctor` with the \
             worker's port looks at it"
        )),
    }
}

fn is_worker(body: &str) -> bool {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body.get("kv").is_some() && body.get("in_flight").is_some()
}

/// Whether a worker answers there.
pub(super) fn answers_at(at: SocketAddr) -> bool {
    matches!(ask(at, "GET", "/health"), Answer::Http(_, body) if is_worker(&body))
}

/// Whether a service of this machine can listen there.
pub(super) fn is_of_this_machine(bind: IpAddr) -> bool {
    !TcpListener::bind((bind, 0)).is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
}

fn judge(port: u16, status: u16, body: &str) -> Finding {
    let is_worker = is_worker(body);
    let body: Value = serde_json::from_str(body).unwrap_or_default();
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

/// Sends a request to a worker.
pub(super) fn ask(at: SocketAddr, method: &str, path: &str) -> Answer {
    probe::ask(&format!("http://{at}{path}"), method, &[], ANSWER_TIME_MAX)
}
