//! Encodings, line endings, quotes.

use serde_json::json;

use super::{check, check_fails};
use crate::support::program::Program;

fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
    text.encode_utf16().flat_map(|unit| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

#[test]
fn file_of_skipped_lines_has_no_header() {
    let change = json!({ "csv": { "skip_rows": 1 } });
    check_fails("a,b", change, &["`in/x.csv`", "it has no column `a`, `b`", "no header line", "(header_mismatch)"]);
}

#[test]
fn empty_file_has_no_rows_without_required_header() {
    check("", json!({ "missing_columns": "null" }), &[], &[]);
    check("", json!({ "csv": { "header": false } }), &[], &[]);
    check("\n\r\n\n", json!({ "csv": { "header": false } }), &[], &[]);
}

#[test]
fn header_only_file_has_no_rows() {
    for text in ["a,b", "a,b\n", "a,b\r\n", "\n\na,b\n\n"] {
        check(text, json!({}), &[], &[]);
    }
}

#[test]
fn last_line_needs_no_terminator() {
    check("a,b\nx,1\ny,2", json!({}), &["x|1", "y|2"], &[]);
    check("a,b\nx,1\ny,", json!({}), &["x|1", "y|∅"], &[]);
    check("a,b\nx,1\n\"y\",\"2\"", json!({}), &["x|1", "y|2"], &[]);
    check("a,b\r\nx,1\r\ny,z", json!({}), &["x|1"], &["3@10 b=z wrong_type y,z"]);
}

#[test]
fn byte_order_mark_is_skipped_and_counts_in_offsets() {
    check("\u{feff}a,b\nx,1\ny,z\n", json!({}), &["x|1"], &["3@11 b=z wrong_type y,z"]);
    check("\u{feff}\"a\",b\nx,1\n", json!({}), &["x|1"], &[]);
    check("\u{feff}", json!({ "missing_columns": "null" }), &[], &[]);
}

#[test]
fn utf_16_is_detected_by_mark_or_declared() {
    let text = "a,b\nü,1\n😀,z\n";
    for big_endian in [false, true] {
        let marked = utf16(&format!("\u{feff}{text}"), big_endian);
        check(marked, json!({}), &["ü|1"], &["3@18 b=z wrong_type 😀,z"]);
        let name = if big_endian { "utf-16be" } else { "utf-16le" };
        let bare = utf16(text, big_endian);
        check(bare, json!({ "csv": { "encoding": name } }), &["ü|1"], &["3@16 b=z wrong_type 😀,z"]);
    }
}

#[test]
fn undeclared_utf_16_without_mark_fails_with_advice() {
    let ran = check_fails(utf16("a,b\nx,1\n", false), json!({}), &["`in/x.csv`", "(header_mismatch)"]);
    assert!(ran.stderr.contains("csv.encoding"), "{}", ran.stderr);
}

#[test]
fn half_a_utf_16_unit_rejects_its_row() {
    let mut text = utf16("\u{feff}a,b\nx,1\ny,2", false);
    text.pop();
    check(text, json!({}), &["x|1"], &["3@18 - invalid_encoding y,\u{fffd}"]);
}

#[test]
fn latin_1_must_be_declared() {
    let text = b"a,b\nM\xfcller,1\nx,2\n";
    check(text, json!({ "csv": { "encoding": "latin1" } }), &["Müller|1", "x|2"], &[]);
    check(text, json!({}), &["x|2"], &["2@4 - invalid_encoding M\u{fffd}ller,1"]);
    check_fails(b"\xfc,b\nx,1\n", json!({}), &["`in/x.csv` line 1", "UTF-8", "csv.encoding"]);
}

/// `raw` shows invalid bytes as U+FFFD.
#[test]
fn bytes_of_invalid_utf_8_records_are_stored() {
    let program = Program::of(&json!({}));
    program.put("x.csv", b"a,b\nM\xfcller,1\nx,y\n").run(&[]).ok();
    let folder = program.output().join("_rejected_rows");
    let db = duckdb::Connection::open_in_memory().unwrap();
    let sql = format!("SELECT unhex(raw_hex) FROM read_parquet('{}/**/*.parquet') ORDER BY line", folder.display());
    let mut statement = db.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, Option<Vec<u8>>>(0)).unwrap();
    assert_eq!(rows.map(Result::unwrap).collect::<Vec<_>>(), [Some(b"M\xfcller,1".to_vec()), None]);
}

/// The bytes of `source` at the positions that `_rejected_rows` gives for its records.
fn bytes_of_rejects(source: &[u8], change: serde_json::Value) -> Vec<Vec<u8>> {
    let program = Program::of(&change);
    program.put("x.csv", source).run(&[]).ok();
    let folder = program.output().join("_rejected_rows");
    let db = duckdb::Connection::open_in_memory().unwrap();
    let sql =
        format!("SELECT byte_offset, byte_length FROM read_parquet('{}/**/*.parquet') ORDER BY line", folder.display());
    let mut statement = db.prepare(&sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?))).unwrap();
    let place = |(offset, length): (u64, u64)| source[offset as usize..(offset + length) as usize].to_vec();
    rows.map(|row| place(row.unwrap())).collect()
}

#[test]
fn reject_offsets_and_lengths_locate_bytes_in_every_encoding() {
    let csv = |encoding: &str| json!({ "csv": { "encoding": encoding } });
    let text = "a,b\r\nx,1\r\n\"é\nà\",q\r\ny,2\nü€,bad";
    let records = ["\"é\nà\",q\r\n", "ü€,bad"];
    for encoding in ["utf-8", "windows-1252"] {
        let of =
            |text: &str| encoding_rs::Encoding::for_label(encoding.as_bytes()).unwrap().encode(text).0.into_owned();
        assert_eq!(bytes_of_rejects(&of(text), csv(encoding)), records.map(of), "{encoding}");
    }
    let marked = utf16(&format!("\u{feff}{text}"), true);
    assert_eq!(bytes_of_rejects(&marked, json!({})), records.map(|record| utf16(record, true)));
    // Half a UTF-16 unit at the end is one byte.
    let half = [&utf16("a,b\nx,1\ny,", false)[..], b"2"].concat();
    assert_eq!(bytes_of_rejects(&half, csv("utf-16le")), [[&utf16("y,", false)[..], b"2"].concat()]);
    // `raw` shows bytes without a character as U+FFFD.
    let (mut sjis, last) = (b"a,b\n\x93\xfa,1\n".to_vec(), b"\x93\xfa\xff\x80,2".to_vec());
    let middle = b"\x93\xff\xfd,\x96\x7b\n".to_vec();
    sjis.extend([&middle[..], b"x,3\n", &last].concat());
    assert_eq!(bytes_of_rejects(&sjis, csv("shift_jis")), [middle, last]);
}

#[test]
fn oversize_record_has_its_location() {
    let long = format!("\"{}\",1\r\n", "é".repeat(3 << 20));
    let text = format!("a,b\nx,1\n{long}y,2\n");
    let change = json!({ "csv": { "encoding": "windows-1252", "record_bytes_max": 1_048_576 } });
    let of = |text: &str| encoding_rs::WINDOWS_1252.encode(text).0.into_owned();
    assert_eq!(bytes_of_rejects(&of(&text), change), [of(&long)]);
}

#[test]
fn offsets_count_source_bytes_in_any_encoding() {
    let latin = b"a,b\n\xfc\xfc\xfc,1\ny,z\n";
    check(latin, json!({ "csv": { "encoding": "latin1" } }), &["üüü|1"], &["3@10 b=z wrong_type y,z"]);
    let (japanese, _, _) = encoding_rs::SHIFT_JIS.encode("a,b\n日本,1\ny,z\n");
    check(japanese, json!({ "csv": { "encoding": "shift_jis" } }), &["日本|1"], &["3@11 b=z wrong_type y,z"]);
}

#[test]
fn crlf_and_lf_may_be_mixed() {
    check("a,b\r\nx,1\ny,2\r\nz,q\r\n", json!({}), &["x|1", "y|2"], &["4@14 b=q wrong_type z,q"]);
}

#[test]
fn configured_lone_cr_ends_records() {
    let cr = json!({ "csv": { "record_terminator": "cr" } });
    check("a,b\rx,1\ry,z\r", cr.clone(), &["x|1"], &["3@8 b=z wrong_type y,z"]);
    check("a,b\rx,1", cr, &["x|1"], &[]);
}

#[test]
fn lone_cr_file_fails_with_advice() {
    check_fails("a,b\rx,1\ry,2\r", json!({}), &["`in/x.csv`", "(header_mismatch)", "record_terminator"]);
}

#[test]
fn lone_cr_file_without_header_fails() {
    let parts = ["`in/x.csv`", "(header_mismatch)", "lone CR", "record_terminator"];
    let csv = json!({ "header": false });
    check_fails("x,1\ry,2\rz,3\r", json!({ "csv": csv }), &parts);
    let one = json!([{ "name": "a", "type": "string" }]);
    check_fails("1\r2\r3\r4", json!({ "csv": csv, "columns": one }), &parts);
    let long = "x,1\r".repeat(1_000_000);
    check_fails(long, json!({ "csv": csv }), &parts);
}

/// The line to skip would be the whole file.
#[test]
fn lone_crs_are_detected_in_a_skipped_first_line() {
    let parts = ["`in/x.csv`", "(header_mismatch)", "lone CR", "record_terminator"];
    check_fails("May\rx,1\ry,2\r", json!({ "csv": { "header": false, "skip_rows": 1 } }), &parts);
    check_fails("#May\rx,1\ry,2\r", json!({ "csv": { "header": false, "comment": "#" } }), &parts);
}

#[test]
fn cr_within_a_cell_of_the_first_record_is_text() {
    check("x\ry,1\nz,2\n", json!({ "csv": { "header": false } }), &["x\ry|1", "z|2"], &[]);
    check(
        "\"x\ry\"\nz\n",
        json!({ "csv": { "header": false }, "columns": [{ "name": "a", "type": "string" }] }),
        &["x\ry", "z"],
        &[],
    );
}

#[test]
fn newlines_and_quotes_within_quotes_are_text() {
    let text = "a,b\n\"x\ny\",1\n\"say \"\"hi\"\"\r\n\",2\n\"p\nq\",z\n";
    check(text, json!({}), &["x\ny|1", "say \"hi\"\r\n|2"], &["6@29 b=z wrong_type \"p\\nq\",z"]);
}

#[test]
fn escape_byte_makes_the_next_one_text() {
    let text = "a,b\n\"say \\\"hi\\\" \\\\\",1\nback\\slash,2\n";
    check(text, json!({ "csv": { "escape": "\\" } }), &["say \"hi\" \\|1", "back\\slash|2"], &[]);
}

#[test]
fn stray_quote_rejects_only_its_row() {
    let text = "a,b\nx\"y,1\n\"x\"y,2\nz,3\n";
    let rejects = ["2@4 - stray_quote x\"y,1", "3@10 - stray_quote \"x\"y,2"];
    check(text, json!({}), &["z|3"], &rejects);
    check(text, json!({ "csv": { "quotes": "lenient" } }), &["x\"y|1", "xy|2", "z|3"], &[]);
    check(text, json!({ "csv": { "quote": null } }), &["x\"y|1", "\"x\"y|2", "z|3"], &[]);
}

#[test]
fn unclosed_quote_rejects_everything_from_its_record() {
    let text = "a,b\nx,1\n\"y,2\nz,3\n";
    for quotes in ["strict", "lenient"] {
        let change = json!({ "csv": { "quotes": quotes } });
        check(text, change, &["x|1"], &["3@8 - unclosed_quote \"y,2\\nz,3\\n"]);
    }
    check_fails("a,\"b\nx,1\n", json!({}), &["`in/x.csv` line 1", "never closed", "csv.quote"]);
}

#[test]
fn delimiters_may_have_up_to_eight_bytes() {
    for delimiter in [";", "\t", "||", "¦", "<-tab->"] {
        let text = format!("a{delimiter}b\n\"x{delimiter}\"{delimiter}1\n");
        check(text, json!({ "csv": { "delimiter": delimiter } }), &[&format!("x{delimiter}|1")], &[]);
    }
}

#[test]
fn wrong_delimiter_fails_with_advice() {
    check_fails("a;b\nx;1\n", json!({}), &["`in/x.csv`", "a;b", "csv.delimiter"]);
}

#[test]
fn nul_is_text() {
    check("a,b\nx\0y,1\n", json!({}), &["x\0y|1"], &[]);
}

#[test]
fn control_characters_are_escaped_on_the_terminal() {
    check_fails("\u{1b}[2Ja,b\nx,1\n", json!({}), &["header_mismatch"]);
    let fail =
        json!({ "columns": [{ "name": "a", "type": "string" }, { "name": "b", "type": "int64", "on_error": "fail" }] });
    check_fails("a,b\nx,\u{1b}[2J\n", fail, &["row_failed", "line 2: column `b`: expected int64, found `\\u{1b}[2J`"]);
}
