//! The one integration-test binary: a file per topic.
#![expect(clippy::unwrap_used, reason = "a test that can't go on panics, in its helpers too")]

mod model;
mod run_model;
mod run_rules;
mod store_contract;
mod support;
