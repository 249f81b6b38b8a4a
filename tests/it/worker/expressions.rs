//! Expressions whose values crash processes: their job fails, and the worker continues.

use std::time::Duration;

use lakemill::domain::job::{JobStatus, RunErrorCode};
use serde_json::{Value, json};

use crate::support::http_client::send;
use crate::support::site::{HOSTILE_MEMORY_BYTES_MAX, Kind, Site, WORKER_TOKEN};

/// A pipeline with one text column, computed columns and checks.
fn pipeline(site: &Site, name: &str, sql: &str) {
    let columns = json!([
        { "name": "a", "type": "string" },
        { "name": "fine", "type": "string", "expr": "upper(left(a, 3))" },
        { "name": "b", "type": "string", "expr": sql },
    ]);
    let csv = json!({ "delimiter": ";", "quote": null, "record_bytes_max": 64 << 20 });
    site.pipeline(name, &json!({ "columns": columns, "csv": csv }));
}

#[test]
fn failing_expression_names_the_line() {
    let site = Site::new(Kind::Embedded);
    pipeline(&site, "bad", "CAST(json_merge_patch(a, a) AS VARCHAR)");
    pipeline(&site, "good", "CAST(json_merge_patch(a, a) AS VARCHAR)");
    let levels = 1_500_000;
    let deep = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    let rows = |cell: &str| format!("a\n{}{cell}\n{}", "{}\n".repeat(300), "{}\n".repeat(200));
    site.put("bad", "in/deep.csv", rows(&deep));
    site.put("good", "in/flat.csv", rows("{}"));
    let mut worker = site.worker();
    let (bad, good) = (site.enqueue("bad"), site.enqueue("good"));
    let (bad, good) = (site.await_end(&bad), site.await_end(&good));
    let error = bad.error.unwrap();
    assert_eq!(
        (bad.status, bad.attempt, error.code),
        (JobStatus::Failed, 1, RunErrorCode::ExpressionFailed),
        "{error:?}"
    );
    let description = format!("{} {}", error.message, error.detail.unwrap_or_default());
    for part in ["in/deep.csv` line 302: ", "column `b`", "json_merge_patch(a, a)"] {
        assert!(description.contains(part), "{part}: {description}");
    }
    assert_eq!((good.status, good.result.unwrap().tables["t"].rows_written), (JobStatus::Completed, 501));
    assert!(worker.is_alive());
}

#[test]
fn config_that_crashes_its_check_is_reported_by_expression() {
    let site = Site::new(Kind::Embedded);
    let mut worker = site.worker();
    let at = worker.address();
    let bearer = format!("Bearer {WORKER_TOKEN}");
    let validate = |config: &Value| {
        let started = std::time::Instant::now();
        let answer = send(&at, "POST", "/config/validate", &[("Authorization", &bearer)], &config.to_string());
        assert!(started.elapsed() < Duration::from_secs(60), "a check ends");
        answer
    };
    let config = |sql: &str| {
        let columns = json!([
            { "name": "a", "type": "string" },
            { "name": "fine", "type": "int64", "expr": "length(a)" },
            { "name": "b", "type": "int64", "expr": sql },
        ]);
        json!({ "version": 1, "mappings": [crate::support::program::mapping(&json!({ "columns": columns }))] })
    };
    assert_eq!(validate(&config("length(a) + 1")).json(), json!({ "ok": true }));
    let before = worker.peak_bytes();
    let brackets = |bracket: char| format!("repeat(repeat('{bracket}',10000),100)");
    let deep = format!("length(from_json('1', {} || '\"INTEGER\"' || {})::VARCHAR)", brackets('['), brackets(']'));
    for sql in [deep.as_str(), "levenshtein(repeat(repeat('ab',2000),100),repeat(repeat('ba',2000),100))"] {
        let answer = validate(&config(sql));
        let errors = answer.json()["errors"].clone();
        assert_eq!((answer.status, errors.as_array().map(Vec::len)), (200, Some(1)), "{sql}: {errors}");
        let (kind, path) = (&errors[0]["kind"], &errors[0]["path"]);
        assert_eq!((kind, path), (&json!("invalid_expression"), &json!("/mappings/0/columns/2/expr")), "{errors}");
    }
    // DuckDB can't fold it beforehand, so it is computed in the run.
    for sql in ["length(repeat(repeat(repeat('a',10000),10000),40))", "length(format('{:{}}','x',2000000000))"] {
        assert_eq!(validate(&config(sql)).status, 200);
    }
    assert_eq!(validate(&config("length(a) + 1")).json(), json!({ "ok": true }));
    assert!(worker.is_alive());
    let grown = worker.peak_bytes() - before;
    assert!(grown < HOSTILE_MEMORY_BYTES_MAX, "the worker took {grown} bytes more");
}
