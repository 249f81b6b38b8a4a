//! The key-value ports on Redis 6.2 or newer (or what speaks as it does), without Cluster.
//!
//! Invariant: every step of a port is one script or one command, so it takes place as a whole or not at all, and Redis's
//! own time counts. A script looks first and writes then; what a dying client leaves behind is what a script left.
//!
//! Must not: match a reply to another request ([`connection`]), spell a key outside of [`keys`], trim the stream.

mod adopt;
mod board;
mod connection;
mod error;
pub mod keys;
mod locks;
mod queries;
mod queue;
mod rechecks;
mod record;
mod reply;
mod report;
mod schedule;
mod scripts;
mod sessions;
mod stream;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use crate::runtime::Clock;

use connection::Pool;

/// Longest wait for a connection, and for an answer on it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A consumer with nothing pending that asked for nothing for this long is of a dead process.
const CONSUMER_IDLE: Duration = Duration::from_secs(3_600);

/// How a server is reached. Must not be shown: the URL holds a password.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://[user][:password@]host[:port][/db]`, or `rediss://…` for TLS.
    pub url: String,
    /// Certificates (PEM) of authorities that count besides the public ones.
    pub ca_pem: Option<Vec<u8>>,
    /// Longest wait for a connection; 5 s.
    pub connect_timeout: Duration,
    /// Longest wait for an answer, besides what a claim itself waits; 5 s.
    pub response_timeout: Duration,
    /// Stands in for Redis's own time, for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// Consumers that asked for nothing for this long are forgotten, if nothing is pending for them; an hour.
    pub consumer_idle: Duration,
}

impl RedisOptions {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ca_pem: None,
            connect_timeout: TIMEOUT,
            response_timeout: TIMEOUT,
            clock: None,
            consumer_idle: CONSUMER_IDLE,
        }
    }
}

/// Options that can't be used. Says nothing of user and password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("the URL of the key-value store: {reason}; expected `redis://[user][:password@]host[:port][/db]`")]
    Url { reason: String },
    #[error("the certificates of the extra authorities: {reason}")]
    Certificates { reason: String },
}

/// The key-value ports on one Redis. Cheap to share; any number of processes may use the same server.
pub struct RedisKv {
    pool: Pool,
    clock: Option<Arc<dyn Clock>>,
    consumer_idle: Duration,
}

impl RedisKv {
    /// Connects to nothing yet: [`crate::ports::kv::Diagnose::ping`] tells whether the server is there.
    ///
    /// # Errors
    /// [`OpenError`] if URL or certificates can't be read.
    pub fn open(options: &RedisOptions) -> Result<Self, OpenError> {
        Ok(Self { pool: Pool::new(options)?, clock: options.clock.clone(), consumer_idle: options.consumer_idle })
    }

    /// The time that scripts take, in ms; 0 is Redis's own.
    fn now(&self) -> i64 {
        self.clock.as_ref().map_or(0, |clock| clock.now().timestamp_millis())
    }
}
