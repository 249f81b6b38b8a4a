//! Measures parts of a conversion in bytes per second: splitting text into records, parsing cells, encoding pages.
//!
//! `scripts/bench micro` runs it, or `cargo bench --bench micro -- NAME`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::Schema;
use divan::Bencher;
use divan::counter::BytesCount;
use parquet::arrow::ArrowSchemaConverter;

use lakemill::domain::name::ColumnName;
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::pipeline::{Column, ColumnSource, Compression, Dialect, Encodings, OnError};
use lakemill::engine::cells::ColumnBuilder;
use lakemill::engine::encode::ColumnEncoder;
use lakemill::engine::read::chunk::Chunk;
use lakemill::engine::read::index::{BLOCK_BYTES_DEFAULT, Indexer};
use lakemill::engine::read::record_index::RecordIndex;
use lakemill::ports::arrow_types::arrow_field;

fn main() {
    divan::main();
}

/// Rows of a table, and of a slab, the unit of encoding.
const ROWS: usize = 20_000;

/// Deterministic pseudo-random numbers.
fn random(row: usize) -> u64 {
    let mut value = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn text_of(row: impl Fn(usize) -> String) -> Chunk {
    Chunk::from_text((0..ROWS).flat_map(|at| (row(at) + "\n").into_bytes()).collect())
}

fn dialect() -> Dialect {
    Dialect { header: false, ..Dialect::default() }
}

/// CSV dialects, with the cells of a record.
const FORMS: [(&str, usize); 3] = [("plain", 6), ("quoted", 3), ("escaped", 3)];

fn csv(form: &str) -> Chunk {
    text_of(|row| {
        let number = random(row);
        match form {
            "plain" => format!(
                "{row},{},{}.{:02},2024-02-{:02},city-{},",
                number % 1000,
                number % 90,
                number % 97,
                1 + number % 28,
                number % 40
            ),
            "quoted" => format!("{row},\"a, b and {}\",\"{}\"", number % 999, "x".repeat(number as usize % 40)),
            _ => format!("{row},\"say \"\"{}\"\"\",\"two\nlines\"", number % 999),
        }
    })
}

#[divan::bench(args = FORMS)]
fn tokenise(bencher: Bencher<'_, '_>, (form, width): (&str, usize)) {
    let chunk = csv(form);
    let dialect = dialect();
    let mut indexer = Indexer::new(&dialect, width, dialect.ragged_rows);
    let mut block = RecordIndex::default();
    bencher.counter(BytesCount::new(chunk.text.len())).bench_local(|| {
        let (mut pos, mut rows) = (0, 0);
        while indexer.next_block(&chunk, &mut pos, BLOCK_BYTES_DEFAULT, &mut block) {
            rows += block.rows();
        }
        assert_eq!(rows, ROWS);
    });
}

/// A type, and how to format a random number as one.
fn cell(ty: &str, row: usize) -> String {
    let number = random(row);
    let (day, second) = (1 + number % 28, number % 60);
    match ty {
        "int64" => (number % 10_000_000).to_string(),
        "float64" => format!("{}.{}", number % 1000, number / 1000 % 100_000),
        "float64 long" => format!("{:?}", (number >> 11) as f64 / (1_u64 << 53) as f64),
        "decimal(18,4)" => format!("{}.{:04}", number % 100_000, number % 9_999),
        "boolean" => number.is_multiple_of(2).to_string(),
        "date" => format!("2024-{:02}-{day:02}", 1 + number % 12),
        "time" => format!("{:02}:{:02}:{second:02}", number % 24, number % 59),
        "timestamp" => format!("2024-02-{day:02} {:02}:30:{second:02}", number % 24),
        "timestamp by format" => format!("{day:02}.02.2024 {:02}:30", number % 24),
        "timestamptz" => format!("2024-02-{day:02}T{:02}:30:{second:02}.{:03}Z", number % 24, number % 1000),
        "uuid" => format!("{number:016x}{:016x}", number.rotate_left(7)),
        "json" => format!("[{number}]"),
        _ => format!("{}-{number:x}", "text".repeat(row % 5)),
    }
}

const TYPES: [&str; 13] = [
    "boolean",
    "date",
    "decimal(18,4)",
    "float64",
    "float64 long",
    "int64",
    "json",
    "string",
    "time",
    "timestamp",
    "timestamp by format",
    "timestamptz",
    "uuid",
];

#[divan::bench(args = TYPES)]
fn parse(bencher: Bencher<'_, '_>, ty: &str) {
    let chunk = text_of(|row| cell(ty, row));
    let dialect = dialect();
    let name = ty.split(' ').next().unwrap_or(ty);
    let formats = if ty.ends_with("format") { vec!["%d.%m.%Y %H:%M".to_owned()] } else { Vec::new() };
    let column = Column {
        name: ColumnName::parse("c").expect("it is a name"),
        ty: DataType::parse(name).expect("it is a type"),
        source: ColumnSource::Position(0),
        nullable: true,
        on_error: OnError::Reject,
        formats,
        number_format: None,
        timezone: None,
    };
    let mut block = RecordIndex::default();
    let mut indexer = Indexer::new(&dialect, 1, dialect.ragged_rows);
    assert!(indexer.next_block(&chunk, &mut 0, chunk.text.len(), &mut block));
    let mut builder = ColumnBuilder::new(&column, &dialect);
    let mut faults = Vec::new();
    bencher.counter(BytesCount::new(chunk.text.len() - ROWS)).bench_local(|| {
        builder.append(&chunk.text, &block, Some(0), &mut faults);
        assert!(faults.is_empty());
        builder.finish()
    });
}

/// Rows for which the encoder uses each of its encodings.
fn column(kind: &str) -> (DataType, ArrayRef) {
    let rows = 0..ROWS;
    let text = |of: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from((0..ROWS).map(of).collect::<Vec<_>>()))
    };
    match kind {
        "integers: dictionary" => {
            (DataType::Int64, Arc::new(Int64Array::from_iter_values(rows.map(|r| (random(r) % 200) as i64))))
        }
        "integers: delta" => {
            let rising = rows.map(|r| (r as u64 * 1_000 + random(r) % 500) as i64);
            (DataType::Int64, Arc::new(Int64Array::from_iter_values(rising)))
        }
        "integers: plain" => (DataType::Int64, Arc::new(Int64Array::from_iter_values(rows.map(|r| random(r) as i64)))),
        "floats: plain" => {
            let any = rows.map(|r| (random(r) >> 11) as f64 / (1_u64 << 53) as f64);
            (DataType::Float64, Arc::new(Float64Array::from_iter_values(any)))
        }
        "text: dictionary" => (DataType::String, text(&|r| format!("city-{}", random(r) % 300))),
        _ => (DataType::String, text(&|r| format!("{:016x}", random(r)))),
    }
}

const KINDS: [&str; 6] = [
    "floats: plain",
    "integers: delta",
    "integers: dictionary",
    "integers: plain",
    "text: delta-length",
    "text: dictionary",
];

fn encode_with(bencher: Bencher<'_, '_>, kind: &str, compression: Compression) {
    let (ty, array) = column(kind);
    let schema = Schema::new(vec![arrow_field("c", ty, true)]);
    let descriptors = ArrowSchemaConverter::new().convert(&schema).expect("the type has a column");
    let bytes = array.to_data().get_slice_memory_size().expect("its buffers are known");
    let slab = [array];
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        let mut encoder =
            ColumnEncoder::new(descriptors.column(0), slab[0].data_type(), compression, Encodings::Compatible);
        encoder.write(&slab).expect("it encodes");
        encoder.close().expect("it encodes")
    });
}

#[divan::bench(args = KINDS)]
fn encode(bencher: Bencher<'_, '_>, kind: &str) {
    encode_with(bencher, kind, Compression::None);
}

/// Subtract from [`encode`] to get the time of Zstandard.
#[divan::bench(args = KINDS)]
fn encode_and_compress(bencher: Bencher<'_, '_>, kind: &str) {
    encode_with(bencher, kind, Compression::Zstd(1));
}
