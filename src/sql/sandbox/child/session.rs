//! The tasks of one child, on one connection.
//!
//! Invariant: [`Session::analyse`] passed a text before any other method gives it to DuckDB.

use std::collections::HashMap;
use std::path::PathBuf;

use super::errors::sql_error;
use super::result::{Collected, Reading, collect};
use super::{ChildArgs, ChildError, Failure, Out, analysis, database, download, parameters, relations};
use crate::sql::engine::Engine;
use crate::sql::query::enclosed;
use crate::sql::sandbox::task::{Analysis, Format, Relation, ResultColumn, RowLimits, SqlError, Statement};

/// Longest text of a statement, in bytes.
const STATEMENT_BYTES_MAX: usize = 256 << 10;
/// Name of the one statement that is prepared at a time.
const PREPARED: &str = "lakemill_statement";

/// A child's DuckDB.
pub struct Session {
    engine: Engine,
    folder: PathBuf,
    /// Texts that were analysed, with the verdict.
    known: HashMap<String, Result<Analysis, SqlError>>,
}

/// A statement that can be run: what DuckDB is given, and how many lines of it are ours.
struct Bound {
    sql: String,
    lines_before: u32,
}

impl Session {
    pub fn open(args: &ChildArgs) -> Result<Self, ChildError> {
        let folder = std::env::current_dir()?;
        let connection = database::open(&folder, args.memory_bytes, args.threads)
            .map_err(|error| ChildError::Open(error.to_string()))?;
        let session = Self { engine: Engine::over(connection), folder, known: HashMap::new() };
        // What the first statement would load.
        let _ = analysis::analyse(&session.engine, "SELECT 1");
        Ok(session)
    }

    fn error(&self, error: &duckdb::Error, lines_before: u32) -> Failure {
        Failure::Sql(sql_error(error, &self.folder, lines_before))
    }

    /// What the statement names, or why it isn't allowed.
    pub fn analyse(&mut self, sql: &str) -> Result<Analysis, Failure> {
        if let Some(known) = self.known.get(sql) {
            return known.clone().map_err(Failure::Sql);
        }
        let outcome = if sql.len() > STATEMENT_BYTES_MAX {
            Err(SqlError::invalid(format!("{} bytes long; at most {STATEMENT_BYTES_MAX} are allowed", sql.len())))
        } else if sql.contains('\0') {
            Err(SqlError::invalid("a NUL character can't be part of a statement"))
        } else {
            match analysis::analyse(&self.engine, sql) {
                Ok(analysis) => Ok(analysis),
                Err(Failure::Sql(error)) => Err(error),
                Err(failure @ (Failure::Own(_) | Failure::Pipe(_))) => return Err(failure),
            }
        };
        self.known.insert(sql.to_owned(), outcome.clone());
        outcome.map_err(Failure::Sql)
    }

    pub fn define(&mut self, tables: &[Relation]) -> Result<(), Failure> {
        for relation in tables {
            let view = relations::view(relation).map_err(Failure::Own)?;
            self.engine.connection().execute_batch(&view).map_err(|error| {
                let SqlError { message, .. } = sql_error(&error, &self.folder, 0);
                Failure::Own(format!("table `{}`: {message}", relation.name))
            })?;
        }
        Ok(())
    }

    /// Passes the statement and ties its parameters to their values.
    fn bind(&mut self, statement: &Statement, shape: fn(&str) -> String, lines: u32) -> Result<Bound, Failure> {
        self.analyse(&statement.sql)?;
        let sql = shape(&statement.sql);
        let connection = self.engine.connection();
        let names = {
            let prepared = connection.prepare(&sql).map_err(|error| self.error(&error, lines))?;
            (1..=prepared.parameter_count()).map(|at| prepared.parameter_name(at)).collect::<Result<Vec<_>, _>>()
        };
        let names = names.map_err(|error| self.error(&error, lines))?;
        let arguments = parameters::arguments(&names, &statement.params)?;
        if names.is_empty() {
            return Ok(Bound { sql, lines_before: lines });
        }
        // On a line of its own, so that places in the text are lines away.
        let prepare = format!("PREPARE {PREPARED} AS\n{sql}");
        connection.execute_batch(&prepare).map_err(|error| self.error(&error, lines + 1))?;
        Ok(Bound { sql: format!("EXECUTE {PREPARED}({arguments})"), lines_before: lines + 1 })
    }

    /// Runs a bound statement; `use_it` reads its result.
    fn run<T>(
        &mut self,
        bound: &Bound,
        use_it: impl FnOnce(&mut Reading<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = self.engine.connection();
        let outcome = (|| {
            let mut statement = connection.prepare(&bound.sql)?;
            drop(statement.stream_arrow([])?);
            Ok(statement)
        })();
        let statement = outcome.map_err(|error| self.error(&error, bound.lines_before))?;
        use_it(&mut Reading::new(&statement, &self.folder, bound.lines_before)?)
    }

    pub fn describe(&mut self, statement: &Statement) -> Result<Vec<ResultColumn>, Failure> {
        fn shape(sql: &str) -> String {
            format!("SELECT * FROM {} LIMIT 0", enclosed(sql.trim_end().trim_end_matches(';')))
        }
        let bound = self.bind(statement, shape, 1)?;
        self.run(&bound, |reading| Ok(reading.columns()))
    }

    pub fn rows(
        &mut self,
        statement: &Statement,
        limits: RowLimits,
    ) -> Result<(Vec<ResultColumn>, Collected), Failure> {
        let bound = self.bind(statement, str::to_owned, 0)?;
        self.run(&bound, |reading| Ok((reading.columns(), collect(reading, limits)?)))
    }

    pub fn download(&mut self, statement: &Statement, format: Format, out: &mut Out) -> Result<(), Failure> {
        let bound = self.bind(statement, str::to_owned, 0)?;
        self.run(&bound, |reading| download::write(reading, format, out))
    }
}
