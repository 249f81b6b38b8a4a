//! Checks a set: each expression against the allow-list, then its type by binding it to typed nulls.

use std::collections::BTreeSet;

use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::problem::ProblemKind;
use lakemill::ports::expressions::{ExpressionId, ExpressionProblem, ExpressionSet};
use lakemill::sql::allow::{self, InvalidExpression, Scope};
use lakemill::sql::errors::{EngineFailure, plain};
use lakemill::sql::query::{ColumnUses, LAYERS_MAX, enclosed, identifier};
use lakemill::sql::types::{fits, remedy, sql_type};

use super::engine::Engine;
use super::parse::{OFFSET, parse};
use crate::child::errors::{failure, is_engine_error};

/// Parts of DuckDB's messages about types.
const TYPE_MESSAGES: &[&str] = &[
    "No function matches",
    "Cannot compare",
    "Cannot mix",
    "Could not choose a best candidate",
    "Cannot cast",
    "Unimplemented type for cast",
    "must be of type",
    "Cannot combine types",
];

/// The problems of all expressions of `set` except those in `skip`, and the columns that they use, valid without problems. Calls `progress`
/// with the number of each expression before its check.
pub fn analyse(
    engine: &Engine,
    set: &ExpressionSet,
    skip: &[usize],
    progress: &mut dyn FnMut(usize),
) -> Result<(Vec<ExpressionProblem>, ColumnUses), EngineFailure> {
    let names: Vec<String> =
        set.inputs.iter().map(|(name, _)| name).chain(set.computed.iter().map(|c| &c.name)).cloned().collect();
    let types: Vec<DataType> = set.inputs.iter().map(|(_, ty)| *ty).chain(set.computed.iter().map(|c| c.ty)).collect();
    let mut problems = Vec::new();
    let mut uses = ColumnUses::default();
    let mut record = |id, outcome: Result<BTreeSet<usize>, Vec<InvalidExpression>>| match outcome {
        Ok(used) => used,
        Err(refusals) => {
            let problem =
                |refusal: InvalidExpression| ExpressionProblem { id, kind: refusal.kind, message: refusal.message };
            problems.extend(refusals.into_iter().map(problem));
            BTreeSet::new()
        }
    };
    for (at, computed) in set.computed.iter().enumerate() {
        if skip.contains(&at) {
            uses.computed.push(BTreeSet::new());
            continue;
        }
        progress(at);
        let (columns, later) = names.split_at(set.inputs.len() + at);
        let table = Table { engine, scope: Scope { columns, later }, types: &types };
        let outcome = table.expression(&computed.sql, Some(computed.ty))?;
        uses.computed.push(record(ExpressionId::Computed(at), outcome));
    }
    let table = Table { engine, scope: Scope { columns: &names, later: &[] }, types: &types };
    for (at, predicate) in set.predicates.iter().enumerate() {
        if skip.contains(&(set.computed.len() + at)) {
            uses.predicates.push(BTreeSet::new());
            continue;
        }
        progress(set.computed.len() + at);
        let outcome = table.expression(predicate, None)?;
        uses.predicates.push(record(ExpressionId::Predicate(at), outcome));
    }
    for (at, depth) in uses.depths(set).into_iter().enumerate() {
        if depth == LAYERS_MAX {
            let message = format!("depends on a chain of more than {LAYERS_MAX} computed columns");
            let kind = ProblemKind::InvalidExpression;
            problems.push(ExpressionProblem { id: ExpressionId::Computed(at), kind, message });
        }
    }
    problems.sort_by_key(|problem| problem.id);
    Ok((problems, uses))
}

/// The columns that one expression is bound to.
struct Table<'a> {
    engine: &'a Engine,
    scope: Scope<'a>,
    types: &'a [DataType],
}

impl Table<'_> {
    /// The positions that `text` uses. `declared` is the column's type; `None` for a predicate.
    fn expression(
        &self,
        text: &str,
        declared: Option<DataType>,
    ) -> Result<Result<BTreeSet<usize>, Vec<InvalidExpression>>, EngineFailure> {
        let tree = match parse(self.engine, text)? {
            Ok(tree) => tree,
            Err(refusal) => return Ok(Err(vec![refusal])),
        };
        let used = match allow::check(&tree, text, OFFSET, self.scope) {
            Ok(used) => used,
            Err(refusals) => return Ok(Err(refusals)),
        };
        let found = match self.type_of(text, &used)? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(vec![refusal])),
        };
        let message = match declared {
            Some(ty) if !fits(&found, ty) => {
                format!("the column is declared `{ty}`, but the expression returns {found}; {}", remedy(&found, ty))
            }
            None if !fits(&found, DataType::Boolean) => {
                format!("expected a condition (BOOLEAN), but the expression returns {found}; compare it with a value")
            }
            Some(_) | None => return Ok(Ok(used)),
        };
        Ok(Err(vec![InvalidExpression { kind: ProblemKind::TypeMismatch, message }]))
    }

    /// DuckDB's name of the expression's type. Only binds: `typeof` doesn't evaluate its argument.
    fn type_of(&self, text: &str, used: &BTreeSet<usize>) -> Result<Result<String, InvalidExpression>, EngineFailure> {
        let column = |at: &usize| {
            format!("CAST(NULL AS {}) AS {}", sql_type(self.types[*at]), identifier(&self.scope.columns[*at]))
        };
        let columns: Vec<String> = used.iter().map(column).collect();
        let columns = if columns.is_empty() { "1 AS lakemill_row".to_owned() } else { columns.join(", ") };
        match self.engine.text(&format!("SELECT typeof({}) FROM (SELECT {columns})", enclosed(text)), &[]) {
            Ok(found) => Ok(Ok(found)),
            Err(error) if is_engine_error(&error) => Err(failure("binding an expression", &error)),
            Err(error) => {
                let message = error.to_string();
                let of_types = TYPE_MESSAGES.iter().any(|part| message.contains(part));
                let kind = if of_types { ProblemKind::TypeMismatch } else { ProblemKind::InvalidExpression };
                Ok(Err(InvalidExpression { kind, message: plain(&message) }))
            }
        }
    }
}
