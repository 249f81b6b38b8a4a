//! Login throttling: scopes of failed logins and their waits.
//!
//! Wider scopes slow down clients with many addresses. They must not lock the admin out: they don't apply to an address with
//! a recent login or to the loopback address, and the widest wait is short.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Failed logins are forgotten after this long without one in their scope, in s.
pub const LOGIN_MEMORY_S: u64 = 3_600;
/// How long an address that has logged in is exempt from the wider scopes, in s.
pub const KNOWN_LOGIN_S: u64 = 30 * 86_400;

/// The waits of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoginRule {
    /// Failures before the first wait.
    pub free: u32,
    /// The first wait, in s; it doubles with each further failure.
    pub wait_s: u64,
    /// The longest wait, in s.
    pub wait_s_max: u64,
}

/// One address: an IPv4 address, or the /64 of an IPv6 one, which one subscriber has.
pub const ADDRESS: LoginRule = LoginRule { free: 5, wait_s: 15, wait_s_max: 900 };
/// A /56, which most providers assign to one subscriber.
pub const SITE: LoginRule = LoginRule { free: 10, wait_s: 15, wait_s_max: 900 };
/// A /48, which an organization has, or subscribers share.
pub const ORGANIZATION: LoginRule = LoginRule { free: 20, wait_s: 15, wait_s_max: 300 };
/// All addresses together: one attempt per 10 s.
pub const ALL_ADDRESSES: LoginRule = LoginRule { free: 100, wait_s: 1, wait_s_max: 10 };

const _: () = assert!(ADDRESS.wait_s_max < LOGIN_MEMORY_S && LOGIN_MEMORY_S < KNOWN_LOGIN_S);
const _: () = assert!(ALL_ADDRESSES.wait_s_max < ADDRESS.wait_s);

impl LoginRule {
    /// The wait after the nth consecutive failure, if any.
    pub fn wait(self, failures: u32) -> Option<Duration> {
        let beyond = failures.checked_sub(self.free)?;
        Some(Duration::from_secs((self.wait_s << beyond.min(16)).min(self.wait_s_max)))
    }
}

/// A scope in which failed logins count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginScope {
    /// E.g. `192.0.2.1`, `2001:db8::/56`, `all`.
    pub name: String,
    pub rule: LoginRule,
}

/// The scopes of a client's address, the narrowest first. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginScopes {
    pub address: LoginScope,
    pub wider: Vec<LoginScope>,
}

impl LoginScopes {
    pub fn of(address: IpAddr) -> Self {
        let scope = |name: String, rule| LoginScope { name, rule };
        let address = address.to_canonical();
        let (own, mut wider) = match address {
            IpAddr::V4(address) => (scope(address.to_string(), ADDRESS), Vec::new()),
            IpAddr::V6(address) => (
                scope(network(address, 64), ADDRESS),
                vec![scope(network(address, 56), SITE), scope(network(address, 48), ORGANIZATION)],
            ),
        };
        wider.push(scope("all".into(), ALL_ADDRESSES));
        if address.is_loopback() {
            wider.clear();
        }
        Self { address: own, wider }
    }

    pub fn iter(&self) -> impl Iterator<Item = &LoginScope> {
        std::iter::once(&self.address).chain(&self.wider)
    }
}

fn network(address: Ipv6Addr, prefix: u32) -> String {
    let network = u128::from(address) & (u128::MAX << (128 - prefix));
    format!("{}/{prefix}", Ipv6Addr::from(network))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_start_after_free_failures_and_double_to_the_maximum() {
        let seconds = |rule: LoginRule, failures| rule.wait(failures).map(|wait| wait.as_secs());
        assert_eq!((seconds(ADDRESS, 0), seconds(ADDRESS, 4)), (None, None));
        let waits = [5, 6, 10, 11, u32::MAX].map(|failures| seconds(ADDRESS, failures));
        assert_eq!(waits, [Some(15), Some(30), Some(480), Some(900), Some(900)]);
        let waits = [99, 100, 103, 104, u32::MAX].map(|failures| seconds(ALL_ADDRESSES, failures));
        assert_eq!(waits, [None, Some(1), Some(8), Some(10), Some(10)]);
    }

    #[test]
    fn addresses_of_one_subscriber_share_scopes() {
        let names = |text: &str| {
            let scopes = LoginScopes::of(text.parse().unwrap());
            scopes.iter().map(|scope| scope.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names("203.0.113.7"), ["203.0.113.7", "all"]);
        assert_eq!(names("::ffff:203.0.113.7"), ["203.0.113.7", "all"]);
        let of_site = ["2001:db8:1:100::/56", "2001:db8:1::/48", "all"];
        assert_eq!(names("2001:db8:1:12a:3::4"), [&["2001:db8:1:12a::/64"], &of_site[..]].concat());
        assert_eq!(names("2001:db8:1:1ff:ffff::")[1..], of_site);
        assert_eq!(names("127.0.0.1"), ["127.0.0.1"], "an admin on the machine itself is not slowed by others");
        assert_eq!(names("::1"), ["::/64"]);
    }
}
