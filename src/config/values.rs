//! Parsers of single values. The error is the expected form.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::env::Expected;

/// Text without whitespace.
pub(super) fn word(text: &str) -> Result<String, Expected> {
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("text without spaces".into());
    }
    Ok(text.to_owned())
}

/// A bucket's name.
///
/// # Errors
/// The expected form.
pub fn bucket(text: &str) -> Result<String, Expected> {
    let ok = (3..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    if ok {
        Ok(text.to_owned())
    } else {
        Err("3 to 63 of a-z, 0-9, `-` and `.`, starting and ending with a letter or \
     digit"
            .into())
    }
}

/// A whole number within `range`.
pub(super) fn number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, Expected>
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = digits.then(|| text.parse().ok()).flatten().filter(|n| range.contains(n));
        number.ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Milliseconds within `range`.
pub(super) fn millis(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<Duration, Expected> {
    let parse = number(range);
    move |text| parse(text).map(Duration::from_millis).map_err(|expected| format!("{expected} (milliseconds)"))
}

/// Seconds within `range`.
pub(super) fn seconds(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<Duration, Expected> {
    let parse = number(range);
    move |text| parse(text).map(Duration::from_secs).map_err(|expected| format!("{expected} (seconds)"))
}

/// Seconds within `range`; 0: never.
pub(super) fn interval(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<Option<Duration>, Expected> {
    let parse = number(range);
    move |text| match text {
        "0" => Ok(None),
        text => parse(text)
            .map(|found| Some(Duration::from_secs(found)))
            .map_err(|expected| format!("{expected} (seconds), or 0 for never")),
    }
}

/// An absolute path.
pub(super) fn absolute_path(text: &str) -> Result<PathBuf, Expected> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("an absolute path".into()) }
}

/// An origin: `http` or `https`, host, and optionally a port; a trailing `/` is dropped.
pub(super) fn origin(text: &str) -> Result<String, Expected> {
    let url = http_url(text)?;
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    if host.contains('/') {
        Err("an origin such as `https://lake.example.org`, without a path".into())
    } else {
        Ok(url)
    }
}

/// A URL with scheme `http` or `https`, without user, query and fragment; a trailing `/` is dropped.
pub(super) fn http_url(text: &str) -> Result<String, Expected> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let authority = rest.map_or("", |rest| rest.split('/').next().unwrap_or_default());
    let ok = !authority.is_empty() && !text.contains(['@', '?', '#']) && !text.contains(char::is_whitespace);
    let expected = "a URL that starts with `http://` or `https://`, without user, `?` and `#`";
    if ok { Ok(text.trim_end_matches('/').to_owned()) } else { Err(expected.into()) }
}
