//! Scans a query's text without a parser: finds its parameters and its end.

/// A parameter in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Without `$`; empty for one without a name (`?`).
    pub name: String,
    /// Byte offset of its `$`.
    pub offset: usize,
}

/// The result of [`scan`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scanned {
    pub placeholders: Vec<Placeholder>,
    /// Byte offset of the first `;`, or the text's length.
    pub end: usize,
    /// Byte offset of further text, unless that is only blanks and comments.
    pub more: Option<usize>,
}

/// Scans SQL: `$` in strings, quoted names and comments is not a parameter.
pub fn scan(sql: &str) -> Scanned {
    let bytes = sql.as_bytes();
    let mut found = Scanned { placeholders: Vec::new(), end: sql.len(), more: None };
    let mut at = 0;
    while at < bytes.len() {
        let comments = matches!((bytes[at], bytes.get(at + 1)), (b'-', Some(b'-')) | (b'/', Some(b'*')));
        if at > found.end && found.more.is_none() && !comments && !matches!(bytes[at], b' ' | b'\t'..=b'\r' | b';') {
            found.more = Some(at);
        }
        at = match bytes[at] {
            b'\'' => after_quoted(bytes, at, b'\'', false),
            b'"' => after_quoted(bytes, at, b'"', false),
            b'-' if bytes.get(at + 1) == Some(&b'-') => after(sql, at, "\n"),
            b'/' if bytes.get(at + 1) == Some(&b'*') => after_comment(bytes, at),
            b'e' | b'E' if bytes.get(at + 1) == Some(&b'\'') => after_quoted(bytes, at + 1, b'\'', true),
            b'$' => {
                let name_end = word_end(bytes, at + 1, false);
                if bytes.get(name_end) == Some(&b'$') {
                    // `$tag$ … $tag$`
                    after(sql, name_end + 1, &sql[at..=name_end])
                } else {
                    found.placeholders.push(Placeholder { name: sql[at + 1..name_end].to_owned(), offset: at });
                    name_end
                }
            }
            b'?' => {
                found.placeholders.push(Placeholder { name: String::new(), offset: at });
                at + 1
            }
            b';' => {
                found.end = found.end.min(at);
                at + 1
            }
            byte if is_word(byte) => word_end(bytes, at, true),
            _ => at + 1,
        };
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The end of a word that starts at `at`; in names a `$` may follow the first character.
fn word_end(bytes: &[u8], at: usize, dollars: bool) -> usize {
    let is_in = |byte: &u8| is_word(*byte) || (dollars && *byte == b'$');
    bytes[at..].iter().position(|byte| !is_in(byte)).map_or(bytes.len(), |length| at + length)
}

fn after(sql: &str, from: usize, end: &str) -> usize {
    sql.get(from..).and_then(|rest| rest.find(end)).map_or(sql.len(), |found| from + found + end.len())
}

fn after_quoted(bytes: &[u8], open: usize, quote: u8, escapes: bool) -> usize {
    let mut at = open + 1;
    while at < bytes.len() {
        if escapes && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at] != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    bytes.len()
}

fn after_comment(bytes: &[u8], open: usize) -> usize {
    let (mut at, mut depth) = (open, 0_usize);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Vec<String> {
        scan(sql).placeholders.into_iter().map(|p| p.name).collect()
    }

    #[test]
    fn parameters_are_found_where_sql_has_them_and_nowhere_else() {
        for (sql, expected) in [
            ("SELECT $a, $b_1+$a", vec!["a", "b_1", "a"]),
            ("SELECT '$a', '''$b', \"$c\", $d", vec!["d"]),
            ("SELECT E'\\'$a', $b", vec!["b"]),
            ("SELECT $$ $a $$, $t$ $b $$ $t$, $c", vec!["c"]),
            ("SELECT a$b, $c -- $d\n, $e", vec!["c", "e"]),
            ("SELECT /* $a /* $b */ $c */ $d", vec!["d"]),
            ("SELECT ?, $1", vec!["", "1"]),
            ("SELECT 'open $a", vec![]),
            ("SELECT /* open $a", vec![]),
            ("SELECT $t$ open $a", vec![]),
            ("SELECT $", vec![""]),
            ("SELECT é$a, 'é'||$b", vec!["b"]),
        ] {
            assert_eq!(names(sql), expected, "{sql}");
        }
    }

    #[test]
    fn statement_ends_at_its_semicolon() {
        assert_eq!(scan("SELECT ';' ; -- x").end, 11);
        assert_eq!(scan("SELECT 1").end, 8);
        for (sql, more) in [
            ("SELECT 1; -- x\n/* y */ ;\n", None),
            ("SELECT 1; SELECT 2", Some(10)),
            ("SELECT 1; /* ; */ 'x'", Some(18)),
            ("SELECT ';' -- ; x", None),
        ] {
            assert_eq!(scan(sql).more, more, "{sql}");
        }
    }
}
