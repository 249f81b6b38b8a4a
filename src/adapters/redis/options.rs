//! Options of a connection.

use std::sync::Arc;
use std::time::Duration;

use crate::config::SENTINEL_URL_FORM;
use crate::runtime::Clock;

/// Longest wait for a connection, and for a reply.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A consumer without pending entries that was idle for this long belongs to a dead process.
const CONSUMER_IDLE: Duration = Duration::from_secs(3_600);

/// How to reach a server. Must not be logged: the URL contains a password.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://[user][:password@]host[:port][/db]`, or `rediss://…` for TLS; or
    /// [`crate::config::SENTINEL_URL_FORM`].
    pub url: String,
    /// PEM certificates of authorities to trust in addition to the public ones.
    pub ca_pem: Option<Vec<u8>>,
    /// Presented to servers over TLS that ask for it; default none.
    pub client: Option<ClientIdentity>,
    /// Default 5 s.
    pub connect_timeout: Duration,
    /// Longest wait for a reply, in addition to the wait of a claim; default 5 s.
    pub response_timeout: Duration,
    /// Replaces Redis's own clock, for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Consumers without pending entries that were idle for longer are removed; default 1 h.
    pub consumer_idle: Duration,
}

impl RedisOptions {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ca_pem: None,
            client: None,
            connect_timeout: TIMEOUT,
            response_timeout: TIMEOUT,
            clock: None,
            consumer_idle: CONSUMER_IDLE,
        }
    }
}

/// A client's certificate, as PEM. Must not be logged.
#[derive(Clone)]
pub struct ClientIdentity {
    /// With the authorities between it and the one that the server trusts.
    pub chain_pem: Vec<u8>,
    pub key_pem: Vec<u8>,
}

/// Invalid options. Never shows user or password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the URL of the key-value store: {reason}; expected `redis://[user][:password@]host[:port][/db]` or {SENTINEL_URL_FORM}"
    )]
    Url { reason: String },
    #[error(
        "the certificates for TLS: {reason}; expected PEM files of authorities, of a client's certificate and of its key"
    )]
    Certificates { reason: String },
}
