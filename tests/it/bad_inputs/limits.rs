//! Limits of rejects, and the state after a run that exceeds them.

use serde_json::{Value, json};

use crate::support::program::{Program, mapping, rejects_of};

fn allowing(max_rows: u64, max_ratio: f64) -> Value {
    json!({ "rejects": { "max_rows": max_rows, "max_ratio": max_ratio } })
}

/// A file of `rows` rows, `bad` of them rejected.
fn csv(rows: u64, bad: u64) -> String {
    let row = |at| if at < bad { "x,bad\n".to_owned() } else { format!("x,{at}\n") };
    format!("a,b\n{}", (0..rows).map(row).collect::<String>())
}

#[track_caller]
fn assert_accepted(limits: Value, rows: u64, bad: u64) {
    let program = Program::of(&limits);
    program.put("x.csv", csv(rows, bad)).run(&[]).ok();
    assert_eq!((program.rows("t").len() as u64, program.rejected("t").len() as u64), (rows - bad, bad));
}

#[track_caller]
fn assert_rejected(limits: Value, rows: u64, bad: u64) {
    let program = Program::of(&limits);
    let rows_text = if rows == 1_000 { "1,000".to_owned() } else { rows.to_string() };
    let said = format!("table `t`: {bad} of {rows_text} rows rejected");
    program.put("x.csv", csv(rows, bad)).run(&[]).exits_with(1, &["(too_many_rejects)", &said]);
    assert_eq!(program.rows("t"), [""; 0]);
}

#[test]
fn any_reject_fails_the_run_by_default() {
    assert_accepted(allowing(0, 0.0), 3, 0);
    assert_rejected(allowing(0, 0.0), 3, 1);
}

#[test]
fn rejects_up_to_the_limit_are_accepted() {
    assert_accepted(allowing(2, 0.0), 5, 2);
    assert_rejected(allowing(2, 0.0), 5, 3);
}

#[test]
fn rejects_up_to_the_ratio_are_accepted() {
    for (ratio, rows, bad) in
        [(0.5, 4, 2), (0.1, 10, 1), (0.29, 100, 29), (0.07, 100, 7), (0.57, 100, 57), (0.001, 1000, 1)]
    {
        assert_accepted(allowing(0, ratio), rows, bad);
        assert_rejected(allowing(0, ratio), rows, bad + 1);
    }
    assert_accepted(allowing(0, 1.0), 3, 3);
}

#[test]
fn larger_reject_limit_applies() {
    assert_accepted(allowing(3, 0.1), 10, 3);
    assert_accepted(allowing(1, 0.5), 10, 5);
    assert_rejected(allowing(3, 0.1), 10, 4);
}

#[test]
fn limits_apply_to_all_files_of_a_table() {
    let program = Program::of(&allowing(2, 0.0));
    program.put("1.csv", csv(3, 1)).run(&[]).ok();
    program.put("2.csv", csv(3, 1)).run(&[]).ok();
    program.put("3.csv", csv(3, 1)).run(&[]).exits_with(1, &["3 of 9 rows rejected, but at most 2 may be"]);
}

#[test]
fn run_failed_by_rejects_stores_them_and_changes_nothing() {
    let strict = |table: &str| {
        let mut mapping = mapping(&json!({ "table": table, "files": [format!("{table}/*.csv")] }));
        mapping.as_object_mut().unwrap().remove("rejects");
        mapping
    };
    let program = Program::new(&[strict("t"), strict("u")]);
    program.put("t/1.csv", "a,b\nx,1\n").put("u/1.csv", "a,b\nx,1\n").run(&[]).ok();
    let before = program.tree();

    program.put("t/2.csv", "a,b\nok,2\nsum,12.5\n").put("u/1.csv", "a,b\nchanged,1\n\"y\nz\",?\nw,\u{1b}\n");
    let ran = program.run(&[]).exits_with(
        1,
        &[
            "table `t`: 1 of 3 rows rejected",
            "table `u`: 2 of 3 rows rejected",
            "`t/2.csv` line 3: column `b`: expected int64, found `12.5`",
            "`u/1.csv` line 3: column `b`: expected int64, found `?`",
            "correct the files or the mapping, or raise `rejects`",
            "nothing was published",
        ],
    );
    assert!(program.published() == before, "a failed run touched what was published");

    let path = ran.stderr.lines().find_map(|line| line.trim().strip_prefix("rejected rows: ")).unwrap();
    let kept = rejects_of(std::path::Path::new(path));
    let summaries: Vec<String> = kept.iter().map(|r| format!("{} {}", r.source, r.summary())).collect();
    assert_eq!(
        summaries,
        [
            "t/2.csv 3@9 b=12.5 wrong_type sum,12.5",
            "u/1.csv 3@14 b=? wrong_type \"y\\nz\",?",
            "u/1.csv 5@22 b=\u{1b} wrong_type w,\u{1b}",
        ]
    );
    assert!(!ran.stderr.contains("pipelines/local"), "a key that is not a path here:\n{}", ran.stderr);

    program.put("t/2.csv", "a,b\nok,2\nsum,12\n").put("u/1.csv", "a,b\nx,1\n").run(&[]).ok();
    assert_eq!(program.rows("t"), ["x|1", "ok|2", "sum|12"]);
}

#[test]
fn dry_run_failed_by_rejects_reports_samples_only() {
    let program = Program::of(&allowing(0, 0.0));
    program.put("x.csv", csv(3, 1));
    program.run(&["--dry-run"]).exits_with(
        1,
        &["1 of 3 rows rejected", "`in/x.csv` line 2: column `b`: expected int64, found `bad` (wrong_type)"],
    );
    assert!(program.tree().is_empty(), "{:?}", program.tree().keys());
}

#[test]
fn rejects_disappear_with_corrected_or_deleted_files() {
    let program = Program::of(&json!({}));
    program.put("1.csv", "a,b\nx,bad\n").put("2.csv", "a,b\ny,bad\nz,1\n").run(&[]).ok();
    assert_eq!(program.rejected("t").len(), 2);
    program.put("1.csv", "a,b\nx,5\n").run(&[]).ok();
    assert_eq!(program.rejected("t").iter().map(|r| r.source.as_str()).collect::<Vec<_>>(), ["in/2.csv"]);
    program.put("2.csv", "a,b\ny,6\nz,1\n").run(&[]).ok();
    assert_eq!(program.rejected("t"), []);
    assert!(!program.output().join("_rejected_rows").exists(), "an empty folder is left");
    program.put("2.csv", "a,b\ny,bad\n").run(&[]).ok();
    std::fs::remove_file(program.source("2.csv")).unwrap();
    program.run(&[]).ok();
    assert_eq!(program.rejected("t"), []);
}
