//! The subcommands: wiring only.

pub mod validate;
