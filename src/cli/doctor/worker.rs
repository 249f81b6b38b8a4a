//! The worker of this machine: whether it responds, or its port is free.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::Value;

use super::check::CheckResult;
use super::context::{DoctorContext, WebService, web_service_at};
use crate::cli::probe::{self, ProbeResult, own_address};
use crate::config::WorkerConfig;

const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
/// Older rejected events are ignored.
const REFUSED_EVENTS_AGE_MAX: Duration = Duration::from_secs(86_400);

/// The worker's config; otherwise the result of a check that needs it.
pub(super) fn config(context: &DoctorContext) -> Result<&WorkerConfig, CheckResult> {
    match &context.worker {
        Ok(loaded) => Ok(&loaded.config),
        Err(_) => Err(CheckResult::skipped("the worker's environment is incomplete")),
    }
}

pub(super) fn responds(context: &DoctorContext) -> Vec<CheckResult> {
    let config = match config(context) {
        Ok(config) => config,
        Err(skipped) => return vec![skipped],
    };
    let server = &config.server;
    let (bind, port) = (server.bind, server.port);
    let Some(at) = context.worker_address() else {
        return vec![CheckResult::skipped("PORT is 0: the worker uses any free port and logs it")];
    };
    if context.shares_port() && web_service_at(own_address(bind, port)) != WebService::None {
        return vec![elsewhere(port, at)];
    }
    // A running worker uses the port, so probe it before testing whether the port is free.
    vec![match TcpListener::bind((bind, port)) {
        Ok(_) => CheckResult::ok(format!("not running here; port {port} is free")),
        Err(error) => match error.kind() {
            ErrorKind::AddrInUse | ErrorKind::PermissionDenied => match ask(at, "GET", "/health") {
                ProbeResult::Http(status, body) => assess(port, status, &body),
                ProbeResult::NotListening if error.kind() == ErrorKind::PermissionDenied => CheckResult::warning(
                    format!("not running here, and this user may not listen on port {port}"),
                    "set PORT to 1024 or more, or permit the service's user to listen on it",
                ),
                ProbeResult::NotListening => port_taken(port, "listens on another address"),
                ProbeResult::Silent(why) => port_taken(port, &format!("doesn't respond like a worker: {why}")),
            },
            ErrorKind::AddrNotAvailable => {
                CheckResult::problem(format!("SVC_BIND `{bind}` is not an address of this machine"), "correct SVC_BIND")
            }
            _ => CheckResult::problem(format!("listening on port {port}: {error}"), "correct PORT and SVC_BIND"),
        },
    }]
}

/// The shared PORT, `port`, belongs to the web service.
fn elsewhere(port: u16, at: SocketAddr) -> CheckResult {
    match ask(at, "GET", "/health") {
        ProbeResult::Http(status, body) if is_worker(&body) => assess(at.port(), status, &body),
        ProbeResult::Http(..) | ProbeResult::NotListening | ProbeResult::Silent(_) => CheckResult::skipped(format!(
            "the web service uses PORT {port}, and no worker responds at {at}: to check it, run `PORT=… lakemill \
             doctor` with the worker's port"
        )),
    }
}

/// Events that the worker of this machine rejected recently, from its metrics.
pub(super) fn refused_events(context: &DoctorContext) -> Vec<CheckResult> {
    let config = match config(context) {
        Ok(config) => config,
        Err(skipped) => return vec![skipped],
    };
    let Some(at) = context.worker_address().filter(|at| responds_at(*at)) else {
        return vec![CheckResult::skipped("no worker is running here; see lakemill_events_refused_total of each")];
    };
    let bearer = config.server.metrics_token.as_ref().map(|token| format!("Bearer {}", token.reveal()));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
    vec![match probe::ask(&format!("http://{at}/metrics"), "GET", &headers, ANSWER_TIME_MAX) {
        ProbeResult::Http(200, metrics) => assess_events(&metrics),
        ProbeResult::Http(status, _) => {
            CheckResult::skipped(format!("the worker answers /metrics with status {status}"))
        }
        ProbeResult::NotListening => CheckResult::skipped("no worker is running here"),
        ProbeResult::Silent(why) => CheckResult::skipped(format!("reading the worker's metrics failed: {why}")),
    }]
}

fn assess_events(metrics: &str) -> CheckResult {
    const TOTAL: &str = "lakemill_events_refused_total{reason=\"";
    let age = metrics.lines().find_map(|line| line.strip_prefix("lakemill_events_refused_age_seconds ")?.parse().ok());
    let age: f64 = age.unwrap_or(f64::INFINITY);
    if age > REFUSED_EVENTS_AGE_MAX.as_secs_f64() {
        return CheckResult::ok("the worker on this machine rejected no events in the last day");
    }
    let counted = |line: &str| {
        let (reason, count) = line.strip_prefix(TOTAL)?.split_once("\"} ")?;
        (count != "0").then(|| format!("{count} {reason}"))
    };
    let counts: Vec<String> = metrics.lines().filter_map(counted).collect();
    CheckResult::warning(
        format!("the worker on this machine rejected events ({}), the last one {age:.0} s ago", counts.join(", ")),
        "set SVC_WEBHOOK_SECRET as the secret of the store's webhook target; the worker's log (`event rejected`) \
         shows the addresses",
    )
}

fn is_worker(body: &str) -> bool {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body.get("kv").is_some() && body.get("in_flight").is_some()
}

/// Whether a worker responds there.
pub(super) fn responds_at(at: SocketAddr) -> bool {
    matches!(ask(at, "GET", "/health"), ProbeResult::Http(_, body) if is_worker(&body))
}

/// Whether a service of this machine can listen there.
pub(super) fn is_of_this_machine(bind: IpAddr) -> bool {
    !TcpListener::bind((bind, 0)).is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
}

fn assess(port: u16, status: u16, body: &str) -> CheckResult {
    let is_worker = is_worker(body);
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    match (status, is_worker) {
        (200, true) => CheckResult::ok(format!("running on port {port}, {} jobs in flight", body["in_flight"])),
        (_, true) => {
            let advice = "see the check of the key-value store, and the worker's log";
            CheckResult::problem(format!("the worker on port {port} can't reach its key-value store"), advice)
        }
        (_, false) => port_taken(port, &format!("answers /health with status {status}")),
    }
}

fn port_taken(port: u16, what: &str) -> CheckResult {
    CheckResult::problem(
        format!("port {port} is used by a program that {what}"),
        "stop it, or set PORT to another \
     port",
    )
}

/// Sends a request to a worker.
pub(super) fn ask(at: SocketAddr, method: &str, path: &str) -> ProbeResult {
    probe::ask(&format!("http://{at}{path}"), method, &[], ANSWER_TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Severity;

    #[test]
    fn recently_rejected_events_are_a_warning_with_their_reasons() {
        let counts = "lakemill_events_refused_total{reason=\"no_secret\"} 0\n\
                      lakemill_events_refused_total{reason=\"wrong_secret\"} 1000\n";
        assert_eq!(assess_events(counts).level, Severity::Ok);
        assert_eq!(assess_events(&format!("{counts}lakemill_events_refused_age_seconds 90000\n")).level, Severity::Ok);
        let found = assess_events(&format!("{counts}lakemill_events_refused_age_seconds 12.5\n"));
        assert!(found.level == Severity::Warning && found.message.contains("(1000 wrong_secret)"), "{}", found.message);
        assert!(found.advice.unwrap().contains("SVC_WEBHOOK_SECRET"));
    }
}
