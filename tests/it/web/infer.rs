//! Proposing a mapping for a CSV in the lake.

use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::json;

use super::on_both;
use crate::support::browser::{Browser, Reply};
use crate::support::site::{Kind, Site};

fn infer(browser: &Browser, key: &str) -> Reply {
    browser.send("POST", &format!("/api/p/x/infer?key={key}"), &[], b"")
}

/// Keys that lead out of a pipeline's prefix, or are malformed.
pub const FOREIGN_KEYS: &[&str] = &[
    "",
    "in/a.csv",
    "/pipelines/x/in/a.csv",
    "pipelines/y/in/a.csv",
    "pipelines/x",
    "pipelines/x/",
    "pipelines/xx/a.csv",
    "pipelines/x/../y/in/a.csv",
    "pipelines/x/%2e%2e/y/in/a.csv",
    "pipelines/x/..%2fy/in/a.csv",
    "pipelines%2fx%2f..%2fy%2fin%2fa.csv",
    "pipelines/x/./in/a.csv",
    "pipelines/x//in/a.csv",
    "pipelines/x/in\\a.csv",
    "pipelines/x/in/a.csv%0a",
    "pipelines/x/in/%E2%80%AEvsc.a",
    "pipelines\u{2215}x/in/a.csv",
    "workspace/settings.json",
];

/// Well-formed keys of missing objects.
pub const MISSING_KEYS: &[&str] = &[
    "pipelines/x/in/none.csv",
    // Decoded once: further escapes are part of a name.
    "pipelines/x/%252e%252e/y/in/a.csv",
    "pipelines/x/..%252fy/in/a.csv",
    "pipelines/x/%EF%BC%8E%EF%BC%8E/y/in/a.csv",
];

/// `key` escaped for a query string; existing escapes stay.
pub fn in_query(key: &str) -> String {
    key.bytes()
        .map(|b| if b.is_ascii_graphic() && b != b'\\' { (b as char).to_string() } else { format!("%{b:02X}") })
        .collect()
}

#[test]
fn proposal_has_evidence_and_is_a_valid_config() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let csv = "Stadt;Größe (m);am;Wert\nKöln;1,5;31.12.2013;7\nUlm;-;01.02.2014;8\nBonn;2,25;28.02.2014;9\n";
        site.put("x", "in/städte 1.csv", csv);
        let response = infer(&browser, &in_query("pipelines/x/in/städte 1.csv")).ok().json();
        assert_eq!((&response["sample"]["whole"], &response["sample"]["rows_read"]), (&json!(true), &json!(3)));
        assert_eq!(response["mapping"]["csv"]["delimiter"], ";");
        let types: Vec<&str> =
            response["columns"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
        assert_eq!(types[0], "string");
        assert_eq!((types[2], &response["columns"][2]["formats"]), ("date", &json!(["%d.%m.%Y"])));
        assert!(types[3].starts_with("int") || types[3].starts_with("uint"), "{types:?}");
        assert!(
            response["findings"]
                .as_array()
                .unwrap()
                .iter()
                .all(|f| f["why"].as_str().is_some_and(|why| !why.is_empty()))
        );
        let config = json!({ "version": 1, "mappings": [response["mapping"]] });
        assert_eq!(browser.put("/api/p/x/config?dry_run=1", &config).ok().json()["problems"], json!([]), "{config:#}");
        assert!(
            site.store.list(Bucket::Pipelines, "", None, None, 9).unwrap().objects.is_empty(),
            "nothing is written"
        );
    });
}

#[test]
fn proposal_is_for_all_files_that_are_given() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        site.put("x", "in/a.csv", "id,amount\n1,$5.00\nTotal,\n");
        site.put("x", "in/b.csv", "id,amount\n2,\"$1,500.00\"\n3,$6.00\n");
        site.put("x", "in/empty.csv", "");
        let also = |keys: &[&str]| {
            let more: String = keys.iter().map(|key| format!("&also={}", in_query(key))).collect();
            infer(&browser, &format!("{}{more}", in_query("pipelines/x/in/a.csv")))
        };
        let both = ["pipelines/x/in/b.csv", "pipelines/x/in/a.csv", "pipelines/x/in/empty.csv"];
        let response = also(&both).ok().json();
        let read: Vec<(&str, u64)> = response["files_read"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| (file["key"].as_str().unwrap(), file["rows_confirmed"].as_u64().unwrap()))
            .collect();
        assert_eq!(read, [("pipelines/x/in/a.csv", 1), ("pipelines/x/in/b.csv", 2)]);
        assert_eq!(response["files_failed"][0]["key"], "pipelines/x/in/empty.csv");
        assert_eq!(response["sample"]["rows_confirmed"], 3);
        assert_eq!(response["mapping"]["csv"]["footer_values"], json!(["Total"]));
        assert_eq!(response["mapping"]["columns"][1]["number_format"]["thousands"], ",");
        also(&["pipelines/y/in/b.csv"]).refused(400, "invalid_key");
        also(&["pipelines/x/in/none.csv"]).refused(404, "object_not_found");
        let many: Vec<String> = (0..16).map(|nth| format!("pipelines/x/in/{nth}.csv")).collect();
        also(&many.iter().map(String::as_str).collect::<Vec<_>>()).refused(400, "invalid_request");
    });
}

#[test]
fn keys_outside_the_pipeline_are_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        infer(&browser, "pipelines/x/in/a.csv").refused(404, "pipeline_not_found");
        for pipeline in ["x", "y", "xx"] {
            site.put(pipeline, "in/a.csv", "a\n1\n");
        }
        site.store.put(Bucket::Lake, "workspace/settings.json", b"a\n1\n", &WriteOptions::default()).unwrap();
        for key in FOREIGN_KEYS {
            infer(&browser, &in_query(key)).refused(400, "invalid_key");
        }
        for key in MISSING_KEYS {
            infer(&browser, &in_query(key)).refused(404, "object_not_found");
        }
        infer(&browser, &format!("pipelines/x/{}", "k".repeat(1_100))).refused(400, "invalid_key");
        let twice = "pipelines/x/in/a.csv&key=pipelines/x/in/a.csv";
        infer(&browser, twice).refused(400, "invalid_request");
        browser.send("POST", "/api/p/x/infer", &[], b"").refused(400, "invalid_request");
        infer(&browser, "%ff").refused(400, "invalid_request");
        browser.send("POST", "/api/p/x/infer?key=pipelines/x/in/a.csv", &[], b"x").refused(413, "payload_too_large");
        infer(&browser, "pipelines/x/in/a.csv").ok();
    });
}

#[test]
fn non_csv_files_are_rejected_with_the_reason() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
    for (name, bytes) in [
        ("empty.csv", &b""[..]),
        ("image.csv", png),
        ("plain.csv.gz", b"a,b\n1,2\n"),
        ("cut.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03"),
    ] {
        site.put("x", name, bytes);
        let message = infer(&browser, &format!("pipelines/x/{name}")).refused(400, "invalid_request");
        assert!(message.contains(name), "{message}");
    }
}
