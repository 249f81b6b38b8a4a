//! Whole outputs of `lakemill validate`; and validation with a SQL engine.

use std::path::Path;

use lakemill::cli::validate::{report, run};
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::problem::{Problem, ProblemKind};
use lakemill::engine::validate::{ValidateError, validate};
use lakemill::ports::Expressions;
use lakemill::ports::expressions::{
    CheckError, EvaluationError, Evaluator, ExpressionFailure, ExpressionId, ExpressionProblem, ExpressionSet,
    expression_set,
};

const FULL: &str = include_str!("../../testdata/configs/full.json");
const BROKEN: &str = include_str!("../../testdata/configs/broken.json");

/// Reports a problem for every expression that contains `nope`, and an unknown column for every one that contains
/// `fear`.
struct RejectingExpressions;

impl Expressions for RejectingExpressions {
    fn check(&self, set: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError> {
        let computed = set.computed.iter().enumerate().map(|(i, c)| (ExpressionId::Computed(i), &c.sql));
        let predicates = set.predicates.iter().enumerate().map(|(i, sql)| (ExpressionId::Predicate(i), sql));
        if set.predicates.iter().any(|sql| sql == "down") {
            return Err(ExpressionFailure("out of memory".into()).into());
        }
        let judge = |(id, sql): (ExpressionId, &String)| {
            let (kind, message) = match sql.as_str() {
                sql if sql.contains("nope") => (ProblemKind::InvalidExpression, "no function `nope`"),
                sql if sql.contains("fear") => (ProblemKind::UnknownColumn, "no column `fear`"),
                _ => return None,
            };
            Some(ExpressionProblem { id, kind, message: message.into() })
        };
        Ok(computed.chain(predicates).filter_map(judge).collect())
    }

    fn bind(&self, _: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        unreachable!("validation evaluates nothing")
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        Ok("picky".into())
    }
}

fn output(name: &str, bytes: &[u8]) -> (bool, String) {
    let mut out = Vec::new();
    let ok = report(name, bytes, &RejectingExpressions, &mut out).unwrap();
    (ok, String::from_utf8(out).unwrap())
}

#[test]
fn valid_file_is_ok() {
    assert_eq!(output("full.json", FULL.as_bytes()), (true, "full.json: ok, 1 table\n".into()));
    let none = br#"{"version": 1, "mappings": []}"#;
    assert_eq!(output("none.json", none), (true, "none.json: ok, 0 tables\n".into()));
}

#[test]
fn problems_are_shown_with_line_and_caret() {
    let expected = "\
broken.json:5:7: unknown field `tabel`: did you mean `table`?
   |
 5 |       \"tabel\": \"trips\",
   |       ^^^^^^^
   = unknown_field at /mappings/0/tabel

broken.json:7:17: `/trips/*.csv` is not a glob of source files: expected a path relative to the pipeline's folder of the lake
   |
 7 |       \"files\": [\"/trips/*.csv\"],
   |                 ^^^^^^^^^^^^^^
   = invalid_glob at /mappings/0/files/0

broken.json:9:36: `int` is not a type: did you mean `int32`?
   |
 9 |         { \"name\": \"größe\", \"type\": \"int\" },
   |                                    ^^^^^
   = invalid_value at /mappings/0/columns/0/type

broken.json:14:19: the mapping has no column `faer`: did you mean `fare`?
    |
 14 |       \"sort_by\": [\"faer\"]
    |                   ^^^^^^
    = unknown_column at /mappings/0/sort_by/0

broken.json: 4 problems
";
    let (ok, found) = output("broken.json", BROKEN.as_bytes());
    assert!(!ok);
    assert_eq!(found, expected);
}

#[test]
fn syntax_errors_are_shown_at_the_end_of_parsing() {
    let expected = "\
x.json:2:16: trailing comma
   |
 2 |   \"version\": 1,}
   |                ^
   = syntax at the document

x.json: 1 problem
";
    let (ok, found) = output("x.json", b"{\n  \"version\": 1,}");
    assert!(!ok);
    assert_eq!(found, expected);
}

#[test]
fn long_lines_are_shortened_around_the_problem() {
    let text = format!("{{ \"version\": 1, \"description\": \"{}\", \"oops\": 1, \"mappings\": [] }}", "ü".repeat(300));
    let (_, found) = output("x", text.as_bytes());
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines[2].starts_with(" 1 | …ü") && lines[2].chars().count() < 120, "{found}");
    let caret = lines[3].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[2].chars().skip(caret).take(6).collect::<String>(), "\"oops\"", "{found}");
}

#[test]
fn unreadable_files_are_named() {
    let mut out = Vec::new();
    assert!(!run(Path::new("/no/such/pipeline.json"), &RejectingExpressions, &mut out).unwrap());
    let found = String::from_utf8(out).unwrap();
    assert!(found.starts_with("/no/such/pipeline.json: can't be read: No such file"), "{found}");
    assert_eq!(output("x", b"{\n\"\xff"), (false, "x:2: the file is not UTF-8, as JSON must be\n".into()));
}

#[test]
fn file_is_read_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipeline.json");
    std::fs::write(&path, FULL).unwrap();
    let mut out = Vec::new();
    assert!(run(&path, &RejectingExpressions, &mut out).unwrap());
    std::fs::write(&path, " ".repeat((4 << 20) + 10)).unwrap();
    let mut out = Vec::new();
    assert!(!run(&path, &RejectingExpressions, &mut out).unwrap());
    assert!(String::from_utf8(out).unwrap().contains("expected at most 4194304 bytes"));
}

fn of(text: &str) -> Vec<(ProblemKind, String)> {
    let problems = match validate(text, &RejectingExpressions) {
        Ok(_) => Vec::new(),
        Err(ValidateError::Invalid(problems)) => problems,
        Err(error) => panic!("{error}"),
    };
    problems.into_iter().map(|Problem { kind, path, .. }| (kind, path)).collect()
}

fn mapping(table: &str, rest: &str) -> String {
    format!(
        r#"{{"table":"{table}","files":["x"],"columns":[{{"name":"a","type":"int8"}},{{"name":"b","type":"int8","expr":"nope(a)"}},
        {{"name":"c","type":"string"}},{{"name":"d","type":"int8","expr":"a"}},{{"name":"e","type":"int8","expr":"nope()"}}]{rest}}}"#
    )
}

#[test]
fn expressions_problems_point_at_their_expressions() {
    let checks = r#","checks":[{"name":"1","assert":"a"},{"name":"2","assert":"nope"}]"#;
    let text = format!(
        r#"{{"version":1,"mappings":[{},{}]}}"#,
        mapping("t", &format!(r#","where":"fear"{checks}"#)),
        mapping("u", checks)
    );
    let both = |m: &str, more: &[(ProblemKind, String)]| -> Vec<(ProblemKind, String)> {
        let invalid = |rest: &str| (ProblemKind::InvalidExpression, format!("/mappings/{m}/{rest}"));
        let mut all = vec![invalid("columns/1/expr"), invalid("columns/4/expr")];
        all.extend_from_slice(more);
        all.push(invalid("checks/1/assert"));
        all
    };
    let mut expected = both("0", &[(ProblemKind::UnknownColumn, "/mappings/0/where".into())]);
    expected.extend(both("1", &[]));
    assert_eq!(of(&text), expected);
}

#[test]
fn expressions_are_checked_despite_other_problems_if_columns_are_valid() {
    let text = format!(
        r#"{{"version":1,"mappings":[{},{}]}}"#,
        mapping("t", r#","parquet":{"compression":"gzip"}"#),
        mapping("u", r#","where":"fear""#).replace(r#"{"name":"c","type":"string"}"#, r#"{"name":"c","type":"int"}"#)
    );
    let found = of(&text);
    let paths: Vec<&str> = found.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/mappings/0/columns/1/expr",
            "/mappings/0/columns/4/expr",
            "/mappings/0/parquet/compression",
            "/mappings/1/columns/2/type"
        ]
    );
}

#[test]
fn failed_engine_makes_no_config_valid() {
    let text = r#"{"version":1,"mappings":[{"table":"t","files":["x"],"columns":[{"name":"a","type":"int8"}],"where":"down"}]}"#;
    assert_eq!(of(text), [(ProblemKind::InvalidExpression, "/mappings/0".into())]);
}

#[test]
fn expression_sets_have_where_before_checks() {
    let pipeline = validate(FULL, &RejectingExpressions).unwrap();
    let set = expression_set(&pipeline.mappings[0]);
    let inputs: Vec<&str> = set.inputs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(inputs, ["pickup_at", "vendor", "fare"]);
    assert_eq!((set.computed[0].name.as_str(), set.computed[0].ty), ("fare_band", DataType::String));
    assert_eq!(set.predicates, ["fare >= 0", "fare < 5000"]);
}
