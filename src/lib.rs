//! Lakemill turns raw CSV files in an object store into typed, partitioned Parquet tables.
//!
//! The folders are layers, and imports go one way; `tests/it/tidy.rs` has their ranks. `ARCHITECTURE.md` is the map.
#![forbid(unsafe_op_in_unsafe_fn)]

pub mod adapters;
pub mod cli;
pub mod config;
pub mod domain;
pub mod engine;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod observability;
pub mod pipelines;
pub mod ports;
pub mod runtime;
pub mod sql;
pub mod sync;
pub mod system;
pub mod web;
pub mod worker;
