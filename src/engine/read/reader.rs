//! Reads one source from end to end and cuts it into chunks of whole records.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::Arc;

pub use super::chunk::{Chunk, Oversize};
pub use super::error::ReadError;

use super::buffer_pool::BufferPool;
use super::decode::Decode;
use super::first_record::{self, LoneCr};
use super::footer::FooterCutter;
use super::inflate::{Inflate, is_compressed};
use super::machine::{Gap, Machine, NoCells, RecordEnd, RecordState, Step, newline};
use super::rules::{too_long_message, unclosed_message};
use super::sha256::Hash;
use super::split::Splitter;
use super::window::{FILL_BYTES_MAX, Window};
use crate::domain::limits::REJECT_RAW_BYTES_MAX;
use crate::domain::pipeline::{Dialect, RecordTerminator};
use crate::domain::reject::RejectReason;

/// Largest chunk, so that its positions fit a field's 30 bits.
const CHUNK_BYTES_MAX: usize = 256 << 20;
/// A record's terminator, by which the read text may exceed the record limit.
const TERMINATOR_BYTES_MAX: usize = 2;

/// The largest chunk for a target of `chunk_bytes`: a remainder of less than half of that is not worth another chunk.
pub fn whole_bytes_max(chunk_bytes: usize) -> usize {
    chunk_bytes.saturating_add(chunk_bytes / 2).min(CHUNK_BYTES_MAX)
}

/// The size of an uncompressed source that fits one chunk.
fn whole_bytes(key: &str, stored_size: u64, chunk_bytes: usize) -> Option<usize> {
    let size = usize::try_from(stored_size).ok()?;
    (size <= whole_bytes_max(chunk_bytes) && !is_compressed(key)).then_some(size)
}

/// Reads one source on one thread.
///
/// Holds about one chunk, or one record of up to `record_bytes_max`, besides returned chunks (and those of the footer,
/// if the dialect has one). Longer records are skipped in a stream and reported in `Chunk::oversize`.
pub struct SourceReader {
    key: String,
    dialect: Dialect,
    machine: Machine,
    splitter: Splitter,
    window: Window,
    chunk_bytes: usize,
    record_bytes_max: usize,
    header: Option<Vec<String>>,
    width: usize,
    footer: FooterCutter,
    ready: VecDeque<Chunk>,
    ended: bool,
    /// Text bytes outside rows: skipped lines and records, the header, comments and blank lines outside chunks.
    skipped_bytes: u64,
    /// Blank lines outside chunks.
    blank_lines: u64,
}

/// Facts that are known once the whole source is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceEnd {
    /// SHA-256 of the stored object, in hex.
    pub sha256: String,
    /// Bytes as stored.
    pub stored_bytes: u64,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Bytes of text after decoding: those skipped here and those that the indexer counts in the chunks.
    pub text_bytes: u64,
    /// Text bytes skipped by the reader: lines and records skipped by the config, the header, comments and blank lines
    /// outside chunks.
    pub skipped_bytes: u64,
    /// Blank lines among these.
    pub blank_lines: u64,
}

/// A skipped record or comment.
struct SkippedRecord {
    /// With the terminator.
    bytes: u64,
    /// The source ended within its quotes.
    unclosed: bool,
}

/// A record that is whole in the window, or too long.
enum FirstRecord {
    Whole(RecordEnd),
    TooLong,
}

impl SourceReader {
    /// Opens a body (as stored): decompresses by the key's extension, decodes, skips `skip_rows`, reads the header and
    /// skips `skip_rows_after_header`.
    ///
    /// `stored_size` bounds the inflated size; chunks have about `chunk_bytes` of text (1 to 256 MiB), in reused
    /// `buffers` if available. A source that is only slightly larger is one chunk.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn open(
        key: &str,
        body: Box<dyn Read + Send>,
        stored_size: u64,
        dialect: &Dialect,
        chunk_bytes: usize,
        buffers: &Arc<BufferPool>,
    ) -> Result<Self, ReadError> {
        Self::with_inflate(Inflate::open(key, body, stored_size)?, dialect, chunk_bytes, buffers)
    }

    /// Like [`Self::open`], for an already opened body.
    pub(super) fn with_inflate(
        inflate: Inflate,
        dialect: &Dialect,
        chunk_bytes: usize,
        buffers: &Arc<BufferPool>,
    ) -> Result<Self, ReadError> {
        let newline = newline(dialect);
        let key = inflate.key().to_owned();
        let chunk_bytes = match whole_bytes(&key, inflate.stored_size(), chunk_bytes) {
            // Sources of similar size get buffers of the same size.
            Some(size) => size.next_multiple_of(FILL_BYTES_MAX).min(whole_bytes_max(chunk_bytes)).max(chunk_bytes),
            None => chunk_bytes,
        };
        let decode = Decode::open(inflate, dialect.encoding, newline)?;
        let machine = Machine::new(dialect);
        let mut reader = Self {
            key,
            dialect: dialect.clone(),
            splitter: Splitter::new(machine.clone()),
            machine,
            window: Window::new(decode, newline, Arc::clone(buffers)),
            chunk_bytes: chunk_bytes.clamp(1, CHUNK_BYTES_MAX),
            record_bytes_max: usize::try_from(dialect.record_bytes_max).unwrap_or(CHUNK_BYTES_MAX).min(CHUNK_BYTES_MAX),
            header: None,
            width: 0,
            footer: FooterCutter::new(dialect),
            ready: VecDeque::new(),
            ended: false,
            skipped_bytes: 0,
            blank_lines: 0,
        };
        reader.skip_lines(dialect.skip_rows)?;
        if dialect.header {
            let header = reader.read_header()?;
            reader.width = header.len();
            reader.header = Some(header);
        }
        for _ in 0..dialect.skip_rows_after_header {
            if !reader.reach_record()? {
                break;
            }
            reader.skip_record()?;
        }
        if !dialect.header {
            reader.width = reader.first_width()?;
        }
        Ok(reader)
    }

    /// Whether hashing two such sources in parallel is faster, by [`Self::read_ahead`] and [`Self::hash_both`], with
    /// chunks of about `chunk_bytes`.
    pub fn is_faster_in_pairs(key: &str, stored_size: u64, chunk_bytes: usize) -> bool {
        whole_bytes(key, stored_size, chunk_bytes).is_some() && Hash::is_faster_in_pairs()
    }

    /// Reads the data of the next chunk without hashing it; [`Self::hash_both`] or [`Self::next`] hashes it.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read_ahead(&mut self) -> Result<(), ReadError> {
        self.window.hash_later();
        self.window.fill(self.chunk_bytes)
    }

    /// Hashes the data read ahead of two sources.
    pub fn hash_both(&mut self, other: &mut Self) {
        self.window.hash_both(&mut other.window);
    }

    /// The header's cells, unescaped and trimmed; `None` with `header: false`; empty for an empty source.
    pub fn header(&self) -> Option<&[String]> {
        self.header.as_deref()
    }

    /// Cells per record: those of the header, or with `header: false` those of the first record that isn't too long; 0
    /// if there is none.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether the source has no text, except for a byte order mark.
    pub fn is_empty(&self) -> bool {
        self.window.ended() && self.window.decoded() == 0
    }

    /// The encoding in use: that of the byte order mark, otherwise the dialect's.
    pub fn encoding(&self) -> &'static str {
        self.window.decode().encoding().name()
    }

    /// Stored bytes read so far.
    pub fn stored_bytes(&self) -> u64 {
        self.window.decode().inflate().stored().bytes()
    }

    /// The next chunk of whole records; `None` once the object is read.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[expect(clippy::should_implement_trait, reason = "reading ends after an error, which `Iterator` doesn't express")]
    pub fn next(&mut self) -> Result<Option<Chunk>, ReadError> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            if self.ended {
                return Ok(None);
            }
            match self.cut()? {
                Some(chunk) => {
                    self.footer.push(&self.machine, chunk);
                    while let Some(chunk) = self.footer.pop() {
                        self.ready.push_back(chunk);
                    }
                }
                None => {
                    self.ended = true;
                    let (ready, cut) = self.footer.finish(&self.machine);
                    self.ready = ready;
                    self.skipped_bytes += cut.bytes;
                    self.blank_lines += cut.blank_lines;
                }
            }
        }
    }

    /// The totals of the source. To be called after [`Self::next`] returned `None`.
    pub fn finish(mut self) -> SourceEnd {
        debug_assert!(self.ended && self.ready.is_empty(), "finished before the end");
        self.window.hash();
        let inflate = self.window.decode().inflate();
        let stored = inflate.stored();
        SourceEnd {
            sha256: stored.sha256(),
            stored_bytes: stored.bytes(),
            bytes: inflate.bytes(),
            text_bytes: self.window.decoded(),
            skipped_bytes: self.skipped_bytes,
            blank_lines: self.blank_lines,
        }
    }

    /// Cuts the next chunk off the window; `None` at the end.
    fn cut(&mut self) -> Result<Option<Chunk>, ReadError> {
        let mut bytes = self.chunk_bytes;
        loop {
            self.window.fill(bytes)?;
            let text = self.window.text();
            if text.is_empty() {
                return Ok(None);
            }
            let length = text.len().min(bytes);
            let rest = length == text.len() && self.window.ended();
            let cut = if rest { length } else { self.splitter.last_boundary(&text[..length]) };
            if cut > 0 {
                return Ok(Some(self.window.take(cut)));
            }
            let bytes_max = self.record_bytes_max + TERMINATOR_BYTES_MAX;
            if length <= bytes_max {
                bytes = (length * 2).min(bytes_max + 1);
                continue;
            }
            if Some(text[0]) == self.dialect.comment {
                self.skipped_bytes += self.stream_record(RecordState::Comment, |_| {})?.bytes;
                continue;
            }
            return self.oversize().map(Some);
        }
    }

    /// Skips the record at the window's start and reports it.
    fn oversize(&mut self) -> Result<Chunk, ReadError> {
        let mut chunk = self.window.empty_chunk();
        let (mut raw, mut length) = (Vec::new(), 0);
        let passed = self.stream_record(RecordState::CellStart, |text| {
            raw.extend_from_slice(&text[..text.len().min(REJECT_RAW_BYTES_MAX - raw.len())]);
            length += text.len() as u64;
        })?;
        let (reason, message) = if passed.unclosed {
            (RejectReason::UnclosedQuote, unclosed_message(chunk.first_line))
        } else {
            (RejectReason::RecordTooLong, too_long_message(self.dialect.record_bytes_max))
        };
        chunk.oversize.push(Oversize {
            line: chunk.first_line,
            offset: chunk.offset,
            reason,
            message,
            raw,
            length,
            length_with_terminator: passed.bytes,
            source_bytes: self.window.empty_chunk().offset - chunk.offset,
        });
        Ok(chunk)
    }

    /// Skips the record at the window's start. A record that is too long, or ends with the source within quotes, is
    /// rejected instead, since it may contain rows.
    fn skip_record(&mut self) -> Result<(), ReadError> {
        match self.front()? {
            FirstRecord::Whole(record) if !record.unclosed => self.skip(record.next),
            FirstRecord::Whole(_) | FirstRecord::TooLong => {
                let chunk = self.oversize()?;
                self.footer.push(&self.machine, chunk);
            }
        }
        Ok(())
    }

    /// Skips text outside rows.
    fn skip(&mut self, bytes: usize) {
        self.window.discard(bytes);
        self.skipped_bytes += bytes as u64;
    }

    /// Skips the record (or comment) at the window's start, of any length, passing its bytes without the terminator to
    /// `seen`.
    fn stream_record(&mut self, state: RecordState, mut seen: impl FnMut(&[u8])) -> Result<SkippedRecord, ReadError> {
        let mut state = state;
        let mut bytes = 0;
        loop {
            let text = self.window.text();
            match self.machine.advance(text, 0, state, self.window.ended(), &mut NoCells) {
                Step::Ended(record) => {
                    seen(&text[..record.end]);
                    self.window.discard(record.next);
                    return Ok(SkippedRecord { bytes: bytes + record.next as u64, unclosed: record.unclosed });
                }
                Step::More { at, state: left } => {
                    seen(&text[..at]);
                    self.window.discard(at);
                    bytes += at as u64;
                    state = left;
                    self.window.fill_more()?;
                }
            }
        }
    }

    /// Skips physical lines.
    fn skip_lines(&mut self, lines: u64) -> Result<(), ReadError> {
        let mut left = lines;
        let mut lone_cr = LoneCr::default();
        while left > 0 {
            let text = self.window.text();
            if let Some(end) = memchr::memchr(self.machine.newline(), text) {
                self.skip(end + 1);
                left -= 1;
                lone_cr = LoneCr::default();
                continue;
            }
            lone_cr.observe(text);
            let bytes = text.len();
            self.skip(bytes);
            if self.window.ended() {
                return self.refuse_lone_cr(&lone_cr);
            }
            self.window.fill_more()?;
        }
        Ok(())
    }

    /// Refuses a source whose last line is skipped but looks like several lines.
    fn refuse_lone_cr(&self, line: &LoneCr) -> Result<(), ReadError> {
        if line.found() && self.dialect.record_terminator == RecordTerminator::Auto {
            return Err(ReadError::LoneCr { key: self.key.clone(), line: self.window.line() });
        }
        Ok(())
    }

    /// Skips gaps; returns false if no record follows.
    fn reach_record(&mut self) -> Result<bool, ReadError> {
        self.reach_record_by(&self.machine.clone())
    }

    fn reach_record_by(&mut self, machine: &Machine) -> Result<bool, ReadError> {
        loop {
            let ended = self.window.ended();
            let gap = machine.skip_gaps(self.window.text(), 0, ended);
            let (Gap::Record(at) | Gap::Comment(at) | Gap::More(at)) = gap;
            self.blank_lines += machine.blank_lines_in(&self.window.text()[..at]);
            self.skip(at);
            match gap {
                Gap::Record(_) => return Ok(true),
                Gap::Comment(_) => {
                    let mut lone_cr = LoneCr::default();
                    self.skipped_bytes += self.stream_record(RecordState::Comment, |text| lone_cr.observe(text))?.bytes;
                    if self.window.ended() && self.window.text().is_empty() {
                        self.refuse_lone_cr(&lone_cr)?;
                    }
                }
                Gap::More(_) if ended => return Ok(false),
                Gap::More(_) => self.window.fill_more()?,
            }
        }
    }

    /// Reads the record at the window's start completely.
    fn front(&mut self) -> Result<FirstRecord, ReadError> {
        loop {
            let text = self.window.text();
            match self.machine.advance(text, 0, RecordState::CellStart, self.window.ended(), &mut NoCells) {
                Step::Ended(record) if record.end <= self.record_bytes_max => return Ok(FirstRecord::Whole(record)),
                Step::Ended(_) => return Ok(FirstRecord::TooLong),
                Step::More { .. } if text.len() > self.record_bytes_max + TERMINATOR_BYTES_MAX => {
                    return Ok(FirstRecord::TooLong);
                }
                Step::More { .. } => self.window.fill(text.len() * 2 + 1)?,
            }
        }
    }

    fn read_header(&mut self) -> Result<Vec<String>, ReadError> {
        if !self.reach_record_by(&self.machine.skipping_blank_lines())? {
            return Ok(Vec::new());
        }
        let (key, line) = (self.key.clone(), self.window.line());
        let record = match self.front()? {
            FirstRecord::Whole(record) if record.unclosed => return Err(ReadError::HeaderUnclosedQuote { key, line }),
            FirstRecord::Whole(record) => record,
            FirstRecord::TooLong => {
                return Err(ReadError::HeaderTooLong { key, line, bytes_max: self.dialect.record_bytes_max });
            }
        };
        let text = &self.window.text()[..record.end];
        let invalid = match std::str::from_utf8(text) {
            Ok(_) => self.window.invalid_before(record.end),
            Err(e) => Some(self.window.offset_at(e.valid_up_to())),
        };
        if let Some(offset) = invalid {
            return Err(ReadError::HeaderEncoding { key, line, offset, encoding: self.encoding() });
        }
        if self.machine.crlf() && first_record::has_lone_cr(&self.machine, text) {
            return Err(ReadError::HeaderLoneCr { key, line });
        }
        let cells = first_record::cells(&self.machine, &self.dialect, text, 0);
        self.skip(record.next);
        Ok(cells)
    }

    /// The number of cells of the first record; earlier records that are too long are skipped and reported.
    fn first_width(&mut self) -> Result<usize, ReadError> {
        while self.reach_record()? {
            match self.front()? {
                FirstRecord::Whole(record) => {
                    let text = &self.window.text()[..record.end];
                    if first_record::is_lines_of_lone_cr(&self.dialect, text) {
                        return Err(ReadError::LoneCr { key: self.key.clone(), line: self.window.line() });
                    }
                    return Ok(first_record::width(&self.machine, text, 0));
                }
                FirstRecord::TooLong => {
                    let text = self.window.text();
                    let head = &text[..text.len().min(self.record_bytes_max)];
                    if first_record::is_lines_of_lone_cr(&self.dialect, head) {
                        return Err(ReadError::LoneCr { key: self.key.clone(), line: self.window.line() });
                    }
                    let chunk = self.oversize()?;
                    self.footer.push(&self.machine, chunk);
                }
            }
        }
        Ok(0)
    }
}

impl std::fmt::Debug for SourceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceReader").field("key", &self.key).finish_non_exhaustive()
    }
}
