//! People's SQL in children: what they answer, what they are kept from, how they end.

mod answers;
mod bombs;
mod confinement;
pub mod setup;
