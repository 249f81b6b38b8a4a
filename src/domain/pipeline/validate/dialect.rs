//! The dialect of a mapping's files: single values and conflicts between them.

use super::report::{Pointer, Report};
use crate::domain::limits::DELIMITER_BYTES_MAX;
use crate::domain::pipeline::Dialect;
use crate::domain::pipeline::document::CsvDocument;
use crate::domain::problem::ProblemKind::{Duplicate, InvalidValue, Limit};
use crate::domain::text::{did_you_mean, quoted, suggest};

/// Encodings to suggest; the standard has some two hundred labels.
const COMMON_ENCODINGS: [&str; 12] = [
    "utf-8",
    "utf-16le",
    "utf-16be",
    "windows-1252",
    "windows-1251",
    "iso-8859-1",
    "iso-8859-15",
    "latin1",
    "shift_jis",
    "euc-jp",
    "gbk",
    "big5",
];

/// Resolves the dialect; values with problems are replaced by their defaults.
pub(super) fn resolve(csv: &CsvDocument, at: &Pointer, report: &mut Report) -> Dialect {
    let defaults = CsvDocument::default();
    let delimiter_at = at.key("delimiter");
    let delimiter = Some(&csv.delimiter)
        .filter(|text| check_delimiter(text, &delimiter_at, report) && !report.is_replaced(&delimiter_at));
    let decimal_at = at.key("decimal");
    let decimal = number_byte(&csv.decimal, &decimal_at, report).filter(|_| !report.is_replaced(&decimal_at));
    let byte = |name: &str, text: &Option<String>, report: &mut Report| {
        text.as_deref().and_then(|text| single_byte(text, &at.key(name), report))
    };
    let dialect = Dialect {
        quote: byte("quote", &csv.quote, report),
        escape: byte("escape", &csv.escape, report),
        comment: byte("comment", &csv.comment, report),
        decimal: decimal.unwrap_or(b'.'),
        thousands: csv.thousands.as_deref().and_then(|text| number_byte(text, &at.key("thousands"), report)),
        delimiter: delimiter.unwrap_or(&defaults.delimiter).clone().into_bytes(),
        quotes: csv.quotes.into(),
        header: csv.header,
        width: csv.width.and_then(|width| usize::try_from(width).ok()),
        skip_rows: csv.skip_rows,
        skip_rows_after_header: csv.skip_rows_after_header,
        skip_footer_rows: csv.skip_footer_rows,
        footer_values: csv.footer_values.as_ref().map(|values| tokens(values, &at.key("footer_values"), report)),
        record_terminator: csv.record_terminator.into(),
        blank_lines: csv.blank_lines.into(),
        encoding: encoding(&csv.encoding, &at.key("encoding"), report),
        null_values: tokens(&csv.null_values, &at.key("null_values"), report),
        quoted_nulls: csv.quoted_nulls,
        trim: csv.trim,
        true_values: tokens(&csv.true_values, &at.key("true_values"), report),
        false_values: tokens(&csv.false_values, &at.key("false_values"), report),
        ragged_rows: csv.ragged_rows.into(),
        record_bytes_max: csv.record_bytes_max,
    };
    let known = Known {
        delimiter: delimiter.map(String::as_bytes),
        quote: dialect.quote.filter(|_| !report.is_replaced(&at.key("quote"))),
        decimal,
    };
    check_collisions(csv, &dialect, &known, at, report);
    dialect
}

fn check_delimiter(text: &str, at: &Pointer, report: &mut Report) -> bool {
    let why = if text.is_empty() {
        (InvalidValue, format!("expected 1 to {DELIMITER_BYTES_MAX} bytes, found an empty string"))
    } else if text.len() > DELIMITER_BYTES_MAX {
        let message = format!("{} has {} bytes, expected 1 to {DELIMITER_BYTES_MAX}", quoted(text), text.len());
        (Limit, message)
    } else if text.contains(['\n', '\r']) {
        (InvalidValue, "a line break ends a record and can't be the delimiter".into())
    } else {
        return true;
    };
    report.push(why.0, at, why.1);
    false
}

fn single_byte(text: &str, at: &Pointer, report: &mut Report) -> Option<u8> {
    let [byte] = text.as_bytes() else {
        report.push(InvalidValue, at, format!("expected one ASCII character, found {}", quoted(text)));
        return None;
    };
    if matches!(byte, b'\n' | b'\r') {
        report.push(InvalidValue, at, "expected one ASCII character that is not a line break");
        return None;
    }
    Some(*byte)
}

/// A byte within numbers: no digit, sign or letter, which have their own meaning there.
fn number_byte(text: &str, at: &Pointer, report: &mut Report) -> Option<u8> {
    let byte = single_byte(text, at, report)?;
    if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-') || byte.is_ascii_control() {
        report.push(InvalidValue, at, format!("expected a character such as `.`, `,` or `'`, found {}", quoted(text)));
        return None;
    }
    Some(byte)
}

fn encoding(label: &str, at: &Pointer, report: &mut Report) -> &'static encoding_rs::Encoding {
    match encoding_rs::Encoding::for_label(label.as_bytes()) {
        Some(encoding) if encoding != encoding_rs::REPLACEMENT => encoding,
        _ => {
            let hint = did_you_mean(suggest(label, COMMON_ENCODINGS));
            let hint = if hint.is_empty() { ", such as `utf-8` or `windows-1252`".into() } else { hint };
            let message = format!("{} is not a label of the WHATWG Encoding Standard{hint}", quoted(label));
            report.push(InvalidValue, at, message);
            encoding_rs::UTF_8
        }
    }
}

fn tokens(tokens: &[String], at: &Pointer, report: &mut Report) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(tokens.len());
    for (index, token) in tokens.iter().enumerate() {
        // Items with problems were replaced by empty ones.
        if kept.contains(token) {
            report.push(Duplicate, &at.index(index), format!("{} is listed twice", quoted(token)));
        } else if !report.is_replaced(&at.index(index)) {
            kept.push(token.clone());
        }
    }
    kept
}

/// Values that must not collide with others; `None` for a default that only replaces an invalid value.
struct Known<'a> {
    delimiter: Option<&'a [u8]>,
    quote: Option<u8>,
    decimal: Option<u8>,
}

fn check_collisions(csv: &CsvDocument, dialect: &Dialect, known: &Known<'_>, at: &Pointer, report: &mut Report) {
    let default = CsvDocument::default();
    let within_delimiter =
        |byte: Option<u8>| byte.zip(known.delimiter).is_some_and(|(byte, delimiter)| delimiter.contains(&byte));
    if within_delimiter(known.quote) {
        // Reported at whichever of the two the document sets.
        let name = if csv.delimiter == default.delimiter { "quote" } else { "delimiter" };
        report.push(
            InvalidValue,
            &at.key(name),
            format!("the delimiter {} contains the quote", quoted(&csv.delimiter)),
        );
    }
    if dialect.escape.is_some() && csv.quote.is_none() {
        report.push(InvalidValue, &at.key("escape"), "there is nothing to escape, since `quote` is null");
    }
    if dialect.escape.is_some() && dialect.escape == known.quote {
        let message = "the escape is the quote; for doubled quotes leave `escape` null";
        report.push(InvalidValue, &at.key("escape"), message);
    }
    if within_delimiter(dialect.escape) {
        report.push(InvalidValue, &at.key("escape"), "the escape is part of the delimiter");
    }
    for (name, other) in [("quote", known.quote), ("escape", dialect.escape)] {
        if dialect.comment.is_some() && dialect.comment == other {
            report.push(InvalidValue, &at.key("comment"), format!("the comment mark is the {name}"));
        }
    }
    if within_delimiter(dialect.comment) {
        report.push(InvalidValue, &at.key("comment"), "the comment mark is part of the delimiter");
    }
    if dialect.thousands.is_some() && dialect.thousands == known.decimal {
        let message = format!("{} is also the decimal mark", quoted(&csv.decimal));
        report.push(InvalidValue, &at.key("thousands"), message);
    }
    if csv.header && csv.width.is_some() {
        let message = "a record has as many cells as the header; `width` is for files without one (`header` is false)";
        report.push(InvalidValue, &at.key("width"), message);
    }
    if !csv.header && csv.skip_rows_after_header > 0 {
        let message = "there is no header to come after, since `header` is false; use `skip_rows`";
        report.push(InvalidValue, &at.key("skip_rows_after_header"), message);
    }
    if csv.footer_values.is_some() && csv.skip_footer_rows == 0 {
        let message = "no footer is skipped, since `skip_footer_rows` is 0; set it to the number of records of the longest footer";
        report.push(InvalidValue, &at.key("footer_values"), message);
    }
    for (index, token) in csv.false_values.iter().enumerate() {
        if dialect.true_values.contains(token) {
            let at = at.key("false_values").index(index);
            report.push(Duplicate, &at, format!("{} is also one of `true_values`", quoted(token)));
        }
    }
}
