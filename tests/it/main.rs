//! The one integration-test binary: a file per topic.

mod store_contract;
mod support;
