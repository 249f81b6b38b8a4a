//! Reads the encoder's output with the `parquet` crate.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, StringArray, make_array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::Schema;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::writer::SerializedFileWriter;

use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::{Compression, Encodings};
use crate::engine::encode::ColumnEncoder;
use crate::ports::arrow_types::arrow_field;

const ROWS_MAX: usize = 4_000;

/// Types, with the bytes of a value in the input.
const TYPES: [(DataType, usize); 16] = [
    (DataType::Boolean, 1),
    (DataType::Int8, 1),
    (DataType::Int16, 2),
    (DataType::Int32, 4),
    (DataType::Int64, 8),
    (DataType::UInt8, 1),
    (DataType::UInt32, 4),
    (DataType::UInt64, 8),
    (DataType::Float32, 4),
    (DataType::Float64, 8),
    (DataType::String, 0),
    (DataType::Date, 2),
    (DataType::TimestampTz, 5),
    (DataType::Uuid, 16),
    (DataType::Decimal { precision: 9, scale: 2 }, 3),
    (DataType::Decimal { precision: 38, scale: 10 }, 12),
];

/// The first four bytes choose type, nulls, repetition, slabs and codec; the rest are values.
pub fn encoder(input: &[u8]) {
    let Some((&[ty, nulls, repeat, slab], bytes)) = input.split_first_chunk() else { return };
    let (ty, width) = TYPES[usize::from(ty) % TYPES.len()];
    let array = array(ty, width, nulls, 1 + usize::from(repeat), bytes);
    if array.is_empty() {
        return;
    }
    let schema = Arc::new(Schema::new(vec![arrow_field("c", ty, nulls & 7 != 0)]));
    let compression = [Compression::None, Compression::Zstd(1), Compression::Snappy][usize::from(nulls >> 3) % 3];

    let slab_rows = 1 + usize::from(slab) * 11;
    let descriptors = ArrowSchemaConverter::new().convert(&schema).expect("the type has a column");
    let mut encoder = ColumnEncoder::new(descriptors.column(0), array.data_type(), compression, Encodings::Compact);
    for start in (0..array.len()).step_by(slab_rows) {
        let rows = slab_rows.min(array.len() - start);
        // Split in two parts, which must not change the result.
        let first = rows * usize::from(repeat & 3) / 3;
        encoder.write(&[array.slice(start, first), array.slice(start + first, rows - first)]).expect("it encodes");
        assert!(encoder.held_bytes() > 0);
    }
    let chunk = encoder.close().expect("it encodes");

    let mut writer =
        SerializedFileWriter::new(Vec::new(), descriptors.root_schema_ptr(), Arc::default()).expect("it writes");
    let mut group = writer.next_row_group().expect("it writes");
    group.append_column(&chunk.pages, chunk.close).expect("the column fits");
    group.close().expect("it writes");
    let file: bytes::Bytes = writer.into_inner().expect("it writes").into();

    let options = ArrowReaderOptions::new().with_schema(schema).with_page_index_policy(PageIndexPolicy::Optional);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).expect("it is a file");
    let mut at = 0;
    for batch in reader.with_batch_size(777).build().expect("it is read") {
        let batch = batch.expect("it is read");
        let expected = array.slice(at, batch.num_rows());
        assert_same(batch.column(0), &expected);
        at += batch.num_rows();
    }
    assert_eq!(at, array.len());
}

/// Compared as bits, since NaN equals nothing.
fn assert_same(found: &ArrayRef, expected: &ArrayRef) {
    use arrow::array::AsArray;
    use arrow::datatypes::{Float32Type, Float64Type};
    match expected.data_type() {
        arrow::datatypes::DataType::Float64 => {
            let bits = |a: &ArrayRef| a.as_primitive::<Float64Type>().iter().map(|v| v.map(f64::to_bits)).collect();
            let (found, expected): (Vec<_>, Vec<_>) = (bits(found), bits(expected));
            assert_eq!(found, expected);
        }
        arrow::datatypes::DataType::Float32 => {
            let bits = |a: &ArrayRef| a.as_primitive::<Float32Type>().iter().map(|v| v.map(f32::to_bits)).collect();
            let (found, expected): (Vec<_>, Vec<_>) = (bits(found), bits(expected));
            assert_eq!(found, expected);
        }
        _ => assert_eq!(found.as_ref(), expected.as_ref()),
    }
}

/// The values repeated, with nulls by `nulls`.
fn array(ty: DataType, width: usize, nulls: u8, repeat: usize, bytes: &[u8]) -> ArrayRef {
    let texts: Vec<String> =
        bytes.split(|byte| *byte == b'\n').map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    let values = bytes.len().checked_div(width).unwrap_or(texts.len());
    let rows = (values * repeat).min(ROWS_MAX);
    let is_null = |row: usize| match nulls & 7 {
        0 => false,
        1 => true,
        2 => row % 7 == 3,
        3 => row % 7 != 3,
        4 => row < rows / 2,
        5 => row >= rows / 2,
        6 => (row / 100).is_multiple_of(2),
        _ => bytes.get(row % bytes.len().max(1)).is_none_or(|byte| byte & 1 == 0),
    };
    let validity = (nulls & 7 != 0).then(|| NullBuffer::from_iter((0..rows).map(|row| !is_null(row))));
    if width == 0 {
        let texts = (0..rows).map(|row| if is_null(row) { None } else { Some(texts[row % texts.len()].as_str()) });
        return Arc::new(StringArray::from_iter(texts));
    }
    let number = |row: usize| {
        let from = row % values * width;
        let mut wide = [0; 16];
        wide[..width].copy_from_slice(&bytes[from..from + width]);
        i128::from_le_bytes(wide)
    };
    let field = arrow_field("c", ty, true);
    let buffer = if ty == DataType::Boolean {
        arrow::buffer::BooleanBuffer::from_iter((0..rows).map(|row| number(row) & 1 == 1)).into_inner()
    } else {
        let held = match field.data_type() {
            arrow::datatypes::DataType::FixedSizeBinary(width) => *width as usize,
            other => other.primitive_width().expect("its values are of one size"),
        };
        let sign = |row: usize, value: i128| if row.is_multiple_of(3) { -value } else { value };
        let value = |row: usize| match ty {
            DataType::Decimal { precision, .. } => sign(row, number(row) % 10_i128.pow(precision.into())),
            DataType::Date | DataType::TimestampTz => sign(row, number(row)),
            _ => number(row),
        };
        Buffer::from_iter((0..rows).flat_map(|row| value(row).to_le_bytes().into_iter().take(held)))
    };
    let data =
        ArrayData::builder(field.data_type().clone()).len(rows).add_buffer(buffer).nulls(validity).align_buffers(true);
    make_array(data.build().expect("the buffers fit"))
}
