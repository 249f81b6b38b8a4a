//! One request to a service of this machine.

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use ureq::tls::TlsConfig;

use crate::system::http_client;

const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Default ports of the services.
pub(super) const WORKER_PORT: u16 = 8_080;
pub(super) const WEB_PORT: u16 = 3_000;

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// Status and the beginning of the body.
    Http(u16, String),
    /// Nothing listens at the address.
    NotListening,
    /// Something listens but doesn't respond over HTTP.
    Silent(String),
}

/// The address at which a service bound to `bind` is reached from this machine.
pub(super) fn own_address(bind: IpAddr, port: u16) -> SocketAddr {
    let host = match bind {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        own => own,
    };
    SocketAddr::new(host, port)
}

fn agent(time_max: Duration) -> ureq::Agent {
    http_client::config(TlsConfig::default()).timeout_global(Some(time_max)).build().new_agent()
}

/// Posts a JSON text; like [`ask`].
pub(super) fn post(url: &str, headers: &[(&str, &str)], json: &str, time_max: Duration) -> ProbeResult {
    let mut request = agent(time_max).post(url).header("Content-Type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    result_of(request.send(json))
}

/// Sends a request over a new connection; waits at most `time_max` for the whole response.
pub(super) fn ask(url: &str, method: &str, headers: &[(&str, &str)], time_max: Duration) -> ProbeResult {
    let agent = agent(time_max);
    let mut request = if method == "HEAD" { agent.head(url) } else { agent.get(url) };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    result_of(request.call())
}

fn result_of(sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> ProbeResult {
    match sent {
        Ok(mut answer) => {
            let mut body = Vec::new();
            // A partial body is enough.
            let _ = answer.body_mut().as_reader().take(ANSWER_BYTES_MAX).read_to_end(&mut body);
            ProbeResult::Http(answer.status().as_u16(), String::from_utf8_lossy(&body).into_owned())
        }
        Err(ureq::Error::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => ProbeResult::NotListening,
        Err(ureq::Error::ConnectionFailed) => ProbeResult::NotListening,
        Err(error) => ProbeResult::Silent(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_bound_to_any_address_is_reached_by_loopback() {
        for (bind, address) in [
            ("0.0.0.0", "127.0.0.1:80"),
            ("::", "[::1]:80"),
            ("127.0.0.2", "127.0.0.2:80"),
            ("10.1.2.3", "10.1.2.3:80"),
        ] {
            assert_eq!(own_address(bind.parse().unwrap(), 80).to_string(), address);
        }
    }
}
