//! Parses a user's text to its tree without running or binding it.
//!
//! Invariant: DuckDB gets the text only as a parameter of `json_serialize_sql`, which only parses. The text passes if
//! it parses to the same single expression bare and in parentheses: bare, so that brackets, comments and quotes close
//! within it; in parentheses, since that is its later use.

use lakemill::domain::limits::EXPRESSION_BYTES_MAX;
use lakemill::domain::problem::ProblemKind;
use lakemill::sql::allow::InvalidExpression;
use lakemill::sql::bounds::{BRACKETS_MAX, at_character, control_character, too_many_brackets};
use lakemill::sql::errors::{EngineFailure, plain};
use lakemill::sql::statement::SERIALIZE;
use lakemill::sql::tree::{Tree, TreeError};

use super::engine::Engine;
use crate::child::errors::failure;

const BARE: (&str, &str) = ("SELECT\n", "\n");
const ENCLOSED: (&str, &str) = ("SELECT (\n", "\n)");
/// Bytes before the text in the tree's locations.
pub const OFFSET: usize = BARE.0.len();

/// Parses `text`, or reports why it isn't a single expression.
///
/// # Errors
/// DuckDB itself fails.
pub fn parse(engine: &Engine, text: &str) -> Result<Result<Tree, InvalidExpression>, EngineFailure> {
    if let Some(refusal) = refuse_text(text) {
        return Ok(Err(refusal));
    }
    let bare = match select(engine, BARE, text)? {
        Ok(tree) => tree,
        Err(refusal) => return Ok(Err(refusal)),
    };
    Ok(match select(engine, ENCLOSED, text)? {
        Ok(enclosed) if enclosed.same(&bare) => Ok(bare),
        Ok(_) | Err(_) => {
            Err(InvalidExpression::new("not an expression on its own; write one value, without `SELECT`"))
        }
    })
}

/// Rejects texts that need no parser to be rejected.
fn refuse_text(text: &str) -> Option<InvalidExpression> {
    if text.trim().is_empty() {
        return Some(InvalidExpression::new("the expression is empty"));
    }
    if text.len() > EXPRESSION_BYTES_MAX {
        let kind = ProblemKind::InvalidExpression;
        let message = format!("{} bytes long; at most {EXPRESSION_BYTES_MAX} are allowed", text.len());
        return Some(InvalidExpression { kind, message });
    }
    if let Some((at, c)) = control_character(text) {
        let place = at_character(text, at);
        return Some(InvalidExpression::new(format!("control character `\\u{{{:x}}}`{place}", c as u32)));
    }
    if too_many_brackets(text) {
        return Some(InvalidExpression::new(format!("more than {BRACKETS_MAX} brackets are open at a time")));
    }
    None
}

/// The one expression of `SELECT <text>`.
fn select(engine: &Engine, around: (&str, &str), text: &str) -> Result<Result<Tree, InvalidExpression>, EngineFailure> {
    let statement = format!("{}{text}{}", around.0, around.1);
    let json = engine.text(SERIALIZE, &[&statement]).map_err(|error| failure("parsing an expression", &error))?;
    let tree = match Tree::parse(&json) {
        Ok(tree) => tree,
        Err(TreeError::TooDeep) => {
            return Ok(Err(InvalidExpression::new("nested too deep; split it into several columns")));
        }
        Err(error) => return Err(EngineFailure::Other(format!("reading DuckDB's parse tree: {error}"))),
    };
    if tree.get("error") != &Tree::Bool(false) {
        return Ok(Err(syntax_error(&tree, text, around.0.len())));
    }
    Ok(single(&tree).cloned().map_err(InvalidExpression::new))
}

/// The only expression of the only statement.
fn single(tree: &Tree) -> Result<&Tree, &'static str> {
    let [statement] = tree.list("statements") else { return Err("several statements; write one expression") };
    let node = statement.get("node");
    if node.text("type") != "SELECT_NODE" || !node.get("cte_map").list("map").is_empty() {
        return Err("a query can't be used; write one expression over the row's columns");
    }
    if node.get("from_table").text("type") != "EMPTY" {
        return Err("`FROM` can't be used; an expression sees only the row's own columns");
    }
    let Tree::Object(members) = node else { return Err("not an expression") };
    for (key, value) in members {
        let blank = match key.as_str() {
            "type" | "cte_map" | "select_list" | "from_table" => true,
            "aggregate_handling" => value == &Tree::Text("STANDARD_HANDLING".to_owned()),
            _ => value.is_blank(),
        };
        if !blank {
            return Err(
                "clauses such as `WHERE`, `ORDER BY`, `LIMIT` or `DISTINCT` can't be used; write one expression",
            );
        }
    }
    let [expression] = node.list("select_list") else { return Err("several expressions; write one") };
    if !expression.text("alias").is_empty() {
        return Err("a name (`AS …`) can't be used here; the column has its own");
    }
    Ok(expression)
}

fn syntax_error(tree: &Tree, text: &str, offset: usize) -> InvalidExpression {
    let message = tree.text("error_message");
    if tree.text("error_type") == "not implemented" {
        return InvalidExpression::new("a statement can't be used; write one expression over the row's columns");
    }
    let byte = tree.text("position").parse::<usize>().ok().and_then(|at| at.checked_sub(offset));
    let place = byte.filter(|at| *at < text.len()).map_or_else(String::new, |at| at_character(text, at));
    let mut message = format!("{}{place}", plain(message));
    if message.contains("at or near") {
        message.push_str("; a column named like a keyword is written in double quotes");
    }
    InvalidExpression::new(message)
}
