//! Compares all ways of reading with the exact machine, and the machine with the `csv` crate.

use std::io::Cursor;
use std::sync::Arc;

use super::buffer_pool::BufferPool;
use super::chunk::Chunk;
use super::error::ReadError;
use super::index::Indexer;
use super::machine::Machine;
use super::reader::SourceReader;
use super::record_index::RecordIndex;
use super::record_index::unescape;
use super::records::{self, walk};
use super::scan::Scanner;
use super::split::Splitter;
use crate::domain::pipeline::{BlankLines, Dialect, Quotes, RaggedRows, RecordTerminator};
use crate::domain::reject::RejectReason;

/// Records compared with the `csv` crate; each needs its own reader.
const RECORDS_MAX: usize = 50;
const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe"];

/// A record's location, and its cells or reject reason.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckedRecord {
    line: u64,
    offset: u64,
    cells: Result<Vec<Option<Vec<u8>>>, RejectReason>,
}

/// The first three bytes choose a dialect and sizes; the rest is the source.
pub fn tokeniser(input: &[u8]) {
    let Some((&[form, rules, sizes], text)) = input.split_first_chunk() else { return };
    let dialect = dialect(form, rules);
    let first = first_width(&dialect, text);
    let width = if rules & 0x80 == 0 { first.max(1) } else { usize::from(sizes & 7) + 1 };
    agree_with_the_csv_crate(&dialect, text);

    let expected = expected(&dialect, text, width);
    let machine = Machine::new(&dialect);
    let scanner = Scanner::new(&machine);
    let chunk = Chunk::from_text(text.to_vec());
    let block_bytes = 1 + usize::from(sizes) * 3;
    for (scanner, block_bytes) in
        [(scanner, block_bytes), (scanner, 1 << 20), (scanner.map(Scanner::portable), block_bytes), (None, 1 << 20)]
    {
        let mut indexer = Indexer::new(&dialect, width, dialect.ragged_rows).with_scanner(scanner);
        let mut found = Vec::new();
        index(&mut indexer, &chunk, block_bytes, &dialect, &mut found);
        // A chunk made from text counts lines by LF.
        let lines_fit = dialect.record_terminator == RecordTerminator::Auto;
        let places = |all: &[CheckedRecord]| -> Vec<CheckedRecord> {
            all.iter()
                .map(|seen| CheckedRecord { line: if lines_fit { seen.line } else { 0 }, ..seen.clone() })
                .collect()
        };
        assert_eq!(places(&found), places(&expected), "{dialect:?}, width {width}, blocks of {block_bytes}");
    }

    let splitter = Splitter::new(machine);
    assert_eq!(splitter.last_boundary(text), splitter.clone().exact().last_boundary(text), "{dialect:?}");
    agree_in_chunks(&dialect, text, 1 + usize::from(sizes), block_bytes);
}

fn dialect(form: u8, rules: u8) -> Dialect {
    let delimiter: &[u8] = [&b","[..], b";", b"\t", b"::"][usize::from(form & 3)];
    Dialect {
        delimiter: delimiter.to_vec(),
        quote: [Some(b'"'), Some(b'"'), Some(b'\''), None][usize::from(form >> 2 & 3)],
        escape: (form >> 4 & 3 == 3).then_some(b'\\'),
        comment: (form >> 6 == 3).then_some(b'#'),
        quotes: if rules & 1 == 0 { Quotes::Strict } else { Quotes::Lenient },
        ragged_rows: if rules & 2 == 0 { RaggedRows::Reject } else { RaggedRows::Pad },
        blank_lines: [BlankLines::Skip, BlankLines::Null, BlankLines::Skip, BlankLines::Reject]
            [usize::from(form >> 4 & 3)],
        record_terminator: if rules & 12 == 12 { RecordTerminator::Cr } else { RecordTerminator::Auto },
        record_bytes_max: if rules & 0x70 == 0x70 { 20 } else { 1 << 20 },
        header: false,
        ..Dialect::default()
    }
}

/// Cells of the first record that isn't too long.
fn first_width(dialect: &Dialect, text: &[u8]) -> usize {
    let mut width = 0;
    walk(dialect, text, true, |record| {
        let fits = (record.end - record.start) as u64 <= dialect.record_bytes_max;
        width = if fits { record.fields.len() } else { 0 };
        !fits
    });
    width
}

/// The expected result for each record found by the exact machine.
fn expected(dialect: &Dialect, text: &[u8], width: usize) -> Vec<CheckedRecord> {
    let mut all = Vec::new();
    let newline = records::newline_of(dialect);
    walk(dialect, text, true, |record| {
        let padded = dialect.ragged_rows == RaggedRows::Pad;
        let cells = if record.end == record.start && dialect.blank_lines == BlankLines::Null {
            Ok(vec![None; width])
        } else if record.end == record.start {
            Err(RejectReason::BlankLine)
        } else if record.unclosed {
            Err(RejectReason::UnclosedQuote)
        } else if (record.end - record.start) as u64 > dialect.record_bytes_max {
            Err(RejectReason::RecordTooLong)
        } else if record.stray && dialect.quotes == Quotes::Strict {
            Err(RejectReason::StrayQuote)
        } else if record.fields.len() != width && !padded {
            Err(RejectReason::RaggedRow)
        } else if std::str::from_utf8(&text[record.start..record.end]).is_err() {
            Err(RejectReason::InvalidEncoding)
        } else {
            let mut cells: Vec<Option<Vec<u8>>> =
                record.fields.iter().map(|field| cell(text, *field, dialect)).collect();
            cells.resize(width, None);
            Ok(cells)
        };
        let line = 1 + text[..record.start].iter().filter(|byte| **byte == newline).count() as u64;
        all.push(CheckedRecord { line, offset: record.start as u64, cells });
        true
    });
    all
}

fn cell(text: &[u8], field: super::record_index::FieldRange, dialect: &Dialect) -> Option<Vec<u8>> {
    if field.is_absent() {
        return None;
    }
    let content = &text[field.range()];
    let mut out = Vec::new();
    if field.is_escaped() {
        unescape(content, dialect, &mut out)
    } else {
        out.extend_from_slice(content)
    }
    Some(out)
}

/// Adds the records of a chunk to `all`. Returns the bytes of records and gaps.
fn index(
    indexer: &mut Indexer,
    chunk: &Chunk,
    block_bytes: usize,
    dialect: &Dialect,
    all: &mut Vec<CheckedRecord>,
) -> u64 {
    let mut out = RecordIndex::default();
    let mut pos = 0;
    let mut counted = 0;
    while indexer.next_block(chunk, &mut pos, block_bytes, &mut out) {
        counted += out.counted_bytes;
        let from = all.len();
        let place = |start: u32| (chunk.line_at(start as usize), chunk.offset_at(start as usize));
        for (row, (start, _)) in out.records.iter().enumerate() {
            let (line, offset) = place(*start);
            let cells = (0..out.width).map(|column| cell(&chunk.text, out.field(row, column), dialect)).collect();
            all.push(CheckedRecord { line, offset, cells: Ok(cells) });
        }
        assert!(out.malformed.is_sorted_by_key(|bad| bad.start));
        for bad in &out.malformed {
            let (line, offset) = place(bad.start);
            all.push(CheckedRecord { line, offset, cells: Err(bad.reason) });
        }
        all[from..].sort_by_key(|seen| seen.offset);
    }
    assert_eq!(pos, chunk.text.len());
    all.extend(chunk.oversize.iter().map(|bad| CheckedRecord {
        line: bad.line,
        offset: bad.offset,
        cells: Err(bad.reason),
    }));
    counted + chunk.oversize.iter().map(|bad| bad.length_with_terminator).sum::<u64>()
}

/// Reads a source as a run does. Sources that begin with a byte order mark or the magic bytes of another format are
/// excluded.
fn agree_in_chunks(dialect: &Dialect, text: &[u8], chunk_bytes: usize, block_bytes: usize) {
    if MARKS.iter().any(|mark| text.starts_with(mark)) {
        return;
    }
    let body = Box::new(Cursor::new(text.to_vec()));
    let buffers = Arc::new(BufferPool::new(2));
    let mut reader = match SourceReader::open("in.csv", body, text.len() as u64, dialect, chunk_bytes, &buffers) {
        Ok(reader) => reader,
        Err(ReadError::WrongMagic { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(reader.width(), first_width(dialect, text));
    let mut indexer = Indexer::new(dialect, reader.width(), dialect.ragged_rows);
    let mut found = Vec::new();
    let mut counted = 0;
    while let Some(chunk) = reader.next().expect("it is in memory") {
        counted += index(&mut indexer, &chunk, block_bytes, dialect, &mut found);
        buffers.put(chunk.text);
    }
    assert_eq!(found, expected(dialect, text, reader.width()), "{dialect:?}, chunks of {chunk_bytes}");
    let end = reader.finish();
    assert_eq!((end.bytes, end.text_bytes), (text.len() as u64, text.len() as u64));
    assert_eq!(counted + end.skipped_bytes, end.text_bytes, "bytes that belong to nothing");
}

/// Compares each record of the exact machine with the record that the crate finds at its start.
///
/// Excludes differences: delimiters of several bytes, which the crate lacks; records with unclosed quotes, which are
/// rejected here; blank lines, which the crate skips; and a byte order mark, which the crate drops.
fn agree_with_the_csv_crate(dialect: &Dialect, text: &[u8]) {
    let [delimiter] = dialect.delimiter[..] else { return };
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).buffer_capacity(256).delimiter(delimiter);
    builder.terminator(csv::Terminator::Any(records::newline_of(dialect)));
    builder.double_quote(dialect.escape.is_none()).escape(dialect.escape).comment(dialect.comment);
    builder.quoting(dialect.quote.is_some()).quote(dialect.quote.unwrap_or(b'"'));
    let mut count = 0;
    walk(dialect, text, true, |record| {
        count += 1;
        let blank = record.start == record.end;
        if blank || record.unclosed || text[record.start..].starts_with(MARKS[0]) {
            return count < RECORDS_MAX;
        }
        let mut reader = builder.from_reader(&text[record.start..]);
        let mut theirs = csv::ByteRecord::new();
        assert!(reader.read_byte_record(&mut theirs).expect("it is in memory"), "the crate finds no record");
        assert_eq!(reader.position().byte() as usize, record.next - record.start, "{dialect:?}");
        let mut theirs: Vec<Vec<u8>> = theirs.iter().map(<[u8]>::to_vec).collect();
        // The CR of CR LF is not part of a cell here.
        if record.next - record.end == 2
            && let Some(last) = theirs.last_mut()
        {
            assert_eq!(last.pop(), Some(b'\r'));
        }
        let ours: Vec<Vec<u8>> = record.fields.iter().filter_map(|field| cell(text, *field, dialect)).collect();
        assert_eq!(ours, theirs, "{dialect:?}");
        count < RECORDS_MAX
    });
}
