//! The statements of one child, on one connection.
//!
//! Invariant: [`allowed::check`] passes a text before DuckDB prepares it.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use duckdb::Connection;
use lakemill::sql::query::enclosed;
use lakemill::sql::sandbox::error::{SqlError, SqlErrorKind};
use lakemill::sql::sandbox::task::{Analysis, ExportFormat, ParameterizedStatement, Relation, ResultColumn, RowLimits};
use lakemill::sql::sandbox::zones;
use lakemill::sql::statement::position_of_parameter;

use super::allowed::{self, Allowed, PositionMap};
use super::confine::ChildArgs;
use super::database::DuckParser;
use super::errors::sql_error;
use super::failure::{ChildError, TaskError};
use super::output::Output;
use super::result::{JsonRows, ResultStream, first_rows};
use super::{database, download, parameters, relations};

/// Name of the one statement that is prepared at a time.
const PREPARED: &str = "lakemill_statement";
/// Reruns of a statement to find the cause of its failure.
const CAUSE_RUNS_MAX: u32 = 3;

/// A child's DuckDB.
pub struct DuckSession {
    connection: Connection,
    folder: PathBuf,
    /// Names of the tables, in lower case.
    tables: BTreeSet<String>,
    /// Results of earlier checks by text.
    checked: HashMap<String, Result<Allowed, SqlError>>,
}

/// A statement that can be run.
struct BoundStatement {
    sql: String,
    positions: PositionMap,
}

/// The purpose of preparing a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Rows,
    /// Only its columns, without rows.
    Columns,
}

impl DuckSession {
    pub fn open(args: &ChildArgs) -> Result<Self, ChildError> {
        let folder = std::env::current_dir()?;
        let connection = database::open(&folder, args.memory_bytes, args.threads)
            .map_err(|error| ChildError::Open(error.to_string()))?;
        let zones: duckdb::Result<String> = connection.query_row(&zones::probe(), [], |row| row.get(0));
        zones.map_err(|error| ChildError::Zones(error.to_string()))?;
        let mut session = Self { connection, folder, tables: BTreeSet::new(), checked: HashMap::new() };
        // Loads everything that the first statement would load.
        let _ = session.describe(&ParameterizedStatement::plain("SELECT 1"));
        session.checked.clear();
        Ok(session)
    }

    /// DuckDB's version, as `1.5.6`.
    pub fn version(&self) -> Result<String, TaskError> {
        let version: duckdb::Result<String> = self.connection.query_row("SELECT version()", [], |row| row.get(0));
        let version = version.map_err(|error| TaskError::Internal(error.to_string()))?;
        Ok(version.trim_start_matches('v').to_owned())
    }

    /// The tables and parameters of a statement, or why it isn't allowed.
    pub fn analyse(&mut self, sql: &str, known: &BTreeSet<String>) -> Result<Analysis, TaskError> {
        allowed::check(&mut DuckParser(&mut self.connection), sql, known).map(|allowed| allowed.names)
    }

    /// Checks a text, once.
    fn check(&mut self, sql: &str) -> Result<Allowed, TaskError> {
        if let Some(result) = self.checked.get(sql) {
            return result.clone().map_err(TaskError::Sql);
        }
        let result = match allowed::check(&mut DuckParser(&mut self.connection), sql, &self.tables) {
            Ok(allowed) => match allowed.names.tables.iter().find(|name| !self.tables.contains(*name)) {
                Some(name) => Err(SqlError::invalid(format!("there is no table `{name}`"))),
                None => Ok(allowed),
            },
            Err(TaskError::Sql(error)) => Err(error),
            Err(error @ (TaskError::Internal(_) | TaskError::Pipe(_))) => return Err(error),
        };
        self.checked.insert(sql.to_owned(), result.clone());
        result.map_err(TaskError::Sql)
    }

    pub fn define(&mut self, tables: &[Relation]) -> Result<(), TaskError> {
        for relation in tables {
            let view = relations::view(relation).map_err(TaskError::Internal)?;
            self.connection.execute_batch(&view).map_err(|error| {
                let SqlError { message, .. } = sql_error(&error, &self.folder, None);
                TaskError::Internal(format!("table `{}`: {message}", relation.name))
            })?;
            self.tables.insert(relation.name.to_ascii_lowercase());
        }
        self.checked.clear();
        Ok(())
    }

    /// Checks the statement and binds its parameters.
    fn bind(&mut self, statement: &ParameterizedStatement, purpose: Purpose) -> Result<BoundStatement, TaskError> {
        let allowed = self.check(&statement.sql)?;
        let arguments = parameters::arguments(&allowed.names.parameters, &statement.params)
            .map_err(|error| at_missing_parameter(error, &allowed.names.parameters, statement))?;
        let (sql, positions) = match purpose {
            Purpose::Columns if !allowed.explains => {
                (format!("SELECT * FROM {} LIMIT 0", enclosed(&allowed.text)), allowed.positions.after(1))
            }
            Purpose::Columns | Purpose::Rows => (allowed.text, allowed.positions),
        };
        if allowed.names.parameters.is_empty() {
            return Ok(BoundStatement { sql, positions });
        }
        let prepare = format!("PREPARE {PREPARED} AS\n{sql}");
        let bound = BoundStatement { sql: format!("EXECUTE {PREPARED}({arguments})"), positions: positions.after(1) };
        self.connection.execute_batch(&prepare).map_err(|error| self.error(&error, &bound))?;
        Ok(bound)
    }

    /// Converts an error of `bound`. DuckDB gives no position for errors in the values of parameters.
    fn error(&self, error: &duckdb::Error, bound: &BoundStatement) -> TaskError {
        TaskError::Sql(sql_error(error, &self.folder, Some(bound.positions)))
    }

    /// Runs a bound statement; `use_it` reads its result.
    fn run<T>(
        &self,
        bound: &BoundStatement,
        use_it: impl FnOnce(&mut ResultStream<'_>) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        self.read(bound, use_it).map_err(|error| self.cause(error, bound))
    }

    fn read<T>(
        &self,
        bound: &BoundStatement,
        use_it: impl FnOnce(&mut ResultStream<'_>) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let outcome = (|| {
            let mut statement = self.connection.prepare(&bound.sql)?;
            drop(statement.stream_arrow([])?);
            Ok(statement)
        })();
        let statement = outcome.map_err(|error| self.error(&error, bound))?;
        use_it(&mut ResultStream::new(&statement, &self.folder, bound.positions)?)
    }

    /// The cause of `error`: a thread that fails interrupts the others, and DuckDB sometimes reports the interruption.
    /// Nothing else interrupts a statement, so it runs again for its error, and its rows are dropped.
    fn cause(&self, error: TaskError, bound: &BoundStatement) -> TaskError {
        let is_interrupt =
            |error: &TaskError| matches!(error, TaskError::Sql(error) if error.kind == SqlErrorKind::Cancelled);
        if !is_interrupt(&error) {
            return error;
        }
        let drop_rows = |reading: &mut ResultStream<'_>| {
            while reading.next()?.is_some() {}
            Ok(())
        };
        let mut again = (0..CAUSE_RUNS_MAX).filter_map(|_| self.read(bound, drop_rows).err());
        again.find(|error| !is_interrupt(error)).unwrap_or_else(|| {
            let message = "the query failed, and DuckDB reported no reason; run it again";
            TaskError::Sql(SqlError::new(SqlErrorKind::Failed, message))
        })
    }

    pub fn describe(&mut self, statement: &ParameterizedStatement) -> Result<Vec<ResultColumn>, TaskError> {
        let bound = self.bind(statement, Purpose::Columns)?;
        self.run(&bound, |reading| Ok(reading.columns()))
    }

    pub fn rows(
        &mut self,
        statement: &ParameterizedStatement,
        limits: RowLimits,
    ) -> Result<(Vec<ResultColumn>, JsonRows), TaskError> {
        let bound = self.bind(statement, Purpose::Rows)?;
        self.run(&bound, |reading| Ok((reading.columns(), first_rows(reading, limits)?)))
    }

    pub fn download(
        &mut self,
        statement: &ParameterizedStatement,
        format: ExportFormat,
        out: &mut Output,
    ) -> Result<(), TaskError> {
        let bound = self.bind(statement, Purpose::Rows)?;
        self.run(&bound, |reading| download::write(reading, format, out))
    }
}

/// Moves an error without a position to the first parameter that has no value, if there is one.
fn at_missing_parameter(error: TaskError, names: &[String], statement: &ParameterizedStatement) -> TaskError {
    match error {
        TaskError::Sql(error) => {
            let missing = parameters::missing(names, &statement.params);
            let position = missing.and_then(|name| position_of_parameter(&statement.sql, name));
            TaskError::Sql(SqlError { position: error.position.or(position), ..error })
        }
        other @ (TaskError::Internal(_) | TaskError::Pipe(_)) => other,
    }
}
