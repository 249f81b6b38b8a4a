//! Every declared type round-trips through DuckDB, as input and as output.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::Int64Type;
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::problem::ProblemKind;
use lakemill::ports::arrow_types::arrow_type;

use crate::sql_support::{evaluate, int64s, problem, problems, set, ty};

fn values(ty: DataType) -> ArrayRef {
    match ty {
        DataType::Boolean => Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        DataType::Int8 => Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX)])),
        DataType::Int16 => Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX)])),
        DataType::Int32 => Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)])),
        DataType::Int64 => int64s([Some(i64::MIN), None, Some(i64::MAX)]),
        DataType::UInt8 => Arc::new(UInt8Array::from(vec![Some(0), None, Some(u8::MAX)])),
        DataType::UInt16 => Arc::new(UInt16Array::from(vec![Some(0), None, Some(u16::MAX)])),
        DataType::UInt32 => Arc::new(UInt32Array::from(vec![Some(0), None, Some(u32::MAX)])),
        DataType::UInt64 => Arc::new(UInt64Array::from(vec![Some(0), None, Some(u64::MAX)])),
        DataType::Float32 => {
            Arc::new(Float32Array::from(vec![Some(f32::MIN), None, Some(f32::MAX), Some(-0.0), Some(f32::INFINITY)]))
        }
        DataType::Float64 => Arc::new(Float64Array::from(vec![
            Some(f64::MIN),
            None,
            Some(f64::MIN_POSITIVE),
            Some(f64::NEG_INFINITY),
            Some(0.1),
        ])),
        DataType::Decimal { precision, scale } => {
            let max = 10_i128.pow(u32::from(precision)) - 1;
            let array = Decimal128Array::from(vec![Some(-max), None, Some(max), Some(0), Some(1)]);
            Arc::new(array.with_precision_and_scale(precision, scale as i8).unwrap())
        }
        DataType::String => {
            let long = "lang und länger als zwölf Bytes 🦆".repeat(50);
            Arc::new(StringArray::from(vec![
                Some(""),
                None,
                Some("a\0b"),
                Some(&long),
                Some("'\"\\\n"),
                Some("\u{202e}"),
            ]))
        }
        DataType::Json => {
            Arc::new(StringArray::from(vec![Some(r#"{"a": [1, 2.50, null]}"#), None, Some("\"é\""), Some(" [ ] ")]))
        }
        DataType::Date => Arc::new(Date32Array::from(vec![Some(-719_162), None, Some(2_932_896), Some(0)])),
        DataType::Time => Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(86_399_999_999)])),
        DataType::Timestamp => {
            let values = vec![Some(-62_135_596_800_000_000), None, Some(253_402_300_799_999_999), Some(-1)];
            Arc::new(TimestampMicrosecondArray::from(values))
        }
        DataType::TimestampTz => {
            let values = vec![Some(-62_135_596_800_000_000), None, Some(253_402_300_799_999_999), Some(-1)];
            Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
        }
        DataType::Uuid => {
            let uuids = [Some([0_u8; 16]), None, Some([0xff; 16]), Some([0x7f; 16]), Some([0x80; 16])];
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids.into_iter(), 16).unwrap())
        }
    }
}

fn every_type() -> Vec<DataType> {
    let decimals = [(1, 0), (4, 4), (9, 2), (18, 0), (18, 18), (19, 3), (38, 0), (38, 10), (38, 38)];
    let decimals = decimals.iter().map(|(precision, scale)| DataType::Decimal { precision: *precision, scale: *scale });
    DataType::PLAIN.iter().map(|(_, ty)| *ty).chain(decimals).collect()
}

#[test]
fn every_type_round_trips() {
    for ty in every_type() {
        let text = ty.to_string();
        let set = set(&[("x", &text)], &[("same", &text, "x"), ("again", &text, "coalesce(same, x)")], &["x IS NULL"]);
        let input = values(ty);
        let out = evaluate(&set, vec![Arc::clone(&input)]);
        assert_eq!(out.errors, [], "{ty}");
        for array in &out.computed {
            assert_eq!(array.data_type(), &arrow_type(ty));
            assert_eq!(array.as_ref(), input.as_ref(), "{ty}");
        }
        assert!((0..input.len()).all(|row| out.predicates[0].value(row) == input.is_null(row)), "{ty}");
    }
}

#[test]
fn nulls_and_empty_batches_have_the_declared_type() {
    for ty in every_type() {
        let text = ty.to_string();
        let set = set(&[("x", &text)], &[("a", &text, "NULL"), ("b", &text, "CASE WHEN false THEN x END")], &["NULL"]);
        for input in [values(ty), values(ty).slice(0, 0)] {
            let out = evaluate(&set, vec![Arc::clone(&input)]);
            for array in &out.computed {
                assert_eq!(array.data_type(), &arrow_type(ty));
                assert_eq!((array.len(), array.null_count()), (input.len(), input.len()), "{ty}");
            }
            assert_eq!(out.predicates[0].null_count(), input.len());
        }
    }
}

#[test]
fn inputs_have_their_own_type_in_sql() {
    let texts = [
        ("uuid", "CAST(x AS VARCHAR) LIKE '________-____-____-____-____________'"),
        ("json", "json_valid(x) AND x ->> '$.b' IS NULL"),
        ("timestamptz", "x AT TIME ZONE 'UTC' = x::TIMESTAMP"),
        ("time", "x < TIME '24:00:00'"),
        ("decimal(38,10)", "x = x * 1"),
        ("uint64", "x >= 0"),
    ];
    for (declared, predicate) in texts {
        let set = set(&[("x", declared)], &[], &[predicate]);
        let input = values(ty(declared));
        let out = evaluate(&set, vec![Arc::clone(&input)]);
        let found = &out.predicates[0];
        assert!((0..input.len()).all(|row| input.is_null(row) || found.value(row)), "{predicate}: {found:?}");
    }
}

#[test]
fn slice_of_a_batch_is_read_from_its_start() {
    let input = values(DataType::String).slice(1, 4);
    let set = set(&[("x", "string")], &[("y", "string", "x")], &[]);
    assert_eq!(evaluate(&set, vec![Arc::clone(&input)]).computed[0].as_ref(), input.as_ref());
}

#[test]
fn narrower_integers_are_checked_row_by_row() {
    let set =
        set(&[("n", "int64")], &[("small", "int8", "n"), ("flag", "int8", "CASE WHEN n > 0 THEN 1 ELSE 2 END")], &[]);
    let out = evaluate(&set, vec![int64s([Some(127), Some(128), None, Some(-129)])]);
    assert_eq!(out.errors.iter().map(|e| e.row).collect::<Vec<_>>(), [1, 3]);
    assert!(out.errors[0].message.contains("out of range"), "{}", out.errors[0].message);
    assert_eq!(
        out.computed[0].as_primitive::<arrow::datatypes::Int8Type>(),
        &Int8Array::from(vec![Some(127), None, None, None])
    );
    assert_eq!(out.computed[1].null_count(), 0);
}

#[test]
fn lossy_conversions_are_type_mismatches_with_a_remedy() {
    for (input, declared, sql, part) in [
        ("float64", "int32", "x", "CAST(floor(…) AS INTEGER)"),
        ("string", "int32", "x", "CAST(… AS INTEGER)"),
        ("timestamp", "date", "x", "CAST(… AS DATE)"),
        ("timestamp", "timestamptz", "x", "AT TIME ZONE"),
        ("timestamptz", "timestamp", "x", "AT TIME ZONE"),
        ("decimal(10,2)", "decimal(10,1)", "x", "CAST(… AS DECIMAL(10,1))"),
        ("int64", "string", "x", "BIGINT"),
        ("int64", "string", "[x]", "BIGINT[]"),
        ("string", "json", "x", "CAST(… AS JSON)"),
    ] {
        let (kind, message) = problem(&[("x", input)], declared, sql);
        assert_eq!(kind, ProblemKind::TypeMismatch, "{message}");
        assert!(message.contains(part) && message.contains(declared), "{message}");
    }
}

#[test]
fn friendly_literals_need_no_cast() {
    for (declared, sql) in [
        ("uint8", "7"),
        ("float64", "1.5"),
        ("float32", "0.25"),
        ("decimal(10,2)", "12"),
        ("decimal(10,2)", "0.5"),
        ("timestamp", "DATE '2020-02-29'"),
        ("string", "'x'"),
        ("string", "CAST('a' AS ENUM('a', 'b'))"),
        ("json", "to_json({'a': 1})"),
        ("int64", "170141183460469231731687303715884105727 - 170141183460469231731687303715884105720"),
    ] {
        assert_eq!(problems(&[], declared, sql), [], "{sql}");
    }
}

#[test]
fn results_longer_than_a_vector_keep_their_order() {
    let rows = 60_001;
    let set = set(&[("n", "int64")], &[("twice", "int64", "n * 2"), ("text", "string", "'row ' || n")], &["n % 2 = 0"]);
    let out = evaluate(&set, vec![int64s((0..rows).map(Some))]);
    assert!(out.computed[0].as_primitive::<Int64Type>().values().iter().enumerate().all(|(at, n)| *n == 2 * at as i64));
    assert_eq!(out.computed[1].as_string::<i32>().value(60_000), "row 60000");
    assert_eq!(out.predicates[0].true_count(), 30_001);
}
