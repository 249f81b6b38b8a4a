//! An in-memory DuckDB that can only compute: no files, no extensions, no settings to change.
//!
//! Invariant: [`Engine::prepare`]'s callers give it text made here or passed by the allow-list, since preparing
//! `a; b` runs `a`.

use std::sync::{Arc, Mutex, PoisonError};

use duckdb::{CachedStatement, Config, Connection};

use super::scan::{BatchScan, FUNCTION};
use crate::ports::expressions::ExpressionFailure;
use crate::sql::errors::plain;

/// Deepest nesting that DuckDB parses outside `json_serialize_sql`; above what the allow-list lets through.
const PARSER_DEPTH_MAX: usize = 1_000;
/// Statements that an engine keeps prepared.
const STATEMENTS_MAX: usize = 64;

/// Kinds of error that say nothing of the values at hand.
const OWN_FAULTS: &[&str] = &["Out of Memory", "INTERNAL", "FATAL", "IO", "Interrupt", "INTERRUPT", "Permission"];

/// One DuckDB instance with one connection.
pub struct Engine {
    connection: Connection,
}

impl Engine {
    /// Opens an instance of its own.
    ///
    /// # Errors
    /// DuckDB can't start.
    pub fn open(memory_bytes: u64) -> Result<Self, ExpressionFailure> {
        let connection = Self::connect(memory_bytes).map_err(|error| failure("opening DuckDB", &error))?;
        Ok(Self { connection })
    }

    fn connect(memory_bytes: u64) -> duckdb::Result<Connection> {
        let config = Config::default()
            .threads(1)?
            .max_memory(&format!("{memory_bytes}B"))?
            .enable_autoload_extension(false)?
            .with("allow_community_extensions", "false")?;
        let connection = Connection::open_in_memory_with_flags(config)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        connection.register_table_function::<BatchScan>(FUNCTION)?;
        // Common subexpressions are computed outside the `TRY` that should catch their errors.
        connection.execute_batch(&format!(
            "SET temp_directory = '';
             SET TimeZone = 'UTC';
             SET Calendar = 'gregorian';
             SET max_expression_depth = {PARSER_DEPTH_MAX};
             SET disabled_optimizers = 'common_subexpressions';
             SET enable_external_access = false;
             SET lock_configuration = true;"
        ))?;
        Ok(connection)
    }

    /// Prepares `sql`, or takes it from the cache.
    ///
    /// # Errors
    /// As DuckDB has them.
    pub fn prepare(&self, sql: &str) -> duckdb::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// The first column of the first row, as text.
    ///
    /// # Errors
    /// As DuckDB has them; a null is an error too.
    pub fn text(&self, sql: &str, parameters: &[&str]) -> duckdb::Result<String> {
        self.connection.query_row(sql, duckdb::params_from_iter(parameters), |row| row.get(0))
    }
}

/// Words a failure of DuckDB itself. The kind stays: callers know a lack of memory by it.
pub fn failure(what: &str, error: &duckdb::Error) -> ExpressionFailure {
    let text = error.to_string();
    let kind = text.split_once(" Error: ").map_or("", |(kind, _)| kind);
    let kind = if kind.is_empty() { String::new() } else { format!("{kind} Error: ") };
    ExpressionFailure(format!("{what}: {kind}{}", plain(&text)))
}

/// Whether `error` is a failure of the engine, not of a value.
pub fn is_own_fault(error: &duckdb::Error) -> bool {
    let duckdb::Error::DuckDBFailure(_, Some(message)) = error else { return true };
    let kind = message.split(" Error: ").next().unwrap_or_default();
    !message.contains(" Error: ") || OWN_FAULTS.contains(&kind)
}

/// Engines that wait for their next use.
pub struct Pool {
    memory_bytes: u64,
    idle: Mutex<Vec<Engine>>,
}

/// An engine on loan; it goes back to its pool when dropped, unless it is [`Lent::spoilt`].
pub struct Lent {
    engine: Option<Engine>,
    pool: Arc<Pool>,
}

impl Pool {
    /// A pool of engines that may use `memory_bytes` each. Opens none.
    pub fn new(memory_bytes: u64) -> Arc<Self> {
        Arc::new(Self { memory_bytes, idle: Mutex::default() })
    }

    /// Lends an idle engine, or a new one.
    ///
    /// # Errors
    /// DuckDB can't start.
    pub fn lend(self: &Arc<Self>) -> Result<Lent, ExpressionFailure> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let engine = idle.map_or_else(|| Engine::open(self.memory_bytes), Ok)?;
        Ok(Lent { engine: Some(engine), pool: Arc::clone(self) })
    }
}

impl Lent {
    /// The engine.
    ///
    /// # Errors
    /// It failed before, and is gone.
    pub fn get(&self) -> Result<&Engine, ExpressionFailure> {
        self.engine.as_ref().ok_or_else(|| ExpressionFailure("DuckDB failed before".to_owned()))
    }

    /// Keeps a failed engine from being used again.
    pub fn spoilt(&mut self) {
        self.engine = None;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.connection.flush_prepared_statement_cache();
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(engine);
        }
    }
}
