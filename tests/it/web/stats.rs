//! Column statistics from the footers of files.

use lakemill::domain::layout::pipeline_prefix;
use lakemill::ports::store::{Bucket, WriteOptions};
use serde_json::{Value, json};

use super::on_both;
use super::tables::TripsSite;
use crate::support::manifests::replace_file;
use crate::support::parquet_bombs;
use crate::support::program::mapping;
use crate::support::site::{HOSTILE_MEMORY_BYTES_MAX, Kind, Site, slug};

fn column(stats: &Value, name: &str) -> Value {
    let columns = stats["columns"].as_array().unwrap();
    let found = columns.iter().find(|column| column["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {stats}")).clone()
}

fn statistics(ty: &str, name: &str, nulls: u64, min: &Value, max: &Value, exact: bool) -> Value {
    json!({ "name": name, "type": ty, "nulls": nulls, "min": min, "max": max, "exact": exact })
}

#[test]
fn column_statistics_cover_all_files_and_partitions() {
    on_both(|kind| {
        let trips = TripsSite::unrun(Site::new(kind));
        let empty = trips.get("tables/t/stats");
        assert_eq!((&empty["rows"], &empty["files_total"], &empty["complete"]), (&json!(0), &json!(0), &json!(true)));
        assert_eq!(column(&empty, "a"), statistics("string", "a", 0, &Value::Null, &Value::Null, true));
        trips.site.put("trips", "in/a.csv", "day,a,b\n2013-01-01,x,1\n2013-01-02,y,9007199254740993\n,w,-3\n");
        trips.site.put("trips", "in/b.csv", "day,a,b\n2013-01-02,z,\n");
        trips.run();
        let stats = trips.get("tables/t/stats");
        let numbers = (&stats["rows"], &stats["files_read"], &stats["files_total"], &stats["complete"]);
        assert_eq!(numbers, (&json!(4), &json!(3), &json!(3), &json!(true)));
        assert_eq!(
            column(&stats, "day"),
            statistics("date", "day", 1, &json!("2013-01-01"), &json!("2013-01-02"), true)
        );
        assert_eq!(column(&stats, "a"), statistics("string", "a", 0, &json!("w"), &json!("z"), true));
        assert_eq!(column(&stats, "b"), statistics("int64", "b", 1, &json!(-3), &json!("9007199254740993"), true));
        // A change of the table is visible immediately.
        trips.site.put("trips", "in/c.csv", "day,a,b\n2013-01-05,zz,-4\n");
        trips.run();
        let stats = trips.get("tables/t/stats");
        assert_eq!((&column(&stats, "b")["min"], &stats["rows"]), (&json!(-4), &json!(5)));
        assert_eq!(column(&stats, "day")["max"], "2013-01-05");
    });
}

#[test]
fn statistics_have_the_format_of_rows() {
    let types = [
        ("boolean", "false", "true"),
        ("uint64", "1", "18446744073709551615"),
        ("float64", "-0.5", "2.5"),
        ("decimal(10,2)", "-1.50", "1234.00"),
        ("date", "1999-12-31", "2013-01-02"),
        ("time", "00:00:00.5", "23:59:59"),
        ("timestamp", "2013-01-01 05:00:00", "2013-01-02 00:00:00"),
        ("timestamptz", "2013-01-01T05:00:00Z", "2013-01-02T00:00:00Z"),
        ("uuid", "00000000-0000-0000-0000-000000000001", "ffffffff-0000-0000-0000-000000000000"),
        ("string", "a", "b"),
        ("json", "[1]", "{}"),
    ];
    let name = |at: usize| format!("c{at}");
    let columns: Vec<Value> =
        types.iter().enumerate().map(|(at, (ty, _, _))| json!({ "name": name(at), "type": ty })).collect();
    let site = Site::new(Kind::Embedded);
    let trips = TripsSite::unrun(site);
    trips.site.pipeline("trips", &json!({ "columns": columns }));
    let line = |of: fn(&(&str, &str, &str)) -> String| types.iter().map(of).collect::<Vec<_>>().join(",");
    let header = (0..types.len()).map(name).collect::<Vec<_>>().join(",");
    let nulls = vec![""; types.len()].join(",");
    let low = line(|(_, low, _)| (*low).to_owned());
    let high = line(|(_, _, high)| (*high).to_owned());
    trips.site.put("trips", "in/a.csv", format!("{header}\n{high}\n{nulls}\n{low}\n"));
    trips.run();
    let (stats, rows) = (trips.get("tables/t/stats"), trips.get("tables/t/rows"));
    for (at, (ty, _, _)) in types.iter().enumerate() {
        let expected = statistics(ty, &name(at), 1, &rows["rows"][2][at], &rows["rows"][0][at], true);
        assert_eq!(column(&stats, &name(at)), expected);
    }
}

/// A NaN exceeds all numbers in SQL, but row groups with one have no bounds.
#[test]
fn column_with_a_nan_has_no_extremes_and_filters_find_it() {
    let trips = TripsSite::unrun(Site::new(Kind::Embedded));
    let columns = json!([{ "name": "a", "type": "float64" }, { "name": "b", "type": "float64" }]);
    trips.site.pipeline("trips", &json!({ "columns": columns, "parquet": { "row_group_rows": 1024 } }));
    trips.site.put("trips", "in/a.csv", format!("a,b\n1,1\nnan,2\n{}", "2,3\n".repeat(2_000)));
    trips.site.put("trips", "in/b.csv", "a,b\n3,2\n");
    trips.run();
    let stats = trips.get("tables/t/stats");
    assert_eq!(column(&stats, "a"), statistics("float64", "a", 0, &Value::Null, &Value::Null, false));
    assert_eq!(column(&stats, "b"), statistics("float64", "b", 0, &json!(1.0), &json!(3.0), true));
    let count = |filter: &str| {
        let sql = format!("SELECT count(*) FROM t WHERE {filter}");
        trips.browser.post("/api/p/trips/query", &json!({ "sql": sql })).ok().json()["rows"][0][0].clone()
    };
    assert_eq!((count("a > 5"), count("isnan(a)"), count("a >= 3")), (json!(1), json!(1), json!(2)));
    assert_eq!(trips.get("tables/t/rows?filter=a:gt:5")["total"], 1);
}

#[test]
fn long_texts_are_truncated_and_marked() {
    let trips = TripsSite::new(Kind::Embedded);
    trips.site.put("trips", "in/c.csv", format!("day,a,b\n2013-01-01,{},1\n", "z".repeat(300)));
    trips.run();
    let column = column(&trips.get("tables/t/stats"), "a");
    assert_eq!((&column["exact"], &column["min"]), (&json!(false), &json!("x")));
    assert!(column["max"].as_str().unwrap().starts_with("zzzz"), "{column}");
}

#[test]
fn statistics_follow_the_files_after_a_config_change() {
    let trips = TripsSite::new(Kind::Embedded);
    let changed = mapping(&json!({ "columns": [{ "name": "new", "type": "date" }] }));
    trips.site.configure("trips", &json!({ "version": 1, "auto_run": false, "mappings": [changed] }));
    let stats = trips.get("tables/t/stats");
    let names: Vec<&str> = stats["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["day", "a", "b"]);
    assert_eq!((&column(&stats, "a")["max"], &column(&stats, "day")["max"]), (&json!("z"), &json!("2013-01-02")));
}

#[test]
fn rejected_rows_have_statistics() {
    let trips = TripsSite::new(Kind::Embedded);
    let stats = trips.get("tables/_rejected_rows/stats");
    assert_eq!((&stats["rows"], &stats["complete"]), (&json!(1), &json!(true)));
    assert_eq!((&column(&stats, "table")["min"], &column(&stats, "line")["max"]), (&json!("t"), &json!(4)));
}

#[test]
fn unreadable_files_make_statistics_incomplete() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let file = trips.file_in("day=2013-01-01");
        let key = format!("{}{file}", pipeline_prefix(&slug("trips")));
        for body in [&b"no parquet"[..], b"", b"PAR1\xff\xff\xff\x7fPAR1", b"PAR1\x04\x00\x00\x00PAR1"] {
            trips.site.store.put(Bucket::Warehouse, &key, body, &WriteOptions::default()).unwrap();
            let stats = trips.get("tables/t/stats");
            let numbers = (&stats["rows"], &stats["files_read"], &stats["complete"]);
            assert_eq!(numbers, (&json!(3), &json!(1), &json!(false)));
            assert_eq!((&column(&stats, "a")["min"], &column(&stats, "a")["exact"]), (&json!("y"), &json!(false)));
            assert_eq!(column(&stats, "day")["min"], "2013-01-01");
        }
        trips.site.store.delete(Bucket::Warehouse, &[key], &WriteOptions::default()).unwrap();
        assert_eq!(trips.get("tables/t/stats")["files_read"], 1);
        let refused = |path: &str, code| trips.browser.get(&format!("/api/p/{path}/stats")).refused(404, code);
        refused("trips/tables/nothing", "table_not_found");
        refused("nowhere/tables/t", "pipeline_not_found");
    });
}

#[test]
fn footer_that_crashes_the_child_affects_only_its_file() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        // Like after an import: the manifest contains the file.
        let put = |key: &str, body: &[u8]| replace_file(&*trips.site.store, &slug("trips"), "t", key, body);
        let (first, second) = (trips.file_in("day=2013-01-01"), trips.file_in("day=2013-01-02"));
        let read_of = |stats: &Value| (stats["files_read"].clone(), column(stats, "a")["min"].clone());
        let peak = trips.web.peak_bytes();
        for (what, bomb) in parquet_bombs::all() {
            put(&first, &bomb);
            let statistics = || trips.web.log().matches("Parquet file is unreadable").count();
            let before = statistics();
            assert_eq!(read_of(&trips.get("tables/t/stats")), (json!(1), json!("y")), "{what}");
            assert_eq!(statistics(), before + 1, "{what}: {}", trips.web.log());
            // The failure is cached: no other child crashes on it.
            assert_eq!(read_of(&trips.get("tables/t/stats")), (json!(1), json!("y")), "{what}");
            assert_eq!(statistics(), before + 1, "{what}: {}", trips.web.log());
            let query = json!({ "sql": "SELECT 42" });
            assert_eq!(trips.browser.post("/api/p/trips/query", &query).ok().json()["rows"], json!([[42]]), "{what}");
        }
        assert!(trips.browser.get("/api/p/trips/tables/t/rows").status >= 400);
        let stats = trips.get("tables/t/stats");
        assert_eq!(read_of(&stats), (json!(1), json!("y")));
        // Several of them, next to valid files.
        put(&second, &parquet_bombs::nested(1_000_001));
        assert_eq!(trips.get("tables/t/stats")["files_read"], 0);
        assert_eq!(trips.get("tables/_rejected_rows/stats")["complete"], true);
        let grown = trips.web.peak_bytes() - peak;
        assert!(grown < HOSTILE_MEMORY_BYTES_MAX, "the web service took {grown} bytes more");
    });
}

#[test]
fn statistics_are_cached_until_the_table_changes() {
    let trips = TripsSite::on(Site::new(Kind::Fleet));
    let first = trips.get("tables/t/stats");
    let before = trips.site.objects_read();
    assert_eq!(trips.get("tables/t/stats"), first);
    assert_eq!(trips.site.objects_read(), before);
}
