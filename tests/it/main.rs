//! The tests that look at the library and the program from outside, in one binary: a file a topic.
#![expect(clippy::unwrap_used, reason = "a test that can't go on panics, in its helpers too")]

mod bad_inputs;
mod changing_sources;
mod cli_run;
mod config_cli;
mod config_document;
mod config_environment;
mod config_validation;
mod determinism;
mod full_disk;
mod http_routes;
mod http_support;
mod incremental;
mod job_history;
mod kill;
mod lake_compare;
mod lake_watch;
mod kv_contract;
mod memory;
mod model;
mod peers;
mod run_model;
mod run_rules;
mod settled_sources;
mod sql_escapes;
mod sql_evaluate;
mod sql_support;
mod sql_types;
mod store_contract;
mod support;
mod tidy;
