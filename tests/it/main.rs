//! The tests that look at the library from outside, in one binary.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod config_cli;
mod config_document;
mod config_environment;
mod config_validation;
