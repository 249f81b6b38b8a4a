//! Text from files, safe to show on a terminal.

use crate::domain::text::is_bidi_control;

/// `text` with control characters, and those that turn the direction of the text, escaped.
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
    fn what_would_act_on_the_terminal_is_shown_instead() {
        assert_eq!(plain("a\u{1b}[2J\r\n\u{202e}ü"), "a\\u{1b}[2J\\r\\n\\u{202e}ü");
    }
}
