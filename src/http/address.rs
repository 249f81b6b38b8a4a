//! The client of a request, also behind trusted proxies, and counts by client.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use crate::config::AddressRange;

use super::headers::Headers;

/// Addresses of `X-Forwarded-For` that are read, from the right.
const FORWARDED_MAX: usize = 64;

/// The client's address: the peer's, unless the peer is a trusted proxy; then the rightmost address of
/// `X-Forwarded-For` that isn't a trusted proxy's. If the list is malformed or has no other address, the last trusted
/// one counts.
pub fn client_address(peer: IpAddr, headers: &Headers, trusted: &[AddressRange]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|range| range.contains(address));
    let mut client = peer.to_canonical();
    let lists: Vec<&[u8]> = headers.all("x-forwarded-for").collect();
    let entries = lists.iter().rev().flat_map(|list| list.rsplit(|b| *b == b','));
    for entry in entries.take(FORWARDED_MAX) {
        if !is_trusted(client) {
            break;
        }
        match address_of(entry) {
            Some(address) => client = address.to_canonical(),
            None => break,
        }
    }
    client
}

/// The key of a client: an IPv4 address, or the /64 of an IPv6 address, since a subscriber has a whole one.
pub(super) fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Counts by client: connections, or requests.
#[derive(Debug, Default)]
pub(super) struct ClientCounts(Mutex<HashMap<IpAddr, usize>>);

/// Counts one for a client, until dropped.
#[derive(Debug)]
pub(super) struct ClientPermit {
    counts: Arc<ClientCounts>,
    client: IpAddr,
}

impl ClientPermit {
    pub(super) fn client(&self) -> IpAddr {
        self.client
    }
}

impl ClientCounts {
    pub(super) fn count(&self, client: IpAddr) -> usize {
        self.0.lock().get(&client).copied().unwrap_or(0)
    }

    pub(super) fn acquire(self: &Arc<Self>, client: IpAddr) -> ClientPermit {
        *self.0.lock().entry(client).or_default() += 1;
        ClientPermit { counts: Arc::clone(self), client }
    }

    /// [`ClientCounts::acquire`], if the client has fewer than `max`.
    pub(super) fn try_acquire(self: &Arc<Self>, client: IpAddr, max: usize) -> Option<ClientPermit> {
        let mut counts = self.0.lock();
        let count = counts.entry(client).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(ClientPermit { counts: Arc::clone(self), client })
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

/// `1.2.3.4`, `1.2.3.4:5`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:5`.
fn address_of(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse::<IpAddr>().ok().or_else(with_port).or_else(bracketed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, forwarded: &[&str], expected: &str) {
        let trusted = [("10.0.0.0", 8), ("::1", 128)]
            .map(|(address, prefix)| AddressRange { address: address.parse().unwrap(), prefix });
        let mut headers = Headers::default();
        forwarded.iter().for_each(|value| headers.push("X-Forwarded-For", value.as_bytes()));
        let client = client_address(peer.parse().unwrap(), &headers, &trusted);
        assert_eq!(client, expected.parse::<IpAddr>().unwrap(), "{peer} {forwarded:?}");
    }

    #[test]
    fn forwarded_addresses_count_from_the_right_and_from_trusted_peers_only() {
        check("192.0.2.1", &["203.0.113.5"], "192.0.2.1");
        check("10.0.0.1", &["203.0.113.5"], "203.0.113.5");
        check("10.0.0.1", &["198.51.100.9, 203.0.113.5"], "203.0.113.5");
        check("10.0.0.1", &["198.51.100.9, 203.0.113.5, 10.1.1.1"], "203.0.113.5");
        check("10.0.0.1", &["198.51.100.9", "203.0.113.5, 10.2.2.2", "10.3.3.3"], "203.0.113.5");
        check("10.0.0.1", &["10.9.9.9"], "10.9.9.9");
        check("10.0.0.1", &[], "10.0.0.1");
        check("::ffff:10.0.0.1", &["203.0.113.5"], "203.0.113.5");
        check("::1", &["[2001:db8::1]:4711"], "2001:db8::1");
        check("::1", &["203.0.113.5:80"], "203.0.113.5");
    }

    #[test]
    fn permits_count_by_subscriber_until_dropped() {
        let counts = Arc::<ClientCounts>::default();
        let client = |text: &str| subscriber(text.parse().unwrap());
        let (one, same) = (client("2001:db8::1"), client("2001:db8::ffff:2"));
        let held = counts.try_acquire(one, 2).unwrap();
        let more = counts.acquire(same);
        assert!(counts.try_acquire(same, 2).is_none() && counts.try_acquire(client("2001:db8:0:1::1"), 2).is_some());
        drop((held, more));
        assert_eq!((counts.count(one), counts.0.lock().len()), (0, 0));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }

    #[test]
    fn malformed_entry_ends_the_search() {
        check("10.0.0.1", &["203.0.113.5, evil, 10.1.1.1"], "10.1.1.1");
        check("10.0.0.1", &["203.0.113.5,"], "10.0.0.1");
    }
}
