//! Replies of child processes.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use lakemill::domain::partition::segment;
use lakemill::sql::sandbox::{ExportFormat, LimitReason, ParameterizedStatement, RowLimits, SqlErrorKind, Value};
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
        ("SELECT '101'::BIT", "bit", json!("101")),
        ("SELECT '0000000011111111'::BIT", "bit", json!("0000000011111111")),
        ("SELECT [1, NULL, 3]", "int32[]", json!([1, null, 3])),
        ("SELECT [[1], []]", "int32[][]", json!([[1], []])),
        ("SELECT [1, 2]::INTEGER[2]", "int32[]", json!([1, 2])),
        ("SELECT {'a': 1, 'b': [0.5::DOUBLE]}", "struct(a int32, b float64[])", json!({"a": 1, "b": [0.5]})),
        ("SELECT MAP {'x': 1, 'y': 2}", "map(string, int32)", json!({"x": 1, "y": 2})),
        ("SELECT MAP {1: 'a'}", "map(int32, string)", json!({"1": "a"})),
        ("SELECT 'a'::ENUM('a', 'b')", "enum", json!("a")),
    ] {
        let rows = child
            .rows(&ParameterizedStatement::plain(sql), LIMITS, far_deadline())
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        let found: serde_json::Value = serde_json::from_str(&rows.rows).unwrap();
        assert_eq!((&found, rows.columns[0].ty.as_str()), (&json!([[expect]]), ty), "{sql}");
        let described = child.describe(&ParameterizedStatement::plain(sql), far_deadline()).unwrap();
        assert_eq!(described, rows.columns, "{sql}");
    }
}

/// DuckDB resolves these names as functions if no column has them.
#[test]
fn bare_names_of_refused_functions_are_refused_unless_a_column_has_them() {
    let site = Site::new();
    let mut child = site.child();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let names = ["user", "Current_Role", "a"];
    let path = parquet(&site.folder.path().join("t.parquet"), &names.map(|name| (name, Arc::clone(&numbers))));
    let columns = names.map(|name| column(name, "int64", false)).to_vec();
    define(&mut child, "t", columns, &[("t/part-00000.parquet", &path)]);
    let mut rows = |sql: &str| child.rows(&ParameterizedStatement::plain(sql), LIMITS, far_deadline());
    for sql in [
        "SELECT current_user",
        "SELECT \"current_user\"",
        "SELECT USER",
        "SELECT \"User\"",
        "SELECT session_user, 1",
        "SELECT current_role",
        "SELECT current_catalog",
        "SELECT current_schema",
        "VALUES (current_user)",
        "SELECT 1 ORDER BY current_user",
        "SELECT 1 GROUP BY user",
        "SELECT (SELECT session_user)",
        "WITH x AS (SELECT current_user AS u) SELECT u FROM x",
        "SELECT upper(current_user)",
        "SELECT list_transform([1], lambda x: session_user)",
        "SELECT * FROM range(length(current_user))",
        "SELECT 1 AS current_user, session_user",
        "FROM t SELECT current_user",
        "SELECT a FROM t WHERE current_schema = 'main'",
        "SELECT a FROM t ORDER BY session_user",
        "SELECT a AS session_user FROM t GROUP BY a, current_user",
        "SELECT count(*) FILTER (WHERE current_catalog = 'memory') FROM t",
        "DESCRIBE SELECT current_user",
        "SUMMARIZE SELECT session_user AS a FROM t",
        "SELECT 'current_user', current_user FROM t",
    ] {
        let error = rows(sql).unwrap_err();
        assert_eq!(error.sql_kind(), Some(SqlErrorKind::InvalidSql), "{sql}: {error}");
        assert!(error.to_string().contains("is not supported in queries"), "{sql}: {error}");
    }
    for (sql, found) in [
        ("SELECT user FROM t", "[[7]]"),
        ("SELECT \"USER\", current_role FROM t ORDER BY user", "[[7,7]]"),
        ("SELECT x.user FROM t x", "[[7]]"),
        ("SELECT user FROM (SELECT 1 AS user)", "[[1]]"),
        ("SELECT 1 AS user, user + 1", "[[1,2]]"),
        ("SELECT session_user FROM (VALUES (3)) x(session_user)", "[[3]]"),
        ("WITH x(current_user) AS (SELECT 4) SELECT current_user FROM x", "[[4]]"),
        ("SELECT list_transform([1], lambda user: user + 1)", "[[[2]]]"),
        ("SELECT a AS session_user FROM t ORDER BY session_user", "[[7]]"),
        ("SELECT current_date IS NULL, current_timestamp IS NULL, localtime IS NULL FROM t", "[[false,false,false]]"),
    ] {
        assert_eq!(rows(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).rows, found, "{sql}");
    }
}

#[test]
fn results_are_truncated_at_their_limits() {
    let site = Site::new();
    let mut child = site.child();
    let mut check = |sql: &str, rows: u64, bytes: u64, expect: (u64, Option<LimitReason>)| {
        let found = child.rows(&ParameterizedStatement::plain(sql), RowLimits { rows, bytes }, far_deadline()).unwrap();
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
fn parameters_with_any_content_are_bound() {
    let site = Site::new();
    let mut child = site.child();
    let hostile =
        ["'", "''", "'); DROP TABLE t; --", "\\", "\\'", "$x$", "a\nb", "\u{1f600}", "%", "E'x'", "", "\u{202e}"];
    for text in hostile {
        let one = named("SELECT $x, typeof($x), $x = $x", &[("x", Value::Text(text.into()))]);
        assert_eq!(json(child.rows(&one, LIMITS, far_deadline())), json!([[text, "VARCHAR", true]]), "{text:?}");
        let list = named(
            "SELECT list_contains($x, $y), $x",
            &[
                ("x", Value::List(vec![Value::Text("a".into()), Value::Null, Value::Text(text.into())])),
                ("y", Value::Text(text.into())),
            ],
        );
        assert_eq!(json(child.rows(&list, LIMITS, far_deadline())), json!([[true, ["a", null, text]]]), "{text:?}");
    }
    for (value, expect, ty) in [
        (Value::Null, json!(null), "\"NULL\""),
        (Value::Boolean(true), json!(true), "BOOLEAN"),
        (Value::Integer(i64::MIN), json!(i64::MIN.to_string()), "BIGINT"),
        (Value::Unsigned(u64::MAX), json!(u64::MAX.to_string()), "UBIGINT"),
        (
            Value::List(vec![Value::Integer(1), Value::Unsigned(u64::MAX)]),
            json!(["1", u64::MAX.to_string()]),
            "HUGEINT[]",
        ),
        (Value::Float(1.5e-300), json!(1.5e-300), "DOUBLE"),
        (Value::Float(f64::NAN), json!("NaN"), "DOUBLE"),
        (Value::Float(f64::NEG_INFINITY), json!("-Infinity"), "DOUBLE"),
        (Value::Date("2013-01-31".into()), json!("2013-01-31"), "DATE"),
        (Value::Timestamp("2013-01-31T05:06:07.000001".into()), json!("2013-01-31T05:06:07.000001"), "TIMESTAMP"),
        (Value::List(vec![]), json!([]), "VARCHAR[]"),
        (Value::List(vec![Value::Integer(1), Value::Null]), json!([1, null]), "BIGINT[]"),
        (Value::List(vec![Value::Date("2013-01-31".into())]), json!(["2013-01-31"]), "DATE[]"),
    ] {
        let found =
            json(child.rows(&positional("SELECT ?, typeof($1)", std::slice::from_ref(&value)), LIMITS, far_deadline()));
        assert_eq!(found, json!([[expect, ty]]), "{value:?}");
    }
}

#[test]
fn missing_and_surplus_parameters_are_reported() {
    let site = Site::new();
    let mut child = site.child();
    let int = Value::Integer(1);
    for (statement, message) in [
        (named("SELECT $a + $b", &[("a", int.clone())]), "the parameter `$b` has no value"),
        (named("SELECT $a", &[("a", int.clone()), ("b", int.clone())]), "there is no parameter `$b` in the statement"),
        (named("SELECT 1", &[("b", int.clone())]), "there is no parameter `$b` in the statement"),
        (positional("SELECT ? + ?", std::slice::from_ref(&int)), "the parameter at position 2 has no value"),
        (positional("SELECT 1", std::slice::from_ref(&int)), "there is no parameter at position 1 in the statement"),
        (positional("SELECT $a", std::slice::from_ref(&int)), "the parameter `$a` has no value"),
        (ParameterizedStatement::plain("SELECT $a"), "the parameter `$a` has no value"),
        (
            named("SELECT $a", &[("a", Value::Date("2013-02-30".into()))]),
            "the parameter `$a`: expected a date like `2013-01-31`, found `2013-02-30`",
        ),
        (
            named("SELECT $a", &[("a", Value::List(vec![int.clone(), Value::Boolean(true)]))]),
            "the parameter `$a`: the values of a list have different types",
        ),
        (
            named("SELECT $a", &[("a", Value::Text("a\0b".into()))]),
            "the parameter `$a`: a NUL character can't be part of a value",
        ),
    ] {
        let error = refusal(child.rows(&statement, LIMITS, far_deadline()));
        assert_eq!((error.kind, error.message.as_str()), (SqlErrorKind::InvalidSql, message), "{statement:?}");
    }
    assert_eq!(
        json(child.rows(&ParameterizedStatement::plain("SELECT 1"), LIMITS, far_deadline())),
        json!([[1]]),
        "the child lives on"
    );
}

#[test]
fn errors_have_message_and_position() {
    let site = Site::new();
    let mut child = site.child();
    for (statement, kind, message, place) in [
        (
            ParameterizedStatement::plain("SELECT 1,\n  nope FROM range(1)"),
            SqlErrorKind::InvalidSql,
            "nope",
            Some((2, 3)),
        ),
        (
            named("SELECT $a,\n  nope FROM range(1)", &[("a", Value::Integer(1))]),
            SqlErrorKind::InvalidSql,
            "nope",
            None,
        ),
        (
            ParameterizedStatement::plain("SELECT CAST('x' AS INTEGER)"),
            SqlErrorKind::Failed,
            "could not convert",
            Some((1, 8)),
        ),
        (
            ParameterizedStatement::plain("/* a */ SELECT nope FROM range(1) -- b"),
            SqlErrorKind::InvalidSql,
            "nope",
            Some((1, 16)),
        ),
        (
            ParameterizedStatement::plain("EXPLAIN SELECT nope FROM range(1)"),
            SqlErrorKind::InvalidSql,
            "nope",
            Some((1, 16)),
        ),
        (ParameterizedStatement::plain("COPY t TO 'x'"), SqlErrorKind::InvalidSql, "", None),
        (ParameterizedStatement::plain("SELECT 1; SELECT 2"), SqlErrorKind::InvalidSql, "", None),
        (ParameterizedStatement::plain("SELECT * FROM missing"), SqlErrorKind::InvalidSql, "missing", None),
    ] {
        let error = refusal(child.rows(&statement, LIMITS, far_deadline()));
        assert_eq!(error.kind, kind, "{error:?}");
        assert!(error.message.to_lowercase().contains(message) && !error.message.contains("LINE"), "{error:?}");
        if place.is_some() {
            assert_eq!(error.position.map(|p| (p.line, p.column)), place, "{error:?}");
        }
    }
    let error =
        refusal(child.describe(&ParameterizedStatement::plain("SELECT 1,\n  nope FROM range(1)"), far_deadline()));
    assert_eq!(error.position.map(|p| (p.line, p.column)), Some((2, 3)), "{error:?}");
}

/// A file of two rows for each partition.
fn file(folder: &Path, at: usize) -> std::path::PathBuf {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![at as i64 * 10, at as i64 * 10 + 1]));
    parquet(&folder.join(format!("files/{at}.parquet")), &[("n", numbers)])
}

#[test]
fn partition_values_round_trip() {
    let site = Site::new();
    let texts = [
        None,
        Some("a"),
        Some("NULL"),
        Some("null"),
        Some("__HIVE_DEFAULT_PARTITION__"),
        Some(""),
        Some("50%"),
        Some("%41"),
        Some("a b+c"),
        Some(" x "),
        Some("a/b=c?d*e[f]"),
        Some(".."),
        Some("it's"),
        Some("\u{fc}\u{1f600}"),
        Some("1.0"),
        Some("2013-01-01"),
        Some("a\\b"),
        Some("new\nline"),
    ];
    let mut child = site.child();
    let files: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let key = format!("t/{}/part-00000.parquet", segment("the part=", *text).unwrap());
            (key, file(site.folder.path(), at))
        })
        .collect();
    let files: Vec<(&str, &Path)> = files.iter().map(|(key, path)| (key.as_str(), path.as_path())).collect();
    define(&mut child, "t", vec![column("the part=", "string", true), column("n", "int64", false)], &files);
    let found = json(child.rows(
        &ParameterizedStatement::plain("SELECT \"the part=\" FROM t WHERE n % 10 = 0 ORDER BY n"),
        LIMITS,
        far_deadline(),
    ));
    let expect: Vec<_> = texts.iter().map(|text| json!([text])).collect();
    assert_eq!(found, json!(expect));
    for text in texts.into_iter().flatten() {
        let one = named("SELECT count(*) FROM t WHERE \"the part=\" = $x", &[("x", Value::Text(text.into()))]);
        assert_eq!(json(child.rows(&one, LIMITS, far_deadline())), json!([[2]]), "{text:?}");
    }
    let nulls = ParameterizedStatement::plain("SELECT count(*) FROM t WHERE \"the part=\" IS NULL");
    assert_eq!(json(child.rows(&nulls, LIMITS, far_deadline())), json!([[2]]));
}

#[test]
fn partition_columns_have_their_declared_types() {
    let site = Site::new();
    let mut child = site.child();
    for (at, (ty, text, expect)) in [
        ("date", "2013-01-31", json!("2013-01-31")),
        ("timestamp", "2013-01-31 05:00:00", json!("2013-01-31T05:00:00")),
        ("timestamptz", "2013-01-31 05:00:00Z", json!("2013-01-31T05:00:00Z")),
        ("time", "05:00:00", json!("05:00:00")),
        ("decimal(10,2)", "-1.50", json!("-1.50")),
        ("int8", "-128", json!(-128)),
        ("uint64", "18446744073709551615", json!("18446744073709551615")),
        ("float64", "0.1", json!(0.1)),
        ("boolean", "true", json!(true)),
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("json", "{\"a\": [1]}", json!("{\"a\": [1]}")),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("t{at}");
        let path = file(site.folder.path(), at);
        let keys = [Some(text), None].map(|value| format!("{name}/{}/p.parquet", segment("c", value).unwrap()));
        let files: Vec<(&str, &Path)> = keys.iter().map(|key| (key.as_str(), path.as_path())).collect();
        define(&mut child, &name, vec![column("n", "int64", false), column("c", ty, true)], &files);
        let sql = format!("SELECT c FROM {name} GROUP BY c ORDER BY c NULLS LAST");
        let rows = child.rows(&ParameterizedStatement::plain(sql), LIMITS, far_deadline()).unwrap();
        assert_eq!(rows.columns[0].ty, ty);
        assert_eq!(json(Ok(rows)), json!([[expect], [null]]), "{ty}");
    }
}

#[test]
fn tables_have_the_declared_columns_in_their_order() {
    let site = Site::new();
    let mut child = site.child();
    let names: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let path = parquet(&site.folder.path().join("a.parquet"), &[("a", names), ("we\"ird ", numbers)]);
    let columns = || vec![column("we\"ird ", "int32", false), column("a", "string", false)];
    define(&mut child, "t", columns(), &[("t/part-00000.parquet", &path)]);
    define(&mut child, "empty", columns(), &[]);
    assert_eq!(
        json(child.rows(&ParameterizedStatement::plain("SELECT * FROM t ORDER BY 1"), LIMITS, far_deadline())),
        json!([[1, "x"], [2, "y"]])
    );
    let empty = child.rows(&ParameterizedStatement::plain("SELECT * FROM empty"), LIMITS, far_deadline()).unwrap();
    let found: Vec<_> = empty.columns.iter().map(|c| (c.name.as_str(), c.ty.as_str())).collect();
    assert_eq!((found, empty.row_count), (vec![("we\"ird ", "int32"), ("a", "string")], 0));
    // Like dashboards.
    for (value, count) in [(Value::Null, 2), (Value::List(vec![Value::Text("x".into())]), 1), (Value::List(vec![]), 0)]
    {
        let one = named("SELECT count(*) FROM t WHERE ($v IS NULL OR list_contains($v, a))", &[("v", value)]);
        assert_eq!(json(child.rows(&one, LIMITS, far_deadline())), json!([[count]]));
    }
}

#[test]
fn files_outside_the_folder_are_refused() {
    let site = Site::new();
    let outside = file(site.folder.path(), 0);
    for bad in [outside.to_str().unwrap(), "../../files/0.parquet", "*.parquet", "", "https://example.com/a.parquet"] {
        let mut child = site.child();
        let relation = lakemill::sql::sandbox::Relation {
            name: "t".into(),
            columns: vec![column("n", "int64", false)],
            files: vec![bad.to_owned()],
        };
        assert!(child.define(&[relation], far_deadline()).is_err(), "{bad}");
    }
    let child = site.child();
    for bad in ["../x/p.parquet", "/t/p.parquet", "p.parquet", "t//p.parquet"] {
        assert!(child.stage(bad, &outside).is_err(), "{bad}");
    }
}

fn download(site: &Site, sql: &str, format: ExportFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut from = site.child().download(&ParameterizedStatement::plain(sql), format, far_deadline()).unwrap();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn csv_escapes_formulas_and_is_complete() {
    let site = Site::new();
    let sql = "SELECT * FROM (VALUES ('=1+1', -5, '', NULL, '\u{ff1d}x'), ('a,\"b\"', 1, 'c\nd', 2.50, '@')) \
               t(\"+h\", n, \"x,y\", d, e)";
    let text = String::from_utf8(download(&site, sql, ExportFormat::Csv)).unwrap();
    assert_eq!(text, "'+h,n,\"x,y\",d,e\r\n'=1+1,-5,\"\",,'\u{ff1d}x\r\n\"a,\"\"b\"\"\",1,\"c\nd\",2.50,'@\r\n");
    let lines = String::from_utf8(download(&site, "SELECT * FROM range(300000)", ExportFormat::Csv)).unwrap();
    assert_eq!(lines.lines().count(), 300_001);
    assert!(lines.ends_with("299999\r\n"));
}

#[test]
fn json_is_an_array_of_objects() {
    let site = Site::new();
    let bytes = download(&site, "SELECT i AS a, i::DECIMAL(5,1) AS a, [i] AS b FROM range(3) t(i)", ExportFormat::Json);
    let found: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let names: Vec<&String> = found[0].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(found[2][names[0]], json!(2));
    assert_eq!(found[2][names[1]], json!("2.0"));
    assert_eq!(found[2][names[2]], json!([2]));
    let none = download(&site, "SELECT 1 WHERE false", ExportFormat::Json);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&none).unwrap(), json!([]));
}

#[test]
fn parquet_round_trips() {
    let site = Site::new();
    let sql = "SELECT i, i::VARCHAR AS s, i::DECIMAL(9,2) AS d, NULL AS z, INTERVAL 1 DAY AS v, [i] AS l, sum(i) OVER () AS h \
               FROM range(200000) t(i)";
    let path = site.folder.path().join("d.parquet");
    std::fs::write(&path, download(&site, sql, ExportFormat::Parquet)).unwrap();
    let mut child = site.child();
    let names = ["i", "s", "d", "v"].map(|name| column(name, if name == "i" { "int64" } else { "string" }, false));
    define(&mut child, "t", names.to_vec(), &[("t/p.parquet", &path)]);
    let sql = "SELECT count(*), sum(i), max(s), min(d), min(v) FROM t";
    let found = json(child.rows(&ParameterizedStatement::plain(sql), LIMITS, far_deadline()));
    assert_eq!(found, json!([[200000, 19999900000_i64, "99999", "0.00", "P1D"]]));
}

#[test]
fn parquet_keeps_every_digit_of_whole_numbers() {
    let site = Site::new();
    let sql = "SELECT 170141183460469231731687303715884105727::HUGEINT AS h, 7::HUGEINT AS few, '101'::BIT AS b";
    let path = site.folder.path().join("d.parquet");
    std::fs::write(&path, download(&site, sql, ExportFormat::Parquet)).unwrap();
    let mut child = site.child();
    let names = ["h", "few", "b"].map(|name| column(name, "string", false));
    define(&mut child, "t", names.to_vec(), &[("t/p.parquet", &path)]);
    let found = json(child.rows(&ParameterizedStatement::plain("SELECT h, few, b FROM t"), LIMITS, far_deadline()));
    assert_eq!(found, json!([["170141183460469231731687303715884105727", "7", "101"]]));
    let late = "SELECT CASE WHEN i = 900000 THEN 170141183460469231731687303715884105727::HUGEINT ELSE i END \
                FROM range(1000000) t(i)";
    let mut from =
        site.child().download(&ParameterizedStatement::plain(late), ExportFormat::Parquet, far_deadline()).unwrap();
    let error = from.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("cast it to VARCHAR"), "{error}");
}

#[test]
fn failed_download_never_ends_cleanly() {
    let site = Site::new();
    let sql = "SELECT CASE WHEN i = 900000 THEN CAST('x' || i AS INTEGER) ELSE i END FROM range(1000000) t(i)";
    for format in [ExportFormat::Csv, ExportFormat::Json, ExportFormat::Parquet] {
        match site.child().download(&ParameterizedStatement::plain(sql), format, far_deadline()) {
            Err(error) => assert_eq!(error.sql_kind(), Some(SqlErrorKind::Failed), "{error}"),
            Ok(mut from) => {
                let error = std::io::copy(&mut from, &mut std::io::sink()).unwrap_err();
                assert!(error.to_string().contains("could not convert"), "{error}");
                assert!(from.read(&mut [0; 8]).is_err(), "and stays failed");
            }
        }
    }
    let error = refusal(
        site.child()
            .download(&ParameterizedStatement::plain("SELECT nope"), ExportFormat::Csv, far_deadline())
            .map(|_| ()),
    );
    assert_eq!(error.kind, SqlErrorKind::InvalidSql);
    // Its deadline ends it too, however slowly the rows are read.
    let deadline = Instant::now() + std::time::Duration::from_secs(3);
    let endless = ParameterizedStatement::plain("SELECT * FROM range(1000000000000)");
    if let Ok(mut from) = site.child().download(&endless, ExportFormat::Csv, deadline) {
        assert!(std::io::copy(&mut from, &mut std::io::sink()).is_err());
    }
}

#[test]
fn statements_are_analysed_before_tables_exist() {
    let site = Site::new();
    let mut child = site.child();
    let texts = ["SELECT $a FROM Trips JOIN shops USING (id) WHERE $B", "SELECT ?", "DROP TABLE trips"];
    let found = child.analyse(&texts, &["trips", "shops"], far_deadline()).unwrap();
    let names: Vec<_> = found.iter().map(|one| one.as_ref().map(|a| (a.tables.clone(), a.parameters.len()))).collect();
    assert_eq!(names[0], Ok((vec!["shops".to_owned(), "trips".to_owned()], 2)));
    assert_eq!(names[1], Ok((vec![], 1)));
    assert_eq!(found[2].as_ref().unwrap_err().kind, SqlErrorKind::InvalidSql);
}

#[test]
fn every_kind_of_statement_runs_and_is_described() {
    let site = Site::new();
    let mut child = site.child();
    let path = file(site.folder.path(), 3);
    define(&mut child, "t", vec![column("n", "int64", false)], &[("t/p.parquet", &path)]);
    for sql in [
        "FROM t",
        "VALUES (1)",
        "WITH a AS (FROM t) FROM a",
        "DESCRIBE t",
        "SUMMARIZE t",
        "SHOW TABLES",
        "EXPLAIN FROM t",
    ] {
        let statement = ParameterizedStatement::plain(sql);
        let rows = child.rows(&statement, LIMITS, far_deadline()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(rows.row_count > 0, "{sql}");
        assert_eq!(child.describe(&statement, far_deadline()).unwrap(), rows.columns, "{sql}");
        assert!(!rows.rows.contains(site.folder.path().to_str().unwrap()), "{sql}: {}", rows.rows);
    }
    let grouped = named("SELECT n FROM t WHERE n > $low GROUP BY ALL", &[("LOW", Value::Integer(30))]);
    assert_eq!(json(child.rows(&grouped, LIMITS, far_deadline())), json!([[31]]));
}

#[test]
fn table_with_more_files_than_the_open_limit_is_read() {
    let site = Site::new();
    let mut child = site.child();
    let path = file(site.folder.path(), 1);
    let keys: Vec<String> = (0..700).map(|at| format!("t/d={at}/p.parquet")).collect();
    let files: Vec<(&str, &Path)> = keys.iter().map(|key| (key.as_str(), path.as_path())).collect();
    define(&mut child, "t", vec![column("n", "int64", false), column("d", "int32", true)], &files);
    let all = ParameterizedStatement::plain("SELECT count(*), sum(n), sum(d) FROM t");
    assert_eq!(json(child.rows(&all, LIMITS, far_deadline())), json!([[1400, 14700, 489300]]));
    let one = ParameterizedStatement::plain("SELECT count(*) FROM t WHERE d = 7");
    assert_eq!(json(child.rows(&one, LIMITS, far_deadline())), json!([[2]]));
}
