//! Streams a statement's result in batches, and writes its first rows as JSON.

use std::path::Path;

use arrow::array::RecordBatch;
use duckdb::Statement;
use duckdb::core::LogicalTypeId;
use lakemill::sql::sandbox::json::{BoundedBuffer, ColumnForm, write_row};
use lakemill::sql::sandbox::task::{LimitReason, ResultColumn, RowLimits};

use super::allowed::PositionMap;
use super::duckdb_types;
use super::errors::sql_error;
use super::failure::TaskError;

/// The result of an executed statement.
pub struct ResultStream<'a> {
    statement: &'a Statement<'a>,
    folder: &'a Path,
    positions: PositionMap,
    columns: Vec<ResultColumn>,
    forms: Vec<ColumnForm>,
}

impl<'a> ResultStream<'a> {
    pub fn new(statement: &'a Statement<'a>, folder: &'a Path, positions: PositionMap) -> Result<Self, TaskError> {
        let schema = statement.schema();
        let (mut columns, mut forms) = (Vec::new(), Vec::new());
        for (at, field) in schema.fields().iter().enumerate() {
            let ty = statement.column_logical_type(at);
            forms.push(match ty.id() {
                LogicalTypeId::Hugeint => ColumnForm::HugeInt,
                LogicalTypeId::Bit => ColumnForm::BitString,
                _ => ColumnForm::Native,
            });
            columns.push(ResultColumn { name: field.name().clone(), ty: duckdb_types::name(&ty) });
        }
        Ok(Self { statement, folder, positions, columns, forms })
    }

    pub fn columns(&self) -> Vec<ResultColumn> {
        self.columns.clone()
    }

    pub fn forms(&self) -> &[ColumnForm] {
        &self.forms
    }

    pub fn schema(&self) -> arrow::datatypes::SchemaRef {
        self.statement.schema()
    }

    /// The next rows; `None` after the last.
    pub fn next(&mut self) -> Result<Option<RecordBatch>, TaskError> {
        match self.statement.step() {
            Ok(batch) => Ok(batch.map(|array| RecordBatch::from(&array))),
            Err(error) => Err(TaskError::Sql(sql_error(&error, self.folder, Some(self.positions)))),
        }
    }
}

/// The first rows of a result.
pub struct JsonRows {
    /// JSON: an array of arrays.
    pub text: Vec<u8>,
    pub count: u64,
    pub limit_reason: Option<LimitReason>,
}

/// Reads rows until there are no more, or a limit is reached.
pub fn first_rows(stream: &mut ResultStream<'_>, limits: RowLimits) -> Result<JsonRows, TaskError> {
    let max = usize::try_from(limits.bytes).unwrap_or(usize::MAX).saturating_sub(1);
    let mut out = BoundedBuffer::new(max);
    let (mut count, mut limit_reason) = (0, None);
    out.push(b"[");
    'all: while let Some(batch) = stream.next()? {
        for row in 0..batch.num_rows() {
            if count == limits.rows {
                limit_reason = Some(LimitReason::Rows);
                break 'all;
            }
            let before = out.bytes().len();
            if count > 0 {
                out.push(b",");
            }
            write_row(&batch, row, stream.forms(), &mut out);
            if out.is_full() {
                out.truncate(before);
                limit_reason = Some(LimitReason::Bytes);
                break 'all;
            }
            count += 1;
        }
    }
    let mut text = out.into_bytes();
    text.push(b']');
    Ok(JsonRows { text, count, limit_reason })
}
