//! Fault injection: faults at every step of a fleet of workers, and a checker of the history.

mod checker;
mod fleet;
pub mod sim;
