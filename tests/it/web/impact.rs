//! The impact of a config, before and when it is saved.

use serde_json::{Value, json};

use super::on_both;
use crate::support::browser::Browser;
use crate::support::program::mapping;
use crate::support::site::Site;

const CONFIG: &str = "/api/p/x/config";
const DASHBOARD: &str = "
version: 2
title: T
queries:
  named: { sql: 'SELECT a, b FROM t' }
  all: { sql: SELECT * FROM t }
  count: { sql: SELECT count(*) AS n FROM t }
panels:
  - { id: p, type: table, query: named, width: 12 }
  - { id: q, type: table, query: all, columns: [ { field: b } ], width: 12 }
  - { id: r, type: kpi, query: count, value: { field: n }, width: 3 }
";

fn of(change: &Value) -> Value {
    json!({ "version": 1, "auto_run": false, "mappings": [mapping(change)] })
}

fn columns(columns: &Value) -> Value {
    of(&json!({ "columns": columns }))
}

/// What would break, as `name/query` of dashboards (drafts with a `~`) and names of saved queries.
fn broken(browser: &Browser, config: &Value) -> Vec<String> {
    let response = browser.put(&format!("{CONFIG}?dry_run=1"), config).ok().json();
    let impact = &response["impact"];
    let list = |name: &str| impact[name].as_array().unwrap_or_else(|| panic!("{response}")).clone();
    let dashboard = |one: &Value| {
        assert!(!one["message"].as_str().unwrap().is_empty());
        let draft = if one["draft"] == true { "~" } else { "" };
        format!("{draft}{}/{}", one["name"].as_str().unwrap(), one["query"].as_str().unwrap())
    };
    let mut all: Vec<String> = list("dashboards").iter().map(dashboard).collect();
    all.extend(list("queries").iter().map(|one| one["name"].as_str().unwrap().to_owned()));
    all.sort();
    all
}

#[test]
fn impact_lists_exactly_the_broken_dashboards_and_queries() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let string = json!({ "name": "a", "type": "string" });
        let number = json!({ "name": "b", "type": "int64" });
        let first = browser.put(CONFIG, &of(&json!({}))).ok();
        let yaml = [("Content-Type", "application/yaml")];
        let put = |path: &str| browser.send("PUT", path, &yaml, DASHBOARD.as_bytes()).ok();
        put("/api/p/x/dashboards/d");
        put("/api/p/x/dashboards/d?draft=1");
        put("/api/p/x/dashboards/e?draft=1");
        for (name, sql) in [
            ("sum", "SELECT sum(b) FROM t"),
            ("rows", "SELECT count(*) FROM t"),
            ("broken before", "SELECT nope FROM t"),
            ("rejects", "SELECT reason, count(*) FROM _rejected_rows GROUP BY 1"),
        ] {
            browser.post("/api/p/x/queries", &json!({ "name": name, "sql": sql })).ok();
        }
        let nothing: [&str; 0] = [];
        assert_eq!(broken(&browser, &of(&json!({}))), nothing);
        let more = columns(&json!([string, number, { "name": "c", "type": "date" }]));
        assert_eq!(broken(&browser, &more), nothing);
        let renamed = columns(&json!([string, { "name": "c", "from": "b", "type": "int64" }]));
        let gone = ["d/all", "d/named", "sum", "~d/all", "~d/named", "~e/all", "~e/named"];
        assert_eq!(broken(&browser, &renamed), gone);
        let retyped = columns(&json!([string, { "name": "b", "type": "string" }]));
        assert_eq!(broken(&browser, &retyped), ["sum"]);
        let mut dropped: Vec<&str> = gone.into_iter().chain(["d/count", "~d/count", "~e/count", "rows"]).collect();
        dropped.sort_unstable();
        assert_eq!(broken(&browser, &of(&json!({ "table": "u" }))), dropped);
        assert_eq!(browser.get(CONFIG).header("etag"), first.header("etag"), "nothing was stored");
        let saved = browser.put(CONFIG, &renamed).ok().json();
        assert_eq!(saved["impact"]["queries"].as_array().unwrap().len(), 1, "{saved}");
        let message = saved["impact"]["queries"][0]["message"].as_str().unwrap();
        assert!(message.contains('b'), "{message}");
        // Queries that are broken already don't count as broken by the next change.
        assert_eq!(broken(&browser, &columns(&json!([string]))), nothing);
    });
}
