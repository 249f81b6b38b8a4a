//! What a child answers.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use lakemill::domain::partition::segment;
use lakemill::sql::sandbox::{Format, LimitReason, RowLimits, SqlErrorKind, Statement, Value};
use serde_json::json;

use super::setup::*;

#[test]
fn values_keep_every_digit() {
    let site = Site::new();
    let mut child = site.child();
    for (sql, ty, expect) in [
        ("SELECT 42", "int32", json!(42)),
        ("SELECT 9007199254740993::BIGINT", "int64", json!("9007199254740993")),
        ("SELECT 9007199254740992::BIGINT", "int64", json!(9007199254740992_i64)),
        ("SELECT 18446744073709551615::UBIGINT", "uint64", json!("18446744073709551615")),
        ("SELECT sum(x) FROM (VALUES (1::BIGINT), (2)) t(x)", "hugeint", json!(3)),
        (
            "SELECT -170141183460469231731687303715884105727::HUGEINT",
            "hugeint",
            json!("-170141183460469231731687303715884105727"),
        ),
        ("SELECT 1.50::DECIMAL(10,2)", "decimal(10,2)", json!("1.50")),
        ("SELECT 7::DECIMAL(5,0)", "decimal(5,0)", json!("7")),
        ("SELECT 0.1::DOUBLE", "float64", json!(0.1)),
        ("SELECT 0.1::FLOAT", "float32", json!(0.1)),
        ("SELECT 1e300::DOUBLE", "float64", json!(1e300)),
        ("SELECT 'nan'::DOUBLE", "float64", json!("NaN")),
        ("SELECT '-inf'::DOUBLE", "float64", json!("-Infinity")),
        ("SELECT true", "boolean", json!(true)),
        ("SELECT NULL", "int32", json!(null)),
        ("SELECT 'a\"b\\c' || chr(10) || chr(1) || '\u{1f600}'", "string", json!("a\"b\\c\n\u{1}\u{1f600}")),
        ("SELECT DATE '2013-01-31'", "date", json!("2013-01-31")),
        ("SELECT TIME '05:06:07.5'", "time", json!("05:06:07.5")),
        ("SELECT TIMESTAMP '2013-01-01 05:00:00'", "timestamp", json!("2013-01-01T05:00:00")),
        ("SELECT TIMESTAMPTZ '2013-01-01 05:00:00.25+01'", "timestamptz", json!("2013-01-01T04:00:00.25Z")),
        ("SELECT TIMESTAMP_S '2013-01-01 05:00:00'", "timestamp_s", json!("2013-01-01T05:00:00")),
        ("SELECT TIMESTAMP_NS '2013-01-01 05:00:00.000000001'", "timestamp_ns", json!("2013-01-01T05:00:00.000000001")),
        ("SELECT 'infinity'::TIMESTAMP", "timestamp", json!("infinity")),
        ("SELECT DATE '0044-03-15 (BC)'", "date", json!("-0043-03-15")),
        ("SELECT INTERVAL '1 year 2 days 3 hours'", "interval", json!("P1Y2DT3H")),
        ("SELECT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID", "uuid", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("SELECT '{\"a\": 1}'::JSON", "json", json!("{\"a\": 1}")),
        ("SELECT '\\x00\\xFF'::BLOB", "blob", json!("AP8=")),
        ("SELECT [1, NULL, 3]", "int32[]", json!([1, null, 3])),
        ("SELECT [[1], []]", "int32[][]", json!([[1], []])),
        ("SELECT [1, 2]::INTEGER[2]", "int32[2]", json!([1, 2])),
        ("SELECT {'a': 1, 'b': [0.5::DOUBLE]}", "struct(a int32, b float64[])", json!({"a": 1, "b": [0.5]})),
        ("SELECT MAP {'x': 1, 'y': 2}", "map(string, int32)", json!({"x": 1, "y": 2})),
        ("SELECT MAP {1: 'a'}", "map(int32, string)", json!({"1": "a"})),
        ("SELECT 'a'::ENUM('a', 'b')", "enum", json!("a")),
    ] {
        let rows = child.rows(&Statement::plain(sql), LIMITS, soon()).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let found: serde_json::Value = serde_json::from_str(&rows.rows).unwrap();
        assert_eq!((&found, rows.columns[0].ty.as_str()), (&json!([[expect]]), ty), "{sql}");
        let described = child.describe(&Statement::plain(sql), soon()).unwrap();
        assert_eq!(described, rows.columns, "{sql}");
    }
}

#[test]
fn results_end_at_their_limits_and_say_so() {
    let site = Site::new();
    let mut child = site.child();
    let mut check = |sql: &str, rows: u64, bytes: u64, expect: (u64, Option<LimitReason>)| {
        let found = child.rows(&Statement::plain(sql), RowLimits { rows, bytes }, soon()).unwrap();
        assert_eq!((found.row_count, found.limit_reason), expect, "{sql}");
        assert!(found.rows.len() as u64 <= bytes);
    };
    check("SELECT * FROM range(10)", 10, MIB, (10, None));
    check("SELECT * FROM range(11)", 10, MIB, (10, Some(LimitReason::Rows)));
    check("SELECT * FROM range(1000000000000)", 5_000, MIB, (5_000, Some(LimitReason::Rows)));
    check("SELECT repeat('x', 98) FROM range(100)", 1_000, 1_000, (9, Some(LimitReason::Bytes)));
    check("SELECT repeat('x', 10000000)", 1_000, 1_000, (0, Some(LimitReason::Bytes)));
    check("SELECT 1 WHERE false", 10, MIB, (0, None));
    check("SELECT * FROM range(3)", 0, MIB, (0, Some(LimitReason::Rows)));
}

#[test]
fn parameters_are_bound_whatever_they_hold() {
    let site = Site::new();
    let mut child = site.child();
    let hostile =
        ["'", "''", "'); DROP TABLE t; --", "\\", "\\'", "$x$", "a\nb", "\u{1f600}", "%", "E'x'", "", "\u{202e}"];
    for text in hostile {
        let one = named("SELECT $x, typeof($x), $x = $x", &[("x", Value::Text(text.into()))]);
        assert_eq!(json(child.rows(&one, LIMITS, soon())), json!([[text, "VARCHAR", true]]), "{text:?}");
        let list = named(
            "SELECT list_contains($x, $y), $x",
            &[
                ("x", Value::List(vec![Value::Text("a".into()), Value::Null, Value::Text(text.into())])),
                ("y", Value::Text(text.into())),
            ],
        );
        assert_eq!(json(child.rows(&list, LIMITS, soon())), json!([[true, ["a", null, text]]]), "{text:?}");
    }
    for (value, expect, ty) in [
        (Value::Null, json!(null), "\"NULL\""),
        (Value::Bool(true), json!(true), "BOOLEAN"),
        (Value::Int(i64::MIN), json!(i64::MIN.to_string()), "BIGINT"),
        (Value::Float(1.5e-300), json!(1.5e-300), "DOUBLE"),
        (Value::Float(f64::NAN), json!("NaN"), "DOUBLE"),
        (Value::Float(f64::NEG_INFINITY), json!("-Infinity"), "DOUBLE"),
        (Value::Date("2013-01-31".into()), json!("2013-01-31"), "DATE"),
        (Value::Timestamp("2013-01-31T05:06:07.000001".into()), json!("2013-01-31T05:06:07.000001"), "TIMESTAMP"),
        (Value::List(vec![]), json!([]), "VARCHAR[]"),
        (Value::List(vec![Value::Int(1), Value::Null]), json!([1, null]), "BIGINT[]"),
        (Value::List(vec![Value::Date("2013-01-31".into())]), json!(["2013-01-31"]), "DATE[]"),
    ] {
        let found = json(child.rows(&positional("SELECT ?, typeof($1)", &[value.clone()]), LIMITS, soon()));
        assert_eq!(found, json!([[expect, ty]]), "{value:?}");
    }
}
