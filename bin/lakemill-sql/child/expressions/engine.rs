//! An in-memory DuckDB that can only compute: no files, no extensions, locked settings.
//!
//! Invariant: callers of [`Engine::prepare`] pass only generated or allowed text, since preparing `a; b` runs `a`.

use duckdb::{CachedStatement, Config, Connection};
use lakemill::sql::bounds::PARSER_DEPTH_MAX;
use lakemill::sql::errors::EngineFailure;
use lakemill::sql::query::BATCH_FUNCTION;

use super::scan::BatchScan;
use crate::child::errors::failure;

/// Statements that an engine keeps prepared.
const STATEMENTS_MAX: usize = 64;

/// One DuckDB instance with one connection.
pub struct Engine {
    connection: Connection,
}

impl Engine {
    /// Opens a separate instance.
    ///
    /// # Errors
    /// DuckDB can't start.
    pub fn open(memory_bytes: u64) -> Result<Self, EngineFailure> {
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
        connection.register_table_function::<BatchScan>(BATCH_FUNCTION)?;
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
    /// Errors of DuckDB.
    pub fn prepare(&self, sql: &str) -> duckdb::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// The first column of the first row, as text.
    ///
    /// # Errors
    /// Errors of DuckDB; also for a null.
    pub fn text(&self, sql: &str, parameters: &[&str]) -> duckdb::Result<String> {
        self.connection.query_row(sql, duckdb::params_from_iter(parameters), |row| row.get(0))
    }

    /// Drops the prepared statements.
    pub fn clear(&self) {
        self.connection.flush_prepared_statement_cache();
    }
}
