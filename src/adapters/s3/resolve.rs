//! Resolves the store's addresses, with a short cache.
//!
//! The agent resolves before every request, even with an idle connection: without the cache each request would cost a
//! thread and a DNS query.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// TTL of a cached address: short relative to the pauses between a job's attempts, so that retries find a store that
/// moved.
const TTL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct CachingResolver<R = DefaultResolver> {
    inner: R,
    ttl: Duration,
    /// One for each host: a store that is addressed by its buckets has three.
    latest: Mutex<Vec<CachedAddress>>,
}

#[derive(Debug)]
struct CachedAddress {
    origin: String,
    addresses: ResolvedSocketAddrs,
    at: Instant,
}

impl Default for CachingResolver {
    fn default() -> Self {
        Self { inner: DefaultResolver::default(), ttl: TTL, latest: Mutex::default() }
    }
}

impl<R: Resolver> Resolver for CachingResolver<R> {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let part = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let origin = part(uri.scheme_str()) + "://" + &part(uri.authority().map(|authority| authority.as_str()));
        let is_fresh = |found: &&CachedAddress| found.origin == origin && found.at.elapsed() < self.ttl;
        if let Some(found) = self.latest.lock().iter().find(is_fresh) {
            return Ok(found.addresses.clone());
        }
        // Not under the lock, so that a slow lookup doesn't block others.
        let at = Instant::now();
        let addresses = self.inner.resolve(uri, config, timeout)?;
        let mut latest = self.latest.lock();
        latest.retain(|found| found.origin != origin && found.at.elapsed() < self.ttl);
        latest.push(CachedAddress { origin, addresses: addresses.clone(), at });
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::*;

    /// Returns the number of the lookup as port.
    #[derive(Debug, Default)]
    struct Counting(AtomicU16);

    impl Resolver for Counting {
        fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
            let mut addresses = self.empty();
            addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, self.0.fetch_add(1, Ordering::SeqCst))));
            Ok(addresses)
        }
    }

    fn check(ttl: Duration, asked: &[(&str, u16)]) {
        let inner = Counting::default();
        let resolver = CachingResolver { inner, ttl, latest: Mutex::default() };
        for (uri, response) in asked {
            let uri: Uri = uri.parse().unwrap();
            let found = resolver.resolve(&uri, &Config::default(), NextTimeout::default()).unwrap();
            assert_eq!(found[0].port(), *response, "{uri}");
        }
    }

    #[test]
    fn lookups_are_cached_per_origin() {
        let hour = Duration::from_secs(3_600);
        check(
            hour,
            &[("http://a/x?y", 0), ("http://a/z", 0), ("http://a:81/", 1), ("https://a:81/", 2), ("http://a", 0)],
        );
    }

    #[test]
    fn expired_address_is_resolved_again() {
        check(Duration::ZERO, &[("http://a/", 0), ("http://a/", 1)]);
    }
}
