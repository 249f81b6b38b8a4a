//! The one binary of integration tests.

mod model;
mod run_model;
mod run_rules;
