//! Classifies DuckDB's errors and rewords their messages for users.
//!
//! Invariant: no message of [`plain`] has a stack trace, or a path of this machine or of DuckDB's build machine.

use crate::ports::expressions::ExpressionFailure;

/// Longest message, in characters.
const MESSAGE_CHARS_MAX: usize = 600;
/// Replaces DuckDB's message, which names a setting that can't be changed.
const TOO_DEEP: &str = "nested too deep; move parts of it into `WITH`";

/// Prefixes of the parts about DuckDB's code.
const TRACES: &[&str] = &["Stack Trace", "This error signals an assertion failure"];
/// Kinds of error that quote values, which may look like paths.
const VALUE_ERRORS: &[&str] = &["Conversion", "Invalid Input", "Out of Range"];
/// Replaces a path of this machine.
const PATH: &str = "…";
/// Separates the kind of an error from its message.
const SEPARATOR: &str = " Error: ";
/// Longest kind, in bytes.
const KIND_BYTES_MAX: usize = 40;
const OUT_OF_MEMORY: &str = "Out of Memory";
/// Kinds of error that aren't about values or the text.
const ENGINE_ERRORS: &[&str] = &[OUT_OF_MEMORY, "INTERNAL", "FATAL", "IO", "Interrupt", "INTERRUPT", "Permission"];

/// A failure of DuckDB itself, not of a text or a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineFailure {
    #[error("DuckDB needs more memory than its limit")]
    OutOfMemory,
    #[error("{0}")]
    Other(String),
}

impl EngineFailure {
    /// Classifies DuckDB's `message`, raised during the operation `what`.
    pub fn of(what: &str, message: &str) -> Self {
        match is_out_of_memory(message) {
            true => Self::OutOfMemory,
            false => Self::Other(format!("{what}: {}", plain(message))),
        }
    }
}

impl From<EngineFailure> for ExpressionFailure {
    fn from(failure: EngineFailure) -> Self {
        Self(failure.to_string())
    }
}

/// The kind of a message, such as `Binder`, if it has one.
pub fn kind(message: &str) -> Option<&str> {
    split_kind(message).map(|(kind, _)| kind)
}

fn split_kind(message: &str) -> Option<(&str, &str)> {
    message.split_once(SEPARATOR).filter(|(kind, _)| kind.len() < KIND_BYTES_MAX && !kind.contains('\n'))
}

/// Whether a message reports a lack of memory. Messages that quote values never do.
pub fn is_out_of_memory(message: &str) -> bool {
    match kind(message) {
        Some(OUT_OF_MEMORY) => true,
        Some(kind) if VALUE_ERRORS.contains(&kind) => false,
        Some(_) | None => message.contains("bad_alloc") || message.contains("failed to allocate"),
    }
}

/// Whether a message is about the engine, not about a value or the text.
pub fn is_engine_error(message: &str) -> bool {
    kind(message).is_none_or(|kind| ENGINE_ERRORS.contains(&kind)) || is_out_of_memory(message)
}

/// DuckDB's message without its kind, the quoted query (which is generated), the end of a long list, stack traces and
/// paths.
pub fn plain(message: &str) -> String {
    let message = message.split("\n\nLINE ").next().unwrap_or_default();
    let message = TRACES.iter().fold(message, |message, trace| message.split(trace).next().unwrap_or_default());
    let (kind, message) = split_kind(message).unwrap_or(("", message));
    let message = &without_paths(message, VALUE_ERRORS.contains(&kind));
    if message.contains("max_expression_depth") {
        return TOO_DEEP.to_owned();
    }
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut text = lines.next().unwrap_or_default().to_owned();
    for (count, line) in lines.enumerate() {
        if count == 4 {
            text.push_str("; …");
            break;
        }
        text.push_str(if text.ends_with([':', '.', ';']) { " " } else { "; " });
        text.push_str(line);
    }
    if text.chars().count() > MESSAGE_CHARS_MAX {
        text = text.chars().take(MESSAGE_CHARS_MAX).chain(['…']).collect();
    }
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_ascii_lowercase() => {
            first.to_ascii_lowercase().to_string() + &text[1..]
        }
        _ => text.to_owned(),
    }
}

/// Replaces absolute paths, and those of libraries and source files. `keeps_values`: keeps absolute paths, which may be
/// values.
fn without_paths(message: &str, keeps_values: bool) -> String {
    let ends = |c: char| c.is_whitespace() || "'\"`()[]<>,;=".contains(c);
    let mut text = String::with_capacity(message.len());
    for piece in message.split_inclusive(ends) {
        let (word, end) = match piece.char_indices().next_back() {
            Some((at, c)) if ends(c) => piece.split_at(at),
            Some(_) | None => (piece, ""),
        };
        let path = word.split_once(":/").map_or(word, |(_, rest)| &word[word.len() - rest.len() - 1..]);
        let is_absolute = path.trim_start_matches('/').contains('/') && path.starts_with('/');
        let is_code = word.contains("libduckdb")
            || word.contains('/') && [".so", ".cpp", ".hpp", ".cc", ".h:", ".dylib"].iter().any(|of| word.contains(of));
        text.push_str(if is_code || (is_absolute && !keeps_values) { PATH } else { word });
        text.push_str(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_omit_kind_and_query() {
        let raw = "Conversion Error: Could not convert string 'x' to INT32\n\nLINE 1: select cast(\n  ^";
        assert_eq!(plain(raw), "could not convert string 'x' to INT32");
        assert_eq!(
            plain("Binder Error: No function.\n\tCandidate functions:\n\tf(A)\n"),
            "no function. Candidate functions: f(A)"
        );
        let raw = "Parser Error: Max expression depth limit of 1000 exceeded. Use \"SET max_expression_depth TO x\" to";
        assert_eq!(plain(raw), TOO_DEEP);
    }

    #[test]
    fn out_of_memory_is_recognized_by_kind_not_by_quoted_values() {
        for (text, expected) in [
            ("Out of Memory Error: could not allocate block of size 32.0 KiB", true),
            ("INTERNAL Error: std::bad_alloc", true),
            ("std::bad_alloc", true),
            ("Conversion Error: Could not convert string 'Out of Memory Error: bad_alloc' to INT32", false),
            ("Invalid Input Error: Out of Memory", false),
            ("IO Error: cannot read `Out of Memory`", false),
        ] {
            let failure = EngineFailure::of("evaluating", text);
            assert_eq!(failure == EngineFailure::OutOfMemory, expected, "{text}: {failure}");
        }
        for (text, expected) in [
            ("Out of Memory Error: x", true),
            ("INTERNAL Error: x", true),
            ("no kind at all", true),
            ("Conversion Error: Could not convert string 'IO Error: x' to INT32", false),
            ("Binder Error: x", false),
        ] {
            assert_eq!(is_engine_error(text), expected, "{text}");
        }
        assert_eq!(kind("Parameter Not Resolved Error: x"), Some("Parameter Not Resolved"));
        assert_eq!(kind("a text\nof lines Error: x"), None);
    }

    #[test]
    fn messages_omit_paths_of_libraries_and_sources() {
        for (raw, expected) in [
            (
                "INTERNAL Error: Attempted to access index 0 within vector of size 0\n\nStack Trace:\n\n\
                 /opt/lakemill/lib/libduckdb.so(_ZN6duckdb9ExceptionC2ENS+0x4a) [0x7f00]\n/usr/bin/lakemill(+0x1) [0x2]\n\n\
                 This error signals an assertion failure within DuckDB.",
                "attempted to access index 0 within vector of size 0",
            ),
            (
                "INTERNAL Error: Assertion triggered in file \"/build/duckdb/src/common/vector.cpp\" on line 3: a\n",
                "assertion triggered in file \"…\" on line 3: a",
            ),
            (
                "FATAL Error: failed at src/include/duckdb/common/vector.hpp:12 in ../build/libduckdb.so",
                "failed at … in …",
            ),
            (
                "Catalog Error: Extension \"/opt/.duckdb/extensions/v1.5.6/linux_amd64/x.duckdb_extension\" not found.\n\
                 Extension \"x\" is an existing extension.",
                "extension \"…\" not found. Extension \"x\" is an existing extension",
            ),
            ("IO Error: Cannot open file '/var/cache/q/t.parquet': No such file", "cannot open file '…': No such file"),
            ("IO Error: file:///var/cache/x and s3://b/k/x are none", "… and … are none"),
            ("IO Error: Could not read t/a=1/p.parquet", "could not read t/a=1/p.parquet"),
            ("Conversion Error: Could not convert string '/a/b' to INT32", "could not convert string '/a/b' to INT32"),
            ("Conversion Error: at /lib/libduckdb.so(+0x1)", "at …(+0x1)"),
            ("Binder Error: No operator a / b", "no operator a / b"),
        ] {
            assert_eq!(plain(raw), expected);
        }
        let raw = "/usr/lib/libduckdb.so: cannot open";
        assert!(!plain(raw).contains("/usr"), "{}", plain(raw));
    }
}
