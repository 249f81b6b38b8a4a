//! Limits on clients.
//!
//! Invariant: every buffer, wait and queue between a client and a handler has one of these limits.

use std::time::Duration;

/// Maximum number of connections that have sent at least one byte; further ones are answered with 503 and closed.
pub const CONNECTIONS_MAX: usize = 256;
/// Maximum number of connections of one address (IPv6: one /64), except of trusted proxies; and of requests forwarded
/// by a trusted proxy, by the client it names. Three quarters: enough for a single client, and a greedy one leaves a
/// quarter to others.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 192;
/// Connections beyond [`CONNECTIONS_MAX`] for health and readiness, if no other one can be evicted.
pub const PROBE_CONNECTIONS_MAX: usize = 16;
/// Maximum number of accepted connections that have sent nothing yet; they don't count as [`CONNECTIONS_MAX`]. Above it
/// the oldest is closed; if one address has three quarters of them, its oldest. So a client that is slow to send isn't
/// closed because others connect and send nothing.
pub const SILENT_CONNECTIONS_MAX: usize = 512;
/// Time from the first byte of a connection for probes to the end of its head.
pub const PROBE_HEAD_TIME_MAX: Duration = Duration::from_secs(2);
/// Longest request head (request line, fields and the empty line), in bytes.
pub const HEAD_BYTES_MAX: usize = 32 << 10;
/// Fields of a request head.
pub const HEAD_FIELDS_MAX: usize = 64;
/// Time from the first byte of a head to its last.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Time without a byte of a next request after which a connection is closed.
pub const IDLE_TIME_MAX: Duration = Duration::from_secs(30);
/// Time between two bytes of a request's body.
pub const BODY_STALL_MAX: Duration = Duration::from_secs(30);
/// Time for a request's body, in addition to its size divided by [`BODY_RATE_MIN`].
pub const BODY_TIME_BASE: Duration = Duration::from_secs(30);
/// Longest time for the body of a request without credentials, regardless of its size: a password fits in a packet.
pub const ANONYMOUS_BODY_TIME_MAX: Duration = Duration::from_secs(5);
/// An anonymous client that has blocked its handler for this long, by not reading the response, is evicted if another
/// request waits for a handler.
pub const ANONYMOUS_STALL_MAX: Duration = Duration::from_secs(1);
/// Slowest rate of a request's body, in bytes per second.
pub const BODY_RATE_MIN: u64 = 64 << 10;
/// How long a client may pause reading its response.
pub const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// Slowest rate at which a client may read its response, in bytes per second, after [`WRITE_STALL_MAX`].
pub const WRITE_RATE_MIN: u64 = 1 << 10;
/// Memory for request bodies in total, in bytes; a request that needs more is answered 503.
pub const BUFFERED_BYTES_MAX: u64 = 64 << 20;
/// Requests per connection; the last is answered with `Connection: close`.
pub const REQUESTS_PER_CONNECTION_MAX: u32 = 10_000;
/// How long input is discarded after the last response, so that a reset doesn't destroy it.
pub const LINGER_TIME_MAX: Duration = Duration::from_secs(2);
/// Input discarded after the last response, in bytes.
pub const LINGER_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of connections whose input is discarded; with more, the oldest is closed.
pub const LINGERING_MAX: usize = 64;
/// Pause after an `accept` that failed, for example for lack of descriptors.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a request waits for a free handler before it is answered 503.
pub const HANDLER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Maximum number of requests that wait for a free handler; further ones are answered with 503 immediately.
pub const HANDLER_QUEUE_MAX: usize = 64;
/// How long a handler may make no progress: before its response, and between two of its pieces. Longer than the longest
/// upload.
pub const HANDLER_SILENCE_MAX: Duration = Duration::from_secs(3_600);

/// The limits of a server; [`Default`] gives the constants of this file. Tests shorten them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardLimits {
    /// [`CONNECTIONS_MAX`]
    pub connections_max: usize,
    /// [`CONNECTIONS_PER_ADDRESS_MAX`]
    pub connections_per_address_max: usize,
    /// [`PROBE_CONNECTIONS_MAX`]
    pub probe_connections_max: usize,
    /// [`SILENT_CONNECTIONS_MAX`]
    pub silent_connections_max: usize,
    /// [`PROBE_HEAD_TIME_MAX`]
    pub probe_head_time_max: Duration,
    /// [`HEAD_BYTES_MAX`]
    pub head_bytes_max: usize,
    /// [`HEAD_FIELDS_MAX`]
    pub head_fields_max: usize,
    /// [`HEAD_TIME_MAX`]
    pub head_time_max: Duration,
    /// [`IDLE_TIME_MAX`]
    pub idle_time_max: Duration,
    /// [`BODY_STALL_MAX`]
    pub body_stall_max: Duration,
    /// [`BODY_TIME_BASE`]
    pub body_time_base: Duration,
    /// [`ANONYMOUS_BODY_TIME_MAX`]
    pub anonymous_body_time_max: Duration,
    /// [`ANONYMOUS_STALL_MAX`]
    pub anonymous_stall_max: Duration,
    /// [`BODY_RATE_MIN`], at least 1
    pub body_rate_min: u64,
    /// [`WRITE_STALL_MAX`]
    pub write_stall_max: Duration,
    /// [`WRITE_RATE_MIN`], at least 1
    pub write_rate_min: u64,
    /// [`BUFFERED_BYTES_MAX`]
    pub buffered_bytes_max: u64,
    /// [`REQUESTS_PER_CONNECTION_MAX`]
    pub requests_per_connection_max: u32,
    /// [`LINGER_TIME_MAX`]
    pub linger_time_max: Duration,
    /// [`LINGER_BYTES_MAX`]
    pub linger_bytes_max: u64,
    /// [`LINGERING_MAX`]
    pub lingering_max: usize,
    /// [`ACCEPT_PAUSE`]
    pub accept_pause: Duration,
    /// [`HANDLER_WAIT_MAX`]
    pub handler_wait_max: Duration,
    /// [`HANDLER_QUEUE_MAX`]
    pub handler_queue_max: usize,
    /// [`HANDLER_SILENCE_MAX`]
    pub handler_silence_max: Duration,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            connections_per_address_max: CONNECTIONS_PER_ADDRESS_MAX,
            probe_connections_max: PROBE_CONNECTIONS_MAX,
            silent_connections_max: SILENT_CONNECTIONS_MAX,
            probe_head_time_max: PROBE_HEAD_TIME_MAX,
            head_bytes_max: HEAD_BYTES_MAX,
            head_fields_max: HEAD_FIELDS_MAX,
            head_time_max: HEAD_TIME_MAX,
            idle_time_max: IDLE_TIME_MAX,
            body_stall_max: BODY_STALL_MAX,
            body_time_base: BODY_TIME_BASE,
            anonymous_body_time_max: ANONYMOUS_BODY_TIME_MAX,
            anonymous_stall_max: ANONYMOUS_STALL_MAX,
            body_rate_min: BODY_RATE_MIN,
            write_stall_max: WRITE_STALL_MAX,
            write_rate_min: WRITE_RATE_MIN,
            buffered_bytes_max: BUFFERED_BYTES_MAX,
            requests_per_connection_max: REQUESTS_PER_CONNECTION_MAX,
            linger_time_max: LINGER_TIME_MAX,
            linger_bytes_max: LINGER_BYTES_MAX,
            lingering_max: LINGERING_MAX,
            accept_pause: ACCEPT_PAUSE,
            handler_wait_max: HANDLER_WAIT_MAX,
            handler_queue_max: HANDLER_QUEUE_MAX,
            handler_silence_max: HANDLER_SILENCE_MAX,
        }
    }
}
