//! Records that don't fit their header, and lines that are no data.

use serde_json::json;

use super::{check, check_fails};

#[test]
fn ragged_rows_are_rejected_padded_or_fail_the_run() {
    let text = "a,b\nx,1\ny\nz,3,4\n";
    check(text, json!({}), &["x|1"], &["3@8 - ragged_row y", "4@10 - ragged_row z,3,4"]);
    check(text, json!({ "csv": { "ragged_rows": "pad" } }), &["x|1", "y|∅", "z|3"], &[]);
    check_fails(
        text,
        json!({ "csv": { "ragged_rows": "fail" } }),
        &["`in/x.csv` line 3", "found 1 cell, expected 2", "(row_failed)"],
    );
}

#[test]
fn padding_gives_nulls_which_a_column_may_refuse() {
    let columns = json!([{ "name": "a", "type": "string" }, { "name": "b", "type": "int64", "nullable": false }]);
    check(
        "a,b\ny\n",
        json!({ "csv": { "ragged_rows": "pad" }, "columns": columns }),
        &[],
        &["2@4 b null_not_allowed y"],
    );
}

#[test]
fn blank_lines_are_no_records_and_count_as_lines() {
    check("a,b\n\nx,1\n\r\n\ny,z\n", json!({}), &["x|1"], &["6@12 b=z wrong_type y,z"]);
    check("a,b\n \nx,1\n", json!({}), &["x|1"], &["2@4 - ragged_row  "]);
}

#[test]
fn preambles_are_skipped_by_physical_lines() {
    let text = "Report of \"May\n\na,b\nx,1\ny,z\n";
    check(text, json!({ "csv": { "skip_rows": 2 } }), &["x|1"], &["5@24 b=z wrong_type y,z"]);
    check_fails(text, json!({ "csv": { "skip_rows": 99 } }), &["`in/x.csv`", "it is empty"]);
}

#[test]
fn an_unknown_preamble_fails_with_the_setting_to_change() {
    check_fails("Report of May\n\na,b\nx,1\n", json!({}), &["`in/x.csv`", "Report of May", "csv.skip_rows"]);
}

#[test]
fn footers_are_cut_off_by_records() {
    let text = "a,b\nx,1\ny,2\n\"Total\nof all\",q,,\n";
    check(text, json!({ "csv": { "skip_footer_rows": 1 } }), &["x|1", "y|2"], &[]);
    check(text, json!({ "csv": { "skip_footer_rows": 3 } }), &[], &[]);
    check(text, json!({ "csv": { "skip_footer_rows": 9 } }), &[], &[]);
}

#[test]
fn further_header_lines_are_skipped_by_records() {
    let text = "a,b\nname,\"how\nmany\"\n(text),(1)\nx,1\n";
    check(text, json!({ "csv": { "skip_rows_after_header": 2 } }), &["x|1"], &[]);
}

#[test]
fn comments_are_skipped_where_there_are_any() {
    let text = "# made by hand\na,b\n#x,9\nx,1\ny#,2\n";
    check(text, json!({ "csv": { "comment": "#" } }), &["x|1", "y#|2"], &[]);
}

#[test]
fn a_record_longer_than_allowed_is_rejected_and_the_next_is_read() {
    let long = "x".repeat(2000);
    let text = format!("a,b\n{long},1\ny,2\n");
    let reject = format!("2@4 - record_too_long {long},1");
    check(text, json!({ "csv": { "record_bytes_max": 1024 } }), &["y|2"], &[&reject]);
}

#[test]
fn trailing_delimiters_make_a_column_without_a_name() {
    check("a,b,\nx,1,\n", json!({}), &["x|1"], &[]);
    check("a,b\nx,1,\n", json!({}), &[], &["2@4 - ragged_row x,1,"]);
}
