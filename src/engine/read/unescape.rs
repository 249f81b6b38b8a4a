//! Turns the content of a quoted cell into its text.

use crate::domain::pipeline::Dialect;

/// Appends to `out` the text of `content`, the range of a [`super::index::Field`] that `is_escaped`.
///
/// Doubled quotes become one; an escape byte gives way to the byte after it. What follows a closing quote
/// (`quotes: lenient`, `"abc"def`) is taken as it stands, the closing quote itself dropped.
pub fn unescape(content: &[u8], dialect: &Dialect, out: &mut Vec<u8>) {
    let Some(quote) = dialect.quote else {
        out.extend_from_slice(content);
        return;
    };
    let escape = dialect.escape.filter(|escape| *escape != quote);
    let mut rest = content;
    loop {
        let found = match escape {
            None => memchr::memchr(quote, rest),
            Some(escape) => memchr::memchr2(quote, escape, rest),
        };
        let Some(at) = found else {
            out.extend_from_slice(rest);
            return;
        };
        out.extend_from_slice(&rest[..at]);
        let next = rest.get(at + 1).copied();
        match (rest[at] == quote, escape, next) {
            (true, None, Some(next)) if next == quote => out.push(quote),
            (true, _, _) => {
                out.extend_from_slice(&rest[at + 1..]);
                return;
            }
            (false, _, Some(next)) => out.push(next),
            (false, _, None) => return,
        }
        rest = &rest[at + 2..];
    }
}
