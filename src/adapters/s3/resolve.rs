//! Looks up the store's address, and keeps it for a moment.
//!
//! The agent asks for it before every request, also where a connection lies ready: without this each request would cost
//! a thread and a question to the name server.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// How long an address is kept: short beside the pauses of a job that is tried again, so that a store which moves is
/// found at its new place.
const KEPT: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(super) struct Remembering<R = DefaultResolver> {
    inner: R,
    kept_for: Duration,
    latest: Mutex<Option<Found>>,
}

#[derive(Debug)]
struct Found {
    origin: String,
    addresses: ResolvedSocketAddrs,
    at: Instant,
}

impl Default for Remembering {
    fn default() -> Self {
        Self { inner: DefaultResolver::default(), kept_for: KEPT, latest: Mutex::default() }
    }
}

impl<R: Resolver> Resolver for Remembering<R> {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let part = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let origin = part(uri.scheme_str()) + "://" + &part(uri.authority().map(|authority| authority.as_str()));
        let latest = || self.latest.lock();
        if let Some(found) = &*latest()
            && found.origin == origin
            && found.at.elapsed() < self.kept_for
        {
            return Ok(found.addresses.clone());
        }
        // Not under the lock: others may be content with an answer that comes sooner.
        let at = Instant::now();
        let addresses = self.inner.resolve(uri, config, timeout)?;
        *latest() = Some(Found { origin, addresses: addresses.clone(), at });
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::*;

    /// Answers with the number of the question as port.
    #[derive(Debug, Default)]
    struct Counting(AtomicU16);

    impl Resolver for Counting {
        fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
            let mut addresses = self.empty();
            addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, self.0.fetch_add(1, Ordering::SeqCst))));
            Ok(addresses)
        }
    }

    fn check(kept_for: Duration, asked: &[(&str, u16)]) {
        let inner = Counting::default();
        let resolver = Remembering { inner, kept_for, latest: Mutex::default() };
        for (uri, answer) in asked {
            let uri: Uri = uri.parse().unwrap();
            let found = resolver.resolve(&uri, &Config::default(), NextTimeout::default()).unwrap();
            assert_eq!(found[0].port(), *answer, "{uri}");
        }
    }

    #[test]
    fn requests_to_one_store_share_a_lookup_and_others_do_not() {
        let hour = Duration::from_secs(3_600);
        check(
            hour,
            &[("http://a/x?y", 0), ("http://a/z", 0), ("http://a:81/", 1), ("https://a:81/", 2), ("http://a", 3)],
        );
    }

    #[test]
    fn an_address_is_looked_up_again_once_it_is_old() {
        check(Duration::ZERO, &[("http://a/", 0), ("http://a/", 1)]);
    }
}
