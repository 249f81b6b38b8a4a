//! Shared helpers: a dialect, and reading a source to the end.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use crate::domain::limits::REJECT_RAW_BYTES_MAX;
use crate::domain::pipeline::Dialect;
use crate::domain::reject::RejectReason;
use crate::engine::read::buffer_pool::BufferPool;
use crate::engine::read::index::Indexer;
use crate::engine::read::reader::{Chunk, ReadError, SourceEnd, SourceReader};
use crate::engine::read::record_index::{RecordIndex, unescape};

pub fn dialect() -> Dialect {
    Dialect::default()
}

/// A record as the rest of the program would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Row { line: u64, offset: u64, cells: Vec<Option<String>> },
    Bad { line: u64, offset: u64, reason: RejectReason, message: String, raw: String },
}

impl Seen {
    pub fn place(&self) -> (u64, u64) {
        match self {
            Self::Row { line, offset, .. } | Self::Bad { line, offset, .. } => (*line, *offset),
        }
    }

    pub fn reason(&self) -> Option<RejectReason> {
        match self {
            Self::Row { .. } => None,
            Self::Bad { reason, .. } => Some(*reason),
        }
    }
}

#[derive(Debug)]
pub struct Source {
    pub header: Option<Vec<String>>,
    pub width: usize,
    pub records: Vec<Seen>,
    pub end: SourceEnd,
}

impl Source {
    /// The rows' cells, `-` for absent ones, joined with `|`.
    pub fn rows(&self) -> Vec<String> {
        let row = |seen: &Seen| match seen {
            Seen::Row { cells, .. } => {
                Some(cells.iter().map(|c| c.as_deref().unwrap_or("-")).collect::<Vec<_>>().join("|"))
            }
            Seen::Bad { .. } => None,
        };
        self.records.iter().filter_map(row).collect()
    }

    pub fn places(&self) -> Vec<(u64, u64)> {
        self.records.iter().map(Seen::place).collect()
    }

    pub fn reasons(&self) -> Vec<Option<RejectReason>> {
        self.records.iter().map(Seen::reason).collect()
    }
}

pub fn read(bytes: impl AsRef<[u8]>, dialect: &Dialect) -> Source {
    let source = read_as("in.csv", bytes.as_ref(), dialect, 1 << 20, 128 << 10).expect("it reads");
    for (chunk_bytes, block_bytes) in [(1, 1), (7, 3), (64, 1 << 20), (100, 64)] {
        let other = read_as("in.csv", bytes.as_ref(), dialect, chunk_bytes, block_bytes).expect("it reads");
        assert_eq!(other.records, source.records, "in chunks of {chunk_bytes}, blocks of {block_bytes}");
        assert_eq!((other.header, other.width, other.end), (source.header.clone(), source.width, source.end.clone()));
    }
    source
}

pub fn read_as(
    key: &str,
    bytes: &[u8],
    dialect: &Dialect,
    chunk_bytes: usize,
    block_bytes: usize,
) -> Result<Source, ReadError> {
    read_body(key, Box::new(Cursor::new(bytes.to_vec())), bytes.len() as u64, dialect, chunk_bytes, block_bytes)
}

pub fn read_body(
    key: &str,
    body: Box<dyn Read + Send>,
    size: u64,
    dialect: &Dialect,
    chunk_bytes: usize,
    block_bytes: usize,
) -> Result<Source, ReadError> {
    let buffers = Arc::new(BufferPool::new(2));
    let mut reader = SourceReader::open(key, body, size, dialect, chunk_bytes, &buffers)?;
    let header = reader.header().map(<[String]>::to_vec);
    let width = reader.width();
    let mut indexer = Indexer::new(dialect, width, dialect.ragged_rows);
    let mut records = Vec::new();
    let (mut counted, mut blank_lines) = (0, 0);
    while let Some(chunk) = reader.next()? {
        let (seen, bytes, blank) = index(&mut indexer, &chunk, block_bytes, dialect);
        records.extend(seen);
        counted += bytes;
        blank_lines += blank;
        buffers.put(chunk.text);
    }
    let end = reader.finish();
    let blank_lines = blank_lines + end.blank_lines;
    assert_eq!(counted + end.skipped_bytes, end.text_bytes, "bytes that belong to nothing");
    // The split of these counts between reader and chunks depends on chunk boundaries.
    let end = SourceEnd { skipped_bytes: 0, blank_lines, ..end };
    Ok(Source { header, width, records, end })
}

/// The records of a chunk, in order; the bytes of records and of the gaps between them; and the number of blank lines
/// that are not records.
pub fn index(indexer: &mut Indexer, chunk: &Chunk, block_bytes: usize, dialect: &Dialect) -> (Vec<Seen>, u64, u64) {
    let mut out = RecordIndex::default();
    let mut records = Vec::new();
    let (mut counted, mut blank_lines) = (0, 0);
    let mut pos = 0;
    while indexer.next_block(chunk, &mut pos, block_bytes, &mut out) {
        counted += out.counted_bytes;
        blank_lines += out.blank_lines;
        let from = records.len();
        for row in 0..out.rows() {
            let start = out.records[row].0 as usize;
            let cells = (0..out.width).map(|column| text(chunk, &out, row, column, dialect)).collect();
            records.push(Seen::Row { line: chunk.line_at(start), offset: chunk.offset_at(start), cells });
        }
        assert!(out.malformed.is_sorted_by_key(|malformed| malformed.start));
        for bad in &out.malformed {
            let start = bad.start as usize;
            let end = (bad.end as usize).min(start + REJECT_RAW_BYTES_MAX);
            records.push(Seen::Bad {
                line: chunk.line_at(start),
                offset: chunk.offset_at(start),
                reason: bad.reason,
                message: bad.message.clone(),
                raw: String::from_utf8_lossy(&chunk.text[start..end]).into_owned(),
            });
        }
        records[from..].sort_by_key(|seen| seen.place().1);
    }
    assert_eq!(pos, chunk.text.len());
    counted += chunk.oversize.iter().map(|bad| bad.length_with_terminator).sum::<u64>();
    records.extend(chunk.oversize.iter().map(|bad| Seen::Bad {
        line: bad.line,
        offset: bad.offset,
        reason: bad.reason,
        message: bad.message.clone(),
        raw: String::from_utf8_lossy(&bad.raw).into_owned(),
    }));
    (records, counted, blank_lines)
}

fn text(chunk: &Chunk, out: &RecordIndex, row: usize, column: usize, dialect: &Dialect) -> Option<String> {
    let field = out.field(row, column);
    if field.is_absent() {
        return None;
    }
    let content = &chunk.text[field.range()];
    let mut text = Vec::new();
    if field.is_escaped() {
        unescape(content, dialect, &mut text);
    } else {
        text.extend_from_slice(content);
    }
    Some(String::from_utf8(text).expect("a good record is UTF-8"))
}

/// Yields its bytes a few at a time, then fails if configured to.
pub struct SlowReader {
    pub bytes: Vec<u8>,
    pub at: usize,
    pub step: usize,
    pub error: Option<io::Error>,
}

impl Read for SlowReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.len() - self.at;
        if left == 0 {
            return self.error.take().map_or(Ok(0), Err);
        }
        let read = left.min(self.step).min(out.len());
        out[..read].copy_from_slice(&self.bytes[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}
