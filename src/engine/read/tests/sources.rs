//! Difficult UTF-8 sources: their records, cells and headers, with positions.

use super::support::{Seen, dialect, read, read_as};
use crate::domain::pipeline::{Dialect, Quotes, RaggedRows, RecordTerminator};
use crate::domain::reject::RejectReason;
use crate::engine::read::reader::ReadError;

fn header(source: &super::support::Source) -> Vec<&str> {
    source.header.iter().flatten().map(String::as_str).collect()
}

fn messages<'a>(source: &'a super::support::Source) -> Vec<&'a str> {
    let message = |seen: &'a Seen| match seen {
        Seen::Bad { message, .. } => Some(message.as_str()),
        Seen::Row { .. } => None,
    };
    source.records.iter().filter_map(message).collect()
}

#[test]
fn empty_source_has_an_empty_header_and_no_records() {
    for bytes in ["", "\n\r\n\n", "\u{feff}", "\u{feff}\n"] {
        let source = read(bytes, &dialect());
        assert_eq!(source.header, Some(vec![]), "{bytes:?}");
        assert_eq!((source.width, source.records.len()), (0, 0));
        let source = read(bytes, &Dialect { header: false, ..dialect() });
        assert_eq!((source.header, source.width, source.records.len()), (None, 0, 0));
    }
}

#[test]
fn header_only_source_has_no_records() {
    for bytes in ["a,b", "a,b\n", "a,b\r\n\r\n"] {
        let source = read(bytes, &dialect());
        assert_eq!(header(&source), ["a", "b"], "{bytes:?}");
        assert_eq!((source.width, source.records.len()), (2, 0));
    }
}

#[test]
fn last_record_needs_no_newline() {
    let source = read("a,b\n1,2\n3,4", &dialect());
    assert_eq!(source.rows(), ["1|2", "3|4"]);
    assert_eq!(source.places(), [(2, 4), (3, 8)]);
    assert_eq!(read("a,b\n1,\"2\"", &dialect()).rows(), ["1|2"]);
    assert_eq!(read("a,b\n1,", &dialect()).rows(), ["1|"]);
}

#[test]
fn byte_order_mark_is_excluded_from_header_but_counts_in_offsets() {
    let source = read("\u{feff}a,b\n1,2\n", &dialect());
    assert_eq!(header(&source), ["a", "b"]);
    assert_eq!(source.places(), [(2, 7)]);
}

#[test]
fn crlf_and_lf_may_be_mixed_and_a_lone_cr_is_text() {
    let source = read("a,b\r\n1,2\n3,4\r\n5\r,6\r\r\n7,8\r", &dialect());
    assert_eq!(source.rows(), ["1|2", "3|4", "5\r|6\r", "7|8\r"]);
    assert_eq!(source.places(), [(2, 5), (3, 9), (4, 14), (5, 21)]);
}

#[test]
fn lone_cr_ends_records_if_configured() {
    let dialect = Dialect { record_terminator: RecordTerminator::Cr, ..dialect() };
    let source = read("a,b\r1,\"2\r3\"\r\r4,5", &dialect);
    assert_eq!(source.rows(), ["1|2\r3", "4|5"]);
    assert_eq!(source.places(), [(2, 4), (5, 13)]);
}

#[test]
fn quoted_cells_may_contain_newlines_delimiters_and_quotes() {
    let source = read("a,b\n\"1\n,\",\"x\"\"y\"\n\"\",\"\"\"\"\r\n2,3\n", &dialect());
    assert_eq!(source.rows(), ["1\n,|x\"y", "|\"", "2|3"]);
    assert_eq!(source.places(), [(2, 4), (4, 17), (5, 26)]);
}

#[test]
fn blank_lines_are_skipped_but_count_as_lines() {
    let source = read("\n\r\na\n\n1\n\r\n\n2\n \n", &dialect());
    assert_eq!(source.rows(), ["1", "2", " "]);
    assert_eq!(source.places(), [(5, 6), (8, 11), (9, 13)]);
}

#[test]
fn strict_quotes_reject_stray_quotes_and_continue() {
    let source = read("a,b\nx\"y,1\n\"x\"y,2\n\"x\" ,3\n5,6\"\n7,\"8\"\n\"9\"\r,1\n", &dialect());
    assert_eq!(source.rows(), ["7|8"]);
    let stray = Some(RejectReason::StrayQuote);
    assert_eq!(source.reasons(), [stray, stray, stray, stray, None, stray]);
    assert_eq!(source.places(), [(2, 4), (3, 10), (4, 17), (5, 24), (6, 29), (7, 35)]);
    assert!(
        messages(&source)[0].starts_with("found a quote within an unquoted cell at byte 1"),
        "{:?}",
        messages(&source)
    );
    assert!(messages(&source)[1].starts_with("found text after a closing quote at byte 3"), "{:?}", messages(&source));
}

#[test]
fn cells_after_a_stray_quote_may_contain_quoted_newlines() {
    let source = read("a,b\nx\"y,\"1\n2\"\n3,4\n", &dialect());
    assert_eq!(source.rows(), ["3|4"]);
    assert_eq!(source.places(), [(2, 4), (4, 14)]);
}

#[test]
fn lenient_quotes_are_text() {
    let dialect = Dialect { quotes: Quotes::Lenient, ..dialect() };
    let source = read("a,b\nx\"y,5\"\n\"x\"y,\"a\"\"b\" \"c\"\n\"x\"\n", &dialect);
    assert_eq!(source.rows(), ["x\"y|5\"", "xy|a\"b \"c\""]);
    assert_eq!(source.reasons()[2], Some(RejectReason::RaggedRow));
}

#[test]
fn quotes_are_text_without_a_quote_byte() {
    let source = read("a,b\n\"1,2\"\n", &Dialect { quote: None, ..dialect() });
    assert_eq!(source.rows(), ["\"1|2\""]);
}

#[test]
fn escape_byte_applies_only_within_quotes() {
    let dialect = Dialect { escape: Some(b'\\'), ..dialect() };
    let source = read("a,b\n\"1\\\"\\\\\",\"\\\n\\é\"\n\\,\\\n", &dialect);
    assert_eq!(source.rows(), ["1\"\\|\né", "\\|\\"]);
    assert_eq!(source.places(), [(2, 4), (4, 20)]);
    let source = read("a\n\"1\"\"2\"\n\"\\", &dialect);
    assert_eq!(source.reasons(), [Some(RejectReason::StrayQuote), Some(RejectReason::UnclosedQuote)]);
}

#[test]
fn unclosed_quote_rejects_the_rest_with_its_line() {
    let source = read("a,b\n1,2\n3,\"4\n5,6\n7,8\n", &dialect());
    assert_eq!(source.rows(), ["1|2"]);
    assert_eq!(source.reasons()[1], Some(RejectReason::UnclosedQuote));
    assert_eq!(source.records[1].place(), (3, 8));
    assert!(messages(&source)[0].contains("starts on line 3"), "{:?}", messages(&source));
}

#[test]
fn ragged_rows_are_rejected_with_both_widths() {
    let source = read("a,b,c\n1,2\n1,2,3\n1,2,3,4\nx\n,,\n", &dialect());
    assert_eq!(source.rows(), ["1|2|3", "||"]);
    assert_eq!(
        messages(&source),
        ["found 2 cells, expected 3", "found 4 cells, expected 3", "found 1 cell, expected 3"]
    );
    assert_eq!(source.places(), [(2, 6), (3, 10), (4, 16), (5, 24), (6, 26)]);
    let source = read("a,b\n1\n", &Dialect { ragged_rows: RaggedRows::Fail, ..dialect() });
    assert_eq!(source.reasons(), [Some(RejectReason::RaggedRow)]);
}

#[test]
fn ragged_rows_are_padded_or_truncated() {
    let dialect = Dialect { ragged_rows: RaggedRows::Pad, ..dialect() };
    let source = read("a,b,c\n1,\"2\"\n1,2,\"3\"\"\",4\nx\n", &dialect);
    assert_eq!(source.rows(), ["1|2|-", "1|2|3\"", "x|-|-"]);
}

#[test]
fn preambles_extra_header_lines_and_footers_are_skipped() {
    let dialect = Dialect { skip_rows: 2, skip_rows_after_header: 2, skip_footer_rows: 2, ..dialect() };
    let source =
        read("Report \"of\nthe, year\n\na,b\n(m),\"(\nkg)\"\n-,-\n\n1,2\n3,4\n\nTotal,\"4\n6\"\nend\n\n", &dialect);
    assert_eq!(header(&source), ["a", "b"]);
    assert_eq!(source.rows(), ["1|2", "3|4"]);
    assert_eq!(source.places(), [(9, 43), (10, 47)]);
    for bytes in ["x", "x\ny\n", "x\ny\na,b\nc,d\n", "x\ny\na,b\nc,d\ne,f\n1,2\n3,4"] {
        assert_eq!(read(bytes, &dialect).records, [], "{bytes:?}");
    }
}

#[test]
fn comments_are_skipped_at_any_line_start() {
    let dialect = Dialect { comment: Some(b'#'), ..dialect() };
    let source = read("# made \"by\n#\na,b\n#1,2\r\n3,#4\n \n# \"\n\"#5\n#\",6\n#", &dialect);
    assert_eq!(header(&source), ["a", "b"]);
    assert_eq!(source.rows(), ["3|#4", "#5\n#|6"]);
    assert_eq!(source.places(), [(5, 23), (6, 28), (8, 34)]);
}

#[test]
fn delimiters_may_have_several_bytes() {
    for (delimiter, bytes) in [("||", "a||b\n1|2||\"3||\"\n||4\n5|||6\n"), ("§", "a§b\n1|2§\"3§\"\n§4\n5§|6\n")] {
        let dialect = Dialect { delimiter: delimiter.as_bytes().to_vec(), ..dialect() };
        let source = read(bytes, &dialect);
        assert_eq!(header(&source), ["a", "b"]);
        let third = format!("1|2|3{delimiter}");
        assert_eq!(source.rows(), [third.as_str(), "|4", "5||6"], "{delimiter}");
    }
    let dialect = Dialect { delimiter: b"ab".to_vec(), ..dialect() };
    assert_eq!(read("xaby\naaabb\n", &dialect).rows(), ["aa|b"]);
}

#[test]
fn header_cells_are_trimmed_and_unescaped() {
    let source = read(" a ,\"b \"\"x\"\"\n\",,A,a,\u{a0}é\n", &dialect());
    assert_eq!(header(&source), ["a", "b \"x\"", "", "A", "a", "é"]);
}

#[test]
fn first_record_sets_the_width_without_a_header() {
    let dialect = Dialect { header: false, ..dialect() };
    let source = read("\n1,2,\"3\n\"\n4,5\n", &dialect);
    assert_eq!((source.header.clone(), source.width), (None, 3));
    assert_eq!(source.rows(), ["1|2|3\n"]);
    assert_eq!(source.places(), [(2, 1), (4, 10)]);
}

#[test]
fn invalid_utf8_rejects_only_its_record() {
    let mut bytes = b"a,b\n".to_vec();
    for i in 0..300 {
        let cell: &[u8] = if i % 100 == 50 { b"caf\xe9" } else { "café".as_bytes() };
        bytes.extend_from_slice(&[cell, b",1\n"].concat());
    }
    let source = read(&bytes, &dialect());
    let bad: Vec<_> =
        source.records.iter().filter(|seen| seen.reason() == Some(RejectReason::InvalidEncoding)).collect();
    assert_eq!(bad.iter().map(|seen| seen.place().0).collect::<Vec<_>>(), [52, 152, 252]);
    assert_eq!(source.rows().len(), 297);
    assert_eq!(messages(&source)[0], format!("found bytes that are not `UTF-8` at byte offset {}", 4 + 50 * 8 + 3));
}

#[test]
fn unreadable_header_is_an_error_with_its_line() {
    let open =
        |bytes: &[u8], dialect: &Dialect| read_as("x/in.csv", bytes, dialect, 1 << 20, 64).expect_err("no header");
    let error = open(b"\n\"a,b\n1,2\n", &dialect());
    assert_eq!(error.to_string(), "`x/in.csv` line 2: a quote in the header is never closed");
    let error = open(b"a,caf\xe9\n", &dialect());
    assert_eq!(error.to_string(), "`x/in.csv` line 1: the header is not valid `UTF-8` at byte offset 5");
    let error = open(b"a,b\r1,2\r3,4\r", &dialect());
    assert!(error.to_string().ends_with("set `record_terminator` to `cr`"), "{error}");
    let short = Dialect { record_bytes_max: 1_024, ..dialect() };
    for bytes in [vec![b'a'; 200_000], [vec![b'a'; 1_025], b"\n1\n".to_vec()].concat()] {
        assert!(matches!(open(&bytes, &short), ReadError::HeaderTooLong { line: 1, bytes_max: 1_024, .. }));
    }
    assert_eq!(read([vec![b'a'; 1_024], b"\r\n1\n".to_vec()].concat(), &short).rows(), ["1"]);
}

#[test]
fn oversize_records_are_rejected_at_any_chunk_boundary() {
    let dialect = Dialect { record_bytes_max: 1_024, ..dialect() };
    let long = |length| "x".repeat(length);
    let text = format!("a\n1\n{}\r\n{}\r\n\"{}\n\"\r\n2\n{}", long(1_024), long(1_025), long(100_000), long(5_000));
    let source = read(text, &dialect);
    let too_long = Some(RejectReason::RecordTooLong);
    assert_eq!(source.reasons(), [None, None, too_long, too_long, None, too_long]);
    assert_eq!(source.places()[2..], [(4, 1_030), (5, 2_057), (7, 102_062), (8, 102_064)]);
    assert_eq!(messages(&source)[0], "the record is longer than `record_bytes_max` (1024 bytes)");
}

#[test]
fn oversize_footers_are_rejected() {
    let dialect = Dialect { record_bytes_max: 1_024, skip_footer_rows: 2, ..dialect() };
    let source = read(format!("a\n1\n2\n{}\n3", "x".repeat(9_000)), &dialect);
    assert_eq!(source.rows(), ["1", "2"]);
    let source = read(format!("a\n{}\n2\n3", "x".repeat(9_000)), &dialect);
    assert_eq!(source.reasons(), [Some(RejectReason::RecordTooLong)]);
}
