//! Showing lines of a file.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::encoded;
use crate::support::browser::{Browser, Reply};
use crate::support::lake::gzip;
use crate::support::site::{Kind, Site};
use crate::web::on_both;
use crate::web::tables::TripsSite;

fn get(browser: &Browser, name: &str, query: &str) -> Reply {
    browser.get(&format!("/api/lake/lines?key={}{query}", encoded(&format!("pipelines/trips/{name}"))))
}

fn lines(browser: &Browser, name: &str, query: &str) -> Value {
    get(browser, name, query).ok().json()
}

#[test]
fn lines_are_shown_from_any_position_of_plain_and_compressed_files() {
    on_both(|kind| {
        let site = Site::new(kind);
        let text: String = (1..=50_000).map(|n| format!("{n},row\r\n")).collect();
        site.put("trips", "a.csv", &text);
        site.put("trips", "a.csv.gz", gzip(text.as_bytes()));
        site.put("trips", "a.csv.zst", zstd::encode_all(text.as_bytes(), 1).unwrap());
        let web = site.web();
        let browser = Browser::log_in(&web);
        for name in ["a.csv", "a.csv.gz", "a.csv.zst"] {
            let response = lines(&browser, name, "&line=49999&count=5");
            assert_eq!(response["lines"], json!(["49999,row", "50000,row"]), "{name}");
            assert_eq!((&response["first_line"], &response["more"]), (&json!(49_999), &json!(false)));
            assert_eq!((&response["encoding"], &response["bytes_read"]), (&json!("UTF-8"), &json!(text.len())));
            assert!(response["etag"].is_string() && response["limited_by"].is_null(), "{response}");
            let start = lines(&browser, name, "");
            assert_eq!((start["lines"].as_array().unwrap().len(), &start["more"]), (200, &json!(true)));
            let behind = lines(&browser, name, "&line=50001");
            assert_eq!((&behind["lines"], &behind["more"]), (&json!([]), &json!(false)));
        }
    });
}

#[test]
fn line_of_a_rejected_row_is_shown() {
    let trips = TripsSite::new(Kind::Embedded);
    let row = &trips.browser.get("/api/p/trips/tables/_rejected_rows/rows?limit=1").ok().json();
    let at = |name: &str| {
        let column = row["columns"].as_array().unwrap().iter().position(|column| column["name"] == name).unwrap();
        row["rows"][0][column].clone()
    };
    let response = lines(&trips.browser, at("source").as_str().unwrap(), &format!("&line={}&count=1", at("line")));
    assert_eq!(response["lines"][0], at("raw"));
}

#[test]
fn files_in_other_encodings_are_shown_as_text() {
    let site = Site::new(Kind::Embedded);
    site.put("trips", "latin.csv", b"name\nZo\xeb\n");
    site.put("trips", "greek.csv", b"\xc1\xe8\xde\xed\xe1\n");
    let web = site.web();
    let browser = Browser::log_in(&web);
    let response = lines(&browser, "latin.csv", "");
    assert_eq!((&response["lines"][1], &response["encoding"]), (&json!("Zoë"), &json!("windows-1252")));
    let response = lines(&browser, "greek.csv", "&encoding=iso-8859-7");
    assert_eq!((&response["lines"][0], &response["encoding"]), (&json!("Αθήνα"), &json!("ISO-8859-7")));
}

#[test]
fn invalid_line_requests_are_rejected() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.put("trips", "a.csv", "a\n");
        site.put("trips", "zip.csv", b"PK\x03\x04rest");
        site.put("trips", "b.csv.gz", "no gzip");
        let web = site.web();
        let browser = Browser::log_in(&web);
        for query in ["&line=0", "&line=-1", "&line=x", "&count=0", "&count=1001", "&encoding=nope", "&line=1&line=2"] {
            get(&browser, "a.csv", query).refused(400, "invalid_request");
        }
        for name in ["zip.csv", "b.csv.gz"] {
            get(&browser, name, "").refused(400, "invalid_request");
        }
        get(&browser, "nothing.csv", "").refused(404, "object_not_found");
        get(&browser, "../x.csv", "").refused(400, "invalid_key");
        browser.get("/api/lake/lines").refused(400, "invalid_request");
        // Only a part of a decompression bomb is read.
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&[b'x'; 1 << 20]).unwrap();
        site.put("trips", "bomb.csv.gz", bomb.finish().unwrap().repeat(300));
        let reply = get(&browser, "bomb.csv.gz", "&line=2");
        match reply.status {
            200 => assert!(reply.json()["limited_by"].is_string(), "{}", reply.text()),
            _ => drop(reply.refused(400, "invalid_request")),
        }
    });
}
