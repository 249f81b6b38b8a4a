//! All fast paths agree with the exact machine, which agrees with the `csv` crate on well-formed input.

use proptest::prelude::*;

use super::support::{Seen, dialect, read, read_as};
use crate::domain::pipeline::{BlankLines, Dialect, Quotes, RaggedRows, RecordTerminator};
use crate::engine::read::index::Indexer;
use crate::engine::read::machine::Machine;
use crate::engine::read::reader::Chunk;
use crate::engine::read::record_index::RecordIndex;
use crate::engine::read::scan::Scanner;
use crate::engine::read::split::Splitter;

/// Texts of few distinct bytes, mostly structural ones, with enough plain bytes for blocks without a quote.
fn hard_text(length_max: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"a,\"\n\r;xx,,\n\xc3\xa9".to_vec());
    let stray = prop::collection::vec(byte, 0..length_max);
    let cell = prop::sample::select(vec![
        "",
        "a",
        "\"\"",
        "\"a,\n\"",
        "\"\"\"\"",
        "\"x\"\"y\"",
        "xxxxxxxxxxxxxxxx",
        "\"a\"x",
        "a\"b",
        "\"\r\n\"",
    ]);
    let end = prop::sample::select(vec![",", ",", ",", "\n", "\r\n", ";", "\r"]);
    let formed = prop::collection::vec((cell, end), 0..length_max / 4);
    let formed =
        formed.prop_map(|cells| cells.into_iter().flat_map(|(cell, end)| [cell, end]).collect::<String>().into_bytes());
    prop_oneof![stray, formed]
}

fn any_dialect() -> impl Strategy<Value = Dialect> {
    let quotes = prop::sample::select(vec![Quotes::Strict, Quotes::Lenient]);
    let terminator = prop::sample::select(vec![RecordTerminator::Auto, RecordTerminator::Auto, RecordTerminator::Cr]);
    let quote = prop::sample::select(vec![Some(b'"'), Some(b'"'), None]);
    let ragged = prop::sample::select(vec![RaggedRows::Reject, RaggedRows::Pad]);
    let delimiter = prop::sample::select(vec![b",".to_vec(), b";".to_vec()]);
    let record_bytes_max = prop::sample::select(vec![12u64, 2_000]);
    let blank_lines = prop::sample::select(vec![BlankLines::Skip, BlankLines::Null, BlankLines::Reject]);
    (quotes, terminator, quote, ragged, delimiter, record_bytes_max, blank_lines).prop_map(
        |(quotes, record_terminator, quote, ragged_rows, delimiter, record_bytes_max, blank_lines)| Dialect {
            quotes,
            record_terminator,
            quote,
            ragged_rows,
            delimiter,
            record_bytes_max,
            blank_lines,
            header: false,
            ..dialect()
        },
    )
}

/// All blocks of a text as one index.
fn index_all(mut indexer: Indexer, chunk: &Chunk, block_bytes: usize) -> RecordIndex {
    let mut all = RecordIndex::default();
    let mut out = RecordIndex::default();
    let mut pos = 0;
    while indexer.next_block(chunk, &mut pos, block_bytes, &mut out) {
        all.width = out.width;
        all.fields.append(&mut out.fields);
        all.records.append(&mut out.records);
        all.malformed.append(&mut out.malformed);
        all.counted_bytes += out.counted_bytes;
        all.blank_lines += out.blank_lines;
    }
    assert_eq!(pos, chunk.text.len());
    assert_eq!(all.counted_bytes, chunk.text.len() as u64);
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scan_indexes_like_the_exact_machine(
        text in hard_text(600), dialect in any_dialect(), width in 1usize..5, block_bytes in 1usize..900,
    ) {
        let chunk = Chunk::from_text(text);
        let indexer = || Indexer::new(&dialect, width, dialect.ragged_rows);
        let scanner = Scanner::new(&Machine::new(&dialect));
        prop_assert!(scanner.is_some());
        let exact = index_all(indexer().with_scanner(None), &chunk, 1 << 20);
        prop_assert_eq!(&index_all(indexer(), &chunk, block_bytes), &exact);
        let portable = indexer().with_scanner(scanner.map(Scanner::portable));
        prop_assert_eq!(&index_all(portable, &chunk, block_bytes), &exact);
    }

    #[test]
    fn scan_splits_like_the_exact_machine(text in hard_text(600), dialect in any_dialect()) {
        let splitter = Splitter::new(Machine::new(&dialect));
        prop_assert_eq!(splitter.last_boundary(&text), splitter.clone().exact().last_boundary(&text));
    }

    #[test]
    fn chunks_of_any_size_give_the_same_records(
        text in hard_text(300), dialect in any_dialect(), chunk_bytes in 1usize..400, footers in 0u64..4,
        footer_values in prop::sample::select(vec![None, Some(vec![]), Some(vec!["a"]), Some(vec!["x*", ""])]),
        skipped in (0u64..3, 0u64..3), header in any::<bool>(),
        escape in prop::sample::select(vec![None, Some(b'x')]), comment in prop::sample::select(vec![None, Some(b'a')]),
        delimiter in prop::sample::select(vec![",", ";", ",x", ",,", "é"]),
    ) {
        let delimiter = delimiter.as_bytes().to_vec();
        let (skip_rows, skip_rows_after_header) = (skipped.0, if header { skipped.1 } else { 0 });
        let footer_values = footer_values.map(|values| values.into_iter().map(str::to_owned).collect());
        let dialect = Dialect {
            skip_footer_rows: footers, footer_values, skip_rows, skip_rows_after_header, header, escape, comment, delimiter, ..dialect
        };
        // The header may be unreadable.
        let Ok(whole) = read_as("in.csv", &text, &dialect, 1 << 20, 1 << 20) else { return Ok(()) };
        let parts = read_as("in.csv", &text, &dialect, chunk_bytes, 64).expect("it reads");
        prop_assert_eq!(parts.records, whole.records);
        prop_assert_eq!(parts.width, whole.width);
        prop_assert_eq!(parts.end, whole.end);
    }

    #[test]
    fn well_formed_input_reads_like_the_csv_crate(
        rows in prop::collection::vec(prop::collection::vec("[a,\"\r\n; é]{0,6}", 3), 1..40),
        style in prop::sample::select(vec![csv::QuoteStyle::Always, csv::QuoteStyle::Necessary, csv::QuoteStyle::NonNumeric]),
        crlf in any::<bool>(), double_quote in any::<bool>(),
    ) {
        let mut writer = csv::WriterBuilder::new().quote_style(style).double_quote(double_quote).escape(b'\\')
            .terminator(if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') }).from_writer(Vec::new());
        for row in &rows {
            writer.write_record(row).expect("it writes");
        }
        let text = writer.into_inner().expect("it writes");
        let dialect = Dialect { header: false, escape: (!double_quote).then_some(b'\\'), ..dialect() };
        let read = read_as("in.csv", &text, &dialect, 50, 64).expect("it reads");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).double_quote(double_quote)
            .escape((!double_quote).then_some(b'\\')).from_reader(&text[..]);
        let mut theirs = Vec::new();
        for record in reader.records() {
            let record = record.expect("it reads");
            let position = record.position().expect("it has one");
            // After a CRLF the crate reports the position of the LF.
            let byte = position.byte() + u64::from(text[position.byte() as usize] == b'\n' && crlf);
            theirs.push((byte, record.iter().map(|c| Some(c.to_owned())).collect::<Vec<_>>()));
        }
        let ours: Vec<_> = read.records.into_iter().map(|seen| match seen {
            Seen::Row { offset, cells, .. } => (offset, cells),
            Seen::Bad { offset, message, .. } => (offset, vec![Some(message)]),
        }).collect();
        prop_assert_eq!(ours, theirs);
    }

    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn masks_are_the_same_with_and_without_simd(
        block in prop::array::uniform32(any::<u64>()), few in prop::collection::vec(prop::sample::select(b",\"\na".to_vec()), 64),
        quote in prop::sample::select(vec![Some(b'"'), None, Some(0xff)]),
    ) {
        use crate::engine::read::scan::{Masker, PortableMasks, Separators};
        let Some(simd) = crate::engine::simd::Simd::detect() else { return Ok(()) };
        let separators = Separators { delimiter: b',', newline: b'\n', quote, crlf: true };
        let mut bytes = [0u8; 64];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(block) {
            *place = word.to_le_bytes();
        }
        prop_assert_eq!(simd.masks(&bytes, &separators), PortableMasks.masks(&bytes, &separators));
        bytes.copy_from_slice(&few);
        prop_assert_eq!(simd.masks(&bytes, &separators), PortableMasks.masks(&bytes, &separators));
        prop_assert_eq!(simd.prefix_xor(block[0]), PortableMasks.prefix_xor(block[0]));
    }
}

#[test]
fn block_of_padded_short_rows_stays_bounded() {
    let chunk = Chunk::from_text(b"a\n".repeat(40_000));
    let dialect = Dialect { ragged_rows: RaggedRows::Pad, ..dialect() };
    let mut indexer = Indexer::new(&dialect, 4_096, RaggedRows::Pad);
    let (mut out, mut pos, mut rows) = (RecordIndex::default(), 0, 0);
    while indexer.next_block(&chunk, &mut pos, 128 << 10, &mut out) {
        assert!(out.fields.len() < 1_100_000);
        rows += out.rows();
    }
    assert_eq!(rows, 40_000);
}

#[test]
fn stray_quote_rejects_only_its_record() {
    let rows = (0..200).map(|i| if i == 77 { "a,b\"c,d\n".to_owned() } else { format!("\"{i},\n\",b,c\n") });
    let source = read(format!("x,y,z\n{}", rows.collect::<String>()), &dialect());
    assert_eq!(source.records.len(), 200);
    let bad: Vec<_> = source.records.iter().filter(|seen| seen.reason().is_some()).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!(bad[0].place().0, 2 + 77 * 2);
}
