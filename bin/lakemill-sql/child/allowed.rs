//! Checks a statement against the allow-list and maps DuckDB's positions to the user's text.

use std::collections::BTreeSet;

use lakemill::domain::text::Position;
use lakemill::sql::errors::EngineFailure;
use lakemill::sql::sandbox::error::{SqlError, SqlErrorKind};
use lakemill::sql::sandbox::task::Analysis;
use lakemill::sql::statement::{self, Refusal, RefusalKind, SqlParser, StatementKind};

use super::failure::TaskError;

/// A text that the allow-list passed.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// The text that may be prepared.
    pub text: String,
    pub explains: bool,
    pub names: Analysis,
    pub positions: PositionMap,
}

/// Maps positions in DuckDB's text to positions in the user's.
#[derive(Debug, Clone, Copy)]
pub struct PositionMap {
    /// Generated lines before the user's text.
    lines_before: u32,
    /// Generated characters before the text on its first line.
    columns_before: u32,
    /// Where DuckDB's text starts in the user's text.
    start: Position,
}

impl PositionMap {
    /// The same with more generated lines before it.
    pub fn after(self, lines: u32) -> Self {
        Self { lines_before: self.lines_before + lines, ..self }
    }

    /// The position in the user's text for DuckDB's; `None` within generated text.
    pub fn to_text(self, found: Position) -> Option<Position> {
        let line = found.line.checked_sub(self.lines_before).filter(|line| *line > 0)?;
        if line > 1 {
            return Some(Position { line: line + self.start.line - 1, column: found.column });
        }
        let column = found.column.checked_sub(self.columns_before).filter(|column| *column > 0)?;
        Some(Position { line: self.start.line, column: column + self.start.column - 1 })
    }

    #[cfg(test)]
    pub fn identity() -> Self {
        Self { lines_before: 0, columns_before: 0, start: Position { line: 1, column: 1 } }
    }
}

/// Checks `sql`. `known` are the names of the tables, in lower case.
pub fn check(parser: &mut impl SqlParser, sql: &str, known: &BTreeSet<String>) -> Result<Allowed, TaskError> {
    let statement = match statement::analyse(parser, sql, &|name| known.contains(name)) {
        Ok(Ok(statement)) => statement,
        Ok(Err(refusal)) => return Err(TaskError::Sql(refused(refusal))),
        // DuckDB parses within its memory limit, which a text can exceed.
        Err(EngineFailure::OutOfMemory) => {
            let message = "the statement is too large to be parsed";
            return Err(TaskError::Sql(SqlError::new(SqlErrorKind::TooLarge, message)));
        }
        Err(EngineFailure::Other(message)) => return Err(TaskError::Internal(message)),
    };
    let explains = statement.kind == StatementKind::Explain;
    let core = statement.text.strip_prefix("EXPLAIN ").filter(|_| explains).unwrap_or(&statement.text);
    let start = Position::at_byte(sql, sql.find(core).unwrap_or_default());
    let columns_before = u32::try_from(statement.text.len() - core.len()).unwrap_or_default();
    let parameters = statement.parameters.names();
    let (tables, changes) = (statement.tables.into_iter().collect(), statement.changes);
    let names = Analysis { tables, changes, parameters };
    let positions = PositionMap { lines_before: 0, columns_before, start };
    Ok(Allowed { text: statement.text, explains, names, positions })
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
    SqlError { kind, message: refusal.message, position: refusal.position }
}
