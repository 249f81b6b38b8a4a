//! What the world does to a fleet: faults at every moment, and a checker over all that happened.

mod checker;
mod fleet;
pub mod sim;
