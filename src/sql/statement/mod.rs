//! Checks whole statements against an allow-list over the nodes and functions of the parsed text, and lists the tables
//! that they read.
//!
//! Invariant: an allowed text is one statement that only reads: a query, or `DESCRIBE`, `SUMMARIZE`, `SHOW TABLES` or
//! `EXPLAIN` of one. It reaches only the tables in [`AllowedStatement::tables`]: no file, setting, catalog or log. Time and
//! memory are not bounded here.
//!
//! Must not: prepare or bind the text; DuckDB gets it only as a parameter of `json_serialize_sql`.
//!
//! [`text`] (extracts the statement) → [`shapes`] (members of nodes) → [`walk`] (over the tree, with [`names`]).

pub mod names;
mod shapes;
mod text;
mod verdict;
mod walk;

use super::bounds::{BRACKETS_MAX, control_character, too_many_brackets};
use super::errors::{EngineFailure, plain};
use super::on_deep_stack;
use super::tree::{Tree, TreeError};
use crate::domain::limits::QUERY_BYTES_MAX;
use crate::domain::text::Position;

pub use names::refused_values;
use verdict::too_deep;
pub use verdict::{AllowedStatement, Parameters, Refusal, RefusalKind, StatementKind};

/// The query that returns the syntax tree of a text (its only parameter) as JSON. It parses the text and neither binds
/// nor runs it.
pub const SERIALIZE: &str = "SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)";

/// A database that parses.
pub trait SqlParser: Send {
    /// Runs [`SERIALIZE`] for `sql`.
    ///
    /// # Errors
    /// The database itself fails.
    fn tree(&self, sql: &str) -> Result<String, EngineFailure>;
}

/// The position of the first `$name` in `sql`.
pub fn position_of_parameter(sql: &str, name: &str) -> Option<Position> {
    let written = |token: &text::Token| sql.get(token.start..token.end)?.strip_prefix('$');
    let is_it = |token: &&text::Token| written(token).is_some_and(|found| found.eq_ignore_ascii_case(name));
    text::tokens(sql).iter().find(is_it).map(|token| Position::at_byte(sql, token.start))
}

/// Checks `sql` on a thread with a deep stack. `known` returns whether a name (in lower case) is a table of the
/// pipeline; other names that look like files or DuckDB's own tables are rejected.
///
/// # Errors
/// DuckDB itself fails.
pub fn analyse(
    parser: &mut impl SqlParser,
    sql: &str,
    known: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Result<AllowedStatement, Refusal>, EngineFailure> {
    on_deep_stack(move || analyse_in_process(parser, sql, known))
}

/// Like [`analyse`], but on the calling thread, whose stack must be deep enough.
///
/// # Errors
/// DuckDB itself fails.
pub fn analyse_in_process(
    parser: &impl SqlParser,
    sql: &str,
    known: &dyn Fn(&str) -> bool,
) -> Result<Result<AllowedStatement, Refusal>, EngineFailure> {
    if let Some(refusal) = refuse_text(sql) {
        return Ok(Err(refusal));
    }
    let tokens = text::tokens(sql);
    let cut = match text::cut(sql, &tokens) {
        Ok(cut) => cut,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let json = parser.tree(cut.core)?;
    let tree = match Tree::parse(&json) {
        Ok(tree) => tree,
        Err(TreeError::TooDeep) => return Ok(Err(too_deep())),
        Err(error) => return Err(EngineFailure::Other(format!("reading DuckDB's parse tree: {error}"))),
    };
    if tree.get("error") != &Tree::Bool(false) {
        return Ok(Err(parse_error(&tree, sql, cut.offset, &tokens)));
    }
    let [statement] = tree.list("statements") else {
        return Ok(Err(Refusal::new(RefusalKind::Statement, "several statements; write one query")));
    };
    Ok(walk::statement(statement, sql, cut.offset, known).map(|found| AllowedStatement {
        kind: cut.kind(found.kind),
        tables: found.tables,
        lists_tables: found.lists_tables,
        changes: found.changes,
        parameters: found.parameters,
        text: cut.statement(),
    }))
}

/// Part of the parser's message on unusual forms of `RESET` and `SET`.
const RESET: &str = "can only set or reset";
/// Prefixes of the parser's messages, with their replacements and the words that locate the problem.
const REWORDED: &[(&str, &str, &[&str])] = &[
    ("A CTE needs a SELECT", "`WITH` supports queries only; a query only reads tables", text::WRITE_STATEMENTS),
    ("SELECT INTO not supported", "`INTO` can't be used; a query only reads tables", &["INTO"]),
    ("SELECT locking clause", "`FOR UPDATE` and `FOR SHARE` can't be used; a query only reads tables", &["FOR"]),
];

/// Rejects texts that need no parser to be rejected.
fn refuse_text(sql: &str) -> Option<Refusal> {
    if sql.len() > QUERY_BYTES_MAX {
        let message = format!("the statement is {} bytes long; at most {QUERY_BYTES_MAX} are allowed", sql.len());
        return Some(Refusal::new(RefusalKind::Limit, message));
    }
    if let Some((at, c)) = control_character(sql) {
        let message = format!("control character `\\u{{{:x}}}`", c as u32);
        return Some(Refusal::new(RefusalKind::Syntax, message).at(sql, at));
    }
    let message = format!("more than {BRACKETS_MAX} brackets are open at a time");
    too_many_brackets(sql).then(|| Refusal::new(RefusalKind::Limit, message))
}

fn parse_error(tree: &Tree, sql: &str, offset: usize, tokens: &[text::Token]) -> Refusal {
    let message = tree.text("error_message");
    if message.starts_with("Only SELECT statements") || message.to_ascii_lowercase().contains(RESET) {
        return text::not_a_query(sql, tokens);
    }
    if let Some((_, said, words)) = REWORDED.iter().find(|(start, ..)| message.starts_with(start)) {
        let refusal = Refusal::new(RefusalKind::Statement, *said);
        return match text::first_of(sql, tokens, words) {
            Some(at) => refusal.at(sql, at),
            None => refusal,
        };
    }
    let refusal = Refusal::new(RefusalKind::Syntax, plain(message));
    let byte = tree.text("position").parse::<usize>().ok().map(|at| at.saturating_add(offset));
    match byte.filter(|at| *at < sql.len()) {
        Some(at) => refusal.at(sql, at),
        None => refusal,
    }
}
