//! Pages of a table.

use lakemill::domain::pipeline::types::DataType;
use serde_json::{Value, json};

use super::on_both;
use super::tables::TripsSite;
use crate::support::browser::Browser;
use crate::support::site::{Kind, Site};

#[test]
fn every_type_has_a_lossless_json_form() {
    on_both(|kind| {
        let site = Site::new(kind);
        let types = [
            ("boolean", "true", json!(true)),
            ("int8", "-128", json!(-128)),
            ("int16", "-32768", json!(-32768)),
            ("int32", "2147483647", json!(2_147_483_647)),
            ("int64", "9007199254740993", json!("9007199254740993")),
            ("uint8", "255", json!(255)),
            ("uint16", "65535", json!(65535)),
            ("uint32", "4294967295", json!(4_294_967_295_u32)),
            ("uint64", "18446744073709551615", json!("18446744073709551615")),
            ("float32", "0.5", json!(0.5)),
            ("float64", "-1.25e300", json!(-1.25e300)),
            ("decimal(10,2)", "1234.50", json!("1234.50")),
            (
                "decimal(38,0)",
                "12345678901234567890123456789012345678",
                json!("12345678901234567890123456789012345678"),
            ),
            ("string", "Grüße", json!("Grüße")),
            ("date", "2013-01-31", json!("2013-01-31")),
            ("time", "05:06:07.5", json!("05:06:07.5")),
            ("timestamp", "2013-01-31T05:06:07", json!("2013-01-31T05:06:07")),
            ("timestamptz", "2013-01-31T05:06:07+01:00", json!("2013-01-31T04:06:07Z")),
            ("uuid", "6fa459ea-ee8a-3ca4-894e-db77e160355e", json!("6fa459ea-ee8a-3ca4-894e-db77e160355e")),
            ("json", "{\"\"a\"\": 1}", json!("{\"a\": 1}")),
        ];
        for (name, _) in DataType::PLAIN {
            assert!(types.iter().any(|(ty, ..)| ty == name), "{name}");
        }
        let columns: Vec<Value> =
            types.iter().enumerate().map(|(at, (ty, ..))| json!({ "name": format!("c{at}"), "type": ty })).collect();
        site.pipeline("trips", &json!({ "columns": columns }));
        let header: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
        let values: Vec<String> = types.iter().map(|(_, text, _)| format!("\"{text}\"")).collect();
        let nulls = ",".repeat(types.len() - 1);
        site.put("trips", "in/a.csv", format!("{}\n{}\n{nulls}\n", header.join(","), values.join(",")));
        let (_worker, web) = site.worker_and_web();
        let job = site.await_end(&site.enqueue("trips"));
        assert_eq!(job.error, None);
        let response = Browser::log_in(&web).get("/api/p/trips/tables/t/rows").ok().json();
        let columns = response["columns"].as_array().unwrap();
        for (at, (ty, _, expected)) in types.iter().enumerate() {
            assert_eq!(columns[at], json!({ "name": format!("c{at}"), "type": ty }));
            assert_eq!(&response["rows"][0][at], expected, "{ty}");
        }
        assert_eq!(response["rows"][1], json!(vec![Value::Null; types.len()]));
        assert_eq!((&response["total"], &response["truncated"]), (&json!(2), &json!(false)));
    });
}

/// The values of column `b`, and the total.
fn page(trips: &TripsSite, query: &str) -> (Vec<Value>, u64) {
    let response = trips.get(&format!("tables/t/rows?{}", query.replace(' ', "%20")));
    let at = response["columns"].as_array().unwrap().iter().position(|column| column["name"] == "b").unwrap();
    let rows = response["rows"].as_array().unwrap();
    (rows.iter().map(|row| row[at].clone()).collect(), response["total"].as_u64().unwrap())
}

#[test]
fn rows_are_paged_sorted_and_filtered() {
    on_both(|kind| {
        let trips = TripsSite::unrun(Site::new(kind));
        let rows: String = (0..25).map(|n| format!("2013-01-0{},{},{n}\n", n % 5 + 1, ["x", "y"][n % 2])).collect();
        trips.site.put("trips", "in/a.csv", format!("day,a,b\n{rows}2013-01-09,it's,\n"));
        trips.run();
        let check = |query: &str, expected: &[Value], total: u64| {
            assert_eq!(page(&trips, query), (expected.to_vec(), total), "{query}");
        };
        let numbers = |numbers: &[i64]| numbers.iter().map(|n| json!(n)).collect::<Vec<_>>();
        check("sort=-b&limit=3", &numbers(&[24, 23, 22]), 26);
        check("sort=-b&limit=3&offset=24", &[json!(0), Value::Null], 26);
        check("sort=b&offset=26", &[], 26);
        check("sort=b&limit=0", &[], 26);
        check("sort=a,-b&limit=2&filter=b:is_not_null", &numbers(&[24, 22]), 25);
        check("sort=b&filter=b:ge:10&filter=b:lt:13", &numbers(&[10, 11, 12]), 3);
        check("sort=b&filter=day:eq:2013-01-03&filter=a:eq:x", &numbers(&[2, 12, 22]), 3);
        check("sort=b&filter=day:in:2013-01-01,2013-01-02&limit=2", &numbers(&[0, 1]), 10);
        check("sort=b&filter=b:outside:2,23", &numbers(&[0, 1, 24]), 3);
        check("sort=b&filter=day:outside:2013-01-01,2013-01-04&limit=2", &numbers(&[4, 9]), 6);
        check("filter=b:is_null", &[Value::Null], 1);
        check("filter=a:contains:'s", &[Value::Null], 1);
        check("filter=a:starts_with:it", &[Value::Null], 1);
        check("filter=a:eq:' OR 1=1 --", &[], 0);
        check("filter=a:ne:x&filter=a:ne:y", &[Value::Null], 1);
        let mut seen: Vec<i64> = Vec::new();
        for offset in (0..25).step_by(4) {
            let (some, _) = page(&trips, &format!("sort=a&filter=b:is_not_null&limit=4&offset={offset}"));
            seen.extend(some.iter().map(|b| b.as_i64().unwrap()));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..25).collect::<Vec<_>>(), "pages neither repeat nor lose a row");
    });
}

#[test]
fn invalid_tables_and_pages_are_rejected() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        trips.site.pipeline("other", &json!({ "table": "secret" }));
        let get = |path: &str| trips.browser.get(&format!("/api/p/{path}"));
        for table in [
            "secret",
            "T",
            "..",
            "%2e%2e",
            "%252e%252e",
            "..%2fother%2fsecret",
            "t%2f..%2ft",
            "\u{2025}",
            "t'--",
            "t%00",
        ] {
            let table: String =
                table.chars().map(|c| if c.is_ascii() { c.to_string() } else { "%E2%80%A5".into() }).collect();
            let reply = get(&format!("trips/tables/{table}/rows"));
            assert!(matches!(reply.status, 400 | 404), "{table}: {}", reply.text());
        }
        get("trips/tables/secret/rows").refused(404, "table_not_found");
        get("nowhere/tables/t/rows").refused(404, "pipeline_not_found");
        get("No/tables/t/rows").refused(400, "invalid_slug");
        for (query, part) in [
            ("limit=1001", "0 to 1000"),
            ("limit=x", "`x`"),
            ("limit=1&limit=2", "twice"),
            ("offset=-1", "`-1`"),
            ("sort=c", "no column"),
            ("sort=b;drop", "no column"),
            ("filter=b:eq:x", "int64"),
            ("filter=b:like:1", "operator"),
            ("filter=b", "expected `column:operator:value`"),
            ("filter=day:eq:2013-02-30", "a date"),
            (&"filter=b:is_null&".repeat(33), "at most 32"),
        ] {
            let message = get(&format!("trips/tables/t/rows?{query}")).refused(400, "invalid_request");
            assert!(message.contains(part), "{query}: {message}");
        }
    });
}

#[test]
fn rejected_rows_are_a_table() {
    on_both(|kind| {
        let trips = TripsSite::new(kind);
        let response = trips.get("tables/_rejected_rows/rows?filter=table:eq:t");
        let at = |name: &str| {
            let columns = response["columns"].as_array().unwrap();
            &response["rows"][0][columns.iter().position(|column| column["name"] == name).unwrap()]
        };
        assert_eq!((response["total"].as_u64(), at("source"), at("line")), (Some(1), &json!("in/a.csv"), &json!(4)));
        assert_eq!((at("column"), at("value"), at("reason")), (&json!("day"), &json!("never"), &json!("wrong_type")));
    });
}

#[test]
fn table_is_read_by_its_manifest_after_a_config_change() {
    let trips = TripsSite::new(Kind::Embedded);
    trips.site.pipeline(
        "trips",
        &json!({ "columns": [{ "name": "new", "type": "int64" }, { "name": "a", "type": "string" }] }),
    );
    let response = trips.get("tables/t/rows?sort=b");
    let names: Vec<&str> =
        response["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!((names, response["total"].as_u64()), (vec!["day", "a", "b"], Some(3)));
}

#[test]
fn column_has_the_part_of_each_files_path() {
    on_both(|kind| {
        let site = Site::new(kind);
        site.pipeline(
            "trips",
            &json!({
                "files": ["in/**"],
                "rejects": { "max_ratio": 1.0 },
                "columns": [
                    { "name": "id", "type": "int8", "nullable": false },
                    { "name": "region", "type": "string", "nullable": false, "from_path": ["north", "South"] },
                    { "name": "month", "type": "date", "formats": ["%Y-%m-%d"], "from_path": "*_{}" },
                    { "name": "label", "type": "string", "expr": "region || ' ' || id" },
                ]
            }),
        );
        site.put("trips", "in/NORTH/sales_2024-05-01.csv", "id\n1\n2\n");
        site.put("trips", "in/sales south_2024-06-01.csv", "id\n3\n");
        site.put("trips", "in/south_soon.csv", "id\n4\n5\n");
        site.put("trips", "in/south.csv", "id\n6\n");
        let (_worker, web) = site.worker_and_web();
        let browser = Browser::log_in(&web);
        let rows = || browser.get("/api/p/trips/tables/t/rows?sort=id").ok().json()["rows"].clone();
        let job = site.await_end(&site.enqueue("trips"));
        assert_eq!(job.error, None);
        assert_eq!(job.progress.unwrap().rows_rejected, 2, "`soon` is no date");
        assert_eq!(
            rows(),
            json!([
                [1, "north", "2024-05-01", "north 1"],
                [2, "north", "2024-05-01", "north 2"],
                [3, "South", "2024-06-01", "South 3"],
                [6, "South", null, "South 6"],
            ])
        );
        // A file that gets another name is another source.
        let moved = json!({ "from": "pipelines/trips/in/south.csv", "to": "pipelines/trips/in/north_2024-07-01.csv" });
        browser.post("/api/lake", &moved).ok();
        site.await_end(&site.enqueue("trips"));
        assert_eq!(rows()[3], json!([6, "north", "2024-07-01", "north 6"]));
        site.put("trips", "in/east.csv", "id\n7\n");
        let error = site.await_end(&site.enqueue("trips")).error.unwrap();
        assert_eq!(
            error.message,
            "`in/east.csv` does not fit table `t`: its path has no value of the column `region`: it contains none of \
             `north`, `South`"
        );
    });
}
