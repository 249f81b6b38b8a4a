//! The object as a stream: compression, damage, bombs, failing stores, and records of any size in little memory.

use std::io::{self, Read, Write};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::support::{Seen, SlowReader, Source, dialect, index, read_as, read_body};
use crate::domain::digest::sha256_hex;
use crate::domain::limits::{INFLATE_FREE_BYTES, REJECT_RAW_BYTES_MAX};
use crate::domain::pipeline::Dialect;
use crate::domain::reject::RejectReason;
use crate::engine::read::buffer_pool::BufferPool;
use crate::engine::read::index::Indexer;
use crate::engine::read::reader::{ReadError, SourceEnd, SourceReader};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("it compresses");
    encoder.finish().expect("it compresses")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("it compresses");
    encoder.include_checksum(true).expect("it compresses");
    encoder.write_all(bytes).expect("it compresses");
    encoder.finish().expect("it compresses")
}

fn noise(rows: u64) -> Vec<u8> {
    let row = |i: u64| format!("{i},{:x}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ["a,b\n".to_owned()].into_iter().chain((0..rows).map(row)).collect::<String>().into_bytes()
}

fn read_key(key: &str, bytes: &[u8]) -> Result<Source, ReadError> {
    read_as(key, bytes, &dialect(), 10_000, 4_096)
}

#[test]
fn compressed_sources_read_like_plain_ones_and_hash_as_stored() {
    let plain = noise(5_000);
    let (first, second) = plain.split_at(20_011);
    let stored = [
        ("in.csv", plain.clone()),
        ("in.csv.gz", gzip(&plain)),
        ("IN.CSV.GZ", [gzip(first), gzip(b""), gzip(second)].concat()),
        ("in.csv.zst", zstd(&plain)),
        ("in.csv.zst", [zstd(first), zstd(second)].concat()),
    ];
    let expected = read_key("in.csv", &plain).expect("it reads");
    for (key, bytes) in stored {
        for step in [1, 1_000, 1 << 20] {
            let body = Box::new(SlowReader { bytes: bytes.clone(), at: 0, step, error: None });
            let source = read_body(key, body, bytes.len() as u64, &dialect(), 10_000, 4_096).expect("it reads");
            assert_eq!(source.records, expected.records, "{key}");
            assert_eq!(source.end.sha256, sha256_hex(&bytes), "{key}");
            assert_eq!((source.end.stored_bytes, source.end.bytes), (bytes.len() as u64, plain.len() as u64), "{key}");
        }
    }
    assert_eq!(expected.records.len(), 5_000);
}

#[test]
fn sources_read_in_pairs_equal_sources_read_alone() {
    let utf16 = |text: &str| [vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    let sources: [(&str, Vec<u8>); 7] = [
        ("in.csv", Vec::new()),
        ("in.csv", noise(0)),
        ("in.csv", noise(400)),
        ("in.csv", [b"\xef\xbb\xbf".to_vec(), noise(450)].concat()),
        ("in.csv", noise(5_000)),
        ("in.csv", utf16("a,b\n1,\u{fc}\n")),
        ("in.csv.gz", gzip(&noise(500))),
    ];
    let dialect = dialect();
    let open = |(key, bytes): &(&str, Vec<u8>), buffers: &Arc<BufferPool>| {
        let body = Box::new(SlowReader { bytes: bytes.clone(), at: 0, step: 1_000, error: None });
        SourceReader::open(key, body, bytes.len() as u64, &dialect, 10_000, buffers).expect("it opens")
    };
    let rest = |mut reader: SourceReader, buffers: &BufferPool| {
        let mut indexer = Indexer::new(&dialect, reader.width(), dialect.ragged_rows);
        let (mut records, mut chunks) = (Vec::new(), 0);
        while let Some(chunk) = reader.next().expect("it reads") {
            records.extend(index(&mut indexer, &chunk, 4_096, &dialect).0);
            buffers.put(chunk.text);
            chunks += 1;
        }
        // Blank lines are counted by the code that reads them: the reader or the indexer.
        let end = reader.finish();
        (records, chunks, SourceEnd { skipped_bytes: 0, blank_lines: 0, ..end })
    };
    for first in &sources {
        for second in &sources {
            let buffers = Arc::new(BufferPool::new(2));
            let mut readers = [open(first, &buffers), open(second, &buffers)];
            readers.iter_mut().for_each(|reader| reader.read_ahead().expect("it reads"));
            let [mut one, mut other] = readers;
            one.hash_both(&mut other);
            for (reader, source) in [(one, first), (other, second)] {
                let (records, chunks, end) = rest(reader, &buffers);
                let alone = read_key(source.0, &source.1).expect("it reads");
                let expected = SourceEnd { blank_lines: 0, ..alone.end };
                assert_eq!((records, &end), (alone.records, &expected));
                assert_eq!(end.sha256, sha256_hex(&source.1));
                if (10_000..15_000).contains(&source.1.len()) {
                    assert_eq!(chunks, 1, "{} bytes", source.1.len());
                }
            }
        }
    }
}

#[test]
fn truncated_stream_reports_key_and_offset() {
    let plain = noise(50_000);
    for (key, bytes) in [("in.csv.gz", gzip(&plain)), ("in.csv.zst", zstd(&plain))] {
        for kept in [bytes.len() / 2, bytes.len() - 1, bytes.len() - 3, 7] {
            let error = read_key(key, &bytes[..kept]).expect_err("it is cut");
            assert!(matches!(&error, ReadError::Truncated { key: k, .. } if k == key), "{kept}: {error}");
        }
        let error = read_key(key, &bytes[..bytes.len() / 2]).expect_err("it is cut");
        let ReadError::Truncated { offset, .. } = error else { panic!("{error}") };
        assert!(offset > 100_000 && offset < plain.len() as u64, "{offset}");
    }
}

#[test]
fn damaged_stream_is_never_read_as_data() {
    let plain = noise(50_000);
    let mut bytes = gzip(&plain);
    let checksum = bytes.len() - 6;
    bytes[checksum] ^= 1;
    let error = read_key("in.csv.gz", &bytes).expect_err("its checksum is wrong");
    assert!(matches!(error, ReadError::Corrupt { format: "gzip", .. }), "{error}");
    let mut bytes = zstd(&plain);
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    let error = read_key("in.csv.zst", &bytes).expect_err("it is damaged");
    assert!(matches!(error, ReadError::Corrupt { format: "zstd", .. }), "{error}");
    let error = read_key("in.csv.gz", &[gzip(&plain), b"some garbage that follows".to_vec()].concat())
        .expect_err("garbage follows");
    assert!(matches!(error, ReadError::Corrupt { offset, .. } if offset == plain.len() as u64), "{error}");
}

#[test]
fn mismatch_of_extension_and_content_is_an_error() {
    let plain = noise(3);
    for (key, bytes, text) in [
        ("in.csv", gzip(&plain), "`in.csv`: expected uncompressed text by its extension, found gzip data"),
        ("in.csv", zstd(&plain), "`in.csv`: expected uncompressed text by its extension, found zstd data"),
        ("in.csv.gz", plain.clone(), "`in.csv.gz`: expected gzip data by its extension, found other bytes"),
        ("in.csv.gz", zstd(&plain), "`in.csv.gz`: expected gzip data by its extension, found zstd data"),
        ("in.csv.zst", vec![], "`in.csv.zst`: expected zstd data by its extension, found an empty object"),
        (
            "in.csv",
            b"PK\x03\x04rest".to_vec(),
            "`in.csv`: expected uncompressed text by its extension, found a zip archive",
        ),
    ] {
        assert_eq!(read_key(key, &bytes).expect_err("it disagrees").to_string(), text);
    }
}

#[test]
fn decompression_bomb_is_stopped_at_the_ratio() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("it compresses");
    io::copy(&mut io::repeat(b'\n').take(2 * INFLATE_FREE_BYTES), &mut encoder).expect("it compresses");
    let bytes = encoder.finish().expect("it compresses");
    let error = read_as("in.csv.zst", &bytes, &dialect(), 1 << 20, 1 << 20).expect_err("it is a bomb");
    let ReadError::InflatesTooMuch { offset, stored, .. } = error else { panic!("{error}") };
    assert!(offset <= INFLATE_FREE_BYTES + (4 << 20), "{offset}");
    assert_eq!(stored, bytes.len() as u64);
}

#[test]
fn store_error_is_preserved() {
    #[derive(Debug, thiserror::Error)]
    #[error("the object changed")]
    struct Changed;
    let plain = noise(50_000);
    for (key, bytes) in [("in.csv", plain.clone()), ("in.csv.gz", gzip(&plain)), ("in.csv.zst", zstd(&plain))] {
        for kind in [io::ErrorKind::UnexpectedEof, io::ErrorKind::Other] {
            let half = bytes[..bytes.len() / 2].to_vec();
            let body = SlowReader { bytes: half, at: 0, step: 4_096, error: Some(io::Error::new(kind, Changed)) };
            let error = read_body(key, Box::new(body), bytes.len() as u64, &dialect(), 10_000, 4_096);
            let Err(ReadError::Io { source, .. }) = error else { panic!("{key}: {error:?}") };
            assert!(source.get_ref().is_some_and(|inner| inner.is::<Changed>()), "{key}");
        }
    }
}

/// Yields `head`, then `length` bytes of `fill`, then `tail`, without holding them in memory.
fn long_body(head: &'static str, fill: u8, length: u64, tail: &'static str) -> Box<dyn Read + Send> {
    Box::new(head.as_bytes().chain(io::repeat(fill).take(length)).chain(tail.as_bytes()))
}

/// Reads to the end, checking that no chunk is ever large.
fn read_in_little_memory(body: Box<dyn Read + Send>, dialect: &Dialect) -> Vec<Seen> {
    let buffers = Arc::new(BufferPool::new(2));
    let mut reader = SourceReader::open("in.csv", body, 0, dialect, 256 << 10, &buffers).expect("it opens");
    let mut indexer = Indexer::new(dialect, reader.width(), dialect.ragged_rows);
    let mut records = Vec::new();
    while let Some(chunk) = reader.next().expect("it reads") {
        assert!(chunk.text.capacity() <= 5 << 20, "{}", chunk.text.capacity());
        records.extend(index(&mut indexer, &chunk, 128 << 10, dialect).0);
        buffers.put(chunk.text);
    }
    records
}

const MIB_200: u64 = 200 << 20;

#[test]
fn cell_of_200_mib_is_one_reject_and_reading_continues() {
    let records = read_in_little_memory(long_body("a,b\n1,2\n3,\"", b'\n', MIB_200, "\"\r\n5,6\n"), &dialect());
    assert_eq!(records.len(), 3);
    let Seen::Bad { line, offset, reason, raw, .. } = &records[1] else { panic!("a reject") };
    assert_eq!((*line, *offset, *reason), (3, 8, RejectReason::RecordTooLong));
    assert_eq!(raw.len(), REJECT_RAW_BYTES_MAX);
    assert_eq!(records[2].place(), (4 + MIB_200, 11 + MIB_200 + 3));
}

#[test]
fn unclosed_quote_is_reported_in_sources_of_any_length() {
    let records = read_in_little_memory(long_body("a,b\n1,2\n3,\"", b'x', MIB_200, "\n"), &dialect());
    assert_eq!(records.iter().map(Seen::reason).collect::<Vec<_>>(), [None, Some(RejectReason::UnclosedQuote)]);
    assert_eq!(records[1].place(), (3, 8));
}

#[test]
fn long_records_comments_and_preambles_are_skipped_in_bounded_memory() {
    let dialect = Dialect { header: false, comment: Some(b'#'), skip_rows: 1, ..dialect() };
    let records = read_in_little_memory(long_body("", b'p', MIB_200 / 8, "\n1,2\n"), &dialect);
    assert_eq!((records.len(), records[0].place()), (1, (2, MIB_200 / 8 + 1)));
    let records = read_in_little_memory(long_body("p\n#", b'"', MIB_200 / 8, "\n1,2\n"), &dialect);
    assert_eq!((records.len(), records[0].place()), (1, (3, MIB_200 / 8 + 4)));
    let records = read_in_little_memory(long_body("p\n1,2\n#", b'"', MIB_200 / 8, "\n3,4\n"), &dialect);
    assert_eq!((records.len(), records[1].place()), (2, (4, MIB_200 / 8 + 8)));
    let records = read_in_little_memory(long_body("p\n", b',', MIB_200 / 8, "\n1,2\n"), &dialect);
    assert_eq!(records.iter().map(Seen::reason).collect::<Vec<_>>(), [Some(RejectReason::RecordTooLong), None]);
}

#[test]
fn hash_covers_data_after_an_unclosed_quote() {
    let bytes = [b"a\n\"".to_vec(), vec![b'x'; 5 << 20]].concat();
    let source = read_key("in.csv", &bytes).expect("it reads");
    assert_eq!(source.end.sha256, sha256_hex(&bytes));
}

#[test]
fn oversize_record_excludes_its_terminator_at_any_read_boundary() {
    let dialect = Dialect { record_bytes_max: 1_024, ..dialect() };
    // At one of these lengths the CR is the last byte read when the record exceeds its limit.
    let before = "1\n".repeat(32_253);
    for length in 1_025..1_031 {
        let long = "x".repeat(length);
        let bytes = format!("a\n{before}{long}\r\n1\n\"{long}\"\r\n2").into_bytes();
        let body = Box::new(SlowReader { bytes, at: 0, step: 1, error: None });
        let records = read_body("in.csv", body, 0, &dialect, 1_024, 1_024).expect("it reads").records;
        let Seen::Bad { raw, .. } = &records[32_253] else { panic!("a reject") };
        assert!(*raw == long, "{length}: {}", raw.len());
        let Seen::Bad { raw, .. } = &records[32_255] else { panic!("a reject") };
        assert!(*raw == format!("\"{long}\""), "{length}: {}", raw.len());
    }
}
