//! The process's clock, threads and watchdog, and the failpoints of tests.
//!
//! Must not: know what the threads do.

pub mod clock;
pub mod failpoint;
#[cfg(feature = "failpoints")]
pub mod simulation;
pub mod threads;
pub mod watchdog;

pub use clock::{Clock, SystemClock, rfc3339};
pub use watchdog::{Watchdog, WatchedThread};
