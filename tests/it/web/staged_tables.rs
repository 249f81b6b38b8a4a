//! Staged tables: reused by later queries, never stale or shared, bounded, and swept.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::on_both;
use super::tables::{TripsSite, days};
use crate::support::browser::Browser;
use crate::support::site::{Kind, Service, await_that};

/// Maximum number of staged tables kept per state.
const KEPT_MAX: usize = 4;

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Identifies a folder: inode numbers are reused, but not with the same birth time, where there is one.
type Identity = (u64, Option<SystemTime>);

/// The folders of table `t` in all query folders below a cache, with their identity.
fn trees(cache: &Path) -> Vec<(PathBuf, Identity)> {
    let queries = folders(&cache.join("queries")).into_iter().flat_map(|process| folders(&process));
    let tables = queries.map(|query| query.join("t"));
    let identity = |meta: Metadata| (meta.ino(), meta.created().ok());
    tables.filter_map(|table| std::fs::metadata(&table).ok().map(|meta| (table, identity(meta)))).collect()
}

/// Staged tables that their query returned.
fn idle(cache: &Path) -> BTreeSet<Identity> {
    let own = |(table, identity): (PathBuf, Identity)| {
        let folder = table.parent()?.file_name()?.to_str()?;
        folder.starts_with("staged-").then_some(identity)
    };
    trees(cache).into_iter().filter_map(own).collect()
}

fn await_idle(cache: &Path, count: usize) -> BTreeSet<Identity> {
    // Not in use, and not about to be returned by a process that is being ended.
    await_that("the queries' ends", || trees(cache).len() == count && idle(cache).len() == count);
    idle(cache)
}

/// A web service with a cache in a known folder.
struct Fixture {
    browser: Browser,
    web: Service,
    cache: PathBuf,
    trips: TripsSite,
}

impl Fixture {
    fn on(trips: TripsSite) -> Self {
        let cache = trips.site.home().join("cache");
        let web = Self::web(&trips, &cache);
        let browser = Browser { address: web.address(), ..trips.browser.clone() };
        Self { browser, web, cache, trips }
    }

    fn new(kind: Kind) -> Self {
        Self::on(TripsSite::new(kind))
    }

    fn web(trips: &TripsSite, cache: &Path) -> Service {
        trips.site.web_with(&[("SVC_CACHE_DIR", cache.to_str().unwrap())])
    }

    fn query(&self, sql: &str) -> Value {
        self.browser.post("/api/p/trips/query", &json!({ "sql": sql })).ok().json()["rows"].clone()
    }

    fn rows(&self, query: &str) -> Value {
        self.browser.get(&format!("/api/p/trips/tables/t/rows?{query}")).ok().json()
    }

    /// Creates the table in one run with `rows` rows, one day each.
    fn run_of(&self, rows: u64, run: &str) {
        let lines: String = (0..rows).map(|n| format!("2013-03-{:02},{run},{n}\n", n % 28 + 1)).collect();
        self.trips.site.put("trips", "in/a.csv", format!("day,a,b\n{lines}"));
        let rest = ["pipelines/trips/in/b.csv".to_owned()];
        self.trips.site.store.delete(Bucket::Lake, &rest, &WriteOptions::default()).unwrap();
        let job = self.trips.site.await_end(&self.trips.site.enqueue_as("trips", true));
        assert_eq!(job.error, None);
    }
}

#[test]
fn staged_table_is_reused_by_the_next_query() {
    on_both(|kind| {
        let f = Fixture::new(kind);
        assert_eq!(f.query("SELECT count(*) FROM t"), json!([[3]]));
        let first = await_idle(&f.cache, 1);
        assert_eq!(f.query("SELECT sum(b) FROM t"), json!([[3]]));
        assert_eq!(await_idle(&f.cache, 1), first);
        assert_eq!(f.rows("sort=-b")["total"], 3);
        assert_eq!(await_idle(&f.cache, 1), first);
        let wrong = f.browser.post("/api/p/trips/query", &json!({ "sql": "SELECT CAST(a AS INTEGER) FROM t" }));
        assert_eq!(wrong.status, 400, "{}", wrong.text());
        // A query's tables are returned once its child has exited, which may be after its response.
        assert_eq!(await_idle(&f.cache, 1), first);
        assert_eq!(f.query("SELECT count(*) FROM t, t AS u"), json!([[9]]));
        assert_eq!(await_idle(&f.cache, 1), first);
    });
}

#[test]
fn changed_table_is_visible_immediately_and_its_cached_files_expire() {
    on_both(|kind| {
        let f = Fixture::new(kind);
        assert_eq!(f.query("SELECT count(*) FROM t"), json!([[3]]));
        let mut before = await_idle(&f.cache, 1);
        for (rows, run) in [(10, "x"), (40, "y"), (40, "z")] {
            f.run_of(rows, run);
            assert_eq!(f.query("SELECT count(*), min(a), max(a) FROM t"), json!([[rows, run, run]]));
            let now = await_idle(&f.cache, 1);
            assert_ne!(now, before);
            before = now;
        }
    });
}

#[test]
fn concurrent_queries_have_consistent_tables_and_a_bounded_pool() {
    on_both(|kind| {
        let f = Fixture::new(kind);
        f.run_of(56, "x");
        std::thread::scope(|scope| {
            for _ in 0..KEPT_MAX + 2 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let response = f.query("SELECT count(*), count(DISTINCT day), sum(b)::BIGINT FROM t");
                        assert_eq!(response, json!([[56, 28, 1540]]));
                    }
                });
            }
        });
        let kept = || (trees(&f.cache).len(), idle(&f.cache).len());
        await_that(
            "the queries' ends",
            || matches!(kept(), (all, idle) if all == idle && (1..=KEPT_MAX).contains(&all)),
        );
        for (table, _) in trees(&f.cache) {
            assert_eq!(folders(&table).len(), 28);
        }
    });
}

#[test]
fn staged_tables_of_a_dead_process_are_deleted() {
    on_both(|kind| {
        let mut f = Fixture::new(kind);
        assert_eq!(f.query("SELECT count(*) FROM t"), json!([[3]]));
        await_idle(&f.cache, 1);
        f.web.kill();
        assert_eq!(trees(&f.cache).len(), 1);
        let web = Fixture::web(&f.trips, &f.cache);
        assert_eq!(trees(&f.cache), []);
        let f = Fixture { browser: Browser { address: web.address(), ..f.browser.clone() }, web, ..f };
        assert_eq!(f.query("SELECT count(*) FROM t"), json!([[3]]));
        await_idle(&f.cache, 1);
    });
}

#[test]
fn recreated_pipeline_starts_empty() {
    on_both(|kind| {
        let f = Fixture::new(kind);
        assert_eq!(f.query("SELECT count(*) FROM t"), json!([[3]]));
        await_idle(&f.cache, 1);
        f.browser.delete("/api/pipelines/trips").ok();
        f.browser.post("/api/p/trips/query", &json!({ "sql": "FROM t" })).refused(404, "pipeline_not_found");
        f.browser.post("/api/pipelines", &json!({ "slug": "trips", "template": "blank" })).ok();
        f.trips.site.pipeline("trips", &days());
        assert_eq!(f.query("SELECT count(*) FROM t"), json!([[0]]));
        f.run_of(5, "new");
        assert_eq!(f.query("SELECT count(*), min(a) FROM t"), json!([[5, "new"]]));
        await_idle(&f.cache, 1);
    });
}

#[test]
fn unsorted_page_reads_only_the_files_with_its_rows() {
    on_both(|kind| {
        let f = Fixture::new(kind);
        f.run_of(70, "x");
        let all = f.rows("limit=1000");
        let all = all["rows"].as_array().unwrap();
        assert_eq!(all.len(), 70);
        // The common order of all files.
        assert_eq!(f.query("SELECT * FROM t"), json!(all));
        for limit in [1, 7, 30] {
            for offset in (0..=75).step_by(9) {
                let response = f.rows(&format!("limit={limit}&offset={offset}"));
                let expected: Vec<&Value> = all.iter().skip(offset).take(limit).collect();
                assert_eq!((&response["rows"], &response["total"]), (&json!(expected), &json!(70)), "{limit} {offset}");
            }
        }
        assert_eq!(f.rows("limit=0")["total"], 70);
        assert_eq!(f.rows("limit=5&offset=9007199254740992")["rows"], json!([]));
        if kind == Kind::Fleet {
            let fresh =
                f.trips.site.web_with(&[("SVC_CACHE_DIR", f.trips.site.home().join("fresh").to_str().unwrap())]);
            let f = Fixture { browser: Browser { address: fresh.address(), ..f.browser.clone() }, web: fresh, ..f };
            // The config and the manifest, too.
            f.rows("limit=1");
            let before = f.trips.site.objects_read();
            f.rows("limit=1&offset=69");
            assert_eq!(f.trips.site.objects_read() - before, 1);
        }
    });
}
