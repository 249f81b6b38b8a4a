//! Previews of unsaved configs.

use std::collections::BTreeMap;

use lakemill::ports::store::{Bucket, list_all};
use serde_json::{Value, json};

use super::infer::{FOREIGN_KEYS, MISSING_KEYS};
use super::on_both;
use crate::support::browser::{Browser, Reply};
use crate::support::lake::gzip;
use crate::support::program::mapping;
use crate::support::site::{Kind, Site};

const PATH: &str = "/api/p/x/preview";

fn of(change: &Value) -> Value {
    json!({ "version": 1, "mappings": [mapping(change)] })
}

fn preview(browser: &Browser, body: &Value) -> Reply {
    browser.post(PATH, body)
}

/// Every object, with its version.
fn everything(site: &Site) -> BTreeMap<String, (u64, String)> {
    let all = |bucket| {
        let listed = list_all(&*site.store, bucket, "").unwrap();
        listed.into_iter().map(move |o| (format!("{bucket}/{}", o.key), (o.size, o.modified.to_rfc3339())))
    };
    Bucket::ALL.into_iter().flat_map(all).collect()
}

#[test]
fn preview_shows_rows_and_rejects_and_writes_nothing() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        site.put("x", "in/a.csv", "a,b\nx,1\ny,nope\nz,-3\nw,4\n");
        let before = everything(&site);
        let columns = json!([
            { "name": "a", "type": "string" }, { "name": "b", "type": "int64" },
            { "name": "c", "type": "decimal(10,2)", "expr": "CAST(b / 4.0 AS DECIMAL(10,2))" }
        ]);
        let config = of(&json!({ "columns": columns, "where": "b > 0" }));
        let response = preview(&browser, &json!({ "config": config })).ok().json();
        assert_eq!(
            (&response["problems"], &response["failure"], &response["whole"]),
            (&json!([]), &json!(null), &json!(true))
        );
        assert_eq!((&response["key"], &response["table"]), (&json!("pipelines/x/in/a.csv"), &json!("t")));
        assert_eq!(response["rows"], json!([["x", 1, "0.25"], ["w", 4, "1.00"]]));
        assert_eq!(response["columns"][2], json!({ "name": "c", "type": "decimal(10,2)" }));
        assert_eq!(response["rejects"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&response["rejects"][0]["line"], &response["rejects"][0]["reason"]),
            (&json!(3), &json!("wrong_type"))
        );
        let counts = json!({ "rows_read": 4, "rows_written": 2, "rows_rejected": 1, "rows_filtered": 1 });
        assert_eq!(response["counts"], counts);
        let one = preview(&browser, &json!({ "config": config, "limit": 1 })).ok().json();
        assert_eq!((&one["rows"], &one["counts"]), (&json!([["x", 1, "0.25"]]), &counts));
        assert_eq!(everything(&site), before);
    });
}

#[test]
fn preview_uses_the_first_matching_file_by_default() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        site.put("x", "a.csv", "a,b\nnone,0\n");
        site.put("x", "in/b.csv", "a,b\nfirst,1\n");
        site.put("x", "in/c.csv.gz", gzip(b"a,b\nsecond,2\n"));
        site.put("x", "other/d.csv", "a,b\nthird,3\n");
        let mut config = of(&json!({}));
        let other = mapping(&json!({ "table": "u", "files": ["other/*.csv"] }));
        config["mappings"].as_array_mut().unwrap().push(other);
        let rows = |body: Value| preview(&browser, &body).ok().json()["rows"].clone();
        assert_eq!(rows(json!({ "config": config })), json!([["first", 1]]));
        assert_eq!(rows(json!({ "config": config, "table": "u" })), json!([["third", 3]]));
        let named = json!({ "config": config, "key": "pipelines/x/in/c.csv.gz" });
        assert_eq!(rows(named), json!([["second", 2]]));
        let response = preview(&browser, &json!({ "config": config, "table": "v" })).ok().json();
        assert_eq!((&response["rows"], &response["problems"][0]["path"]), (&json!(null), &json!("/mappings")));
        let none = of(&json!({ "files": ["nowhere/*.csv"] }));
        let response = preview(&browser, &json!({ "config": none })).ok().json();
        assert_eq!((&response["rows"], &response["failure"]["code"]), (&json!(null), &json!("no_input")));
        let unfit = of(&json!({ "columns": [{ "name": "zzz", "type": "string" }] }));
        let response = preview(&browser, &json!({ "config": unfit })).ok().json();
        assert!(response["failure"]["message"].as_str().unwrap().contains("zzz"), "{response}");
    });
}

#[test]
fn config_problems_are_reported() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    site.put("x", "in/a.csv", "a,b\nx,1\n");
    for (config, path) in [
        (of(&json!({ "table": "T" })), "/mappings/0/table"),
        (of(&json!({ "where": "nope(b) > 0" })), "/mappings/0/where"),
        (of(&json!({ "where": "b > (SELECT 1)" })), "/mappings/0/where"),
        (json!({}), ""),
        (json!(7), ""),
        (json!(null), ""),
    ] {
        let response = preview(&browser, &json!({ "config": config })).ok().json();
        let paths: Vec<&str> =
            response["problems"].as_array().unwrap().iter().map(|problem| problem["path"].as_str().unwrap()).collect();
        assert!(response["rows"].is_null() && !paths.is_empty(), "{response}");
        assert!(path.is_empty() || paths.contains(&path), "{paths:?}");
    }
}

#[test]
fn malformed_requests_are_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let config = of(&json!({}));
        preview(&browser, &json!({ "config": config })).refused(404, "pipeline_not_found");
        for pipeline in ["x", "y", "xx"] {
            site.put(pipeline, "in/a.csv", "a,b\nx,1\n");
        }
        // A body is not percent-decoded: escapes are part of the name.
        for key in FOREIGN_KEYS.iter().filter(|key| !key.contains('%')) {
            preview(&browser, &json!({ "config": config, "key": key })).refused(400, "invalid_key");
        }
        for key in
            MISSING_KEYS.iter().chain(&["pipelines/x/..%2fy/in/a.csv", "pipelines/x/\u{ff0e}\u{ff0e}/y/in/a.csv"])
        {
            preview(&browser, &json!({ "config": config, "key": key })).refused(404, "object_not_found");
        }
        for body in [
            json!({}),
            json!([]),
            json!({ "config": config, "limit": 0 }),
            json!({ "config": config, "limit": 1_001 }),
            json!({ "config": config, "limit": "7" }),
            json!({ "config": config, "limit": -1 }),
            json!({ "config": config, "key": 7 }),
            json!({ "config": config, "table": [] }),
            json!({ "config": config, "path": "/etc/passwd" }),
        ] {
            preview(&browser, &body).refused(400, "invalid_request");
        }
        let text = browser.send("POST", PATH, &[("Content-Type", "text/plain")], b"{}");
        text.refused(415, "unsupported_media_type");
        let long = json!({ "config": "x".repeat(5 << 20) });
        preview(&browser, &long).refused(413, "payload_too_large");
    });
}

#[test]
fn preview_of_a_large_file_is_marked_as_partial() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let mut csv = String::from("a,b\n");
    while csv.len() < 18 << 20 {
        csv.push_str("some text that makes the file grow until it is larger than what a preview reads,1\n");
    }
    site.put("x", "in/a.csv", &csv);
    let response = preview(&browser, &json!({ "config": of(&json!({})) })).ok().json();
    assert_eq!((&response["whole"], &response["failure"]), (&json!(false), &json!(null)));
    assert_eq!(response["rows"].as_array().unwrap().len(), 50);
    let rows = csv.lines().count() as u64 - 1;
    let read = response["counts"]["rows_read"].as_u64().unwrap();
    assert!(read > 50 && read < rows, "{read} of {rows}");
    assert_eq!(response["counts"]["rows_rejected"], 0, "the record at the cut is not taken for a broken one");
}

#[test]
fn runaway_expression_fails_only_its_preview() {
    let site = Site::new(Kind::Embedded);
    let web = site.web_with(&[("SVC_QUERY_TIMEOUT_MS", "3000"), ("SVC_QUERY_MEMORY_BYTES", "134217728")]);
    let browser = Browser::log_in(&web);
    let rows: String = (0..3_000).map(|n| format!("row {n},1\n")).collect();
    site.put("x", "in/a.csv", format!("a,b\n{rows}"));
    let slow = of(&json!({ "where": "levenshtein(repeat(a, 4000), repeat(reverse(a), 4000)) > 0" }));
    preview(&browser, &json!({ "config": slow })).refused(422, "query_timeout");
    // Rejected, killed, or without a row: any result of the child.
    let large = of(&json!({ "where": "length(repeat(repeat(a, 10000), 10000)) > 0" }));
    let reply = preview(&browser, &json!({ "config": large }));
    let response = reply.json();
    let ended = matches!(response["error"].as_str(), Some("query_out_of_memory" | "query_timeout"));
    let rowless = reply.status == 200 && response["rows"].as_array().is_none_or(Vec::is_empty);
    assert!(ended || rowless, "{}", reply.text());
    let response = preview(&browser, &json!({ "config": of(&json!({})) })).ok().json();
    assert_eq!(response["counts"]["rows_written"], 3_000);
}

#[test]
fn expression_that_crashes_the_child_is_reported_at_its_path() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        site.put("x", "in/a.csv", "a,b\nx,1\n");
        let brackets = |bracket: char| format!("repeat(repeat('{bracket}',10000),100)");
        let deep = format!("length(from_json('1', {} || '\"INTEGER\"' || {})::VARCHAR)", brackets('['), brackets(']'));
        let columns = json!([
            { "name": "a", "type": "string" }, { "name": "b", "type": "int64" },
            { "name": "before", "type": "int64", "expr": "b + 1" },
            { "name": "hostile", "type": "int64", "expr": deep },
            { "name": "after", "type": "int64", "expr": "before + 1" }
        ]);
        let fine = mapping(&json!({ "table": "fine" }));
        let hostile = mapping(&json!({ "columns": columns, "where": "b > 0" }));
        let config = json!({ "version": 1, "mappings": [fine, hostile] });
        for table in ["t", "fine"] {
            let response = preview(&browser, &json!({ "config": config, "table": table })).ok().json();
            let problems = response["problems"].as_array().unwrap();
            assert_eq!(problems.len(), 1, "{response}");
            let place = (&problems[0]["kind"], &problems[0]["path"]);
            assert_eq!(place, (&json!("invalid_expression"), &json!("/mappings/1/columns/3/expr")), "{response}");
            assert!(problems[0]["message"].as_str().unwrap().contains("crashed the process"), "{response}");
        }
    });
}
