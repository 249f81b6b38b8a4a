//! The allow-list's verdict on a whole statement, before anything of it is prepared.

use crate::sql::engine::Engine;
use crate::sql::sandbox::task::Analysis;

use super::Failure;
use crate::sql::tree::Tree;

/// Tables and parameters of `sql`, or why it isn't allowed. Parses it and does nothing else.
pub fn analyse(engine: &Engine, sql: &str) -> Result<Analysis, Failure> {
    let json = engine
        .text("SELECT CAST(json_serialize_sql(CAST(? AS VARCHAR)) AS VARCHAR)", &[sql])
        .map_err(|error| Failure::Own(format!("parsing a statement: {error}")))?;
    let tree = Tree::parse(&json).map_err(|error| Failure::invalid(format!("{error}")))?;
    if tree.get("error") != &Tree::Bool(false) {
        return Err(Failure::invalid(tree.text("error_message")));
    }
    if tree.list("statements").len() != 1 {
        return Err(Failure::invalid("several statements; write one"));
    }
    Ok(Analysis { tables: Vec::new(), parameters: Vec::new() })
}
