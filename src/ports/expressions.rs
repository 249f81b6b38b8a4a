//! SQL expressions over the rows of a mapping.

use std::ops::Range;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use serde::{Deserialize, Serialize};

use super::arrow_types::arrow_type;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{ColumnSource, Mapping};
use crate::domain::problem::ProblemKind;

/// The expressions of one mapping, in the order in which they are evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpressionSet {
    /// Columns parsed from the source, with their types.
    pub inputs: Vec<(String, DataType)>,
    /// Columns of `expr`: each may use the inputs and earlier computed columns.
    pub computed: Vec<Computed>,
    /// `where` (if any) and the checks' `assert`s: over inputs and all computed columns.
    pub predicates: Vec<String>,
}

/// One computed column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    pub name: String,
    pub ty: DataType,
    pub sql: String,
}

impl ExpressionSet {
    /// Whether there is nothing to evaluate.
    pub fn is_empty(&self) -> bool {
        self.computed.is_empty() && self.predicates.is_empty()
    }

    /// Every expression, in the order in which they are checked.
    pub fn ids(&self) -> impl Iterator<Item = ExpressionId> + use<> {
        let computed = (0..self.computed.len()).map(ExpressionId::Computed);
        computed.chain((0..self.predicates.len()).map(ExpressionId::Predicate))
    }

    /// The set of the first `count` expressions.
    pub fn first(&self, count: usize) -> Self {
        let computed = count.min(self.computed.len());
        let predicates = (count - computed).min(self.predicates.len());
        Self {
            inputs: self.inputs.clone(),
            computed: self.computed[..computed].to_vec(),
            predicates: self.predicates[..predicates].to_vec(),
        }
    }

    /// The columns of `batch` at the indices `inputs`, if the batch has exactly the set's input columns.
    ///
    /// # Errors
    /// The batch has other columns.
    pub fn project(&self, inputs: &[usize], batch: &RecordBatch) -> Result<RecordBatch, ExpressionFailure> {
        if batch.num_columns() != self.inputs.len() {
            let (found, expected) = (batch.num_columns(), self.inputs.len());
            return Err(ExpressionFailure(format!("the batch has {found} columns, expected {expected}")));
        }
        for ((name, ty), column) in self.inputs.iter().zip(batch.columns()) {
            if column.data_type() != &arrow_type(*ty) {
                let found = column.data_type();
                return Err(ExpressionFailure(format!("column `{name}` is {found}, expected {ty}")));
            }
        }
        batch.project(inputs).map_err(|error| ExpressionFailure(format!("selecting columns: {error}")))
    }

    /// The text of an expression; empty if the set doesn't have it.
    pub fn sql(&self, id: ExpressionId) -> &str {
        match id {
            ExpressionId::Computed(at) => self.computed.get(at).map_or("", |computed| &computed.sql),
            ExpressionId::Predicate(at) => self.predicates.get(at).map_or("", |sql| sql),
        }
    }
}

/// The expressions of a mapping. Of `predicates`, the first is `where` if there is one; then come the checks in order.
pub fn expression_set(mapping: &Mapping) -> ExpressionSet {
    let (mut inputs, mut computed) = (Vec::new(), Vec::new());
    for column in &mapping.columns {
        let name = column.name.to_string();
        match &column.source {
            ColumnSource::Expr(sql) => computed.push(Computed { name, ty: column.ty, sql: sql.clone() }),
            ColumnSource::Header(_) | ColumnSource::Position(_) | ColumnSource::Path(_) => {
                inputs.push((name, column.ty))
            }
        }
    }
    let asserts = mapping.checks.iter().map(|check| &check.assert);
    let predicates = mapping.filter.iter().chain(asserts).cloned().collect();
    ExpressionSet { inputs, computed, predicates }
}

/// Identifies an expression of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ExpressionId {
    /// Position in `computed`.
    Computed(usize),
    /// Position in `predicates`.
    Predicate(usize),
}

/// An invalid expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpressionProblem {
    pub id: ExpressionId,
    /// `InvalidExpression`, `UnknownColumn` or `TypeMismatch`.
    pub kind: ProblemKind,
    pub message: String,
}

/// The message of a failure that was not explained by the engine.
pub const UNEXPLAINED: &str = "the expression fails on this row's values";

/// A row on which an expression failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// Position in the batch.
    pub row: usize,
    pub id: ExpressionId,
    /// The engine's own for the first [`EXPRESSION_FAILURES_EXPLAINED_MAX`] errors of a batch, else [`UNEXPLAINED`].
    ///
    /// [`EXPRESSION_FAILURES_EXPLAINED_MAX`]: crate::domain::limits::EXPRESSION_FAILURES_EXPLAINED_MAX
    pub message: String,
}

/// The outcome for one batch. Every array has the batch's length and order.
#[derive(Debug)]
pub struct Evaluated {
    /// One array per computed column, of its declared type; null on the rows that have an error for it (dependent columns
    /// see the null).
    pub computed: Vec<ArrayRef>,
    /// One array per predicate; null on the rows that have an error for it.
    pub predicates: Vec<BooleanArray>,
    /// In ascending order of row; at most one per row and expression.
    pub errors: Vec<RowError>,
}

impl Evaluated {
    /// The outcome for `rows` rows, all null.
    pub fn nulls(set: &ExpressionSet, rows: usize) -> Self {
        let computed = set.computed.iter().map(|c| arrow::array::new_null_array(&arrow_type(c.ty), rows)).collect();
        let predicates = set.predicates.iter().map(|_| BooleanArray::new_null(rows)).collect();
        Self { computed, predicates, errors: Vec::new() }
    }
}

/// The engine failed, independently of a row's values.
#[derive(Debug, thiserror::Error)]
#[error("evaluating expressions: {0}")]
pub struct ExpressionFailure(pub String);

/// Why a set was not checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    Failure(#[from] ExpressionFailure),
    /// No process is available now; the expressions are not at fault.
    #[error("expressions can't be checked now: {reason}")]
    Unavailable { reason: String },
}

/// Why a batch was not evaluated.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    #[error(transparent)]
    Failure(#[from] ExpressionFailure),
    #[error(transparent)]
    Ended(#[from] EvaluationCrashed),
    /// No process is available now; the expressions are not at fault.
    #[error("expressions can't be evaluated now: {reason}")]
    Unavailable { reason: String },
}

/// Evaluating a batch crashed the child process, and so did the retry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("evaluating expressions crashed its process: {cause}")]
pub struct EvaluationCrashed {
    /// What happened to the process.
    pub cause: String,
    /// The smallest range of rows of the batch that is known to crash the process.
    pub rows: Range<usize>,
    /// The expression that crashed it, if it was found.
    pub id: Option<ExpressionId>,
}

/// Checks and evaluates expressions.
pub trait Expressions: Send + Sync {
    /// Checks every expression against the allow-list, and its names and types by binding it to empty input. Returns all
    /// problems; an empty list means that [`Expressions::bind`] succeeds.
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError>;

    /// Like [`Expressions::check`], for several sets.
    fn check_all(&self, sets: &[ExpressionSet]) -> Vec<Result<Vec<ExpressionProblem>, CheckError>> {
        sets.iter().map(|set| self.check(set)).collect()
    }

    /// Creates an evaluator for one thread.
    fn bind(&self, set: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError>;

    /// An instance for one run, which checks its config and then evaluates it, so that both can share state. `None` if that
    /// makes no difference.
    fn for_run(&self) -> Option<Box<dyn Expressions>> {
        None
    }

    /// Ends what this instance of a run does, from another thread; it fails as unavailable, and so does what is asked later.
    fn cancel(&self) {}

    /// The engine's version, on which results depend too. Part of the fingerprint of a table with expressions.
    fn version(&self) -> Result<String, ExpressionFailure>;
}

/// Evaluates a set on batches.
pub trait Evaluator: Send {
    /// `batch` has exactly the set's inputs, in their order.
    fn evaluate(&mut self, batch: &RecordBatch) -> Result<Evaluated, EvaluationError>;
}

/// Evaluates a set without expressions.
pub struct NoExpressions;

impl Evaluator for NoExpressions {
    fn evaluate(&mut self, _: &RecordBatch) -> Result<Evaluated, EvaluationError> {
        Ok(Evaluated { computed: Vec::new(), predicates: Vec::new(), errors: Vec::new() })
    }
}
