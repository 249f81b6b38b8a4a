//! Evaluates one set in its own child, batch after batch.
//!
//! A batch that crashes its child is retried once in another, since the system may have killed the first for lack of
//! memory. If that crashes too, a bisection over parts of the batch finds the rows and the expression at fault, within
//! [`TRIES_MAX`] and [`LOCATE_MAX`].

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType as Arrow;

use super::children::{Children, REPLY_BYTES_MAX, SharedChildren, TaskFailure};
use crate::ports::arrow_types::arrow_type;
use crate::ports::expressions::{
    Evaluated, EvaluationCrashed, EvaluationError, Evaluator, ExpressionFailure, ExpressionId, ExpressionSet, RowError,
};
use crate::sql::sandbox::columns::{self, ColumnShape, ErrorColumns};
use crate::sql::sandbox::frame::{FrameKind, OUTCOME_BYTES_MAX};
use crate::sql::sandbox::process::Process;
use crate::sql::sandbox::task::{Reply, Task};
use crate::sql::sandbox::{Child, SandboxError};

/// Maximum number of batches of one evaluator that crash a child but succeed in the next.
const RECOVERED_MAX: u32 = 3;
/// Parts tried by the bisection.
const TRIES_MAX: u32 = 48;
/// Longest bisection.
const LOCATE_MAX: Duration = Duration::from_secs(120);

/// Evaluates in a child.
pub(super) struct SandboxEvaluator {
    children: Arc<Children>,
    set: ExpressionSet,
    /// `None` once it has ended.
    child: Option<BoundChild>,
    recovered: u32,
}

impl SandboxEvaluator {
    pub(super) fn bind(children: Arc<Children>, set: ExpressionSet) -> Result<Self, EvaluationError> {
        let shared = &children.shared;
        let bind = |child: Result<Child, SandboxError>| {
            let bound = child.and_then(|child| BoundChild::bind(child, shared, &set));
            bound.map_err(|error| TaskFailure::of(error, shared.limits.batch_cpu_seconds))
        };
        // The system may have ended the first for lack of memory.
        let bound = match bind(children.take()) {
            Err(TaskFailure::Ended { at_limit: false, .. }) => bind(children.child()),
            other => other,
        };
        match bound {
            Ok(child) => Ok(Self { children, set, child: Some(child), recovered: 0 }),
            Err(TaskFailure::Engine(reason)) => Err(ExpressionFailure(reason).into()),
            Err(TaskFailure::Ended { cause, .. }) => {
                Err(ExpressionFailure(format!("preparing them crashed their process: {cause}")).into())
            }
            Err(TaskFailure::Unavailable(reason)) => Err(EvaluationError::Unavailable { reason }),
        }
    }

    /// Evaluates in the current child or a new one.
    fn once(&mut self, batch: &RecordBatch) -> Result<Evaluated, TaskFailure> {
        let shared = &self.children.shared;
        let limits = &shared.limits;
        let (cpu_seconds, wall) = (limits.batch_cpu_seconds, limits.batch_wall);
        let child = match self.child.take() {
            Some(child) => Ok(child),
            None => BoundChild::start(&self.children, &self.set),
        };
        let mut child = child.map_err(|error| TaskFailure::of(error, cpu_seconds))?;
        let outcome = child.evaluate(&self.set, batch, cpu_seconds, wall)?;
        self.child = Some(child);
        Ok(outcome)
    }

    /// Finds the smallest range of rows that ended a child when tried, and the expression.
    fn locate(&self, batch: &RecordBatch, cause: String) -> EvaluationCrashed {
        let mut bisection =
            Bisection { children: &self.children, left: TRIES_MAX, until: Instant::now() + LOCATE_MAX, child: None };
        let mut ended = EvaluationCrashed { cause, rows: 0..batch.num_rows(), id: None };
        let mut rows = ended.rows.clone();
        let known = loop {
            // A half that succeeds is dropped; the other is suspected until it is tried.
            let part = match rows.len() {
                1 if rows == ended.rows => break true,
                1 => rows.clone(),
                length => rows.start..rows.start + length / 2,
            };
            match bisection.part(&self.set, batch, &part) {
                Some(PartOutcome::Ended(cause)) => {
                    (ended.cause, ended.rows) = (cause, part.clone());
                    rows = part;
                }
                Some(PartOutcome::Succeeded) if rows.len() == 1 => break false,
                Some(PartOutcome::Succeeded) => rows.start = part.end,
                None => break false,
            }
        };
        let ids: Vec<ExpressionId> = self.set.ids().collect();
        let (mut fine, mut ends) = (0, ids.len());
        while known && ends - fine > 1 {
            bisection.child = None;
            let middle = fine + (ends - fine) / 2;
            match bisection.part(&self.set.first(middle), batch, &ended.rows) {
                Some(PartOutcome::Ended(cause)) => {
                    ended.cause = cause;
                    ends = middle;
                }
                Some(PartOutcome::Succeeded) => fine = middle,
                None => break,
            }
        }
        if ends - fine == 1 && (known || ids.len() == 1) {
            ended.id = ids.get(fine).copied();
        }
        ended
    }
}

impl Drop for SandboxEvaluator {
    fn drop(&mut self) {
        if let Some(bound) = self.child.take() {
            self.children.return_child(bound.child);
        }
    }
}

impl Evaluator for SandboxEvaluator {
    fn evaluate(&mut self, batch: &RecordBatch) -> Result<Evaluated, EvaluationError> {
        if batch.num_rows() == 0 {
            return Ok(Evaluated::nulls(&self.set, 0));
        }
        let mut again = self.recovered < RECOVERED_MAX;
        loop {
            match self.once(batch) {
                Ok(outcome) => return Ok(outcome),
                Err(TaskFailure::Engine(reason)) => return Err(ExpressionFailure(reason).into()),
                Err(TaskFailure::Unavailable(reason)) => return Err(EvaluationError::Unavailable { reason }),
                Err(TaskFailure::Ended { cause, at_limit }) => {
                    let rows = batch.num_rows();
                    tracing::warn!(%cause, rows, "expression evaluation ended its process");
                    if at_limit || !again {
                        return Err(self.locate(batch, cause).into());
                    }
                    again = false;
                    self.recovered += 1;
                }
            }
        }
    }
}

/// The outcome of a part of a batch.
enum PartOutcome {
    Succeeded,
    Ended(String),
}

/// Evaluates parts of a batch, up to a limit.
struct Bisection<'a> {
    children: &'a Children,
    left: u32,
    until: Instant,
    /// Bound to the set of the last part, if that succeeded.
    child: Option<BoundChild>,
}

impl Bisection<'_> {
    /// `None` once a limit is reached.
    fn part(&mut self, set: &ExpressionSet, batch: &RecordBatch, rows: &Range<usize>) -> Option<PartOutcome> {
        if self.left == 0 || Instant::now() >= self.until {
            return None;
        }
        self.left -= 1;
        let limits = &self.children.shared.limits;
        let cpu_seconds = limits.part_cpu_seconds;
        let child = match self.child.take() {
            Some(child) => Ok(child),
            None => BoundChild::start(self.children, set).map_err(|error| TaskFailure::of(error, cpu_seconds)),
        };
        let part = batch.slice(rows.start, rows.len());
        let tried = child.and_then(|mut child| {
            child.evaluate(set, &part, cpu_seconds, limits.part_wall)?;
            Ok(child)
        });
        match tried {
            Ok(child) => {
                self.child = Some(child);
                Some(PartOutcome::Succeeded)
            }
            Err(TaskFailure::Engine(cause) | TaskFailure::Ended { cause, .. }) => Some(PartOutcome::Ended(cause)),
            Err(TaskFailure::Unavailable(_)) => None,
        }
    }
}

/// A child that has prepared a set.
struct BoundChild {
    child: Child,
    /// Indices of the inputs that the set uses, ascending.
    inputs: Vec<usize>,
}

impl BoundChild {
    fn start(children: &Children, set: &ExpressionSet) -> Result<Self, SandboxError> {
        Self::bind(children.child()?, &children.shared, set)
    }

    fn bind(mut child: Child, shared: &SharedChildren, set: &ExpressionSet) -> Result<Self, SandboxError> {
        let limits = &shared.limits;
        let task = Task::Bind { set: set.clone(), cpu_seconds: limits.batch_cpu_seconds };
        match child.ask(&task, Instant::now() + limits.batch_wall)? {
            Reply::Bound { inputs }
                if inputs.is_sorted_by(|a, b| a < b) && inputs.last().is_none_or(|last| *last < set.inputs.len()) =>
            {
                Ok(Self { child, inputs })
            }
            other => Err(child.unexpected_reply(&other, "the inputs of its expressions")),
        }
    }

    /// Sends a batch and receives its outcome.
    fn evaluate(
        &mut self,
        set: &ExpressionSet,
        batch: &RecordBatch,
        cpu_seconds: u64,
        wall: Duration,
    ) -> Result<Evaluated, TaskFailure> {
        let used = set.project(&self.inputs, batch).map_err(|failure| TaskFailure::Engine(failure.0))?;
        let (mut shapes, mut parts): (Vec<ColumnShape>, Vec<Buffer>) = (Vec::new(), Vec::new());
        for column in used.columns() {
            let (shape, buffers) = columns::parts(column).map_err(TaskFailure::Engine)?;
            shapes.push(shape);
            parts.extend(buffers);
        }
        let deadline = Instant::now() + wall;
        let rows = batch.num_rows();
        let outcome = self.child.send(&Task::Evaluate { rows, shapes, cpu_seconds }, deadline).and_then(|()| {
            self.child.process()?.send_columns(&parts, deadline)?;
            self.outcome(set, rows, deadline)
        });
        outcome.map_err(|error| TaskFailure::of(error, cpu_seconds))
    }

    fn outcome(&mut self, set: &ExpressionSet, rows: usize, deadline: Instant) -> Result<Evaluated, SandboxError> {
        let (shapes, errors, messages) = match self.child.reply_within(REPLY_BYTES_MAX, deadline)?.into_result()? {
            Reply::Evaluated { shapes, errors, messages } => (shapes, errors, messages),
            other => return Err(self.child.unexpected_reply(&other, "the outcome of a batch")),
        };
        let types: Vec<Arrow> = set.computed.iter().map(|computed| arrow_type(computed.ty)).collect();
        let types: Vec<Arrow> = types.into_iter().chain(set.predicates.iter().map(|_| Arrow::Boolean)).collect();
        let process = self.child.process()?;
        let of_columns = types.iter().zip(&shapes).map(|(ty, shape)| columns::bytes(ty, *shape, rows));
        let expected =
            of_columns.chain([ErrorColumns::bytes(errors)]).try_fold(0_usize, |sum, bytes| sum.checked_add(bytes?));
        let expected = expected.filter(|bytes| {
            let fits = *bytes <= OUTCOME_BYTES_MAX && errors <= rows.saturating_mul(types.len());
            fits && shapes.len() == types.len()
        });
        let Some(expected) = expected else {
            return Err(process
                .protocol_error("an outcome with different columns or sizes".to_owned(), "an outcome for the batch"));
        };
        match process.receive_head(deadline)? {
            (FrameKind::Columns, length) if length == expected => {}
            (kind, length) => {
                return Err(process
                    .protocol_error(format!("a frame {kind:?} of {length} bytes"), "the columns that it announced"));
            }
        }
        let mut from = FromChild { process, deadline };
        let read = types.iter().zip(shapes).map(|(ty, shape)| columns::read(&mut from, ty, shape, rows));
        let mut computed: Vec<ArrayRef> = read.collect::<Result<_, _>>()?;
        let errors = ErrorColumns::read(&mut from, errors)?;
        let predicates = computed.split_off(set.computed.len());
        let errors = row_errors(set, rows, &errors, &messages).ok_or_else(|| {
            process.protocol_error("errors of unknown rows or expressions".to_owned(), "errors of the batch")
        })?;
        let booleans = predicates.iter().map(|array| arrow::array::AsArray::as_boolean(array).clone()).collect();
        Ok(Evaluated { computed, predicates: booleans, errors })
    }
}

/// The errors of a batch; `None` unless rows and expressions exist, are in order, and have a message each.
fn row_errors(set: &ExpressionSet, rows: usize, errors: &ErrorColumns, messages: &[String]) -> Option<Vec<RowError>> {
    let ids: Vec<ExpressionId> = set.ids().collect();
    let all = errors.rows.iter().zip(&errors.expressions).zip(&errors.messages);
    let mut last = None;
    all.map(|((row, expression), message)| {
        let key = (*row, *expression);
        let in_order = last.replace(key).is_none_or(|before| before < key);
        let row = usize::try_from(*row).ok().filter(|row| *row < rows && in_order)?;
        let id = *ids.get(usize::try_from(*expression).ok()?)?;
        Some(RowError { row, id, message: messages.get(usize::try_from(*message).ok()?)?.clone() })
    })
    .collect()
}

/// Reads columns from a child's pipe.
struct FromChild<'a> {
    process: &'a mut Process,
    deadline: Instant,
}

impl columns::BufferReader for FromChild<'_> {
    type Error = SandboxError;

    fn fill(&mut self, into: &mut [u8]) -> Result<(), SandboxError> {
        self.process.fill(into, self.deadline)
    }

    fn invalid(&self, why: String) -> SandboxError {
        self.process.protocol_error(why, "columns of the set's types")
    }
}
