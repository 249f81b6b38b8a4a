//! Lakemill turns raw CSV files in an object store into typed, partitioned Parquet tables.
//!
//! The folders are layers and imports go one way: `domain` ← `config`, `ports`, `system` ← `adapters`, `engine`, `sql`, `http` ←
//! `worker` ← `cli`. `ARCHITECTURE.md` is the map.
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
pub mod ports;
pub mod sql;
pub mod system;
pub mod web;
pub mod worker;
