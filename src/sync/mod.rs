//! Synchronisation of threads: values to wait for, permits, shared calls, backoff, parallel maps.
//!
//! - [`Monitor`]: a value that threads wait on.
//! - [`Semaphore`]: bounds concurrent use of something: calls, bytes.
//! - [`SingleFlight`]: concurrent callers with one key share a call.
//! - [`Backoff`]: the pauses between attempts.
//! - [`parallel_map`]: maps a slice on several threads.
//!
//! Locks are `parking_lot`'s, which a panic doesn't poison: drop guards restore state that a panic could leave half
//! changed.

mod backoff;
mod monitor;
mod parallel_map;
mod semaphore;
mod single_flight;

pub use backoff::Backoff;
pub use monitor::Monitor;
pub use parallel_map::parallel_map;
pub use semaphore::{Permit, Semaphore};
pub use single_flight::SingleFlight;
