//! The subcommands: wiring only.
