//! Dashboards: drafts, validation, publishing, and the data of panels.

use std::path::Path;

use lakemill::domain::sample::FLIGHTS;
use lakemill::ports::store::Bucket;
use serde_json::{Value, json};

use crate::support::browser::{Browser, Reply};
use crate::support::children::Reaped as _;
use crate::support::program::lakemill;
use crate::support::site::{HOSTILE_MEMORY_BYTES_MAX, Kind, Site, await_that};

use super::{is_stopped, on_both};

const TRIPS: &str = include_str!("../../../testdata/dashboards/good/trips.yaml");
const ALL: &str = "/api/p/taxi/dashboards";
const ONE: &str = "/api/p/taxi/dashboards/trips";
/// Checks a config without saving it.
const CHECK: &str = "/api/p/taxi/config?dry_run=1";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const YAML: (&str, &str) = ("Content-Type", "application/yaml");

/// A pipeline with the table `trips`, which exists only in the config.
fn configure(site: &Site) {
    let columns = json!([
        { "name": "pickup_day", "type": "date" },
        { "name": "vendor", "type": "string" },
        { "name": "fare", "type": "decimal(10,2)" },
    ]);
    let mapping = json!({ "table": "trips", "files": ["*.csv"], "columns": columns });
    site.configure("taxi", &json!({ "version": 1, "auto_run": false, "mappings": [mapping] }));
}

/// Creates the table with these days, vendors and fares.
fn run(site: &Site, rows: &[(&str, &str, &str)]) {
    let lines: String = rows.iter().map(|(day, vendor, fare)| format!("{day},{vendor},{fare}\n")).collect();
    site.put("taxi", "trips.csv", format!("pickup_day,vendor,fare\n{lines}"));
    let _worker = site.worker();
    let end = site.await_end(&site.enqueue("taxi"));
    assert_eq!(end.error, None);
}

fn put(browser: &Browser, path: &str, text: &str) -> Reply {
    browser.send("PUT", path, &[YAML], text.as_bytes())
}

fn keys(site: &Site) -> Vec<String> {
    let prefix = "pipelines/taxi/dashboards/";
    let listed = lakemill::ports::store::list_all(&*site.store, Bucket::Pipelines, prefix).unwrap();
    listed.into_iter().map(|object| object.key[prefix.len()..].to_owned()).collect()
}

#[test]
fn dashboard_is_drafted_published_and_deleted() {
    on_both(|kind| {
        let site = Site::new(kind);
        configure(&site);
        let web = site.web();
        let browser = Browser::log_in(&web);
        assert_eq!(browser.get(ALL).ok().json(), json!({ "dashboards": [] }));
        let created = browser.post(ALL, &json!({ "name": "trips" })).ok();
        assert_eq!(created.status, 201);
        assert_eq!(created.json()["draft"], true);
        browser.post(ALL, &json!({ "name": "trips" })).refused(409, "already_exists");
        let draft = browser.get(&format!("{ONE}?draft=1")).ok();
        assert!(draft.text().starts_with("# A dashboard"));
        assert_eq!(draft.header("content-type"), Some("application/yaml"));
        assert_eq!(draft.header("etag"), created.header("etag"));
        browser.get(ONE).refused(404, "dashboard_not_found");

        let text = format!("# kept\r\n{TRIPS}# and this\n");
        put(&browser, &format!("{ONE}?draft=1"), &text).ok();
        let verdict = browser.send("POST", &format!("{ONE}/validate"), &[], b"").ok().json();
        assert_eq!(verdict, json!({ "ok": true, "errors": [], "warnings": [] }));
        let published = browser.send("POST", &format!("{ONE}/publish"), &[], b"").ok();
        assert_eq!(published.header("etag"), browser.get(ONE).ok().header("etag"));
        assert_eq!(browser.get(ONE).ok().text(), text);
        browser.get(&format!("{ONE}?draft=1")).refused(404, "dashboard_not_found");
        browser.send("POST", &format!("{ONE}/publish"), &[], b"").ok();
        browser.post(ALL, &json!({ "name": "trips" })).refused(409, "already_exists");

        let response = put(&browser, &format!("{ONE}?draft=1"), "half: [").ok().json();
        assert!(response["ok"] == false && response["errors"][0]["line"] == 1, "{response}");
        let list = browser.get(ALL).ok().json();
        let [entry] = list["dashboards"].as_array().unwrap().as_slice() else { panic!("{list}") };
        assert_eq!(
            (&entry["name"], &entry["published"], &entry["draft"]),
            (&json!("trips"), &json!(true), &json!(true))
        );
        assert_eq!(keys(&site), ["trips.draft.yaml", "trips.yaml"]);
        browser.delete(ONE).ok();
        assert_eq!(keys(&site), Vec::<String>::new());
        browser.delete(ONE).refused(404, "dashboard_not_found");
    });
}

#[test]
fn dashboard_problems_have_positions() {
    on_both(|kind| {
        let site = Site::new(kind);
        configure(&site);
        let web = site.web();
        let browser = Browser::log_in(&web);
        put(&browser, ONE, TRIPS).ok();
        let problems = |text: &str| {
            let refused = put(&browser, ONE, text);
            refused.refused(422, "invalid_dashboard");
            let problems = refused.json()["problems"].clone();
            let verdict = browser.send("POST", &format!("{ONE}/validate"), &[YAML], text.as_bytes()).ok().json();
            assert_eq!(verdict["errors"], problems);
            assert_eq!(verdict["ok"], false, "{verdict}");
            let brief = |p: &Value| {
                let place = (p["line"].as_u64().unwrap(), p["column"].as_u64().unwrap());
                (p["kind"].as_str().unwrap().to_owned(), p["path"].as_str().unwrap().to_owned(), place)
            };
            problems.as_array().unwrap().iter().map(brief).collect::<Vec<_>>()
        };
        let one = |kind: &str, path: &str, line, column| vec![(kind.to_owned(), path.to_owned(), (line, column))];
        assert_eq!(problems("version: [\n"), one("syntax", "", 1, 10));
        let series = TRIPS.replace("series: vendor", "series: vendors");
        assert_eq!(problems(&series), one("unknown_column", "/panels/1/series", 15, 79));
        let text_drawn = TRIPS.replace("y: [trips]", "y: [vendor]");
        assert_eq!(problems(&text_drawn), one("type_mismatch", "/panels/1/y/0", 15, 63));
        let missing = TRIPS.replace("DISTINCT vendor AS", "DISTINCT vendr AS");
        assert_eq!(problems(&missing), one("invalid_sql", "/queries/vendors/sql", 7, 35));
        for (from, to) in [
            ("SELECT DISTINCT", "SELEKT DISTINCT"),
            ("vendor AS value FROM trips", "vendor AS value FROM trip"),
            ("SELECT DISTINCT vendor AS value FROM trips ORDER BY 1", "DELETE FROM trips"),
            (
                "SELECT DISTINCT vendor AS value FROM trips ORDER BY 1",
                "SELECT content AS value FROM read_text('/etc/passwd')",
            ),
            ("SELECT DISTINCT vendor AS value FROM trips ORDER BY 1", "SELECT 1 AS value; SELECT 2 AS value"),
        ] {
            let found = problems(&TRIPS.replace(from, to));
            assert!(
                found.iter().any(|(kind, path, _)| kind == "invalid_sql" && path == "/queries/vendors/sql"),
                "{to}: {found:?}"
            );
        }
        assert_eq!(browser.get(ONE).ok().text(), TRIPS);

        // A draft may be any UTF-8 text.
        browser.send("PUT", &format!("{ONE}?draft=1"), &[YAML], b"\xff\xfe").refused(400, "invalid_request");
        browser.send("PUT", ONE, &[YAML], b"\xff\xfe").refused(422, "invalid_dashboard");
        put(&browser, &format!("{ONE}?draft=1"), &"x".repeat(256 << 10)).ok();
        put(&browser, &format!("{ONE}?draft=1"), &"x".repeat((256 << 10) + 1)).refused(413, "payload_too_large");
        browser.send("POST", &format!("{ONE}/publish"), &[], b"").refused(422, "invalid_dashboard");
        assert_eq!(keys(&site), ["trips.draft.yaml", "trips.yaml"]);
        assert_eq!(browser.get(ONE).ok().text(), TRIPS);
    });
}

#[test]
fn one_of_concurrent_first_saves_of_a_draft_succeeds() {
    on_both(|kind| {
        let site = Site::new(kind);
        configure(&site);
        let webs = [site.web(), site.web()];
        let browser = Browser::log_in(&webs[0]);
        let draft = format!("{ONE}?draft=1");
        let first = |browser: &Browser, path: &str, text: &str| {
            browser.send("PUT", path, &[YAML, ("If-None-Match", "*")], text.as_bytes())
        };
        // Fewer than may wait for each other.
        let barrier = std::sync::Barrier::new(6);
        let replies: Vec<Reply> = std::thread::scope(|scope| {
            let start = |nth: usize| {
                let browser = Browser { address: webs[nth % 2].address(), ..browser.clone() };
                let (first, draft, barrier) = (&first, &draft, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    first(&browser, draft, &format!("n: {nth}"))
                })
            };
            let racers: Vec<_> = (0..6).map(start).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let won: Vec<usize> = (0..6).filter(|nth| replies[*nth].status == 200).collect();
        assert_eq!(won.len(), 1, "{:?}", replies.iter().map(|reply| reply.status).collect::<Vec<_>>());
        replies.iter().filter(|reply| reply.status != 200).for_each(|reply| {
            reply.refused(412, "precondition_failed");
        });
        assert_eq!(browser.get(&draft).ok().text(), format!("n: {}", won[0]));
        // The published dashboard is another object with the same rules.
        first(&browser, ONE, TRIPS).ok();
        first(&browser, ONE, TRIPS).refused(412, "precondition_failed");
    });
}

#[test]
fn stale_write_is_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        configure(&site);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let draft = format!("{ONE}?draft=1");
        let save =
            |path: &str, tag: &str, text: &str| browser.send("PUT", path, &[YAML, ("If-Match", tag)], text.as_bytes());
        save(&draft, "*", "a: 1").refused(412, "precondition_failed");
        let first = put(&browser, &draft, "a: 1").ok().header("etag").unwrap().to_owned();
        let second = save(&draft, &first, "a: 2").ok().header("etag").unwrap().to_owned();
        assert_ne!(first, second);
        save(&draft, &first, "a: 3").refused(412, "precondition_failed");
        save(&draft, "no tag", "a: 3").refused(400, "invalid_request");
        assert_eq!(browser.get(&draft).ok().text(), "a: 2");
        let publish = |tag: &str| browser.send("POST", &format!("{ONE}/publish"), &[("If-Match", tag)], b"");
        publish(&first).refused(412, "precondition_failed");
        let last = save(&draft, "*", TRIPS).ok().header("etag").unwrap().to_owned();
        publish(&last).ok();
        publish(&last).refused(412, "precondition_failed");

        let tag = browser.get(ONE).ok().header("etag").unwrap().to_owned();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let save = &save;
            let tag = &tag;
            let writers: Vec<_> =
                (0..8).map(|n| scope.spawn(move || save(ONE, tag, &format!("{TRIPS}# {n}\n")).status)).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 7, "{statuses:?}");
    });
}

#[test]
fn interrupted_publication_is_completed_by_the_next() {
    on_both(|kind| {
        let site = Site::new(kind);
        configure(&site);
        let mut web = site.web_with(&[("FAILPOINTS", "dashboards::published=return(kill)")]);
        let browser = Browser::log_in(&web);
        put(&browser, &format!("{ONE}?draft=1"), TRIPS).ok();
        assert!(browser.try_send("POST", &format!("{ONE}/publish"), &[], b"").is_err());
        web.await_exit();
        assert_eq!(keys(&site), ["trips.draft.yaml", "trips.yaml"]);
        let web = site.web();
        let browser = Browser::log_in(&web);
        assert_eq!(browser.get(ONE).ok().text(), TRIPS);
        browser.send("POST", &format!("{ONE}/publish"), &[], b"").ok();
        assert_eq!(keys(&site), ["trips.yaml"]);
    });
}

#[test]
fn draft_saved_during_publication_is_kept() {
    on_both(|kind| {
        let site = Site::new(kind);
        configure(&site);
        let publisher = site.web_with(&[("FAILPOINTS", "dashboards::compared=1*return(stop)->off")]);
        let other = site.web();
        let browser = Browser::log_in(&publisher);
        let elsewhere = Browser { address: other.address(), ..browser.clone() };
        let draft = format!("{ONE}?draft=1");
        put(&browser, &draft, TRIPS).ok();
        std::thread::scope(|scope| {
            let published = scope.spawn(|| browser.send("POST", &format!("{ONE}/publish"), &[], b""));
            await_that("the publication to stand still", || is_stopped(publisher.pid()));
            let saved = scope.spawn(|| put(&elsewhere, &draft, "a: 2"));
            let lock = "dashboards/taxi/trips";
            assert!(!site.kv.try_lock(lock, "probe", std::time::Duration::from_millis(1)).unwrap(), "saves wait");
            publisher.signal(rustix::process::Signal::CONT);
            published.join().unwrap().ok();
            saved.join().unwrap().ok();
        });
        assert_eq!(elsewhere.get(ONE).ok().text(), TRIPS);
        assert_eq!(elsewhere.get(&draft).ok().text(), "a: 2");
    });
}

#[test]
fn panels_follow_parameters_and_fail_independently() {
    on_both(|kind| {
        let site = Site::new(kind);
        configure(&site);
        run(
            &site,
            &[
                ("2013-01-01", "A", "1.50"),
                ("2013-01-02", "B", "2.50"),
                ("2013-01-02", "A", "4.00"),
                ("2013-01-04", "O'x", "8.00"),
            ],
        );
        let web = site.web();
        let browser = Browser::log_in(&web);
        put(&browser, ONE, TRIPS).ok();
        let data = |params: Value| browser.post(&format!("{ONE}/data"), &json!({ "params": params })).ok().json();
        let period =
            |start: &str, end: &str| json!({ "start": format!("2013-01-{start}"), "end": format!("2013-01-{end}") });

        let unasked = browser.send("POST", &format!("{ONE}/data"), &[], b"").ok().json();
        assert_eq!(unasked["params"], data(json!({}))["params"], "an empty body asks for nothing in particular");
        let found = data(json!({ "period": period("02", "03") }));
        assert_eq!(found["panels"]["revenue"]["rows"], json!([["6.50"]]), "{found:#}");
        assert_eq!(found["panels"]["revenue"]["previous"]["rows"], json!([["1.50"]]));
        let trend = &found["panels"]["trend"];
        assert_eq!(trend["rows"].as_array().unwrap().len(), 2);
        assert_eq!(trend["columns"][0], json!({ "name": "pickup_day", "type": "date" }));
        assert_eq!(trend["truncated"], false);
        assert_eq!(found["options"]["vendor"]["rows"], json!([["A", "A"], ["B", "B"], ["O'x", "O'x"]]));
        assert_eq!(found["params"]["period"]["start"], "2013-01-02");
        let found = data(json!({ "period": period("01", "31"), "vendor": ["O'x", "B"] }));
        assert_eq!(found["panels"]["revenue"]["rows"], json!([["10.50"]]));
        // A choice is a value, even if it reads like SQL.
        for hostile in ["' OR 1=1 --", "'; DROP TABLE trips; --", "$$", "\u{202e}😀", "\\"] {
            let found = data(json!({ "period": period("01", "31"), "vendor": [hostile] }));
            assert_eq!(found["panels"]["trend"]["rows"], json!([]), "{hostile}: {found}");
        }
        // No rows in the last days, nor before the first.
        assert_eq!(data(json!({}))["panels"]["trend"]["rows"], json!([]));
        assert_eq!(data(json!({ "period": "all" }))["panels"]["revenue"]["previous"], Value::Null);

        for (params, named) in [
            (json!({ "vendors": ["A"] }), "vendors"),
            (json!({ "vendor": "A" }), "vendor"),
            (json!({ "vendor": ["a\u{0}"] }), "vendor"),
            (json!({ "period": "yesteryear" }), "period"),
            (json!({ "period": { "start": "2013-01-02", "end": "2013-01-01" } }), "period"),
        ] {
            let refused = browser.post(&format!("{ONE}/data"), &json!({ "params": params }));
            assert!(refused.refused(400, "invalid_request").contains(&format!("`{named}`")), "{params}");
        }
        browser.post(&format!("{ONE}/data"), &json!({ "params": [] })).refused(400, "invalid_request");
        browser.post(&format!("{ONE}/data"), &json!({ "parms": {} })).refused(400, "invalid_request");
        browser.post(&format!("{ONE}/data"), &json!({ "draft": true })).refused(404, "dashboard_not_found");

        let broken = format!(
            "{}  - {{ id: gone, type: table, query: gone }}\n  - {{ id: wide, type: table, query: daily, width: 13 }}\n  - {{ id: failing, type: table, query: failing }}\n",
            TRIPS.replace("queries:\n", "queries:\n  failing: { sql: \"SELECT error('oh') AS a FROM trips\" }\n  gone: { sql: SELECT * FROM nowhere }\n")
        );
        put(&browser, &format!("{ONE}?draft=1"), &broken).ok();
        let request = json!({ "draft": true, "params": { "period": period("01", "31") } });
        let found = browser.post(&format!("{ONE}/data"), &request).ok().json();
        assert_eq!(found["panels"]["revenue"]["rows"], json!([["16.00"]]), "{found:#}");
        assert_eq!(found["panels"]["wide"]["error"], "invalid_dashboard");
        for panel in ["gone", "failing"] {
            assert!(
                found["panels"][panel]["error"].is_string() && found["panels"][panel]["message"].is_string(),
                "{found:#}"
            );
        }
        put(&browser, &format!("{ONE}?draft=1"), "no: [").ok();
        browser.post(&format!("{ONE}/data"), &request).refused(422, "invalid_dashboard");
    });
}

#[test]
fn all_parameter_and_panel_kinds_work_on_an_empty_table() {
    let site = Site::new(Kind::Embedded);
    configure(&site);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let text = include_str!("../../../testdata/dashboards/good/everything.yaml");
    put(&browser, ONE, text).ok();
    let hostile = json!({
        "text": "'; DROP TABLE trips; --", "count": 3, "ratio": null, "kind": 2.5, "several": ["x", "y"], "queried": "$text",
        "day": "today", "other_day": "2013-12-31", "period": "last_quarter", "other": { "start": "2010-01-01", "end": "2010-01-01" },
    });
    for params in [json!({}), hostile] {
        let found = browser.post(&format!("{ONE}/data"), &json!({ "params": params })).ok().json();
        let panels = found["panels"].as_object().unwrap();
        assert_eq!(panels.len(), 11, "{found:#}");
        assert!(panels.values().all(|panel| panel["rows"].is_array()), "{found:#}");
        assert!(found["options"]["queried"]["rows"].is_array(), "{found:#}");
    }
}

#[test]
fn dashboard_without_tables_names_the_missing_tables() {
    let site = Site::new(Kind::Embedded);
    site.put("taxi", "a.csv", "a\n1\n");
    let web = site.web();
    let browser = Browser::log_in(&web);
    browser.post(ALL, &json!({ "name": "trips" })).ok();
    browser.send("POST", &format!("{ONE}/publish"), &[], b"").ok();
    put(&browser, ONE, TRIPS).refused(422, "invalid_dashboard");
    let data = browser.post(&format!("{ONE}/data"), &json!({})).ok().json();
    assert!(data["panels"].as_object().unwrap().values().all(|panel| panel["row_count"] == 1), "{data}");
    assert_eq!(data["config"], json!({ "state": "missing" }));
}

#[test]
fn sample_dashboard_is_valid_and_shows_all_panels() {
    let site = Site::new(Kind::Embedded);
    site.configure("taxi", &serde_json::from_str(FLIGHTS.config).unwrap());
    let web = site.web();
    let browser = Browser::log_in(&web);
    for (name, text) in FLIGHTS.dashboards {
        let path = format!("{ALL}/{name}");
        let verdict = put(&browser, &path, text).ok().json();
        assert_eq!(verdict["warnings"], json!([]));
        let found = browser.post(&format!("{path}/data"), &json!({})).ok().json();
        let parts = found["panels"].as_object().unwrap().iter().chain(found["options"].as_object().unwrap());
        for (name, part) in parts {
            assert!(part["rows"].is_array(), "{name}: {part}");
        }
    }
}

#[test]
fn invalid_names_and_unknown_pipelines_are_rejected() {
    let site = Site::new(Kind::Embedded);
    configure(&site);
    let web = site.web();
    let browser = Browser::log_in(&web);
    for bad in ["", "A", "a.draft", "../x", "-a", "ä", &"x".repeat(64)] {
        browser.post(ALL, &json!({ "name": bad })).refused(400, "invalid_slug");
    }
    browser.post(ALL, &json!({})).refused(400, "invalid_request");
    browser.post(ALL, &json!({ "name": "a", "template": "b" })).refused(400, "invalid_request");
    for (method, tail) in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/publish"), ("POST", "/data")] {
        let body: &[u8] = if tail == "/data" { b"{}" } else { b"" };
        browser.send(method, &format!("{ALL}/Trips{tail}"), &[], body).refused(400, "invalid_slug");
        browser.send(method, &format!("{ALL}/%2e%2e{tail}"), &[], body).refused(400, "invalid_slug");
        browser.send(method, &format!("/api/p/No/dashboards/trips{tail}"), &[], body).refused(400, "invalid_slug");
        let reply = browser.send(method, &format!("/api/p/none/dashboards/trips{tail}"), &[], body);
        reply.refused(404, "pipeline_not_found");
        if method != "PUT" {
            browser.send(method, &format!("{ONE}{tail}"), &[], body).refused(404, "dashboard_not_found");
        }
    }
    assert_eq!(keys(&site), Vec::<String>::new());
}

/// The web service takes little more memory for `work` than for a dashboard; the path validates one.
fn takes_little_memory(work: impl FnOnce(&Browser, &str)) {
    let site = Site::new(Kind::Embedded);
    configure(&site);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let path = format!("{ONE}/validate");
    browser.send("POST", &path, &[YAML], TRIPS.as_bytes()).ok();
    let peak = web.peak_bytes();
    work(&browser, &path);
    let grown = web.peak_bytes() - peak;
    assert!(grown < HOSTILE_MEMORY_BYTES_MAX, "the web service took {grown} bytes more");
}

#[test]
fn chain_of_merges_takes_little_memory() {
    takes_little_memory(|browser, path| {
        let mut text = String::from("x-a:\n- &m0 {a: }\n");
        for at in 0..8_000 {
            text.push_str(&format!("- &m{} {{<<: *m{at}, b{at}: }}\n", at + 1));
        }
        let verdict = browser.send("POST", path, &[YAML], text.as_bytes()).ok().json();
        assert_eq!(verdict["ok"], false, "{verdict}");
    });
}

#[test]
fn validation_always_returns_a_verdict() {
    let site = Site::new(Kind::Embedded);
    configure(&site);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let verdict = |path: &str, content_type: &str, body: &[u8]| {
        browser.send("POST", &format!("{path}/validate"), &[("Content-Type", content_type)], body).ok().json()
    };
    for unknown in [ONE, "/api/p/taxi/dashboards/Trips", "/api/p/none/dashboards/trips", "/api/p/No/dashboards/trips"] {
        let verdict = verdict(unknown, "application/yaml", b"");
        assert_eq!((&verdict["ok"], verdict["errors"].as_array().unwrap().len()), (&json!(false), 1), "{verdict}");
    }
    for content_type in ["application/json", "image/png", "multipart/form-data", ";"] {
        assert_eq!(verdict(ONE, content_type, TRIPS.as_bytes())["ok"], true, "{content_type}");
    }
    for (body, kind) in [
        (vec![b'#'; 8 << 20], "limit"),
        (vec![b'#'; 33 << 20], "limit"),
        (vec![0xff; 300], "syntax"),
        (b"- 1".to_vec(), "wrong_type"),
    ] {
        let verdict = verdict(ONE, "text/plain", &body);
        assert_eq!((&verdict["ok"], &verdict["errors"][0]["kind"]), (&json!(false), &json!(kind)));
    }
    assert_eq!(keys(&site), Vec::<String>::new());
}

#[test]
fn dashboard_text_is_validated_by_the_cli() {
    let validate = |path: &Path| {
        let output = lakemill().arg("validate").arg(path).output_reaped().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dashboards/good/trips.yaml");
    let (status, response) = validate(&good);
    assert_eq!(status, Some(0), "{response}");
    assert!(response.contains("ok, 3 panels") && response.contains("SQL is not checked"), "{response}");
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.yml");
    std::fs::write(&bad, TRIPS.replace("width: 3", "width: 30").replace("version: 2", "version: 2\ncolour: red"))
        .unwrap();
    let (status, response) = validate(&bad);
    assert_eq!(status, Some(1), "{response}");
    assert!(response.contains("bad.yml:2:1: unknown field `colour`"), "{response}");
    assert!(response.contains("bad.yml:15:") && response.contains("invalid_value at /panels/0/width"), "{response}");
    assert!(response.contains("2 problems"), "{response}");
}

#[test]
fn long_lists_of_wrong_values_are_one_problem_and_take_little_memory() {
    takes_little_memory(|browser, path| {
        let many = |item: &str, count: usize| vec![item; count].join(",");
        for text in [format!("panels: [{}]", many("{}", 80_000)), format!("params: [{}]", many("1", 80_000))] {
            let verdict = browser.send("POST", path, &[YAML], text.as_bytes()).ok().json();
            let errors = verdict["errors"].as_array().unwrap();
            assert_eq!(errors.len(), 1, "{text:.100}");
            assert!(errors[0]["message"].as_str().unwrap().contains("the dashboard is large"), "{verdict}");
        }
        let mapping = |more: &str| format!("{{\"version\":1,\"mappings\":[{more}]}}");
        let columns = format!("{{\"table\":\"t\",\"files\":[\"*\"],\"columns\":[{}]}}", many("{}", 4_000));
        for config in [mapping(&many("{}", 60_000)), mapping(&many(&columns, 20)), mapping(&many("1", 150_000))] {
            let problem = only_problem(browser, &config);
            assert!(problem.contains("the config is large"), "{problem}");
        }
    });
}

/// The message of the only problem of a config.
fn only_problem(browser: &Browser, config: &str) -> String {
    let problems = browser.send("PUT", CHECK, &[JSON], config.as_bytes()).ok().json()["problems"].clone();
    assert_eq!(problems.as_array().map(Vec::len), Some(1), "{problems}");
    problems[0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn configs_of_very_many_values_are_refused_and_take_little_memory() {
    takes_little_memory(|browser, _| {
        let many = |item: &str, count: usize| vec![item; count].join(",");
        let preview = CHECK.replace("/config?dry_run=1", "/preview");
        for list in [many("{\"\":0}", 590_000), many("{}", 1_300_000), many("1", 1_900_000)] {
            let config = format!("{{\"version\":1,\"mappings\":[{list}]}}");
            let problem = only_problem(browser, &config);
            assert!(problem.contains("expected at most 200000 values and brackets"), "{problem}");
            let body = format!("{{\"config\":{config}}}");
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let refused = browser.send("POST", &preview, &[JSON], body.as_bytes());
                        assert!([400, 503].contains(&refused.status), "{}", refused.text());
                    });
                }
            });
        }
    });
}
