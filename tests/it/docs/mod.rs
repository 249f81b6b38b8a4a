//! Checks the docs against the program: commands run (or the package's check runs them), configs are valid, links have
//! targets, generated references are current, and the tests that the security page names exist.

mod changelog;
mod claims;
mod command_coverage;
mod commands;
mod configs;
mod links;
mod markdown;
mod reference;
mod ui_rules;
