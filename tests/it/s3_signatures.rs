//! Signatures in headers, for buckets whose policy denies `s3:authType` `REST-QUERY-STRING`.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lakemill::adapters::s3::S3Store;
use lakemill::config::SignaturePlace;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, Precondition, StoreError, WriteOptions};

use crate::cli_doctor::doctor;
use crate::s3_leases::{Ending, assert_lease_lost};
use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::s3_server::{moto, s3s_fs};
use crate::support::sigv4;
use crate::support::site::{Kind, Site};

const LAKE: Bucket = Bucket::Lake;
const KEY: &str = "pipelines/s/a b+é=~.csv";

pub fn refusal(code: &str) -> ProxyAction {
    let body = format!("<Error><Code>{code}</Code><Message>refused</Message></Error>");
    let head = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    ProxyAction::Answer((head + &body).into_bytes())
}

/// s3s-fs, which checks signatures itself, behind a check that refuses those in the query.
fn strict() -> HttpProxy {
    s3s_fs().behind(|request| match sigv4::check(request) {
        Ok(()) => ProxyAction::Forward,
        Err(code) => refusal(code),
    })
}

fn store(proxy: &HttpProxy, signature: SignaturePlace) -> S3Store {
    let mut options = s3s_fs().options_at(&proxy.url());
    options.requests.signature = signature;
    S3Store::open(options).unwrap()
}

fn read(store: &S3Store) -> Vec<u8> {
    let mut body = Vec::new();
    std::io::copy(&mut store.get(LAKE, KEY, None).unwrap().body, &mut body).unwrap();
    body
}

#[test]
fn all_requests_pass_a_policy_against_signatures_in_the_query() {
    let proxy = strict();
    let store = store(&proxy, SignaturePlace::Header);
    let lease = Ending::in_ms(60_000);
    let large = vec![b'x'; 300_000];
    for options in [WriteOptions::default(), WriteOptions::leased(&lease)] {
        store.put(LAKE, KEY, b"small", &options).unwrap();
        assert_eq!(read(&store), b"small");
        store.put(LAKE, KEY, &large, &options).unwrap();
        assert_eq!(store.get_range(LAKE, KEY, 10..20, None).unwrap(), [b'x'; 10]);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'y'; 9 << 20]).unwrap();
        store.put_file(LAKE, KEY, file.path(), &options).unwrap();
        assert!(read(&store) == vec![b'y'; 9 << 20]);
        store.copy((LAKE, KEY), (LAKE, "pipelines/s/copy"), &options).unwrap();
        assert_eq!(store.list(LAKE, "pipelines/s/", None, None, 10).unwrap().objects.len(), 2);
        store.delete(LAKE, &[KEY.to_owned(), "pipelines/s/copy".to_owned()], &options).unwrap();
        let created = WriteOptions { precondition: Precondition::IfNoneMatch, ..options };
        store.put(LAKE, KEY, b"new", &created).unwrap();
    }
}

#[test]
fn only_writes_that_must_expire_are_signed_in_the_query_by_default() {
    let proxy = strict();
    let store = store(&proxy, SignaturePlace::Query);
    store.put(LAKE, KEY, b"x", &WriteOptions::default()).unwrap();
    let lease = Ending::in_ms(60_000);
    let refused = store.put(LAKE, KEY, b"y", &WriteOptions::leased(&lease)).unwrap_err();
    assert!(matches!(refused, StoreError::AccessDenied { .. }), "{refused}");
    assert_eq!(read(&store), b"x");
}

#[test]
fn store_rejects_a_write_after_its_lease_by_the_date_in_headers() {
    let is_late = Arc::new(AtomicBool::new(false));
    let late = Arc::clone(&is_late);
    let proxy = s3s_fs().behind(move |request| {
        let is_write = matches!(request.method.as_str(), "PUT" | "POST" | "DELETE");
        if is_write && late.load(Ordering::SeqCst) {
            ProxyAction::Delay(Duration::from_secs(4))
        } else {
            ProxyAction::Forward
        }
    });
    let store = store(&proxy, SignaturePlace::Header);
    store.put(LAKE, KEY, b"old", &WriteOptions::leased(&Ending::in_ms(60_000))).unwrap();
    is_late.store(true, Ordering::SeqCst);
    assert_lease_lost(store.put(LAKE, KEY, b"new", &WriteOptions::leased(&Ending::in_ms(3_500))));
    assert_lease_lost(store.delete(LAKE, &[KEY.to_owned()], &WriteOptions::leased(&Ending::in_ms(3_500))));
    assert_eq!(read(&store), b"old");
}

#[test]
fn store_that_accepts_old_dates_gets_no_writes_of_runs() {
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    // Checks no dates.
    let proxy = moto().behind(move |request: &mut ProxiedRequest| {
        counted.fetch_add(usize::from(request.method != "GET"), Ordering::SeqCst);
        ProxyAction::Forward
    });
    let mut options = moto().options_at(&proxy.url());
    options.requests.signature = SignaturePlace::Header;
    let store = S3Store::open(options).unwrap();
    let lease = Ending::in_ms(60_000);
    let refused = store.put(LAKE, KEY, b"x", &WriteOptions::leased(&lease)).unwrap_err().to_string();
    assert!(refused.contains("set OBJ_SIGNATURE=query"), "{refused}");
    assert_eq!(writes.load(Ordering::SeqCst), 0);
    store.put(LAKE, KEY, b"x", &WriteOptions::default()).unwrap();
}

#[test]
fn failed_check_of_dates_is_repeated() {
    let is_away = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&is_away);
    let proxy =
        s3s_fs().behind(move |_| if away.load(Ordering::SeqCst) { ProxyAction::Close } else { ProxyAction::Forward });
    let store = store(&proxy, SignaturePlace::Header);
    let lease = Ending::in_ms(60_000);
    let options = WriteOptions::leased(&lease);
    let failed = store.put(LAKE, KEY, b"x", &options).unwrap_err();
    assert!(matches!(failed, StoreError::Transient { .. }), "{failed}");
    is_away.store(false, Ordering::SeqCst);
    store.put(LAKE, KEY, b"x", &options).unwrap();
}

/// Answers that the bucket is in another region, as AWS does.
fn redirect(location: &str) -> ProxyAction {
    let body = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is wrong</Message>\
                <Region>us-west-2</Region></Error>";
    let head = format!("HTTP/1.1 400 Bad Request\r\nLocation: {location}\r\nx-amz-bucket-region: us-west-2\r\n");
    ProxyAction::Answer(format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes())
}

fn in_other_region(location: String, redirects: Arc<AtomicUsize>) -> HttpProxy {
    s3s_fs().behind(move |request| match sigv4::check_in(request, "us-west-2") {
        Ok(()) => ProxyAction::Forward,
        Err("AuthorizationHeaderMalformed") => {
            redirects.fetch_add(1, Ordering::SeqCst);
            redirect(&location)
        }
        Err(code) => refusal(code),
    })
}

#[test]
fn bucket_in_another_region_is_found_once_and_no_address_is_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let redirects = Arc::<AtomicUsize>::default();
    let location = format!("http://{}/", elsewhere.local_addr().unwrap());
    let proxy = in_other_region(location, Arc::clone(&redirects));
    let store = store(&proxy, SignaturePlace::Header);
    assert!(store.head(LAKE, KEY).unwrap().is_none());
    let lease = Ending::in_ms(60_000);
    store.put(LAKE, KEY, b"x", &WriteOptions::leased(&lease)).unwrap();
    assert_eq!(read(&store), b"x");
    assert_eq!(redirects.load(Ordering::SeqCst), 1);
    assert_eq!(store.redirected_region(LAKE).as_deref(), Some("us-west-2"));
    assert_eq!(elsewhere.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn doctor_warns_of_a_bucket_in_another_region() {
    let mut site = Site::new(Kind::Fleet);
    let proxy = in_other_region("/".to_owned(), Arc::default());
    site.set("OBJ_ENDPOINT_URL", &proxy.url()).set("OBJ_SIGNATURE", "header");
    doctor(&site, &[]).has("warning buckets: ", &["us-west-2", "set OBJ_REGION"]).has("ok objects: ", &[]);
}

#[test]
fn doctor_writes_as_runs_do_and_says_which_signature_to_set() {
    let mut site = Site::new(Kind::Fleet);
    let proxy = strict();
    site.set("OBJ_ENDPOINT_URL", &proxy.url());
    doctor(&site, &[("OBJ_SIGNATURE", "header")]).has("ok objects: ", &[]);
    doctor(&site, &[]).has("ok buckets: ", &[]).has("problem objects: ", &["denied", "OBJ_SIGNATURE=header"]);
    let names = moto().buckets();
    site.set("OBJ_ENDPOINT_URL", &moto().url()).set("OBJ_SIGNATURE", "header");
    site.set("S3_BUCKET_PIPELINES", &names.pipelines).set("S3_BUCKET_LAKE", &names.lake);
    site.set("S3_BUCKET_WAREHOUSE", &names.warehouse);
    doctor(&site, &[]).has("problem objects: ", &["dated more than 15 minutes ago", "set OBJ_SIGNATURE=query"]);
}
