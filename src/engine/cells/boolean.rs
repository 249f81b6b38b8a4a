//! Booleans: exactly one of the declared values.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::fault::FaultKind;
use super::text::Cell;
use super::typed::Parser;
use crate::domain::pipeline::Dialect;

pub(super) struct BooleanParser {
    short: Vec<(ShortText, bool)>,
    long: Vec<(Box<[u8]>, bool)>,
}

/// A text of at most eight bytes, padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShortText {
    word: u64,
    bytes: usize,
}

impl ShortText {
    #[inline(always)]
    fn of(cell: Cell<'_>) -> Option<Self> {
        let bytes = cell.len();
        let word = match cell.text[cell.start..].first_chunk() {
            _ if bytes > size_of::<u64>() => return None,
            // Bytes after the cell are read with it and masked out.
            Some(word) => u64::from_le_bytes(*word) & u64::MAX.checked_shr(64 - 8 * bytes as u32).unwrap_or(0),
            None => cell.bytes().iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        Some(Self { word, bytes })
    }
}

impl BooleanParser {
    pub fn new(dialect: &Dialect) -> Self {
        let mut parser = Self { short: Vec::new(), long: Vec::new() };
        for (tokens, value) in [(&dialect.true_values, true), (&dialect.false_values, false)] {
            for token in tokens {
                match ShortText::of(Cell::new(token.as_bytes())) {
                    Some(short) => parser.short.push((short, value)),
                    None => parser.long.push((token.as_bytes().into(), value)),
                }
            }
        }
        parser
    }
}

impl Parser for BooleanParser {
    type Value = bool;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<bool, FaultKind> {
        let value = match ShortText::of(cell) {
            Some(short) => self.short.iter().find(|(text, _)| *text == short).map(|(_, value)| *value),
            None => self.long.iter().find(|(text, _)| **text == *cell.bytes()).map(|(_, value)| *value),
        };
        value.ok_or(FaultKind::Syntax)
    }

    fn array(&self, values: Vec<bool>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_declared_values_are_booleans() {
        let dialect = Dialect {
            true_values: vec!["yes".into(), "1".into(), "ja, doch".into(), String::new()],
            false_values: vec!["no".into(), "0".into(), "n\0".into(), "maybe not".into()],
            ..Dialect::default()
        };
        let mut parser = BooleanParser::new(&dialect);
        for behind in ["", "x", ",0,0,0,0,0", "\0\0\0\0\0\0\0\0"] {
            let mut parse = |text: &str| {
                let all = format!("1{text}{behind}");
                parser.parse(Cell { text: all.as_bytes(), start: 1, end: 1 + text.len() }).ok()
            };
            for text in &dialect.true_values {
                assert_eq!(parse(text), Some(true), "{text:?} before {behind:?}");
            }
            for text in &dialect.false_values {
                assert_eq!(parse(text), Some(false), "{text:?} before {behind:?}");
            }
            for text in
                ["Yes", "yesx", "ye", "n", "n\0\0", "ja, doc", "ja, doch!", "maybe no", "maybe not!", "\0", " no"]
            {
                assert_eq!(parse(text), None, "{text:?} before {behind:?}");
            }
        }
    }
}
