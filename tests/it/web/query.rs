//! User-supplied SQL over a pipeline's tables.

use serde_json::{Value, json};

use super::on_both;
use super::tables::{TripsSite, days};
use crate::support::browser::{Browser, Reply};
use crate::support::program::{batches, cells};
use crate::support::site::{Kind, Site};

const HOSTILE: &str = include_str!("../../../testdata/sql/hostile_statements.txt");

fn ask(trips: &TripsSite, body: &Value) -> Reply {
    trips.browser.post("/api/p/trips/query", body)
}

fn rows(trips: &TripsSite, sql: &str) -> Value {
    ask(trips, &json!({ "sql": sql })).ok().json()["rows"].clone()
}

#[test]
fn query_returns_columns_rows_and_statistics() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let response = ask(&trips, &json!({ "sql": "SELECT day, a, b FROM t ORDER BY a" })).ok().json();
        let column = |name: &str, ty: &str| json!({ "name": name, "type": ty });
        assert_eq!(response["columns"], json!([column("day", "date"), column("a", "string"), column("b", "int64")]));
        assert_eq!(
            response["rows"],
            json!([["2013-01-01", "x", 1], ["2013-01-02", "y", 2], ["2013-01-02", "z", null]])
        );
        assert_eq!(
            (&response["row_count"], &response["truncated"], &response["limit_reason"]),
            (&json!(3), &json!(false), &json!(null))
        );
        assert!(response["elapsed_ms"].is_u64() && response.get("publishing").is_none());
        let response = ask(&trips, &json!({ "sql": "FROM T ORDER BY a", "limit": 2 })).ok().json();
        assert_eq!((&response["row_count"], &response["limit_reason"]), (&json!(2), &json!("rows")));
        assert_eq!(rows(&trips, "SELECT count(*), sum(b) FROM t WHERE day = DATE '2013-01-02'"), json!([[2, 2]]));
        assert_eq!(rows(&trips, "SELECT reason FROM _rejected_rows"), json!([["wrong_type"]]));
        assert_eq!(rows(&trips, "SELECT 1 + 1 AS two"), json!([[2]]));
        assert!(rows(&trips, "SHOW TABLES").to_string().contains("\"t\""));
    });
}

#[test]
fn parameters_are_bound_by_name_and_position() {
    let trips = TripsSite::new(Kind::Embedded);
    for (sql, params) in [
        (
            "SELECT a FROM t WHERE b = $n AND a IN (SELECT unnest($list))",
            json!({ "n": 1, "list": ["x", "' OR 1=1 --"] }),
        ),
        ("SELECT a FROM t WHERE b = ? AND a = ?", json!([1, "x"])),
        ("SELECT a FROM t WHERE b = $1 AND a = $2", json!([1, "x"])),
    ] {
        let response = ask(&trips, &json!({ "sql": sql, "params": params })).ok().json();
        assert_eq!(response["rows"], json!([["x"]]), "{sql}");
    }
    let exact =
        json!({ "sql": "SELECT $x = 9223372036854775809::UBIGINT", "params": { "x": 9_223_372_036_854_775_808_u64 } });
    assert_eq!(ask(&trips, &exact).ok().json()["rows"], json!([[false]]));
    let body = br#"{"sql":"SELECT $x","params":{"x":12345678901234567890123}}"#;
    let json = [("content-type", "application/json")];
    let message = trips.browser.send("POST", "/api/p/trips/query", &json, body).refused(400, "invalid_request");
    assert!(message.contains("`12345678901234567890123`") && message.contains("cast it"), "{message}");
    let reply = ask(&trips, &json!({ "sql": "SELECT 1,\n $n", "params": {} }));
    reply.refused(400, "invalid_sql");
    let problem = &reply.json()["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(2)), "{problem}");
    ask(&trips, &json!({ "sql": "SELECT $n", "params": { "n": { "x": 1 } } })).refused(400, "invalid_request");
}

#[test]
fn table_without_files_is_empty_and_typed() {
    on_both(|kind| {
        let trips = TripsSite::unrun(Site::new(kind));
        let response = ask(&trips, &json!({ "sql": "SELECT * FROM t" })).ok().json();
        let columns = response["columns"].as_array().unwrap();
        let types: Vec<&str> = columns.iter().map(|column| column["type"].as_str().unwrap()).collect();
        assert_eq!((types, &response["rows"]), (vec!["date", "string", "int64"], &json!([])));
        assert_eq!(rows(&trips, "SELECT count(*) FROM _rejected_rows"), json!([[0]]));
    });
}

#[test]
fn statement_problems_have_positions() {
    let trips = TripsSite::new(Kind::Embedded);
    let reply = ask(&trips, &json!({ "sql": "SELECT a\nFROM t WHERE c = 1" }));
    reply.refused(400, "invalid_sql");
    let problem = &reply.json()["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(14)), "{problem}");
    let message = ask(&trips, &json!({ "sql": "SELECT * FROM tt" })).refused(400, "invalid_sql");
    assert!(message.contains("no table `tt`") && message.contains("`t`"), "{message}");
    for (sql, part) in [
        ("SELECT * FROM t; SELECT 1", ""),
        ("SELEC 1", ""),
        ("", ""),
        ("SELECT CAST('x' AS INTEGER)", "x"),
        ("SELECT * FROM '/etc/passwd'", ""),
        ("SELECT * FROM read_csv('/etc/passwd')", ""),
    ] {
        let message = ask(&trips, &json!({ "sql": sql })).refused(400, "invalid_sql");
        assert!(message.contains(part) && !message.contains("/tmp"), "{sql}: {message}");
    }
    for body in [
        json!({}),
        json!({ "sql": 1 }),
        json!({ "sql": "SELECT 1", "limit": 10_001 }),
        json!({ "sql": "SELECT 1", "limit": -1 }),
        json!({ "sql": "SELECT 1", "query_id": "a b" }),
        json!({ "sql": "SELECT 1", "query_id": "x".repeat(65) }),
        json!({ "sql": "SELECT 1", "more": 1 }),
        json!([]),
    ] {
        ask(&trips, &body).refused(400, "invalid_request");
    }
    trips.browser.post("/api/p/nowhere/query", &json!({ "sql": "SELECT 1" })).refused(404, "pipeline_not_found");
    trips
        .browser
        .post("/api/p/trips/query/download?format=xml", &json!({ "sql": "SELECT 1" }))
        .refused(400, "invalid_request");
}

#[test]
fn statements_reach_only_tables_of_pipelines() {
    let trips = TripsSite::new(Kind::Embedded);
    trips.site.pipeline("other", &json!({ "table": "secret" }));
    let own = trips.site.home().join("secret.csv");
    std::fs::write(&own, "password\n1\n").unwrap();
    let folder = trips.site.home().to_str().unwrap().to_owned();
    let before = (
        trips.site.warehouse("trips"),
        trips.site.read(lakemill::ports::store::Bucket::Pipelines, "pipelines/trips/pipeline.json"),
    );
    let texts: Vec<String> =
        HOSTILE.split("\n%%\n").map(|text| text.trim_end_matches('\n').replace("FOLDER", &folder)).collect();
    assert!(texts.len() >= 60, "{}", texts.len());
    let more = ["SELECT * FROM secret", "SELECT * FROM other.none", "SELECT * FROM \"../../other/secret\""];
    // Several at a time, so that the test is fast.
    std::thread::scope(|scope| {
        for part in texts.chunks(texts.len().div_ceil(4)) {
            let trips = &trips;
            scope.spawn(move || {
                for sql in part {
                    let reply = ask(trips, &json!({ "sql": sql }));
                    assert_eq!(reply.status, 400, "{sql}: {}", reply.text());
                    assert!(!reply.text().contains("password"), "{sql}");
                }
            });
        }
    });
    for sql in more {
        ask(&trips, &json!({ "sql": sql })).refused(400, "invalid_sql");
    }
    let after = (
        trips.site.warehouse("trips"),
        trips.site.read(lakemill::ports::store::Bucket::Pipelines, "pipelines/trips/pipeline.json"),
    );
    assert!(before == after && std::fs::read_to_string(own).unwrap() == "password\n1\n");
    assert_eq!(rows(&trips, "SELECT count(*) FROM t"), json!([[3]]));
}

#[test]
fn query_reads_tables_of_other_pipelines() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let site = &trips.site;
        // A table of the same name, in a pipeline whose name must be quoted.
        site.pipeline("more-trips", &days());
        site.put("more-trips", "in/a.csv", "day,a,b\n2013-01-01,x,10\n,n,20\nnever,bad,7\n");
        assert_eq!(site.await_end(&site.enqueue("more-trips")).error, None);
        let joined = "SELECT o.b, t.b FROM \"more-trips\".t AS o LEFT JOIN t ON t.a = o.a ORDER BY o.b";
        // Twice: the second time with files that the first one staged.
        for _ in 0..2 {
            assert_eq!(rows(&trips, joined), json!([[10, 1], [20, null]]));
        }
        assert_eq!(rows(&trips, "SELECT count(*) FROM trips.t, main.t"), json!([[9]]));
        assert_eq!(rows(&trips, "SELECT \"more-trips\".t.a FROM \"more-trips\".t WHERE day IS NULL"), json!([["n"]]));
        assert_eq!(rows(&trips, "SELECT reason FROM \"MORE-trips\"._rejected_rows"), json!([["wrong_type"]]));
        let listed = rows(&trips, "SHOW TABLES").to_string();
        assert!(listed.contains("\"t\"") && !listed.contains("more-trips"), "{listed}");
        let csv = trips.browser.post("/api/p/trips/query/download?format=csv", &json!({ "sql": joined })).ok();
        assert_eq!(csv.text(), "b,b\r\n10,1\r\n20,\r\n");

        for (sql, expected) in [
            ("FROM \"no-such\".t", "there is no pipeline `no-such`"),
            ("FROM \"more-trips\".tt", "the pipeline `more-trips` has no table `tt`; did you mean `t`?"),
            ("FROM t, \"more-trips\".zones", "the pipeline `more-trips` has no table `zones`; it has `t`"),
        ] {
            let message = ask(&trips, &json!({ "sql": sql })).refused(400, "invalid_sql");
            assert!(message.contains(expected), "{sql}: {message}");
        }
        let many: Vec<String> = (0..21).map(|n| format!("SELECT * FROM p{n}.t")).collect();
        let message = ask(&trips, &json!({ "sql": many.join(" UNION ALL ") })).refused(400, "invalid_sql");
        assert!(message.contains("tables of 21 other pipelines; at most 20"), "{message}");
        let sequence = json!({ "sql": joined, "as_of": "1" });
        assert!(ask(&trips, &sequence).refused(400, "invalid_request").contains("version of one table"));
    });
}

#[test]
fn kept_results_follow_the_versions_of_their_tables() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let count = "SELECT count(*) FROM t";
        for _ in 0..2 {
            assert_eq!(rows(&trips, count), json!([[3]]));
        }
        trips.site.put("trips", "in/c.csv", "day,a,b\n2013-01-03,w,5\n");
        trips.run();
        assert_eq!(rows(&trips, count), json!([[4]]));
        // With another limit.
        let limited = ask(&trips, &json!({ "sql": "FROM t ORDER BY a", "limit": 1 })).ok().json();
        assert_eq!((&limited["row_count"], &limited["truncated"]), (&json!(1), &json!(true)));
        let whole = ask(&trips, &json!({ "sql": "FROM t ORDER BY a" })).ok().json();
        assert_eq!((&whole["row_count"], &whole["truncated"]), (&json!(4), &json!(false)));
        let random = "SELECT random()";
        assert_ne!(rows(&trips, random), rows(&trips, random));
    });
}

#[test]
fn dashboards_and_checks_of_a_config_know_tables_of_other_pipelines() {
    let trips = TripsSite::new(Kind::Embedded);
    let site = &trips.site;
    site.pipeline("other", &days());
    site.put("other", "in/a.csv", "day,a,b\n2013-01-01,x,10\n");
    assert_eq!(site.await_end(&site.enqueue("other")).error, None);
    let board = |sql: &str| {
        format!(
            "version: 2\ntitle: T\nqueries:\n  q: {{ sql: '{sql}' }}\npanels:\n  - {{ id: p, type: kpi, query: q, value: {{ field: n }} }}\n"
        )
    };
    let validate = |sql: &str| {
        let yaml = [("content-type", "application/yaml")];
        let path = "/api/p/trips/dashboards/d/validate";
        trips.browser.send("POST", path, &yaml, board(sql).as_bytes()).ok().json()
    };
    let good = validate("SELECT sum(o.b) AS n FROM other.t AS o JOIN t USING (a)");
    assert_eq!(good["ok"], true, "{good}");
    for bad in ["SELECT sum(c) AS n FROM other.t", "SELECT 1 AS n FROM other.zones", "SELECT 1 AS n FROM none.t"] {
        assert_eq!(validate(bad)["ok"], false, "{bad}");
    }
    // A change of this pipeline's config doesn't break a query of the other's table.
    let query = json!({ "name": "of the other", "sql": "SELECT b FROM other.t" });
    trips.browser.post("/api/p/trips/queries", &query).ok();
    let config = json!({ "version": 1, "mappings": [crate::support::program::mapping(&json!({ "table": "u" }))] });
    let impact = trips.browser.put("/api/p/trips/config?dry_run=1", &config).ok().json()["impact"].clone();
    assert_eq!(impact["queries"], json!([]), "{impact}");
}

#[test]
fn runaway_query_fails_alone() {
    let mut site = Site::new(Kind::Embedded);
    site.set("SVC_QUERY_TIMEOUT_MS", "3000").set("SVC_QUERY_MEMORY_BYTES", "268435456");
    let trips = TripsSite::on(site);
    let endless = "SELECT sum(range) FROM range(1000000000000)";
    ask(&trips, &json!({ "sql": endless })).refused(422, "query_timeout");
    let large = "SELECT list(range) FROM range(10000000000)";
    let reply = ask(&trips, &json!({ "sql": large }));
    assert!(
        ["query_out_of_memory", "query_timeout"].contains(&reply.json()["error"].as_str().unwrap()),
        "{}",
        reply.text()
    );
    assert_eq!(rows(&trips, "SELECT count(*) FROM t"), json!([[3]]));
    // Thirty megabytes may take a busy machine longer than the time limit here.
    let patient = trips.site.web_with(&[("SVC_QUERY_TIMEOUT_MS", "30000")]);
    let large = json!({ "sql": "SELECT repeat('x', 300000) FROM range(100)", "limit": 100 });
    let wide = Browser::log_in(&patient).post("/api/p/trips/query", &large).ok().json();
    assert_eq!((&wide["limit_reason"], &wide["truncated"]), (&json!("bytes"), &json!(true)));
}

#[test]
fn downloads_are_complete_in_each_format() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let sql = "SELECT a, b, '=1+1' AS f FROM t, range(4000) ORDER BY a, range";
        let get = |format: &str| {
            let path = format!("/api/p/trips/query/download?format={format}");
            let reply = trips.browser.post(&path, &json!({ "sql": sql, "query_id": format })).ok();
            let named = reply.header("content-disposition").unwrap();
            assert_eq!(named, format!("attachment; filename=\"trips-query.{format}\""));
            reply
        };
        let csv = get("csv").text();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[1]), (12_001, "a,b,f", "x,1,'=1+1"));
        let objects = get("json").json();
        assert_eq!(objects.as_array().unwrap().len(), 12_000);
        assert_eq!(objects[11_999], json!({ "a": "z", "b": null, "f": "=1+1" }));
        let file = trips.site.home().join("query.parquet");
        std::fs::write(&file, get("parquet").body).unwrap();
        let read: Vec<String> = batches(&file).iter().flat_map(cells).collect();
        assert_eq!((read.len(), read[0].as_str(), read[11_999].as_str()), (12_000, "x|1|=1+1", "z|∅|=1+1"));
        let refused = |sql: &str, code| {
            trips.browser.post("/api/p/trips/query/download", &json!({ "sql": sql })).refused(400, code)
        };
        refused("SELECT * FROM nothing", "invalid_sql");
        refused("SELECT c FROM t", "invalid_sql");
    });
}
