//! What a service tells the service manager that started it (systemd's `NOTIFY_SOCKET`): that it is ready, what it
//! does, that it ends, and, as long as it finds itself alive, that its watchdog need not bark.
//!
//! The service is alive if each of its listeners answers `/livez` over HTTP, and every thread that must not stand still
//! has shown a sign of life. A store that is away is no reason: a new process would not reach it either.
//!
//! Without a `NOTIFY_SOCKET` nothing of this is done.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use sd_notify::NotifyState;

use super::probe::{Answer, ask, own_address};
use crate::config::Environment;
use crate::runtime::Watchdog;

/// How often the status is told.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// How much more time is asked for while the end is on: again and again, so that one who hangs is soon ended.
const EXTEND_BY_S: u32 = 30;
/// The end may take so much longer than the jobs: giving jobs back, and requests that are on.
const LAST_THINGS_TIME_MAX: Duration = Duration::from_secs(60);
/// Parts of the watchdog's time. A service that is alive says so each half of it; one that seems not to be is looked at
/// more often, so that one look that failed doesn't end it.
const FEEDS: u32 = 2;
const LOOKS: u32 = 8;
/// Longest wait for an answer of our own where there is no watchdog.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

const _: () = assert!(TELL_EVERY.as_secs() * 2 < EXTEND_BY_S as u64);

/// What is watched, and what is told of it.
pub(super) struct Watched {
    /// Of each listener.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) watchdogs: Vec<Arc<Watchdog>>,
    /// What the service does, in a few words.
    pub(super) status: Box<dyn Fn() -> String + Send>,
}

impl Watched {
    /// Both as one.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.addresses.extend(other.addresses);
        self.watchdogs.extend(other.watchdogs);
        let (own, others) = (self.status, other.status);
        Self { status: Box::new(move || format!("{}; {}", own(), others())), ..self }
    }

    /// Why the service is not alive, if it isn't.
    fn fault(&self, ending: bool, time_max: Duration) -> Option<String> {
        if let Some(silence) = self.watchdogs.iter().flat_map(|watchdog| watchdog.stalled(ending)).next() {
            return Some(silence.to_string());
        }
        let count = u32::try_from(self.addresses.len()).unwrap_or(u32::MAX).max(1);
        let fault = |address: &SocketAddr| {
            let url = format!("http://{}/livez", own_address(address.ip(), address.port()));
            match ask(&url, "GET", &[], time_max / count) {
                // One that has too much to do says so, and lives.
                Answer::Http(200 | 503, _) => None,
                Answer::Http(status, _) => Some(format!("{url} answered with status {status}, expected 200")),
                Answer::Nobody => Some(format!("nobody listens at {url}")),
                Answer::Silent(why) => Some(format!("{url} gave no answer: {why}")),
            }
        };
        self.addresses.iter().find_map(fault)
    }
}

/// What becomes of the service.
enum News {
    /// It ends, and its jobs may take so long.
    Ending(Duration),
    Over,
}

/// Tells that the service ends.
#[derive(Clone)]
pub(super) struct EndTeller(Sender<News>);

impl EndTeller {
    /// `time_max`: how long what is on may take to end.
    pub(super) fn ending(&self, time_max: Duration) {
        // Without a service manager there is nobody to tell.
        let _ = self.0.send(News::Ending(time_max));
    }
}

/// The way by which [`Supervisor`] hears of the end, which may come before the service is ready.
pub(super) struct Ends(Sender<News>, Receiver<News>);

impl Ends {
    pub(super) fn new() -> Self {
        let (sender, receiver) = unbounded();
        Self(sender, receiver)
    }

    pub(super) fn teller(&self) -> EndTeller {
        EndTeller(self.0.clone())
    }
}

/// Tells the service manager of the service until it is dropped. See the module.
pub(super) struct Supervisor(Sender<News>);

impl Supervisor {
    /// Tells that the service is ready.
    pub(super) fn start(watched: Watched, ends: Ends) -> Self {
        let Ends(sender, news) = ends;
        if Environment::has_service_manager() {
            tell(&[NotifyState::Ready, NotifyState::Status(&(watched.status)())]);
            let telling = Telling { watched, watchdog: sd_notify::watchdog_enabled(), ending: None, fault: None };
            let thread = std::thread::Builder::new().name("supervisor".into()).spawn(move || telling.run(&news));
            if let Err(error) = thread {
                tracing::error!(%error, "no thread for the service manager: its watchdog will end the service");
            }
        }
        Self(sender)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.0.send(News::Over);
    }
}

/// The thread.
struct Telling {
    watched: Watched,
    watchdog: Option<Duration>,
    /// Until when the end may take, once it has begun.
    ending: Option<Instant>,
    /// What the last look found.
    fault: Option<String>,
}

impl Telling {
    fn run(mut self, news: &Receiver<News>) {
        loop {
            self.look();
            match news.recv_timeout(self.pause()) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(News::Ending(time_max)) => self.end(time_max),
                Ok(News::Over) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn end(&mut self, time_max: Duration) {
        self.ending.get_or_insert(Instant::now() + time_max + LAST_THINGS_TIME_MAX);
        tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(EXTEND_BY_S * 1_000_000)]);
    }

    fn look(&mut self) {
        let time_max = self.watchdog.map_or(ANSWER_TIME_MAX, |watchdog| watchdog / LOOKS);
        let fault = self.watched.fault(self.ending.is_some(), time_max);
        // A service that ends doesn't listen any more at last.
        if self.fault.is_none()
            && self.ending.is_none()
            && let Some(fault) = &fault
        {
            tracing::error!(fault, "the service is not well: its watchdog is not fed");
        }
        if self.fault.is_some() && fault.is_none() {
            tracing::info!("the service is well again: its watchdog is fed");
        }
        self.fault = fault;
        let doing = if self.ending.is_some() { "ending: " } else { "" };
        let fault = self.fault.as_ref().map_or_else(String::new, |fault| format!("; not well: {fault}"));
        let status = format!("{doing}{}{fault}", (self.watched.status)());
        let mut states = vec![NotifyState::Status(&status)];
        if self.fault.is_none() {
            if self.watchdog.is_some() {
                states.push(NotifyState::Watchdog);
            }
            if self.ending.is_some_and(|until| Instant::now() < until) {
                states.push(NotifyState::ExtendTimeoutUsec(EXTEND_BY_S * 1_000_000));
            }
        }
        tell(&states);
    }

    fn pause(&self) -> Duration {
        let part = if self.fault.is_some() { LOOKS } else { FEEDS };
        self.watchdog.map_or(TELL_EVERY, |watchdog| (watchdog / part).min(TELL_EVERY))
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager can't be told");
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

    /// Answers one request with `status`.
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
    fn a_service_is_alive_if_it_answers_and_its_threads_show_pings() {
        let watchdog = Arc::<Watchdog>::default();
        let fault = |address, ending| watched(address, &watchdog).fault(ending, ANSWER_TIME_MAX);
        for status in ["200 OK", "503 Service Unavailable"] {
            assert_eq!(fault(answers(status), false), None, "{status}");
        }
        assert!(fault(answers("404 Not Found"), false).unwrap().contains("status 404, expected 200"));
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(fault(gone, false).unwrap().starts_with("nobody listens at http://127.0.0.1:"));
        drop(watchdog.watch("claimer", ANSWER_TIME_MAX));
        assert_eq!(fault(answers("200 OK"), false).unwrap(), "the thread `claimer` has ended");
        assert_eq!(fault(answers("200 OK"), true), None, "at its end its threads end");
    }

    #[test]
    fn a_service_that_takes_connections_and_answers_none_is_not_alive() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let watched = watched(silent.local_addr().unwrap(), &Arc::default());
        let fault = watched.fault(false, Duration::from_millis(50)).unwrap();
        assert!(fault.contains("/livez gave no answer: "), "{fault}");
    }
}
