//! Headers that differ from the config.

use serde_json::{Value, json};

use super::{check, check_fails, check_files, check_files_fail};

/// Columns `a` (string) and `b` (int64), with `from` for `a`.
fn from(from: Value) -> Value {
    json!([{ "name": "a", "type": "string", "from": from }, { "name": "b", "type": "int64" }])
}

#[test]
fn columns_are_found_by_name_at_any_position() {
    let files: [(&str, &[u8]); 3] =
        [("1.csv", b"a,b\nx,1\n"), ("2.csv", b"b,more,a\n2,?,y\n"), ("3.csv", b"\"b\" , A \n3,z\n")];
    check_files(&files, json!({}), &["x|1", "y|2", "z|3"], &[]);
}

#[test]
fn renamed_column_is_found_by_its_aliases_in_order() {
    let files: [(&str, &[u8]); 3] =
        [("1.csv", b"old,b\nx,1\n"), ("2.csv", b"b,New Name\n2,y\n"), ("3.csv", b"old,b,new name\nwrong,3,right\n")];
    check_files(&files, json!({ "columns": from(json!(["new name", "OLD"])) }), &["x|1", "y|2", "right|3"], &[]);
}

#[test]
fn missing_column_fails_or_is_null() {
    let files: [(&str, &[u8]); 2] = [("1.csv", b"a,b\nx,1\n"), ("2.csv", b"b\n2\n")];
    check_files_fail(
        &files,
        json!({ "columns": from(json!(["a", "alpha"])) }),
        &["`in/2.csv`", "table `t`", "it has no column `a` or `alpha`", "the header found is: b", "missing_columns"],
    );
    check_files(&files, json!({ "missing_columns": "null" }), &["x|1", "∅|2"], &[]);
}

#[test]
fn missing_not_nullable_column_rejects_every_row() {
    let columns = json!([{ "name": "a", "type": "string", "nullable": false }, { "name": "b", "type": "int64" }]);
    let change = json!({ "missing_columns": "null", "columns": columns });
    check("b\n1\n2\n", change, &[], &["2@2 a null_not_allowed 1", "3@4 a null_not_allowed 2"]);
}

#[test]
fn extra_columns_are_ignored_or_fail() {
    check("a,b,c\nx,1,?\n", json!({}), &["x|1"], &[]);
    check_fails(
        "a,b,c,d\nx,1,?,?\n",
        json!({ "extra_columns": "fail" }),
        &["`in/x.csv`", "columns that the table doesn't declare: `c`, `d`", "extra_columns"],
    );
}

#[test]
fn duplicate_column_fails_or_the_first_is_read() {
    for header in ["a,b,a", "a,b,A", "a,b,\" a \""] {
        let text = format!("{header}\nx,1,y\n");
        check_fails(&text, json!({}), &["`in/x.csv`", "it has column `a` more than once", "duplicate_columns"]);
        check(&text, json!({ "duplicate_columns": "first" }), &["x|1"], &[]);
    }
}

#[test]
fn duplicates_of_unread_columns_are_accepted() {
    check("a,b,c,c\nx,1,?,?\n", json!({}), &["x|1"], &[]);
}

#[test]
fn blank_names_are_unread_columns() {
    check(",a,,b,\n?,x,?,1,?\n", json!({}), &["x|1"], &[]);
    check_fails(",a,,b\n?,x,?,1\n", json!({ "extra_columns": "fail" }), &["doesn't declare: ``, ``"]);
}

#[test]
fn names_are_case_insensitive_beyond_ascii() {
    check("GRÖSSE,B\nx,1\n", json!({ "columns": from(json!("Grösse")) }), &["x|1"], &[]);
}

#[test]
fn columns_are_positions_without_a_header() {
    let csv = json!({ "header": false });
    check("x,1\ny,z\n", json!({ "csv": csv }), &["x|1"], &["2@4 b=z wrong_type y,z"]);
    let columns = json!([{ "name": "a", "type": "string", "from": 2 }, { "name": "b", "type": "int64", "from": 0 }]);
    check("1,?,x\n", json!({ "csv": csv, "columns": columns }), &["x|1"], &[]);
    check("x\n", json!({ "csv": csv, "missing_columns": "null" }), &["x|∅"], &[]);
}

#[test]
fn first_record_of_another_width_is_ragged_without_a_header() {
    let csv = json!({ "header": false });
    check("x\ny,2\nz,3\n", json!({ "csv": csv }), &["y|2", "z|3"], &["1@0 - ragged_row x"]);
    check("x,1,?\ny,2\n", json!({ "csv": csv }), &["y|2"], &["1@0 - ragged_row x,1,?"]);
    check("x,1,?\ny\n", json!({ "csv": { "header": false, "ragged_rows": "pad" } }), &["x|1", "y|∅"], &[]);
}

#[test]
fn width_declares_unread_cells_without_a_header() {
    let csv = json!({ "header": false, "width": 4 });
    check("x,1,?,?\ny,2\n", json!({ "csv": csv }), &["x|1"], &["2@8 - ragged_row y,2"]);
    let fail = json!({ "csv": csv, "extra_columns": "fail" });
    check_fails("x,1,?,?\n", fail, &["`in/x.csv`", "2 columns that the table doesn't declare", "a record has 4 cells"]);
}

#[test]
fn header_is_rejected_as_a_row_if_none_is_declared() {
    check("a,b\nx,1\n", json!({ "csv": { "header": false } }), &["x|1"], &["1@0 b=b wrong_type a,b"]);
}
