//! Texts in messages: quotes, lists, suggestions, positions.

use serde::{Deserialize, Serialize};

/// Longest text that gets a suggestion, in bytes, and the maximum number of candidates compared with it.
const SUGGEST_BYTES_MAX: usize = 64;
const SUGGEST_CANDIDATES_MAX: usize = 1_024;
/// Maximum length of a quoted text in a message, in characters.
const QUOTED_CHARS_MAX: usize = 80;
/// Maximum length of a found text in an error, in characters.
const CLIPPED_CHARS_MAX: usize = 200;

/// A position in a text; both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl Position {
    pub const START: Self = Self { line: 1, column: 1 };

    /// The position of a byte of `text`.
    pub fn at_byte(text: &str, byte: usize) -> Self {
        let mut position = Self::START;
        for (_, c) in text.char_indices().take_while(|(at, _)| *at < byte) {
            position = match c {
                '\n' => Self { line: position.line + 1, column: 1 },
                _ => Self { column: position.column + 1, ..position },
            };
        }
        position
    }
}

/// Characters that reorder the text around them, so that a name is displayed as another.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The start of a found text, for an error.
pub(crate) fn clipped(text: &str) -> String {
    text.chars().take(CLIPPED_CHARS_MAX).collect()
}

/// The candidate that `found` is probably a misspelling of.
pub(crate) fn suggest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if found.is_empty() || found.len() > SUGGEST_BYTES_MAX {
        return None;
    }
    let folded = found.to_lowercase();
    let slack = (folded.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != found)
        .take(SUGGEST_CANDIDATES_MAX)
        .map(|c| (strsim::damerau_levenshtein(&folded, &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= slack && *distance < c.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// `: did you mean `x`?` or nothing.
pub(crate) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|s| format!(": did you mean `{s}`?")).unwrap_or_default()
}

/// A text in backticks: truncated, with control characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    let escape = |c: char| c.is_control() || is_bidi_control(c);
    let mut shown = String::new();
    for c in text.chars().take(QUOTED_CHARS_MAX) {
        if escape(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if text.chars().nth(QUOTED_CHARS_MAX).is_some() { format!("`{shown}…`") } else { format!("`{shown}`") }
}

/// `1 row` or `2 rows`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// `` `a`, `b` or `c` ``.
pub(crate) fn ticked(names: &[&str]) -> String {
    let ticked: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    list(&ticked.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `, expected one of …`, or nothing.
pub(crate) fn one_of(names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!(", expected one of {}", ticked(names)) }
}

/// `a, b or c`.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).into(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Whether a JSON text has at most `most` values and brackets, as far as its commas and brackets tell. In memory, a value
/// of two bytes takes some hundred.
pub fn has_json_values_at_most(text: &[u8], most: usize) -> bool {
    let (mut found, mut in_string, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'{' | b'[' if !in_string => found += 1,
            _ => {}
        }
    }
    found <= most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_near_misses_only() {
        let names = ["table", "files", "columns", "where"];
        assert_eq!(suggest("tabel", names), Some("table"));
        assert_eq!(suggest("Column", names), Some("columns"));
        assert_eq!(suggest("zzz", names), None);
        assert_eq!(suggest("x", ["y"]), None);
    }
}
