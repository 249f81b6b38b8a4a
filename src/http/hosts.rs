//! Host names by which clients may address the service: protection from DNS rebinding.
//!
//! Another site can let its own name resolve to this service. The browser then treats the service as that site, which
//! can read all responses, and `Origin` doesn't reveal it. `Host` does: it is the other site's name.
//!
//! IP addresses are always allowed: they are not resolved, so DNS rebinding can't use them. Ports are ignored: an
//! attacker who controls a name controls the port as well, and port forwarding keeps working.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::{ApiError, ErrorCode};

/// Always allowed: browsers resolve it themselves.
const LOCALHOST: &str = "localhost";
/// Longest name in a message, as in DNS.
const NAME_CHARS_MAX: usize = 255;

/// The host of a `Host` field, of a request target or of a URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostName {
    Address(IpAddr),
    /// In lower case, without a trailing dot.
    Name(String),
}

impl HostName {
    /// Parses `host` or `host:port`, with an IPv6 address in brackets. `None` if it is malformed.
    pub fn parse(authority: &str) -> Option<Self> {
        let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
        if let Some(rest) = authority.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            let well_formed = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            let address = address.parse::<Ipv6Addr>().ok().filter(|_| well_formed)?;
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        let host = match authority.split_once(':') {
            Some((host, port)) if is_port(port) => host,
            Some(_) => return None,
            None => authority,
        };
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let well_formed = !name.is_empty() && name.bytes().all(is_name);
        well_formed.then(|| Self::Name(name.to_ascii_lowercase()))
    }

    /// Whether it names the client's own machine.
    fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            Self::Name(name) => name == LOCALHOST,
        }
    }
}

/// Host names that are allowed besides `localhost` and IP addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    any: bool,
    names: BTreeSet<String>,
}

impl AllowedHosts {
    /// Allows every name, for servers without browser clients.
    pub fn any() -> Self {
        Self { any: true, names: BTreeSet::new() }
    }

    /// These names, e.g. `lake.example.org`. Other texts are ignored.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names = names.into_iter().filter_map(|name| match HostName::parse(name)? {
            HostName::Name(name) => Some(name),
            HostName::Address(_) => None,
        });
        Self { any: false, names: names.collect() }
    }

    fn contains(&self, authority: &str) -> bool {
        match HostName::parse(authority) {
            Some(HostName::Address(_)) => true,
            Some(HostName::Name(name)) => name == LOCALHOST || self.names.contains(&name),
            None => false,
        }
    }

    /// # Errors
    /// `misdirected_request`, with the host and the settings that would allow it.
    pub(super) fn check<'a>(&self, mut authorities: impl Iterator<Item = &'a str>) -> Result<(), ApiError> {
        if self.any {
            return Ok(());
        }
        let Some(foreign) = authorities.find(|authority| !self.contains(authority)) else { return Ok(()) };
        let found: String = foreign.chars().take(NAME_CHARS_MAX).collect();
        let message = format!(
            "the request is addressed to the host `{found}`, which is not a name of this service; if it is one, set \
             SVC_PUBLIC_URL or add it to SVC_ALLOWED_HOSTS"
        );
        Err(ApiError::new(ErrorCode::MisdirectedRequest, message))
    }
}

/// Whether an authority is `localhost` or a loopback address.
pub(super) fn is_loopback(authority: &str) -> bool {
    HostName::parse(authority).is_some_and(|host| host.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(hosts: &AllowedHosts, authorities: &[&str]) -> bool {
        hosts.check(authorities.iter().copied()).is_ok()
    }

    #[test]
    fn own_names_localhost_and_addresses_are_allowed_in_every_spelling() {
        let hosts = AllowedHosts::of(["lake.example.org", "Worker_1.INTERNAL."]);
        for host in [
            "lake.example.org",
            "LAKE.example.ORG:443",
            "lake.example.org.",
            "lake.example.org.:3000",
            "worker_1.internal",
            "localhost",
            "Localhost.:9000",
            "127.0.0.1",
            "127.0.0.1:3000",
            "10.1.2.3:80",
            "[::1]",
            "[::1]:3000",
            "[2001:db8::1]:3000",
        ] {
            assert!(allowed(&hosts, &[host]), "{host}");
        }
    }

    #[test]
    fn other_and_malformed_names_are_refused() {
        let hosts = AllowedHosts::of(["lake.example.org"]);
        for host in [
            "evil.example",
            "lake.example.org.evil.example",
            "evil-lake.example.org",
            "x.lake.example.org",
            "lake.example.org..",
            "lake.example.org:80:80",
            "lake.example.org:x",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "2130706433",
            "0x7f.1",
            "127.1",
            "::1",
            "[::1",
            "[::1]evil.example",
            "[fe80::1%25eth0]",
            "[127.0.0.1]",
            ".",
            ":80",
        ] {
            assert!(!allowed(&hosts, &[host]), "{host}");
        }
    }

    #[test]
    fn every_authority_must_be_allowed() {
        let hosts = AllowedHosts::of(["lake.example.org"]);
        assert!(allowed(&hosts, &["lake.example.org:80", "lake.example.org"]));
        assert!(!allowed(&hosts, &["evil.example", "lake.example.org"]));
        assert!(!allowed(&hosts, &["lake.example.org", "evil.example"]));
        assert!(allowed(&hosts, &[]), "browsers always name a host");
        assert!(allowed(&AllowedHosts::any(), &["evil.example"]));
    }
}
