//! How services outside are reached: certificate authorities and proxies.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use ureq::{Proxy, ProxyProtocol};
use url::{Host, Url};

use super::env::{Expected, Var, VariableReader};
use super::server::{AddressRange, range};
use super::values::absolute_path;

/// Addresses that are never reached by a proxy: this machine, and the link-local ones where clouds offer metadata.
const NEVER_PROXIED: &[AddressRange] = &[
    AddressRange { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 },
    AddressRange { address: IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), prefix: 16 },
    AddressRange { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 },
    AddressRange { address: IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), prefix: 10 },
];

/// The network between this process and the services that it uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkConfig {
    /// `SVC_CA_FILE`: PEM file of further certificate authorities to trust; default none.
    pub ca_file: Option<PathBuf>,
    /// `HTTPS_PROXY`: proxy of `https://…`; default none. May come from a file.
    pub https_proxy: Option<Proxy>,
    /// `HTTP_PROXY`: proxy of `http://…`; default none. May come from a file.
    pub http_proxy: Option<Proxy>,
    /// `NO_PROXY`: hosts that are reached directly; default none.
    pub no_proxy: Vec<DirectHost>,
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectHost {
    All,
    Range(AddressRange),
    /// A domain with its subdomains, in lower case, perhaps of one port only.
    Domain(String, Option<u16>),
}

impl NetworkConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        Self {
            ca_file: reader.optional(Var("SVC_CA_FILE", "further certificate authorities, PEM"), absolute_path),
            https_proxy: first_set(Var("HTTPS_PROXY", "proxy of https://"), "https_proxy", |var| {
                reader.optional_secret(var, proxy)
            }),
            http_proxy: first_set(Var("HTTP_PROXY", "proxy of http://"), "http_proxy", |var| {
                reader.optional_secret(var, proxy)
            }),
            no_proxy: first_set(Var("NO_PROXY", "hosts without a proxy"), "no_proxy", |var| {
                reader.optional(var, direct_hosts)
            })
            .unwrap_or_default(),
        }
    }

    /// The proxy that requests to this URL use.
    pub fn proxy_of(&self, url: &str) -> Option<&Proxy> {
        let url = Url::parse(url).ok()?;
        let proxy = if url.scheme() == "https" { &self.https_proxy } else { &self.http_proxy };
        proxy.as_ref().filter(|_| !self.is_direct(&url))
    }

    fn is_direct(&self, url: &Url) -> bool {
        let address = match url.host() {
            Some(Host::Domain("localhost")) | None => return true,
            Some(Host::Domain(_)) => None,
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        };
        if address.is_some_and(|address| NEVER_PROXIED.iter().any(|range| range.contains(address))) {
            return true;
        }
        let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
        self.no_proxy.iter().any(|entry| match entry {
            DirectHost::All => true,
            DirectHost::Range(range) => address.is_some_and(|address| range.contains(address)),
            DirectHost::Domain(domain, of_port) => {
                let rest = host.strip_suffix(domain.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                    && of_port.is_none_or(|of| port == Some(of))
            }
        })
    }
}

/// A proxy without its user and password.
pub fn shown_proxy(proxy: &Proxy) -> String {
    format!("{}://{}:{}", proxy.protocol().to_string().to_ascii_lowercase(), proxy.host(), proxy.port())
}

/// Reads a variable that many programs know in upper or lower case.
fn first_set<T>(upper: Var, lower: &'static str, read: impl Fn(Var) -> Option<T>) -> Option<T> {
    read(upper).or_else(|| read(Var(lower, upper.1)))
}

fn proxy(text: &str) -> Result<Proxy, Expected> {
    let parsed = Proxy::new(text).ok().filter(|proxy| {
        matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https) && !proxy.host().is_empty()
    });
    parsed.ok_or_else(|| "`http://host:port` or `https://host:port`, perhaps with `user:password@`".into())
}

/// Never fails: programs differ in what they permit here, and share the variable.
fn direct_hosts(text: &str) -> Result<Vec<DirectHost>, Expected> {
    let entries = text.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty());
    Ok(entries.map(direct_host).collect())
}

fn direct_host(text: &str) -> DirectHost {
    let address = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if text == "*" {
        return DirectHost::All;
    }
    if let Some(range) = range(address) {
        return DirectHost::Range(range);
    }
    let with_port = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = with_port.map_or((text, None), |(host, port)| (host, Some(port)));
    let domain = host.strip_prefix('*').unwrap_or(host);
    DirectHost::Domain(domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(no_proxy: &str) -> NetworkConfig {
        NetworkConfig {
            https_proxy: Some(proxy("http://ann:hush@secure.example:3128").unwrap()),
            http_proxy: Some(proxy("plain.example").unwrap()),
            no_proxy: direct_hosts(no_proxy).unwrap(),
            ..NetworkConfig::default()
        }
    }

    #[test]
    fn scheme_chooses_the_proxy() {
        let network = network("");
        let of = |url: &str| network.proxy_of(url).map(shown_proxy);
        assert_eq!(of("https://s3.example/b").as_deref(), Some("http://secure.example:3128"));
        assert_eq!(of("http://s3.example:9000").as_deref(), Some("http://plain.example:80"));
        assert_eq!(NetworkConfig::default().proxy_of("https://s3.example"), None);
        assert!(!format!("{network:?}").contains("hush"));
    }

    #[test]
    fn near_and_listed_hosts_are_reached_directly() {
        let is_direct = |no_proxy: &str, url: &str| network(no_proxy).proxy_of(url).is_none();
        for url in [
            "http://localhost:9000",
            "http://127.0.0.2",
            "http://[::1]:80",
            "http://169.254.169.254/latest",
            "http://169.254.170.2/v2",
            "http://[fe80::1]/",
        ] {
            assert!(is_direct("", url), "{url}");
        }
        for entry in ["*", "example.org", ".example.org", "*.example.org", "a, S3.Example.Org", "example.org:443"] {
            assert!(is_direct(entry, "https://s3.example.org/b"), "{entry}");
        }
        for entry in ["", "ample.org", "example.org:9000", "b.s3.example.org", "10.0.0.0/8", ":443x"] {
            assert!(!is_direct(entry, "https://s3.example.org/b"), "{entry}");
        }
        for entry in ["10.0.0.0/8", "10.1.2.3", "10.1.2.3:9000", "fd00::/8", "[fd00::5]"] {
            assert!(is_direct(entry, "http://10.1.2.3:9000") || is_direct(entry, "http://[fd00::5]:9000"), "{entry}");
        }
    }

    #[test]
    fn proxies_are_http_urls() {
        for good in
            ["proxy.example:3128", "http://proxy.example", "https://u:p%40@proxy.example:8443", "http://[::1]:3128"]
        {
            assert!(proxy(good).is_ok(), "{good}");
        }
        for bad in ["socks5://proxy.example", "ftp://proxy.example", "http://", "/proxy", "a b"] {
            assert!(proxy(bad).is_err(), "{bad}");
        }
    }
}
