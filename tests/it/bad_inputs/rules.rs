//! `where`, checks and computed columns on rows for which their evaluation fails.

use serde_json::{Value, json};

use super::{check, check_fails};
use crate::support::program::Program;

const ROWS: &str = "a,b\nx,1\ny,\nz,-3\n";

fn checked(on_fail: &str) -> Value {
    json!({ "checks": [{ "name": "positive", "assert": "b > 0", "on_fail": on_fail }] })
}

#[test]
fn where_filters_false_and_null_rows() {
    check(ROWS, json!({ "where": "b > 0" }), &["x|1"], &[]);
    check(ROWS, json!({ "where": "b > 0 IS NOT FALSE" }), &["x|1", "y|∅"], &[]);
    let program = Program::of(&json!({ "where": "b > 0" }));
    let ran = program.put("x.csv", ROWS).run(&[]).ok();
    let line = ran.stdout.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(line[..4], ["t", "1", "0", "2"], "{}", ran.stdout);
}

#[test]
fn false_or_null_check_rejects_the_row() {
    check(ROWS, checked("reject"), &["x|1"], &["3@8 - check_failed y,", "4@11 - check_failed z,-3"]);
}

#[test]
fn warning_check_keeps_and_counts_rows() {
    check(ROWS, checked("warn"), &["x|1", "y|∅", "z|-3"], &[]);
    let ran = Program::of(&checked("warn")).put("x.csv", ROWS).run(&[]).ok();
    assert!(ran.stdout.contains("warning: table `t`: check `positive` failed on 2 rows"), "{}", ran.stdout);
}

#[test]
fn failing_check_reports_the_line() {
    check_fails(ROWS, checked("fail"), &["`in/x.csv` line 3", "check `positive` failed: b > 0", "(row_failed)"]);
}

#[test]
fn filtered_rows_are_not_checked() {
    let mut change = checked("fail");
    change["where"] = json!("b > 0");
    check(ROWS, change, &["x|1"], &[]);
}

fn computed(on_error: &str, nullable: bool) -> Value {
    json!({ "columns": [
        { "name": "a", "type": "string" },
        { "name": "c", "type": "int32", "expr": "CAST(a AS INTEGER) + 1", "on_error": on_error, "nullable": nullable }
    ] })
}

#[test]
fn failed_expression_follows_on_error() {
    let text = "a\n1\nx\n2147483647\n\n4\n";
    let rejects = ["3@4 c expression_error x", "4@6 c expression_error 2147483647"];
    check(text, computed("reject", true), &["1|2", "4|5"], &rejects);
    check(text, computed("reject", false), &["1|2", "4|5"], &rejects);
    check(text, computed("null", true), &["1|2", "x|∅", "2147483647|∅", "4|5"], &[]);
    check_fails(text, computed("fail", true), &["`in/x.csv` line 3: column `c`: ", "'x'", "(row_failed)"]);
}

#[test]
fn null_expression_in_not_nullable_column_rejects_the_row() {
    let text = "a,b\n1,\n,2\n";
    check(text, computed("reject", false), &["1|2"], &["3@7 c null_not_allowed ,2"]);
    check(text, computed("reject", true), &["1|2", "∅|∅"], &[]);
}

#[test]
fn failed_where_or_check_rejects_the_row() {
    let text = "a,b\n1,1\nx,2\n";
    let reject = ["3@8 - expression_error x,2"];
    check(text, json!({ "where": "CAST(a AS INTEGER) > 0" }), &["1|1"], &reject);
    check(text, json!({ "checks": [{ "name": "n", "assert": "CAST(a AS INTEGER) > 0" }] }), &["1|1"], &reject);
}
