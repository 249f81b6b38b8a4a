//! Just enough of Rust's grammar to tell code from comments, literals and tests. Every function keeps the text's length
//! and lines, so that an offset in its result is one in the source.

/// Blanks comments, and the contents of strings and characters.
pub fn without_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' | b'b' | b'c' if !is_word(bytes, at.wrapping_sub(1)) => match raw_string_end(bytes, at) {
                Some(end) => end,
                None => {
                    at += 1;
                    continue;
                }
            },
            b'\'' => match char_end(bytes, at) {
                Some(end) => end,
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        blank(&mut out, at, end);
        at = end;
    }
    String::from_utf8(out).expect("blanks replace whole characters")
}

/// Blanks every item under `#[cfg(test)]` or `#[cfg(all(test, …))]`. Takes text without comments and literals.
pub fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    for (at, _) in code.match_indices("#[cfg(") {
        let condition = code[at + "#[cfg(".len()..].trim_start();
        if !condition.starts_with("test)") && !condition.starts_with("all(test") {
            continue;
        }
        blank(&mut out, at, item_end(code.as_bytes(), at));
    }
    String::from_utf8(out).expect("blanks replace whole characters")
}

/// The offsets at which `word` occurs as a whole word; white space between its tokens doesn't matter.
pub fn occurrences<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let first = word.as_bytes()[0];
    (0..bytes.len()).filter(move |&at| {
        if bytes[at] != first || (is_word_byte(first) && is_word(bytes, at.wrapping_sub(1))) {
            return false;
        }
        let mut place = at;
        let mut last = b' ';
        for &wanted in word.as_bytes() {
            if !(is_word_byte(last) && is_word_byte(wanted)) {
                while bytes.get(place).is_some_and(u8::is_ascii_whitespace) {
                    place += 1;
                }
            }
            if bytes.get(place) != Some(&wanted) {
                return false;
            }
            last = wanted;
            place += 1;
        }
        !(is_word_byte(last) && is_word(bytes, place))
    })
}

/// The first segments of all paths that start at the crate's root: `crate::x`, `lakemill::x`, `crate::{x, y::z}`, and
/// as many `super::` as lead there from a module `depth` deep.
pub fn crate_paths(code: &str, depth: usize) -> Vec<(usize, String)> {
    let climb = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", "lakemill::", climb.as_str()] {
        if root.is_empty() {
            continue;
        }
        for at in occurrences(code, root) {
            let before = code[..at].trim_end();
            if before.ends_with("::") {
                continue;
            }
            let start = at + skip_tokens(&code[at..], root);
            first_segments(code, start, &mut found);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The length of `root` at the start of `code`, white space included.
fn skip_tokens(code: &str, root: &str) -> usize {
    let mut rest = root.bytes().peekable();
    for (at, byte) in code.bytes().enumerate() {
        match rest.peek() {
            None => return at,
            Some(&wanted) if wanted == byte => {
                rest.next();
            }
            Some(_) => {}
        }
    }
    code.len()
}

fn first_segments(code: &str, start: usize, found: &mut Vec<(usize, String)>) {
    let start = start + (code[start..].len() - code[start..].trim_start().len());
    let word = |at: usize| -> String { code[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    if !code[start..].starts_with('{') {
        let name = word(start);
        if name.starts_with(|c: char| c.is_lowercase()) && name != "super" {
            found.push((start, name));
        }
        return;
    }
    let (mut depth, mut fresh) = (0, false);
    for (at, c) in code[start..].char_indices().map(|(at, c)| (start + at, c)) {
        match c {
            '{' => {
                depth += 1;
                fresh = depth == 1;
            }
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return;
                }
            }
            ',' => fresh = depth == 1,
            c if c.is_whitespace() => {}
            _ if fresh => {
                let name = word(at);
                if name.starts_with(|c: char| c.is_lowercase()) && name != "self" {
                    found.push((at, name));
                }
                fresh = false;
            }
            _ => {}
        }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn is_word(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|&b| is_word_byte(b))
}

fn blank(out: &mut [u8], start: usize, end: usize) {
    for byte in &mut out[start..end] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            (b'*', Some(b'/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `r"…"`, `r#"…"#`, `br"…"`, `b"…"` or `b'…'` at `start`; none if it is not a literal.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut raw = false;
    while matches!(bytes.get(at), Some(b'r' | b'b' | b'c')) && at < start + 2 {
        raw |= bytes[at] == b'r';
        at += 1;
    }
    match bytes.get(at)? {
        b'"' if !raw => return Some(string_end(bytes, at)),
        b'\'' if !raw => return char_end(bytes, at),
        b'"' | b'#' if raw => {}
        _ => return None,
    }
    let hashes = bytes[at..].iter().take_while(|&&b| b == b'#').count();
    at += hashes;
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    at += 1;
    while at < bytes.len() {
        if bytes[at] == b'"' && bytes[at + 1..].iter().take(hashes).filter(|&&b| b == b'#').count() == hashes {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(bytes.len())
}

/// The end of a character at `start`; none if the quote begins a lifetime.
fn char_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start + 1) == Some(&b'\\') {
        let close = bytes[start + 3..].iter().position(|&b| b == b'\'')?;
        return Some(start + 3 + close + 1);
    }
    // One character of UTF-8 is up to 4 bytes.
    let length = match bytes.get(start + 1)? {
        b if *b < 0x80 => 1,
        b if *b < 0xe0 => 2,
        b if *b < 0xf0 => 3,
        _ => 4,
    };
    (bytes.get(start + 1 + length) == Some(&b'\'')).then_some(start + length + 2)
}

/// The end of the item whose attributes start at `start`: its `;`, or the brace that closes its body.
fn item_end(bytes: &[u8], start: usize) -> usize {
    let (mut braces, mut brackets) = (0usize, 0usize);
    for (at, byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && brackets == 0 && !bytes[at + 1..].trim_ascii_start().starts_with(b";") {
                    return at + 1;
                }
            }
            b';' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}
