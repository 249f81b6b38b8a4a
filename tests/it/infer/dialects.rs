//! Detection of dialects.

use lakemill::engine::infer::proposal::Item;

use super::{check, column, columns, proposed, proposed_as, reason, refused, warned};
use crate::support::lake::gzip;

#[test]
fn plain_csvs_have_the_default_dialect() {
    let proposal = check("id,name\n1,Ann\n2,Bob\n", "{}", &["id:int64", "name:string"]);
    assert_eq!(proposal.mapping().get("csv"), None);
    assert_eq!((proposal.table.as_str(), &proposal.files[0][..]), ("a", "t/*.csv"));
    assert!(reason(&proposal, Item::Delimiter).contains("2 cells"));
    assert!(reason(&proposal, Item::Header).contains("numbers"));
}

#[test]
fn delimiter_gives_records_of_equal_width() {
    for (delimiter, text) in [
        (";", "id;name\n1;Ann, B\n2;Bob\n"),
        ("\t", "id\tname\n1\tAnn B, C\n2\tBob\n"),
        ("|", "id|name\n1|Ann; B\n2|Bob\n"),
        ("||", "id||name\n1||Ann\n2||Bob\n"),
        ("\u{1}", "id\u{1}name\n1\u{1}Ann\n2\u{1}Bob\n"),
        ("^", "id^name\n1^Ann\n2^Bob\n"),
        (" ", "x y\n1 2.5\n2 3.5\n"),
    ] {
        let proposal = proposed(text);
        assert_eq!(proposal.csv["delimiter"], delimiter, "{text}");
        assert_eq!(proposal.columns.len(), 2, "{text}");
    }
}

#[test]
fn decimal_commas_with_semicolons_are_detected() {
    let csv = r#"{"delimiter":";","decimal":","}"#;
    check("name;x;y\na;1,5;10\nb;2,25;11\n", csv, &["name:string", "x:float64", "y:int64"]);
    check(
        "1,5;2,5;3,5\n1,5;2,5;3,5\n4,5;5,5;6,5\n",
        r#"{"delimiter":";","header":false,"decimal":","}"#,
        &["column_1:decimal(18,1)", "column_2:decimal(18,1)", "column_3:decimal(18,1)"],
    );
    let csv = r#"{"delimiter":";","decimal":",","thousands":"."}"#;
    check("betrag;n\n1.234,50;1\n12.345.678,99;2\n", csv, &["betrag:decimal(18,2)", "n:int64"]);
    let proposal = check(
        "amount,n\n\"1,234.50\",1\n\"2,000.00\",2\n",
        r#"{"thousands":","}"#,
        &["amount:decimal(18,2)", "n:int64"],
    );
    assert!(reason(&proposal, Item::Thousands).contains("as numbers"));
}

#[test]
fn quoted_delimiters_and_line_breaks_stay_within_their_cells() {
    check("id,text\n1,\"a, b\nc \"\"d\"\"\"\n2,\"e\n\nf,,,\"\n", "{}", &["id:int64", "text:string"]);
    check("id,t\n1,\"a \\\" b, c\"\n2,\"d \\\" e\"\n", r#"{"escape":"\\"}"#, &["id:int64", "t:string"]);
    check("id,t\n1,'a, b'\n2,'c, d'\n3,'it''s'\n", r#"{"quote":"'"}"#, &["id:int64", "t:string"]);
}

#[test]
fn quotes_within_text_are_not_quoting() {
    let proposal = proposed("size,name\n1,5\" pipe\n2,6\" pipe\n");
    assert_eq!(proposal.csv["quote"], serde_json::Value::Null);
    let proposal = proposed("size,name\n1,\"a, b\"\n2,6\" pipe\n");
    assert_eq!(proposal.csv["quotes"], "lenient");
    assert!(reason(&proposal, Item::Quotes).contains("line 3"));
}

#[test]
fn stray_quote_far_after_the_head_is_found() {
    let mut text = "id,name\n".to_owned();
    (0..200_000).for_each(|i| text.push_str(&format!("{i},name {i}\n")));
    text.push_str("9,6\" pipe\n");
    let proposal = proposed(&text);
    assert_eq!(proposal.csv["quote"], serde_json::Value::Null);
    assert_eq!(proposal.sample.rows_read, 200_001);
}

#[test]
fn files_without_header_are_read_by_position() {
    let proposal = check("1,Ann\n2,Bob\n3,Ann\n", r#"{"header":false}"#, &["column_1:int64", "column_2:string"]);
    assert!(reason(&proposal, Item::Header).contains("`1`"));
    let text = check("Ann,Rome\nBob,Oslo\nAnn,Kyiv\n", r#"{"header":false}"#, &["column_1:string", "column_2:string"]);
    assert!(warned(&text, "the file doesn't show which is right"));
}

#[test]
fn comments_and_preambles_are_skipped() {
    check("# made by hand\n# in 2024\nid,name\n1,a\n2,b\n", r##"{"comment":"#"}"##, &["id:int64", "name:string"]);
    check(
        "Report, of sorts\nby: me\n\nid,name,x\n1,a,2\n2,b,3\n",
        r#"{"skip_rows":3}"#,
        &["id:int64", "name:string", "x:int64"],
    );
    check("id,colour\n1,#ff0000\n2,#00ff00\n", "{}", &["id:int64", "colour:string"]);
    check("colour,id\n#ff0000,1\n#00ff00,2\n", "{}", &["colour:string", "id:int64"]);
    check("a,b\n1,2\n# a note, in between, of sorts\n3,4\n", r##"{"comment":"#"}"##, &["a:int64", "b:int64"]);
    let proposal = check(
        "#chrom\tpos\n1\t100\n2\t200\n",
        r#"{"delimiter":"\t","header":false,"skip_rows":1}"#,
        &["chrom:int64", "pos:int64"],
    );
    assert!(reason(&proposal, Item::Header).contains("comment"));
}

#[test]
fn trailing_totals_are_a_footer() {
    let proposal = check(
        "id,name\n1,a\n2,b\n3,c\nTotal: 3 rows\n",
        r#"{"footer_values":["Total:*"],"skip_footer_rows":1}"#,
        &["id:int64", "name:string"],
    );
    assert_eq!(proposal.sample.rows_read, 3);
    assert!(reason(&proposal, Item::SkipFooterRows).contains("the last record"));
}

#[test]
fn short_records_among_rows_are_not_a_footer() {
    let text = b"id,name\n1,a\n2\n3,c\n4,d\nTotal: 3 rows\n";
    let proposal = super::propose("a.csv", text, &super::GENEROUS_LIMITS).unwrap();
    assert_eq!(proposal.csv, serde_json::json!({}));
    assert_eq!((proposal.sample.rows_read, proposal.sample.rows_refused), (3, 2));
}

#[test]
fn trailing_delimiters_make_no_column() {
    let proposal = check("a,b,\n1,2,\n3,4,\n", "{}", &["a:int64", "b:int64"]);
    assert!(reason(&proposal, Item::TrailingDelimiter).contains("neither a name nor a value"));
    let csv = r#"{"header":false,"skip_rows":1}"#;
    let wider = r#"{"header":false,"width":3,"skip_rows":1}"#;
    check("a,b\n1,2,\n3,4,\n", wider, &["a:int64", "b:int64"]);
    check("a,b\nr1,1,2\nr2,3,4\n", csv, &["row:string", "a:int64", "b:int64"]);
}

#[test]
fn unusual_headers_give_valid_names() {
    let proposal = check(
        "Trip ID,tripDate,\"Größe (cm)\",2019,%\n1,2024-01-01,2,3,x\n",
        "{}",
        &["trip_id:int64", "trip_date:date", "größe_cm:int64", "c2019:int64", "column_5:string"],
    );
    assert_eq!(proposal.mapping()["columns"][0]["from"], "Trip ID");
    let blank = check(",x\n0,5\n1,6\n", "{}", &["column_1:int64", "x:int64"]);
    assert_eq!(blank.mapping()["columns"][0]["from"], "");
}

#[test]
fn duplicate_header_names_are_replaced_by_positions() {
    let csv = r#"{"header":false,"skip_rows":1}"#;
    let proposal = check("id,x,X\n1,2,a\n3,4,b\n", csv, &["id:int64", "x:int64", "x_2:string"]);
    assert_eq!(proposal.mapping()["columns"][2]["from"], 2);
    assert!(warned(&proposal, "is not unique"));
    check("\"a\nb\",x,x\n1,2,3\n", r#"{"header":false,"skip_rows":2}"#, &["a_b:int64", "x:int64", "x_2:int64"]);
    check(",,x\n1,2,3\n", csv, &["column_1:int64", "column_2:int64", "x:int64"]);
}

#[test]
fn titles_that_a_spreadsheet_pads_with_empty_cells_are_skipped() {
    let rows = "SO-1,04/01/2025,6,\"$1,081.68\"\nSO-2,04/02/2025,(2),$97.90\nSO-2,04/30/2025,4,$7.00\n";
    let titles = "Monthly sales report - April 2025,,,\nExported 05/02/2025,,,\n,,,\n";
    let columns = &["order_id:string", "order_date:date:%m/%d/%Y", "quantity:int64", "revenue:decimal(18,2)"];
    let proposal =
        check(format!("{titles}Order ID,Order Date,Quantity,Revenue\n{rows}"), r#"{"skip_rows":3}"#, columns);
    assert!(reason(&proposal, Item::SkipRows).contains("that have values"));
    // With one cell a title, or with a total at the end, it is the same table.
    check(format!("April\nOrder ID,Order Date,Quantity,Revenue\n{rows}"), r#"{"skip_rows":1}"#, columns);
    let csv = r#"{"skip_rows":3,"skip_footer_rows":1,"footer_values":["Total"]}"#;
    check(format!("{titles}Order ID,Order Date,Quantity,Revenue\n{rows}Total,,8,\"$1,186.58\"\n"), csv, columns);
    // Sparse data and headers with few names are no titles.
    check("id,a,b\n1,,\n2,,\n3,x,\n", "{}", &["id:int64", "a:string", "b:string"]);
    check(",,x\n1,2,3\n4,5,6\n", r#"{"header":false,"skip_rows":1}"#, &["column_1:int64", "column_2:int64", "x:int64"]);
}

#[test]
fn single_column_single_row_and_header_only_files_are_read() {
    check("name\nJohn Smith\nAnn Lee\n", "{}", &["name:string"]);
    check("at\n12:30:00\n13:30:00\n", "{}", &["at:time"]);
    check("x\n1,5\n2,5\n", r#"{"delimiter":"\t","decimal":","}"#, &["x:decimal(18,1)"]);
    check("text\nwell, so be it\nno\na, b, c\n", r#"{"delimiter":"\t"}"#, &["text:string"]);
    check("1,a,2024-01-01\n", r#"{"header":false}"#, &["column_1:int64", "column_2:string", "column_3:date"]);
    let header = check("id,name\n", "{}", &["id:string", "name:string"]);
    assert!(warned(&header, "no row"));
    check("id", "{}", &["id:string"]);
}

#[test]
fn lone_carriage_returns_are_detected() {
    check("id,name\r1,a\r2,b\r", r#"{"record_terminator":"cr"}"#, &["id:int64", "name:string"]);
    check("id,name\r\n1,a\r\n2,b\r\n", "{}", &["id:int64", "name:string"]);
}

#[test]
fn encodings_are_detected() {
    let text = "id;name\n1;Zoë\n2;Łódź\n";
    let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let columns = &["id:int64", "name:string"];
    check(&le, r#"{"delimiter":";","encoding":"utf-16le"}"#, columns);
    check([b"\xff\xfe", &le[..]].concat(), r#"{"delimiter":";","encoding":"utf-16le"}"#, columns);
    check([b"\xfe\xff", &be[..]].concat(), r#"{"delimiter":";","encoding":"utf-16be"}"#, columns);
    check([b"\xef\xbb\xbf", text.as_bytes()].concat(), r#"{"delimiter":";"}"#, columns);
    let latin = check(b"id,name\n1,Zo\xeb\n2,Ren\xe9\n", r#"{"encoding":"windows-1252"}"#, columns);
    assert!(warned(&latin, "guess"));
}

#[test]
fn encoding_shown_only_after_the_head_is_found() {
    let mut bytes = b"id,name\n".to_vec();
    (0..150_000).for_each(|i| bytes.extend(format!("{i},name {i}\n").bytes()));
    bytes.extend(b"1,Zo\xeb\n");
    let proposal = proposed(&bytes);
    assert_eq!(proposal.csv["encoding"], "windows-1252");
}

#[test]
fn values_are_trimmed_only_if_a_type_needs_it() {
    let proposal = check("id, x\n1, 2\n2, 3\n", r#"{"trim":true}"#, &["id:int64", "x:int64"]);
    assert!(reason(&proposal, Item::Trim).contains("line 2"));
    check("id,x\n1, a\n2, b \n", "{}", &["id:int64", "x:string"]);
}

#[test]
fn wide_files_and_long_records_are_read() {
    let header: Vec<String> = (0..2_000).map(|i| format!("c{i}")).collect();
    let row: Vec<String> = (0..2_000).map(|i| i.to_string()).collect();
    let wide = proposed(format!("{}\n{}\n{}\n", header.join(","), row.join(","), row.join(",")));
    assert_eq!((wide.columns.len(), wide.columns[1_999].ty.as_str()), (2_000, "int64"));
    let long = proposed(format!("id,text\n1,a\n2,\"{}\"\n3,b\n", "x, y\n".repeat(700_000)));
    assert_eq!(long.csv["record_bytes_max"], 8 << 20);
    assert_eq!(columns(&long), ["id:int64", "text:string"]);
    assert_eq!(column(&long, "text").evidence.samples[1].len(), 83, "what is shown of it is short");
}

#[test]
fn compressed_files_are_read_by_extension() {
    let text = "id,name\n1,a\n2,b\n";
    let gz = gzip(text.as_bytes());
    let proposal = proposed_as("pipelines/x/trips/2024-01.csv.gz", &gz);
    assert_eq!((proposal.table.as_str(), &proposal.files[..]), ("trips", &["trips/*.csv.gz".to_owned()][..]));
    assert_eq!((proposal.sample.bytes_read, proposal.sample.bytes_total), (16, gz.len() as u64));
    let zst = zstd::encode_all(text.as_bytes(), 3).unwrap();
    assert_eq!(columns(&proposed_as("pipelines/x/a.csv.zst", &zst)), ["id:int64", "name:string"]);
}

#[test]
fn other_formats_are_refused_with_a_reason() {
    for (bytes, reason) in [
        (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "not a CSV: `pipelines/x/t/a.csv`: it is a PNG image"),
        (b"PK\x03\x04 zip", "a zip archive"),
        (b"PAR1\x15\x04", "a Parquet file"),
        (b"a,b\n\0\0\0,\0\n", "NUL"),
        (b"", "has no rows"),
        (b"\n\n  \n", "has no rows"),
        (b"\xef\xbb\xbf", "has no rows"),
        (b"\xef\xbb\xbf\r\n\r\n", "choose a file"),
    ] {
        let message = refused(bytes);
        assert!(message.contains(reason), "{message}");
    }
    let noise: Vec<u8> = (0..4_096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert!(refused(&noise).starts_with("not a CSV"));
}

#[test]
fn rejected_records_are_counted_and_reported() {
    let proposal = super::propose("a.csv", b"a,b\n1,2\n3\n4,5\n6,7\n", &super::GENEROUS_LIMITS).unwrap();
    assert_eq!((proposal.sample.rows_read, proposal.sample.rows_refused, proposal.sample.rows_confirmed), (3, 1, 3));
    assert!(warned(&proposal, "ragged_row, first on line 3"));
}
