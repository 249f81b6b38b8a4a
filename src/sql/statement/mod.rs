//! Which whole statements of people may reach DuckDB, and what they read: an allow-list over the nodes and functions
//! of the parsed text.
//!
//! Invariant: text that passes is one statement that only reads: queries, and `DESCRIBE`, `SUMMARIZE`, `SHOW TABLES`
//! and `EXPLAIN` of them. Outside of the tables that [`Analysis::tables`] names it reaches nothing: no file, setting,
//! catalog or log. What it costs in time and memory is not bounded here.
//! Must not: prepare or bind the text; it goes to DuckDB as a parameter of `json_serialize_sql` alone.
//!
//! [`text`] (cut out of its surroundings) → [`shapes`] (what nodes may hold) → [`walk`] (over the tree, with
//! [`names`]).

mod names;
mod shapes;
mod text;
mod walk;

use std::collections::BTreeSet;

use super::bounds::{BRACKETS_MAX, DEPTH_MAX, control_character, too_many_brackets};
use super::errors::{EngineFailure, plain};
use super::on_deep_stack;
use super::tree::{Tree, TreeError};
use crate::domain::limits::QUERY_BYTES_MAX;

pub use names::refused_values;

/// The query that gives the tree of a text, its only parameter, as JSON. It parses the text, and neither binds nor runs it.
pub const SERIALIZE: &str = "SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)";

/// A database that parses.
pub trait Parser: Send {
    /// The answer of [`SERIALIZE`] for `sql`.
    ///
    /// # Errors
    /// The database itself fails.
    fn tree(&self, sql: &str) -> Result<String, EngineFailure>;
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `SELECT`, also as `WITH`, `FROM`, `TABLE`, `PIVOT`, `UNPIVOT`.
    Select,
    Values,
    Describe,
    Summarize,
    /// `SHOW TABLES`.
    Show,
    Explain,
}

/// What a statement is given from outside its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameters {
    None,
    /// `?` or `$1`: how many, numbered from 1 without gaps.
    Positional(usize),
    /// `$name`, as first written; DuckDB doesn't tell upper from lower case.
    Named(BTreeSet<String>),
}

/// A statement that may be prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    pub kind: Kind,
    /// Names of the relations that it reads, in lower case (ASCII), as DuckDB compares them; without the names that its
    /// `WITH` gives. Whoever runs it makes sure that each is a table of the pipeline.
    pub tables: BTreeSet<String>,
    /// Whether it lists the tables there are (`SHOW TABLES`, at any depth).
    pub lists_tables: bool,
    pub parameters: Parameters,
    /// The text to prepare, and nothing else: one statement, no semicolon or comment after it, blanks for what stood
    /// before it, so that places in it are places in the text that was given.
    pub text: String,
}

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Longer or deeper than is allowed.
    Limit,
    Syntax,
    /// Not one statement, or one that does more than read.
    Statement,
    /// A function that isn't on the list.
    Function,
    /// A relation that can't be one of the pipeline's tables.
    Table,
    /// A part of a query that can't be used.
    Clause,
}

/// A place in a text, both counted from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Why a text can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub message: String,
    /// Where in the text it is, if that is known.
    pub position: Option<Position>,
}

impl Refusal {
    fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), position: None }
    }

    /// The same, at a byte of `text`.
    fn at(self, text: &str, byte: usize) -> Self {
        let before: Vec<char> = text.char_indices().take_while(|(at, _)| *at < byte).map(|(_, c)| c).collect();
        let line_start = before.iter().rposition(|c| *c == '\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        Self { position: Some(Position { line, column: before.len() - line_start + 1 }), ..self }
    }
}

impl Parameters {
    /// Their names, without `$`; `1`, `2`, … where they go by position.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Positional(count) => (1..=*count).map(|number| number.to_string()).collect(),
            Self::Named(names) => names.iter().cloned().collect(),
        }
    }
}

/// Where the parameter `$name` stands in `sql` first.
pub fn place_of_parameter(sql: &str, name: &str) -> Option<Position> {
    let written = |token: &text::Token| sql.get(token.start..token.end)?.strip_prefix('$');
    let is_it = |token: &&text::Token| written(token).is_some_and(|found| found.eq_ignore_ascii_case(name));
    let at = text::tokens(sql).iter().find(is_it)?.start;
    Refusal::new(RefusalKind::Clause, "").at(sql, at).position
}

/// Analyses `sql` on a thread of its own with a deep stack. `known` says of a name (in lower case) whether it is a
/// table of the pipeline; other names that look like files or DuckDB's own tables are refused here.
///
/// # Errors
/// DuckDB itself fails.
pub fn analyse(
    parser: &mut impl Parser,
    sql: &str,
    known: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Result<Analysis, Refusal>, EngineFailure> {
    on_deep_stack(move || analyse_here(parser, sql, known))
}

/// The same on the calling thread, which [`on_deep_stack`] gave or whose stack is as deep.
///
/// # Errors
/// DuckDB itself fails.
pub fn analyse_here(
    parser: &impl Parser,
    sql: &str,
    known: &dyn Fn(&str) -> bool,
) -> Result<Result<Analysis, Refusal>, EngineFailure> {
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
        return Ok(Err(Refusal::new(RefusalKind::Statement, "several statements; a query is one")));
    };
    Ok(walk::statement(statement, sql, cut.offset, known).map(|found| Analysis {
        kind: cut.kind(found.kind),
        tables: found.tables,
        lists_tables: found.lists_tables,
        parameters: found.parameters,
        text: cut.statement(),
    }))
}

/// In the parser's message on `RESET` and `SET` in other forms than the usual ones.
const RESET: &str = "can only set or reset";
/// Starts of the parser's messages, what is said instead, and the words at one of which it is.
const REWORDED: &[(&str, &str, &[&str])] = &[
    ("A CTE needs a SELECT", "`WITH` takes queries alone; a query only reads tables", text::WRITING),
    ("SELECT INTO not supported", "`INTO` can't be used; a query only reads tables", &["INTO"]),
    ("SELECT locking clause", "`FOR UPDATE` and `FOR SHARE` can't be used; a query only reads tables", &["FOR"]),
];

/// What can be refused without a parser.
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

fn too_deep() -> Refusal {
    let message = format!("nested more than {DEPTH_MAX} levels deep; give parts of it names with `WITH`");
    Refusal::new(RefusalKind::Limit, message)
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
    let place = tree.text("position").parse::<usize>().ok().map(|at| at.saturating_add(offset));
    match place.filter(|at| *at < sql.len()) {
        Some(at) => refusal.at(sql, at),
        None => refusal,
    }
}
