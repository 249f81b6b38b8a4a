//! Writes a whole result as a file, in frames.
//!
//! Invariant: `Started` follows the first rows; an error after it ends the stream with its reply, never with `Complete`.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Decimal128Type, Field, Schema, SchemaRef};
use lakemill::sql::sandbox::error::{SqlError, SqlErrorKind};
use lakemill::sql::sandbox::frame::{self, FrameKind, PIECE_BYTES_MAX};
use lakemill::sql::sandbox::json::{BoundedBuffer, ColumnForm, Rendered, render, write_value};
use lakemill::sql::sandbox::task::{ExportFormat, Reply};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use unicode_normalization::UnicodeNormalization;

use super::failure::TaskError;
use super::output::Output;
use super::result::ResultStream;

/// Longest text of one row, in bytes.
const ROW_BYTES_MAX: usize = 64 << 20;
/// Rows of a Parquet row group, and its bytes after which it is written.
const GROUP_ROWS_MAX: usize = 122_880;
const GROUP_BYTES_MAX: usize = 32 << 20;
/// Largest decimal: 38 digits.
const DECIMAL_MAX: u128 = 10_u128.pow(38) - 1;
/// Characters that start a formula in spreadsheets, including compatibility forms.
const FORMULA: &[char] = &['=', '+', '-', '@', '\u{2212}'];
/// Characters that spreadsheets skip, or treat as the end of a cell, before they check for a formula.
const BREAKS: &[char] = &['\t', '\r', '\n', '\0'];

/// Writes the rest of `stream`.
pub fn write(stream: &mut ResultStream<'_>, format: ExportFormat, out: &mut Output) -> Result<(), TaskError> {
    let first = stream.next()?;
    out.reply(&Reply::Started)?;
    let mut writer = FrameWriter { out, buffer: Vec::with_capacity(PIECE_BYTES_MAX) };
    match format {
        ExportFormat::Csv => csv(stream, first, &mut writer)?,
        ExportFormat::Json => json(stream, first, &mut writer)?,
        ExportFormat::Parquet => parquet(stream, first, &mut writer)?,
    }
    writer.flush().map_err(TaskError::Pipe)
}

/// Gathers bytes into frames.
struct FrameWriter<'a> {
    out: &'a mut Output,
    buffer: Vec<u8>,
}

impl Write for FrameWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE_BYTES_MAX - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == PIECE_BYTES_MAX {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            frame::write(self.out, FrameKind::Piece, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

fn csv(stream: &mut ResultStream<'_>, first: Option<RecordBatch>, out: &mut FrameWriter<'_>) -> Result<(), TaskError> {
    let header: Vec<String> =
        stream.columns().iter().map(|column| quote_csv(&escape_formula(column.name.clone()))).collect();
    out.write_all(header.join(",").as_bytes())?;
    out.write_all(b"\r\n")?;
    let mut next = first;
    while let Some(batch) = next {
        for row in 0..batch.num_rows() {
            let mut line = String::new();
            for (at, column) in batch.columns().iter().enumerate() {
                if at > 0 {
                    line.push(',');
                }
                let form = stream.forms()[at];
                match render(column.as_ref(), row, form) {
                    Rendered::Null => {}
                    Rendered::Text(text) => line.push_str(&quote_csv(&escape_formula(text))),
                    Rendered::Scalar(text) => line.push_str(&text),
                    Rendered::Nested => {
                        let mut row_bytes = BoundedBuffer::new(ROW_BYTES_MAX);
                        write_value(column.as_ref(), row, form, &mut row_bytes);
                        check_row_size(&row_bytes)?;
                        line.push_str(&quote_csv(&String::from_utf8_lossy(row_bytes.bytes())));
                    }
                }
            }
            line.push_str("\r\n");
            out.write_all(line.as_bytes())?;
        }
        next = stream.next()?;
    }
    Ok(())
}

/// Escapes a text that spreadsheets would read as a formula.
fn escape_formula(text: String) -> String {
    let first = text.chars().find(|c| !is_invisible(*c));
    let is_formula = first.is_some_and(|c| [c].into_iter().nfkc().any(|c| FORMULA.contains(&c)));
    if is_formula || text.starts_with(BREAKS) { format!("'{text}") } else { text }
}

/// Whether readers may drop the character from a cell's start: white space, control and zero-width characters.
fn is_invisible(c: char) -> bool {
    let ignorable = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    ignorable || c.is_whitespace() || c.is_control()
}

/// Quotes a cell by RFC 4180. An empty text gets quotes, which distinguishes it from a null.
fn quote_csv(text: &str) -> String {
    if text.is_empty() || text.contains(['"', ',', '\r', '\n']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn json(stream: &mut ResultStream<'_>, first: Option<RecordBatch>, out: &mut FrameWriter<'_>) -> Result<(), TaskError> {
    let names: Vec<Vec<u8>> = unique_names(stream.columns().into_iter().map(|column| column.name))
        .iter()
        .map(|name| {
            let mut row_bytes = BoundedBuffer::new(ROW_BYTES_MAX);
            row_bytes.string(name);
            row_bytes.into_bytes()
        })
        .collect();
    out.write_all(b"[")?;
    let mut any = false;
    let mut next = first;
    while let Some(batch) = next {
        for row in 0..batch.num_rows() {
            let mut row_bytes = BoundedBuffer::new(ROW_BYTES_MAX);
            row_bytes.push(if any { b",\n" } else { b"\n" });
            any = true;
            row_bytes.push(b"{");
            for (at, column) in batch.columns().iter().enumerate() {
                if at > 0 {
                    row_bytes.push(b",");
                }
                row_bytes.push(&names[at]);
                row_bytes.push(b":");
                write_value(column.as_ref(), row, stream.forms()[at], &mut row_bytes);
            }
            row_bytes.push(b"}");
            check_row_size(&row_bytes)?;
            out.write_all(row_bytes.bytes())?;
        }
        next = stream.next()?;
    }
    out.write_all(b"\n]\n")?;
    Ok(())
}

fn check_row_size(row_bytes: &BoundedBuffer) -> Result<(), TaskError> {
    if row_bytes.is_full() {
        return Err(TaskError::Sql(SqlError::new(
            SqlErrorKind::TooLarge,
            format!("a row is longer than {ROW_BYTES_MAX} bytes"),
        )));
    }
    Ok(())
}

/// Appends a number to repeated names.
fn unique_names(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: Vec<String> = names.collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut out = Vec::with_capacity(names.len());
    for name in &names {
        let mut made = name.clone();
        let mut number = 1_u32;
        while taken.contains(&made) || (number > 1 && names.contains(&made)) {
            made = format!("{name}_{number}");
            number += 1;
        }
        taken.insert(made.clone());
        out.push(made);
    }
    out
}

fn parquet(
    stream: &mut ResultStream<'_>,
    first: Option<RecordBatch>,
    out: &mut FrameWriter<'_>,
) -> Result<(), TaskError> {
    let source = stream.schema();
    let names = unique_names(source.fields().iter().map(|field| field.name().clone()));
    let as_text: Vec<bool> = source
        .fields()
        .iter()
        .zip(stream.forms())
        .enumerate()
        .map(|(at, (field, form))| {
            let too_many_digits =
                || *form == ColumnForm::HugeInt && first.as_ref().is_some_and(|batch| !fits(batch.column(at)));
            *form == ColumnForm::BitString || !storable(field.data_type()) || too_many_digits()
        })
        .collect();
    let fields = source.fields().iter().zip(&names).zip(&as_text).map(|((field, name), as_text)| {
        let ty = if *as_text { DataType::Utf8 } else { field.data_type().clone() };
        Field::new(name, ty, true)
    });
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let level = ZstdLevel::try_new(1).map_err(|error| TaskError::Internal(error.to_string()))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
        .build();
    let fail = |error: parquet::errors::ParquetError| TaskError::Internal(format!("writing Parquet: {error}"));
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(fail)?;
    let mut next = first;
    while let Some(batch) = next {
        let columns = batch.columns().iter().enumerate().map(|(at, column)| match (as_text[at], stream.forms()[at]) {
            (true, form) => Ok(to_text(column, form)),
            (false, ColumnForm::HugeInt) if !fits(column) => Err(too_many_digits(&names[at])),
            (false, ColumnForm::Native | ColumnForm::HugeInt | ColumnForm::BitString) => Ok(Arc::clone(column)),
        });
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect::<Result<_, _>>()?)
            .map_err(|error| TaskError::Internal(format!("writing Parquet: {error}")))?;
        writer.write(&batch).map_err(fail)?;
        if writer.in_progress_size() > GROUP_BYTES_MAX {
            writer.flush().map_err(fail)?;
        }
        next = stream.next()?;
    }
    writer.close().map(|_| ()).map_err(fail)
}

/// Whether 128-bit integers fit a decimal.
fn fits(column: &ArrayRef) -> bool {
    let Some(numbers) = column.as_primitive_opt::<Decimal128Type>() else { return true };
    numbers.iter().flatten().all(|number| number.unsigned_abs() <= DECIMAL_MAX)
}

/// The first rows decide the column's type; a later number doesn't fit.
fn too_many_digits(name: &str) -> TaskError {
    let message = format!("the column `{name}` has a number of more than 38 digits; cast it to VARCHAR");
    TaskError::Sql(SqlError::new(SqlErrorKind::Failed, message))
}

/// Whether Parquet has the type; other types become text.
fn storable(ty: &DataType) -> bool {
    match ty {
        DataType::Interval(_) | DataType::Union(_, _) | DataType::Null => false,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            storable(field.data_type())
        }
        DataType::Struct(fields) => !fields.is_empty() && fields.iter().all(|field| storable(field.data_type())),
        DataType::Map(field, _) => storable(field.data_type()),
        _ => true,
    }
}

fn to_text(column: &ArrayRef, form: ColumnForm) -> ArrayRef {
    let text = |row: usize| match render(column.as_ref(), row, form) {
        Rendered::Null => None,
        Rendered::Text(text) | Rendered::Scalar(text) => Some(text),
        Rendered::Nested => {
            let mut row_bytes = BoundedBuffer::new(ROW_BYTES_MAX);
            write_value(column.as_ref(), row, form, &mut row_bytes);
            Some(String::from_utf8_lossy(row_bytes.bytes()).into_owned())
        }
    };
    Arc::new((0..column.len()).map(text).collect::<StringArray>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_escaped() {
        for text in ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "\u{ff1d}1", "\u{ff0b}1", "\u{ff0d}1", "\u{ff20}1"]
        {
            assert_eq!(escape_formula(text.to_owned()), format!("'{text}"));
        }
        for text in ["a=1", "", " ", "\u{feff}", "\u{feff}a", "1-1", "(=1)", "é", "\u{1f600}"] {
            assert_eq!(escape_formula(text.to_owned()), text);
        }
    }

    /// Every character that a reader may drop, before every sign of a formula.
    #[test]
    fn invisible_characters_hide_no_formula() {
        let before = [
            "\u{feff}",
            "\0",
            "\u{1}",
            "\u{7f}",
            "\u{85}",
            " ",
            "\u{a0}",
            "\u{2003}",
            "\u{3000}",
            "\u{200b}",
            "\u{200d}",
            "\u{200e}",
            "\u{202e}",
            "\u{2060}",
            "\u{2066}",
            "\u{ad}",
            "\u{fe0f}",
            "\u{e0001}",
            "\u{fffd}",
            "\u{feff}\u{feff} \0",
            "\u{2028}",
        ];
        let signs = [
            "=", "+", "-", "@", "\u{ff1d}", "\u{ff0b}", "\u{ff0d}", "\u{ff20}", "\u{fe66}", "\u{fe62}", "\u{fe63}",
            "\u{fe6b}",
        ];
        for before in before {
            for sign in signs {
                let text = format!("{before}{sign}cmd|'/c calc'!A1");
                assert_eq!(escape_formula(text.clone()), format!("'{text}"), "{text:?}");
            }
        }
    }

    #[test]
    fn repeated_names_get_numbers() {
        let names = ["a", "a", "a_1", "a"].map(str::to_owned).into_iter();
        assert_eq!(unique_names(names), ["a", "a_2", "a_1", "a_3"]);
    }
}
