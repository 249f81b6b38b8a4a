//! A piece of a source that any thread can index, with the mapping from text positions to source offsets.

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
    /// Records rejected as a whole: too long to hold, or not skippable. They follow right after `text` in the source.
    pub oversize: Vec<Oversize>,
    /// Sequences invalid in the source's encoding, in ascending order. The text has U+FFFD in their place.
    pub(super) invalid: Vec<Invalid>,
    pub(super) encoding: &'static Encoding,
    pub(super) offset_mapping: OffsetMapping,
    pub(super) newline: u8,
    /// Position and source offset of the end of the source, if the chunk reaches it and the text doesn't imply it.
    pub(super) end: Option<(usize, u64)>,
    pub(super) marks: OnceLock<Vec<LineMark>>,
}

/// A record that was skipped and is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oversize {
    /// Physical line on which it starts.
    pub line: u64,
    /// Offset of its first byte in the decompressed source.
    pub offset: u64,
    /// `RecordTooLong`, or `UnclosedQuote` if the source ended within its quotes.
    pub reason: RejectReason,
    pub message: String,
    /// Its first bytes, at most [`crate::domain::limits::REJECT_RAW_BYTES_MAX`].
    pub raw: Vec<u8>,
    /// Bytes of its text; below with its terminator.
    pub length: u64,
    pub length_with_terminator: u64,
    /// Bytes of the decompressed source, with its terminator.
    pub source_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Invalid {
    pub pos: usize,
    /// In the decompressed source.
    pub offset: u64,
}

/// Maps text positions to source offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OffsetMapping {
    /// The source is UTF-8.
    Identity,
    /// One byte per character.
    SingleByte,
    /// Two bytes per UTF-16 unit.
    Utf16,
    /// Text position and source offset (both from the chunk's start) after each line, ascending.
    Lines(Vec<(usize, u64)>),
}

/// Lines and source bytes before a section of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineMark {
    lines: u64,
    bytes: u64,
}

/// The distance of marks, so that locating a record takes a short scan.
const MARK_BYTES: usize = 4_096;

impl Default for Chunk {
    fn default() -> Self {
        Self::from_text(Vec::new())
    }
}

impl Chunk {
    /// UTF-8 text as a complete source with LF line endings.
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

    /// Physical line of the byte at `pos`. The first call scans the whole text.
    pub fn line_at(&self, pos: usize) -> u64 {
        let (mark, from) = self.mark(pos);
        self.first_line + mark.lines + count(self.newline, &self.text[from..pos])
    }

    /// Source offset of the byte at `pos`. Exact at record starts; within a line of a multi-byte legacy encoding only
    /// if the line is valid up to there.
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

    /// Source bytes of the record at `start..end` with its terminator: between lines, offsets are exact in every
    /// encoding.
    pub fn source_bytes(&self, start: usize, end: usize) -> u64 {
        let next = match &self.text[end..] {
            // If lines end in a lone CR, a following LF is text of the next record.
            [b'\r', b'\n', ..] if self.newline == b'\n' => end + 2,
            [byte, ..] if *byte == self.newline => end + 1,
            _ => end,
        };
        self.offset_at(next) - self.offset_at(start)
    }

    /// Whether the text is valid UTF-8 by construction.
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
    /// Bytes of the source that `text` was decoded from; 0 for `Lines`, which are looked up.
    pub(super) fn source_bytes(&self, text: &[u8]) -> u64 {
        match self {
            Self::Identity => text.len() as u64,
            Self::SingleByte => characters(text),
            Self::Utf16 => 2 * (characters(text) + text.iter().filter(|byte| **byte >= 0xf0).count() as u64),
            Self::Lines(_) => 0,
        }
    }
}

/// The source offset of `pos`, computed from the last line start before it.
pub(super) fn offset_in_lines(lines: &[(usize, u64)], text: &[u8], pos: usize, encoding: &'static Encoding) -> u64 {
    let known = lines.partition_point(|(line, _)| *line <= pos);
    let (line, offset) = known.checked_sub(1).map_or((0, 0), |i| lines[i]);
    if line == pos {
        return offset;
    }
    offset + encoding.encode(&String::from_utf8_lossy(&text[line..pos])).0.len() as u64
}

/// Counts `byte` in `text`.
pub(super) fn count(byte: u8, text: &[u8]) -> u64 {
    memchr::memchr_iter(byte, text).count() as u64
}

/// Counts the characters that start in `text`.
fn characters(text: &[u8]) -> u64 {
    text.iter().filter(|byte| (**byte as i8) >= -0x40).count() as u64
}
