//! Converts a field's position to the bytes of its cell.

use std::borrow::Cow;

use crate::domain::pipeline::Dialect;
use crate::engine::read::record_index::FieldRange;
use crate::engine::read::record_index::unescape;

/// The text of a cell without quotes and escapes, not trimmed. Empty if the record has no such cell.
pub fn cell_text<'a>(text: &'a [u8], field: FieldRange, dialect: &Dialect) -> Cow<'a, [u8]> {
    if field.is_absent() {
        return Cow::Borrowed(&[]);
    }
    let content = &text[field.range()];
    if !field.is_escaped() {
        return Cow::Borrowed(content);
    }
    let mut out = Vec::with_capacity(content.len());
    unescape(content, dialect, &mut out);
    Cow::Owned(out)
}

/// A cell's bytes with the text before them, so that short cells can be read as whole words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    pub text: &'a [u8],
    pub start: usize,
    pub end: usize,
}

impl<'a> Cell<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, start: 0, end: text.len() }
    }

    #[inline(always)]
    pub fn bytes(self) -> &'a [u8] {
        &self.text[self.start..self.end]
    }

    #[inline(always)]
    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn trimmed(self) -> Self {
        let bytes = self.bytes();
        let start = self.start + (bytes.len() - bytes.trim_ascii_start().len());
        Self { start, end: start + bytes.trim_ascii().len(), ..self }
    }
}
