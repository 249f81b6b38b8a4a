//! A running statement's result, batch after batch, and its first rows as JSON.

use std::path::Path;

use arrow::array::{Array, RecordBatch};
use duckdb::Statement;
use duckdb::core::LogicalTypeId;

use super::Failure;
use super::errors::sql_error;
use super::passed::Place;
use super::shapes;
use super::text::{Form, Json, Sink};
use crate::sql::sandbox::task::{LimitReason, ResultColumn, RowLimits};

/// A statement that was executed and streams.
pub struct Reading<'a> {
    statement: &'a Statement<'a>,
    folder: &'a Path,
    place: Place,
    columns: Vec<ResultColumn>,
    forms: Vec<Form>,
}

impl<'a> Reading<'a> {
    pub fn new(statement: &'a Statement<'a>, folder: &'a Path, place: Place) -> Result<Self, Failure> {
        let schema = statement.schema();
        let (mut columns, mut forms) = (Vec::new(), Vec::new());
        for (at, field) in schema.fields().iter().enumerate() {
            let ty = statement.column_logical_type(at);
            forms.push(match ty.id() {
                LogicalTypeId::Hugeint => Form::Huge,
                LogicalTypeId::Bit => Form::Bits,
                _ => Form::AsItIs,
            });
            columns.push(ResultColumn { name: field.name().clone(), ty: shapes::name(&ty) });
        }
        Ok(Self { statement, folder, place, columns, forms })
    }

    pub fn columns(&self) -> Vec<ResultColumn> {
        self.columns.clone()
    }

    /// What the columns' types in the schema leave open.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    pub fn schema(&self) -> arrow::datatypes::SchemaRef {
        self.statement.schema()
    }

    /// The next rows; `None` after the last.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        match self.statement.step() {
            Ok(batch) => Ok(batch.map(|array| RecordBatch::from(&array))),
            Err(error) => Err(Failure::Sql(sql_error(&error, self.folder, Some(self.place)))),
        }
    }
}

/// The first rows of a result.
pub struct Collected {
    /// JSON: an array of arrays.
    pub text: Vec<u8>,
    pub count: u64,
    pub limit_reason: Option<LimitReason>,
}

/// Reads rows until there are no more, or a limit is reached.
pub fn collect(reading: &mut Reading<'_>, limits: RowLimits) -> Result<Collected, Failure> {
    let max = usize::try_from(limits.bytes).unwrap_or(usize::MAX).saturating_sub(1);
    let mut sink = Sink::new(max);
    let (mut count, mut limit_reason) = (0, None);
    sink.push(b"[");
    'all: while let Some(batch) = reading.next()? {
        let json = Json::of(&batch, reading.forms());
        for row in 0..batch.num_rows() {
            if count == limits.rows {
                limit_reason = Some(LimitReason::Rows);
                break 'all;
            }
            let before = sink.len();
            if count > 0 {
                sink.push(b",");
            }
            json.row(row, &mut sink);
            if sink.is_over() {
                sink.cut(before);
                limit_reason = Some(LimitReason::Bytes);
                break 'all;
            }
            count += 1;
        }
    }
    let mut text = sink.into_bytes();
    text.push(b']');
    Ok(Collected { text, count, limit_reason })
}

/// Whether a column is null in a row, whatever its type.
pub fn is_null(array: &dyn Array, row: usize) -> bool {
    array.is_null(row) || array.data_type() == &arrow::datatypes::DataType::Null
}
