//! Parses a document's text: syntax, duplicate members, and spans of nodes.

use serde_json::{Number, Value};

use super::report::Pointer;
use crate::domain::limits::CONFIG_VALUES_MAX;
use crate::domain::problem::{Problem, ProblemKind};
use crate::domain::text::has_json_values_at_most;

/// A span of a document's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextSpan {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// In characters, at least 1; a node of several lines is as wide as its first character.
    pub width: usize,
}

/// Longest pointer to a node, in bytes: problems contain it, and one is built for each node. Valid documents stay below
/// half of it.
const POINTER_BYTES_MAX: usize = 1_024;

/// Parses strict JSON (a leading byte order mark is skipped). Whole numbers written as floats become integers, as in JSON
/// Schema.
///
/// # Errors
/// One problem of kind `syntax`, or `limit` where the document is nested too deeply or has too long names.
pub(super) fn read(text: &str) -> Result<Value, Problem> {
    let body = body(text);
    if body.trim().is_empty() {
        return Err(Problem::new(ProblemKind::Syntax, "", "the document is empty, expected a JSON object"));
    }
    if !has_json_values_at_most(body.as_bytes(), CONFIG_VALUES_MAX) {
        let message = format!("expected at most {CONFIG_VALUES_MAX} values and brackets, found more");
        return Err(Problem::new(ProblemKind::Limit, "", message));
    }
    let mut value: Value = serde_json::from_str(body).map_err(|error| {
        let whole = error.to_string();
        let message = whole.split(" at line ").next().unwrap_or(&whole);
        let kind = if message.starts_with("recursion limit") { ProblemKind::Limit } else { ProblemKind::Syntax };
        let span = error_span(body, &error);
        Problem::new(kind, "", format!("line {} column {}: {message}", span.line, span.column))
    })?;
    match normalize_numbers(&mut value, 0) {
        true => Ok(value),
        false => {
            let message = format!("the path of a node is longer than {POINTER_BYTES_MAX} bytes");
            Err(Problem::new(ProblemKind::Limit, "", message))
        }
    }
}

/// The document as it is, for a look at single members; null if it is not JSON, or far too large.
pub fn unchecked(text: &str) -> Value {
    let body = body(text);
    match has_json_values_at_most(body.as_bytes(), CONFIG_VALUES_MAX) {
        true => serde_json::from_str(body).unwrap_or_default(),
        false => Value::Null,
    }
}

/// The span of the syntax error, if there is one.
pub(super) fn syntax_span(text: &str) -> Option<TextSpan> {
    let body = body(text);
    serde_json::from_str::<serde::de::IgnoredAny>(body).err().map(|error| error_span(body, &error))
}

fn error_span(body: &str, error: &serde_json::Error) -> TextSpan {
    let line = body.split('\n').nth(error.line().saturating_sub(1)).unwrap_or("");
    let column = line.char_indices().take_while(|(at, _)| at + 1 < error.column().max(1)).count() + 1;
    TextSpan { line: error.line().max(1), column, width: 1 }
}

fn body(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Makes whole numbers integers; false if some node's pointer is longer than [`POINTER_BYTES_MAX`]. `pointer`: length of
/// that of `value`.
fn normalize_numbers(value: &mut Value, pointer: usize) -> bool {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|f| number.is_f64() && f.fract() == 0.0 && f.abs() < 9e15) {
                *number = Number::from(float as i64);
            }
            true
        }
        Value::Array(items) => items.iter_mut().all(|item| normalize_numbers(item, pointer + 1)),
        Value::Object(members) => members.iter_mut().all(|(name, member)| {
            let pointer = pointer + 1 + name.len();
            pointer <= POINTER_BYTES_MAX && normalize_numbers(member, pointer)
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// A node of a JSON text.
pub(super) struct VisitedNode<'a> {
    pub(super) pointer: &'a Pointer,
    /// Byte range of the member's name, with its quotes.
    pub(super) name: Option<(usize, usize)>,
    /// Byte range of the value.
    pub(super) value: (usize, usize),
    /// Whether an object had a member of this name before.
    pub(super) repeated: bool,
}

/// Calls `visit` for every node of `text`, inner ones first, but for those behind too long names
/// ([`POINTER_BYTES_MAX`]). `text` must be JSON; of other text, a part is visited.
pub(super) fn walk(text: &str, visit: &mut dyn FnMut(VisitedNode<'_>)) {
    let at = text.len() - body(text).len();
    let mut walker = Walker { text, at, visit };
    walker.node(Some(&Pointer::default()), None, false, 0);
}

/// Nesting that `serde_json` accepts.
const DEPTH_MAX: usize = 128;

struct Walker<'a> {
    text: &'a str,
    at: usize,
    visit: &'a mut dyn FnMut(VisitedNode<'_>),
}

impl Walker<'_> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    /// `pointer`: `None` below a name that is too long.
    fn node(
        &mut self,
        pointer: Option<&Pointer>,
        name: Option<(usize, usize)>,
        repeated: bool,
        depth: usize,
    ) -> Option<()> {
        let first = self.peek()?;
        let start = self.at;
        if depth > DEPTH_MAX {
            return None;
        }
        match first {
            b'{' => self.object(pointer, depth)?,
            b'[' => self.array(pointer, depth)?,
            b'"' => self.string(),
            _ => self.scalar(),
        }
        if let Some(pointer) = pointer {
            (self.visit)(VisitedNode { pointer, name, value: (start, self.at), repeated });
        }
        Some(())
    }

    fn object(&mut self, pointer: Option<&Pointer>, depth: usize) -> Option<()> {
        let mut names = std::collections::HashSet::new();
        self.at += 1;
        loop {
            match self.peek()? {
                b'}' => break self.at += 1,
                b'"' => {
                    let start = self.at;
                    self.string();
                    let span = (start, self.at);
                    let name: String = serde_json::from_str(self.text.get(start..self.at)?).ok()?;
                    if self.peek()? == b':' {
                        self.at += 1;
                    }
                    let repeated = !names.insert(name.clone());
                    let around = pointer.filter(|around| around.as_str().len() + name.len() < POINTER_BYTES_MAX);
                    let pointer = around.map(|around| around.key(&name));
                    self.node(pointer.as_ref(), Some(span), repeated, depth + 1)?;
                }
                _ => self.at += 1,
            }
        }
        Some(())
    }

    fn array(&mut self, pointer: Option<&Pointer>, depth: usize) -> Option<()> {
        self.at += 1;
        let mut index = 0;
        loop {
            match self.peek()? {
                b']' => break self.at += 1,
                b',' => self.at += 1,
                _ => {
                    let pointer = pointer.map(|around| around.index(index));
                    self.node(pointer.as_ref(), None, false, depth + 1)?;
                    index += 1;
                }
            }
        }
        Some(())
    }

    fn string(&mut self) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(&byte) = bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(bytes.len());
    }

    fn scalar(&mut self) {
        let bytes = self.text.as_bytes();
        let start = self.at;
        while bytes.get(self.at).is_some_and(|b| !b.is_ascii_whitespace() && !b",]}".contains(b)) {
            self.at += 1;
        }
        // Skips at least one byte of text that is not JSON, so that the walk ends.
        self.at = self.at.max(start + 1).min(bytes.len());
    }
}

/// The span of a byte range of `text`.
pub(super) fn span((start, end): (usize, usize), text: &str) -> TextSpan {
    let before = text.get(..start).unwrap_or("");
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = body(&before[line_start..]).chars().count() + 1;
    let span = text.get(start..end).unwrap_or("");
    let width = if span.contains('\n') { 1 } else { span.chars().count().max(1) };
    TextSpan { line: before.matches('\n').count() + 1, column, width }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise each node would cost as much as the name.
    #[test]
    fn nodes_behind_too_long_names_are_not_visited() {
        let mut seen = Vec::new();
        let long = "k".repeat(POINTER_BYTES_MAX);
        walk(&format!("{{\"a\":[1],\"{long}\":[1,{{\"b\":2}}],\"c\":1}}"), &mut |node| {
            seen.push(node.pointer.as_str().to_owned());
        });
        assert_eq!(seen, ["/a/0", "/a", "/c", ""]);
    }

    #[test]
    fn names_that_each_problem_would_repeat_are_refused() {
        let long = "k".repeat(POINTER_BYTES_MAX);
        let deep = (0..60).fold("1".to_owned(), |inner, _| format!("{{\"{}\":{inner}}}", "k".repeat(20)));
        for text in [format!("{{\"{long}\":[1,1,1]}}"), format!("[{{\"a\":{{\"{long}\":1}}}}]"), deep] {
            assert_eq!(read(&text).unwrap_err().kind, ProblemKind::Limit);
        }
        assert!(read(&format!("{{\"{}\":[1]}}", &long[1..])).is_ok());
    }
}
