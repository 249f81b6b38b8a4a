//! User-supplied SQL in child processes: results, confinement, and termination.

mod answers;
mod bombs;
mod confinement;
pub mod setup;
