//! A pool of connections, and requests over them.
//!
//! Invariant: a reply is matched to its own request. A connection without a complete reply (a timeout, a disconnect,
//! invalid bytes) is dropped and never reused.
//!
//! A request is retried, on a new connection, only if it can't have taken effect, because sending failed, or if it is
//! idempotent.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::redis::{Cmd, Connection, RedisError, Value};
use parking_lot::Mutex;

use super::error::{is_expected, is_read_only, kv_error};
use super::options::{OpenError, RedisOptions};
use super::server::RedisServer;
use super::tls::Trust;
use crate::ports::kv::{KvError, KvResult};

/// Idle connections in the pool.
const IDLE_MAX: usize = 16;
/// A connection that was idle for longer is pinged before use.
const PING_AFTER: Duration = Duration::from_secs(1);

/// Whether a request may be retried although it may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    Idempotent,
    Never,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// Where a request failed.
enum Failure {
    /// The request was not sent completely.
    Sending(RedisError),
    /// The request may have taken effect.
    Receiving(RedisError),
    /// The server replied with an error; the connection is usable.
    Replied(RedisError),
}

/// The connections to one server.
pub(super) struct Pool {
    server: RedisServer,
    connect_timeout: Duration,
    response_timeout: Duration,
    idle: Mutex<Vec<Idle>>,
    failures: AtomicU64,
}

impl Pool {
    /// Doesn't connect yet.
    pub(super) fn new(options: &RedisOptions) -> Result<Self, OpenError> {
        Ok(Self {
            server: RedisServer::open(&options.url, Trust::of(options))?,
            connect_timeout: options.connect_timeout,
            response_timeout: options.response_timeout,
            idle: Mutex::default(),
            failures: AtomicU64::new(0),
        })
    }

    /// Sends a command and returns its reply.
    pub(super) fn request(&self, operation: &'static str, repeat: Repeat, command: &Cmd) -> KvResult<Value> {
        self.try_request(repeat, command, Duration::ZERO).map_err(|error| self.kv_error(operation, &error))
    }

    /// Like [`Pool::request`], with the original error. `wait`: how long the server may block.
    pub(super) fn try_request(&self, repeat: Repeat, command: &Cmd, wait: Duration) -> Result<Value, RedisError> {
        self.send(repeat, command, wait).inspect_err(|error| {
            if !is_expected(error) {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Maps an error to the port's; with the server's address if it can't be reached.
    pub(super) fn kv_error(&self, operation: &'static str, error: &RedisError) -> KvError {
        match kv_error(operation, error) {
            KvError::Unavailable { operation, source } => {
                let text = format!("Redis at {}: {source}", self.server.address());
                KvError::Unavailable { operation, source: io::Error::new(source.kind(), text) }
            }
            error @ (KvError::Refused { .. } | KvError::Malformed { .. }) => error,
        }
    }

    /// Failed requests: no reply, or an error.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn send(&self, repeat: Repeat, command: &Cmd, wait: Duration) -> Result<Value, RedisError> {
        let packed = command.get_packed_command();
        if let Some(idle) = self.take() {
            match self.exchange(idle, &packed, wait) {
                Ok(value) => return Ok(value),
                // The server became a replica: another one is the primary now. A refused write had no effect.
                Err(Failure::Replied(error)) if self.server.may_move() && is_read_only(&error) => {
                    self.idle.lock().clear()
                }
                Err(Failure::Replied(error)) => return Err(error),
                Err(Failure::Sending(error)) if error.is_timeout() => return Err(error),
                Err(Failure::Receiving(error)) if repeat == Repeat::Never || error.is_timeout() => return Err(error),
                // The other idle connections are likely broken too.
                Err(Failure::Sending(_) | Failure::Receiving(_)) => self.idle.lock().clear(),
            }
        }
        let fresh = self.connect()?;
        self.exchange(fresh, &packed, wait).map_err(|failure| match failure {
            Failure::Sending(error) | Failure::Receiving(error) | Failure::Replied(error) => error,
        })
    }

    /// Returns the connection to the pool after a complete reply.
    fn exchange(&self, mut connection: Connection, packed: &[u8], wait: Duration) -> Result<Value, Failure> {
        connection.set_read_timeout(Some(self.response_timeout + wait)).map_err(Failure::Sending)?;
        connection.send_packed_command(packed).map_err(Failure::Sending)?;
        let value = connection.recv_response().map_err(Failure::Receiving)?;
        self.release(connection);
        value.extract_error().map_err(Failure::Replied)
    }

    fn connect(&self) -> Result<Connection, RedisError> {
        let connection = self.server.connect(self.connect_timeout, self.response_timeout)?;
        connection.set_write_timeout(Some(self.response_timeout))?;
        Ok(connection)
    }

    /// An idle connection that is presumably alive.
    fn take(&self) -> Option<Connection> {
        loop {
            let Idle { mut connection, since } = self.idle.lock().pop()?;
            if since.elapsed() < PING_AFTER || self.ping(&mut connection) {
                return Some(connection);
            }
        }
    }

    fn ping(&self, connection: &mut Connection) -> bool {
        let sent = connection.set_read_timeout(Some(self.response_timeout)).is_ok()
            && connection.send_packed_command(&::redis::cmd("PING").get_packed_command()).is_ok();
        sent && matches!(connection.recv_response(), Ok(Value::SimpleString(text)) if text == "PONG")
    }

    fn release(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(Idle { connection, since: Instant::now() });
        }
    }
}
