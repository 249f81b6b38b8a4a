//! SQL expressions over the rows of a mapping, as the engine and the validation need them.

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};

use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{ColumnSource, Mapping};
use crate::domain::problem::ProblemKind;

/// The expressions of one mapping, in the order in which they are evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpressionSet {
    /// The columns that are parsed from the source, with their types.
    pub inputs: Vec<(String, DataType)>,
    /// Columns made by `expr`: each may use the inputs and the computed columns before it.
    pub computed: Vec<Computed>,
    /// `where` (if any) and the checks' `assert`s: over inputs and all computed columns.
    pub predicates: Vec<String>,
}

/// One computed column.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    pub name: String,
    pub ty: DataType,
    pub sql: String,
}

/// The expressions of a mapping. Of `predicates`, the first is `where` if there is one; then come the checks in order.
pub fn expression_set(mapping: &Mapping) -> ExpressionSet {
    let (mut inputs, mut computed) = (Vec::new(), Vec::new());
    for column in &mapping.columns {
        let name = column.name.to_string();
        match &column.source {
            ColumnSource::Expr(sql) => computed.push(Computed { name, ty: column.ty, sql: sql.clone() }),
            ColumnSource::Header(_) | ColumnSource::Position(_) => inputs.push((name, column.ty)),
        }
    }
    let asserts = mapping.checks.iter().map(|check| &check.assert);
    let predicates = mapping.filter.iter().chain(asserts).cloned().collect();
    ExpressionSet { inputs, computed, predicates }
}

/// Which expression of a set is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExpressionId {
    /// Position in `computed`.
    Computed(usize),
    /// Position in `predicates`.
    Predicate(usize),
}

/// An expression that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionProblem {
    pub id: ExpressionId,
    /// `InvalidExpression`, `UnknownColumn` or `TypeMismatch`.
    pub kind: ProblemKind,
    pub message: String,
}

/// The message of a failure that the engine wasn't asked about.
pub const UNEXPLAINED: &str = "the expression fails on this row's values";

/// A row on which an expression failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// Position in the batch.
    pub row: usize,
    pub id: ExpressionId,
    /// Of the first [`EXPRESSION_FAILURES_EXPLAINED_MAX`] errors of a batch the engine's own, else [`UNEXPLAINED`].
    ///
    /// [`EXPRESSION_FAILURES_EXPLAINED_MAX`]: crate::domain::limits::EXPRESSION_FAILURES_EXPLAINED_MAX
    pub message: String,
}

/// The outcome for one batch. Every array has the batch's length and order.
#[derive(Debug)]
pub struct Evaluated {
    /// One array per computed column, of exactly its declared type; null on the rows that are in `errors` for it (what
    /// builds on it saw a null there).
    pub computed: Vec<ArrayRef>,
    /// One array per predicate; null on the rows that are in `errors` for it.
    pub predicates: Vec<BooleanArray>,
    /// In ascending order of row; at most one per row and expression.
    pub errors: Vec<RowError>,
}

/// The engine behind the expressions failed as such (not on a row's values).
#[derive(Debug, thiserror::Error)]
#[error("evaluating expressions: {0}")]
pub struct ExpressionFailure(pub String);

/// Checks and evaluates expressions.
pub trait Expressions: Send + Sync {
    /// Checks every expression against the allow-list, and its names and types by binding to the typed, empty input.
    /// Gives all problems; an empty list means that [`Expressions::bind`] succeeds.
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, ExpressionFailure>;

    /// Makes an evaluator for one thread.
    fn bind(&self, set: &ExpressionSet) -> Result<Box<dyn Evaluator>, ExpressionFailure>;

    /// What the results depend on besides the expressions (versions of the engine and its time-zone data); goes into
    /// the fingerprint of a table that has any.
    fn version(&self) -> String;
}

/// Evaluates one set on batch after batch.
pub trait Evaluator: Send {
    /// `batch` has exactly the set's inputs, in their order.
    fn evaluate(&mut self, batch: &RecordBatch) -> Result<Evaluated, ExpressionFailure>;
}
