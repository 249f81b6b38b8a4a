//! SQL through DuckDB: expressions of a mapping and whole statements, each checked against an allow-list and run in child
//! processes ([`sandbox`]).
//!
//! Invariant: only the program `lakemill-sql` (`bin/lakemill-sql`) is linked to DuckDB, and this library isn't. A user's
//! text is prepared only after [`allow`] or [`statement`] passed it. A set without expressions doesn't start a process.

pub mod allow;
pub mod bounds;
pub mod errors;
pub mod names;
pub mod query;
pub mod sandbox;
pub mod statement;
pub mod tree;
pub mod types;

pub use names::{functions, nearest};
pub use query::identifier;
pub use types::sql_type;

pub use errors::EngineFailure;

/// Stack of the threads that parse and bind, in bytes: DuckDB recurses over the tree.
const STACK_BYTES: usize = 64 << 20;

/// A thread whose stack holds the deepest expression and statement that the allow-lists pass.
pub fn deep_stack() -> std::thread::Builder {
    std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK_BYTES)
}

/// Runs `work` on a thread with a deep stack.
///
/// # Errors
/// Errors of `work`; the thread can't be started; `work` panicked.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, EngineFailure> + Send) -> Result<T, EngineFailure> {
    std::thread::scope(|scope| {
        let thread = deep_stack()
            .spawn_scoped(scope, work)
            .map_err(|error| EngineFailure::Other(format!("starting a thread: {error}")))?;
        thread.join().unwrap_or_else(|_| Err(EngineFailure::Other("checking the SQL panicked".to_owned())))
    })
}
