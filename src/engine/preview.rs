//! Previews the first rows and rejects of an edited config over the head of one source, in memory.
//!
//! Must not: keep state between calls, or use a store; it runs in a child process without either.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::convert::{ConvertError, HeadRows};
use super::read::error::ReadError;
use super::read::head::Head;
use super::validate::{ValidateError, validate};
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::limits::{PREVIEW_BYTES_MAX, PREVIEW_ROWS_MAX};
use crate::domain::pipeline::Mapping;
use crate::domain::pipeline::types::DataType;
use crate::domain::problem::{Problem, ProblemKind};
use crate::domain::reject::Reject;
use crate::ports::Expressions;
use crate::ports::expressions::{
    CheckError, Evaluated, EvaluationError, Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet,
};

/// Longest value that a preview shows whole, in bytes.
const PREVIEW_VALUE_BYTES_MAX: usize = 4_096;

/// What to preview.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// A whole PipelineConfig.
    pub config: Value,
    /// The table whose mapping is meant; none: the first.
    #[serde(default)]
    pub table: Option<String>,
    /// What messages call the source; its ending says how it is compressed.
    pub source: String,
    /// A local file with the object, or the head of it, as stored.
    pub path: PathBuf,
    /// The file is only the head of the object.
    #[serde(default)]
    pub truncated: bool,
    /// Limits the expressions of each table that are evaluated, in order, to find one that crashes the process.
    #[serde(default)]
    pub expressions_max: Option<usize>,
    /// Rows, and as many rejects, to show; at most `limits::PREVIEW_ROWS_MAX`.
    pub rows_max: usize,
}

/// A preview of a run with the config.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PreviewAnswer {
    /// The config's problems; with any, nothing was read.
    pub problems: Vec<PreviewProblem>,
    /// Why the run would fail: a wrong header, an unreadable source, or a row that violates a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<PreviewFailure>,
    pub table: String,
    pub columns: Vec<PreviewColumn>,
    /// The first rows that would be written, a value a column: integers beyond 2^53, decimals, dates and times are
    /// strings, and so are numbers that JSON doesn't have.
    pub rows: Vec<Vec<Value>>,
    /// The first rejects.
    pub rejects: Vec<PreviewReject>,
    /// Over all of the source that was read.
    pub counts: PreviewCounts,
    /// Checks that only warn, with the number of rows that fail them.
    pub warnings: BTreeMap<String, u64>,
    /// Whether the source was read to its end.
    pub whole: bool,
    /// Decompressed bytes that were read.
    pub bytes_read: u64,
    /// The source's header, where the dialect has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Vec<String>>,
}

/// A problem of the config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewProblem {
    /// As `/config/validate` names it.
    pub kind: String,
    pub message: String,
    /// JSON Pointer.
    pub path: String,
}

/// Why a run would fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewFailure {
    /// The code of a run's error, such as `header_mismatch`.
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A column of the rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
}

/// A row that would be rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PreviewReject {
    /// Physical line on which the record starts.
    pub line: u64,
    /// Offset of the record's first byte in the decompressed source.
    pub byte_offset: u64,
    /// Bytes from there to the next record, in the source's encoding.
    pub byte_length: u64,
    pub column: Option<String>,
    pub value: Option<String>,
    pub reason: String,
    pub message: String,
    /// The record, cut.
    pub raw: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PreviewCounts {
    pub rows_read: u64,
    pub rows_written: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
}

/// Answers `request`. Problems of the config or the source are part of the answer.
pub fn preview_op(request: &PreviewRequest, expressions: &dyn Expressions) -> PreviewAnswer {
    let first = request.expressions_max.map(|count| FirstExpressions { all: expressions, count });
    let expressions = first.as_ref().map_or(expressions, |first| first);
    let mut answer = PreviewAnswer::default();
    let mapping = match mapping(request, expressions) {
        Ok(mapping) => mapping,
        Err(ValidateError::Invalid(problems)) => {
            answer.problems = problems.into_iter().map(PreviewProblem::from).collect();
            return answer;
        }
        Err(error @ ValidateError::Unchecked { .. }) => {
            answer.failure = Some(RunError::new(RunErrorCode::Internal, error.to_string()).into());
            return answer;
        }
    };
    let head = match fetch(&request.source, &request.path, request.truncated) {
        Ok(head) => head,
        Err(error) => {
            answer.failure = Some(error.into());
            return answer;
        }
    };
    preview(&mapping, &request.source, &head, expressions, request.rows_max)
}

/// Evaluates the first expressions of each set; the others yield nulls.
struct FirstExpressions<'a> {
    all: &'a dyn Expressions,
    count: usize,
}

impl Expressions for FirstExpressions<'_> {
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError> {
        self.all.check(&set.first(self.count))
    }

    fn bind(&self, set: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        Ok(Box::new(FirstEvaluator { first: self.all.bind(&set.first(self.count))?, set: set.clone() }))
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        self.all.version()
    }
}

struct FirstEvaluator {
    first: Box<dyn Evaluator>,
    set: ExpressionSet,
}

impl Evaluator for FirstEvaluator {
    fn evaluate(&mut self, batch: &RecordBatch) -> Result<Evaluated, EvaluationError> {
        let mut found = self.first.evaluate(batch)?;
        let nulls = Evaluated::nulls(&self.set, batch.num_rows());
        let (computed, predicates) = (found.computed.len(), found.predicates.len());
        found.computed.extend(nulls.computed.into_iter().skip(computed));
        found.predicates.extend(nulls.predicates.into_iter().skip(predicates));
        Ok(found)
    }
}

/// Previews one mapping over a head in memory.
pub fn preview(
    mapping: &Mapping,
    source: &str,
    head: &Head,
    expressions: &dyn Expressions,
    rows_max: usize,
) -> PreviewAnswer {
    let column = |c: &crate::domain::pipeline::Column| PreviewColumn { name: c.name.to_string(), ty: c.ty.to_string() };
    let mut answer = PreviewAnswer {
        table: mapping.table.to_string(),
        columns: mapping.columns.iter().map(column).collect(),
        whole: head.is_whole(),
        bytes_read: head.bytes().len() as u64,
        ..PreviewAnswer::default()
    };
    if let Err(error) = fill(&mut answer, mapping, source, head, expressions, rows_max.min(PREVIEW_ROWS_MAX)) {
        answer.whole = false;
        answer.header = answer.header.or_else(|| HeadRows::header_of(mapping, source, head));
        answer.failure = Some(match error {
            ConvertError::Failed(error) => error.into(),
            ConvertError::SourceChanged { .. } => RunError::new(RunErrorCode::SourceChanged, error.to_string()).into(),
            ConvertError::Stopped(_) => RunError::new(RunErrorCode::Internal, error.to_string()).into(),
        });
    }
    answer
}

fn fill(
    answer: &mut PreviewAnswer,
    mapping: &Mapping,
    source: &str,
    head: &Head,
    expressions: &dyn Expressions,
    rows_max: usize,
) -> Result<(), ConvertError> {
    let mut rows = HeadRows::open(mapping, expressions, source, head)?;
    answer.header = rows.header().map(<[String]>::to_vec);
    while let Some(batch) = rows.next()? {
        let counts = &mut answer.counts;
        counts.rows_read += batch.rows_read;
        counts.rows_rejected += batch.rows_rejected;
        counts.rows_filtered += batch.rows_filtered;
        counts.rows_written += batch.rows.num_rows() as u64;
        for (check, count) in batch.warnings {
            *answer.warnings.entry(check).or_default() += count;
        }
        let room = rows_max - answer.rows.len();
        let shown = batch.rows.slice(0, room.min(batch.rows.num_rows()));
        answer.rows.extend(values(mapping, &shown));
        let room = rows_max - answer.rejects.len();
        answer.rejects.extend(batch.rejects.into_iter().take(room).map(PreviewReject::from));
    }
    Ok(())
}

/// The requested mapping, checked with the whole config.
fn mapping(request: &PreviewRequest, expressions: &dyn Expressions) -> Result<Mapping, ValidateError> {
    let pipeline = validate(&request.config.to_string(), expressions)?;
    let wanted = |mapping: &Mapping| request.table.as_ref().is_none_or(|table| mapping.table.as_str() == table);
    pipeline.mappings.into_iter().find(wanted).ok_or_else(|| {
        let message = match &request.table {
            Some(table) => format!("the config has no table `{table}`"),
            None => "the config has no table".to_owned(),
        };
        ValidateError::Invalid(vec![Problem::new(ProblemKind::InvalidValue, "/mappings", message)])
    })
}

fn fetch(source: &str, path: &Path, truncated: bool) -> Result<Head, RunError> {
    let unreadable = |error: std::io::Error| {
        RunError::new(RunErrorCode::Internal, format!("`{source}`: its copy can't be read: {error}"))
    };
    let file = File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    Head::fetch(source, Box::new(file), size, truncated, PREVIEW_BYTES_MAX, &|| true)
        .map_err(|error: ReadError| RunError::new(RunErrorCode::UnreadableSource, error.to_string()).path(source))
}

/// The rows of a batch, one value per column.
fn values(mapping: &Mapping, batch: &RecordBatch) -> Vec<Vec<Value>> {
    let mut rows = vec![Vec::with_capacity(batch.num_columns()); batch.num_rows()];
    let options = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
    for (column, array) in mapping.columns.iter().zip(batch.columns()) {
        let formatter = ArrayFormatter::try_new(array.as_ref(), &options).expect("Arrow formats every declared type");
        for (row, out) in rows.iter_mut().enumerate() {
            out.push(match array.is_null(row) {
                true => Value::Null,
                false => value(column.ty, formatter.value(row).to_string()),
            });
        }
    }
    rows
}

/// The largest integer that every JSON reader keeps exactly.
const SAFE_INTEGER_MAX: i64 = 1 << 53;

/// A value as JSON, from its text.
fn value(ty: DataType, text: String) -> Value {
    match ty {
        DataType::Boolean => Value::Bool(text == "true"),
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => match text.parse::<i64>() {
            Ok(number) if (-SAFE_INTEGER_MAX..=SAFE_INTEGER_MAX).contains(&number) => number.into(),
            Ok(_) | Err(_) => text.into(),
        },
        DataType::Float32 | DataType::Float64 => {
            let number = text.parse::<f64>().ok().and_then(Number::from_f64);
            number.map_or_else(|| text.into(), Value::Number)
        }
        DataType::Uuid => uuid_text(&text).into(),
        DataType::Decimal { .. }
        | DataType::String
        | DataType::Date
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Json => shown(text).into(),
    }
}

/// The hyphenated form of a UUID in hex.
fn uuid_text(hex: &str) -> String {
    uuid::Uuid::try_parse(hex).map_or_else(|_| hex.to_owned(), |uuid| uuid.hyphenated().to_string())
}

/// Truncates a long text, with an ellipsis.
fn shown(mut text: String) -> String {
    if text.len() > PREVIEW_VALUE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(PREVIEW_VALUE_BYTES_MAX));
        text.push('…');
    }
    text
}

impl From<Problem> for PreviewProblem {
    fn from(problem: Problem) -> Self {
        Self { kind: code(&problem.kind), message: problem.message, path: problem.path }
    }
}

impl From<RunError> for PreviewFailure {
    fn from(error: RunError) -> Self {
        Self { code: code(&error.code), message: error.message, detail: error.detail }
    }
}

impl From<Reject> for PreviewReject {
    fn from(reject: Reject) -> Self {
        Self {
            line: reject.line,
            byte_offset: reject.byte_offset,
            byte_length: reject.byte_length,
            column: reject.column,
            value: reject.value.map(shown),
            reason: reject.reason.to_string(),
            message: reject.message,
            raw: shown(reject.raw.text),
        }
    }
}

/// The serialized name of a code.
fn code(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(code)) => code,
        Ok(_) | Err(_) => String::new(),
    }
}
