//! Why a source can't be read.

use std::io;

use crate::domain::limits::INFLATE_RATIO_MAX;

/// A source that is unreadable as a whole; no rows come from it. Offsets count bytes of the decompressed source.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The store failed, or the object changed or ended early; contains the store's error.
    #[error("`{key}`: {source}")]
    Io {
        key: String,
        #[source]
        source: io::Error,
    },
    #[error(
        "`{key}`: the {format} data ends too early, after {offset} decompressed bytes; was it uploaded completely?"
    )]
    Truncated { key: String, format: &'static str, offset: u64 },
    #[error("`{key}`: the {format} data is damaged after {offset} decompressed bytes: {reason}")]
    Corrupt { key: String, format: &'static str, offset: u64, reason: String },
    #[error(
        "`{key}`: {stored} stored bytes inflate to more than {offset}, expected at most {} times as much",
        INFLATE_RATIO_MAX
    )]
    InflatesTooMuch { key: String, stored: u64, offset: u64 },
    #[error("`{key}`: expected {expected} by its extension, found {found}")]
    WrongMagic { key: String, expected: &'static str, found: &'static str },
    #[error("`{key}`: sources in encoding `{encoding}` can't be read")]
    Undecodable { key: String, encoding: &'static str },
    #[error("`{key}` line {line}: a quote in the header is never closed")]
    HeaderUnclosedQuote { key: String, line: u64 },
    #[error(
        "`{key}` line {line}: the header is longer than `record_bytes_max` ({bytes_max} bytes); check for \
         an unclosed quote, and check `record_terminator` and `encoding`"
    )]
    HeaderTooLong { key: String, line: u64, bytes_max: u64 },
    #[error("`{key}` line {line}: the header is not valid `{encoding}` at byte offset {offset}")]
    HeaderEncoding { key: String, line: u64, offset: u64, encoding: &'static str },
    #[error("`{key}` line {line}: found a CR within the header; if lines end in it, set `record_terminator` to `cr`")]
    HeaderLoneCr { key: String, line: u64 },
    #[error("`{key}` line {line}: found lines that end in a lone CR; set `record_terminator` to `cr`")]
    LoneCr { key: String, line: u64 },
}
