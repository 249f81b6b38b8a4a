//! Connections, and the way of a request over one.
//!
//! Invariant: a reply is matched to its own request. A connection on which anything but a whole reply came back (a
//! timeout, an end, bytes that are no reply) is dropped and never used again.
//!
//! A request is sent a second time, on a new connection, only if it can't have taken place: when writing it failed, or
//! when it says of itself that repeating it changes nothing.

use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ::redis::{Cmd, Connection, RedisError, Value};

use super::error::{is_part_of_the_protocol, kv_error};
use super::options::{OpenError, RedisOptions};
use super::tls;
use crate::ports::kv::{KvError, KvResult};

/// Idle connections that are kept.
const IDLE_MAX: usize = 16;
/// A connection that lay idle for this long is asked for a sign of life first.
const FRESH: Duration = Duration::from_secs(1);

/// Whether a request may be sent again without knowing if the first one took place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    Harmless,
    Never,
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// Where a request failed.
enum Failure {
    /// It didn't reach the server whole.
    Sending(RedisError),
    /// It may have taken place.
    Receiving(RedisError),
    /// The server answered with an error; the connection is in step.
    Answered(RedisError),
}

/// The connections to one server.
pub(super) struct Pool {
    client: ::redis::Client,
    connect_timeout: Duration,
    response_timeout: Duration,
    idle: Mutex<Vec<Idle>>,
    failures: AtomicU64,
}

impl Pool {
    /// Connects to nothing yet.
    pub(super) fn new(options: &RedisOptions) -> Result<Self, OpenError> {
        Ok(Self {
            client: tls::client(&options.url, options.ca_pem.as_deref())?,
            connect_timeout: options.connect_timeout,
            response_timeout: options.response_timeout,
            idle: Mutex::default(),
            failures: AtomicU64::new(0),
        })
    }

    /// Sends a command and gives its reply, which is no error.
    pub(super) fn request(&self, operation: &'static str, repeat: Repeat, command: &Cmd) -> KvResult<Value> {
        self.try_request(repeat, command, Duration::ZERO).map_err(|error| self.told(operation, &error))
    }

    /// As [`Pool::request`], with the error as it came. `wait` is how long the server may hold the reply back.
    pub(super) fn try_request(&self, repeat: Repeat, command: &Cmd, wait: Duration) -> Result<Value, RedisError> {
        self.send(repeat, command, wait).inspect_err(|error| {
            if !is_part_of_the_protocol(error) {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// An error of this server in the port's words, with where the server is if it can't be reached.
    pub(super) fn told(&self, operation: &'static str, error: &RedisError) -> KvError {
        match kv_error(operation, error) {
            KvError::Unavailable { operation, source } => {
                let text = format!("Redis at {}: {source}", self.client.get_connection_info().addr());
                KvError::Unavailable { operation, source: io::Error::new(source.kind(), text) }
            }
            error @ (KvError::Refused { .. } | KvError::Malformed { .. }) => error,
        }
    }

    /// Requests that failed: no answer, or a refusal.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn send(&self, repeat: Repeat, command: &Cmd, wait: Duration) -> Result<Value, RedisError> {
        let packed = command.get_packed_command();
        if let Some(idle) = self.take() {
            match self.exchange(idle, &packed, wait) {
                Ok(value) => return Ok(value),
                Err(Failure::Answered(error)) => return Err(error),
                Err(Failure::Sending(error)) if error.is_timeout() => return Err(error),
                Err(Failure::Receiving(error)) if repeat == Repeat::Never || error.is_timeout() => return Err(error),
                // The others lay beside it and are no better.
                Err(Failure::Sending(_) | Failure::Receiving(_)) => self.idle().clear(),
            }
        }
        let fresh = self.connect()?;
        self.exchange(fresh, &packed, wait).map_err(|failure| match failure {
            Failure::Sending(error) | Failure::Receiving(error) | Failure::Answered(error) => error,
        })
    }

    /// Gives the connection back only if it is in step.
    fn exchange(&self, mut connection: Connection, packed: &[u8], wait: Duration) -> Result<Value, Failure> {
        connection.set_read_timeout(Some(self.response_timeout + wait)).map_err(Failure::Sending)?;
        connection.send_packed_command(packed).map_err(Failure::Sending)?;
        let value = connection.recv_response().map_err(Failure::Receiving)?;
        self.give_back(connection);
        value.extract_error().map_err(Failure::Answered)
    }

    fn connect(&self) -> Result<Connection, RedisError> {
        let connection = self.client.get_connection_with_timeout(self.connect_timeout)?;
        connection.set_write_timeout(Some(self.response_timeout))?;
        Ok(connection)
    }

    /// An idle connection that is alive as far as can be known.
    fn take(&self) -> Option<Connection> {
        loop {
            let Idle { mut connection, since } = self.idle().pop()?;
            if since.elapsed() < FRESH || self.answers(&mut connection) {
                return Some(connection);
            }
        }
    }

    fn answers(&self, connection: &mut Connection) -> bool {
        let asked = connection.set_read_timeout(Some(self.response_timeout)).is_ok()
            && connection.send_packed_command(&::redis::cmd("PING").get_packed_command()).is_ok();
        asked && matches!(connection.recv_response(), Ok(Value::SimpleString(text)) if text == "PONG")
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(Idle { connection, since: Instant::now() });
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock()
    }
}
