//! Checksums of bodies that are written to S3.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use lakemill::adapters::s3::S3Store;
use lakemill::config::Checksum;
use lakemill::ports::ObjectStore;
use lakemill::ports::store::{Bucket, WriteOptions};

use crate::s3_leases::Ending;
use crate::support::http_proxy::{HttpProxy, ProxiedRequest, ProxyAction};
use crate::support::s3_server::{S3Server, moto, s3s_fs};

const LAKE: Bucket = Bucket::Lake;
const KEY: &str = "pipelines/s/a.csv";

fn store(server: &S3Server, proxy: &HttpProxy, checksum: Checksum) -> S3Store {
    let mut options = server.options_at(&proxy.url());
    options.requests.checksum = Some(checksum);
    S3Store::open(options).unwrap()
}

fn read(store: &S3Store) -> Vec<u8> {
    let mut body = Vec::new();
    std::io::copy(&mut store.get(LAKE, KEY, None).unwrap().body, &mut body).unwrap();
    body
}

fn is_body_of_object(request: &ProxiedRequest) -> bool {
    let is_bucket = !request.target.split('?').next().unwrap().trim_matches('/').contains('/');
    request.method == "PUT" && !is_bucket && request.header("x-amz-copy-source").is_none()
}

#[test]
fn objects_written_at_once_in_parts_and_from_files_have_checksums() {
    for server in [s3s_fs(), moto()] {
        for (checksum, header) in
            [(Checksum::Crc64Nvme, "x-amz-checksum-crc64nvme"), (Checksum::Sha256, "x-amz-checksum-sha256")]
        {
            let without = Arc::new(Mutex::new(Vec::new()));
            let (seen, with) = (Arc::clone(&without), Arc::new(Mutex::new(0)));
            let count = Arc::clone(&with);
            let proxy = server.behind(move |request| {
                if is_body_of_object(request) {
                    match request.header(header) {
                        Some(_) => *count.lock() += 1,
                        None => seen.lock().push(request.target.clone()),
                    }
                }
                ProxyAction::Forward
            });
            let store = store(server, &proxy, checksum);
            let lease = Ending::in_ms(60_000);
            for options in [WriteOptions::default(), WriteOptions::leased(&lease)] {
                store.put(LAKE, KEY, b"small", &options).unwrap();
                assert_eq!(read(&store), b"small");
                store.put(LAKE, KEY, &vec![b'x'; 300_000], &options).unwrap();
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), vec![b'y'; 17 << 20]).unwrap();
                store.put_file(LAKE, KEY, file.path(), &options).unwrap();
                assert!(read(&store) == vec![b'y'; 17 << 20]);
                store.copy((LAKE, KEY), (LAKE, "pipelines/s/copy"), &options).unwrap();
                store.delete(LAKE, &["pipelines/s/copy".to_owned()], &options).unwrap();
            }
            assert_eq!(*without.lock(), Vec::<String>::new());
            assert!(*with.lock() >= 8, "{}", with.lock());
        }
    }
}

#[test]
fn store_rejects_a_body_that_changed_on_its_way() {
    for checksum in [Checksum::Crc64Nvme, Checksum::Sha256] {
        let corrupt = Arc::new(AtomicBool::new(false));
        let is_corrupting = Arc::clone(&corrupt);
        let server = s3s_fs();
        let proxy = server.behind(move |request| {
            if is_corrupting.load(Ordering::SeqCst) && is_body_of_object(request) && !request.body.is_empty() {
                request.body[0] ^= 1;
            }
            ProxyAction::Forward
        });
        let store = store(server, &proxy, checksum);
        store.put(LAKE, KEY, b"intact", &WriteOptions::default()).unwrap();
        corrupt.store(true, Ordering::SeqCst);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"changed").unwrap();
        let error = store.put_file(LAKE, KEY, file.path(), &WriteOptions::default()).unwrap_err();
        assert!(error.to_string().contains("BadDigest"), "{error}");
    }
}
