//! Pipelines with keys that only other tools create: folder markers, `//`, backslashes, line breaks.

use std::collections::BTreeMap;

use lakemill::domain::digest::sha256_hex;
use lakemill::domain::job::JobStatus;
use lakemill::domain::layout::pipeline_prefix;
use lakemill::ports::store::{Bucket, WriteOptions, list_all};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::archive::{export, forged, import, import_as, left_in_scratch, unzipped};
use super::lake::{download, encoded, keys, level};
use super::lifecycle::{assert_nothing_to_do, content, has_run, objects, slugs};
use super::on_both;
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site, slug};

/// By bucket and key relative to the pipeline; folders can't hold them.
const EMPTY_SEGMENTS: &[(Bucket, &str, &str)] = &[
    (Bucket::Lake, "", ""),
    (Bucket::Lake, "in/", ""),
    (Bucket::Lake, "in//2.csv", "a,b\ny,2\nz,bad\n"),
    (Bucket::Lake, "in/sub//", ""),
    (Bucket::Lake, "/notes.txt", "notes"),
    (Bucket::Pipelines, "jobs/", ""),
    (Bucket::Pipelines, "queries//q.json", "{}"),
    (Bucket::Warehouse, "t/", ""),
    (Bucket::Warehouse, "", ""),
];

fn lay_out(site: &Site, pipeline: &str) {
    site.pipeline(pipeline, &json!({ "partition_by": ["a"] }));
    site.put(pipeline, "in/1.csv", "a,b\nx,1\n");
    for (bucket, name, body) in EMPTY_SEGMENTS {
        let key = format!("{}{name}", pipeline_prefix(&slug(pipeline)));
        site.store.put(*bucket, &key, body.as_bytes(), &WriteOptions::default()).unwrap();
    }
}

fn has_all(site: &Site, pipeline: &str) {
    let objects = objects(site, pipeline);
    for (bucket, name, body) in EMPTY_SEGMENTS {
        assert_eq!(
            objects.get(&format!("{bucket}/{name}")).map(Vec::as_slice),
            Some(body.as_bytes()),
            "{bucket} {name}"
        );
    }
}

fn everything(site: &Site) -> BTreeMap<Bucket, Vec<String>> {
    let keys = |bucket| list_all(&*site.store, bucket, "").unwrap().into_iter().map(|object| object.key).collect();
    Bucket::ALL.into_iter().map(|bucket| (bucket, keys(bucket))).collect()
}

#[test]
fn keys_with_empty_segments_are_fully_usable() {
    let site = Site::with_any_keys();
    lay_out(&site, "p");
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    let end = site.await_end(&site.enqueue("p"));
    assert_eq!(end.status, JobStatus::Completed, "{end:?}");
    let result = end.result.unwrap();
    let table = &result.tables["t"];
    assert_eq!((table.sources_read, table.rows_written, table.rows_rejected), (2, 2, 1));
    assert_eq!(result.skipped_files, [""; 0]);
    assert_nothing_to_do(&site, "p");

    let top = level(&browser, "pipelines/p/");
    assert_eq!((&top["folders"], keys(&top)), (&json!(["pipelines/p//", "pipelines/p/in/"]), vec!["pipelines/p/"]));
    let inner = browser.get("/api/lake?state=1&prefix=pipelines/p/in/").ok().json();
    assert_eq!(inner["folders"], json!(["pipelines/p/in//", "pipelines/p/in/sub/"]));
    assert_eq!(keys(&inner), ["pipelines/p/in/", "pipelines/p/in/1.csv"]);
    assert_eq!(inner["files"][0]["state"]["loaded"], "not_read");
    let odd = "pipelines/p/in//2.csv";
    let level = browser.get("/api/lake?state=1&prefix=pipelines/p/in//").ok().json();
    assert_eq!((&level["prefix"], keys(&level)), (&json!("pipelines/p/in//"), vec![odd]));
    assert_eq!(level["files"][0]["state"], json!({ "tables": ["t"], "loaded": "loaded", "rows_rejected": 1 }));

    assert_eq!(download(&browser, odd).ok().body, b"a,b\ny,2\nz,bad\n");
    let lines = browser.get(&format!("/api/lake/lines?key={}", encoded(odd))).ok().json();
    assert_eq!(lines["lines"], json!(["a,b", "y,2", "z,bad"]));
    let lineage = browser.get("/api/p/p/tables/t/lineage").ok().json();
    assert_eq!(lineage["sources"][0]["key"], "in//2.csv", "{lineage}");
    let rejected = browser.get("/api/p/p/tables/_rejected_rows/rows").ok().json();
    assert!(rejected.to_string().contains("in//2.csv"), "{rejected}");

    browser.post("/api/lake", &json!({ "from": odd, "to": "pipelines/p/in/2.csv" })).ok();
    for marker in ["pipelines/p/in/", "pipelines/p/in/sub//", "pipelines/p/"] {
        browser.delete(&format!("/api/lake?key={}", encoded(marker))).ok();
        browser.delete(&format!("/api/lake?key={}", encoded(marker))).refused(400, "invalid_key");
    }
    let left = list_all(&*site.store, Bucket::Lake, "").unwrap();
    let left: Vec<String> = left.into_iter().map(|object| object.key).collect();
    assert_eq!(left, ["pipelines/p//notes.txt", "pipelines/p/in/1.csv", "pipelines/p/in/2.csv"]);
}

#[test]
fn keys_with_empty_segments_are_renamed_and_deleted_with_their_pipeline() {
    let site = Site::with_any_keys();
    lay_out(&site, "p");
    let (_worker, web) = site.worker_and_web();
    let browser = Browser::log_in(&web);
    has_run(&site, &["p"]);
    let before = content(&site, "p");

    browser.patch("/api/pipelines/p", &json!({ "newSlug": "q" })).ok();
    assert_eq!((content(&site, "q"), slugs(&browser)), (before.clone(), vec!["q".to_owned()]));
    has_all(&site, "q");
    assert_nothing_to_do(&site, "q");

    let archive = export(&browser, "q");
    import_as(&browser, "r", &archive).ok();
    assert_eq!(content(&site, "r"), before);
    has_all(&site, "r");
    assert_nothing_to_do(&site, "r");

    for name in ["q", "r"] {
        browser.delete(&format!("/api/pipelines/{name}")).ok();
        assert_eq!(objects(&site, name), BTreeMap::new());
        browser.delete(&format!("/api/pipelines/{name}")).refused(404, "pipeline_not_found");
        browser.post("/api/pipelines", &json!({ "slug": name })).ok();
        browser.delete(&format!("/api/pipelines/{name}")).ok();
    }
    assert_eq!(slugs(&browser), [""; 0]);
    assert_eq!(everything(&site).into_values().flatten().collect::<Vec<_>>(), [""; 0]);
    // A marker alone is listed as a pipeline, and can be deleted.
    site.put("s", "", "");
    assert_eq!(slugs(&browser), ["s"]);
    browser.delete("/api/pipelines/s").ok();
    assert_eq!(slugs(&browser), [""; 0]);
}

#[test]
fn import_detects_stores_without_empty_segments_before_writing() {
    let archive = {
        let site = Site::with_any_keys();
        lay_out(&site, "p");
        export(&Browser::log_in(&site.web()), "p")
    };
    on_both(|kind| {
        let site = Site::new(kind);
        // Its first write would end the service.
        let web = site.web_with(&[("FAILPOINTS", "make::marked=return(kill)")]);
        let browser = Browser::log_in(&web);
        let reply = import(&browser, &archive);
        let message = reply.refused(422, "invalid_archive");
        assert!(message.contains("empty segment"), "{message}");
        let problems = reply.json()["problems"].clone();
        let paths: Vec<&str> =
            problems.as_array().unwrap().iter().map(|problem| problem["path"].as_str().unwrap()).collect();
        assert_eq!(paths.len(), EMPTY_SEGMENTS.len(), "{problems}");
        assert!(paths.contains(&"escaped/lake/%2Fin%2F%2F2.csv") && paths.contains(&"escaped/lake/%2F"), "{paths:?}");
        assert_eq!(everything(&site).into_values().flatten().collect::<Vec<_>>(), [""; 0]);
        assert_eq!((slugs(&browser), left_in_scratch(&site)), (vec![], 0));
    });
}

#[test]
fn pipelines_with_unusual_keys_round_trip_through_export() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        site.pipeline("p", &json!({}));
        let names = [
            "in/1.csv",
            "in/a\\b.csv",
            "in/line\nbreak.csv",
            "in/\u{202e}x.csv.gz",
            "C:/x.csv",
            "\\",
            "in/100%\t.csv",
            "escaped/lake/%2Fa%5Cb.csv",
            "in/e\u{301}\\\u{1f600}",
        ];
        for name in names {
            site.put("p", name, name);
        }
        let archive = export(&browser, "p");
        assert!(archive == export(&browser, "p"), "an export of the same has the same bytes");
        import_as(&browser, "q", &archive).ok();
        assert_eq!(content(&site, "q"), content(&site, "p"));
        // Other programs can read it, too: the entry's name encodes the key.
        let mut files = unzipped(&archive);
        let manifest: Value = serde_json::from_slice(&files.remove("manifest.json").unwrap()).unwrap();
        assert_eq!(manifest["objects"].as_array().unwrap().len(), files.len());
        let decoded = |name: &str| match name.strip_prefix("escaped/") {
            Some(escaped) => percent_decode_str(escaped).decode_utf8().unwrap().replacen("//", "/", 1),
            None => name.to_owned(),
        };
        let files: BTreeMap<String, Vec<u8>> = files.into_iter().map(|(name, body)| (decoded(&name), body)).collect();
        assert_eq!(files, objects(&site, "p"));
    });
}

/// Not addressable by a request: HTTP clients and proxies resolve a `..` in a path.
#[test]
fn pipeline_with_unreachable_object_is_neither_exported_nor_deleted() {
    let site = Site::with_any_keys();
    lay_out(&site, "p");
    let web = site.web();
    let browser = Browser::log_in(&web);
    let lake = &site.env()["S3_BUCKET_LAKE"];
    let server = &site.env()["OBJ_ENDPOINT_URL"];
    let key = "pipelines/p/in/../x.csv";
    ureq::put(format!("{server}/{lake}/{key}")).send_empty().unwrap();
    assert_eq!(level(&browser, "pipelines/p/in/")["skipped"], json!(["pipelines/p/in/../"]));
    for reply in [
        browser.get("/api/p/p/export"),
        browser.patch("/api/pipelines/p", &json!({ "newSlug": "q" })),
        browser.delete("/api/pipelines/p"),
        browser.delete("/api/pipelines/p"),
    ] {
        let message = reply.refused(400, "invalid_key");
        assert!(message.contains(&format!("`{key}`")) && message.contains("then retry"), "{message}");
    }
    assert_eq!((slugs(&browser), objects(&site, "q")), (vec!["p".to_owned()], BTreeMap::new()));
    // The server requires a signature, but doesn't check it.
    let signature = "AWS4-HMAC-SHA256 Credential=x/20260101/eu-test-1/s3/aws4_request, SignedHeaders=host, Signature=x";
    ureq::delete(format!("{server}/{lake}/{key}")).header("Authorization", signature).call().unwrap();
    browser.delete("/api/pipelines/p").ok();
    assert_eq!((slugs(&browser), objects(&site, "p")), (vec![], BTreeMap::new()));
}

#[test]
fn escaped_entry_is_exactly_one_object() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let (archive, _) = forged("p", &[("escaped/lake/%2Fa%5Cb.csv", b"1"), ("lake/a.csv", b"2")]);
    import(&browser, &archive).ok();
    let objects = objects(&site, "p");
    assert_eq!(Vec::from_iter(objects.keys()), ["lake/a.csv", "lake/a\\b.csv"]);
    assert_eq!(sha256_hex(&objects["lake/a\\b.csv"]), sha256_hex(b"1"));
}
