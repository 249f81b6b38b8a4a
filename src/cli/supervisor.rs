//! Notifies the service manager (systemd's `NOTIFY_SOCKET`): readiness, status, stopping, and, while the health check
//! passes, its watchdog.
//!
//! The health check passes if each listener answers `/livez` over HTTP and no watched thread has stalled. An unreachable
//! store doesn't matter: a new process could not reach it either.
//!
//! Does nothing without a `NOTIFY_SOCKET`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use sd_notify::NotifyState;

use super::probe::{ProbeResult, ask, own_address};
use crate::config::Environment;
use crate::runtime::Watchdog;

/// How often the status is sent.
const NOTIFY_EVERY: Duration = Duration::from_secs(10);
/// Time requested repeatedly while stopping; short, so that a hanging service is killed soon.
const EXTEND_BY_S: u32 = 30;
/// Stopping may take this much longer than the jobs: for requeueing jobs and for open requests.
const FINISH_TIME_MAX: Duration = Duration::from_secs(60);
/// Fractions of the watchdog's time: how often a healthy service notifies it, and how often an unhealthy one is checked
/// again, so that one failed check doesn't end the service.
const NOTIFICATIONS: u32 = 2;
const RETRIES: u32 = 8;
/// Longest wait for an answer without a watchdog.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

const _: () = assert!(NOTIFY_EVERY.as_secs() * 2 < EXTEND_BY_S as u64);

/// The subjects of the health check.
pub(super) struct Watched {
    /// The address of each listener.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) watchdogs: Vec<Arc<Watchdog>>,
    /// A short status text.
    pub(super) status: Box<dyn Fn() -> String + Send>,
}

impl Watched {
    /// Combines two.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.addresses.extend(other.addresses);
        self.watchdogs.extend(other.watchdogs);
        let (own, others) = (self.status, other.status);
        Self { status: Box::new(move || format!("{}; {}", own(), others())), ..self }
    }

    /// Why the health check fails, if it does.
    fn fault(&self, stopping: bool, time_max: Duration) -> Option<String> {
        if let Some(stalled) = self.watchdogs.iter().flat_map(|watchdog| watchdog.stalled(stopping)).next() {
            return Some(stalled.to_string());
        }
        let count = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX).max(1);
        let fault = |address: &SocketAddr| {
            let url = format!("http://{}/livez", own_address(address.ip(), address.port()));
            match ask(&url, "GET", &[], time_max / count) {
                // An overloaded service is alive.
                ProbeResult::Http(200 | 503, _) => None,
                ProbeResult::Http(status, _) => Some(format!("{url} answered with status {status}, expected 200")),
                ProbeResult::NotListening => Some(format!("nothing listens at {url}")),
                ProbeResult::Silent(why) => Some(format!("{url} did not respond: {why}")),
            }
        };
        self.addresses.iter().find_map(fault)
    }
}

/// Sent to the supervisor.
enum Notice {
    /// The service stops, and its jobs may take this long.
    Stopping(Duration),
    Stopped,
}

/// Notifies the [`ServiceNotifier`] that the service stops.
#[derive(Clone)]
pub(super) struct Notifier(Sender<Notice>);

impl Notifier {
    /// `time_max`: how long jobs in flight may take.
    pub(super) fn stopping(&self, time_max: Duration) {
        // Without a service manager nothing receives it.
        let _ = self.0.send(Notice::Stopping(time_max));
    }
}

/// The channel to the [`ServiceNotifier`]: a stop may come before the service is ready.
pub(super) struct Notices(Sender<Notice>, Receiver<Notice>);

impl Notices {
    pub(super) fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self(sender, receiver)
    }

    pub(super) fn notifier(&self) -> Notifier {
        Notifier(self.0.clone())
    }
}

/// Notifies the service manager until dropped.
pub(super) struct ServiceNotifier(Sender<Notice>);

impl ServiceNotifier {
    /// Notifies that the service is ready.
    pub(super) fn start(watched: Watched, notices: Notices) -> Self {
        let Notices(sender, notices) = notices;
        if Environment::has_service_manager() {
            notify(&[NotifyState::Ready, NotifyState::Status(&(watched.status)())]);
            let supervisor =
                Supervision { watched, watchdog: sd_notify::watchdog_enabled(), stopping: None, fault: None };
            let thread = std::thread::Builder::new().name("supervisor".into()).spawn(move || supervisor.run(&notices));
            if let Err(error) = thread {
                tracing::error!(%error, "starting the supervisor failed; the service manager's watchdog will end the service");
            }
        }
        Self(sender)
    }
}

impl Drop for ServiceNotifier {
    fn drop(&mut self) {
        let _ = self.0.send(Notice::Stopped);
    }
}

/// The supervisor's thread.
struct Supervision {
    watched: Watched,
    watchdog: Option<Duration>,
    /// The deadline of the stop, once it has begun.
    stopping: Option<Instant>,
    /// The failure of the last health check.
    fault: Option<String>,
}

impl Supervision {
    fn run(mut self, notices: &Receiver<Notice>) {
        loop {
            self.check();
            match notices.recv_timeout(self.pause()) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Notice::Stopping(time_max)) => self.stop(time_max),
                Ok(Notice::Stopped) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn stop(&mut self, time_max: Duration) {
        self.stopping.get_or_insert(Instant::now() + time_max + FINISH_TIME_MAX);
        notify(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(EXTEND_BY_S * 1_000_000)]);
    }

    fn check(&mut self) {
        let time_max = self.watchdog.map_or(ANSWER_TIME_MAX, |watchdog| watchdog / RETRIES);
        let fault = self.watched.fault(self.stopping.is_some(), time_max);
        // A stopping service closes its listeners first.
        if self.fault.is_none()
            && self.stopping.is_none()
            && let Some(fault) = &fault
        {
            tracing::error!(fault, "health check failed; watchdog not notified");
        }
        if self.fault.is_some() && fault.is_none() {
            tracing::info!("health check passes again; watchdog notified");
        }
        self.fault = fault;
        let doing = if self.stopping.is_some() { "stopping: " } else { "" };
        let fault = self.fault.as_ref().map_or_else(String::new, |fault| format!("; health check failed: {fault}"));
        let status = format!("{doing}{}{fault}", (self.watched.status)());
        let mut states = vec![NotifyState::Status(&status)];
        if self.fault.is_none() {
            if self.watchdog.is_some() {
                states.push(NotifyState::Watchdog);
            }
            if self.stopping.is_some_and(|until| Instant::now() < until) {
                states.push(NotifyState::ExtendTimeoutUsec(EXTEND_BY_S * 1_000_000));
            }
        }
        notify(&states);
    }

    fn pause(&self) -> Duration {
        let part = if self.fault.is_some() { RETRIES } else { NOTIFICATIONS };
        self.watchdog.map_or(NOTIFY_EVERY, |watchdog| (watchdog / part).min(NOTIFY_EVERY))
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "notifying the service manager failed");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    fn watched(address: SocketAddr, watchdog: &Arc<Watchdog>) -> Watched {
        Watched { addresses: vec![address], watchdogs: vec![Arc::clone(watchdog)], status: Box::new(String::new) }
    }

    /// Responds to one request with `status`.
    fn answers(status: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut head = [0; 1_024];
            let read = client.read(&mut head).unwrap();
            assert!(head[..read].starts_with(b"GET /livez "));
            client.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn service_is_healthy_if_it_answers_and_no_thread_has_stalled() {
        let watchdog = Arc::<Watchdog>::default();
        let fault = |address, stopping| watched(address, &watchdog).fault(stopping, ANSWER_TIME_MAX);
        for status in ["200 OK", "503 Service Unavailable"] {
            assert_eq!(fault(answers(status), false), None, "{status}");
        }
        assert!(fault(answers("404 Not Found"), false).unwrap().contains("status 404, expected 200"));
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(fault(gone, false).unwrap().starts_with("nothing listens at http://127.0.0.1:"));
        drop(watchdog.watch("claimer", ANSWER_TIME_MAX));
        assert_eq!(fault(answers("200 OK"), false).unwrap(), "the thread `claimer` has ended");
        assert_eq!(fault(answers("200 OK"), true), None, "a stopping service ends its threads");
    }

    #[test]
    fn service_that_accepts_connections_without_answering_is_unhealthy() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let watched = watched(silent.local_addr().unwrap(), &Arc::default());
        let fault = watched.fault(false, Duration::from_millis(50)).unwrap();
        assert!(fault.contains("/livez did not respond: "), "{fault}");
    }
}
