//! Clients that hold connections can't exhaust the descriptors of a run.

use std::io::{Read, Write};
use std::time::Duration;

use super::{Attack, POOLED, connect, descriptors, many_partitions, runs_continue};
use crate::support::http_client::get;
use crate::support::site::{Kind, Site, TEST_TIMEOUT, await_that};

/// Far below the usual limit, but enough for an undisturbed worker.
const FILES_MAX: u64 = 192;

#[test]
fn held_connections_leave_descriptors_for_runs() {
    let site = Site::new(Kind::Fleet);
    many_partitions(&site);
    let worker = site.worker_with_files(FILES_MAX);
    site.await_end(&site.enqueue_as("p", true));
    let (made, held) = (site.warehouse("p"), descriptors(worker.pid()));
    let address = worker.address();
    runs_continue(&site, |attack: &Attack| {
        let mut clients = Vec::new();
        while attack.continues() {
            if clients.len() < 400
                && let Some(mut stream) = connect(&address)
                && stream.write_all(b"GET /livez HTTP/1.1\r\n").is_ok()
            {
                clients.push(stream);
            } else {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        assert!(clients.len() > usize::try_from(FILES_MAX).unwrap(), "{}", clients.len());
    });
    assert_eq!(site.warehouse("p"), made);
    assert!(worker.has_logged("fewer connections allowed"), "it says what the limit costs");
    await_that("the descriptors to be given back", || descriptors(worker.pid()) <= held + POOLED);
    assert_eq!(get(&address, "/livez").status, 200);
}

#[test]
fn service_recovers_from_descriptor_exhaustion() {
    let site = Site::new(Kind::Fleet);
    let worker = site.worker();
    let address = worker.address();
    // Leaves no descriptor besides stdin, stdout and stderr.
    worker.limit_files(Some(3));
    let mut client = connect(&address).unwrap();
    client.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    client.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    worker.await_log("accept failed; retrying");
    worker.limit_files(None);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "who came in between is answered: {answer}");
    many_partitions(&site);
    assert_eq!(site.await_end(&site.enqueue("p")).attempt, 1);
}
