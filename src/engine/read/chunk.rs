//! A piece of a source that any thread can index, and the way back from a place in it to the source.

use std::sync::OnceLock;

use encoding_rs::Encoding;

use super::buffer_pool::ChunkText;
use crate::domain::reject::RejectReason;

/// A piece of a source: whole records, decoded to UTF-8 (UTF-8 sources are not yet checked for validity).
#[derive(Debug)]
pub struct Chunk {
    /// Shorter than 2^30 bytes.
    pub text: ChunkText,
    /// Physical line of the first byte, counted from 1.
    pub first_line: u64,
    /// Offset of the first byte in the decompressed source.
    pub offset: u64,
    /// Records that are rejected whole: too long to hold, or unfit to be skipped. They stand right after `text` in the
    /// source.
    pub oversize: Vec<Oversize>,
    /// Where transcoding met sequences that its encoding doesn't have, in ascending order. The text has U+FFFD there.
    pub(super) invalid: Vec<Invalid>,
    pub(super) encoding: &'static Encoding,
    pub(super) offset_mapping: OffsetMapping,
    pub(super) newline: u8,
    /// Position and source offset of the end of the source, if the chunk was read up to it and its text doesn't tell it.
    pub(super) end: Option<(usize, u64)>,
    pub(super) marks: OnceLock<Vec<LineMark>>,
}

/// A record that was passed over and is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oversize {
    /// Physical line on which it starts.
    pub line: u64,
    /// Offset of its first byte in the decompressed source.
    pub offset: u64,
    /// `RecordTooLong`, or `UnclosedQuote` if the source ended within its quotes.
    pub reason: RejectReason,
    pub message: String,
    /// Its head, at most [`crate::domain::limits::REJECT_RAW_BYTES_MAX`] bytes.
    pub raw: Vec<u8>,
    /// Bytes of its text, and with its terminator.
    pub length: u64,
    pub length_with_terminator: u64,
    /// Bytes of the decompressed source that it takes, with its terminator.
    pub source_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Invalid {
    pub pos: usize,
    /// In the decompressed source.
    pub offset: u64,
}

/// How many source bytes stand behind a stretch of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OffsetMapping {
    /// The source is UTF-8.
    Identity,
    /// One byte a character.
    SingleByte,
    /// Two bytes a UTF-16 unit.
    Utf16,
    /// ChunkText position and source offset (both from the chunk's start) after each line, ascending.
    Lines(Vec<(usize, u64)>),
}

/// Lines and source bytes before the start of a stretch of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineMark {
    lines: u64,
    bytes: u64,
}

/// Marks stand this far apart, so that finding the place of one record costs a short scan.
const MARK_BYTES: usize = 4_096;

impl Default for Chunk {
    fn default() -> Self {
        Self::from_text(Vec::new())
    }
}

impl Chunk {
    /// UTF-8 text that is a source of its own, with LF as line end.
    pub fn from_text(text: Vec<u8>) -> Self {
        let bytes = text.len();
        Self {
            text: ChunkText::new(text, 0..bytes),
            first_line: 1,
            offset: 0,
            oversize: Vec::new(),
            invalid: Vec::new(),
            encoding: encoding_rs::UTF_8,
            offset_mapping: OffsetMapping::Identity,
            newline: b'\n',
            end: None,
            marks: OnceLock::new(),
        }
    }

    /// Physical line of the byte at `pos` of the text. The first call goes once through the text.
    pub fn line_at(&self, pos: usize) -> u64 {
        let (mark, from) = self.mark(pos);
        self.first_line + mark.lines + count(self.newline, &self.text[from..pos])
    }

    /// Offset of the byte at `pos` of the text in the decompressed source. Exact wherever a record starts; within a line
    /// of a multi-byte legacy encoding only if all of the line before it was valid.
    pub fn offset_at(&self, pos: usize) -> u64 {
        if let Some((_, end)) = self.end.filter(|(at, _)| *at == pos) {
            return end;
        }
        match &self.offset_mapping {
            OffsetMapping::Identity => self.offset + pos as u64,
            OffsetMapping::Lines(lines) => self.offset + offset_in_lines(lines, &self.text, pos, self.encoding),
            OffsetMapping::SingleByte | OffsetMapping::Utf16 => {
                let (mark, from) = self.mark(pos);
                self.offset + mark.bytes + self.offset_mapping.source_bytes(&self.text[from..pos])
            }
        }
    }

    /// Bytes of the source from the start of a record at `start` of the text, which ends at `end`, to the next line: with
    /// its terminator, since between lines offset_mapping are exact in every encoding.
    pub fn source_bytes(&self, start: usize, end: usize) -> u64 {
        let next = match &self.text[end..] {
            // Where lines end in a lone CR, an LF after it is text of the next record.
            [b'\r', b'\n', ..] if self.newline == b'\n' => end + 2,
            [byte, ..] if *byte == self.newline => end + 1,
            _ => end,
        };
        self.offset_at(next) - self.offset_at(start)
    }

    /// Whether the text needs no check for UTF-8 validity.
    pub(super) fn is_transcoded(&self) -> bool {
        self.offset_mapping != OffsetMapping::Identity
    }

    fn mark(&self, pos: usize) -> (LineMark, usize) {
        let marks = self.marks.get_or_init(|| {
            let mut at = LineMark { lines: 0, bytes: 0 };
            let mut marks = Vec::with_capacity(self.text.len() / MARK_BYTES + 1);
            for stretch in self.text.chunks(MARK_BYTES) {
                marks.push(at);
                at.lines += count(self.newline, stretch);
                at.bytes += self.offset_mapping.source_bytes(stretch);
            }
            marks.push(at);
            marks
        });
        (marks[pos / MARK_BYTES], pos / MARK_BYTES * MARK_BYTES)
    }
}

impl OffsetMapping {
    /// Bytes of the source that `text` was decoded from; nothing for `Lines`, which looks them up.
    pub(super) fn source_bytes(&self, text: &[u8]) -> u64 {
        match self {
            Self::Identity => text.len() as u64,
            Self::SingleByte => characters(text),
            Self::Utf16 => 2 * (characters(text) + text.iter().filter(|byte| **byte >= 0xf0).count() as u64),
            Self::Lines(_) => 0,
        }
    }
}

/// How far into the source `pos` lies, by the last line start before it.
pub(super) fn offset_in_lines(lines: &[(usize, u64)], text: &[u8], pos: usize, encoding: &'static Encoding) -> u64 {
    let known = lines.partition_point(|(line, _)| *line <= pos);
    let (line, offset) = known.checked_sub(1).map_or((0, 0), |i| lines[i]);
    if line == pos {
        return offset;
    }
    offset + encoding.encode(&String::from_utf8_lossy(&text[line..pos])).0.len() as u64
}

/// How often `byte` is in `text`.
pub(super) fn count(byte: u8, text: &[u8]) -> u64 {
    memchr::memchr_iter(byte, text).count() as u64
}

/// Characters that start in `text`.
fn characters(text: &[u8]) -> u64 {
    text.iter().filter(|byte| (**byte as i8) >= -0x40).count() as u64
}
