//! Attempts to break out of an expression, or to make DuckDB exceed its limits.

use arrow::array::Array;
use lakemill::domain::limits::EXPRESSION_BYTES_MAX;
use lakemill::domain::problem::ProblemKind;
use lakemill::ports::expressions::Expressions;

use crate::sql_support::{SQL, batch, int64s, problem, problems, set};

const INPUTS: &[(&str, &str)] = &[("a", "int64"), ("b", "string"), ("l", "json")];

#[test]
fn hostile_texts_are_invalid_expressions() {
    let texts = include_str!("../../testdata/sql/hostile.txt");
    let mut count = 0;
    for text in texts.split("\n%%\n").filter(|text| !text.trim().is_empty()) {
        let set = set(INPUTS, &[], &[text]);
        let found = SQL.check(&set).unwrap();
        assert!(!found.is_empty(), "passed: {text}");
        assert!(found.iter().all(|p| p.kind == ProblemKind::InvalidExpression), "{text}: {found:?}");
        assert!(found.iter().all(|p| !p.message.is_empty() && !p.message.contains("LINE")), "{text}: {found:?}");
        assert!(SQL.bind(&set).is_err());
        count += 1;
    }
    assert!(count >= 60, "{count}");
}

#[test]
fn refused_text_is_not_run() {
    let path = std::env::temp_dir().join(format!("lakemill-escape-{}", std::process::id()));
    let path = path.to_str().unwrap();
    for text in [
        format!("1; COPY (SELECT 1) TO '{path}'"),
        format!("COPY (SELECT 1) TO '{path}'"),
        format!("1); COPY (SELECT 1) TO '{path}'; SELECT (1"),
        format!("1; ATTACH '{path}'"),
        format!("1; CALL enable_logging(storage='file', storage_path='{path}')"),
    ] {
        assert!(!problems(INPUTS, "int64", &text).is_empty(), "{text}");
        assert!(!std::path::Path::new(path).exists(), "{text}");
    }
}

#[test]
fn unknown_column_names_are_refused() {
    for text in
        ["rowid", "lakemill_row", "lakemill_batch", "a.b", "main.t.a", "t.a", "\"A B\"", "made", "b.c.d.e", "__row"]
    {
        assert_eq!(problem(INPUTS, "int64", text).0, ProblemKind::UnknownColumn, "{text}");
    }
}

#[test]
fn deep_and_long_texts_are_refused_before_a_stack_overflows() {
    let n = 10_000;
    for text in [
        format!("{}1{}", "(".repeat(n / 2), ")".repeat(n / 2)),
        format!("{}1{}", "(".repeat(n), ")".repeat(n)),
        "(".repeat(EXPRESSION_BYTES_MAX),
        format!("{}a", "NOT ".repeat(4_000)),
        format!("{}a", "- ".repeat(8_000)),
        format!("a{}", " + a".repeat(900)),
        format!("a{}", "+a".repeat(8_000)),
        format!("a{}", "::int".repeat(3_000)),
        format!("a{}", "::int".repeat(300)),
        format!("b{}", "[1]".repeat(5_000)),
        format!("{}a{}", "[".repeat(8_000), "]".repeat(8_000)),
        format!("{}1{}", "CASE WHEN a>0 THEN ".repeat(400), " END".repeat(400)),
        format!("{}b{}", "upper(".repeat(500), ")".repeat(500)),
        format!("a{}", " ".repeat(EXPRESSION_BYTES_MAX)),
        format!("l{}", "->'x'".repeat(2_000)),
        format!("CAST(a AS {}int{})", "STRUCT(x ".repeat(150), ")".repeat(150)) + &"::int".repeat(300),
        format!("CAST(b AS int{})", "[]".repeat(4_000)),
    ] {
        let found = problems(INPUTS, "int64", &text);
        assert!(!found.is_empty(), "{}", &text[..60.min(text.len())]);
        assert!(found.iter().all(|p| p.message.len() < 1_000));
    }
}

#[test]
fn deepest_allowed_expression_runs_on_an_ordinary_thread() {
    let sum = format!("a{}", " + a".repeat(240));
    let failing = format!("CAST(b AS BIGINT){}", " + a".repeat(230));
    let set = set(INPUTS, &[("s", "int64", &sum), ("f", "int64", &failing)], &[]);
    let run = move || {
        assert_eq!(SQL.check(&set).unwrap(), []);
        let texts = arrow::array::StringArray::from(vec!["1", "x"]);
        let columns: Vec<arrow::array::ArrayRef> =
            vec![int64s([Some(1), Some(2)]), std::sync::Arc::new(texts.clone()), std::sync::Arc::new(texts)];
        let out = SQL.bind(&set).unwrap().evaluate(&batch(&set, columns)).unwrap();
        assert_eq!(out.errors.len(), 1);
        assert_eq!(out.computed[0].null_count(), 0);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn growing_functions_take_small_literal_sizes() {
    for text in [
        "length(repeat('x', 1000000000))",
        "length(repeat(b, a))",
        "length(lpad('x', 2000000000, 'y'))",
        "length(rpad(b, 10001, 'y'))",
        "length(printf('%1000000000d', a))",
        "length(printf(b, a))",
        "length(format('{:>1000000000}', a))",
        "len(range(1000000000))",
        "len(generate_series(1, a))",
        "len(list_resize([1], 1000000000))",
    ] {
        let (kind, message) = problem(INPUTS, "int64", text);
        assert_eq!(kind, ProblemKind::InvalidExpression, "{text}");
        assert!(message.contains("at most"), "{message}");
    }
    for text in [
        "lpad(b, 10, '0')",
        "repeat(b, 3)",
        "printf('%05d', a)",
        "format('{:08.2f}', a / 3)",
        "range(-3, 7)[2]::VARCHAR",
    ] {
        assert_eq!(problems(INPUTS, "string", text), [], "{text}");
    }
}

#[test]
fn evaluator_out_of_memory_fails_and_the_process_continues() {
    let sql = crate::child::DuckExpressions::new(16 << 20);
    let hungry = set(&[("a", "int64")], &[("s", "string", "repeat('x', 9000) || a")], &[]);
    let batch_of = |set, rows| batch(set, vec![int64s((0..rows).map(Some))]);
    let failure = sql.bind(&hungry).unwrap().evaluate(&batch_of(&hungry, 20_000)).unwrap_err();
    assert!(failure.to_string().to_lowercase().contains("memory"), "{failure}");
    let out = sql.bind(&hungry).unwrap().evaluate(&batch_of(&hungry, 1)).unwrap();
    assert_eq!(out.computed[0].null_count(), 0);
}

#[test]
fn comments_and_blanks_around_an_expression_are_accepted() {
    for text in [
        "a -- the end",
        "/* x */ a /* y */",
        "\n\ta\n",
        "a -- ) , (",
        "a\u{a0}+ 1",
        "(a) + (1)",
        "$$x$$ || b",
        "a /* ; */",
    ] {
        let declared = if text.contains("b") && text.contains('$') { "string" } else { "int64" };
        assert_eq!(problems(INPUTS, declared, text), [], "{text}");
    }
}
