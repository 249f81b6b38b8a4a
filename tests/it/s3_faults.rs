//! S3 failures: those that are retried silently, and the error messages of the others.

use std::io::Read;
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use lakemill::adapters::s3::S3Store;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, Precondition, StoreError, StoreResult, WriteOptions};

use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::s3_server::s3s_fs;

const LAKE: Bucket = Bucket::Lake;
const KEY: &str = "pipelines/s/k";

fn create() -> WriteOptions<'static> {
    WriteOptions::default().with(Precondition::IfNoneMatch)
}

fn plain() -> WriteOptions<'static> {
    WriteOptions::default()
}

fn read(store: &S3Store) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    store.get(LAKE, KEY, None).unwrap().body.read_to_end(&mut bytes).map(|_| bytes)
}

/// A store behind a proxy, and the proxy.
fn behind(rule: impl Fn(&mut ProxiedRequest) -> ProxyAction + Send + Sync + 'static) -> (S3Store, HttpProxy) {
    let proxy = s3s_fs().behind(rule);
    (s3s_fs().store_at(&proxy), proxy)
}

/// A store that passes the first `spared` requests for which `wanted` is true, then applies one of these acts to each,
/// then passes again.
fn faults(
    wanted: impl Fn(&ProxiedRequest) -> bool + Send + Sync + 'static,
    acts: impl Fn(usize) -> Option<ProxyAction> + Send + Sync + 'static,
) -> (S3Store, HttpProxy) {
    let count = AtomicUsize::new(0);
    behind(move |passing| {
        if !wanted(passing) {
            return ProxyAction::Forward;
        }
        acts(count.fetch_add(1, Ordering::SeqCst)).unwrap_or(ProxyAction::Forward)
    })
}

fn answer(status: &str, body: &str) -> ProxyAction {
    ProxyAction::Answer(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

fn transient<T>(result: StoreResult<T>) -> String {
    match result {
        Err(error @ StoreError::Transient { .. }) => error.to_string(),
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it succeeded"),
    }
}

fn denied<T>(result: StoreResult<T>) -> String {
    match result {
        Err(StoreError::AccessDenied { reason, .. }) => reason,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("it succeeded"),
    }
}

fn is_probe(passing: &ProxiedRequest) -> bool {
    passing.target.contains("lakemill-probe")
}

#[test]
fn closed_connections_are_replaced_silently() {
    let (store, _proxy) = behind(|passing| if passing.earlier > 0 { ProxyAction::Close } else { ProxyAction::Forward });
    for round in 0..3 {
        let tag = store.put(LAKE, KEY, b"1", &create()).unwrap().etag.unwrap();
        let replace = WriteOptions::default().with(Precondition::IfMatch(tag));
        store.put(LAKE, KEY, &vec![b'2'; 300_000], &replace).unwrap();
        assert_eq!(read(&store).unwrap().len(), 300_000, "{round}");
        store.copy((LAKE, KEY), (LAKE, "pipelines/s/l"), &plain()).unwrap();
        assert_eq!(store.list(LAKE, "pipelines/s/", None, None, 10).unwrap().objects.len(), 2);
        store.delete(LAKE, &[KEY.to_owned(), "pipelines/s/l".to_owned()], &plain()).unwrap();
        assert_eq!(store.head(LAKE, KEY).unwrap(), None);
    }
}

#[test]
fn request_survives_any_number_of_dead_idle_connections() {
    const IDLE: usize = 8;
    let together = Barrier::new(IDLE);
    let opened = AtomicUsize::new(0);
    // Each connection is closed when it is reused, like by a proxy that keeps connections longer than its server.
    let (store, _proxy) = behind(move |passing| {
        if passing.earlier > 0 {
            return ProxyAction::Close;
        }
        if opened.fetch_add(1, Ordering::SeqCst) < IDLE {
            together.wait();
        }
        ProxyAction::Forward
    });
    std::thread::scope(|scope| {
        for _ in 0..IDLE {
            scope.spawn(|| store.head(LAKE, KEY).unwrap());
        }
    });
    store.put(LAKE, KEY, b"1", &plain()).unwrap();
    assert_eq!(read(&store).unwrap(), b"1");
}

#[test]
fn conditional_write_succeeds_despite_a_lost_response() {
    for size in [10, 400_000] {
        let wanted = move |passing: &ProxiedRequest| {
            let step = if size == 10 { "PUT" } else { "POST" };
            let completes = size == 10 || passing.target.contains("uploadId");
            passing.method == step && completes && !is_probe(passing)
        };
        let (store, _proxy) = faults(wanted, |nth| (nth == 0).then_some(ProxyAction::LoseAnswer));
        let put = store.put(LAKE, KEY, &vec![b'x'; size], &create()).unwrap();
        assert_eq!(store.head(LAKE, KEY).unwrap().unwrap().etag, put.etag);
        assert!(matches!(store.put(LAKE, KEY, b"y", &create()), Err(StoreError::PreconditionFailed { .. })));
        assert_eq!(read(&store).unwrap().len(), size);
    }
}

#[test]
fn foreign_write_is_not_mistaken_for_ours() {
    let wanted = |passing: &ProxiedRequest| passing.header("x-amz-meta-lakemill-write").is_some() && !is_probe(passing);
    let (store, _proxy) = faults(wanted, |nth| (nth == 1).then_some(ProxyAction::Close));
    store.put(LAKE, KEY, b"another's", &create()).unwrap();
    let refused = store.put(LAKE, KEY, b"ours", &create());
    assert!(matches!(refused, Err(StoreError::PreconditionFailed { .. })), "{refused:?}");
    assert_eq!(read(&store).unwrap(), b"another's");
}

#[test]
fn short_overload_is_retried_and_a_long_one_reported() {
    const BUSY: &str =
        "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message><RequestId>R7</RequestId></Error>";
    let busy = |until: usize| move |nth| (nth < until).then(|| answer("503 Slow Down", BUSY));
    let (store, _proxy) = faults(|_| true, busy(2));
    store.put(LAKE, KEY, b"1", &plain()).unwrap();
    let (store, _proxy) = faults(|_| true, busy(3));
    let text = transient(store.put(LAKE, KEY, b"1", &plain()));
    assert!(text.contains("`SlowDown`: Reduce your rate (request R7)"), "{text}");
    store.put(LAKE, KEY, b"1", &plain()).unwrap();
}

#[test]
fn truncated_body_is_an_error() {
    let body = vec![b'b'; 200_000];
    for act in [|| ProxyAction::CutAfter(1_000), || ProxyAction::CutAfter(0), || ProxyAction::CutAfter(199_999)] {
        let (store, _proxy) = faults(|passing| passing.method == "GET", move |_| Some(act()));
        store.put(LAKE, KEY, &body, &plain()).unwrap();
        read(&store).unwrap_err();
        transient(store.get_range(LAKE, KEY, 0..200_000, None));
    }
    // Closed in an orderly way, but too early.
    let head = "HTTP/1.1 200 OK\r\netag: \"t\"\r\nlast-modified: Sat, 21 Nov 2026 14:23:26 GMT\r\n";
    let (store, _proxy) = faults(
        |_| true,
        move |_| Some(ProxyAction::Answer(format!("{head}content-length: 9\r\n\r\nshort").into_bytes())),
    );
    read(&store).unwrap_err();
}

#[test]
fn timeout_error_names_its_phase() {
    let of = |act: fn() -> ProxyAction, response, receive_idle| {
        let proxy = s3s_fs().behind(move |passing| if passing.method == "GET" { act() } else { ProxyAction::Forward });
        let mut options = s3s_fs().options_at(&proxy.url());
        let patient = S3Store::open(options.clone()).unwrap();
        patient.put(LAKE, KEY, &vec![b'b'; 200_000], &plain()).unwrap();
        options.timeouts.response = Duration::from_secs(response);
        options.timeouts.receive_idle = Duration::from_secs(receive_idle);
        (S3Store::open(options).unwrap(), proxy)
    };
    let (store, _proxy) = of(|| ProxyAction::StallAfter(10), 20, 2);
    let error = read(&store).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("timed out receiving, without progress (after 2s)"), "{error}");
    let text = transient(store.list(LAKE, "", None, None, 10));
    assert!(text.contains("timed out receiving"), "{text}");
    let (store, _proxy) = of(|| ProxyAction::Delay(Duration::from_secs(5)), 1, 20);
    let text = transient(store.get(LAKE, KEY, None));
    assert!(text.contains("timed out waiting for the store's response (after 1s)"), "{text}");
}

#[test]
fn unreachable_store_is_transient() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = s3s_fs().options_at(&format!("http://127.0.0.1:{port}"));
    let store = S3Store::open(options).unwrap();
    let text = transient(store.head(LAKE, KEY));
    assert!(text.to_lowercase().contains("refused"), "{text}");
    assert_eq!(store.clock_skew(), None);
}

#[test]
fn invalid_responses_are_errors_of_bounded_length() {
    let with = |status: &'static str, body: String| faults(|_| true, move |_| Some(answer(status, &body)));
    let list = |(store, _proxy): (S3Store, HttpProxy)| store.list(LAKE, "", None, None, 10);
    for body in ["", "hello", "<a", "<html><body>ok</body></html>", "<ListBucketResult>", "<?xml version=\"1.0\"?>"] {
        let text = transient(list(with("200 OK", body.to_owned())));
        assert!(text.contains("invalid response"), "{body}: {text}");
    }
    let text = transient(list(with("200 OK", format!("<ListBucketResult>{}", " ".repeat(17 << 20)))));
    assert!(text.contains("at most 16777216 bytes"), "{text}");
    let text = transient(list(with("200 OK", "<x>".repeat(100_000))));
    assert!(text.len() < 1_000, "{text}");
    for body in ["nonsense\n\u{7}".repeat(100_000), "<Error><Code>".to_owned(), String::new()] {
        let text = denied(list(with("403 Forbidden", body)));
        assert!(text.starts_with("status 403") && text.len() < 1_000 && !text.contains('\n'), "{text}");
    }
    let text = denied(list(with("301 Moved Permanently", "<Error><Code>PermanentRedirect</Code></Error>".to_owned())));
    assert!(text.contains("check OBJ_ENDPOINT_URL and OBJ_REGION"), "{text}");
}

#[test]
fn error_after_a_success_status_is_an_error() {
    const LATE: &str = "<?xml version=\"1.0\"?>\n\n  <Error><Code>InternalError</Code><Message>late</Message></Error>";
    let copies = |passing: &ProxiedRequest| passing.header("x-amz-copy-source").is_some();
    let (store, _proxy) = faults(copies, |_| Some(answer("200 OK", LATE)));
    store.put(LAKE, KEY, b"1", &plain()).unwrap();
    let text = transient(store.copy((LAKE, KEY), (LAKE, "pipelines/s/l"), &plain()));
    assert!(text.contains("`InternalError`: late"), "{text}");
    let completes = |passing: &ProxiedRequest| passing.method == "POST" && passing.target.contains("uploadId");
    let (store, _proxy) = faults(completes, |nth| (nth < 2).then(|| answer("200 OK", LATE)));
    store.put(LAKE, KEY, &vec![b'x'; 17 << 20], &plain()).unwrap();
    assert_eq!(store.head(LAKE, KEY).unwrap().unwrap().size, 17 << 20);
}

#[test]
fn each_undeleted_key_is_an_error() {
    let (a, b) = ("pipelines/s/a".to_owned(), "pipelines/s/b".to_owned());
    let error = |code: &str| {
        format!(
            "<DeleteResult><Deleted><Key>{a}</Key></Deleted><Error><Key>{b}</Key><Code>{code}</Code>\
             <Message>no</Message></Error></DeleteResult>"
        )
    };
    let delete = |code: &str| {
        let body = error(code);
        let (store, _proxy) = faults(|_| true, move |_| Some(answer("200 OK", &body)));
        store.delete(LAKE, &[a.clone(), b.clone()], &plain())
    };
    match delete("AccessDenied") {
        Err(StoreError::AccessDenied { key, reason, .. }) => assert!(key == b && reason.contains("no"), "{key}"),
        other => panic!("{other:?}"),
    }
    transient(delete("InternalError"));
    delete("NoSuchKey").unwrap();
}

#[test]
fn delete_falls_back_to_single_keys() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let (store, _proxy) = behind(move |passing| {
        if passing.method != "POST" {
            return ProxyAction::Forward;
        }
        counted.fetch_add(1, Ordering::SeqCst);
        answer("400 Bad Request", "<Error><Code>MissingContentMD5</Code></Error>")
    });
    let keys: Vec<String> = (0..5).map(|i| format!("pipelines/s/{i}")).collect();
    for _ in 0..2 {
        for key in &keys {
            store.put(LAKE, key, b"", &plain()).unwrap();
        }
        store.delete(LAKE, &keys, &plain()).unwrap();
        assert!(store.list(LAKE, "", None, None, 10).unwrap().objects.is_empty());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1, "it is not asked again");
}

#[test]
fn listing_outside_xml_is_requested_encoded() {
    let page = |key: &str, rest: &str| {
        format!(
            "<ListBucketResult>{rest}<Contents><Key>{key}</Key><Size>1</Size>\
             <LastModified>2026-11-21T14:23:26.000Z</LastModified></Contents></ListBucketResult>"
        )
    };
    let (raw, encoded) = (page("p/a&#0;b+c", ""), page("p/a%01b%2Bc+d", "<EncodingType>url</EncodingType>"));
    let (store, _proxy) = behind(move |passing| {
        let wants = passing.target.contains("encoding-type=url");
        answer("200 OK", if wants { &encoded } else { &raw })
    });
    let listed = store.list(LAKE, "p/", None, None, 10).unwrap();
    assert_eq!(listed.objects[0].key, "p/a\u{1}b+c d");
}
