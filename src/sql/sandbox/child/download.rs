//! A whole result as a file's bytes, in pieces.
//!
//! Invariant: `Started` goes out once the first rows are there; an error after it ends the pieces with its reply, never
//! with `Complete`.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Decimal128Type, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use unicode_normalization::UnicodeNormalization;

use super::result::Reading;
use super::text::{Form, Plain, Sink, plain, value};
use super::{Failure, Out};
use crate::sql::sandbox::frame::{self, Kind, PIECE_BYTES_MAX};
use crate::sql::sandbox::task::{Format, Reply, SqlError, SqlErrorKind};

/// Longest text of one row, in bytes.
const ROW_BYTES_MAX: usize = 64 << 20;
/// Rows of a Parquet row group, and its bytes after which it is written.
const GROUP_ROWS_MAX: usize = 122_880;
const GROUP_BYTES_MAX: usize = 32 << 20;
/// Greatest number of 38 digits, the most that a decimal has.
const HUGE_MAX: u128 = 10_u128.pow(38) - 1;
/// Characters at a cell's start that make spreadsheets compute it, also as full-width, small or raised forms.
const FORMULA: &[char] = &['=', '+', '-', '@', '\u{2212}'];
/// Characters that spreadsheets drop, or take for the cell's end, before they look for [`FORMULA`].
const BREAKS: &[char] = &['\t', '\r', '\n', '\0'];

/// Writes the rest of `reading`.
pub fn write(reading: &mut Reading<'_>, format: Format, out: &mut Out) -> Result<(), Failure> {
    let first = reading.next()?;
    out.reply(&Reply::Started)?;
    let mut pieces = Pieces { out, waiting: Vec::with_capacity(PIECE_BYTES_MAX) };
    match format {
        Format::Csv => csv(reading, first, &mut pieces)?,
        Format::Json => json(reading, first, &mut pieces)?,
        Format::Parquet => parquet(reading, first, &mut pieces)?,
    }
    pieces.flush().map_err(Failure::Pipe)
}

/// Gathers bytes into frames.
struct Pieces<'a> {
    out: &'a mut Out,
    waiting: Vec<u8>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE_BYTES_MAX - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..count]);
        if self.waiting.len() == PIECE_BYTES_MAX {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            frame::write(self.out, Kind::Piece, &self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }
}

fn csv(reading: &mut Reading<'_>, first: Option<RecordBatch>, out: &mut Pieces<'_>) -> Result<(), Failure> {
    let header: Vec<String> = reading.columns().iter().map(|column| quoted(&harmless(column.name.clone()))).collect();
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
                let form = reading.forms()[at];
                match plain(column.as_ref(), row, form) {
                    Plain::Null => {}
                    Plain::Text(text) => line.push_str(&quoted(&harmless(text))),
                    Plain::Scalar(text) => line.push_str(&text),
                    Plain::Nested => {
                        let mut sink = Sink::new(ROW_BYTES_MAX);
                        value(column.as_ref(), row, form, &mut sink);
                        whole(&sink)?;
                        line.push_str(&quoted(&String::from_utf8_lossy(sink.bytes())));
                    }
                }
            }
            line.push_str("\r\n");
            out.write_all(line.as_bytes())?;
        }
        next = reading.next()?;
    }
    Ok(())
}

/// A text that no spreadsheet takes for a formula.
fn harmless(text: String) -> String {
    let first = text.chars().find(|c| !is_unseen(*c));
    let is_formula = first.is_some_and(|c| [c].into_iter().nfkc().any(|c| FORMULA.contains(&c)));
    if is_formula || text.starts_with(BREAKS) { format!("'{text}") } else { text }
}

/// White space, control characters, and characters without a width: what readers may drop from a cell's start.
fn is_unseen(c: char) -> bool {
    let ignorable = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    ignorable || c.is_whitespace() || c.is_control()
}

/// As RFC 4180 has it; an empty text is quoted, so that it isn't a null.
fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains(['"', ',', '\r', '\n']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn json(reading: &mut Reading<'_>, first: Option<RecordBatch>, out: &mut Pieces<'_>) -> Result<(), Failure> {
    let names: Vec<Vec<u8>> = unique(reading.columns().into_iter().map(|column| column.name))
        .iter()
        .map(|name| {
            let mut sink = Sink::new(ROW_BYTES_MAX);
            sink.string(name);
            sink.into_bytes()
        })
        .collect();
    out.write_all(b"[")?;
    let mut any = false;
    let mut next = first;
    while let Some(batch) = next {
        for row in 0..batch.num_rows() {
            let mut sink = Sink::new(ROW_BYTES_MAX);
            sink.push(if any { b",\n" } else { b"\n" });
            any = true;
            sink.push(b"{");
            for (at, column) in batch.columns().iter().enumerate() {
                if at > 0 {
                    sink.push(b",");
                }
                sink.push(&names[at]);
                sink.push(b":");
                value(column.as_ref(), row, reading.forms()[at], &mut sink);
            }
            sink.push(b"}");
            whole(&sink)?;
            out.write_all(sink.bytes())?;
        }
        next = reading.next()?;
    }
    out.write_all(b"\n]\n")?;
    Ok(())
}

fn whole(sink: &Sink) -> Result<(), Failure> {
    if sink.is_over() {
        return Err(Failure::Sql(SqlError::new(
            SqlErrorKind::TooLarge,
            format!("a row is longer than {ROW_BYTES_MAX} bytes"),
        )));
    }
    Ok(())
}

/// The names, those that came before with a number.
fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
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

fn parquet(reading: &mut Reading<'_>, first: Option<RecordBatch>, out: &mut Pieces<'_>) -> Result<(), Failure> {
    let source = reading.schema();
    let names = unique(source.fields().iter().map(|field| field.name().clone()));
    let as_text: Vec<bool> = source
        .fields()
        .iter()
        .zip(reading.forms())
        .enumerate()
        .map(|(at, (field, form))| {
            let beyond = || *form == Form::Huge && first.as_ref().is_some_and(|batch| !fits(batch.column(at)));
            *form == Form::Bits || !storable(field.data_type()) || beyond()
        })
        .collect();
    let fields = source.fields().iter().zip(&names).zip(&as_text).map(|((field, name), as_text)| {
        let ty = if *as_text { DataType::Utf8 } else { field.data_type().clone() };
        Field::new(name, ty, true)
    });
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let level = ZstdLevel::try_new(1).map_err(|error| Failure::Own(error.to_string()))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(GROUP_ROWS_MAX))
        .build();
    let fail = |error: parquet::errors::ParquetError| Failure::Own(format!("writing Parquet: {error}"));
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(fail)?;
    let mut next = first;
    while let Some(batch) = next {
        let columns = batch.columns().iter().enumerate().map(|(at, column)| match (as_text[at], reading.forms()[at]) {
            (true, form) => Ok(texts(column, form)),
            (false, Form::Huge) if !fits(column) => Err(beyond(&names[at])),
            (false, Form::AsItIs | Form::Huge | Form::Bits) => Ok(Arc::clone(column)),
        });
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect::<Result<_, _>>()?)
            .map_err(|error| Failure::Own(format!("writing Parquet: {error}")))?;
        writer.write(&batch).map_err(fail)?;
        if writer.in_progress_size() > GROUP_BYTES_MAX {
            writer.flush().map_err(fail)?;
        }
        next = reading.next()?;
    }
    writer.close().map(|_| ()).map_err(fail)
}

/// Whether whole numbers of 128 bits are such as the type that they are stored as holds.
fn fits(column: &ArrayRef) -> bool {
    let Some(numbers) = column.as_primitive_opt::<Decimal128Type>() else { return true };
    numbers.iter().flatten().all(|number| number.unsigned_abs() <= HUGE_MAX)
}

/// The first rows decided how the column is stored.
fn beyond(name: &str) -> Failure {
    let message = format!("the column `{name}` has a number of more than 38 digits; cast it to VARCHAR");
    Failure::Sql(SqlError::new(SqlErrorKind::Failed, message))
}

/// Whether Parquet has the type; the others go as text.
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

fn texts(column: &ArrayRef, form: Form) -> ArrayRef {
    let text = |row: usize| match plain(column.as_ref(), row, form) {
        Plain::Null => None,
        Plain::Text(text) | Plain::Scalar(text) => Some(text),
        Plain::Nested => {
            let mut sink = Sink::new(ROW_BYTES_MAX);
            value(column.as_ref(), row, form, &mut sink);
            Some(String::from_utf8_lossy(sink.bytes()).into_owned())
        }
    };
    Arc::new((0..column.len()).map(text).collect::<StringArray>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_texts() {
        for text in ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "\u{ff1d}1", "\u{ff0b}1", "\u{ff0d}1", "\u{ff20}1"]
        {
            assert_eq!(harmless(text.to_owned()), format!("'{text}"));
        }
        for text in ["a=1", "", " ", "\u{feff}", "\u{feff}a", "1-1", "(=1)", "é", "\u{1f600}"] {
            assert_eq!(harmless(text.to_owned()), text);
        }
    }

    /// Every character that a reader may drop, before every sign of a formula.
    #[test]
    fn nothing_unseen_hides_a_formula() {
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
                assert_eq!(harmless(text.clone()), format!("'{text}"), "{text:?}");
            }
        }
    }

    #[test]
    fn names_are_made_unique() {
        let names = ["a", "a", "a_1", "a"].map(str::to_owned).into_iter();
        assert_eq!(unique(names), ["a", "a_2", "a_1", "a_3"]);
    }
}
