//! Evaluates one set, batch after batch.
//!
//! Invariant: every array has the batch's rows in the batch's order; each row passes through DuckDB with its number, which
//! is verified afterwards.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryBuilder, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::{DataType as Arrow, Int64Type};
use lakemill::domain::limits::EXPRESSION_FAILURES_EXPLAINED_MAX;
use lakemill::domain::pipeline::types::DataType;
use lakemill::ports::arrow_types::arrow_type;
use lakemill::ports::expressions::{
    Evaluated, EvaluationError, Evaluator, ExpressionFailure, ExpressionId, ExpressionSet, RowError, UNEXPLAINED,
};
use lakemill::sql::errors::{EngineFailure, plain};
use lakemill::sql::query::{ColumnUses, Queries};

use super::engine::Engine;
use super::scan::{BatchGuard, SlotHandle};
use crate::child::errors::{failure, is_engine_error};

/// Evaluates on its own engine.
pub struct DuckEvaluator {
    engine: Engine,
    set: ExpressionSet,
    uses: ColumnUses,
    prefix: String,
    slot: SlotHandle,
    /// Inputs that the expressions use.
    inputs: Vec<usize>,
    evaluate: String,
}

/// Why a query failed.
enum QueryError {
    /// A value caused the error; DuckDB's message.
    Row(String),
    Failure(EngineFailure),
}

impl From<EngineFailure> for QueryError {
    fn from(failure: EngineFailure) -> Self {
        Self::Failure(failure)
    }
}

impl DuckEvaluator {
    /// For a checked set. Prepares nothing yet.
    pub fn new(engine: Engine, set: ExpressionSet, uses: ColumnUses, prefix: String) -> Self {
        let inputs = uses.inputs(&set);
        let columns = inputs.iter().map(|at| set.inputs[*at].clone()).collect();
        let slot = SlotHandle::new(format!("{prefix}row"), columns);
        let evaluate = Queries { set: &set, uses: &uses, slot: slot.id, prefix: &prefix }.evaluate();
        Self { engine, set, uses, prefix, slot, inputs, evaluate }
    }

    /// Prepares the query of all expressions; their constant parts are computed here.
    ///
    /// # Errors
    /// DuckDB refuses it.
    pub fn prepare(&self) -> Result<(), EngineFailure> {
        self.prepare_query(&self.evaluate)
    }

    /// Prepares one expression with those that it depends on.
    ///
    /// # Errors
    /// DuckDB refuses it.
    pub fn prepare_one(&self, id: ExpressionId) -> Result<(), EngineFailure> {
        self.prepare_query(&self.queries().single(id))
    }

    fn prepare_query(&self, sql: &str) -> Result<(), EngineFailure> {
        self.engine.prepare(sql).map(drop).map_err(|error| failure("binding the expressions", &error))
    }

    fn queries(&self) -> Queries<'_> {
        Queries { set: &self.set, uses: &self.uses, slot: self.slot.id, prefix: &self.prefix }
    }

    /// The inputs that the expressions use, as positions in the set's inputs, ascending.
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }

    /// Evaluates a batch of the used inputs only.
    ///
    /// # Errors
    /// DuckDB itself fails.
    pub fn evaluate_used(&mut self, used: &RecordBatch) -> Result<Evaluated, EngineFailure> {
        if used.num_rows() == 0 {
            return Ok(Evaluated::nulls(&self.set, 0));
        }
        match self.run(&self.evaluate, used) {
            Ok(columns) => self.outcome(&columns, Vec::new()),
            Err(QueryError::Row(first)) => self.diagnose(used, &first),
            Err(QueryError::Failure(failure)) => Err(failure),
        }
    }

    /// Releases the engine for another set.
    pub fn into_engine(self) -> Engine {
        self.engine.clear();
        self.engine
    }

    /// Runs a query of this evaluator on `batch`; gives its columns after the row number.
    fn run(&self, sql: &str, batch: &RecordBatch) -> Result<Vec<ArrayRef>, QueryError> {
        let guard = self.slot.serve(batch.clone());
        let outcome = (|| {
            let mut statement = self.engine.prepare(sql)?;
            statement.execute([])?;
            let mut parts = Vec::new();
            while let Some(part) = statement.step()? {
                parts.push(part);
            }
            Ok(parts)
        })();
        let parts = outcome.map_err(|error: duckdb::Error| query_error(&error, &guard))?;
        let width = parts.first().map_or(0, |part| part.num_columns());
        let column = |at: usize| {
            let pieces: Vec<&dyn Array> = parts.iter().map(|part| part.column(at).as_ref()).collect();
            concat(&pieces).map_err(|error| EngineFailure::Other(format!("joining DuckDB's result: {error}")))
        };
        let mut columns = (0..width).map(column).collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Err(EngineFailure::Other("DuckDB returned no rows".to_owned()).into());
        }
        check_order(columns.remove(0).as_ref(), batch.num_rows())?;
        Ok(columns)
    }

    /// Converts result columns to the port's types; `columns` may be longer.
    fn outcome(&self, columns: &[ArrayRef], errors: Vec<RowError>) -> Result<Evaluated, EngineFailure> {
        let (computed, predicates) = columns.split_at(self.set.computed.len());
        let computed = self.set.computed.iter().zip(computed).map(|(c, array)| to_declared(array, c.ty));
        let predicates = predicates.iter().take(self.set.predicates.len()).map(boolean);
        Ok(Evaluated {
            computed: computed.collect::<Result<_, _>>()?,
            predicates: predicates.collect::<Result<_, _>>()?,
            errors,
        })
    }

    /// Evaluates again with every error caught, then queries the errors.
    fn diagnose(&self, batch: &RecordBatch, first: &str) -> Result<Evaluated, EngineFailure> {
        let columns = self.run(&self.queries().diagnose(), batch).map_err(diagnosis_failure)?;
        let values = self.set.computed.len() + self.set.predicates.len();
        let mut failed: Vec<(usize, ExpressionId)> = Vec::new();
        for (at, flags) in columns[values..].iter().enumerate() {
            let id = match at.checked_sub(self.set.computed.len()) {
                None => ExpressionId::Computed(at),
                Some(at) => ExpressionId::Predicate(at),
            };
            let flags = boolean(flags)?;
            failed.extend((0..flags.len()).filter(|row| flags.value(*row)).map(|row| (row, id)));
        }
        if failed.is_empty() {
            return Err(EngineFailure::Other(format!(
                "an expression failed for the batch, but for none of its rows: {first}"
            )));
        }
        failed.sort_unstable();
        let mut errors = Vec::with_capacity(failed.len());
        for (nth, (row, id)) in (0..).zip(failed) {
            let is_explained = nth < EXPRESSION_FAILURES_EXPLAINED_MAX;
            let message = if is_explained { self.message(batch, row, id)? } else { None };
            errors.push(RowError { row, id, message: message.unwrap_or_else(|| UNEXPLAINED.to_owned()) });
        }
        self.outcome(&columns, errors)
    }

    /// DuckDB's message on one expression and one row.
    fn message(&self, batch: &RecordBatch, row: usize, id: ExpressionId) -> Result<Option<String>, EngineFailure> {
        match self.run(&self.queries().single(id), &batch.slice(row, 1)) {
            Ok(_) => Ok(None),
            Err(QueryError::Row(message)) => Ok(Some(message)),
            Err(error @ QueryError::Failure(_)) => Err(diagnosis_failure(error)),
        }
    }
}

impl Evaluator for DuckEvaluator {
    fn evaluate(&mut self, batch: &RecordBatch) -> Result<Evaluated, EvaluationError> {
        let used = self.set.project(&self.inputs, batch)?;
        self.evaluate_used(&used).map_err(|failure| ExpressionFailure::from(failure).into())
    }
}

fn diagnosis_failure(error: QueryError) -> EngineFailure {
    match error {
        QueryError::Row(message) => EngineFailure::Other(format!("finding the rows on which it fails: {message}")),
        QueryError::Failure(failure) => failure,
    }
}

fn query_error(error: &duckdb::Error, guard: &BatchGuard<'_>) -> QueryError {
    if let Some(own) = guard.failure() {
        return QueryError::Failure(EngineFailure::Other(format!("passing the batch to DuckDB: {own}")));
    }
    if is_engine_error(error) {
        return QueryError::Failure(failure("evaluating", error));
    }
    QueryError::Row(plain(&error.to_string()))
}

/// Checks that DuckDB returned all rows in their order.
fn check_order(numbers: &dyn Array, rows: usize) -> Result<(), EngineFailure> {
    let numbers = numbers.as_primitive_opt::<Int64Type>().filter(|numbers| numbers.null_count() == 0);
    let kept = numbers.is_some_and(|numbers| {
        numbers.len() == rows && numbers.values().iter().enumerate().all(|(at, number)| *number == at as i64)
    });
    if kept { Ok(()) } else { Err(EngineFailure::Other("DuckDB did not keep the rows and their order".to_owned())) }
}

fn boolean(array: &ArrayRef) -> Result<BooleanArray, EngineFailure> {
    let found = array.as_boolean_opt().cloned();
    found.ok_or_else(|| EngineFailure::Other(format!("DuckDB returned {}, expected Boolean", array.data_type())))
}

/// Converts `array` to the declared type.
fn to_declared(array: &ArrayRef, ty: DataType) -> Result<ArrayRef, EngineFailure> {
    let expected = arrow_type(ty);
    if array.data_type() == &expected {
        return Ok(Arc::clone(array));
    }
    let unexpected = |found: &Arrow| {
        EngineFailure::Other(format!(
            "DuckDB returned {found}, expected {expected} for \
     {ty}"
        ))
    };
    if ty != DataType::Uuid {
        return Err(unexpected(array.data_type()));
    }
    let texts = array.as_string_opt::<i32>().ok_or_else(|| unexpected(array.data_type()))?;
    let mut uuids = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
    for text in texts {
        let Some(text) = text else {
            uuids.append_null();
            continue;
        };
        let uuid =
            uuid::Uuid::parse_str(text).map_err(|error| EngineFailure::Other(format!("DuckDB's uuid: {error}")))?;
        uuids.append_value(uuid.as_bytes()).map_err(|error| EngineFailure::Other(format!("DuckDB's uuid: {error}")))?;
    }
    Ok(Arc::new(uuids.finish()))
}
