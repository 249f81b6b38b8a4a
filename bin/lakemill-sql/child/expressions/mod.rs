//! Checks and evaluates the expressions of mappings on this process's DuckDB.
//!
//! Must not: be used outside a child, where texts and rows could crash the process; services use
//! [`lakemill::sql::sandbox::SandboxExpressions`].
//!
//! Path of an expression: [`parse`] (text to tree) → [`lakemill::sql::allow`] (nodes, functions, columns) → [`check`]
//! (types) → [`lakemill::sql::query`] (one query for all) → [`evaluate`] (on batches that [`scan`] serves).

mod check;
mod duck;
mod engine;
mod evaluate;
mod parse;
mod scan;
mod server;

pub use duck::DuckExpressions;
pub(super) use server::ExpressionServer;
