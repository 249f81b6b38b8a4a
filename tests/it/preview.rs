//! Previews of a config on the head of a source.

use std::path::PathBuf;

use lakemill::engine::preview::{PreviewAnswer, PreviewCounts, PreviewRequest, preview_op};
use serde_json::{Value, json};

use crate::support::lake::{SQL, gzip};

struct Copy {
    folder: tempfile::TempDir,
    request: PreviewRequest,
}

fn copy(mapping: Value, source: &str, bytes: &[u8]) -> Copy {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("copy");
    std::fs::write(&path, bytes).unwrap();
    let mut config = json!({ "version": 1, "mappings": [{ "table": "t", "files": ["*.csv"] }] });
    config["mappings"][0].as_object_mut().unwrap().extend(mapping.as_object().unwrap().clone());
    let request = PreviewRequest {
        config,
        table: None,
        source: source.into(),
        path,
        truncated: false,
        expressions_max: None,
        rows_max: 100,
    };
    Copy { folder, request }
}

impl Copy {
    fn answer(&self) -> PreviewAnswer {
        let before = std::fs::read_dir(self.folder.path()).unwrap().count();
        let answer = preview_op(&self.request, &*SQL);
        assert_eq!(std::fs::read_dir(self.folder.path()).unwrap().count(), before, "nothing is written");
        let counts = answer.counts;
        assert_eq!(counts.rows_read, counts.rows_written + counts.rows_rejected + counts.rows_filtered);
        answer
    }
}

fn preview(mapping: Value, text: &str) -> PreviewAnswer {
    copy(mapping, "a.csv", text.as_bytes()).answer()
}

fn typed(columns: &[(&str, &str)]) -> Value {
    let columns: Vec<Value> = columns.iter().map(|(name, ty)| json!({ "name": name, "type": ty })).collect();
    json!({ "columns": columns })
}

#[test]
fn preview_shows_typed_rows() {
    let mapping = typed(&[
        ("i", "int64"),
        ("big", "uint64"),
        ("d", "decimal(20,3)"),
        ("f", "float64"),
        ("b", "boolean"),
        ("s", "string"),
        ("day", "date"),
        ("at", "time"),
        ("ts", "timestamp"),
        ("tz", "timestamptz"),
        ("u", "uuid"),
        ("j", "json"),
    ]);
    let text = "i,big,d,f,b,s,day,at,ts,tz,u,j\n\
        7,18446744073709551615,1.5,0.25,true,Zoë,2024-02-29,12:30:00,2024-02-29 12:30:00.5,2024-02-29T12:30:00+02:00,\
        7f9c24e5-2f8b-4d0b-8a3d-2b1c0e6f9a55,\"{\"\"a\"\":1}\"\n,,,inf,,,,,,,,\n9007199254740993,1,2,nan,false,x,,,,,,\n";
    let answer = preview(mapping, text);
    assert_eq!(
        Value::from(answer.rows[0].clone()),
        json!([
            7,
            "18446744073709551615",
            "1.500",
            0.25,
            true,
            "Zoë",
            "2024-02-29",
            "12:30:00",
            "2024-02-29 12:30:00.500",
            "2024-02-29 10:30:00+00:00",
            "7f9c24e5-2f8b-4d0b-8a3d-2b1c0e6f9a55",
            "{\"a\":1}"
        ])
    );
    assert_eq!((&answer.rows[1][0], &answer.rows[1][3]), (&Value::Null, &json!("inf")));
    assert_eq!((&answer.rows[2][0], &answer.rows[2][3]), (&json!("9007199254740993"), &json!("NaN")));
    assert!(answer.whole && answer.failure.is_none() && answer.problems.is_empty());
    assert_eq!(answer.columns[2].ty, "decimal(20,3)");
}

#[test]
fn preview_shows_rejects_filters_and_checks() {
    let mut mapping = typed(&[("id", "int16"), ("p", "string")]);
    mapping["columns"].as_array_mut().unwrap().push(json!({ "name": "twice", "expr": "id * 2", "type": "int64" }));
    mapping["where"] = json!("id <> 3");
    mapping["checks"] = json!([
        { "name": "small", "assert": "id < 100" },
        { "name": "odd", "assert": "id % 2 = 1", "on_fail": "warn" }
    ]);
    mapping["partition_by"] = json!(["p"]);
    let long = "x".repeat(300);
    let text = format!("id,p\n1,a\nten,b\n3,c\n4,d\n120,e\n5\n6,{long}\n7,\"f\nf\"\n");
    let answer = preview(mapping, &text);
    let counts = PreviewCounts { rows_read: 8, rows_written: 3, rows_rejected: 4, rows_filtered: 1 };
    assert_eq!(answer.counts, counts);
    assert_eq!(Value::from(answer.rows.clone()), json!([[1, "a", 2], [4, "d", 8], [7, "f\nf", 14]]));
    let rejects: Vec<_> = answer.rejects.iter().map(|r| (r.line, r.reason.as_str(), r.raw.as_str())).collect();
    let long_raw = format!("6,{long}");
    assert_eq!(
        rejects,
        [
            (3, "wrong_type", "ten,b"),
            (6, "check_failed", "120,e"),
            (7, "ragged_row", "5"),
            (8, "partition_value", &long_raw),
        ]
    );
    assert_eq!((answer.rejects[0].column.as_deref(), answer.rejects[0].value.as_deref()), (Some("id"), Some("ten")));
    assert_eq!(answer.warnings["odd"], 2);
}

#[test]
fn invalid_config_is_not_previewed() {
    let answer = preview(typed(&[("id", "int")]), "id\n1\n");
    assert_eq!((answer.problems.len(), answer.problems[0].path.as_str()), (1, "/mappings/0/columns/0/type"));
    assert_eq!(answer.problems[0].kind, "invalid_value");
    assert!(answer.rows.is_empty());
    let mut other = copy(typed(&[("id", "int64")]), "a.csv", b"id\n1\n");
    other.request.table = Some("u".into());
    assert!(other.answer().problems[0].message.contains("no table `u`"));
}

#[test]
fn header_mismatch_fails_the_preview_like_a_run() {
    for (extra, text, expected) in [
        (json!({}), "a,c\n1,2\n", "no column `b`"),
        (json!({}), "a,b,a\n1,2,3\n", "`a` more than once"),
        (json!({ "extra_columns": "fail" }), "a,b,c\n1,2,3\n", "doesn't declare: `c`"),
        (json!({ "missing_columns": "null" }), "c,d\n1,2\n", "none of the columns `a`, `b`"),
    ] {
        let mut mapping = typed(&[("a", "int64"), ("b", "int64")]);
        mapping.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let answer = preview(mapping, text);
        let header = answer.header.expect("the header was read");
        assert_eq!(header.join(","), text.lines().next().unwrap());
        let failure = answer.failure.unwrap();
        assert_eq!(failure.code, "header_mismatch");
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
}

#[test]
fn failing_row_ends_the_preview_after_earlier_rows() {
    let mut mapping = typed(&[("a", "int64")]);
    mapping["columns"][0]["on_error"] = json!("fail");
    let answer = preview(mapping, "a\n1\nx\n");
    assert_eq!(answer.failure.unwrap().code, "row_failed");
    assert!(!answer.whole);
}

#[test]
fn truncated_record_at_the_end_of_the_head_is_dropped() {
    let mapping = typed(&[("id", "int64"), ("text", "string")]);
    let whole = "id,text\n1,a\n2,\"b\nb\"\n3,cc\n";
    for end in 8..whole.len() {
        let mut copy = copy(mapping.clone(), "a.csv", &whole.as_bytes()[..end]);
        copy.request.truncated = true;
        let answer = copy.answer();
        let rows = [12, 20, 25].iter().filter(|row_end| **row_end <= end).count();
        assert_eq!((answer.rows.len(), answer.rejects.len(), answer.whole), (rows, 0, false), "{end} bytes");
    }
}

#[test]
fn footer_is_skipped_only_in_whole_sources() {
    let mut mapping = typed(&[("id", "int64")]);
    mapping["csv"] = json!({ "skip_footer_rows": 1 });
    let mut copy = copy(mapping, "a.csv", b"id\n1\n2\n");
    assert_eq!(copy.answer().rows.len(), 1);
    copy.request.truncated = true;
    assert_eq!(copy.answer().rows.len(), 2);
}

#[test]
fn head_of_compressed_source_gives_its_rows() {
    let text: String =
        "id,text\n".to_owned() + &(0..50_000).map(|i| format!("{i},{}\n", i * 7919 % 10_007)).collect::<String>();
    let packed = [("a.csv.gz", gzip(text.as_bytes())), ("a.csv.zst", zstd::encode_all(text.as_bytes(), 3).unwrap())];
    for (name, bytes) in packed {
        let mapping = typed(&[("id", "int64"), ("text", "int64")]);
        let mut whole = copy(mapping.clone(), name, &bytes);
        let answer = whole.answer();
        assert_eq!((answer.counts.rows_written, answer.rows.len(), answer.whole), (50_000, 100, true));
        whole.request.truncated = true;
        assert!(!whole.answer().whole);
        let mut half = copy(mapping, name, &bytes[..bytes.len() / 2]);
        let damaged = half.answer();
        assert_eq!(damaged.failure.unwrap().code, "unreadable_source");
        half.request.truncated = true;
        let answer = half.answer();
        assert_eq!((answer.failure, answer.counts.rows_rejected), (None, 0));
        assert!((1_000..50_000).contains(&answer.counts.rows_written), "{name}: {:?}", answer.counts);
    }
}

#[test]
fn rows_and_rejects_are_bounded() {
    let text: String = "id\n".to_owned() + &"1\nx\n".repeat(5_000);
    let mut copy = copy(typed(&[("id", "int64")]), "a.csv", text.as_bytes());
    copy.request.rows_max = usize::MAX;
    let answer = copy.answer();
    assert_eq!((answer.rows.len(), answer.rejects.len()), (1_000, 1_000));
    assert_eq!((answer.counts.rows_written, answer.counts.rows_rejected), (5_000, 5_000));
    copy.request.rows_max = 3;
    assert_eq!(copy.answer().rows.len(), 3);
}

#[test]
fn requests_and_answers_round_trip_as_json() {
    let copy = copy(typed(&[("id", "int64")]), "a.csv", b"id\n1\nx\n");
    let text = serde_json::to_string(&copy.request).unwrap();
    assert_eq!(serde_json::from_str::<PreviewRequest>(&text).unwrap(), copy.request);
    let answer = copy.answer();
    let text = serde_json::to_string(&answer).unwrap();
    assert_eq!(serde_json::from_str::<PreviewAnswer>(&text).unwrap(), answer);
}
