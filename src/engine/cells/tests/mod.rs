//! Tables of cells and their expected values, for every type.

mod formatted;
mod numbers;
mod properties;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod simd;
mod texts;
mod times;

use std::fmt::Write as _;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType as Arrow, Decimal128Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::*;
use crate::domain::name::ColumnName;
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Column, ColumnSource, Dialect, OnError, RaggedRows};
use crate::engine::read::record_index::{FieldRange, RecordIndex};
use crate::ports::arrow_types::arrow_type;

pub(super) fn dialect() -> Dialect {
    Dialect { ragged_rows: RaggedRows::Pad, ..Dialect::default() }
}

pub(super) fn column(ty: &str) -> Column {
    Column {
        name: ColumnName::parse("c").unwrap(),
        ty: DataType::parse(ty).unwrap(),
        source: ColumnSource::Position(1),
        nullable: true,
        on_error: OnError::Reject,
        formats: Vec::new(),
        number_format: None,
        timezone: None,
    }
}

pub(super) fn formatted(ty: &str, formats: &[&str]) -> Column {
    Column { formats: formats.iter().map(|f| (*f).to_owned()).collect(), ..column(ty) }
}

/// A block of records `x,CELL,x`; a cell that starts with `"` is quoted (to its end), and escaped if the rest holds `""` or
/// the dialect's escape byte; `<absent>` is a cell that its record does not have.
pub(super) fn block(dialect: &Dialect, cells: &[&str]) -> (Vec<u8>, RecordIndex) {
    let mut text = Vec::new();
    let mut index = RecordIndex { width: 3, ..RecordIndex::default() };
    for cell in cells {
        let record = text.len();
        text.extend_from_slice(b"x,");
        let field = match cell.strip_prefix('"') {
            Some(content) => {
                let content = content.strip_suffix('"').expect("a closing quote");
                text.push(b'"');
                let start = text.len();
                text.extend_from_slice(content.as_bytes());
                let escaped = content.as_bytes().iter().any(|b| Some(*b) == dialect.escape.or(dialect.quote));
                let field = FieldRange::new(start, text.len(), true, escaped);
                text.push(b'"');
                field
            }
            None if *cell == "<absent>" => FieldRange::ABSENT,
            None => {
                let start = text.len();
                text.extend_from_slice(cell.as_bytes());
                FieldRange::new(start, text.len(), false, false)
            }
        };
        text.push(b',');
        let last = FieldRange::new(text.len(), text.len() + 1, false, false);
        text.extend_from_slice(b"x\n");
        index.fields.extend([FieldRange::new(record, record + 1, false, false), field, last]);
        index.records.push((record as u32, text.len() as u32 - 1));
    }
    (text, index)
}

pub(super) fn build(column: &Column, dialect: &Dialect, cells: &[&str]) -> (ArrayRef, Vec<CellFault>) {
    let (text, index) = block(dialect, cells);
    let mut builder = ColumnBuilder::new(column, dialect);
    let mut faults = Vec::new();
    builder.append(&text, &index, Some(1), &mut faults);
    assert_eq!(builder.len(), cells.len());
    let array = builder.finish();
    assert_eq!(array.data_type(), &arrow_type(column.ty));
    assert!(builder.is_empty());
    for fault in &faults {
        assert!(array.is_null(fault.row), "a fault leaves a null");
        assert_eq!(fault.reason, fault.kind.reason());
    }
    (array, faults)
}

/// The value at `row` as text: `null`, or `!` and the kind of its fault.
pub(super) fn show(array: &ArrayRef, faults: &[CellFault], row: usize) -> String {
    if let Some(fault) = faults.iter().find(|fault| fault.row == row) {
        return format!("!{:?}", fault.kind);
    }
    if array.is_null(row) {
        return "null".into();
    }
    if let Arrow::Decimal128(..) = array.data_type() {
        return array.as_primitive::<Decimal128Type>().value_as_string(row);
    }
    let options = FormatOptions::default();
    ArrayFormatter::try_new(array.as_ref(), &options).unwrap().value(row).to_string()
}

/// Checks pairs of a cell and its expected value; all are built in one block.
pub(super) fn check(column: &Column, dialect: &Dialect, table: &[(&str, &str)]) {
    let cells: Vec<&str> = table.iter().map(|(cell, _)| *cell).collect();
    let (array, faults) = build(column, dialect, &cells);
    let mut wrong = String::new();
    for (row, (cell, expect)) in table.iter().enumerate() {
        let found = show(&array, &faults, row);
        if found != *expect {
            writeln!(wrong, "{} `{cell}`: expected {expect}, found {found}", column.ty).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The message of the only fault of a cell.
pub(super) fn message(column: &Column, dialect: &Dialect, cell: &str) -> String {
    let (text, index) = block(dialect, &[cell]);
    let (_, faults) = build(column, dialect, &[cell]);
    assert_eq!(faults.len(), 1, "{cell}");
    faults[0].message(column, &cell_text(&text, index.field(0, 1), dialect))
}
