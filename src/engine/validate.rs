//! Validates a PipelineConfig: the document's own rules, and its expressions against the SQL engine.
//!
//! Invariant: an accepted config can be run; command line, worker and web service all validate here.

use crate::domain::pipeline::validate::{ValidMapping, examine};
use crate::domain::pipeline::{ColumnSource, Mapping, Pipeline};
use crate::domain::problem::{Problem, ProblemKind};
use crate::ports::Expressions;
use crate::ports::expressions::{CheckError, ExpressionId, ExpressionSet, expression_set};

/// Why a config can't be run.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// Every problem, in the order of the document.
    #[error("the config has {} problems", .0.len())]
    Invalid(Vec<Problem>),
    /// The expressions could not be checked, for a reason outside the document, which has no other problems.
    #[error("{reason}")]
    Unchecked { reason: String },
}

/// Parses a PipelineConfig and checks its expressions. Expressions of mappings with valid columns are checked even if
/// the document has problems elsewhere.
pub fn validate(text: &str, expressions: &dyn Expressions) -> Result<Pipeline, ValidateError> {
    validate_with_warnings(text, expressions).0
}

/// Like [`validate`], with warnings.
pub fn validate_with_warnings(
    text: &str,
    expressions: &dyn Expressions,
) -> (Result<Pipeline, ValidateError>, Vec<Problem>) {
    let mut examined = examine(text);
    let warnings = std::mem::take(&mut examined.warnings);
    let with_expressions: Vec<&ValidMapping> = examined.drafts.iter().filter(|d| d.mapping.has_expressions()).collect();
    let sets: Vec<ExpressionSet> = with_expressions.iter().map(|draft| expression_set(&draft.mapping)).collect();
    let (mut problems, mut unchecked) = (Vec::new(), None);
    for (draft, found) in with_expressions.into_iter().zip(expressions.check_all(&sets)) {
        match found {
            Ok(found) => problems.extend(
                found.into_iter().map(|p| Problem::new(p.kind, pointer(draft.index, &draft.mapping, p.id), p.message)),
            ),
            Err(CheckError::Failure(failure)) => {
                let message = format!("checking the expressions failed: {failure}");
                problems.push(Problem::new(ProblemKind::InvalidExpression, mapping_pointer(draft.index), message));
            }
            Err(error @ CheckError::Unavailable { .. }) => unchecked = Some(error.to_string()),
        }
    }
    let pipeline = match (examined.conclude(text, problems), unchecked) {
        (Ok(_), Some(reason)) => Err(ValidateError::Unchecked { reason }),
        (pipeline, _) => pipeline.map_err(ValidateError::Invalid),
    };
    (pipeline, warnings)
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
