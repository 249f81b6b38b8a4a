//! The HTTP listener of worker and web.

use std::net::{IpAddr, Ipv4Addr};

use super::env::{Environment, Expected, Var, VariableReader, WithWarnings, secret};
use super::error::EnvironmentError;
use super::secret::Secret;
use super::values::number;

/// A range of addresses in CIDR notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    pub address: IpAddr,
    /// Bits that must agree: 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub prefix: u8,
}

impl AddressRange {
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |bits: u32| bits - u32::from(self.prefix);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differ = u32::from(ours) ^ u32::from(theirs);
                differ.checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differ = u128::from(ours) ^ u128::from(theirs);
                differ.checked_shr(shift(128)).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// Where a service listens and which proxies it trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// `SVC_BIND`: address to listen on; default `0.0.0.0`.
    pub bind: IpAddr,
    /// `PORT`: default 8080 for the worker, 3000 for the web service; 0 uses any free port, which is logged.
    pub port: u16,
    /// `SVC_TRUSTED_PROXIES`: comma-separated CIDRs whose forwarded addresses are trusted; default none.
    pub trusted_proxies: Vec<AddressRange>,
    /// `SVC_ALLOWED_HOSTS`: comma-separated names by which clients may address the service, besides `localhost`, IP
    /// addresses and the host of `SVC_PUBLIC_URL`; default none.
    pub allowed_hosts: Vec<String>,
    /// `SVC_METRICS_TOKEN`: bearer token of `/metrics`; without it only requests of this machine are allowed, and none if a
    /// proxy is configured. May come from a file.
    pub metrics_token: Option<Secret>,
}

/// Where a service of this machine listens, for `lakemill health`, which doesn't know which service it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenConfig {
    /// `SVC_BIND`, as of [`ServerConfig`].
    pub bind: IpAddr,
    /// `PORT`; `None`: the service's own default.
    pub port: Option<u16>,
}

impl ListenConfig {
    /// # Errors
    /// Lists every variable that is malformed.
    pub fn from_env(env: &Environment<'_>) -> Result<WithWarnings<Self>, EnvironmentError> {
        let reader = VariableReader::new(env);
        let config = Self { bind: bind(&reader), port: reader.optional(PORT, number(1..=u16::MAX)) };
        reader.finish(config)
    }
}

const PORT: Var = Var("PORT", "port to listen on");

fn bind(reader: &VariableReader<'_>) -> IpAddr {
    let bind = |text: &str| text.parse().map_err(|_| "an IP address such as `127.0.0.1` or `::`".to_owned());
    reader.or(Var("SVC_BIND", "address to listen on"), IpAddr::V4(Ipv4Addr::UNSPECIFIED), bind)
}

impl ServerConfig {
    pub(super) fn read(reader: &VariableReader<'_>, port: u16) -> Self {
        Self {
            bind: bind(reader),
            port: reader.or(PORT, port, number(0..=u16::MAX)),
            trusted_proxies: reader.or(Var("SVC_TRUSTED_PROXIES", "trusted proxies"), Vec::new(), ranges),
            allowed_hosts: reader.or(Var("SVC_ALLOWED_HOSTS", "host names of the service"), Vec::new(), host_names),
            metrics_token: reader.optional_secret(Var("SVC_METRICS_TOKEN", "bearer token of /metrics"), secret),
        }
    }
}

fn host_names(text: &str) -> Result<Vec<String>, Expected> {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let name = |name: &str| (!name.is_empty() && name.bytes().all(is_name)).then(|| name.to_ascii_lowercase());
    let names: Option<Vec<String>> = text.split(',').map(|text| name(text.trim())).collect();
    names.ok_or_else(|| "comma-separated host names without ports such as `lake.example.org, lake.internal`".to_owned())
}

fn ranges(text: &str) -> Result<Vec<AddressRange>, Expected> {
    text.split(',')
        .map(str::trim)
        .map(range)
        .collect::<Option<_>>()
        .ok_or_else(|| "comma-separated addresses or ranges such as `10.0.0.0/8, ::1`".to_owned())
}

/// An address, or a range in CIDR notation.
pub(super) fn range(text: &str) -> Option<AddressRange> {
    let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
    let address: IpAddr = address.parse().ok()?;
    let widest = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(prefix) => number(0..=widest)(prefix).ok()?,
        None => widest,
    };
    Some(AddressRange { address, prefix })
}
