//! All integration tests, in one binary.

mod peers;
mod sql_escapes;
mod sql_support;
mod sql_types;
mod tidy;
//! The one integration-test binary: a file per topic.

mod store_contract;
mod support;
//! The one binary of integration tests.

mod model;
mod run_model;
mod run_rules;
