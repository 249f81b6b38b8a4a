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
    unescape(content, dialect, &mut out);
    Cow::Owned(out)
}

/// Appends the content of an escaped cell to `out` as text.
///
/// Doubled quotes become one; an escape byte gives way to the byte after it. What follows a closing quote
/// (`quotes: lenient`) is taken as it stands, the closing quote itself dropped.
pub fn unescape(content: &[u8], dialect: &Dialect, out: &mut Vec<u8>) {
    let Some(quote) = dialect.quote else {
        out.extend_from_slice(content);
        return;
    };
    let escape = dialect.escape.filter(|escape| *escape != quote);
    let mut rest = content;
    while let Some(at) = memchr::memchr2(quote, escape.unwrap_or(quote), rest) {
        out.extend_from_slice(&rest[..at]);
        let next = rest.get(at + 1).copied();
        match (Some(rest[at]) == escape, next) {
            (true, Some(next)) => out.push(next),
            (true, None) => return,
            (false, Some(next)) if escape.is_none() && next == quote => out.push(quote),
            (false, _) => {
                out.extend_from_slice(&rest[at + 1..]);
                return;
            }
        }
        rest = &rest[at + 2..];
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
