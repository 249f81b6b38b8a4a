//! Builds the array of one column.

use arrow::array::ArrayRef;
use arrow::datatypes::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::boolean::BooleanParser;
use super::decimal::DecimalParser;
use super::fault::{CellFault, FaultKind};
use super::float::{Float32Parser, Float64Parser};
use super::formatted::FormattedParser;
use super::integer::IntegerParser;
use super::number::NumberStyle;
use super::time::{DateParser, TimeFormats, TimeParser, TimestampParser, TimestampTzParser};
use super::typed::{CellRules, Cells, ColumnValues, FixedColumn, Parser, TextColumn};
use super::uuid::UuidParser;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Column, Dialect};
use crate::engine::read::record_index::RecordIndex;

/// Parses one column of a mapping, block by block.
///
/// Leaves `on_error` to the caller. If it turns a fault into null, the caller must check `nullable`: such a null in a
/// column that is not nullable is `null_not_allowed`.
pub struct ColumnBuilder {
    rules: CellRules,
    nullable: bool,
    values: Box<dyn ColumnValues>,
}

impl ColumnBuilder {
    pub fn new(column: &Column, dialect: &Dialect) -> Self {
        Self {
            rules: CellRules::new(dialect, column.nullable),
            nullable: column.nullable,
            values: typed(column, dialect),
        }
    }

    /// Appends the cells at `field` (position in the record) of every record of the block, in order; with `None`, the
    /// source lacks the column: nulls. A faulty cell appends a null and pushes a fault, in row order. Every record of
    /// the block must be valid UTF-8.
    pub fn append(&mut self, text: &[u8], block: &RecordIndex, field: Option<usize>, faults: &mut Vec<CellFault>) {
        let Some(position) = field else {
            if !self.nullable {
                let rows = self.len()..self.len() + block.rows();
                faults.extend(rows.map(|row| CellFault::new(row, FaultKind::Null)));
            }
            self.values.append_nulls(block.rows());
            return;
        };
        debug_assert!(position < block.width && block.fields.len() == block.rows() * block.width);
        if block.rows() > 0 {
            let cells = Cells { text, fields: &block.fields, width: block.width, position, rules: &self.rules };
            self.values.append(&cells, faults);
        }
    }

    /// Reserves `blocks` times the size appended since the last [`Self::finish`].
    pub fn reserve(&mut self, blocks: f64) {
        self.values.reserve(blocks);
    }

    /// Rows appended since the last [`Self::finish`].
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rows appended since the last call, as [`crate::ports::arrow_types::arrow_type`].
    pub fn finish(&mut self) -> ArrayRef {
        self.values.finish()
    }

    /// Reuses the memory of an array returned by [`Self::finish`], if nothing else refers to it.
    pub fn recycle(&mut self, array: ArrayRef) {
        self.values.recycle(array);
    }
}

/// A column of numbers in the dialect's format or the column's own.
fn numbers<P: Parser + 'static>(
    column: &Column,
    dialect: &Dialect,
    parser: impl FnOnce(NumberStyle) -> P,
) -> Box<dyn ColumnValues> {
    match &column.number_format {
        None => Box::new(FixedColumn::new(parser(NumberStyle::new(dialect)))),
        Some(format) => Box::new(FixedColumn::new(FormattedParser::new(format, parser))),
    }
}

fn typed(column: &Column, dialect: &Dialect) -> Box<dyn ColumnValues> {
    let formats = TimeFormats { formats: &column.formats, decimal: dialect.decimal };
    match column.ty {
        DataType::Boolean => Box::new(FixedColumn::new(BooleanParser::new(dialect))),
        DataType::Int8 => numbers(column, dialect, IntegerParser::<Int8Type>::new),
        DataType::Int16 => numbers(column, dialect, IntegerParser::<Int16Type>::new),
        DataType::Int32 => numbers(column, dialect, IntegerParser::<Int32Type>::new),
        DataType::Int64 => numbers(column, dialect, IntegerParser::<Int64Type>::new),
        DataType::UInt8 => numbers(column, dialect, IntegerParser::<UInt8Type>::new),
        DataType::UInt16 => numbers(column, dialect, IntegerParser::<UInt16Type>::new),
        DataType::UInt32 => numbers(column, dialect, IntegerParser::<UInt32Type>::new),
        DataType::UInt64 => numbers(column, dialect, IntegerParser::<UInt64Type>::new),
        DataType::Float32 => numbers(column, dialect, Float32Parser::new),
        DataType::Float64 => numbers(column, dialect, Float64Parser::new),
        DataType::Decimal { precision, scale } => {
            numbers(column, dialect, |style| DecimalParser::new(style, precision, scale))
        }
        DataType::String => Box::new(TextColumn::new(false)),
        DataType::Json => Box::new(TextColumn::new(true)),
        DataType::Date => Box::new(FixedColumn::new(DateParser::new(formats))),
        DataType::Time => Box::new(FixedColumn::new(TimeParser::new(formats))),
        DataType::Timestamp => Box::new(FixedColumn::new(TimestampParser::new(formats))),
        DataType::TimestampTz => Box::new(FixedColumn::new(TimestampTzParser::new(formats, column.timezone))),
        DataType::Uuid => Box::new(FixedColumn::new(UuidParser)),
    }
}
