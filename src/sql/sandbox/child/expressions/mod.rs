//! Checks and evaluates the expressions of mappings on this process's DuckDB.
//!
//! Must not: be used outside a child, where texts and rows could crash the process; services use
//! [`crate::sql::sandbox::SandboxExpressions`].
//!
//! Path of an expression: [`parse`] (text to tree) → [`crate::sql::allow`] (nodes, functions, columns) → [`check`]
//! (types) → [`crate::sql::query`] (one query for all) → [`evaluate`] (on batches that [`scan`] serves).

mod check;
mod duck;
mod engine;
mod evaluate;
mod parse;
mod scan;
mod server;

pub use duck::DuckExpressions;
pub(super) use server::ExpressionServer;
