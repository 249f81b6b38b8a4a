//! The tasks of a child that checks and evaluates expressions.
//!
//! Invariant: the process lowers its limit of processor time before it touches an expression or a row, and ends of it
//! by itself; the service has a deadline besides, for a child that no longer does what this code says.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{Field, Schema};

use super::DuckExpressions;
use super::evaluate::DuckEvaluator;
use crate::domain::pipeline::types::DataType;
use crate::ports::arrow_types::arrow_type;
use crate::ports::expressions::{Evaluated, ExpressionId, ExpressionSet};
use crate::sql::errors::EngineFailure;
use crate::sql::sandbox::child::{ChildArgs, ChildError, Failure, Out, confine};
use crate::sql::sandbox::columns::{self, Errors, Shape};
use crate::sql::sandbox::frame::{self, INPUT_BYTES_MAX, Kind, OUTCOME_BYTES_MAX};
use crate::sql::sandbox::task::{Reply, SqlError, SqlErrorKind};
use crate::sql::sandbox::zones;

/// A child's DuckDB for expressions.
pub struct Server {
    expressions: DuckExpressions,
    bound: Option<Bound>,
}

/// The set at hand.
struct Bound {
    evaluator: DuckEvaluator,
    schema: Arc<Schema>,
    computed: usize,
}

impl Server {
    pub fn open(args: &ChildArgs) -> Result<Self, ChildError> {
        let expressions = DuckExpressions::new(args.memory_bytes);
        let engine = expressions.take().map_err(|failure| ChildError::Open(failure.to_string()))?;
        expressions.put_back(engine);
        expressions.text(&zones::probe()).map_err(|failure| ChildError::Zones(failure.to_string()))?;
        Ok(Self { expressions, bound: None })
    }

    pub fn version(&self) -> Result<Reply, Failure> {
        let duckdb = self.expressions.duckdb_version()?;
        Ok(Reply::Version { duckdb, expressions: self.expressions.engine_version()? })
    }

    /// Checks a set without the expressions in `skip`; tells of each before it looks at it.
    pub fn check(
        &self,
        set: &ExpressionSet,
        skip: &[usize],
        cpu_seconds: u64,
        out: &mut Out,
    ) -> Result<Reply, Failure> {
        confine::allow_processor_time(cpu_seconds)?;
        let together = 2 * set.ids().count();
        let mut allowed = Ok(());
        let problems = telling(out, |next| {
            let mut next = |number: usize| {
                // Each was prepared within the time: so can all be together.
                if number == together && allowed.is_ok() {
                    allowed = confine::allow_processor_time(cpu_seconds);
                }
                next(number);
            };
            self.expressions.check_without(set, skip, &mut next)
        })?;
        allowed?;
        Ok(Reply::Checked { problems })
    }

    pub fn bind(&mut self, set: &ExpressionSet, cpu_seconds: u64) -> Result<Reply, Failure> {
        confine::allow_processor_time(cpu_seconds)?;
        if let Some(bound) = self.bound.take() {
            self.expressions.put_back(bound.evaluator.into_engine());
        }
        let evaluator = self.expressions.evaluator(set)?;
        let inputs = evaluator.inputs().to_vec();
        let field = |at: &usize| set.inputs.get(*at).map(|(name, ty): &(String, DataType)| field(name, *ty));
        let fields: Vec<Field> = inputs.iter().filter_map(field).collect();
        self.bound = Some(Bound { evaluator, schema: Arc::new(Schema::new(fields)), computed: set.computed.len() });
        Ok(Reply::Bound { inputs })
    }

    /// Evaluates the columns that follow in `from`.
    pub fn evaluate(
        &mut self,
        rows: usize,
        shapes: &[Shape],
        cpu_seconds: u64,
        from: &mut impl Read,
        out: &mut Out,
    ) -> Result<(), Failure> {
        confine::allow_processor_time(cpu_seconds)?;
        let bound = self.bound.as_mut().ok_or_else(|| Failure::Own("no expressions were bound".to_owned()))?;
        let used = received(&bound.schema, rows, shapes, from)?;
        let outcome = bound.evaluator.evaluate_used(&used)?;
        drop(used);
        let (reply, parts) = answer(outcome, bound.computed).map_err(Failure::Own)?;
        let length: usize = parts.iter().map(Buffer::len).sum();
        if length > OUTCOME_BYTES_MAX {
            let message = format!("{length} bytes for {rows} rows; at most {OUTCOME_BYTES_MAX}");
            return Err(SqlError::new(SqlErrorKind::TooLarge, message).into());
        }
        out.reply(&reply)?;
        Ok(frame::write_parts(out, Kind::Columns, &parts)?)
    }
}

fn field(name: &str, ty: DataType) -> Field {
    Field::new(name, arrow_type(ty), true)
}

/// Does `work`, which tells where it is.
fn telling<T>(
    out: &mut Out,
    work: impl FnOnce(&mut (dyn FnMut(usize) + Send)) -> Result<T, EngineFailure>,
) -> Result<T, Failure> {
    let mut told = Ok(());
    let mut next = |number: usize| {
        if told.is_ok() {
            told = out.reply(&Reply::Checking { number });
        }
    };
    let done = work(&mut next);
    told?;
    Ok(done?)
}

impl From<EngineFailure> for Failure {
    fn from(failure: EngineFailure) -> Self {
        match failure {
            // It comes from the expressions.
            EngineFailure::OutOfMemory => SqlError::new(SqlErrorKind::OutOfMemory, failure.to_string()).into(),
            EngineFailure::Other(message) => Self::Own(message),
        }
    }
}

/// The parent's pipe as a source of columns.
struct FromParent<'a, R>(&'a mut R);

impl<R: Read> columns::Source for FromParent<'_, R> {
    type Error = io::Error;

    fn fill(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(into)
    }

    fn refuse(&self, why: String) -> io::Error {
        io::Error::other(why)
    }
}

fn received(schema: &Arc<Schema>, rows: usize, shapes: &[Shape], from: &mut impl Read) -> io::Result<RecordBatch> {
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

/// The outcome as it is sent. Messages that repeat are sent once.
fn answer(outcome: Evaluated, computed: usize) -> Result<(Reply, Vec<Buffer>), String> {
    let predicates = outcome.predicates.into_iter().map(|array| Arc::new(array) as Arc<dyn Array>);
    let (mut shapes, mut parts) = (Vec::new(), Vec::new());
    for array in outcome.computed.into_iter().chain(predicates) {
        let (shape, buffers) = columns::parts(&array)?;
        shapes.push(shape);
        parts.extend(buffers);
    }
    let number = |at: usize| u32::try_from(at).map_err(|error| error.to_string());
    let (mut errors, mut messages, mut known) = (Errors::default(), Vec::new(), HashMap::new());
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
