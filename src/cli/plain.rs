//! Escapes text for terminals.

use crate::domain::text::is_bidi_control;

/// Escapes control characters and bidirectional controls.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_bidi_control(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}[2J\r\n\u{202e}ü"), "a\\u{1b}[2J\\r\\n\\u{202e}ü");
    }
}
