//! Partition paths, `col=value/col=value`, with Hive's percent-escapes.

mod inferable;

use super::limits::PARTITION_SEGMENT_BYTES_MAX;

/// The value that represents null.
pub const NULL_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// Why some reader would misread a partition's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFault {
    /// Spark can't read such a table; Hive uses it for null.
    Empty,
    /// It is [`NULL_VALUE`]: Polars and pyarrow read null, however it is escaped.
    NullMark,
    /// Readers that infer types convert it to another value.
    Inferable,
}

/// Why `text` can't be a partition's value, if it can't.
pub fn text_fault(text: &str) -> Option<TextFault> {
    match text {
        "" => Some(TextFault::Empty),
        NULL_VALUE => Some(TextFault::NullMark),
        _ => inferable::is_inferable(text).then_some(TextFault::Inferable),
    }
}

/// Whether `name` needs no escapes as a partition column: DuckDB and Polars don't decode them.
pub fn is_plain_name(name: &str) -> bool {
    let mut escaped = String::with_capacity(name.len());
    escape_into(name, &mut escaped);
    escaped == name
}

/// Makes the segment `name=value`; `None` as value is null.
///
/// Tables of older versions have values with a [`TextFault`]. A text equal to [`NULL_VALUE`] gets its first `_`
/// escaped, so that it stays a text; an empty string is an empty value.
///
/// # Errors
/// The escaped segment's length in bytes, if it exceeds [`PARTITION_SEGMENT_BYTES_MAX`].
pub fn segment(name: &str, value: Option<&str>) -> Result<String, usize> {
    let mut out = String::with_capacity(name.len() + 1 + value.map_or(NULL_VALUE.len(), str::len));
    escape_into(name, &mut out);
    out.push('=');
    match value {
        None => out.push_str(NULL_VALUE),
        Some(NULL_VALUE) => {
            out.push_str("%5F");
            out.push_str(&NULL_VALUE[1..]);
        }
        Some(value) => escape_into(value, &mut out),
    }
    if out.len() > PARTITION_SEGMENT_BYTES_MAX { Err(out.len()) } else { Ok(out) }
}

/// Parses a segment into name and value; `None` without `=` or with an invalid escape.
pub fn parse_segment(segment: &str) -> Option<(String, Option<String>)> {
    let (name, value) = segment.split_once('=')?;
    let value = if value == NULL_VALUE { None } else { Some(unescape(value)?) };
    Some((unescape(name)?, value))
}

/// Whether `text` is a segment in the form that [`segment`] writes.
pub fn is_segment(text: &str) -> bool {
    parse_segment(text).is_some_and(|(name, value)| segment(&name, value.as_deref()).is_ok_and(|made| made == text))
}

/// Escapes the characters that Hive escapes, and those that are invalid in object keys: ASCII control characters, and
/// `"` `#` `%` `'` `*` `/` `:` `=` `?` `\` `{` `[` `]` `^` DEL; also `.` and `..` as a whole, and bidirectional
/// formatting characters.
fn escape_into(text: &str, out: &mut String) {
    let dots = text == "." || text == "..";
    for c in text.chars() {
        let special = matches!(c, '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '{' | '[' | ']' | '^');
        let escaped = special || c.is_control() || super::text::is_bidi_control(c) || (dots && c == '.');
        if !escaped {
            out.push(c);
        } else {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let hex = [bytes.next()?, bytes.next()?];
            let hex = std::str::from_utf8(&hex).ok()?;
            out.push(u8::from_str_radix(hex, 16).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_round_trip() {
        for value in ["2013-01-01", "a/b", "50%", "x=y", "München", "", ".", "..", NULL_VALUE, "a b", "é:\u{202e}\0"]
        {
            let made = segment("col", Some(value)).unwrap();
            assert_eq!(parse_segment(&made), Some(("col".into(), Some(value.into()))), "{made}");
            assert!(!made.contains('/'));
        }
        assert_eq!(segment("c", None).unwrap(), "c=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(parse_segment("c=__HIVE_DEFAULT_PARTITION__"), Some(("c".into(), None)));
    }

    #[test]
    fn segment_longer_than_a_file_name_is_refused() {
        assert_eq!(segment("c", Some(&"x".repeat(253))).map(|s| s.len()), Ok(255));
        assert_eq!(segment("c", Some(&"x".repeat(254))), Err(256));
        assert_eq!(segment("c", Some(&"/".repeat(85))), Err(257));
    }
}
