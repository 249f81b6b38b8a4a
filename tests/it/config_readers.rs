//! `parquet.readers` gives warnings for exactly the values that the named readers refuse or read differently.

use lakemill::cli::validate::report;
use lakemill::domain::limits::READERS_MAX;
use lakemill::domain::pipeline::readers::NAMES;
use lakemill::domain::pipeline::types::DataType;
use lakemill::domain::pipeline::validate::{examine, parse};
use lakemill::domain::problem::ProblemKind;
use lakemill::ports::Expressions;
use lakemill::ports::expressions::{
    CheckError, EvaluationError, Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet,
};
use serde_json::{Value, json};

/// For a config without expressions the SQL engine isn't called.
struct UncalledEngine;

impl Expressions for UncalledEngine {
    fn check(&self, _: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError> {
        panic!("the config has no expressions")
    }

    fn bind(&self, _: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        panic!("validation evaluates nothing")
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        Ok("unasked".into())
    }
}

/// One column per type, named after it, and the text partition column `key`.
fn config_with_all_types(parquet: &Value) -> Value {
    let types = DataType::PLAIN.iter().map(|(name, _)| (*name).to_owned());
    let columns = types.map(|ty| json!({ "name": ty, "type": ty }));
    let columns: Vec<Value> = columns.chain([json!({ "name": "key", "type": "string" })]).collect();
    let mapping =
        json!({ "table": "t", "files": ["*.csv"], "columns": columns, "partition_by": ["key"], "parquet": parquet });
    json!({ "version": 1, "mappings": [mapping] })
}

/// Warnings for `parquet`, each as `path message`.
fn warnings(parquet: &Value) -> Vec<String> {
    let examined = examine(&config_with_all_types(parquet).to_string());
    assert_eq!(examined.problems, []);
    assert!(examined.warnings.iter().all(|warning| warning.kind == ProblemKind::Reader));
    examined.warnings.into_iter().map(|warning| format!("{} {}", warning.path, warning.message)).collect()
}

/// The pointer of the column named after a type.
fn at(ty: &str) -> String {
    let column = DataType::PLAIN.iter().position(|(name, _)| *name == ty).unwrap();
    format!("/mappings/0/columns/{column}/type `{ty}`")
}

#[test]
fn columns_that_a_named_reader_misreads_give_warnings() {
    let spark = warnings(&json!({ "readers": ["spark-3.3"] }));
    for ty in ["time", "uuid"] {
        let messages = spark.iter().filter(|warning| warning.starts_with(&at(ty))).collect::<Vec<_>>();
        assert_eq!(messages.len(), 1, "{spark:#?}");
        assert!(messages[0].contains("Spark 3.3.4") && messages[0].contains("4.0.5 refuses it: "), "{messages:#?}");
    }
    assert!(
        spark.iter().any(|warning| warning.starts_with(&at("timestamp")) && warning.contains("reads it incorrectly"))
    );
    for ty in ["uint8", "string"] {
        assert!(!spark.iter().any(|warning| warning.starts_with(&at(ty))), "{spark:#?}");
    }
    let newest = warnings(&json!({ "readers": ["spark-4.0"] }));
    let columns: Vec<&String> = newest.iter().filter(|warning| warning.contains("/columns/")).collect();
    assert!(
        columns.len() == 2 && columns[0].starts_with(&at("time")) && columns[1].starts_with(&at("uuid")),
        "{newest:#?}"
    );
    let polars = warnings(&json!({ "readers": ["polars-2.1"] }));
    assert_eq!(
        polars,
        [
            format!("{} (uuid): Polars 2.1.0 reads it as `Binary`", at("uuid")),
            format!("{} (json): Polars 2.1.0 reads it as `Binary`", at("json")),
        ]
    );
}

#[test]
fn warnings_of_options_and_partitions_are_at_their_nodes() {
    let compact = warnings(&json!({ "encodings": "compact", "compression": "lz4", "readers": ["spark-3.3"] }));
    for (path, part) in [("/mappings/0/parquet/encodings ", "compact"), ("/mappings/0/parquet/compression ", "LZ4_RAW")]
    {
        let is_told =
            |warning: &String| warning.starts_with(path) && warning.contains(part) && warning.contains("3.3.4");
        assert!(compact.iter().any(is_told), "{compact:#?}");
    }
    let plain = warnings(&json!({ "readers": ["spark-3.3"] }));
    assert!(!plain.iter().any(|warning| warning.contains("/parquet/")), "{plain:#?}");
    let escapes = warnings(&json!({ "readers": ["clickhouse-26.9"] }));
    assert!(escapes.iter().any(|warning| warning.starts_with("/mappings/0/partition_by/0 `key`")), "{escapes:#?}");
}

#[test]
fn unnamed_and_correct_readers_give_no_warning() {
    assert_eq!(warnings(&json!({})), Vec::<String>::new());
    assert_eq!(warnings(&json!({ "readers": [] })), Vec::<String>::new());
    assert_eq!(warnings(&json!({ "readers": ["duckdb-2.0"] })), Vec::<String>::new());
}

#[test]
fn every_measured_misreading_gives_a_warning() {
    for named in NAMES {
        let named_by = |codec: &str| json!({ "encodings": "compact", "compression": codec, "readers": [named.name] });
        let found: Vec<String> =
            ["snappy", "lz4", "none"].iter().flat_map(|codec| warnings(&named_by(codec))).collect();
        for measured in named.versions() {
            for (label, reading) in measured.findings().filter(|(label, _)| !label.starts_with("decimal")) {
                let (label, part) = (label.replace('`', ""), format!("{} ", measured.family));
                let Some(harm) = reading.consequence() else { continue };
                let is_told = |warning: &&String| {
                    warning.contains(&label)
                        && warning.contains(&part)
                        && warning.contains(measured.version)
                        && warning.ends_with(&harm)
                };
                assert!(found.iter().any(|warning| is_told(&warning)), "{}: {label}: {found:#?}", named.name);
            }
        }
    }
}

#[test]
fn unknown_reader_is_a_problem_with_a_suggestion() {
    let problems =
        parse(&config_with_all_types(&json!({ "readers": ["duckdb-2.0", "spark-35"] })).to_string()).unwrap_err();
    let [problem] = &problems[..] else { panic!("{problems:#?}") };
    assert_eq!((problem.path.as_str(), problem.kind), ("/mappings/0/parquet/readers/1", ProblemKind::InvalidValue));
    assert!(problem.message.contains("did you mean `spark-3.5`?"), "{}", problem.message);
    let many = vec!["duckdb-2.0"; READERS_MAX + 1];
    let problems = parse(&config_with_all_types(&json!({ "readers": many })).to_string()).unwrap_err();
    assert_eq!(problems[0].kind, ProblemKind::Limit, "{problems:#?}");
    let problems = parse(&config_with_all_types(&json!({ "readers": [3] })).to_string()).unwrap_err();
    assert_eq!(problems[0].kind, ProblemKind::WrongType, "{problems:#?}");
}

#[test]
fn readers_dont_change_a_tables_fingerprint() {
    let canonical = |parquet: &Value| {
        let mut pipeline = parse(&config_with_all_types(parquet).to_string()).unwrap();
        pipeline.mappings.remove(0)
    };
    assert_eq!(canonical(&json!({})), canonical(&json!({ "readers": ["spark-3.3", "fastparquet-2026.9"] })));
}

#[test]
fn command_shows_warnings_at_their_positions_and_succeeds() {
    let text = "{ \"version\": 1, \"mappings\": [ { \"table\": \"t\", \"files\": [\"*.csv\"],\n  \
                \"columns\": [ { \"name\": \"at\", \"type\": \"time\" } ],\n  \
                \"parquet\": { \"readers\": [\"spark-4.0\"] } } ] }\n";
    let mut out = Vec::new();
    assert!(report("p.json", text.as_bytes(), &UncalledEngine, &mut out).unwrap());
    let out = String::from_utf8(out).unwrap();
    assert!(out.starts_with("p.json:2:40: warning: `at` (time): Spark "), "{out}");
    assert!(out.contains("^^^^^^") && out.contains("= reader at /mappings/0/columns/0/type"), "{out}");
    assert!(out.ends_with("\np.json: ok, 1 table, 1 warning\n"), "{out}");
}
