//! The key-value ports on Redis 6.2 or newer, or a compatible server, without Cluster.
//!
//! Invariant: every step of a port is one script or one command, so it is atomic, and uses Redis's own clock. A script
//! checks first and writes then, so that no failure leaves it half done.
//!
//! Must not: match a reply to another request ([`connection`]), spell a key outside of [`keys`], trim the stream.

mod adopt;
mod connection;
mod error;
mod job_index;
pub mod keys;
mod kv;
mod locks;
mod notifications;
mod options;
mod pauses;
mod queries;
mod queue;
mod rechecks;
mod record;
mod registry;
mod reply;
mod report;
mod run_requests;
mod schedule;
mod scripts;
mod server;
mod sessions;
mod stream;
mod tls;

pub use kv::RedisKv;
pub use options::{ClientIdentity, OpenError, RedisOptions};
