//! Records that don't match their header, and lines that are not data.

use serde_json::json;

use super::{check, check_fails};
use crate::support::program::Program;

#[test]
fn ragged_rows_follow_the_config() {
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
fn padded_cells_are_null() {
    let columns = json!([{ "name": "a", "type": "string" }, { "name": "b", "type": "int64", "nullable": false }]);
    check(
        "a,b\ny\n",
        json!({ "csv": { "ragged_rows": "pad" }, "columns": columns }),
        &[],
        &["2@4 b null_not_allowed y"],
    );
}

#[test]
fn skipped_blank_lines_count_as_lines() {
    check("a,b\n\nx,1\n\r\n\ny,z\n", json!({}), &["x|1"], &["6@12 b=z wrong_type y,z"]);
    check("a,b\n \nx,1\n", json!({}), &["x|1"], &["2@4 - ragged_row  "]);
}

#[test]
fn preambles_are_skipped_by_physical_lines() {
    let text = "Report of \"May\n\na,b\nx,1\ny,z\n";
    check(text, json!({ "csv": { "skip_rows": 2 } }), &["x|1"], &["5@24 b=z wrong_type y,z"]);
    check_fails(text, json!({ "csv": { "skip_rows": 99 } }), &["`in/x.csv`", "no header line"]);
}

#[test]
fn undeclared_preamble_fails_with_advice() {
    check_fails("Report of May\n\na,b\nx,1\n", json!({}), &["`in/x.csv`", "Report of May", "csv.skip_rows"]);
}

#[test]
fn footers_are_skipped_by_records() {
    let text = "a,b\nx,1\ny,2\n\"Total\nof all\",q,,\n";
    check(text, json!({ "csv": { "skip_footer_rows": 1 } }), &["x|1", "y|2"], &[]);
    check(text, json!({ "csv": { "skip_footer_rows": 3 } }), &[], &[]);
    check(text, json!({ "csv": { "skip_footer_rows": 9 } }), &[], &[]);
}

#[test]
fn marked_footers_are_skipped_and_rows_are_not() {
    let csv = |values: &[&str]| json!({ "csv": { "skip_footer_rows": 3, "footer_values": values } });
    let footers = ["Total,3", "\" TOTAL \",3", ",total", "Total,3\n,", ",\nTotal,3\n,", "Stand: 31.01.,x"];
    for footer in footers {
        check(format!("a,b\nx,1\ny,2\n{footer}\n"), csv(&["total", "Stand:*"]), &["x|1", "y|2"], &[]);
    }
    // A row is not a footer, wherever the word is in it.
    for (last, row) in [("z,3", "z|3"), ("Totals,3", "Totals|3"), ("Total Wine,3", "Total Wine|3")] {
        check(format!("a,b\nx,1\ny,2\n{last}\n"), csv(&["Total"]), &["x|1", "y|2", row], &[]);
        check(format!("a,b\nTotal,1\n{last}\n"), csv(&["Total"]), &["Total|1", row], &[]);
    }
    check("a,b\nTotal,1\nTotal,2\nTotal,3\nTotal,4\n", csv(&["Total"]), &["Total|1"], &[]);
    check("a,b\nx,1\n,\n", csv(&[]), &["x|1"], &[]);
}

#[test]
fn further_header_lines_are_skipped_by_records() {
    let text = "a,b\nname,\"how\nmany\"\n(text),(1)\nx,1\n";
    check(text, json!({ "csv": { "skip_rows_after_header": 2 } }), &["x|1"], &[]);
}

#[test]
fn comments_are_skipped_if_configured() {
    let text = "# made by hand\na,b\n#x,9\nx,1\ny#,2\n";
    check(text, json!({ "csv": { "comment": "#" } }), &["x|1", "y#|2"], &[]);
}

#[test]
fn oversize_record_is_rejected_and_the_next_is_read() {
    let long = "x".repeat(2000);
    let text = format!("a,b\n{long},1\ny,2\n");
    let reject = format!("2@4 - record_too_long {long},1");
    check(text, json!({ "csv": { "record_bytes_max": 1024 } }), &["y|2"], &[&reject]);
}

/// With little memory a chunk is shorter than the record.
#[test]
fn raw_of_an_oversize_record_is_independent_of_memory() {
    // The limit of `raw` is within a character of four bytes.
    let text = format!("a,b\nx{},1\n", "\u{1f600}".repeat(100_000));
    let [little, much] = ["64", "1024"].map(|mib| {
        let program = Program::of(&json!({ "csv": { "record_bytes_max": 100_000 } }));
        program.put("x.csv", &text).run(&["--memory", mib]).ok();
        program.rejected("t").remove(0).raw
    });
    assert!(little == much, "`raw` differs");
    assert!(little.ends_with("\u{1f600}…") && !little.contains('\u{fffd}'));
}

#[test]
fn trailing_delimiters_make_an_unnamed_column() {
    check("a,b,\nx,1,\n", json!({}), &["x|1"], &[]);
    check("a,b\nx,1,\n", json!({}), &[], &["2@4 - ragged_row x,1,"]);
}

/// An unclosed quote in rows to skip would swallow the rest of the file: the rest is rejected.
#[test]
fn unclosed_quote_in_a_skipped_record_rejects_the_rest() {
    let column = json!([{ "name": "len", "type": "int64" }]);
    let change = json!({ "csv": { "skip_rows_after_header": 1 }, "columns": column });
    check("len\n\"\n1\n2\n", change.clone(), &[], &["2@4 - unclosed_quote \"\\n1\\n2\\n"]);
    let mut strict = change;
    strict["rejects"] = json!({ "max_rows": 0, "max_ratio": 0.0 });
    check_fails("len\n\"\n1\n2\n", strict, &["(too_many_rejects)", "unclosed_quote"]);
}

#[test]
fn unclosed_quote_before_a_footer_skips_no_rows() {
    let text = "a,b\nx,1\ny,2\n\"z,3\nTotal,3\n";
    let rejects = ["4@12 - unclosed_quote \"z,3\\nTotal,3\\n"];
    for footers in [1, 2, 9] {
        check(text, json!({ "csv": { "skip_footer_rows": footers } }), &["x|1", "y|2"], &rejects);
    }
}

#[test]
fn oversize_record_to_skip_is_rejected() {
    let long = format!("\"{}\"", "1\n".repeat(600));
    let raw = long.replace('\n', "\\n");
    let csv = json!({ "skip_rows_after_header": 1, "skip_footer_rows": 2, "record_bytes_max": 1024 });
    let text = format!("a,b\n{long}\nx,1\n{long}\nTotal,9\n");
    let rejects = [format!("2@4 - record_too_long {raw}"), format!("604@1211 - record_too_long {raw}")];
    check(text, json!({ "csv": csv }), &["x|1"], &rejects.each_ref().map(String::as_str));
}

#[test]
fn blank_lines_follow_the_config() {
    let one = json!([{ "name": "n", "type": "int64" }]);
    let text = "\nn\n1\n\n\r\n2\n";
    for (choice, rows, rejects) in [
        ("skip", &["1", "2"][..], &[][..]),
        ("null", &["1", "∅", "∅", "2"], &[]),
        ("reject", &["1", "2"], &["4@5 - blank_line ", "5@6 - blank_line "]),
    ] {
        check(text, json!({ "csv": { "blank_lines": choice }, "columns": one }), rows, rejects);
    }
    let strict = json!([{ "name": "a", "type": "string" }, { "name": "b", "type": "int64", "nullable": false }]);
    let change = json!({ "csv": { "blank_lines": "null" }, "columns": strict });
    check("a,b\nx,1\n\n", change, &["x|1"], &["3@8 b null_not_allowed "]);
}
