//! HTTP clients of services outside, by the network's settings.

use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;
use ureq::{Proxy, ProxyProtocol};

use crate::config::{NetworkConfig, shown_proxy};
use crate::system::http_client::{self, CaFileError};

/// A client of `url`, as [`http_client::config`], by the proxy of that URL.
///
/// # Errors
/// The file of certificate authorities can't be used.
pub(super) fn client(url: &str, network: &NetworkConfig) -> Result<ConfigBuilder<AgentScope>, CaFileError> {
    let proxy = network.proxy_of(url);
    let is_secure = proxy.is_some_and(|proxy| proxy.protocol() == ProxyProtocol::Https);
    let tls = http_client::tls(if is_secure { "https://" } else { url }, network.ca_file.as_deref())?;
    Ok(http_client::config(tls).proxy(proxy.cloned()))
}

/// Names the proxy of requests, as a suffix of error messages; empty without a proxy.
pub(super) fn by_proxy(proxy: Option<&Proxy>) -> String {
    proxy.map_or_else(String::new, |proxy| format!(" (by the proxy {})", shown_proxy(proxy)))
}
