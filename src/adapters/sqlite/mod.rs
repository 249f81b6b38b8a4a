//! The key-value store in one SQLite file, for the processes of one machine.
//!
//! Each step of a port is one `BEGIN IMMEDIATE` transaction in WAL mode with `synchronous=FULL`: a result that a call
//! returned is on disk. Any number of processes may use the file at once. Network file systems are rejected, since their
//! locks and shared memory are unreliable.
//!
//! A handle has one connection behind a mutex. SQLite admits one writer at a time anyway, and threads that wait on a mutex
//! wake at once, while threads that wait for the file's lock poll. A claim doesn't hold the mutex while it waits, so
//! heartbeats continue.
//!
//! Must not: do anything but SQL inside a transaction; open the file other than through SQLite, because closing it would
//! release the process's locks on it.

mod adopt;
mod changes;
mod claim;
mod clock;
mod db;
mod entries;
mod error;
mod file;
mod job_index;
mod jobs;
mod kv;
mod locks;
mod notifications;
mod pauses;
mod queries;
mod queue;
mod rechecks;
mod registry;
mod report;
mod run_requests;
mod schedule;
mod schema;
mod sessions;
mod start;
mod units;

pub use db::SqliteOptions;
pub use kv::SqliteKv;
