//! Serves the tasks of a child that checks and evaluates expressions.
//!
//! Invariant: the process limits its processor time before it reads an expression or a row, so that the kernel ends it; the
//! service has a deadline too, for a compromised child.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{Field, Schema};
use lakemill::domain::pipeline::types::DataType;
use lakemill::ports::arrow_types::arrow_type;
use lakemill::ports::expressions::{Evaluated, ExpressionId, ExpressionSet};
use lakemill::sql::sandbox::columns::{self, ColumnShape, ErrorColumns};
use lakemill::sql::sandbox::error::{SqlError, SqlErrorKind};
use lakemill::sql::sandbox::frame::{self, FrameKind, INPUT_BYTES_MAX, OUTCOME_BYTES_MAX};
use lakemill::sql::sandbox::task::Reply;
use lakemill::sql::sandbox::zones;

use super::duck::DuckExpressions;
use super::evaluate::DuckEvaluator;
use crate::child::confine::{ChildArgs, allow_processor_time};
use crate::child::failure::{ChildError, TaskError};
use crate::child::output::Output;

/// A child's DuckDB for expressions.
pub struct ExpressionServer {
    expressions: DuckExpressions,
    bound: Option<BoundSet>,
}

/// The set that is bound.
struct BoundSet {
    evaluator: DuckEvaluator,
    schema: Arc<Schema>,
    computed: usize,
}

impl ExpressionServer {
    pub fn open(args: &ChildArgs) -> Result<Self, ChildError> {
        let expressions = DuckExpressions::new(args.memory_bytes);
        let engine = expressions.take().map_err(|failure| ChildError::Open(failure.to_string()))?;
        expressions.return_engine(engine);
        expressions.text(&zones::probe()).map_err(|failure| ChildError::Zones(failure.to_string()))?;
        Ok(Self { expressions, bound: None })
    }

    pub fn version(&self) -> Result<Reply, TaskError> {
        let duckdb = self.expressions.duckdb_version()?;
        Ok(Reply::Version { duckdb, expressions: self.expressions.engine_version()? })
    }

    /// Checks a set except the expressions in `skip`; reports each before its check.
    pub fn check(
        &self,
        set: &ExpressionSet,
        skip: &[usize],
        cpu_seconds: u64,
        out: &mut Output,
    ) -> Result<Reply, TaskError> {
        allow_processor_time(cpu_seconds)?;
        let all = 2 * set.ids().count();
        let mut written = Ok(());
        let mut progress = |number: usize| {
            // Each expression was prepared within the limit; preparing all together gets another limit of the same
            // size.
            if number == all && written.is_ok() {
                written = allow_processor_time(cpu_seconds);
            }
            if written.is_ok() {
                written = out.reply(&Reply::Checking { number });
            }
        };
        let problems = self.expressions.check_without(set, skip, &mut progress);
        written?;
        Ok(Reply::Checked { problems: problems? })
    }

    pub fn bind(&mut self, set: &ExpressionSet, cpu_seconds: u64) -> Result<Reply, TaskError> {
        allow_processor_time(cpu_seconds)?;
        if let Some(bound) = self.bound.take() {
            self.expressions.return_engine(bound.evaluator.into_engine());
        }
        let evaluator = self.expressions.evaluator(set)?;
        let inputs = evaluator.inputs().to_vec();
        let field = |at: &usize| set.inputs.get(*at).map(|(name, ty): &(String, DataType)| field(name, *ty));
        let fields: Vec<Field> = inputs.iter().filter_map(field).collect();
        self.bound = Some(BoundSet { evaluator, schema: Arc::new(Schema::new(fields)), computed: set.computed.len() });
        Ok(Reply::Bound { inputs })
    }

    /// Evaluates the columns that are read from `from`.
    pub fn evaluate(
        &mut self,
        rows: usize,
        shapes: &[ColumnShape],
        cpu_seconds: u64,
        from: &mut impl Read,
        out: &mut Output,
    ) -> Result<(), TaskError> {
        allow_processor_time(cpu_seconds)?;
        let bound = self.bound.as_mut().ok_or_else(|| TaskError::Internal("no expressions were bound".to_owned()))?;
        let used = received(&bound.schema, rows, shapes, from)?;
        let outcome = bound.evaluator.evaluate_used(&used)?;
        drop(used);
        let (reply, parts) = answer(outcome, bound.computed).map_err(TaskError::Internal)?;
        let length: usize = parts.iter().map(Buffer::len).sum();
        if length > OUTCOME_BYTES_MAX {
            let message = format!("{length} bytes for {rows} rows; at most {OUTCOME_BYTES_MAX}");
            return Err(SqlError::new(SqlErrorKind::TooLarge, message).into());
        }
        out.reply(&reply)?;
        Ok(frame::write_parts(out, FrameKind::Columns, &parts)?)
    }
}

fn field(name: &str, ty: DataType) -> Field {
    Field::new(name, arrow_type(ty), true)
}

/// Reads columns from the parent's pipe.
struct FromParent<'a, R>(&'a mut R);

impl<R: Read> columns::BufferReader for FromParent<'_, R> {
    type Error = io::Error;

    fn fill(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(into)
    }

    fn invalid(&self, why: String) -> io::Error {
        io::Error::other(why)
    }
}

fn received(
    schema: &Arc<Schema>,
    rows: usize,
    shapes: &[ColumnShape],
    from: &mut impl Read,
) -> io::Result<RecordBatch> {
    let columns = schema.fields().iter().zip(shapes);
    let length: Option<usize> =
        columns.clone().map(|(field, shape)| columns::bytes(field.data_type(), *shape, rows)).sum();
    let length = length.filter(|length| *length <= INPUT_BYTES_MAX && shapes.len() == schema.fields().len());
    let length = length.ok_or_else(|| io::Error::other("columns that are not those of the set"))?;
    frame::read_columns_head(from, length)?;
    let mut from = FromParent(from);
    let arrays = columns.map(|(field, shape)| columns::read(&mut from, field.data_type(), *shape, rows));
    let arrays: Vec<ArrayRef> = arrays.collect::<io::Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(io::Error::other)
}

/// Encodes the outcome. Repeated messages are sent once.
fn answer(outcome: Evaluated, computed: usize) -> Result<(Reply, Vec<Buffer>), String> {
    let predicates = outcome.predicates.into_iter().map(|array| Arc::new(array) as Arc<dyn Array>);
    let (mut shapes, mut parts) = (Vec::new(), Vec::new());
    for array in outcome.computed.into_iter().chain(predicates) {
        let (shape, buffers) = columns::parts(&array)?;
        shapes.push(shape);
        parts.extend(buffers);
    }
    let number = |at: usize| u32::try_from(at).map_err(|error| error.to_string());
    let (mut errors, mut messages, mut known) = (ErrorColumns::default(), Vec::new(), HashMap::new());
    for error in outcome.errors {
        let expression = match error.id {
            ExpressionId::Computed(at) => at,
            ExpressionId::Predicate(at) => computed + at,
        };
        let message = *known.entry(error.message).or_insert_with_key(|text| {
            messages.push(text.clone());
            messages.len() - 1
        });
        errors.rows.push(number(error.row)?);
        errors.expressions.push(number(expression)?);
        errors.messages.push(number(message)?);
    }
    let count = errors.rows.len();
    parts.extend(errors.into_parts());
    Ok((Reply::Evaluated { shapes, errors: count, messages }, parts))
}
