//! Rejected event notifications, counted by reason and logged at a bounded rate with the client's address.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A client's rejections of one reason are logged once in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Clients and reasons logged separately within [`LOG_EVERY`]; further clients share a line per reason.
const CLIENTS_MAX: usize = 16;

/// Why a notification was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// No secret was sent.
    NoSecret,
    WrongSecret,
    /// The body is not an event notification.
    InvalidBody,
    /// The events could not be recorded; the store retries.
    KvUnavailable,
    /// An SNS message that doesn't come from a permitted topic.
    UntrustedTopic,
    /// SNS could not be asked for a certificate or to confirm a subscription; it retries.
    TopicUnavailable,
}

impl Rejection {
    pub const ALL: [Self; 6] = [
        Self::NoSecret,
        Self::WrongSecret,
        Self::InvalidBody,
        Self::KvUnavailable,
        Self::UntrustedTopic,
        Self::TopicUnavailable,
    ];

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSecret => "no_secret",
            Self::WrongSecret => "wrong_secret",
            Self::InvalidBody => "invalid_body",
            Self::KvUnavailable => "kv_unavailable",
            Self::UntrustedTopic => "untrusted_topic",
            Self::TopicUnavailable => "topic_unavailable",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::NoSecret => "configure the store to send SVC_WEBHOOK_SECRET",
            Self::WrongSecret => "the store's secret must be SVC_WEBHOOK_SECRET",
            Self::InvalidBody => "check what sends these requests",
            Self::KvUnavailable => "check the key-value store",
            Self::UntrustedTopic => "name the topic's ARN in SVC_EVENTS_SNS_TOPICS if its messages are wanted",
            Self::TopicUnavailable => "check that this machine can reach SNS",
        }
    }
}

/// When a line was logged, and how many rejections since were not.
#[derive(Debug)]
struct Logged {
    at: Instant,
    suppressed: u64,
}

/// Counters of rejections, and the times of their log lines.
#[derive(Debug, Default)]
pub struct EventRejections {
    counts: [AtomicU64; Rejection::ALL.len()],
    last: Mutex<Option<Instant>>,
    /// `None` stands for all clients beyond [`CLIENTS_MAX`].
    logged: Mutex<BTreeMap<(Rejection, Option<IpAddr>), Logged>>,
}

impl EventRejections {
    pub(super) fn add(&self, reason: Rejection, client: IpAddr, why: &str) {
        self.counts[reason as usize].fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        *self.last.lock() = Some(now);
        if let Some(suppressed) = self.to_log(reason, client, now) {
            let (reason, advice) = (reason.name(), reason.advice());
            tracing::warn!(%client, reason, why, suppressed, advice, "event rejected");
        }
    }

    /// Whether to log a rejection now, and how many were suppressed since the last line.
    fn to_log(&self, reason: Rejection, client: IpAddr, now: Instant) -> Option<u64> {
        let mut logged = self.logged.lock();
        let is_old = |logged: &Logged| now.duration_since(logged.at) >= LOG_EVERY;
        if !logged.contains_key(&(reason, Some(client))) {
            logged.retain(|_, logged| !is_old(logged) || logged.suppressed > 0);
        }
        let own = logged.contains_key(&(reason, Some(client))) || logged.len() < CLIENTS_MAX;
        let key = (reason, own.then_some(client));
        match logged.get_mut(&key) {
            Some(logged) if !is_old(logged) => {
                logged.suppressed += 1;
                None
            }
            found => {
                let suppressed = found.map_or(0, |logged| logged.suppressed);
                logged.insert(key, Logged { at: now, suppressed: 0 });
                Some(suppressed)
            }
        }
    }

    /// Rejections since the start, by reason.
    pub fn counts(&self) -> impl Iterator<Item = (Rejection, u64)> {
        Rejection::ALL.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Time since the last one.
    pub fn last(&self) -> Option<Duration> {
        self.last.lock().map(|at| at.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[test]
    fn client_is_logged_once_a_minute_with_the_suppressed_count() {
        let (rejections, now) = (EventRejections::default(), Instant::now());
        let log = |at| rejections.to_log(Rejection::WrongSecret, client(1), at);
        assert_eq!(log(now), Some(0));
        assert!((0..999).all(|_| log(now).is_none()));
        assert_eq!(rejections.to_log(Rejection::NoSecret, client(1), now), Some(0), "another reason is logged");
        assert_eq!(log(now + LOG_EVERY), Some(999));
        assert_eq!(log(now + LOG_EVERY), None);
    }

    #[test]
    fn lines_are_bounded_with_many_clients() {
        let (rejections, now) = (EventRejections::default(), Instant::now());
        let lines = |at| (0..=255).filter(|n| rejections.to_log(Rejection::NoSecret, client(*n), at).is_some()).count();
        assert_eq!((lines(now), lines(now)), (CLIENTS_MAX + 1, 0));
        assert!(lines(now + LOG_EVERY) <= CLIENTS_MAX + 1);
        assert!(rejections.logged.lock().len() <= CLIENTS_MAX + Rejection::ALL.len());
    }
}
