//! Notes among records: records with another number of cells than the rows, known by their first text.

use crate::domain::pipeline::Dialect;

/// Letters before the first digit that distinguish a note from a row.
const NOTE_LETTERS_MIN: usize = 3;
/// Characters of a note that mark it.
const NOTE_CHARS_MAX: usize = 40;

/// The value that marks a note, a record with another number of cells than the rows: its text before the first digit.
/// Empty if all its cells are; `None` if it has no such text.
pub(super) fn note_value(record: &[u8], dialect: &Dialect) -> Option<String> {
    let quotes = |byte: &u8| byte.is_ascii_whitespace() || dialect.quote == Some(*byte);
    let mut rest = record;
    let cell = loop {
        let end = memchr::memmem::find(rest, &dialect.delimiter);
        let cell = &rest[..end.unwrap_or(rest.len())];
        let cell = &cell[cell.iter().position(|byte| !quotes(byte)).unwrap_or(cell.len())..];
        match end {
            None if cell.is_empty() => return Some(String::new()),
            Some(end) if cell.is_empty() => rest = &rest[end + dialect.delimiter.len()..],
            Some(_) | None => break cell,
        }
    };
    let end = cell.iter().position(|byte| dialect.quote == Some(*byte)).unwrap_or(cell.len());
    let text = String::from_utf8_lossy(&cell[..end]);
    let text: String = text.chars().take_while(|c| !c.is_numeric()).take(NOTE_CHARS_MAX).collect();
    let text = text.trim();
    (text.chars().filter(|c| c.is_alphabetic()).count() >= NOTE_LETTERS_MIN).then(|| format!("{text}*"))
}
