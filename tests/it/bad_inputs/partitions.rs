//! Partition values that need escaping or are too long.

use serde_json::{Value, json};

use super::{check, check_files_fail};
use crate::support::program::{Program, files};

fn partitioned_by_a() -> Value {
    json!({ "partition_by": ["a"], "csv": { "null_values": ["NULL"] } })
}

#[test]
fn partition_values_are_escaped() {
    let text = "a,b\na/b,1\n..,2\n.,3\n50%,4\nx=y,5\nMünchen 1,6\nNULL,8\n\"q\"\"\",10\n\\,11\n";
    let rows = [
        "a=%2E%2E: 2",
        "a=%2E: 3",
        "a=%5C: 11",
        "a=50%25: 4",
        "a=M\u{fc}nchen 1: 6",
        "a=__HIVE_DEFAULT_PARTITION__: 8",
        "a=a%2Fb: 1",
        "a=q%22: 10",
        "a=x%3Dy: 5",
    ];
    check(text, partitioned_by_a(), &rows, &[]);
}

/// Some readers fail on such a folder, and the others don't return the original text.
#[test]
fn text_read_as_null_rejects_its_row() {
    let text = "a,b\n,1\n__HIVE_DEFAULT_PARTITION__,2\nNULL,3\nx,4\n";
    let program = Program::of(&partitioned_by_a());
    program.put("x.csv", text).run(&[]).ok();
    assert_eq!(program.rows("t"), ["a=__HIVE_DEFAULT_PARTITION__: 3", "a=x: 4"]);
    let rejected = program.rejected("t");
    let summaries: Vec<_> = rejected.iter().map(|r| (r.line, r.reason.as_str(), r.value.as_deref().unwrap())).collect();
    assert_eq!(summaries, [(2, "partition_value", ""), (3, "partition_value", "__HIVE_DEFAULT_PARTITION__")]);
    assert!(rejected[0].message.contains("null_values"), "{}", rejected[0].message);
}

#[test]
fn inferable_text_rejects_its_row_unless_kept() {
    let text = "a,b\n01,1\n1,2\n1.50,3\n2024-1-1,4\n2024-01-01,5\nTrue,6\nNaN,7\n";
    let program = Program::of(&partitioned_by_a());
    program.put("x.csv", text).run(&[]).ok();
    assert_eq!(program.rows("t"), ["a=1: 2", "a=2024-01-01: 5"]);
    let rejected = program.rejected("t");
    assert!(rejected.iter().all(|r| r.reason == "partition_value" && r.message.contains("inferable_texts")));
    assert_eq!(rejected.iter().map(|r| r.line).collect::<Vec<_>>(), [2, 4, 5, 7, 8]);
    let kept = json!({ "partition_by": [{ "column": "a", "inferable_texts": "keep" }] });
    let program = Program::of(&kept);
    program.put("x.csv", text).run(&[]).ok();
    assert_eq!(program.rows("t").len(), 7);
}

#[test]
fn partition_names_that_readers_misread_are_refused() {
    for (name, part) in
        [("_year", "hidden"), (".year", "hidden"), ("a=b", "escaped"), ("a%b", "escaped"), ("a/b", "escaped")]
    {
        let program = Program::of(&json!({ "partition_by": [{ "column": "a", "name": name }] }));
        program.put("x.csv", "a,b\nx,1\n");
        program.run(&[]).exits_with(1, &["partition_by", part]);
    }
}

#[test]
fn second_run_finds_every_partition_unchanged() {
    let program = Program::of(&partitioned_by_a());
    program.put("x.csv", "a,b\na/b,1\n..,2\n.,3\nNULL,4\n~,5\nü\u{202e},6\n* ?,7\n");
    program.run(&[]).ok();
    let before = program.tree();
    assert_eq!(before.keys().filter(|key| key.starts_with("t/")).count(), 7);
    let ran = program.run(&[]).ok();
    assert!(ran.stdout.contains("nothing changed"), "{}", ran.stdout);
    assert!(program.tree() == before);
}

#[test]
fn partition_values_cannot_escape_the_table() {
    let program = Program::of(&partitioned_by_a());
    program.put("x.csv", "a,b\n../../../x,1\n/etc,2\n..\\..,3\n").run(&[]).ok();
    let found: Vec<String> = files(program.home()).into_iter().filter(|f| f.ends_with(".parquet")).collect();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|file| file.starts_with("out/t/a=")), "{found:?}");
}

#[test]
fn too_long_partition_value_rejects_its_row() {
    let (fits, too_long, escaped) = ("x".repeat(253), "y".repeat(254), "/".repeat(85));
    let text = format!("a,b\n{fits},1\n{too_long},2\n{escaped},3\n");
    let program = Program::of(&partitioned_by_a());
    program.put("x.csv", text).run(&[]).ok();
    assert_eq!(program.rows("t"), [format!("a={fits}: 1")]);
    let rejected = program.rejected("t");
    assert_eq!(
        rejected.iter().map(|r| (r.line, r.reason.as_str())).collect::<Vec<_>>(),
        [(3, "partition_value"), (4, "partition_value")]
    );
    assert_eq!(rejected[0].column.as_deref(), Some("a"));
    assert_eq!(rejected[0].value.as_deref(), Some(too_long.as_str()));
    assert!(rejected[0].message.contains("256 bytes") && rejected[1].message.contains("257 bytes"));
}

/// Each value fits a folder's name, but the key of all of them is too long.
#[test]
fn too_long_partition_path_rejects_its_row() {
    let columns: Vec<Value> = "abcdefg".chars().map(|name| json!({ "name": name, "type": "string" })).collect();
    let change = json!({ "columns": columns, "partition_by": ["a", "b", "c", "d", "e"] });
    let program = Program::of(&change);
    let long = ["a", "b", "c", "d", "e"].map(|value| value.repeat(240)).join(",");
    let fits = ["x".repeat(240), "x".repeat(240), "x".repeat(240), "x".repeat(163), "x".into()].join(",");
    let text = format!("a,b,c,d,e,f,g\n1,2,3,4,5,6,7\n{long},6,7\n{fits},8,9\n");
    program.put("x.csv", text).run(&[]).ok();
    let rows = program.rows("t");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0], "a=1/b=2/c=3/d=4/e=5: 6|7");
    let rejected = program.rejected("t");
    let summaries: Vec<_> = rejected.iter().map(|r| (r.line, r.reason.as_str(), r.column.as_deref())).collect();
    assert_eq!(summaries, [(3, "partition_value", Some("d"))]);
    assert_eq!(rejected[0].value.as_deref(), Some("d".repeat(240).as_str()));
    let message = &rejected[0].message;
    assert!(message.contains("1214 bytes") && message.contains("1024"), "{message}");
}

#[test]
fn date_transforms_and_null_make_partitions() {
    let change = json!({
        "columns": [{ "name": "at", "type": "timestamp" }, { "name": "b", "type": "int64" }],
        "partition_by": [{ "column": "at", "transform": "year" }, { "column": "at", "transform": "hour", "name": "h" }]
    });
    let text = "at,b\n1969-12-31 23:59:59,1\n2024-02-29 07:00:00,2\n,3\n0001-01-01 00:00:00,4\n";
    let rows = [
        "at_year=0001/h=0001-01-01-00: 0001-01-01T00:00:00|4",
        "at_year=1969/h=1969-12-31-23: 1969-12-31T23:59:59|1",
        "at_year=2024/h=2024-02-29-07: 2024-02-29T07:00:00|2",
        "at_year=__HIVE_DEFAULT_PARTITION__/h=__HIVE_DEFAULT_PARTITION__: ∅|3",
    ];
    check(text, change, &rows, &[]);
}

#[test]
fn partitions_are_case_sensitive() {
    check("a,b\nx,1\nX,2\n", partitioned_by_a(), &["a=X: 2", "a=x: 1"], &[]);
}

#[test]
fn partitions_of_removed_sources_are_deleted() {
    let program = Program::of(&partitioned_by_a());
    program.put("1.csv", "a,b\nx,1\n").put("2.csv", "a,b\ny,2\n").run(&[]).ok();
    std::fs::remove_file(program.source("1.csv")).unwrap();
    let ran = program.run(&[]).ok();
    assert!(ran.stdout.contains("1 partition deleted, since they have no more rows"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("nothing changed"), "{}", ran.stdout);
    assert_eq!(program.rows("t"), ["a=y: 2"]);
}

#[test]
fn changed_partitioning_moves_the_rows_of_present_sources() {
    let program = Program::of(&partitioned_by_a());
    program.put("1.csv", "a,b\nx,1\n").put("2.csv", "a,b\ny,2\n").run(&[]).ok();
    std::fs::remove_file(program.source("1.csv")).unwrap();
    program.configure(&[crate::support::program::mapping(&json!({ "partition_by": ["b"] }))]);
    program.run(&[]).ok();
    assert_eq!(program.rows("t"), ["b=2: y"]);
}

#[test]
fn failed_run_publishes_no_partition() {
    let files: [(&str, &[u8]); 2] = [("1.csv", b"a,b\nx,1\n"), ("2.csv", b"a,b\nx,q\n")];
    let mut change = partitioned_by_a();
    change["rejects"] = json!({ "max_rows": 0, "max_ratio": 0.0 });
    check_files_fail(&files, change, &["(too_many_rejects)"]);
}
