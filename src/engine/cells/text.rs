//! From a field's place to the bytes of its cell.

use std::borrow::Cow;

use crate::domain::pipeline::Dialect;
use crate::engine::read::index::Field;

/// The text of a cell as a person would read it: without quotes and escapes, not trimmed. Empty where the record has no
/// such cell.
pub fn cell_text<'a>(text: &'a [u8], field: Field, dialect: &Dialect) -> Cow<'a, [u8]> {
    if field.is_absent() {
        return Cow::Borrowed(&[]);
    }
    let content = &text[field.range()];
    if !field.is_escaped() {
        return Cow::Borrowed(content);
    }
    let mut out = Vec::with_capacity(content.len());
    unescape(content, dialect.quote, dialect.escape, &mut out);
    Cow::Owned(out)
}

/// Appends the content of a cell to `out`, escapes resolved: of a doubled quote one stays, or, where an escape byte is
/// declared, that byte goes and the byte after it stays, whatever it is. An escape byte at the very end stays.
pub fn unescape(content: &[u8], quote: Option<u8>, escape: Option<u8>, out: &mut Vec<u8>) {
    let Some(mark) = escape.or(quote) else {
        out.extend_from_slice(content);
        return;
    };
    let doubled = escape.is_none() || escape == quote;
    let mut rest = content;
    while let Some(at) = memchr::memchr(mark, rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.first() {
            Some(&next) if !doubled || next == mark => {
                out.push(next);
                rest = &rest[1..];
            }
            // A quote alone in its cell: the reader let it pass as text.
            Some(_) | None => out.push(mark),
        }
    }
    out.extend_from_slice(rest);
}

/// A cell's bytes with the text before them, so that short cells can be read in whole words.
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

    /// Without its first byte. The cell must not be empty.
    #[inline(always)]
    pub fn skip_first(self) -> Self {
        Self { start: self.start + 1, ..self }
    }

    pub fn trimmed(self) -> Self {
        let bytes = self.bytes();
        let start = self.start + (bytes.len() - bytes.trim_ascii_start().len());
        Self { start, end: start + bytes.trim_ascii().len(), ..self }
    }
}
