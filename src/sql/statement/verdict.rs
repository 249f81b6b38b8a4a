//! The outcome of a check: an allowed statement, or a refusal.

use std::collections::BTreeSet;

use crate::domain::text::Position;
use crate::sql::bounds::DEPTH_MAX;

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// `SELECT`, also as `WITH`, `FROM`, `TABLE`, `PIVOT`, `UNPIVOT`.
    Select,
    Values,
    Describe,
    Summarize,
    /// `SHOW TABLES`.
    Show,
    Explain,
}

/// The parameters of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameters {
    None,
    /// The number of `?` or `$1` parameters, numbered from 1 without gaps.
    Positional(usize),
    /// `$name`, as first written; DuckDB ignores case.
    Named(BTreeSet<String>),
}

/// A statement that may be prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedStatement {
    pub kind: StatementKind,
    /// Names of the relations that it reads, in lower case (ASCII), as DuckDB compares them; without those that its
    /// `WITH` defines. The caller checks that each is a table of the pipeline.
    pub tables: BTreeSet<String>,
    /// Whether it lists all tables (`SHOW TABLES`, at any depth).
    pub lists_tables: bool,
    /// Whether its result may differ between runs over the same tables: by the time, randomness or a sample.
    pub changes: bool,
    pub parameters: Parameters,
    /// The text to prepare: one statement without a semicolon or comment after it. Blanks replace the text before it, so
    /// positions are those of the original.
    pub text: String,
}

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Longer or deeper than is allowed.
    Limit,
    Syntax,
    /// Not exactly one statement, or one that does more than read.
    Statement,
    /// A function that isn't on the list.
    Function,
    /// A relation that can't be one of the pipeline's tables.
    Table,
    /// A part of a query that can't be used.
    Clause,
}

/// Why a text can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub message: String,
    pub position: Option<Position>,
}

impl Refusal {
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), position: None }
    }

    /// Adds a position: a byte offset in `text`.
    pub fn at(self, text: &str, byte: usize) -> Self {
        Self { position: Some(Position::at_byte(text, byte)), ..self }
    }
}

impl Parameters {
    /// Their names, without `$`; `1`, `2`, … for positional ones.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::Positional(count) => (1..=*count).map(|number| number.to_string()).collect(),
            Self::Named(names) => names.iter().cloned().collect(),
        }
    }
}

pub fn too_deep() -> Refusal {
    let message = format!("nested more than {DEPTH_MAX} levels deep; move parts of it into `WITH`");
    Refusal::new(RefusalKind::Limit, message)
}
