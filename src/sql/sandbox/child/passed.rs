//! The allow-list's verdict on a whole statement, as the sandbox tells it.

use std::collections::BTreeSet;

use duckdb::Connection;

use super::Failure;
use crate::sql::errors::EngineFailure;
use crate::sql::sandbox::task::{self, Position, SqlError, SqlErrorKind};
use crate::sql::statement::{self, Kind, Parameters, Refusal, RefusalKind};

/// A text that the allow-list passed.
#[derive(Debug, Clone)]
pub struct Passed {
    /// What may be prepared.
    pub text: String,
    pub explains: bool,
    pub names: task::Analysis,
    pub place: Place,
}

/// Where a person's text stands in what DuckDB is given.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Lines of ours before it.
    pub lines_before: u32,
    /// Characters of ours on its first line.
    columns_before: u32,
    /// Where what DuckDB is given begins in what the person wrote.
    begins: Position,
}

impl Place {
    /// The same, behind more lines of ours.
    pub fn after(self, lines: u32) -> Self {
        Self { lines_before: self.lines_before + lines, ..self }
    }

    /// DuckDB's place as the person's; `None` if it is in what is ours.
    pub fn of(self, found: Position) -> Option<Position> {
        let line = found.line.checked_sub(self.lines_before).filter(|line| *line > 0)?;
        if line > 1 {
            return Some(Position { line: line + self.begins.line - 1, column: found.column });
        }
        let column = found.column.checked_sub(self.columns_before).filter(|column| *column > 0)?;
        Some(Position { line: self.begins.line, column: column + self.begins.column - 1 })
    }

    /// For text that stands alone.
    #[cfg(test)]
    pub fn plain() -> Self {
        Self { lines_before: 0, columns_before: 0, begins: Position { line: 1, column: 1 } }
    }
}

/// Asks the allow-list. `known` are the tables there are, in lower case.
pub fn pass(connection: &mut Connection, sql: &str, known: &BTreeSet<String>) -> Result<Passed, Failure> {
    let verdict = statement::analyse(connection, sql, &|name| known.contains(name));
    let analysis = match verdict {
        Ok(Ok(analysis)) => analysis,
        Ok(Err(refusal)) => return Err(Failure::Sql(refused(refusal))),
        // It parses within DuckDB's memory, which a text alone can exceed.
        Err(EngineFailure::OutOfMemory) => {
            let message = "the statement is too large to be read";
            return Err(Failure::Sql(SqlError::new(SqlErrorKind::TooLarge, message)));
        }
        Err(EngineFailure::Other(message)) => return Err(Failure::Own(message)),
    };
    let explains = analysis.kind == Kind::Explain;
    let core = analysis.text.strip_prefix("EXPLAIN ").filter(|_| explains).unwrap_or(&analysis.text);
    let before = sql.find(core).map_or("", |at| &sql[..at]);
    let count = |chars: usize| u32::try_from(chars).unwrap_or(u32::MAX - 1);
    let begins = Position {
        line: count(before.matches('\n').count() + 1),
        column: count(before.rsplit('\n').next().unwrap_or_default().chars().count() + 1),
    };
    let columns_before = count(analysis.text.len() - core.len());
    let parameters = match analysis.parameters {
        Parameters::None => Vec::new(),
        Parameters::Positional(count) => (1..=count).map(|at| at.to_string()).collect(),
        Parameters::Named(names) => names.into_iter().collect(),
    };
    let names = task::Analysis { tables: analysis.tables.into_iter().collect(), parameters };
    Ok(Passed { text: analysis.text, explains, names, place: Place { lines_before: 0, columns_before, begins } })
}

fn refused(refusal: Refusal) -> SqlError {
    let kind = match refusal.kind {
        RefusalKind::Limit => SqlErrorKind::TooLarge,
        RefusalKind::Syntax
        | RefusalKind::Statement
        | RefusalKind::Function
        | RefusalKind::Table
        | RefusalKind::Clause => SqlErrorKind::InvalidSql,
    };
    let number = |at: usize| u32::try_from(at).ok();
    let position = refusal.position.and_then(|p| Some(Position { line: number(p.line)?, column: number(p.column)? }));
    SqlError { kind, message: refusal.message, position }
}
