//! Sources that are not UTF-8: text, lines and byte offsets.

use encoding_rs::{Encoding, SHIFT_JIS, WINDOWS_1252};

use super::support::{Seen, dialect, read, read_as};
use crate::domain::pipeline::{Dialect, RecordTerminator};
use crate::domain::reject::RejectReason;
use crate::engine::read::reader::ReadError;

fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
    let unit = |unit: u16| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
    format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect()
}

fn encoded(label: &str) -> Dialect {
    Dialect { encoding: Encoding::for_label(label.as_bytes()).expect("a label"), ..dialect() }
}

#[test]
fn utf16_mark_overrides_any_label() {
    for big_endian in [false, true] {
        for dialect in [dialect(), encoded("latin1"), encoded("utf-16le")] {
            let bytes = utf16("a,é\r\n1,\"x\n😀\"\r\nß,東\n", big_endian);
            let source = read(&bytes, &dialect);
            assert_eq!(source.header, Some(vec!["a".to_owned(), "é".to_owned()]));
            assert_eq!(source.rows(), ["1|x\n😀", "ß|東"]);
            assert_eq!(source.places(), [(2, 12), (4, 12 + 20)]);
        }
    }
}

#[test]
fn utf16_without_mark_is_read_by_label() {
    let bytes = &utf16("a\n1\n2\n", true)[2..];
    let source = read(bytes, &encoded("utf-16be"));
    assert_eq!((source.rows(), source.places()), (vec!["1".into(), "2".into()], vec![(2, 4), (3, 8)]));
}

#[test]
fn utf8_mark_overrides_the_label() {
    assert_eq!(read("\u{feff}a\né\n", &encoded("latin1")).rows(), ["é"]);
}

#[test]
fn latin1_offsets_count_source_bytes() {
    let source = read(b"na\xefve,b\ncaf\xe9,\x80\n\xdf,2\n", &encoded("latin1"));
    assert_eq!(source.header, Some(vec!["naïve".to_owned(), "b".to_owned()]));
    assert_eq!(source.rows(), ["café|€", "ß|2"]);
    assert_eq!(source.places(), [(2, 8), (3, 15)]);
}

#[test]
fn shift_jis_offsets_count_source_bytes() {
    let text = "名前,数\n東京\u{ff71},\"1\n表\"\nｱ,2\n大阪,3\n";
    let (bytes, _, _) = SHIFT_JIS.encode(text);
    let source = read(&bytes, &encoded("shift_jis"));
    assert_eq!(source.rows(), ["東京ｱ|1\n表", "ｱ|2", "大阪|3"]);
    assert_eq!(source.places(), [(2, 8), (4, 8 + 6 + 7), (5, 25)]);
}

#[test]
fn offsets_are_exact_in_long_sources_of_every_encoding() {
    for label in ["windows-1252", "utf-16le", "shift_jis", "gb18030", "euc-jp", "iso-2022-jp", "big5"] {
        let cell = if label == "windows-1252" { "é" } else { "東" };
        let dialect = encoded(label);
        let row = |i: usize| format!("{i},\"{}\n\"\"\"\n", cell.repeat(i % 40));
        let encode = |text: &str| match label {
            "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            _ => dialect.encoding.encode(text).0.into_owned(),
        };
        let mut bytes = encode("a,b\n");
        let mut places = Vec::new();
        for i in 0..3_000 {
            places.push((2 + 2 * i as u64, bytes.len() as u64));
            bytes.extend(encode(&row(i)));
        }
        for chunk_bytes in [300, 10_000, 1 << 20] {
            let source = read_as("in.csv", &bytes, &dialect, chunk_bytes, 1 << 14).expect("it reads");
            assert_eq!(source.places(), places, "{label}");
            assert_eq!(source.rows()[41], format!("41|{cell}\n\""), "{label}");
        }
    }
}

#[test]
fn malformed_sequences_reject_only_their_record() {
    let source = read(b"a,b\n\x93\x8c,1\n\x93\n\x81\x20,2\n3,4\n\x93", &encoded("shift_jis"));
    let invalid = Some(RejectReason::InvalidEncoding);
    let ragged = Some(RejectReason::RaggedRow);
    assert_eq!(source.reasons(), [None, ragged, invalid, None, ragged]);
    assert_eq!(source.places(), [(2, 4), (3, 9), (4, 11), (5, 16), (6, 20)]);
    let Seen::Bad { message, .. } = &source.records[2] else { panic!("a reject") };
    assert_eq!(message, "found bytes that are not `Shift_JIS` at byte offset 11");
}

#[test]
fn lone_surrogates_and_half_units_reject_only_their_record() {
    let mut bytes = utf16("a\n1\nX\n2\nY", false);
    let surrogate = 2 + 2 * 4;
    bytes[surrogate..surrogate + 2].copy_from_slice(&0xd800u16.to_le_bytes());
    bytes.push(b'!');
    let source = read(&bytes, &dialect());
    let invalid = Some(RejectReason::InvalidEncoding);
    assert_eq!(source.reasons(), [None, invalid, None, invalid]);
    assert_eq!(source.places(), [(2, 6), (3, 10), (4, 14), (5, 18)]);
}

#[test]
fn transcoded_lines_may_end_in_cr() {
    let dialect = Dialect { record_terminator: RecordTerminator::Cr, ..encoded("shift_jis") };
    let source = read(b"a\r\x93\x8c\r2\r", &dialect);
    assert_eq!((source.rows(), source.places()), (vec!["東".into(), "2".into()], vec![(2, 2), (3, 5)]));
}

#[test]
fn header_with_malformed_sequence_is_an_error() {
    let error = read_as("in.csv", b"a,\x93\n1,2\n", &encoded("shift_jis"), 64, 64).expect_err("no header");
    assert!(matches!(error, ReadError::HeaderEncoding { line: 1, offset: 2, encoding: "Shift_JIS", .. }), "{error}");
}

#[test]
fn replacement_encoding_is_refused() {
    let error = read_as("in.csv", b"a\n", &encoded("iso-2022-kr"), 64, 64).expect_err("no text");
    assert!(matches!(error, ReadError::Undecodable { .. }), "{error}");
    assert_eq!(read(b"a\n\xe4\n", &Dialect { encoding: WINDOWS_1252, ..dialect() }).rows(), ["ä"]);
}
