//! Output for valid input: types, compression, order.

use std::fs::File;
use std::path::PathBuf;

use lakemill::domain::pipeline::types::DataType;
use parquet::basic::{Encoding, LogicalType, TimeUnit, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use super::check;
use crate::support::program::{Program, files};

fn metadata(program: &Program) -> (PathBuf, ParquetMetaData) {
    let folder = program.output().join("t");
    let path = folder.join(&files(&folder)[0]);
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    (path, reader.metadata().clone())
}

#[test]
fn every_type_is_written_natively_and_reads_back() {
    use LogicalType as L;
    let int = |bit_width, is_signed| Some(L::Integer { bit_width, is_signed });
    let stamp = |utc| Some(L::Timestamp { is_adjusted_to_u_t_c: utc, unit: TimeUnit::MICROS });
    let types: Vec<(&str, &str, &str, Type, Option<LogicalType>)> = vec![
        ("boolean", "true", "true", Type::BOOLEAN, None),
        ("int8", "-128", "-128", Type::INT32, int(8, true)),
        ("int16", "-32768", "-32768", Type::INT32, int(16, true)),
        ("int32", "-2147483648", "-2147483648", Type::INT32, None),
        ("int64", "-9223372036854775808", "-9223372036854775808", Type::INT64, None),
        ("uint8", "255", "255", Type::INT32, int(8, false)),
        ("uint16", "65535", "65535", Type::INT32, int(16, false)),
        ("uint32", "4294967295", "4294967295", Type::INT32, int(32, false)),
        ("uint64", "18446744073709551615", "18446744073709551615", Type::INT64, int(64, false)),
        ("float32", "0.1", "0.1", Type::FLOAT, None),
        ("float64", "1e-300", "1e-300", Type::DOUBLE, None),
        ("decimal(9,2)", "-1.5", "-1.50", Type::INT32, Some(L::Decimal { precision: 9, scale: 2 })),
        ("decimal(18,0)", "7", "7", Type::INT64, Some(L::Decimal { precision: 18, scale: 0 })),
        (
            "decimal(38,10)",
            "1234567890123456789012345678.0123456789",
            "1234567890123456789012345678.0123456789",
            Type::FIXED_LEN_BYTE_ARRAY,
            Some(L::Decimal { precision: 38, scale: 10 }),
        ),
        ("string", "ü", "ü", Type::BYTE_ARRAY, Some(L::String)),
        ("date", "0001-01-01", "0001-01-01", Type::INT32, Some(L::Date)),
        (
            "time",
            "23:59:59.999999",
            "23:59:59.999999",
            Type::INT64,
            Some(L::Time { is_adjusted_to_u_t_c: false, unit: TimeUnit::MICROS }),
        ),
        ("timestamp", "9999-12-31 23:59:59.999999", "9999-12-31T23:59:59.999999", Type::INT64, stamp(false)),
        ("timestamptz", "2024-01-01T02:00:00+02:00", "2024-01-01T00:00:00Z", Type::INT64, stamp(true)),
        (
            "uuid",
            "67E55044-10b1-426f-9247-bb680e5fe0c8",
            "67e5504410b1426f9247bb680e5fe0c8",
            Type::FIXED_LEN_BYTE_ARRAY,
            Some(L::Uuid),
        ),
        ("json", "{\"\"a\"\": [1, null]}", "{\"a\": [1, null]}", Type::BYTE_ARRAY, Some(L::Json)),
    ];
    for (name, _) in DataType::PLAIN {
        assert!(types.iter().any(|(ty, ..)| ty == name), "{name}");
    }
    let name = |at: usize| format!("c{at}");
    let columns: Vec<Value> =
        types.iter().enumerate().map(|(at, t)| json!({ "name": name(at), "type": t.0 })).collect();
    let header: Vec<String> = (0..types.len()).map(name).collect();
    let values: Vec<String> = types.iter().map(|t| format!("\"{}\"", t.1)).collect();
    let nulls = vec![""; types.len()];
    let program = Program::of(&json!({ "columns": columns }));
    let text = format!("{}\n{}\n{}\n", header.join(","), values.join(","), nulls.join(","));
    program.put("x.csv", text).run(&[]).ok();

    let expected: Vec<&str> = types.iter().map(|t| t.2).collect();
    assert_eq!(program.rows("t"), [expected.join("|"), vec!["∅"; types.len()].join("|")]);
    let (_, metadata) = metadata(&program);
    for (column, (ty, _, _, physical, logical)) in metadata.file_metadata().schema_descr().columns().iter().zip(&types)
    {
        assert_eq!((column.physical_type(), column.logical_type_ref()), (*physical, logical.as_ref()), "{ty}");
    }
}

#[test]
fn every_compression_is_recorded_and_reads_back() {
    for (options, codec) in [
        (json!({}), "ZSTD"),
        (json!({ "compression": "zstd", "compression_level": 19 }), "ZSTD"),
        (json!({ "compression": "snappy" }), "SNAPPY"),
        (json!({ "compression": "lz4" }), "LZ4_RAW"),
        (json!({ "compression": "none" }), "UNCOMPRESSED"),
    ] {
        let program = Program::of(&json!({ "parquet": options }));
        program.put("x.csv", "a,b\nx,1\ny,\n").run(&[]).ok();
        assert_eq!(program.rows("t"), ["x|1", "y|∅"]);
        let (_, metadata) = metadata(&program);
        for column in metadata.row_group(0).columns() {
            assert!(format!("{:?}", column.compression()).starts_with(codec), "{:?}", column.compression());
            assert!(column.statistics().is_some() && column.column_index_offset().is_some());
        }
    }
}

#[test]
fn row_groups_have_the_configured_rows() {
    let program = Program::of(&json!({ "parquet": { "row_group_rows": 1024 } }));
    let rows: String = (0..2500).map(|at| format!("x,{at}\n")).collect();
    program.put("x.csv", format!("a,b\n{rows}")).run(&[]).ok();
    let (_, metadata) = metadata(&program);
    let rows: Vec<i64> = metadata.row_groups().iter().map(|g| g.num_rows()).collect();
    assert_eq!(rows, [1024, 1024, 452]);
}

#[test]
fn rows_are_sorted_stably_with_nulls_last() {
    let text = "a,b\nz,2\ny,\nx,10\nw,2\nv,-1\n";
    let change = json!({ "sort_by": ["b"] });
    let program = Program::of(&change);
    program.put("x.csv", text).run(&[]).ok();
    let rows = program.rows("t");
    let numbers: Vec<&String> = rows.iter().filter(|r| !r.ends_with('∅')).collect();
    assert_eq!(numbers, ["v|-1", "z|2", "w|2", "x|10"]);
    assert!(rows.first().or(rows.last()).is_some() && rows.len() == 5);
    check("a,b\nx,1\nÄ,2\nA,3\na,4\n", json!({ "sort_by": ["a", "b"] }), &["A|3", "a|4", "x|1", "Ä|2"], &[]);
}

#[test]
fn identity_partition_columns_are_not_in_the_files() {
    let columns = json!([{ "name": "a", "type": "date" }, { "name": "b", "type": "int64" }]);
    check("a,b\n2024-05-01,1\n", json!({ "columns": columns, "partition_by": ["a"] }), &["a=2024-05-01: 1"], &[]);
    let month = json!([{ "column": "a", "transform": "month" }]);
    check(
        "a,b\n2024-05-01,1\n",
        json!({ "columns": columns, "partition_by": month }),
        &["a_month=2024-05: 2024-05-01|1"],
        &[],
    );
}

#[test]
fn bytes_are_independent_of_threads() {
    let text: String = (0..50_000).map(|at| format!("k{},{at}\n", at % 7)).collect();
    let tables = |threads: &str| {
        let program = Program::of(&json!({ "partition_by": ["a"] }));
        program.put("x.csv", format!("a,b\n{text}")).run(&["--threads", threads]).ok();
        program.tree().into_iter().filter(|(name, _)| name.starts_with("t/")).collect::<Vec<_>>()
    };
    assert!(tables("1") == tables("5"));
}

#[test]
fn filters_find_nan_values() {
    for ty in ["float32", "float64"] {
        let program = Program::of(&json!({ "columns": [{ "name": "a", "type": ty }] }));
        program.put("x.csv", "a\n1\nnan\n2\n").run(&[]).ok();
        let (path, metadata) = metadata(&program);
        let column = metadata.row_group(0).column(0);
        let statistics = column.statistics().unwrap();
        assert_eq!((statistics.min_bytes_opt(), statistics.max_bytes_opt()), (None, None));
        assert_eq!((statistics.null_count_opt(), column.column_index_offset()), (Some(0), None));
        let db = duckdb::Connection::open_in_memory().unwrap();
        let count = |filter: &str| -> u64 {
            let sql = format!("SELECT count(*) FROM read_parquet('{}') WHERE {filter}", path.display());
            db.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("a > 5"), count("isnan(a)"), count("a >= 2")), (1, 1, 2), "{ty}");
    }
}

/// Spark before 3.5.9 and 4.0.5 misreads text in DELTA_LENGTH_BYTE_ARRAY.
#[test]
fn text_without_a_dictionary_is_plain_by_default() {
    let encodings = |parquet: Value| {
        let program = Program::of(&json!({ "columns": [{ "name": "a", "type": "string" }], "parquet": parquet }));
        let rows: Vec<String> = (0..2_000).map(|row| format!("text {}", row * 7_919)).collect();
        program.put("x.csv", format!("a\n{}\n", rows.join("\n"))).run(&[]).ok();
        metadata(&program).1.row_group(0).column(0).encodings().collect::<Vec<_>>()
    };
    let found = encodings(json!({}));
    assert!(found.contains(&Encoding::PLAIN) && !found.contains(&Encoding::DELTA_LENGTH_BYTE_ARRAY), "{found:?}");
    let found = encodings(json!({ "encodings": "compact" }));
    assert!(found.contains(&Encoding::DELTA_LENGTH_BYTE_ARRAY), "{found:?}");
}
