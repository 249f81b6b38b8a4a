//! The one binary of integration tests.

mod model;
mod run_model;
mod run_rules;
//! The one integration-test binary: a file per topic.

mod store_contract;
mod support;
