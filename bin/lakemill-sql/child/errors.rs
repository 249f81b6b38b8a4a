//! Turns DuckDB's errors into errors for users: kind, plain message, position in the text.

use std::borrow::Cow;
use std::path::Path;

use lakemill::domain::text::Position;
use lakemill::sql::errors::{self, EngineFailure};
use lakemill::sql::sandbox::error::{SqlError, SqlErrorKind};
use lakemill::sql::statement::refused_values;

use super::allowed::PositionMap;

/// The parameter of the macros that replace functions which a query may not use.
pub const REFUSED: &str = "lakemill_refused";

/// Kinds of DuckDB errors that occur before a statement runs.
const STATEMENT_ERRORS: &[&str] = &[
    "Parser",
    "Syntax",
    "Binder",
    "Catalog",
    "Not implemented",
    "Permission",
    "Parameter Not Resolved",
    "Parameter Not Allowed",
];

/// DuckDB's own message.
fn raw_message(error: &duckdb::Error) -> Cow<'_, str> {
    match error {
        duckdb::Error::DuckDBFailure(_, Some(message)) => message.into(),
        other => other.to_string().into(),
    }
}

/// Wraps `error` as a failure of DuckDB itself during `what`.
pub fn failure(what: &str, error: &duckdb::Error) -> EngineFailure {
    EngineFailure::of(what, &raw_message(error))
}

/// Whether `error` is a failure of the engine, not of a value or a text.
pub fn is_engine_error(error: &duckdb::Error) -> bool {
    match error {
        duckdb::Error::DuckDBFailure(_, Some(message)) => errors::is_engine_error(message),
        _ => true,
    }
}

/// The refused function named in DuckDB's `message`, if any.
fn refused_function(message: &str) -> Option<&'static str> {
    refused_values().find(|name| {
        message.contains(&format!("{name}({REFUSED})")) || message.contains(&format!("\"{name}\"({REFUSED})"))
    })
}

/// Converts `error`. `positions` maps its position to the user's text.
pub fn sql_error(error: &duckdb::Error, folder: &Path, positions: Option<PositionMap>) -> SqlError {
    let raw = raw_message(error);
    let message = match refused_function(&raw) {
        Some(name) => format!("function `{name}` is not supported in queries"),
        None => errors::plain(&relative_paths(&raw, folder)),
    };
    let kind = match errors::kind(&raw) {
        Some(kind) if STATEMENT_ERRORS.contains(&kind) => SqlErrorKind::InvalidSql,
        Some("INTERRUPT" | "Interrupt") => SqlErrorKind::Cancelled,
        _ if errors::is_out_of_memory(&raw) => SqlErrorKind::OutOfMemory,
        Some(_) | None => SqlErrorKind::Failed,
    };
    match kind {
        SqlErrorKind::OutOfMemory => SqlError::new(kind, "the query needs more memory than its limit"),
        SqlErrorKind::InvalidSql
        | SqlErrorKind::Timeout
        | SqlErrorKind::TooLarge
        | SqlErrorKind::Cancelled
        | SqlErrorKind::Failed
        | SqlErrorKind::Ended => {
            SqlError { kind, message, position: positions.and_then(|map| map.to_text(caret(&raw)?)) }
        }
    }
}

/// The message with paths relative to the folder.
fn relative_paths(message: &str, folder: &Path) -> String {
    let folder = folder.to_string_lossy();
    message.replace(&format!("{folder}/"), "").replace(&*folder, "")
}

/// Reads the position from the excerpt `LINE 3: …` and the caret below it.
fn caret(raw: &str) -> Option<Position> {
    let at = raw.rfind("\nLINE ")?;
    let mut lines = raw[at + 1..].lines();
    let (excerpt, marker) = (lines.next()?, lines.next()?);
    let (number, text) = excerpt.strip_prefix("LINE ")?.split_once(": ")?;
    let line = number.parse::<u32>().ok()?;
    let margin = excerpt.chars().count() - text.chars().count();
    // DuckDB truncates a long line at its start, so the column is unknown.
    let column = marker.chars().take_while(|c| *c == ' ').count().checked_sub(margin)?;
    if text.starts_with("...") || !marker.contains('^') {
        return None;
    }
    Some(Position { line, column: u32::try_from(column + 1).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, before: u32, expect: (SqlErrorKind, &str, Option<(u32, u32)>)) {
        let error = duckdb::Error::DuckDBFailure(duckdb::ffi::Error::new(1), Some(raw.to_owned()));
        let found = sql_error(&error, Path::new("/f/1"), Some(PositionMap::identity().after(before)));
        let position = found.position.map(|p| (p.line, p.column));
        assert_eq!((found.kind, found.message.as_str(), position), expect);
    }

    #[test]
    fn errors_lose_paths_and_excerpts_and_keep_their_position() {
        let raw = "Binder Error: Referenced column \"x\" not found\n\nLINE 2: WHERE x = 1\n              ^";
        check(raw, 0, (SqlErrorKind::InvalidSql, "referenced column \"x\" not found", Some((2, 7))));
        check(raw, 1, (SqlErrorKind::InvalidSql, "referenced column \"x\" not found", Some((1, 7))));
        check(raw, 2, (SqlErrorKind::InvalidSql, "referenced column \"x\" not found", None));
        check(
            "IO Error: Cannot open file \"/f/1/t/p.parquet\"",
            0,
            (SqlErrorKind::Failed, "cannot open file \"t/p.parquet\"", None),
        );
        let raw = "Out of Memory Error: failed to allocate";
        check(raw, 0, (SqlErrorKind::OutOfMemory, "the query needs more memory than its limit", None));
    }
}
