//! SQL through DuckDB: the expressions of a mapping, checked against an allow-list; and whole statements, checked against
//! another. Both run in child processes ([`sandbox`]).
//!
//! Invariant: DuckDB is opened below [`sandbox::child`] alone. No text of a person is prepared before [`allow`] or
//! [`statement`] passed it. No process is started for a set without expressions.

mod allow;
mod bounds;
mod errors;
mod names;
mod query;
pub mod sandbox;
pub mod statement;
mod tree;
mod types;

pub use names::{functions, nearest};
pub use query::identifier;
pub use types::sql_type;

pub use errors::EngineFailure;

/// Stack of the thread that parses and binds, in bytes: DuckDB recurses over the tree.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` on a thread whose stack holds the deepest expression and statement that are let through.
///
/// # Errors
/// Those of `work`; the thread can't be started; `work` panicked.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, EngineFailure> + Send) -> Result<T, EngineFailure> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK_BYTES);
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|error| EngineFailure::Other(format!("starting a thread: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(EngineFailure::Other("checking the SQL panicked".to_owned())))
    })
}
