//! Cells that are invalid for their column's type.

use serde_json::{Value, json};

use super::{check, check_fails};
use crate::support::program::Program;

/// One column `v`, from a file with one column.
fn column(ty: &str, more: Value) -> Value {
    let mut column = json!({ "name": "v", "type": ty });
    more.as_object().unwrap().iter().for_each(|(name, value)| column[name] = value.clone());
    json!({ "columns": [column] })
}

/// All `cells` but the first are rejected for `reason`, with messages that contain `parts`.
#[track_caller]
fn refused(ty: &str, more: Value, cells: &[&str], reason: &str, parts: &[&str]) {
    let program = Program::of(&column(ty, more));
    program.put("x.csv", format!("v\n{}\n", cells.join("\n"))).run(&[]).ok();
    assert_eq!(program.rows("t").len(), 1, "{:?}", program.rows("t"));
    let rejected = program.rejected("t");
    assert_eq!(rejected.len(), cells.len() - 1, "{rejected:#?}");
    for (reject, cell) in rejected.iter().zip(&cells[1..]) {
        assert_eq!((reject.reason.as_str(), reject.value.as_deref()), (reason, Some(*cell)), "{reject:?}");
        assert_eq!((reject.column.as_deref(), reject.source.as_str()), (Some("v"), "in/x.csv"));
        for part in parts.iter().chain(&["column `v`", &*format!("`{cell}`")]) {
            assert!(reject.message.contains(part), "expected `{part}` in {}", reject.message);
        }
    }
}

#[test]
fn out_of_range_numbers_are_rejected_with_the_range() {
    let none = || json!({});
    refused("int8", none(), &["127", "128", "-129", "99999999999999999999"], "out_of_range", &["-128 to 127"]);
    refused("uint8", none(), &["255", "256", "-1"], "out_of_range", &["0 to 255"]);
    refused("int64", none(), &["9223372036854775807", "9223372036854775808"], "out_of_range", &["int64"]);
    refused("uint64", none(), &["18446744073709551615", "18446744073709551616"], "out_of_range", &["uint64"]);
    refused("decimal(4,2)", none(), &["99.99", "100", "-123.4"], "out_of_range", &["2 digits before"]);
    refused("float64", none(), &["1e308", "1e309"], "out_of_range", &["float64"]);
    refused("float32", none(), &["1e38", "1e39"], "out_of_range", &["float32"]);
}

#[test]
fn numbers_are_never_rounded_or_guessed() {
    let none = || json!({});
    refused(
        "int64",
        none(),
        &["1", "1.0", "1e3", "1,0", " 2", "0x1", "١"].map(|c| if c == "1,0" { "1_0" } else { c }),
        "wrong_type",
        &["int64"],
    );
    refused("decimal(4,2)", none(), &["1.20", "1.234"], "wrong_type", &["nothing is rounded"]);
    refused("float64", none(), &["1.5", "1.5.1", "1;5", "abc"], "wrong_type", &["float64"]);
    refused("boolean", none(), &["true", "TRUE", "yes", "1"], "wrong_type", &["true_values"]);
}

#[test]
fn invalid_dates_and_times_are_rejected() {
    let none = || json!({});
    refused("date", none(), &["2024-02-29", "2023-02-29", "2024-13-01", "2024-00-10"], "wrong_type", &["no such date"]);
    refused("date", none(), &["2024-01-31", "31/01/2024", "20240131", "today"], "wrong_type", &["`YYYY-MM-DD`"]);
    refused("date", json!({ "formats": ["%d/%m/%Y"] }), &["31/01/2024", "2024-01-31"], "wrong_type", &["`%d/%m/%Y`"]);
    refused("time", none(), &["23:59:59", "24:00:00", "12:60:00"], "wrong_type", &["no such date or time"]);
    refused("timestamp", none(), &["2024-01-31 10:00:00", "2024-01-31 10:00:60"], "wrong_type", &["leap seconds"]);
    refused(
        "timestamp",
        none(),
        &["2024-01-31 10:00:00.123456", "2024-01-31 10:00:00.1234567"],
        "wrong_type",
        &["microsecond"],
    );
}

#[test]
fn local_times_that_are_ambiguous_or_skipped_are_rejected() {
    let zone = || json!({ "timezone": "Europe/Berlin" });
    let good = "2024-01-01T00:00:00";
    refused(
        "timestamptz",
        zone(),
        &[good, "2024-10-27T02:30:00"],
        "wrong_type",
        &["it occurred twice", "Europe/Berlin"],
    );
    refused("timestamptz", zone(), &[good, "2024-03-31T02:30:00"], "wrong_type", &["did not occur", "Europe/Berlin"]);
}

#[test]
fn malformed_uuids_and_json_are_rejected() {
    let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    refused("uuid", json!({}), &[uuid, "67e55044-10b1-426f-9247-bb680e5fe0c", "nil"], "wrong_type", &["uuid"]);
    refused(
        "json",
        json!({}),
        &["{}", "{", "[1,]", "nul"].map(|c| if c == "[1,]" { "[1}" } else { c }),
        "wrong_type",
        &["json"],
    );
}

#[test]
fn on_error_decides_the_outcome_of_bad_cells() {
    let text = "v\n1\nx\n300\n2\n";
    check(text, column("int8", json!({})), &["1", "2"], &["3@4 v=x wrong_type x", "4@6 v=300 out_of_range 300"]);
    check(text, column("int8", json!({ "on_error": "null" })), &["1", "∅", "∅", "2"], &[]);
    check_fails(
        text,
        column("int8", json!({ "on_error": "fail" })),
        &["`in/x.csv` line 3: column `v`: expected int8, found `x`", "(row_failed)"],
    );
}

#[test]
fn null_in_not_nullable_column_rejects_the_row_despite_on_error() {
    let text = "v,w\n1,\n,\n2,\n\"\",\n";
    let with = |on_error: &str| json!({ "columns": [{ "name": "v", "type": "string", "nullable": false, "on_error": on_error }] });
    check(text, with("reject"), &["1", "2", ""], &["3@7 v= null_not_allowed ,"]);
    check(text, with("null"), &["1", "2", ""], &["3@7 v= null_not_allowed ,"]);
    check_fails(text, with("fail"), &["`in/x.csv` line 3: column `v`: expected a value, found a null"]);
    let number = json!({ "columns": [{ "name": "v", "type": "int8", "nullable": false, "on_error": "null" }] });
    check("v\n1\nx\n", number, &["1"], &["3@4 v=x null_not_allowed x"]);
}

#[test]
fn only_unquoted_configured_tokens_are_null() {
    let text = "v,w\nNA,1\n\"NA\",2\n,3\nna,4\n";
    let with = |csv: Value| json!({ "csv": csv, "columns": [{ "name": "v", "type": "string" }, { "name": "w", "type": "int8" }] });
    check(text, with(json!({ "null_values": ["NA"] })), &["∅|1", "NA|2", "|3", "na|4"], &[]);
    check(
        text,
        with(json!({ "null_values": ["NA", "na", ""], "quoted_nulls": true })),
        &["∅|1", "∅|2", "∅|3", "∅|4"],
        &[],
    );
    check(text, with(json!({ "null_values": [] })), &["NA|1", "NA|2", "|3", "na|4"], &[]);
}

#[test]
fn empty_cell_that_is_not_null_is_not_a_number() {
    check("v\n1\n\"\"\n", column("int8", json!({})), &["1"], &["3@4 v= wrong_type \"\""]);
}

#[test]
fn blanks_are_text_unless_trimmed() {
    check("v\n 1\n2 \n", column("int8", json!({})), &[], &["2@2 v= 1 wrong_type  1", "3@5 v=2  wrong_type 2 "]);
    let mut trim = column("int8", json!({}));
    trim["csv"] = json!({ "trim": true });
    check("v\n 1\n2\t\n\" 3\"\n", trim, &["1", "2"], &["4@8 v= 3 wrong_type \" 3\""]);
}

#[test]
fn separators_of_numbers_follow_the_config() {
    let mut german = column("decimal(12,2)", json!({}));
    german["csv"] = json!({ "decimal": ",", "thousands": ".", "delimiter": ";" });
    check(
        "v\n1.234.567,89\n0,5\n1.23,4\n1,2.3\n",
        german,
        &["1234567.89", "0.50"],
        &["4@19 v=1.23,4 wrong_type 1.23,4", "5@26 v=1,2.3 wrong_type 1,2.3"],
    );
}

#[test]
fn first_bad_cell_is_the_reason_and_values_are_truncated() {
    let columns = json!([{ "name": "a", "type": "int8" }, { "name": "b", "type": "int8" }]);
    check("a,b\nx,y\n1,y\n", json!({ "columns": columns }), &[], &["2@4 a=x wrong_type x,y", "3@8 b=y wrong_type 1,y"]);

    let program = Program::of(&column("int8", json!({})));
    program.put("x.csv", format!("v\n{}\n", "ü".repeat(50_000))).run(&[]).ok();
    let [reject] = &program.rejected("t")[..] else { panic!("one reject") };
    // Cut at a character boundary, with an ellipsis of three bytes.
    let value = reject.value.as_deref().unwrap();
    assert!(value.len() == 4_095 && value.ends_with("ü…"));
    assert!(reject.raw.len() == 65_535 && reject.raw.ends_with("ü…"));
    assert!(reject.message.len() < 400, "{}", reject.message);
}
