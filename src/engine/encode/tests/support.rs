use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, PrimitiveArray, RecordBatch, StringArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes as dt;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::super::{ColumnChunk, ColumnEncoder};
use crate::domain::pipeline::types::DataType as Declared;
use crate::domain::pipeline::{Compression, Encodings};
use crate::ports::arrow_types::arrow_field;

/// Deterministic pseudo-random numbers.
pub(super) struct Rng(pub u64);

impl Rng {
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }
}

/// Every type that a column can be declared as.
pub(super) fn declared() -> Vec<Declared> {
    use Declared::{
        Boolean, Date, Float32, Float64, Int8, Int16, Int32, Int64, Json, String, Time, Timestamp, TimestampTz, UInt8,
        UInt16, UInt32, UInt64, Uuid,
    };
    let decimal = |precision, scale| Declared::Decimal { precision, scale };
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        String,
        Json,
        Date,
        Time,
        Timestamp,
        TimestampTz,
        Uuid,
        decimal(1, 0),
        decimal(9, 2),
        decimal(18, 4),
        decimal(38, 10),
    ]
}

/// The sequence of numbers from which a column's values are generated.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Constant,
    Few,
    Runs,
    Rising,
    Half,
    Any,
}

pub(super) const SHAPES: [Shape; 6] =
    [Shape::Constant, Shape::Few, Shape::Runs, Shape::Rising, Shape::Half, Shape::Any];

pub(super) fn numbers(shape: Shape, rows: usize, rng: &mut Rng) -> Vec<u64> {
    let (mut value, mut left) = (rng.next_u64(), 0);
    let next = |row: usize| {
        match shape {
            Shape::Constant => {}
            Shape::Few => value = rng.below(11) * 0x0101_0101,
            Shape::Runs if left == 0 => (value, left) = (rng.below(40), rng.below(300)),
            Shape::Runs => left -= 1,
            Shape::Rising => value = (row as u64) * 1_000_000 + rng.below(500),
            Shape::Half => value = rng.below(rows as u64),
            Shape::Any => value = rng.next_u64(),
        }
        value
    };
    (0..rows).map(next).collect()
}

/// Validity of rows; `None`: all are there.
pub(super) fn presence(kind: usize, rows: usize, rng: &mut Rng) -> Option<Vec<bool>> {
    Some(match kind {
        0 => return None,
        1 => vec![false; rows],
        2 => (0..rows).map(|_| rng.below(10) > 0).collect(),
        3 => (0..rows).map(|_| rng.below(10) == 0).collect(),
        _ => (0..rows).map(|row| row / 500 % 2 == 1).collect(),
    })
}

fn primitive<T: ArrowPrimitiveType>(
    values: impl Iterator<Item = T::Native>,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<T> {
    PrimitiveArray::new(ScalarBuffer::from_iter(values), nulls)
}

/// Text of a number; some numbers have none, or a long one.
fn text(number: u64) -> String {
    match number % 97 {
        0 => String::new(),
        1 => format!("{}é{number}", "long-".repeat(12)),
        2 => format!("{}{number}", "\u{10ffff}".repeat(17)),
        _ => format!("https://example.com/{number}"),
    }
}

/// An array of the type; `junk` determines the bytes under its nulls.
pub(super) fn array(ty: Declared, numbers: &[u64], valid: Option<&[bool]>, junk: u64) -> ArrayRef {
    let nulls = valid.map(|valid| NullBuffer::from(valid.to_vec()));
    let is_valid = |row: usize| valid.is_none_or(|valid| valid[row]);
    let number = |row: usize| if is_valid(row) { numbers[row] } else { junk ^ row as u64 };
    let all = || (0..numbers.len()).map(number);
    let decimal = |modulus: i128| {
        all().map(move |n| (i128::from(n) << 40 | i128::from(n)) % modulus * if n % 2 == 0 { 1 } else { -1 })
    };
    match ty {
        Declared::Boolean => Arc::new(BooleanArray::new(BooleanBuffer::from_iter(all().map(|n| n % 3 == 0)), nulls)),
        Declared::Int8 => Arc::new(primitive::<dt::Int8Type>(all().map(|n| n as i8), nulls)),
        Declared::Int16 => Arc::new(primitive::<dt::Int16Type>(all().map(|n| n as i16), nulls)),
        Declared::Int32 => Arc::new(primitive::<dt::Int32Type>(all().map(|n| n as i32), nulls)),
        Declared::Int64 => Arc::new(primitive::<dt::Int64Type>(all().map(|n| n as i64), nulls)),
        Declared::UInt8 => Arc::new(primitive::<dt::UInt8Type>(all().map(|n| n as u8), nulls)),
        Declared::UInt16 => Arc::new(primitive::<dt::UInt16Type>(all().map(|n| n as u16), nulls)),
        Declared::UInt32 => Arc::new(primitive::<dt::UInt32Type>(all().map(|n| n as u32), nulls)),
        Declared::UInt64 => Arc::new(primitive::<dt::UInt64Type>(all(), nulls)),
        Declared::Float32 => Arc::new(primitive::<dt::Float32Type>(all().map(|n| f32::from_bits(n as u32)), nulls)),
        Declared::Float64 => {
            let float = |n: u64| match n % 8 {
                0 => -0.0,
                1 => f64::NAN,
                2 => f64::from_bits(n),
                _ => (n % 100_000) as f64 / 100.0,
            };
            Arc::new(primitive::<dt::Float64Type>(all().map(float), nulls))
        }
        Declared::Decimal { precision, scale } => {
            let values = decimal(10_i128.pow(precision.into()));
            let array = Decimal128Array::new(ScalarBuffer::from_iter(values), nulls);
            Arc::new(array.with_precision_and_scale(precision, scale as i8).unwrap())
        }
        Declared::String | Declared::Json => {
            let texts: Vec<String> = all().map(text).collect();
            let offsets = OffsetBuffer::from_lengths(texts.iter().map(String::len));
            Arc::new(StringArray::new(offsets, Buffer::from(texts.concat().as_bytes()), nulls))
        }
        Declared::Date => Arc::new(primitive::<dt::Date32Type>(all().map(|n| (n % 100_000) as i32 - 50_000), nulls)),
        Declared::Time => Arc::new(primitive::<dt::Time64MicrosecondType>(all().map(|n| (n % 86_400) as i64), nulls)),
        Declared::Timestamp => Arc::new(primitive::<dt::TimestampMicrosecondType>(all().map(|n| n as i64 >> 8), nulls)),
        Declared::TimestampTz => {
            let array = primitive::<dt::TimestampMicrosecondType>(all().map(|n| n as i64 >> 8), nulls);
            Arc::new(array.with_timezone("UTC"))
        }
        Declared::Uuid => {
            let bytes: Vec<u8> =
                all().flat_map(|n| [n.to_be_bytes(), n.wrapping_mul(3).to_le_bytes()].concat()).collect();
            Arc::new(FixedSizeBinaryArray::new(16, Buffer::from(bytes), nulls))
        }
    }
}

/// The array cut at random.
pub(super) fn cut(array: &ArrayRef, rng: &mut Rng) -> Vec<ArrayRef> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < array.len() {
        let rows = (1 + rng.below(array.len() as u64 / 3 + 2) as usize).min(array.len() - at);
        pieces.push(array.slice(at, rows));
        at += rows;
    }
    pieces
}

pub(super) fn schema_of(ty: Declared, nullable: bool) -> SchemaRef {
    let field: Field = arrow_field("c", ty, nullable);
    Arc::new(Schema::new(vec![field]))
}

pub(super) fn encoder(schema: &SchemaRef, compression: Compression) -> ColumnEncoder {
    encoder_of(schema, compression, Encodings::Compact)
}

pub(super) fn encoder_of(schema: &SchemaRef, compression: Compression, encodings: Encodings) -> ColumnEncoder {
    let descriptors = ArrowSchemaConverter::new().convert(schema).unwrap();
    let data_type: &DataType = schema.field(0).data_type();
    ColumnEncoder::new(descriptors.column(0), data_type, compression, encodings)
}

/// Encodes slabs to a column chunk.
pub(super) fn encode(schema: &SchemaRef, slabs: &[Vec<ArrayRef>], compression: Compression) -> ColumnChunk {
    let mut encoder = encoder(schema, compression);
    for slab in slabs {
        encoder.write(slab).unwrap();
    }
    encoder.close().unwrap()
}

/// A file of one row group of one column.
pub(super) fn file(schema: &SchemaRef, chunk: ColumnChunk) -> Bytes {
    let root = ArrowSchemaConverter::new().convert(schema).unwrap().root_schema_ptr();
    let mut writer = SerializedFileWriter::new(Vec::new(), root, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    group.append_column(&chunk.pages, chunk.close).unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap().into()
}

/// The same rows written by the crate, with this number of rows per page.
pub(super) fn by_crate(schema: &SchemaRef, array: &ArrayRef, page_rows: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_statistics_truncate_length(Some(64))
        .set_column_index_truncate_length(Some(64))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties)).unwrap();
    writer.write(&RecordBatch::try_new(Arc::clone(schema), vec![Arc::clone(array)]).unwrap()).unwrap();
    writer.into_inner().unwrap().into()
}

pub(super) fn metadata(file: &Bytes) -> ArrowReaderMetadata {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
    ArrowReaderMetadata::load(file, options.with_encoding_stats_as_mask(false)).unwrap()
}

pub(super) fn read(schema: &SchemaRef, file: &Bytes) -> ArrayRef {
    let options = ArrowReaderOptions::new().with_schema(Arc::clone(schema));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
    let batches: Vec<ArrayRef> =
        reader.with_batch_size(777).build().unwrap().map(|batch| Arc::clone(batch.unwrap().column(0))).collect();
    arrow::compute::concat(&batches.iter().map(AsRef::as_ref).collect::<Vec<_>>()).unwrap()
}
