//! Rejected posts of events: counted by reason, and logged at a bounded rate with the client's address.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A client's rejected posts of one reason are logged once in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Clients and reasons that are told apart within [`LOG_EVERY`]; further ones share a line for each reason.
const CLIENTS_MAX: usize = 16;

/// Why a post was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// No secret was sent.
    NoSecret,
    WrongSecret,
    /// The body is not an event notification.
    InvalidBody,
    /// The events could not be recorded; the store posts them again.
    KvUnavailable,
}

impl Refusal {
    pub const ALL: [Self; 4] = [Self::NoSecret, Self::WrongSecret, Self::InvalidBody, Self::KvUnavailable];

    /// As metrics and logs name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSecret => "no_secret",
            Self::WrongSecret => "wrong_secret",
            Self::InvalidBody => "invalid_body",
            Self::KvUnavailable => "kv_unavailable",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::NoSecret => "let the store send SVC_WEBHOOK_SECRET",
            Self::WrongSecret => "the store's secret must be SVC_WEBHOOK_SECRET",
            Self::InvalidBody => "see what posts there",
            Self::KvUnavailable => "see the key-value store",
        }
    }
}

/// When a line was logged, and the posts since that were not.
#[derive(Debug)]
struct Logged {
    at: Instant,
    suppressed: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Refusals {
    counts: [AtomicU64; Refusal::ALL.len()],
    last: Mutex<Option<Instant>>,
    /// Without a client: those beyond [`CLIENTS_MAX`].
    logged: Mutex<BTreeMap<(Refusal, Option<IpAddr>), Logged>>,
}

impl Refusals {
    pub(super) fn add(&self, refusal: Refusal, client: IpAddr, why: &str) {
        self.counts[refusal as usize].fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        *self.last.lock() = Some(now);
        if let Some(suppressed) = self.to_log(refusal, client, now) {
            let (reason, advice) = (refusal.name(), refusal.advice());
            tracing::warn!(%client, reason, why, suppressed, advice, "event rejected");
        }
    }

    /// Whether a post is to be logged now, with how many alike were not since the line before.
    fn to_log(&self, refusal: Refusal, client: IpAddr, now: Instant) -> Option<u64> {
        let mut logged = self.logged.lock();
        let is_old = |logged: &Logged| now.duration_since(logged.at) >= LOG_EVERY;
        if !logged.contains_key(&(refusal, Some(client))) {
            logged.retain(|_, logged| !is_old(logged) || logged.suppressed > 0);
        }
        let own = logged.contains_key(&(refusal, Some(client))) || logged.len() < CLIENTS_MAX;
        let key = (refusal, own.then_some(client));
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

    /// Rejected posts since the start, by reason.
    pub fn counts(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// How long ago the last one was.
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
    fn a_client_is_logged_once_a_minute_with_what_was_suppressed() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let log = |at| refusals.to_log(Refusal::WrongSecret, client(1), at);
        assert_eq!(log(now), Some(0));
        assert!((0..999).all(|_| log(now).is_none()));
        assert_eq!(refusals.to_log(Refusal::NoSecret, client(1), now), Some(0), "another reason is news");
        assert_eq!(log(now + LOG_EVERY), Some(999));
        assert_eq!(log(now + LOG_EVERY), None);
    }

    #[test]
    fn many_clients_make_few_lines() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let lines = |at| (0..=255).filter(|n| refusals.to_log(Refusal::NoSecret, client(*n), at).is_some()).count();
        assert_eq!((lines(now), lines(now)), (CLIENTS_MAX + 1, 0));
        assert!(lines(now + LOG_EVERY) <= CLIENTS_MAX + 1);
        assert!(refusals.logged.lock().len() <= CLIENTS_MAX + Refusal::ALL.len());
    }
}
