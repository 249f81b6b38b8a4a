//! What a service that is killed leaves in the folder for temporary files.

use crate::support::site::{Kind, Site};

/// The folders of private sockets that are there.
fn folders(site: &Site) -> Vec<String> {
    let entries = std::fs::read_dir(site.home().join("tmp")).unwrap();
    // Beside each is the file of its lock.
    let folders = entries.map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("lakemill-http-")).collect()
}

#[test]
fn the_temporary_folder_of_a_killed_service_is_removed_at_the_next_start() {
    let site = Site::new(Kind::Embedded);
    let worker = site.worker();
    let of_worker = folders(&site);
    assert_eq!(of_worker.len(), 1);
    for _ in 0..3 {
        let mut web = site.web();
        assert_eq!(folders(&site).len(), 2, "its own and the worker's");
        web.kill();
        assert_eq!(folders(&site).len(), 2, "a killed process removes nothing");
    }
    let mut web = site.web();
    assert!(folders(&site).contains(&of_worker[0]), "the worker lives");
    web.signal(rustix::process::Signal::TERM);
    assert_eq!(web.await_exit(), Some(0), "{}", web.log());
    assert_eq!(folders(&site), of_worker);
    drop(worker);
}
