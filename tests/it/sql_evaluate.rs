//! Results of expressions: values, names, row errors; and the available functions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{Date32Type, Int64Type};
use lakemill::domain::problem::ProblemKind;
use lakemill::ports::expressions::{ExpressionId, Expressions};

use crate::sql_support::{SQL, batch, evaluate, int64s, problem, problems, set};

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn common_functions_return_the_expected_values() {
    for (sql, expect) in [
        ("strftime(timezone('America/New_York', TIMESTAMPTZ '2013-07-01 12:00:00+00'), '%H:%M')", "08:00"),
        (
            "CAST((TIMESTAMP '2013-01-01 12:00:00' AT TIME ZONE 'America/New_York') AS VARCHAR)",
            "2013-01-01 17:00:00+00",
        ),
        ("CAST(make_date(2013, 2, 28) + INTERVAL 1 DAY AS VARCHAR)", "2013-03-01 00:00:00"),
        ("CAST(date_trunc('month', DATE '2013-02-28') AS VARCHAR)", "2013-02-01 00:00:00"),
        ("CAST(strptime('28.02.2013', '%d.%m.%Y') AS VARCHAR)", "2013-02-28 00:00:00"),
        ("regexp_replace('a1b22', '[0-9]+', '#', 'g')", "a#b#"),
        ("regexp_extract('ab12', '([a-z]+)([0-9]+)', 2)", "12"),
        ("md5('a')", "0cc175b9c0f1b6a831c399e269772661"),
        ("left(sha256('a'), 8)", "ca978112"),
        ("CAST('{\"a\": {\"b\": 7}}' AS JSON) -> 'a' ->> 'b'", "7"),
        ("json_extract_string('{\"a\": [1, 2]}', '$.a[1]')", "2"),
        ("array_to_string(list_transform([1, 2, 3], lambda x: x * 2), '-')", "2-4-6"),
        ("array_to_string([x + 1 FOR x IN [1, 2, 3] IF x > 1], '-')", "3-4"),
        ("CAST(list_sum([1, 2, 3]) AS VARCHAR)", "6"),
        ("CAST(map {'a': 1, 'b': 2}['b'] AS VARCHAR)", "2"),
        ("{'a': 'x', 'b': 1}.a", "x"),
        ("split_part('a,b,c', ',', 2)", "b"),
        ("CASE WHEN 'B' COLLATE NOCASE = 'b' THEN 'same' ELSE 'other' END", "same"),
        ("CAST(TRY_CAST('x' AS INTEGER) IS NULL AS VARCHAR)", "true"),
        ("coalesce(TRY(CAST('x' AS INTEGER))::VARCHAR, 'none')", "none"),
        ("CASE WHEN 5 BETWEEN 1 AND 9 AND 'abc' LIKE 'a%' AND 3 IN (1, 2, 3) THEN 'y' END", "y"),
        ("nullif('a', 'b') || upper('ß') || trim('  x ')", "aẞx"),
        ("CAST(extract(year FROM DATE '2013-02-28') AS VARCHAR)", "2013"),
        ("CAST(round(sqrt(2), 3) AS VARCHAR)", "1.414"),
        ("CAST(datediff('day', DATE '2013-01-01', DATE '2013-03-01') AS VARCHAR)", "59"),
    ] {
        let set = set(&[], &[("v", "string", sql)], &[]);
        assert_eq!(SQL.check(&set).unwrap(), [], "{sql}");
        let out = SQL.bind(&set).unwrap().evaluate(&batch(&set, vec![])).unwrap();
        assert_eq!(out.computed[0].len(), 3);
        assert_eq!(out.computed[0].as_string::<i32>().value(2), expect, "{sql}");
    }
}

#[test]
fn columns_may_have_any_name_and_match_without_case() {
    let names = ["Order", "my \"col\"", "größe", "a.b", "SELECT", "lakemill_row", "lakemill__row", "x y", "--"];
    for name in names {
        let quoted = format!("\"{}\"", name.replace('"', "\"\"").to_ascii_lowercase());
        let set =
            set(&[(name, "int64")], &[("Computed X", "int64", &format!("{quoted} + 1"))], &["\"COMPUTED x\" > 1"]);
        let out = evaluate(&set, vec![int64s([Some(1)])]);
        assert_eq!(out.computed[0].as_primitive::<Int64Type>().value(0), 2, "{name}");
        assert!(out.predicates[0].value(0));
    }
}

#[test]
fn computed_columns_use_only_earlier_ones() {
    let chain: Vec<(String, String)> = (0..60)
        .map(|at| (format!("c{at}"), if at == 0 { "n".to_owned() } else { format!("c{} + 1", at - 1) }))
        .collect();
    let computed: Vec<(&str, &str, &str)> = chain.iter().map(|(name, sql)| (&**name, "int64", &**sql)).collect();
    let out = evaluate(&set(&[("n", "int64")], &computed, &["c59 = n + 59"]), vec![int64s([Some(1), Some(5)])]);
    assert_eq!(out.predicates[0].true_count(), 2);

    let set = set(&[("n", "int64")], &[("a", "int64", "b"), ("b", "int64", "n"), ("c", "int64", "c")], &[]);
    let found = SQL.check(&set).unwrap();
    assert_eq!(found.iter().map(|p| p.id).collect::<Vec<_>>(), [ExpressionId::Computed(0), ExpressionId::Computed(2)]);
    assert!(found.iter().all(|p| p.kind == ProblemKind::UnknownColumn && p.message.contains("not computed yet")));
}

#[test]
fn failed_rows_are_reported_with_expression_and_reason() {
    let set = set(
        &[("s", "string"), ("n", "int64")],
        &[("i", "int32", "CAST(s AS INTEGER)"), ("j", "int64", "i + n"), ("d", "date", "CAST(s AS DATE)")],
        &["i > 1", "n > 0"],
    );
    let out = evaluate(&set, vec![texts(&["7", "x", "2020-01-01"]), int64s([Some(1), Some(2), Some(3)])]);
    let found: Vec<_> = out.errors.iter().map(|e| (e.row, e.id)).collect();
    let (i, d) = (ExpressionId::Computed(0), ExpressionId::Computed(2));
    assert_eq!(found, [(0, d), (1, i), (1, d), (2, i)]);
    assert!(out.errors[1].message.contains("could not convert string 'x' to INT32"), "{:?}", out.errors[1]);
    assert!(out.errors[0].message.contains("invalid date"), "{:?}", out.errors[0]);
    assert_eq!(
        out.computed[0].as_primitive::<arrow::datatypes::Int32Type>().iter().collect::<Vec<_>>(),
        [Some(7), None, None]
    );
    assert_eq!(out.computed[2].as_primitive::<Date32Type>().iter().collect::<Vec<_>>(), [None, None, Some(18_262)]);
    assert_eq!(out.predicates[0].iter().collect::<Vec<_>>(), [Some(true), None, None]);
    assert_eq!(out.predicates[1].true_count(), 3);
}

#[test]
fn all_failing_rows_of_a_large_batch_are_found() {
    let set = set(
        &[("n", "int64")],
        &[("m", "int64", "9223372036854775000 + n")],
        &["100 // (n % 7 - 3) > CAST(CASE WHEN n % 1000 = 0 THEN 'x' ELSE '0' END AS INT)"],
    );
    let rows = 10_000;
    let out = evaluate(&set, vec![int64s((0..rows).map(Some))]);
    let overflow = out.errors.iter().filter(|e| e.id == ExpressionId::Computed(0)).count();
    let predicate = out.errors.iter().filter(|e| e.id == ExpressionId::Predicate(0)).count();
    assert_eq!((overflow, predicate), (10_000 - 808, 10));
    assert!(out.errors.windows(2).all(|pair| pair[0].row <= pair[1].row));
    assert!(out.errors.iter().all(|e| !e.message.is_empty()));
    assert_eq!(out.computed[0].null_count(), overflow);
}

#[test]
fn evaluator_continues_after_row_errors() {
    let set = set(&[("s", "string")], &[("i", "int64", "CAST(s AS BIGINT)")], &[]);
    let mut evaluator = SQL.bind(&set).unwrap();
    for round in 0..3 {
        let out = evaluator.evaluate(&batch(&set, vec![texts(&["1", "x"])])).unwrap();
        assert_eq!(out.errors.len(), 1, "round {round}");
        let out = evaluator.evaluate(&batch(&set, vec![texts(&["1", "2", "3"])])).unwrap();
        assert_eq!((out.errors.len(), out.computed[0].len()), (0, 3));
    }
}

#[test]
fn caught_error_stays_caught_when_used_twice() {
    let sql = "CASE WHEN TRY(CAST(s AS BIGINT)) IS NULL THEN -1 ELSE TRY(CAST(s AS BIGINT)) END";
    let set =
        set(&[("s", "string")], &[("a", "int64", sql), ("b", "int64", "coalesce(TRY(CAST(s AS BIGINT)), 0)")], &[]);
    let out = evaluate(&set, vec![texts(&["1", "x"])]);
    assert_eq!(out.errors, []);
    assert_eq!(out.computed[0].as_primitive::<Int64Type>().values(), &[1, -1]);
}

#[test]
fn batch_with_other_columns_is_a_failure() {
    let set = set(&[("n", "int64")], &[("m", "int64", "n")], &[]);
    let other = crate::sql_support::set(&[("n", "string")], &[], &[]);
    assert!(SQL.bind(&set).unwrap().evaluate(&batch(&other, vec![texts(&["1"])])).is_err());
}

#[test]
fn evaluators_run_in_parallel() {
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            scope.spawn(move || {
                let set = set(&[("n", "int64")], &[("m", "int64", &format!("n + {thread}"))], &[]);
                let mut evaluator = SQL.bind(&set).unwrap();
                for _ in 0..5 {
                    let out = evaluator.evaluate(&batch(&set, vec![int64s((0..5_000).map(Some))])).unwrap();
                    assert_eq!(out.computed[0].as_primitive::<Int64Type>().value(4_999), 4_999 + thread);
                }
            });
        }
    });
}

#[test]
fn problems_suggest_the_likely_intent() {
    let inputs = &[("fare", "decimal(10,2)"), ("vendor", "string")];
    for (sql, kind, part) in [
        ("far * 2", ProblemKind::UnknownColumn, "did you mean `fare`?"),
        ("vendor = \"open\"", ProblemKind::UnknownColumn, "single quotes: `'open'`"),
        ("fare + zzz", ProblemKind::UnknownColumn, "`zzz` (at character 8); columns here: `fare`, `vendor`"),
        ("uper(vendor)", ProblemKind::InvalidExpression, "did you mean `upper`?"),
        ("max(fare)", ProblemKind::InvalidExpression, "greatest(a, b)"),
        ("fare +", ProblemKind::InvalidExpression, "syntax error at end of input"),
        ("fare + order", ProblemKind::InvalidExpression, "(at character 8)"),
        ("", ProblemKind::InvalidExpression, "empty"),
        ("upper(fare, 1)", ProblemKind::TypeMismatch, "upper"),
        ("vendor + fare", ProblemKind::TypeMismatch, "No function matches"),
        ("vendor::nonsense", ProblemKind::InvalidExpression, "nonsense"),
    ] {
        let (found, message) = problem(inputs, "decimal(10,2)", sql);
        assert_eq!(found, kind, "{sql}: {message}");
        assert!(message.to_lowercase().contains(&part.to_lowercase()), "{sql}: {message}");
    }
    assert_eq!(problems(inputs, "string", "foo || bar || vendor").len(), 2);
    let found = SQL.check(&set(inputs, &[], &["fare"])).unwrap();
    assert!(found[0].kind == ProblemKind::TypeMismatch && found[0].message.contains("condition"), "{found:?}");
}

#[test]
fn every_function_on_the_list_exists_and_is_consistent() {
    let db = duckdb::Connection::open_in_memory().unwrap();
    let mut all = db.prepare("SELECT function_name, function_type, coalesce(stability, ''), coalesce(macro_definition, '') FROM duckdb_functions()").unwrap();
    let rows = all.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])).unwrap();
    let rows: Vec<[String; 4]> = rows.map(Result::unwrap).collect();
    for name in lakemill::sql::functions() {
        let found: Vec<_> = rows.iter().filter(|row| row[0] == name).collect();
        assert!(found.iter().any(|row| row[1] == "scalar" || row[1] == "macro"), "{name} is not a scalar function");
        for [_, kind, stability, definition] in found {
            assert!(matches!(kind.as_str(), "scalar" | "macro" | "table"), "{name} is {kind}");
            assert!(kind != "scalar" || stability == "CONSISTENT", "{name} is {stability}");
            assert!(kind != "macro" || !definition.to_lowercase().contains("select"), "{name} asks the catalog");
        }
    }
}

#[test]
fn version_includes_the_engine() {
    let version = SQL.version().unwrap();
    assert_eq!(version, "duckdb v1.5.6");
    assert_eq!(version, crate::child::DuckExpressions::default().version().unwrap());
}

#[test]
fn set_without_expressions_needs_no_engine() {
    let sql = crate::child::DuckExpressions::new(0);
    let empty = set(&[("n", "int64")], &[], &[]);
    assert_eq!(sql.check(&empty).unwrap(), []);
    let out = sql.bind(&empty).unwrap().evaluate(&batch(&empty, vec![int64s([Some(1)])])).unwrap();
    assert!(out.computed.is_empty() && out.predicates.is_empty());
}
