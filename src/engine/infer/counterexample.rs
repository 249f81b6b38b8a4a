//! A value with its location, as evidence against a type.

use std::cell::Cell;

use crate::engine::read::chunk::Chunk;

/// Bytes at which a quoted value is truncated.
const SHOWN_BYTES_MAX: usize = 80;

/// A cell's content and location.
pub(super) struct CellValue<'a> {
    pub text: &'a [u8],
    pub chunk: &'a Chunk,
    /// Start of its record in the chunk.
    pub start: usize,
    /// Its line, computed on demand.
    pub line: Cell<u64>,
}

impl<'a> CellValue<'a> {
    pub fn new(text: &'a [u8], chunk: &'a Chunk, start: usize) -> Self {
        Self { text, chunk, start, line: Cell::new(0) }
    }

    pub fn line(&self) -> u64 {
        if self.line.get() == 0 {
            self.line.set(self.chunk.line_at(self.start));
        }
        self.line.get()
    }

    pub fn counterexample(&self, why: &'static str) -> Counterexample {
        Counterexample { line: self.line(), value: shown(self.text), why }
    }
}

/// The first value that rules something out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counterexample {
    pub line: u64,
    pub value: String,
    /// May be empty.
    pub why: &'static str,
}

/// Bytes as readable text, truncated.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES_MAX + 4)]).into_owned();
    if text.len() <= SHOWN_BYTES_MAX {
        return text;
    }
    format!("{}…", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)])
}
