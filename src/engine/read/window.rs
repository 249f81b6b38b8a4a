//! A sliding window over the decoded source that tracks the physical line and source offset of its start.

use std::sync::{Arc, OnceLock};

use super::buffer_pool::{BufferPool, ChunkText};
use super::chunk::{Chunk, Invalid, OffsetMapping, count, offset_in_lines};
use super::decode::{DECODE_BYTES_MIN, Decode, DecodeNotes};
use super::error::ReadError;
use super::sha256::Hash;

/// Minimal bytes per read.
const FILL_BYTES_MIN: usize = 64 << 10;
/// Maximal bytes per read, so that they are still cached when hashed.
pub(super) const FILL_BYTES_MAX: usize = 256 << 10;

pub(super) struct Window {
    decode: Decode,
    notes: DecodeNotes,
    offset_mapping: OffsetMapping,
    newline: u8,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    /// The position of the byte at `start`: physical line, offset in the source, and offset in the text (without the
    /// byte order mark).
    line: u64,
    offset: u64,
    position: u64,
    /// Bytes of text decoded so far.
    decoded: u64,
    buffers: Arc<BufferPool>,
}

impl Window {
    pub fn new(decode: Decode, newline: u8, buffers: Arc<BufferPool>) -> Self {
        let offset = decode.bom_bytes();
        Self {
            offset_mapping: decode.offset_mapping(),
            decode,
            notes: DecodeNotes::default(),
            newline,
            buffer: buffers.take(),
            start: 0,
            end: 0,
            ended: false,
            line: 1,
            offset,
            position: 0,
            decoded: 0,
            buffers,
        }
    }

    pub fn decode(&self) -> &Decode {
        &self.decode
    }

    pub fn text(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bytes of text decoded so far, without a byte order mark.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Whether the whole source has been read into the window.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Reads until the window holds `bytes`, or the source ends.
    pub fn fill(&mut self, bytes: usize) -> Result<(), ReadError> {
        while !self.ended && self.end - self.start < bytes {
            self.make_room(bytes);
            // Not more than requested, since data carried over to the next chunk is copied.
            let enough = self.start + bytes + DECODE_BYTES_MIN;
            let until = self.buffer.len().min(self.end + FILL_BYTES_MAX).min(enough);
            let room = &mut self.buffer[self.end..until];
            let read = self.decode.read(room, &mut self.notes)?;
            self.end += read;
            self.decoded += read as u64;
            self.ended = read == 0;
        }
        Ok(())
    }

    /// Reads more, for a caller that needs input or the end.
    pub fn fill_more(&mut self) -> Result<(), ReadError> {
        self.fill(self.end - self.start + FILL_BYTES_MIN)
    }

    fn make_room(&mut self, bytes: usize) {
        if self.buffer.len() - self.end >= DECODE_BYTES_MIN {
            return;
        }
        self.compact();
        if self.buffer.len() - self.end < FILL_BYTES_MIN / 2 {
            let length = (bytes + DECODE_BYTES_MIN).max(self.end + FILL_BYTES_MIN);
            if self.buffer.is_empty() {
                // Zeroed memory from the system needs no clearing.
                self.buffer = vec![0; length];
            } else {
                self.buffer.resize(length, 0);
            }
        }
    }

    fn compact(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Postpones hashing of further data until it leaves the window, or until [`Self::hash_both`], if the text is the
    /// stored bytes.
    pub fn hash_later(&mut self) {
        if let Some(stored) = self.decode.as_stored() {
            stored.hash_later();
        }
    }

    /// Hashes the unhashed data of two windows.
    pub fn hash_both(&mut self, other: &mut Self) {
        match (self.take_unhashed(), other.take_unhashed()) {
            (Some((hash, text)), Some((of_other, text_of_other))) => hash.update_both(text, of_other, text_of_other),
            (Some((hash, text)), None) | (None, Some((hash, text))) => hash.update(text),
            (None, None) => {}
        }
    }

    /// Hashes the unhashed data.
    pub fn hash(&mut self) {
        if let Some((hash, text)) = self.take_unhashed() {
            hash.update(text);
        }
    }

    fn take_unhashed(&mut self) -> Option<(&mut Hash, &[u8])> {
        let (hash, unhashed) = self.decode.as_stored()?.take_unhashed();
        Some((hash, &self.buffer[self.end - unhashed..self.end]))
    }

    /// Source offset of the byte at `at` of the text.
    pub fn offset_at(&self, at: usize) -> u64 {
        let text = self.text();
        if let Some(end) = self.end_of_source(at) {
            return end;
        }
        match &self.offset_mapping {
            OffsetMapping::Lines(_) => {
                let lines: Vec<(usize, u64)> = self.lines_in_text(self.position + at as u64);
                self.offset + offset_in_lines(&lines, text, at, self.decode.encoding())
            }
            OffsetMapping::Identity | OffsetMapping::SingleByte | OffsetMapping::Utf16 => {
                self.offset + self.offset_mapping.source_bytes(&text[..at])
            }
        }
    }

    /// The source's length, if `at` is the end of its text and decoding noted it.
    fn end_of_source(&self, at: usize) -> Option<u64> {
        self.notes.end.filter(|_| self.ended && at == self.text().len())
    }

    /// Noted lines up to text position `until`, relative to the window's start.
    fn lines_in_text(&self, until: u64) -> Vec<(usize, u64)> {
        let noted = self.notes.lines.iter().take_while(|(text, _)| *text <= until);
        noted.map(|(text, source)| ((text - self.position) as usize, source - self.offset)).collect()
    }

    /// The source offset of an invalid sequence in the first `length` bytes, if transcoding met one.
    pub fn invalid_before(&self, length: usize) -> Option<u64> {
        let until = self.position + length as u64;
        self.notes.invalid.iter().find(|(text, _)| *text < until).map(|(_, source)| *source)
    }

    /// Drops the first `bytes` of the text.
    pub fn discard(&mut self, bytes: usize) {
        self.hash();
        let offset = self.offset_at(bytes);
        self.line += count(self.newline, &self.text()[..bytes]);
        self.start += bytes;
        self.moved(bytes, offset);
    }

    fn moved(&mut self, bytes: usize, offset: u64) {
        self.position += bytes as u64;
        self.offset = offset;
        let position = self.position;
        let passed = self.notes.lines.partition_point(|(text, _)| *text <= position);
        self.notes.lines.drain(..passed);
        let passed = self.notes.invalid.partition_point(|(text, _)| *text < position);
        self.notes.invalid.drain(..passed);
    }

    /// Takes the first `bytes` of the text as a chunk.
    pub fn take(&mut self, bytes: usize) -> Chunk {
        self.hash();
        let offset = self.offset_at(bytes);
        let source_end = self.end_of_source(bytes);
        let cut = self.start + bytes;
        let carried = self.end - cut;
        // After the last byte, neither the line nor a buffer is needed.
        let is_last = self.ended && carried == 0;
        let lines = if is_last { 0 } else { count(self.newline, &self.text()[..bytes]) };
        let mut next = if is_last { Vec::new() } else { self.buffers.take() };
        if next.len() < carried {
            next.resize(self.buffer.len(), 0);
        }
        next[..carried].copy_from_slice(&self.buffer[cut..self.end]);
        let text = std::mem::replace(&mut self.buffer, next);
        let mut chunk = self.empty_chunk();
        chunk.text = ChunkText::new(text, self.start..cut);
        chunk.end = source_end.map(|end| (bytes, end));
        self.start = 0;
        let until = self.position + bytes as u64;
        let invalid = self.notes.invalid.iter().take_while(|(text, _)| *text < until);
        chunk
            .invalid
            .extend(invalid.map(|(text, source)| Invalid { pos: (text - self.position) as usize, offset: *source }));
        if let OffsetMapping::Lines(_) = self.offset_mapping {
            chunk.offset_mapping = OffsetMapping::Lines(self.lines_in_text(until));
        }
        self.end = carried;
        self.line += lines;
        self.moved(bytes, offset);
        chunk
    }

    /// A chunk without text at the window's start.
    pub fn empty_chunk(&self) -> Chunk {
        Chunk {
            text: ChunkText::default(),
            first_line: self.line,
            offset: self.offset,
            oversize: Vec::new(),
            invalid: Vec::new(),
            encoding: self.decode.encoding(),
            offset_mapping: self.offset_mapping.clone(),
            newline: self.newline,
            end: None,
            marks: OnceLock::new(),
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.buffers.put(ChunkText::new(std::mem::take(&mut self.buffer), 0..0));
    }
}
