//! Tables in an Iceberg REST catalog: it gets each commit, whatever fails, and never names an object that is gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use lakemill::adapters::iceberg::RestCatalog;
use lakemill::config::{CatalogAccess, Secret};
use lakemill::domain::pipeline::TableFormat;
use lakemill::domain::table_log::root::Root;
use lakemill::pipelines::tables::{FoundRoot, TableError, TableResult, TableStore, mark_log, recover, restore};
use lakemill::ports::iceberg_catalog::CatalogName;
use lakemill::ports::{IcebergCatalog, ObjectStore};
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::faulty_store::{CrashTiming, FaultyStore};
use crate::support::iceberg_catalog::IcebergCatalogServer;
use crate::support::memory_store::MemoryStore;
use crate::support::program;
use crate::support::site::{Kind, Site, await_that};
use crate::table_commits::{
    Changes, FIRST, RunLease, SECOND, THIRD, after_second, after_third, faults, present, run_in_catalog, slug,
};

const ICEBERG: &[TableFormat] = &[TableFormat::Iceberg];
const CLIENT: &str = "lakemill:a secret";

fn run(store: &dyn ObjectStore, catalog: &RestCatalog, fence: u64, changes: Changes<'_>) -> TableResult<Root> {
    run_in_catalog(store, Some(catalog), fence, changes, false, ICEBERG)
}

fn metadata(server: &IcebergCatalogServer) -> Value {
    server.metadata("shop", "t").expect("the table is in the catalog")
}

fn snapshots(server: &IcebergCatalogServer) -> Vec<u64> {
    let metadata = metadata(server);
    assert_eq!(metadata["refs"]["main"]["snapshot-id"], metadata["current-snapshot-id"]);
    let snapshots = metadata["snapshots"].as_array().unwrap();
    snapshots.iter().map(|snapshot| snapshot["snapshot-id"].as_u64().unwrap()).collect()
}

/// Asserts that the manifest lists of all snapshots in the catalog are in the store.
fn assert_readable(server: &IcebergCatalogServer, store: &MemoryStore, what: &str) {
    let Some(metadata) = server.metadata("shop", "t") else { return };
    let keys: BTreeSet<String> = store.objects().into_keys().map(|(_, key)| key).collect();
    for snapshot in metadata["snapshots"].as_array().unwrap() {
        let list = snapshot["manifest-list"].as_str().unwrap().strip_prefix("s3://warehouse/").unwrap();
        assert!(keys.contains(list), "{what}: {list} is gone, {keys:?}");
    }
}

fn set_unavailable(server: &IcebergCatalogServer) {
    server.fail(1_000_000, false);
}

fn set_available(server: &IcebergCatalogServer) {
    server.fail(0, false);
}

#[test]
fn each_commit_of_a_table_is_a_snapshot_in_the_catalog() {
    let client = || CatalogAccess::Client {
        id: "lakemill".into(),
        secret: Secret::new("a secret"),
        url: String::new(),
        scope: "catalog".into(),
    };
    for (options, access) in [
        (&["--no-register"][..], CatalogAccess::Open),
        (&["--no-register", "--renumbers", "--prefix", "main"], CatalogAccess::Open),
        (&["--no-register", "--client", CLIENT], client()),
    ] {
        let server = IcebergCatalogServer::start(options);
        let access = match access {
            CatalogAccess::Client { id, secret, scope, .. } => {
                CatalogAccess::Client { id, secret, scope, url: format!("{}/v1/oauth/tokens", server.url()) }
            }
            other => other,
        };
        let (memory, catalog) = (MemoryStore::new(), server.client(access));
        for (fence, changes) in [(1, FIRST), (2, SECOND), (3, THIRD)] {
            server.expire_tokens();
            let root = run_in_catalog(&memory, Some(&catalog), fence, changes, true, ICEBERG).unwrap();
            assert_eq!(snapshots(&server), Vec::from_iter(1..=fence), "{options:?}");
            assert_eq!(metadata(&server)["table-uuid"], root.iceberg.as_ref().unwrap().id);
            assert_readable(&server, &memory, "after a commit");
        }
        let last = run_in_catalog(&memory, Some(&catalog), 4, FIRST, false, ICEBERG).unwrap();
        assert_eq!(snapshots(&server), [last.sequence], "{options:?}: those that are not kept are removed");
        assert_eq!(faults(&memory), [""; 0]);
    }
}

#[test]
fn unavailable_catalog_keeps_a_readable_snapshot_and_gets_all_commits_later() {
    let server = IcebergCatalogServer::start(&["--no-register"]);
    let (memory, catalog) = (MemoryStore::new(), server.client(CatalogAccess::Open));
    run(&memory, &catalog, 1, FIRST).unwrap();
    set_unavailable(&server);
    run(&memory, &catalog, 2, SECOND).unwrap();
    let before = server.requests().len();
    run(&memory, &catalog, 3, THIRD).unwrap();
    assert_eq!(server.requests().len(), before, "an unavailable catalog gets no requests for a while");
    assert_eq!(present(&memory), after_third(), "the table doesn't wait for the catalog");
    assert_eq!(snapshots(&server), [1]);
    assert_readable(&server, &memory, "while the catalog is unavailable");
    set_available(&server);
    // Another process: the first one doesn't ask again at once.
    let catalog = server.client(CatalogAccess::Open);
    let slug = slug();
    let table = TableStore { catalog: Some(&catalog), ..TableStore::new(&memory, &slug, "t") };
    recover(&table, table.root().unwrap().readable(), &RunLease(slug.clone(), 4)).unwrap();
    assert_eq!(snapshots(&server), [3]);
    assert_eq!(faults(&memory), [""; 0]);
    assert!(!table.needs_recovery().unwrap());
}

#[test]
fn number_of_commits_kept_for_an_unavailable_catalog_is_limited() {
    let server = IcebergCatalogServer::start(&["--no-register"]);
    let (memory, catalog) = (MemoryStore::new(), server.client(CatalogAccess::Open));
    run(&memory, &catalog, 1, FIRST).unwrap();
    // A process without the catalog's settings can't reach it either.
    let slug = slug();
    let table = TableStore::new(&memory, &slug, "t");
    let intents = || {
        let is_intent = |key: &String| key.contains("/intent-");
        memory.objects().into_keys().map(|(_, key)| key).filter(is_intent).count()
    };
    for fence in 2..60 {
        let lease = RunLease(slug.clone(), fence);
        recover(&table, table.root().unwrap().readable(), &lease).unwrap();
        let FoundRoot::Readable(stored) = table.root().unwrap() else { panic!("there is a root") };
        restore(table, &stored, stored.root.clone(), &lease, chrono::Utc::now()).unwrap();
    }
    assert!((40..=52).contains(&intents()), "{}", intents());
}

#[test]
fn commit_whose_outcome_is_unknown_is_not_repeated() {
    let server = IcebergCatalogServer::start(&["--no-register"]);
    let (memory, catalog) = (MemoryStore::new(), server.client(CatalogAccess::Open));
    server.fail(1, true);
    run(&memory, &catalog, 1, FIRST).unwrap();
    server.fail(1, true);
    run(&memory, &catalog, 2, SECOND).unwrap();
    assert_eq!(snapshots(&server), [2]);
    assert_eq!(faults(&memory), [""; 0]);
    let commits =
        server.requests().iter().filter(|request| request.starts_with("POST") && request.ends_with("/t")).count();
    assert_eq!(commits, 2);
}

#[test]
fn catalog_is_completed_by_the_run_after_a_crash_at_any_write() {
    let server = IcebergCatalogServer::start(&["--no-register"]);
    let catalog = server.client(CatalogAccess::Open);
    for dies in [CrashTiming::BeforeWrite, CrashTiming::AfterWrite] {
        for at in 1.. {
            let memory = Arc::new(MemoryStore::new());
            let what = format!("write {at}, {dies:?}");
            // Removes the previous round's table, which has the same id.
            catalog.remove(CatalogName { slug: &slug(), table: "t" }).unwrap();
            run(&*memory, &catalog, 1, FIRST).unwrap();
            let store = FaultyStore::new(Arc::clone(&memory) as Arc<dyn ObjectStore>);
            store.crash_at_write(at, dies);
            let _ = run(&store, &catalog, 2, SECOND);
            if !store.is_crashed() {
                assert!(at > 10, "a commit has more writes than {at}");
                break;
            }
            assert_readable(&server, &memory, &what);
            let next = run(&*memory, &catalog, 3, &[]).unwrap();
            assert_eq!(snapshots(&server), [next.sequence], "{what}");
            assert_readable(&server, &memory, &what);
            assert_eq!(faults(&*memory), [""; 0], "{what}");
        }
    }
}

#[test]
fn snapshot_of_another_program_is_reported_and_stays_until_the_table_is_dropped_there() {
    let server = IcebergCatalogServer::start(&["--no-register"]);
    let (memory, catalog) = (MemoryStore::new(), server.client(CatalogAccess::Open));
    run(&memory, &catalog, 1, FIRST).unwrap();
    server.commit_foreign("shop", "t");
    let refused = run(&memory, &catalog, 2, SECOND).unwrap_err();
    assert!(matches!(&refused, TableError::Catalog { is_foreign: true, .. }), "{refused}");
    assert!(refused.to_string().contains("another program made its present snapshot"), "{refused}");
    assert_eq!(present(&memory), after_second(), "the table itself goes on");
    catalog.remove(CatalogName { slug: &slug(), table: "t" }).unwrap();
    run(&memory, &catalog, 3, THIRD).unwrap();
    assert_eq!(snapshots(&server), [3]);
    assert_eq!(faults(&memory), [""; 0]);
}

#[test]
fn recreated_metadata_replaces_the_table_in_the_catalog_and_disabled_metadata_removes_it() {
    let server = IcebergCatalogServer::start(&["--no-register"]);
    let (memory, catalog) = (MemoryStore::new(), server.client(CatalogAccess::Open));
    run(&memory, &catalog, 1, FIRST).unwrap();
    let first = metadata(&server)["table-uuid"].clone();
    let slug = slug();
    let table = TableStore::new(&memory, &slug, "t");
    mark_log(&table, TableFormat::Iceberg, &RunLease(slug.clone(), 2)).unwrap();
    run(&memory, &catalog, 3, SECOND).unwrap();
    assert_ne!(metadata(&server)["table-uuid"], first);
    assert_eq!(snapshots(&server), [2]);
    run_in_catalog(&memory, Some(&catalog), 4, THIRD, false, &[]).unwrap();
    assert_eq!(server.tables(), [""; 0]);
}

#[test]
fn wrong_credentials_and_urls_without_a_catalog_are_reported() {
    let server = IcebergCatalogServer::start(&["--client", CLIENT]);
    let access = CatalogAccess::Client {
        id: "lakemill".into(),
        secret: Secret::new("another"),
        url: format!("{}/v1/oauth/tokens", server.url()),
        scope: "catalog".into(),
    };
    let error = server.client(access).probe().unwrap_err().to_string();
    assert!(error.contains("token of OAuth2") && error.contains("401") && !error.contains("another"), "{error}");
    let error = server.client(CatalogAccess::Token(Secret::new("hidden"))).probe().unwrap_err().to_string();
    assert!(error.contains("the token is unknown") && !error.contains("hidden"), "{error}");
}

/// Rows of `day,a,b` files, as PyIceberg gives them.
fn read(server: &IcebergCatalogServer, site: &Site, pipeline: &str) -> Value {
    server.read(pipeline, "t", &file_system(site))
}

fn file_system(site: &Site) -> Value {
    let env = site.env();
    match env.get("OBJ_ACCESS_KEY_ID") {
        Some(key) => json!({
            "s3.endpoint": env["OBJ_ENDPOINT_URL"],
            "s3.access-key-id": key,
            "s3.secret-access-key": env["OBJ_SECRET_ACCESS_KEY"],
            "s3.region": env["OBJ_REGION"],
        }),
        None => json!({}),
    }
}

#[test]
fn worker_commits_what_an_unavailable_catalog_missed() {
    let mut site = Site::new(Kind::Fleet);
    let server = IcebergCatalogServer::start(&["--no-register"]);
    site.set("SVC_ICEBERG_CATALOG_URL", &server.url());
    let worker = site.worker();
    set_unavailable(&server);
    let mapping = program::mapping(&json!({ "publish": ["iceberg"] }));
    site.configure("trips", &json!({ "version": 1, "mappings": [mapping] }));
    site.put("trips", "in/a.csv", "a,b\nx,1\n");
    assert_eq!(site.await_end(&site.enqueue("trips")).error, None, "the table doesn't wait for the catalog");
    assert_eq!(server.tables(), [""; 0], "{}", worker.log());
    set_available(&server);
    await_that("the catalog has the table", || server.tables() == ["trips.t"]);
}

#[test]
fn tables_of_a_pipeline_are_in_the_catalog_from_its_first_run_until_it_is_deleted() {
    for kind in [Kind::Fleet, Kind::Embedded] {
        let mut site = Site::new(kind);
        let server = IcebergCatalogServer::start(&["--io", &file_system(&site).to_string()]);
        site.set("SVC_ICEBERG_CATALOG_URL", &server.url());
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        site.pipeline("trips", &json!({ "publish": ["iceberg"] }));
        site.put("trips", "in/a.csv", "a,b\nx,1\n");
        assert_eq!(site.await_end(&site.enqueue("trips")).error, None);
        assert_eq!(read(&server, &site, "trips").as_array().unwrap().len(), 1);
        assert!(server.requests().iter().any(|request| request.ends_with("/register")));

        site.put("trips", "in/b.csv", "a,b\ny,2\n");
        assert_eq!(site.await_end(&site.enqueue("trips")).error, None);
        let rows = read(&server, &site, "trips");
        let rows: Vec<usize> = rows.as_array().unwrap().iter().map(|rows| rows.as_array().unwrap().len()).collect();
        assert_eq!(rows, [1, 2], "each commit is a snapshot");

        browser.patch("/api/pipelines/trips", &json!({ "newSlug": "tours" })).ok();
        assert_eq!(server.tables(), [""; 0]);
        assert_eq!(site.await_end(&site.enqueue("tours")).error, None);
        assert_eq!(server.tables(), ["tours.t"]);
        assert_eq!(read(&server, &site, "tours").as_array().unwrap().last().unwrap().as_array().unwrap().len(), 2);

        browser.delete("/api/pipelines/tours").ok();
        assert_eq!(server.tables(), [""; 0]);
    }
}
