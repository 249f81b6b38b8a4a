//! Validates a PipelineConfig: the document's own rules, and its expressions against the SQL engine.
//!
//! Invariant: an accepted config can be run; command line, worker and web service all validate here.

use crate::domain::pipeline::validate::{ValidMapping, examine};
use crate::domain::pipeline::{ColumnSource, Mapping, Pipeline};
use crate::domain::problem::{Problem, ProblemKind};
use crate::ports::Expressions;
use crate::ports::expressions::{ExpressionFailure, ExpressionId, ExpressionProblem, ExpressionSet, expression_set};

/// Parses a PipelineConfig and checks its expressions. Expressions of mappings with valid columns are checked even if
/// the document has problems elsewhere.
///
/// # Errors
/// Every problem, in the order of the document.
pub fn validate(text: &str, expressions: &dyn Expressions) -> Result<Pipeline, Vec<Problem>> {
    validate_with_warnings(text, expressions).0
}

/// As [`validate`], with warnings.
pub fn validate_with_warnings(
    text: &str,
    expressions: &dyn Expressions,
) -> (Result<Pipeline, Vec<Problem>>, Vec<Problem>) {
    let mut examined = examine(text);
    let warnings = std::mem::take(&mut examined.warnings);
    let with_expressions: Vec<&ValidMapping> = examined.drafts.iter().filter(|d| d.mapping.has_expressions()).collect();
    let sets: Vec<ExpressionSet> = with_expressions.iter().map(|draft| expression_set(&draft.mapping)).collect();
    let found = with_expressions.into_iter().zip(expressions.check_all(&sets));
    let problems = found.flat_map(|(draft, found)| problems(draft, found)).collect();
    (examined.conclude(text, problems), warnings)
}

fn problems(draft: &ValidMapping, found: Result<Vec<ExpressionProblem>, ExpressionFailure>) -> Vec<Problem> {
    match found {
        Ok(found) => found
            .into_iter()
            .map(|p| Problem::new(p.kind, pointer(draft.index, &draft.mapping, p.id), p.message))
            .collect(),
        Err(failure) => {
            let message = format!("checking the expressions failed: {failure}");
            vec![Problem::new(ProblemKind::InvalidExpression, mapping_pointer(draft.index), message)]
        }
    }
}

fn mapping_pointer(index: usize) -> String {
    format!("/mappings/{index}")
}

/// The JSON Pointer of an expression of the mapping at `index`.
pub fn pointer(index: usize, mapping: &Mapping, id: ExpressionId) -> String {
    let at = mapping_pointer(index);
    match id {
        ExpressionId::Computed(nth) => {
            let computed =
                |(_, c): &(usize, &crate::domain::pipeline::Column)| matches!(c.source, ColumnSource::Expr(_));
            match mapping.columns.iter().enumerate().filter(computed).nth(nth) {
                Some((column, _)) => format!("{at}/columns/{column}/expr"),
                None => at,
            }
        }
        ExpressionId::Predicate(0) if mapping.filter.is_some() => format!("{at}/where"),
        ExpressionId::Predicate(nth) => {
            format!("{at}/checks/{}/assert", nth - usize::from(mapping.filter.is_some()))
        }
    }
}
