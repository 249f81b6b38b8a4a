//! The builder of one column.

use arrow::array::ArrayRef;
use arrow::datatypes::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use super::boolean::BooleanParser;
use super::decimal::DecimalParser;
use super::fault::{CellFault, FaultKind};
use super::float::{Float32Parser, Float64Parser};
use super::integer::IntegerParser;
use super::number::NumberStyle;
use super::time::{DateParser, TimeParser, TimestampParser, TimestampTzParser};
use super::typed::{CellRules, Cells, ColumnValues, FixedColumn, TextColumn};
use super::uuid::UuidParser;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Column, Dialect};
use crate::engine::read::record_index::RecordIndex;

/// Parses one column of a mapping, block after block.
///
/// `on_error` is left to the caller. Where it makes a null of a fault, the caller must look at `nullable`: such a null in a
/// column that takes none is a `null_not_allowed`.
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

    /// Appends the cells of `field` (position in the record) of every record of the block, in order; `None`: the source
    /// has no such column, nulls. A cell that can't be taken appends a null and pushes a fault; faults come in order of
    /// their rows. Every record of the block must be valid UTF-8.
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

    /// Makes room for `blocks` times what was appended since the last [`Self::finish`].
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

    /// Gives what was appended since the last call, of the type that [`crate::ports::arrow_types::arrow_type`] says.
    pub fn finish(&mut self) -> ArrayRef {
        self.values.finish()
    }

    /// Takes back the memory of an array that [`Self::finish`] gave, if nobody else has it, for values to come.
    pub fn recycle(&mut self, array: ArrayRef) {
        self.values.recycle(array);
    }
}

fn typed(column: &Column, dialect: &Dialect) -> Box<dyn ColumnValues> {
    let style = NumberStyle::new(dialect);
    match column.ty {
        DataType::Boolean => Box::new(FixedColumn::new(BooleanParser::new(dialect))),
        DataType::Int8 => Box::new(FixedColumn::new(IntegerParser::<Int8Type>::new(style))),
        DataType::Int16 => Box::new(FixedColumn::new(IntegerParser::<Int16Type>::new(style))),
        DataType::Int32 => Box::new(FixedColumn::new(IntegerParser::<Int32Type>::new(style))),
        DataType::Int64 => Box::new(FixedColumn::new(IntegerParser::<Int64Type>::new(style))),
        DataType::UInt8 => Box::new(FixedColumn::new(IntegerParser::<UInt8Type>::new(style))),
        DataType::UInt16 => Box::new(FixedColumn::new(IntegerParser::<UInt16Type>::new(style))),
        DataType::UInt32 => Box::new(FixedColumn::new(IntegerParser::<UInt32Type>::new(style))),
        DataType::UInt64 => Box::new(FixedColumn::new(IntegerParser::<UInt64Type>::new(style))),
        DataType::Float32 => Box::new(FixedColumn::new(Float32Parser::new(style))),
        DataType::Float64 => Box::new(FixedColumn::new(Float64Parser::new(style))),
        DataType::Decimal { precision, scale } => {
            Box::new(FixedColumn::new(DecimalParser::new(style, precision, scale)))
        }
        DataType::String => Box::new(TextColumn::new(false)),
        DataType::Json => Box::new(TextColumn::new(true)),
        DataType::Date => Box::new(FixedColumn::new(DateParser::new(&column.formats))),
        DataType::Time => Box::new(FixedColumn::new(TimeParser::new(&column.formats))),
        DataType::Timestamp => Box::new(FixedColumn::new(TimestampParser::new(&column.formats))),
        DataType::TimestampTz => Box::new(FixedColumn::new(TimestampTzParser::new(&column.formats, column.timezone))),
        DataType::Uuid => Box::new(FixedColumn::new(UuidParser)),
    }
}
