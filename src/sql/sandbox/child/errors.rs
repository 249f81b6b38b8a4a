//! DuckDB's errors for people: their kind, words without a drawing, the place in the text.

use std::borrow::Cow;
use std::path::Path;

use super::database::refused_function;
use super::passed::Place;
use crate::sql::errors::{self, EngineFailure};
use crate::sql::sandbox::task::{Position, SqlError, SqlErrorKind};

/// Kinds of DuckDB's errors that a text has before it runs.
const OF_TEXT: &[&str] = &[
    "Parser",
    "Syntax",
    "Binder",
    "Catalog",
    "Not implemented",
    "Permission",
    "Parameter Not Resolved",
    "Parameter Not Allowed",
];

/// DuckDB's own words.
fn words(error: &duckdb::Error) -> Cow<'_, str> {
    match error {
        duckdb::Error::DuckDBFailure(_, Some(message)) => message.into(),
        other => other.to_string().into(),
    }
}

/// The failure of DuckDB itself that `error` is; `what` was being done.
pub fn failure(what: &str, error: &duckdb::Error) -> EngineFailure {
    EngineFailure::of(what, &words(error))
}

/// Whether `error` is a failure of the engine, not of a value or a text.
pub fn is_own_fault(error: &duckdb::Error) -> bool {
    match error {
        duckdb::Error::DuckDBFailure(_, Some(message)) => errors::is_own_fault(message),
        _ => true,
    }
}

/// Words `error` of a text in which a person's own stands at `place`.
pub fn sql_error(error: &duckdb::Error, folder: &Path, place: Option<Place>) -> SqlError {
    let raw = words(error);
    let message = match refused_function(&raw) {
        Some(name) => format!("function `{name}` is not among those that a query may use"),
        None => errors::plain(&within(&raw, folder)),
    };
    let kind = match errors::kind(&raw) {
        Some(kind) if OF_TEXT.contains(&kind) => SqlErrorKind::InvalidSql,
        Some("INTERRUPT" | "Interrupt") => SqlErrorKind::Cancelled,
        _ if errors::is_out_of_memory(&raw) => SqlErrorKind::OutOfMemory,
        Some(_) | None => SqlErrorKind::Failed,
    };
    match kind {
        SqlErrorKind::OutOfMemory => SqlError::new(kind, "the query needs more memory than it may have"),
        SqlErrorKind::InvalidSql
        | SqlErrorKind::Timeout
        | SqlErrorKind::TooLarge
        | SqlErrorKind::Cancelled
        | SqlErrorKind::Failed
        | SqlErrorKind::Ended => SqlError { kind, message, position: place.and_then(|place| place.of(drawn(&raw)?)) },
    }
}

/// The message with paths relative to the folder.
fn within(message: &str, folder: &Path) -> String {
    let folder = folder.to_string_lossy();
    message.replace(&format!("{folder}/"), "").replace(&*folder, "")
}

/// Reads the place off the drawing `LINE 3: …` with its caret below.
fn drawn(raw: &str) -> Option<Position> {
    let at = raw.rfind("\nLINE ")?;
    let mut lines = raw[at + 1..].lines();
    let (line_drawn, caret) = (lines.next()?, lines.next()?);
    let (number, text) = line_drawn.strip_prefix("LINE ")?.split_once(": ")?;
    let line = number.parse::<u32>().ok()?;
    let margin = line_drawn.chars().count() - text.chars().count();
    // A long line is cut at its start; the column can't be told then.
    let column = caret.chars().take_while(|c| *c == ' ').count().checked_sub(margin)?;
    if text.starts_with("...") || !caret.contains('^') {
        return None;
    }
    Some(Position { line, column: u32::try_from(column + 1).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, before: u32, expect: (SqlErrorKind, &str, Option<(u32, u32)>)) {
        let error = duckdb::Error::DuckDBFailure(duckdb::ffi::Error::new(1), Some(raw.to_owned()));
        let found = sql_error(&error, Path::new("/f/1"), Some(Place::plain().after(before)));
        let position = found.position.map(|p| (p.line, p.column));
        assert_eq!((found.kind, found.message.as_str(), position), expect);
    }

    #[test]
    fn errors_lose_paths_and_drawings_and_keep_their_place() {
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
        check(raw, 0, (SqlErrorKind::OutOfMemory, "the query needs more memory than it may have", None));
    }
}
