//! The tasks of one child, on one connection.
//!
//! Invariant: [`passed::pass`] passed a text before DuckDB is given it.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use duckdb::Connection;

use super::errors::sql_error;
use super::passed::{self, Passed, Place};
use super::result::{Collected, Reading, collect};
use super::{ChildArgs, ChildError, Failure, Out, database, download, parameters, relations};
use crate::sql::query::enclosed;
use crate::sql::sandbox::task::{
    Analysis, Format, Position, Relation, ResultColumn, RowLimits, SqlError, SqlErrorKind, Statement,
};
use crate::sql::sandbox::zones;
use crate::sql::statement::place_of_parameter;

/// Name of the one statement that is prepared at a time.
const PREPARED: &str = "lakemill_statement";
/// How often a statement is run again for the cause of its failure.
const CAUSE_RUNS_MAX: u32 = 3;

/// A child's DuckDB.
pub struct Session {
    connection: Connection,
    folder: PathBuf,
    /// Names of the tables, in lower case.
    tables: BTreeSet<String>,
    /// Texts that came before, with the verdict.
    verdicts: HashMap<String, Result<Passed, SqlError>>,
}

/// A statement that can be run: what DuckDB is given, and where the person's text stands in it.
struct Bound {
    sql: String,
    place: Place,
}

/// What DuckDB is given for a text that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    AsItIs,
    /// Its columns, without a row.
    Columns,
}

impl Session {
    pub fn open(args: &ChildArgs) -> Result<Self, ChildError> {
        let folder = std::env::current_dir()?;
        let connection = database::open(&folder, args.memory_bytes, args.threads)
            .map_err(|error| ChildError::Open(error.to_string()))?;
        let zones: duckdb::Result<String> = connection.query_row(&zones::probe(), [], |row| row.get(0));
        zones.map_err(|error| ChildError::Zones(error.to_string()))?;
        let mut session = Self { connection, folder, tables: BTreeSet::new(), verdicts: HashMap::new() };
        // What the first statement would load.
        let _ = session.columns_of_one();
        session.verdicts.clear();
        Ok(session)
    }

    fn columns_of_one(&mut self) -> Result<(), Failure> {
        self.describe(&Statement::plain("SELECT 1")).map(|_| ())
    }

    /// DuckDB's version, as `1.5.6`.
    pub fn version(&self) -> Result<String, Failure> {
        let version: duckdb::Result<String> = self.connection.query_row("SELECT version()", [], |row| row.get(0));
        let version = version.map_err(|error| Failure::Own(error.to_string()))?;
        Ok(version.trim_start_matches('v').to_owned())
    }

    /// What the statement names, or why it isn't allowed.
    pub fn analyse(&mut self, sql: &str, known: &BTreeSet<String>) -> Result<Analysis, Failure> {
        passed::pass(&mut self.connection, sql, known).map(|passed| passed.names)
    }

    /// The text as it may be prepared.
    fn pass(&mut self, sql: &str) -> Result<Passed, Failure> {
        if let Some(verdict) = self.verdicts.get(sql) {
            return verdict.clone().map_err(Failure::Sql);
        }
        let verdict = match passed::pass(&mut self.connection, sql, &self.tables) {
            Ok(passed) => match passed.names.tables.iter().find(|name| !self.tables.contains(*name)) {
                Some(name) => Err(SqlError::invalid(format!("there is no table `{name}`"))),
                None => Ok(passed),
            },
            Err(Failure::Sql(error)) => Err(error),
            Err(failure @ (Failure::Own(_) | Failure::Pipe(_))) => return Err(failure),
        };
        self.verdicts.insert(sql.to_owned(), verdict.clone());
        verdict.map_err(Failure::Sql)
    }

    pub fn define(&mut self, tables: &[Relation]) -> Result<(), Failure> {
        for relation in tables {
            let view = relations::view(relation).map_err(Failure::Own)?;
            self.connection.execute_batch(&view).map_err(|error| {
                let SqlError { message, .. } = sql_error(&error, &self.folder, None);
                Failure::Own(format!("table `{}`: {message}", relation.name))
            })?;
            self.tables.insert(relation.name.to_ascii_lowercase());
        }
        self.verdicts.clear();
        Ok(())
    }

    /// Passes the statement and ties its parameters to their values.
    fn bind(&mut self, statement: &Statement, form: Form) -> Result<Bound, Failure> {
        let passed = self.pass(&statement.sql)?;
        let arguments = parameters::arguments(&passed.names.parameters, &statement.params)
            .map_err(|failure| placed(failure, &passed.names.parameters, statement))?;
        let (sql, place) = match form {
            Form::Columns if !passed.explains => {
                (format!("SELECT * FROM {} LIMIT 0", enclosed(&passed.text)), passed.place.after(1))
            }
            Form::Columns | Form::AsItIs => (passed.text, passed.place),
        };
        if passed.names.parameters.is_empty() {
            return Ok(Bound { sql, place });
        }
        let prepare = format!("PREPARE {PREPARED} AS\n{sql}");
        let bound = Bound { sql: format!("EXECUTE {PREPARED}({arguments})"), place: place.after(1) };
        self.connection.execute_batch(&prepare).map_err(|error| self.error(&error, &bound))?;
        Ok(bound)
    }

    /// Words an error of `bound`. DuckDB tells no place for what it finds as it binds the values of parameters.
    fn error(&self, error: &duckdb::Error, bound: &Bound) -> Failure {
        Failure::Sql(sql_error(error, &self.folder, Some(bound.place)))
    }

    /// Runs a bound statement; `use_it` reads its result.
    fn run<T>(&self, bound: &Bound, use_it: impl FnOnce(&mut Reading<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        self.read(bound, use_it).map_err(|failure| self.cause(failure, bound))
    }

    fn read<T>(
        &self,
        bound: &Bound,
        use_it: impl FnOnce(&mut Reading<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let outcome = (|| {
            let mut statement = self.connection.prepare(&bound.sql)?;
            drop(statement.stream_arrow([])?);
            Ok(statement)
        })();
        let statement = outcome.map_err(|error| self.error(&error, bound))?;
        use_it(&mut Reading::new(&statement, &self.folder, bound.place)?)
    }

    /// What `failure` is really for: a thread that fails stops the others, and now and then DuckDB tells of one that
    /// was stopped. Nothing else stops a statement here, so it is run again for its error, its rows dropped.
    fn cause(&self, failure: Failure, bound: &Bound) -> Failure {
        let is_stop =
            |failure: &Failure| matches!(failure, Failure::Sql(error) if error.kind == SqlErrorKind::Cancelled);
        if !is_stop(&failure) {
            return failure;
        }
        let drop_rows = |reading: &mut Reading<'_>| {
            while reading.next()?.is_some() {}
            Ok(())
        };
        let mut again = (0..CAUSE_RUNS_MAX).filter_map(|_| self.read(bound, drop_rows).err());
        again.find(|failure| !is_stop(failure)).unwrap_or_else(|| {
            let untold = "the query failed, and DuckDB didn't tell why: run it again";
            Failure::Sql(SqlError::new(SqlErrorKind::Failed, untold))
        })
    }

    pub fn describe(&mut self, statement: &Statement) -> Result<Vec<ResultColumn>, Failure> {
        let bound = self.bind(statement, Form::Columns)?;
        self.run(&bound, |reading| Ok(reading.columns()))
    }

    pub fn rows(
        &mut self,
        statement: &Statement,
        limits: RowLimits,
    ) -> Result<(Vec<ResultColumn>, Collected), Failure> {
        let bound = self.bind(statement, Form::AsItIs)?;
        self.run(&bound, |reading| Ok((reading.columns(), collect(reading, limits)?)))
    }

    pub fn download(&mut self, statement: &Statement, format: Format, out: &mut Out) -> Result<(), Failure> {
        let bound = self.bind(statement, Form::AsItIs)?;
        self.run(&bound, |reading| download::write(reading, format, out))
    }
}

/// The same, at the first parameter that has no value, if it is for one.
fn placed(failure: Failure, names: &[String], statement: &Statement) -> Failure {
    match failure {
        Failure::Sql(error) => {
            let missing = parameters::missing(names, &statement.params);
            let place = missing.and_then(|name| place_of_parameter(&statement.sql, name));
            let number = |at: usize| u32::try_from(at).ok();
            let place = place.and_then(|p| Some(Position { line: number(p.line)?, column: number(p.column)? }));
            Failure::Sql(SqlError { position: error.position.or(place), ..error })
        }
        other @ (Failure::Own(_) | Failure::Pipe(_)) => other,
    }
}
