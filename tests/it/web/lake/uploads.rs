//! Uploading files.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;

use serde_json::json;

use super::{answer, begin, download, keys, level, on_both, put, upload};
use crate::support::browser::Browser;
use crate::support::site::{Kind, Service, Site, await_some, await_that, slug};

const MAX: usize = 104_857_600;

/// Temporary files of uploads.
fn spooled(site: &Site) -> usize {
    let folders = std::fs::read_dir(site.home()).unwrap().map(|entry| entry.unwrap().path().join("uploads"));
    folders.map(|folder| spooled_in(&folder)).sum()
}

/// Files in the processes' folders below an upload folder.
fn spooled_in(uploads: &Path) -> usize {
    let entries = std::fs::read_dir(uploads).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter_map(|process| std::fs::read_dir(process).ok()).map(Iterator::count).sum()
}

fn begin_upload(web: &Service, browser: &Browser, fields: &str) -> TcpStream {
    begin(web, browser, "PUT", "/api/lake?key=kept", fields)
}

#[test]
fn upload_creates_and_replaces_files() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let body: Vec<u8> = (0..3_000_000_u32).flat_map(|i| (i % 65_521).to_le_bytes()).collect();
        let first = upload(&browser, "any/where/ü.bin", &body);
        assert_eq!(first.status, 201, "{}", first.text());
        let response = first.json();
        assert_eq!((&response["key"], &response["size"]), (&json!("any/where/ü.bin"), &json!(body.len())));
        assert_eq!(first.header("etag").unwrap().trim_matches('"'), response["etag"].as_str().unwrap());
        let got = download(&browser, "any/where/ü.bin").ok();
        assert!(got.body == body);
        assert_eq!(got.header("etag"), first.header("etag"));
        let second = upload(&browser, "any/where/ü.bin", b"");
        assert_eq!((second.status, &second.json()["size"]), (200, &json!(0)));
        assert_eq!(download(&browser, "any/where/ü.bin").ok().body, b"");
        assert_eq!(spooled(&site), 0);
    });
}

#[test]
fn conditional_upload_does_not_replace_a_file() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let send = |body: &[u8]| browser.send("PUT", "/api/lake?key=a", &[("If-None-Match", "*")], body);
        assert_eq!(send(b"first").status, 201);
        send(b"second").refused(412, "precondition_failed");
        assert_eq!(download(&browser, "a").ok().body, b"first");
        let made: Vec<u16> = std::thread::scope(|scope| {
            let send = |i: usize| {
                let path = "/api/lake?key=raced";
                browser.send("PUT", path, &[("If-None-Match", "*")], i.to_string().as_bytes()).status
            };
            let racers: Vec<_> = (0..8).map(|i| scope.spawn(move || send(i))).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|status| **status == 201).count(), 1, "{made:?}");
        assert_eq!(made.iter().filter(|status| **status == 412).count(), 7, "{made:?}");
    });
}

#[test]
fn oversized_upload_is_rejected_and_leaves_nothing() {
    let site = Site::new(Kind::Embedded);
    put(&site, "kept", b"1");
    let web = site.web();
    let browser = Browser::log_in(&web);
    let before = site.contents();
    // Not a byte of the body is sent.
    for length in [format!("{}", MAX + 1), "18446744073709551615".to_owned()] {
        let response = answer(begin_upload(&web, &browser, &format!("Content-Length: {length}")));
        assert!(response.starts_with("HTTP/1.1 413 ") && response.contains("payload_too_large"), "{response}");
    }
    let mut stream = begin_upload(&web, &browser, "Transfer-Encoding: chunked");
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..=MAX / piece.len() {
        let sent = stream
            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .and_then(|()| stream.write_all(&piece))
            .and_then(|()| stream.write_all(b"\r\n"));
        // The service may have closed the connection already.
        if sent.is_err() {
            break;
        }
    }
    let response = answer(stream);
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    await_that("the held file to go", || spooled(&site) == 0);
    assert_eq!(site.contents(), before);
    // A body of exactly the limit is allowed.
    assert_eq!(upload(&browser, "large", &vec![0; MAX]).status, 201);
    assert_eq!(level(&browser, "")["files"][1]["size"], MAX);
}

#[test]
fn interrupted_upload_stores_nothing() {
    on_both(|kind| {
        let site = Site::new(kind);
        put(&site, "kept", b"1");
        let web = site.web();
        let browser = Browser::log_in(&web);
        let before = site.contents();
        for (fields, part) in [
            ("Content-Length: 100", &b"only a part"[..]),
            ("Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
            ("Transfer-Encoding: chunked", b"5\r\nhel"),
            ("Transfer-Encoding: chunked", b"zz\r\nhello\r\n0\r\n\r\n"),
        ] {
            let mut stream = begin_upload(&web, &browser, fields);
            stream.write_all(part).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let response = answer(stream);
            assert!(response.starts_with("HTTP/1.1 400 ") && response.contains("invalid_request"), "{response}");
        }
        await_that("the held files to go", || spooled(&site) == 0);
        assert_eq!(site.contents(), before);
    });
}

#[test]
fn leftovers_of_a_killed_process_are_swept_at_start() {
    let mut site = Site::new(Kind::Embedded);
    let cache = site.home().join("shared-cache");
    site.set("SVC_CACHE_DIR", cache.to_str().unwrap());
    let uploads = || spooled_in(&cache.join("uploads"));
    let own = [("SVC_CACHE_DIR", cache.to_str().unwrap())];
    let mut web = site.web_with(&own);
    let browser = Browser::log_in(&web);
    let mut stream = begin_upload(&web, &browser, "Content-Length: 1000000");
    stream.write_all(&[0; 1_000]).unwrap();
    await_that("the upload to be held", || uploads() == 1);
    // Files of a living process are left alone by other processes.
    let other = site.web_with(&own);
    assert_eq!(uploads(), 1);
    web.kill();
    drop(other);
    let _third = site.web_with(&own);
    assert_eq!(uploads(), 0);
    assert!(site.contents().is_empty());
}

#[test]
fn only_uploading_a_source_into_a_pipeline_extends_its_window() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        for key in ["a.csv", "pipelines/trips/a.pdf", "pipelines/a.csv", "pipelines/No slug/a.csv", "x/trips/a.csv"] {
            upload(&browser, key, b"a\n").ok();
        }
        assert_eq!(site.kv.counts().unwrap().windows, 0);
        for (count, key) in [
            "pipelines/one/a.csv",
            "pipelines/two/deep/er/A.CSV",
            "pipelines/three/a.csv.gz",
            "pipelines/four/a.Csv.Zst",
            "pipelines/four/another.csv",
            "pipelines/five/a.txt",
            "pipelines/six/report",
        ]
        .iter()
        .enumerate()
        {
            upload(&browser, key, b"a\n").ok();
            assert_eq!(site.kv.counts().unwrap().windows, [1, 2, 3, 4, 4, 5, 6][count], "{key}");
        }
    });
}

#[test]
fn uploaded_csv_triggers_one_run() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.automatic_pipeline("trips");
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        for name in ["a", "b", "c"] {
            upload(&browser, &format!("pipelines/trips/in/{name}.csv"), b"a,b\nx,1\n").ok();
        }
        let end = await_some("the run", || site.records("trips").pop());
        assert_eq!((end.trigger.as_str(), end.result.unwrap().tables["t"].rows_written), ("auto", 3));
        assert_eq!(site.records("trips").len(), 1);
        assert!(site.kv.active(&slug("trips"), 10).unwrap().len() <= 1);
    });
}

#[test]
fn upload_without_a_queue_fails_and_can_be_repeated() {
    let site = Site::new(Kind::Fleet);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let redis = site.redis.as_ref().unwrap();
    // Sessions are known, but no new locks can be taken.
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let response = upload(&browser, "pipelines/trips/a.csv", b"a\n");
    response.refused(503, "kv_unavailable");
    // The lock for checking the file again can't be taken either.
    upload(&browser, "elsewhere/a.csv", b"a\n").refused(503, "kv_unavailable");
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    // Repeating the same request is all that is needed.
    upload(&browser, "pipelines/trips/a.csv", b"a\n").ok();
    assert_eq!(site.kv.counts().unwrap().windows, 1);
    assert_eq!(keys(&level(&browser, "pipelines/trips/")), ["pipelines/trips/a.csv"]);
}

#[test]
fn multipart_form_is_not_stored_as_a_file() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let form = b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\na\n1\n\r\n--x--\r\n";
    for content_type in ["multipart/form-data; boundary=x", "Multipart/Form-Data;boundary=x"] {
        let reply = browser.send("PUT", "/api/lake?key=a.csv", &[("Content-Type", content_type)], form);
        assert!(reply.refused(415, "unsupported_media_type").contains("body"));
    }
    download(&browser, "a.csv").refused(404, "object_not_found");
}
