//! The tests that look at the library from outside, in one binary.

mod config_cli;
mod config_document;
mod config_environment;
mod config_validation;
