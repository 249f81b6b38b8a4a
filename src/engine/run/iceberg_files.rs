//! Metrics of a written data file in Iceberg's manifests: null counts and bounds, from its footer.

use parquet::file::metadata::ParquetMetaData;

use super::footer_bounds::{ColumnBound, ColumnSummary};
use crate::domain::digest::hex;
use crate::domain::iceberg::{BOUNDS_COLUMNS_MAX, TEXT_BOUND_CHARS_MAX, decimal_bound};
use crate::domain::pipeline::Mapping;
use crate::domain::pipeline::types::DataType;
use crate::domain::table_log::entries::IcebergFile;

/// Digits of a decimal that fits in 64 bits.
const LONG_DIGITS_MAX: u8 = 18;

/// Describes the data files of one table.
#[derive(Debug, Clone)]
pub(super) struct IcebergFiles {
    /// The columns in the files.
    columns: Vec<DataType>,
}

impl IcebergFiles {
    pub(super) fn of(mapping: &Mapping) -> Self {
        Self { columns: mapping.stored_columns().into_iter().map(|at| mapping.columns[at].ty).collect() }
    }

    /// Describes a file by its footer.
    pub(super) fn describe(&self, metadata: &ParquetMetaData) -> IcebergFile {
        let mut file = IcebergFile::default();
        for (at, ty) in self.columns.iter().enumerate() {
            let ColumnSummary { bounds, nulls } = ColumnSummary::of(metadata, at, *ty);
            // DuckDB 1.4 takes columns without a count for columns without nulls.
            file.nulls.push(nulls);
            if at >= BOUNDS_COLUMNS_MAX {
                continue;
            }
            let [lower, upper] = bounds.map_or([None, None], |[min, max]| [Some(min), Some(max)]);
            file.lower.push(lower.and_then(|min| binary(&min, *ty, false)).map(|bytes| hex(&bytes)));
            file.upper.push(upper.and_then(|max| binary(&max, *ty, true)).map(|bytes| hex(&bytes)));
        }
        file
    }
}

/// A bound in the binary form of its column's type. `up`: how to round a long text.
fn binary(bound: &ColumnBound, ty: DataType, up: bool) -> Option<Vec<u8>> {
    match (bound, ty) {
        (ColumnBound::Int(value), DataType::Boolean) => Some(vec![u8::from(*value != 0)]),
        // DuckDB 1.4 misreads those of more digits, and leaves out files with rows.
        (ColumnBound::Int(_), DataType::Decimal { precision, .. }) if precision > LONG_DIGITS_MAX => None,
        (ColumnBound::Int(value), DataType::Decimal { .. }) => Some(decimal_bound(*value)),
        (ColumnBound::Int(value), DataType::Int64 | DataType::Timestamp | DataType::TimestampTz) => {
            i64::try_from(*value).ok().map(|value| value.to_le_bytes().to_vec())
        }
        (ColumnBound::Int(value), _) => i32::try_from(*value).ok().map(|value| value.to_le_bytes().to_vec()),
        // Widened when it was read, so that nothing is lost.
        (ColumnBound::Float(value), DataType::Float32) => Some((*value as f32).to_le_bytes().to_vec()),
        (ColumnBound::Float(value), _) => Some(value.to_le_bytes().to_vec()),
        (ColumnBound::Text(text), _) => cut(text, up).map(String::into_bytes),
    }
}

/// The first characters of a text; rounded up: the smallest greater text of that length, or `None` if there is none.
fn cut(text: &str, up: bool) -> Option<String> {
    let Some((end, _)) = text.char_indices().nth(TEXT_BOUND_CHARS_MAX) else { return Some(text.to_owned()) };
    let mut kept: Vec<char> = text[..end].chars().collect();
    if up {
        loop {
            let last = kept.pop()?;
            // Surrogates are not characters.
            let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
            if let Some(next) = next {
                kept.push(next);
                break;
            }
        }
    }
    Some(kept.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType as ArrowType, Field, Schema};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;

    #[test]
    fn wide_files_have_the_nulls_of_all_columns_and_the_bounds_of_the_first() {
        let width = BOUNDS_COLUMNS_MAX + 1;
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None]));
        let fields = (0..width).map(|at| Field::new(format!("c{at}"), ArrowType::Int64, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column; width]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes)).unwrap();
        let file = IcebergFiles { columns: vec![DataType::Int64; width] }.describe(&metadata);
        assert_eq!(file.nulls, vec![Some(1); width]);
        let three = Some(hex(&3_i64.to_le_bytes()));
        assert_eq!((file.lower, file.upper), (vec![three.clone(); width - 1], vec![three; width - 1]));
    }

    #[test]
    fn long_texts_are_rounded_outwards() {
        let long = "x".repeat(TEXT_BOUND_CHARS_MAX + 1);
        assert_eq!(cut(&long, false), Some("x".repeat(TEXT_BOUND_CHARS_MAX)));
        assert_eq!(cut(&long, true), Some(format!("{}y", "x".repeat(TEXT_BOUND_CHARS_MAX - 1))));
        let last = format!("a{}", "\u{10ffff}".repeat(TEXT_BOUND_CHARS_MAX));
        assert_eq!(cut(&last, true).as_deref(), Some("b"));
        assert_eq!(cut(&"\u{10ffff}".repeat(TEXT_BOUND_CHARS_MAX + 1), true), None);
        let before_surrogates = format!("{}\u{d7ff}z", "x".repeat(TEXT_BOUND_CHARS_MAX - 1));
        assert!(cut(&before_surrogates, true).is_some_and(|bound| bound > before_surrogates));
        assert_eq!(cut("short", true).as_deref(), Some("short"));
    }

    #[test]
    fn bounds_have_the_width_of_their_type() {
        assert_eq!(binary(&ColumnBound::Int(-2), DataType::Int8, false), Some(vec![0xfe, 0xff, 0xff, 0xff]));
        assert_eq!(binary(&ColumnBound::Int(1), DataType::Timestamp, true), Some(1_i64.to_le_bytes().to_vec()));
        assert_eq!(binary(&ColumnBound::Float(1.5), DataType::Float32, true), Some(1.5_f32.to_le_bytes().to_vec()));
        assert_eq!(binary(&ColumnBound::Int(1), DataType::Boolean, true), Some(vec![1]));
    }
}
