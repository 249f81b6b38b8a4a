//! Export and import, and rejected archives.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};

use flate2::Compression;
use flate2::Crc;
use flate2::write::DeflateEncoder;
use lakemill::domain::digest::sha256_hex;
use lakemill::domain::job::JobStatus;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::lifecycle::{assert_nothing_to_do, content, file_of, has_run, kill_at, lay_out, objects, repeat, slugs};
use super::on_both;
use crate::support::browser::{Browser, Reply};
use crate::support::manifests::replace_file;
use crate::support::parquet_bombs;
use crate::support::site::{Kind, Site, await_some, await_that, slug};

const BOUNDARY: &str = "----boundary-of-tests";

fn field(name: &str, file_name: Option<&str>, value: &[u8]) -> Vec<u8> {
    let file = file_name.map_or(String::new(), |file| format!("; filename=\"{file}\""));
    let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
    [head.as_bytes(), value, b"\r\n"].concat()
}

fn form(fields: &[Vec<u8>]) -> Vec<u8> {
    [fields.concat(), format!("--{BOUNDARY}--\r\n").into_bytes()].concat()
}

fn send(browser: &Browser, body: &[u8]) -> Reply {
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    browser.send("POST", "/api/pipelines/import", &[("Content-Type", &content_type)], body)
}

pub fn import(browser: &Browser, archive: &[u8]) -> Reply {
    send(browser, &form(&[field("file", Some("p.zip"), archive)]))
}

pub fn import_as(browser: &Browser, slug: &str, archive: &[u8]) -> Reply {
    send(browser, &form(&[field("slug", None, slug.as_bytes()), field("file", Some("p.zip"), archive)]))
}

pub fn export(browser: &Browser, pipeline: &str) -> Vec<u8> {
    let reply = browser.get(&format!("/api/p/{pipeline}/export")).ok();
    assert_eq!(reply.header("content-type"), Some("application/zip"));
    let name = format!("attachment; filename=\"{pipeline}.zip\"");
    assert_eq!(reply.header("content-disposition"), Some(name.as_str()));
    reply.body
}

/// An archive as other programs read it.
pub fn unzipped(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).unwrap();
    let mut files = BTreeMap::new();
    for at in 0..zip.len() {
        let mut file = zip.by_index(at).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        files.insert(file.name().unwrap().to_string(), bytes);
    }
    files
}

#[test]
fn export_and_import_round_trip_between_instances() {
    let (embedded, fleet) = (Site::new(Kind::Embedded), Site::new(Kind::Fleet));
    lay_out(&embedded, "p");
    let large: Vec<u8> = (0..1_500_000_u32).flat_map(u32::to_le_bytes).collect();
    embedded.put("p", "large.bin", &large);
    let (_one, here) = embedded.worker_and_web();
    let (_other, there) = fleet.worker_and_web();
    has_run(&embedded, &["p"]);
    let (here, there) = (Browser::log_in(&here), Browser::log_in(&there));
    let first = export(&here, "p");
    assert!(first == export(&here, "p"), "an export of the same has the same bytes");
    let reply = import(&there, &first).ok();
    assert_eq!((reply.status, &reply.json()["slug"]), (201, &json!("p")));
    assert_eq!(content(&fleet, "p"), content(&embedded, "p"));
    assert_eq!(fleet.records("p"), embedded.records("p"));
    assert_nothing_to_do(&fleet, "p");
    // And back, under another name.
    let second = export(&there, "p");
    import_as(&here, "back", &second).ok();
    assert_eq!(content(&embedded, "back"), content(&embedded, "p"));
    assert_nothing_to_do(&embedded, "back");
    // The export contains everything, byte for byte.
    let mut files = unzipped(&second);
    let manifest: Value = serde_json::from_slice(&files.remove("manifest.json").unwrap()).unwrap();
    assert_eq!(files, objects(&fleet, "p"));
    assert_eq!((&manifest["format"], &manifest["slug"]), (&json!(1), &json!("p")));
    assert_eq!(manifest["changed_during_export"], false);
    let listed: Vec<&Value> = manifest["objects"].as_array().unwrap().iter().collect();
    assert_eq!(listed.len(), files.len());
    for object in listed {
        let bytes = &files[object["path"].as_str().unwrap()];
        assert_eq!((&object["size"], &object["sha256"]), (&json!(bytes.len()), &json!(sha256_hex(bytes))));
    }
    import(&there, &first).refused(409, "already_exists");
    there.get("/api/p/none/export").refused(404, "pipeline_not_found");
    there.get("/api/p/NONE/export").refused(400, "invalid_slug");
}

#[test]
fn import_extends_the_debounce_window() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.automatic_pipeline("p");
        site.put("p", "in/1.csv", "a,b\nx,1\n");
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        import_as(&browser, "q", &export(&browser, "p")).ok();
        let end = await_some("the run of what was imported", || site.records("q").pop());
        assert_eq!((end.status, end.trigger.as_str()), (JobStatus::Completed, "auto"), "{end:?}");
        assert_eq!(site.warehouse("q").len(), 1);
    });
}

#[test]
fn first_run_after_an_import_repairs_mismatched_tables() {
    let site = Site::new(Kind::Embedded);
    lay_out(&site, "p");
    let (_worker, web) = site.worker_and_web();
    has_run(&site, &["p"]);
    let good = content(&site, "p");
    let file = file_of(&good, "a=x").unwrap();
    let broken = vec![0; good[&file].len()];
    let key = file.replace("warehouse/", "pipelines/p/");
    site.store.put(Bucket::Warehouse, &key, &broken, &WriteOptions::default()).unwrap();
    let browser = Browser::log_in(&web);
    import_as(&browser, "q", &export(&browser, "p")).ok();
    has_run(&site, &["q"]);
    assert_eq!(content(&site, "q")[&file], good[&file]);
}

#[test]
fn imported_parquet_files_are_never_parsed_by_the_worker() {
    let site = Site::new(Kind::Embedded);
    lay_out(&site, "p");
    let (_worker, web) = site.worker_and_web();
    has_run(&site, &["p"]);
    let file = file_of(&content(&site, "p"), "a=x").unwrap();
    let browser = Browser::log_in(&web);
    for (at, (what, bomb)) in parquet_bombs::all().into_iter().enumerate() {
        replace_file(&*site.store, &slug("p"), "t", file.strip_prefix("warehouse/").unwrap(), &bomb);
        let name = format!("q-{at}");
        import_as(&browser, &name, &export(&browser, "p")).ok();
        // The file has the digest that its manifest has.
        assert_nothing_to_do(&site, &name);
        // Stored rows of the partition would be merged with the new one.
        site.put(&name, "in/3.csv", "a,b\nx,9\n");
        has_run(&site, &[&name]);
        let query = json!({ "sql": "SELECT b FROM t WHERE a = 'x' ORDER BY b" });
        let reply = browser.post(&format!("/api/p/{name}/query"), &query).ok();
        assert_eq!(reply.json()["rows"], json!([[1], [3], [9]]), "{what}");
    }
}

#[test]
fn interrupted_import_can_be_resumed_from_any_step() {
    const FAILPOINTS: &[&str] = &[
        "make::marked",
        "import::between_writes",
        "import::between_writes=5*off->",
        "import::written",
        "make::made",
        "import::configured",
        "make::unmarked",
    ];
    on_both(|kind| {
        let site = Site::new(kind);
        lay_out(&site, "p");
        let (worker, web) = site.worker_and_web();
        has_run(&site, &["p"]);
        let archive = export(&Browser::log_in(&web), "p");
        let wanted = (content(&site, "p"), site.records("p"));
        let fields =
            |at: usize| [field("file", Some("x"), &archive), field("slug", None, format!("q-{at}").as_bytes())];
        for (at, place) in FAILPOINTS.iter().enumerate() {
            let body = form(&fields(at));
            let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
            let headers = [("Content-Type", content_type.as_str())];
            kill_at(&site, place, |browser| browser.try_send("POST", "/api/pipelines/import", &headers, &body).is_ok());
        }
        let browser = Browser::log_in(&web);
        let (other, _) = forged("p", &[("lake/x.csv", b"a\n")]);
        for (at, place) in FAILPOINTS.iter().enumerate() {
            let name = format!("q-{at}");
            repeat(|| import_as(&browser, &name, &other)).refused(409, "already_exists");
            if *place != "make::unmarked" {
                let message = browser.put(&format!("/api/p/{name}/config"), &json!({})).refused(409, "pipeline_busy");
                assert!(message.contains("repeat"), "{place}: {message}");
            }
            let reply = repeat(|| import_as(&browser, &name, &archive));
            assert_eq!(reply.status, if *place == "make::unmarked" { 409 } else { 201 }, "{place}: {}", reply.text());
            assert_eq!(content(&site, &name), wanted.0, "{place}");
            let records = site.records(&name);
            assert!(
                records.iter().all(|job| job.status == JobStatus::Completed),
                "{place}: half of it ran: {records:?}"
            );
            assert!(wanted.1.iter().all(|job| records.contains(job)), "{place}");
            assert_nothing_to_do(&site, &name);
        }
        drop(worker);
    });
}

#[test]
fn export_names_keys_that_no_import_accepts() {
    on_both(|kind| {
        let site = Site::new(kind);
        let web = site.web();
        let browser = Browser::log_in(&web);
        let odd = ["%2e%2e/x.csv", "in/..%2f..%2Fx.csv", "in/a\\..\\..\\x.csv", "..%5c\nx.csv"];
        for (at, key) in odd.iter().enumerate() {
            let name = format!("p-{at}");
            site.pipeline(&name, &json!({}));
            site.put(&name, "in/1.csv", "a,b\n");
            site.put(&name, key, "a,b\n");
            let reply = browser.get(&format!("/api/p/{name}/export"));
            reply.refused(422, "invalid_archive");
            let problems = reply.json()["problems"].clone();
            assert_eq!(problems.as_array().unwrap().len(), 1, "{key}: {problems}");
            assert!(problems[0]["message"].as_str().unwrap().contains("move or delete"), "{problems}");
        }
        // All others survive a round trip, whatever their compression ratio, and also those of names that a decoder
        // would resolve within the pipeline.
        site.pipeline("q", &json!({}));
        let plain = ["in/e\u{301}.csv", "in/ ;\"'<>&%.csv", "in/C:x.csv", "in/\u{1f600}"];
        let steps = ["in/%2e%2e/x.csv", "in/a%2f..%2Fx.csv", "in/a\\..\\x.csv", "in/..%5c\nx.csv", "a/..%2fb.csv"];
        for key in plain.into_iter().chain(steps) {
            site.put("q", key, key);
        }
        if matches!(kind, Kind::Embedded) {
            site.put("q", "dull.csv", vec![b'0'; 65 << 20]);
        }
        let archive = export(&browser, "q");
        import_as(&browser, "r", &archive).ok();
        assert!(content(&site, "r") == content(&site, "q"));
    });
}

#[test]
fn concurrent_imports_are_bounded() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let whole = form(&[field("file", Some("x"), b"no zip")]);
    let begin = || {
        let mut connection = std::net::TcpStream::connect(&browser.address).unwrap();
        let head = format!(
            "POST /api/pipelines/import HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\
             Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {}\r\n\r\n",
            browser.address,
            browser.cookie.as_ref().unwrap(),
            whole.len()
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(&whole[..whole.len() / 2]).unwrap();
        connection
    };
    let mut slow = vec![begin(), begin()];
    // An import that begins while another is being checked finds no slot: the next one gets its turn.
    let reply = await_some("their beginning", || {
        let reply = send(&browser, &whole);
        if reply.status != 422 {
            return Some(reply);
        }
        slow.push(begin());
        None
    });
    reply.refused(503, "overloaded");
    drop(slow);
    await_some("their end", || Some(send(&browser, &whole)).filter(|reply| reply.status == 422));
    await_that("an empty folder", || left_in_scratch(&site) == 0);
}

#[test]
fn failed_import_leaves_nothing() {
    // A folder can't hold an object beside a folder of its name.
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let (archive, _) = forged("p", &[("lake/a", b"1"), ("lake/a/b", b"2"), ("pipelines/pipeline.json", b"{}")]);
    import(&browser, &archive).refused(422, "invalid_archive");
    assert_eq!(objects(&site, "p"), BTreeMap::new());
    assert_eq!(slugs(&browser), [""; 0]);
    browser.post("/api/pipelines", &json!({ "slug": "p" })).ok();
}

#[test]
fn import_checks_all_keys_before_writing() {
    let site = Site::new(Kind::Embedded);
    // Its first write would end the service.
    let web = site.web_with(&[("FAILPOINTS", "make::marked=return(kill)")]);
    let browser = Browser::log_in(&web);
    let long = format!("lake/{}.csv", "x".repeat(300));
    let escaped = ["escaped/lake/%2Fin%2F", "escaped/lake/%2Fin%2F%2Fb.csv", "escaped/lake/%2F"];
    for name in [&long, "lake/a.csv/b.csv", "warehouse/t/v=a%2Fb/.../p/%2e%2e%2fx"].into_iter().chain(escaped) {
        let (archive, _) = forged("p", &[("lake/a.csv", b"1"), (name, b"2"), ("pipelines/pipeline.json", b"{}")]);
        let reply = import(&browser, &archive);
        reply.refused(422, "invalid_archive");
        assert!(reply.json()["problems"][0]["path"].as_str().is_some_and(|path| name[..10] == path[..10]), "{name}");
        assert_eq!(objects(&site, "p"), BTreeMap::new(), "{name}");
    }
}

#[test]
fn malformed_forms_are_rejected() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let (archive, _) = forged("p", &[("lake/x.csv", b"a\n")]);
    let file = field("file", Some("p.zip"), &archive);
    let whole = form(std::slice::from_ref(&file));
    let bad: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("no parts", form(&[])),
        ("no file", form(&[field("slug", None, b"q")])),
        ("no file name", form(&[field("file", None, &archive)])),
        ("an empty file name", form(&[field("file", Some(""), &archive)])),
        ("two files", form(&[file.clone(), file.clone()])),
        ("two slugs", form(&[field("slug", None, b"q"), file.clone(), field("slug", None, b"q")])),
        ("an unknown part", form(&[file.clone(), field("more", None, b"x")])),
        ("something after the end", [&whole[..], b"x"].concat()),
        ("something before the start", [b"x\r\n", &whole[..]].concat()),
        ("cut off", whole[..whole.len() - 10].to_vec()),
        ("cut off in the file", whole[..whole.len() / 2].to_vec()),
    ];
    for (what, body) in bad {
        let message = send(&browser, &body).refused(400, "invalid_request");
        assert!(!message.is_empty(), "{what}");
    }
    for content_type in ["multipart/form-data", "multipart/form-data; boundary=other"] {
        let headers = [("Content-Type", content_type)];
        browser.send("POST", "/api/pipelines/import", &headers, &whole).refused(400, "invalid_request");
    }
    let json = [("Content-Type", "application/json")];
    browser.send("POST", "/api/pipelines/import", &json, b"{}").refused(415, "unsupported_media_type");
    for slug in ["Q", "../q", "q/r", &"q".repeat(64), "\u{fc}"] {
        import_as(&browser, slug, &archive).refused(400, "invalid_slug");
    }
    import_as(&browser, "", &archive).ok();
    assert_eq!(slugs(&browser), ["p"], "no new slug is the old one");
    assert_eq!(left_in_scratch(&site), 0);
}

/// Files and folders that imports have left in the cache folders.
pub fn left_in_scratch(site: &Site) -> usize {
    let folders = std::fs::read_dir(site.home()).unwrap().map(|entry| entry.unwrap().path().join("imports"));
    folders.filter(|folder| folder.exists()).map(|folder| std::fs::read_dir(folder).unwrap().count()).sum()
}

#[test]
fn imports_are_bounded_compressed_and_inflated() {
    let site = Site::new(Kind::Embedded);
    let web = site.web_with(&[("SVC_IMPORT_BYTES_MAX", "1048576")]);
    let browser = Browser::log_in(&web);
    let (stored, _) = forged("p", &[("lake/x.bin.gz", &vec![7; 1 << 20])]);
    import(&browser, &stored).refused(413, "payload_too_large");
    let (deflated, entries) = forged("p", &[("lake/x.csv", &vec![b'a'; 2 << 20])]);
    assert!(deflated.len() < 1 << 20 && entries[0].method == 8);
    import(&browser, &deflated).refused(413, "payload_too_large");
    let chunked = [("Transfer-Encoding", "chunked")];
    let reply = browser.try_send("POST", "/api/pipelines/import", &chunked, b"x");
    assert!(reply.is_ok_and(|reply| reply.status == 400));
    assert_eq!((slugs(&browser), left_in_scratch(&site)), (vec![], 0));
}

/// An entry of a test archive, valid or not.
#[derive(Clone, Default)]
pub struct Entry {
    name: Vec<u8>,
    /// Where the local header differs.
    local_name: Option<Vec<u8>>,
    packed: Vec<u8>,
    size: u64,
    crc: u32,
    method: u16,
    flags: u16,
    mode: u32,
    local_size: Option<u32>,
    /// Extra fields of the local header.
    extra: Vec<u8>,
    /// Bytes after the entry.
    gap: Vec<u8>,
    /// Where the central directory is wrong.
    packed_size: Option<u64>,
    offset: Option<u32>,
    /// Without bytes of its own; for entries that exist only in the central directory.
    absent: bool,
}

impl Entry {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(bytes);
        let deflate = bytes.len() > 100 && !name.ends_with(".gz");
        let packed = if deflate {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        } else {
            bytes.to_vec()
        };
        Self {
            name: name.as_bytes().to_vec(),
            packed,
            size: bytes.len() as u64,
            crc: crc.sum(),
            method: if deflate { 8 } else { 0 },
            flags: 1 << 11,
            mode: 0o100_644,
            ..Self::default()
        }
    }
}

fn archive(entries: &[Entry]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = entry.offset.unwrap_or(out.len() as u32);
        let packed = entry.packed_size.unwrap_or(entry.packed.len() as u64) as u32;
        let common = [entry.method.to_le_bytes().to_vec(), vec![0, 0, 0x21, 0], entry.crc.to_le_bytes().to_vec()];
        let common =
            [common.concat(), packed.to_le_bytes().to_vec(), (entry.size as u32).to_le_bytes().to_vec()].concat();
        if !entry.absent {
            let name = entry.local_name.as_ref().unwrap_or(&entry.name);
            out.extend(b"PK\x03\x04\x14\x00");
            out.extend(entry.flags.to_le_bytes());
            out.extend(&common[..common.len() - 4]);
            out.extend(entry.local_size.unwrap_or(entry.size as u32).to_le_bytes());
            out.extend((name.len() as u16).to_le_bytes());
            out.extend((entry.extra.len() as u16).to_le_bytes());
            out.extend(name);
            out.extend(&entry.extra);
            out.extend(&entry.packed);
            out.extend(&entry.gap);
        }
        directory.extend(b"PK\x01\x02\x14\x03\x14\x00");
        directory.extend(entry.flags.to_le_bytes());
        directory.extend(&common);
        directory.extend((entry.name.len() as u16).to_le_bytes());
        directory.extend([0; 8]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(&entry.name);
    }
    let start = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    let count = entries.len() as u16;
    out.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn manifest_of(slug: &str, objects: &[(&str, &[u8])]) -> Value {
    let objects: Vec<Value> = objects
        .iter()
        .map(|(path, bytes)| json!({ "path": path, "size": bytes.len(), "sha256": sha256_hex(bytes) }))
        .collect();
    json!({ "format": 1, "slug": slug, "changed_during_export": false, "objects": objects })
}

/// A valid archive of these objects, and its entries with the manifest last.
pub fn forged(slug: &str, objects: &[(&str, &[u8])]) -> (Vec<u8>, Vec<Entry>) {
    let mut entries: Vec<Entry> = objects.iter().map(|(name, bytes)| Entry::new(name, bytes)).collect();
    entries.push(Entry::new("manifest.json", manifest_of(slug, objects).to_string().as_bytes()));
    (archive(&entries), entries)
}

type Change = fn(&mut Vec<Entry>);

/// Archives of two objects, each with one fault.
const WRONG: &[(&str, Change)] = &[
    ("a step up", |e| e[0].name = b"lake/../../x.csv".to_vec()),
    ("a step up in the middle", |e| e[0].name = b"lake/a/../x.csv".to_vec()),
    ("a step up of another bucket", |e| e[0].name = b"../lake/x.csv".to_vec()),
    ("an encoded step up", |e| e[0].name = b"lake/%2e%2e/x.csv".to_vec()),
    ("a doubly encoded step up", |e| e[0].name = b"lake/%252e%252e/x.csv".to_vec()),
    ("a step up behind an encoded slash", |e| e[0].name = b"lake/a%2f..%2fx.csv".to_vec()),
    ("an encoded backslash", |e| e[0].name = b"lake/..%5Cx.csv".to_vec()),
    ("a step up in overlong characters", |e| e[0].name = b"lake/%c0%ae%c0%ae/x.csv".to_vec()),
    ("a step up in wide characters", |e| e[0].name = "lake/\u{ff0e}\u{ff0e}/x.csv".into()),
    ("an escaped step up", |e| e[0].name = b"escaped/lake/%2F..%2F%2Fx.csv".to_vec()),
    ("a step up that is escaped twice", |e| e[0].name = b"escaped/lake/%2F%252e%252e%2F%2Fx.csv".to_vec()),
    ("a step up within escaped backslashes", |e| e[0].name = b"escaped/lake/%2Fa%5C..%5Cx.csv".to_vec()),
    ("an encoded step out of the pipeline", |e| e[0].name = b"encoded/lake/2e2e2532667a2e637376".to_vec()),
    ("a key that needs no encoding", |e| e[0].name = b"encoded/lake/7a2e637376".to_vec()),
    ("an encoded key of the warehouse", |e| e[0].name = b"encoded/warehouse/742f2e2e25326678".to_vec()),
    ("an escaped NUL", |e| e[0].name = b"escaped/lake/%2Fa%00%5C.csv".to_vec()),
    ("an escaped key that is not UTF-8", |e| e[0].name = b"escaped/lake/%2F%FF%5C.csv".to_vec()),
    ("a key that needs no escape", |e| e[0].name = b"escaped/lake/%2Fz.csv".to_vec()),
    ("another object's key, escaped", |e| e[0].name = b"escaped/lake/%2Fy.csv".to_vec()),
    ("a key that is escaped another way", |e| e[0].name = b"escaped/lake/%2fa%5c.csv".to_vec()),
    ("a key that is escaped in part", |e| e[0].name = b"escaped/lake/%2Fa%5Cb c.csv".to_vec()),
    ("an escaped key of no bucket", |e| e[0].name = b"escaped/%2Fa%5Cb.csv".to_vec()),
    ("an escaped mark", |e| e[0].name = b"escaped/pipelines/%2Funfinished.json".to_vec()),
    ("an absolute name", |e| e[0].name = b"/lake/x.csv".to_vec()),
    ("a root of the machine", |e| e[0].name = b"/etc/passwd".to_vec()),
    ("backslashes", |e| e[0].name = b"lake\\..\\x.csv".to_vec()),
    ("a backslash", |e| e[0].name = b"lake/a\\x.csv".to_vec()),
    ("a drive", |e| e[0].name = b"C:/lake/x.csv".to_vec()),
    ("a drive within", |e| e[0].name = b"lake/C:/x.csv".to_vec()),
    ("a NUL", |e| e[0].name = b"lake/x.csv\0.txt".to_vec()),
    ("a line's end", |e| e[0].name = b"lake/x\n.csv".to_vec()),
    ("text that is turned round", |e| e[0].name = "lake/\u{202e}vsc.x".into()),
    ("no UTF-8", |e| e[0].name = b"lake/\xff.csv".to_vec()),
    ("UTF-8 without its flag", |e| {
        e[0].name = "lake/ü.csv".into();
        e[0].flags = 0;
    }),
    ("an empty segment", |e| e[0].name = b"lake//x.csv".to_vec()),
    ("no name", |e| e[0].name = Vec::new()),
    ("a name that is too long", |e| e[0].name = [b"lake/".to_vec(), vec![b'x'; 1100]].concat()),
    ("an unknown folder", |e| e[0].name = b"secrets/x.csv".to_vec()),
    ("an object beside the folders", |e| e[0].name = b"x.csv".to_vec()),
    ("a mark", |e| e[0].name = b"pipelines/unfinished.json".to_vec()),
    ("a symbolic link", |e| e[0].mode = 0o120_777),
    ("a device", |e| e[0].mode = 0o020_666),
    ("a pipe", |e| e[0].mode = 0o010_666),
    ("a folder that is a file", |e| e[0].mode = 0o040_755),
    ("the same name twice", |e| e[1] = e[0].clone()),
    ("two manifests", |e| {
        let manifest = e[2].clone();
        e.push(manifest);
    }),
    ("an encrypted entry", |e| e[0].flags |= 1),
    ("a strongly encrypted entry", |e| e[0].flags |= 1 << 6),
    ("an unknown compression", |e| e[0].method = 93),
    ("bzip2", |e| e[0].method = 12),
    ("another name in the local head", |e| e[0].local_name = Some(b"lake/y.csv".to_vec())),
    ("another size in the local head", |e| e[0].local_size = Some(1)),
    ("a gap behind an entry", |e| e[0].gap = b"x".to_vec()),
    ("an entry that the directory doesn't have", |e| {
        let hidden = archive(&[Entry::new("lake/hidden.csv", b"a")]);
        e[0].gap = hidden[..hidden.len() - 22 - 46 - 15].to_vec();
    }),
    ("another name in an extra field", |e| e[0].extra = b"\x75\x70\x0f\0\x01\0\0\0\0lake/z.csv".to_vec()),
    ("an extra field that isn't known", |e| e[0].extra = b"\x42\x42\0\0".to_vec()),
    ("a wrong checksum", |e| e[0].crc ^= 1),
    ("more bytes than are said", |e| e[1].size -= 1),
    ("fewer bytes than are said", |e| e[1].size += 1),
    ("sizes that contradict each other", |e| e[0].size += 1),
    ("bytes that are not deflated", |e| e[1].packed = vec![0xff; e[1].packed.len()]),
    ("a deflated entry that goes on", |e| e[1].packed.extend(b"more")),
    ("an entry within another", |e| {
        e[0].offset = Some(0);
        e[1].offset = Some(0);
        e[1].name = e[0].name.clone();
        e[1].absent = true;
    }),
    ("entries that share bytes", |e| {
        // The first overlaps the second.
        e[0].packed_size = Some(e[0].packed.len() as u64 + 40);
        e[0].size += 40;
    }),
    ("an offset outside", |e| e[0].offset = Some(u32::MAX - 1)),
    ("a size outside", |e| {
        e[0].packed_size = Some(1 << 30);
        e[0].size = 1 << 30;
    }),
    ("no manifest", |e| drop(e.pop())),
    ("a manifest that is not JSON", |e| e[2] = Entry::new("manifest.json", b"{")),
    ("a newer format", |e| {
        let mut manifest = manifest_of("p", &[]);
        manifest["format"] = json!(2);
        e[2] = Entry::new("manifest.json", manifest.to_string().as_bytes());
    }),
    ("a slug that is none", |e| {
        let manifest = manifest_of("../p", &[("lake/x.csv", b"a\n"), ("lake/y.csv", Y)]);
        e[2] = Entry::new("manifest.json", manifest.to_string().as_bytes());
    }),
    ("an object that the manifest doesn't name", |e| {
        let manifest = manifest_of("p", &[("lake/x.csv", b"a\n")]);
        e[2] = Entry::new("manifest.json", manifest.to_string().as_bytes());
    }),
    ("an object that isn't there", |e| {
        let manifest = manifest_of("p", &[("lake/x.csv", b"a\n"), ("lake/y.csv", Y), ("lake/z.csv", b"")]);
        e[2] = Entry::new("manifest.json", manifest.to_string().as_bytes());
    }),
    ("an object that is another", |e| {
        let manifest = manifest_of("p", &[("lake/x.csv", b"b\n"), ("lake/y.csv", Y)]);
        e[2] = Entry::new("manifest.json", manifest.to_string().as_bytes());
    }),
    ("a manifest that names an object twice", |e| {
        let manifest = manifest_of("p", &[("lake/x.csv", b"a\n"), ("lake/x.csv", b"a\n"), ("lake/y.csv", Y)]);
        e[2] = Entry::new("manifest.json", manifest.to_string().as_bytes());
    }),
];

const Y: &[u8] = &[b'y'; 1_000];

#[test]
fn hostile_and_broken_archives_are_rejected() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let (good, entries) = forged("p", &[("lake/x.csv", b"a\n"), ("lake/y.csv", Y)]);
    for (what, change) in WRONG {
        let mut entries = entries.clone();
        change(&mut entries);
        let reply = import(&browser, &archive(&entries));
        assert_eq!(reply.status, 422, "{what}: {}", reply.text());
        let body = reply.json();
        assert_eq!(body["error"], "invalid_archive", "{what}");
        assert!(body["problems"].as_array().is_some_and(|problems| !problems.is_empty()), "{what}: {body}");
        assert_eq!(slugs(&browser), [""; 0], "{what}");
    }
    let mut commented = good.clone();
    let at = commented.len() - 2;
    commented[at] = 5;
    commented.extend(b"hello");
    let cut = |end: usize| good[..end].to_vec();
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("no zip", b"not a zip archive, but long enough to be one by its size".to_vec()),
        ("a comment", commented),
        ("something after the end", [&good[..], b"x"].concat()),
        ("something before the start", [b"x", &good[..]].concat()),
        ("something before the first entry, with offsets that know of it", {
            let mut entries = entries.clone();
            entries[0].offset = Some(4);
            let mut prefixed = [b"\x7fELF", &archive(&entries)[..]].concat();
            let mut at = prefixed.len() - 22;
            let start = u32::from_le_bytes(prefixed[at + 16..at + 20].try_into().unwrap()) + 4;
            prefixed[at + 16..at + 20].copy_from_slice(&start.to_le_bytes());
            at = start as usize;
            for entry in &entries[..1] {
                at += 46 + entry.name.len();
            }
            for _ in &entries[1..] {
                let offset = u32::from_le_bytes(prefixed[at + 42..at + 46].try_into().unwrap()) + 4;
                prefixed[at + 42..at + 46].copy_from_slice(&offset.to_le_bytes());
                let name = u16::from_le_bytes(prefixed[at + 28..at + 30].try_into().unwrap());
                at += 46 + usize::from(name);
            }
            prefixed
        }),
        ("two archives", [&good[..], &good[..]].concat()),
        ("cut at the end", cut(good.len() - 1)),
        ("cut in the directory", cut(good.len() - 60)),
        ("cut in an entry", cut(40)),
    ] {
        let reply = import(&browser, &bytes);
        assert_eq!((reply.status, &reply.json()["error"]), (422, &json!("invalid_archive")), "{what}");
    }
    assert_eq!((slugs(&browser), left_in_scratch(&site)), (vec![], 0));
    import(&browser, &good).ok();
    assert_eq!(objects(&site, "p").into_keys().collect::<Vec<_>>(), ["lake/x.csv", "lake/y.csv"]);
}

#[test]
fn zip_bombs_are_rejected_before_inflation() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    // A block of zeros that 200 entries of the directory share.
    let (_, mut entries) = forged("p", &[("lake/x.csv", &vec![0; 1 << 20])]);
    let kernel = Entry { absent: true, offset: Some(0), ..entries[0].clone() };
    for at in 0..200 {
        let name = format!("lake/{at}.csv").into_bytes();
        entries.push(Entry { name, ..kernel.clone() });
    }
    import(&browser, &archive(&entries)).refused(422, "invalid_archive");
    // A directory that announces more than deflate can produce.
    let (_, mut entries) = forged("p", &[("lake/x.csv", &vec![0; 1 << 20])]);
    entries[0].size = 3 << 30;
    import(&browser, &archive(&entries)).refused(422, "invalid_archive");
    // One that announces less than it produces, so that the sums look harmless.
    let (_, mut entries) = forged("p", &[("lake/x.csv", &vec![0; 8 << 20])]);
    entries[0].size = 10;
    import(&browser, &archive(&entries)).refused(422, "invalid_archive");
    assert_eq!((slugs(&browser), left_in_scratch(&site)), (vec![], 0));
}

#[test]
fn repacked_archives_are_accepted() {
    let site = Site::new(Kind::Embedded);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let objects: &[(&str, &[u8])] = &[("lake/in/x.csv", b"a\n"), ("pipelines/pipeline.json", b"not even JSON")];
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("manifest.json", options).unwrap();
    zip.write_all(manifest_of("p", objects).to_string().as_bytes()).unwrap();
    for folder in ["lake/", "lake/in/", "warehouse/"] {
        zip.add_directory(folder, options).unwrap();
    }
    for (name, bytes) in objects {
        zip.start_file(*name, options.large_file(true)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    import(&browser, &zip.finish().unwrap().into_inner()).ok();
    let there = super::lifecycle::objects(&site, "p");
    assert_eq!(there["lake/in/x.csv"], b"a\n");
    assert_eq!(there["pipelines/pipeline.json"], b"not even JSON");
    assert_eq!(there.len(), 2);
}

#[test]
fn failed_export_breaks_the_connection() {
    let site = Site::new(Kind::Embedded);
    site.put("p", "a.bin", vec![1; 64 << 20]);
    let web = site.web();
    let browser = Browser::log_in(&web);
    let mut connection = std::net::TcpStream::connect(&browser.address).unwrap();
    let cookie = browser.cookie.as_ref().unwrap();
    let head = format!("GET /api/p/p/export HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n", browser.address);
    connection.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 1_000];
    connection.read_exact(&mut first).unwrap();
    let path = site.home().join("objects/lake/pipelines/p/a.bin");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(1 << 20).unwrap();
    drop(file);
    let mut rest = Vec::new();
    // The object was truncated in the meantime.
    let ended = connection.read_to_end(&mut rest);
    assert!(ended.is_err() || !rest.ends_with(b"0\r\n\r\n"), "it ended as if it were whole");
}
