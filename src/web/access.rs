//! Parses what handlers take from a request: path and query parameters, preconditions.

use crate::domain::layout::{check_stored_key, parse_key, parse_new_key};
use crate::domain::name::Slug;
use crate::domain::table_log::history::AsOf;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{ETag, ObjectMeta, Precondition};

/// The paths that serve data.
pub const API: &[&str] = &["api"];

/// Parses the path parameter `name` as a slug.
///
/// # Errors
/// `invalid_slug`.
pub fn slug_param(request: &Request, name: &str) -> Result<Slug, ApiError> {
    slug(request.param(name))
}

/// Parses a slug.
///
/// # Errors
/// `invalid_slug`.
pub fn slug(text: &str) -> Result<Slug, ApiError> {
    Slug::parse(text).map_err(|error| ApiError::new(ErrorCode::InvalidSlug, error.to_string()))
}

/// Parses an object key: normalised to NFC, without traversal.
///
/// # Errors
/// `invalid_key`.
pub fn key(text: &str) -> Result<String, ApiError> {
    parse_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))
}

/// Parses the key of a new object: one that an export can contain.
///
/// # Errors
/// `invalid_key`.
pub fn new_key(text: &str) -> Result<String, ApiError> {
    parse_new_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))
}

/// Parses a key prefix, with or without a trailing `/`; empty for all keys.
///
/// # Errors
/// `invalid_key`.
pub fn prefix(text: &str) -> Result<String, ApiError> {
    match text.strip_suffix('/') {
        None if text.is_empty() => Ok(String::new()),
        None => key(text),
        Some(folder) => key(folder).map(|folder| format!("{folder}/")),
    }
}

/// Checks a prefix of keys that other programs may have stored.
///
/// # Errors
/// `invalid_key`.
pub fn check_prefix(text: &str) -> Result<(), ApiError> {
    if text.is_empty() {
        return Ok(());
    }
    check_stored_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))
}

/// A required query parameter.
///
/// # Errors
/// `invalid_request`.
pub fn required_query<'a>(request: &'a Request, name: &str) -> Result<&'a str, ApiError> {
    optional_query(request, name)?
        .ok_or_else(|| ApiError::new(ErrorCode::InvalidRequest, format!("missing query parameter `{name}`")))
}

/// An optional query parameter.
///
/// # Errors
/// `invalid_request` if it is given twice.
pub fn optional_query<'a>(request: &'a Request, name: &str) -> Result<Option<&'a str>, ApiError> {
    let mut values = request.query().all(name);
    let first = values.next();
    if values.next().is_some() {
        return Err(ApiError::new(ErrorCode::InvalidRequest, format!("query parameter `{name}` is given twice")));
    }
    Ok(first)
}

/// Describes `as_of`.
pub const AS_OF: &str = "an RFC 3339 time, or the sequence of a commit: the table as it was; see `keep_history`";

/// The query parameter `as_of`.
///
/// # Errors
/// `invalid_request`.
pub fn as_of_query(request: &Request) -> Result<Option<AsOf>, ApiError> {
    optional_query(request, "as_of")?.map(as_of).transpose()
}

/// Parses a version of a table.
///
/// # Errors
/// `invalid_request`.
pub fn as_of(text: &str) -> Result<AsOf, ApiError> {
    AsOf::parse(text).ok_or_else(|| {
        let message = format!("`as_of` is `{}`, expected an RFC 3339 time or the sequence of a commit", clipped(text));
        ApiError::new(ErrorCode::InvalidRequest, message)
    })
}

/// Rejects unknown query parameters, for routes where ignoring a misspelt one would do something unintended.
///
/// # Errors
/// `invalid_request`.
pub fn only_query(request: &Request, known: &[&str]) -> Result<(), ApiError> {
    match request.query().iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("unknown query parameter `{}`, expected `{}`", clipped(name), known.join("` or `"));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// A boolean query parameter, case-insensitive: `1`, `true` or just the name; `0` or `false`; false if missing.
///
/// # Errors
/// `invalid_request`.
pub fn flag_query(request: &Request, name: &str) -> Result<bool, ApiError> {
    match optional_query(request, name)? {
        None => Ok(false),
        Some(text) if text == "0" || text.eq_ignore_ascii_case("false") => Ok(false),
        Some(text) if text.is_empty() || text == "1" || text.eq_ignore_ascii_case("true") => Ok(true),
        Some(other) => {
            let message =
                format!("query parameter `{name}` is `{}`, expected `true` or `1`, `false` or `0`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// An integer query parameter within bounds.
///
/// # Errors
/// `invalid_request`.
pub fn number_query(
    request: &Request,
    name: &str,
    bounds: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, ApiError> {
    let Some(text) = optional_query(request, name)? else { return Ok(None) };
    match text.parse() {
        Ok(number) if bounds.contains(&number) => Ok(Some(number)),
        Ok(_) | Err(_) => {
            let (low, high) = bounds.into_inner();
            let message = format!("query parameter `{name}` is `{}`, expected {low} to {high}", clipped(text));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// The precondition of a request, from `If-Match` and, with [`if_match_or_none`], `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    Anything,
    /// `If-Match: *`.
    Existing,
    /// One of these tags.
    Tags(Vec<ETag>),
    /// `If-None-Match: *`.
    Absent,
}

/// Parses the request header `If-Match`; several fields form one list. Tags compare by their text alone: proxies weaken
/// tags, and people omit the quotes.
///
/// # Errors
/// `invalid_request` if it is malformed.
pub fn if_match(request: &Request) -> Result<IfMatch, ApiError> {
    let fields: Vec<_> = request.headers().all("if-match").map(String::from_utf8_lossy).collect();
    if fields.is_empty() {
        return Ok(IfMatch::Anything);
    }
    let text = fields.join(",");
    if text.trim() == "*" {
        return Ok(IfMatch::Existing);
    }
    let tag = |part: &str| {
        let part = part.trim();
        let part = part.strip_prefix("W/").unwrap_or(part);
        let quoted = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_.:/+=".contains(c);
        let is_tag = quoted.map_or_else(|| part.chars().all(is_bare), |inner| !inner.contains('"'));
        let tag = quoted.unwrap_or(part);
        (is_tag && !tag.is_empty()).then(|| ETag(tag.to_owned()))
    };
    let tags: Option<Vec<ETag>> = text.split(',').map(tag).collect();
    tags.map(IfMatch::Tags).ok_or_else(|| {
        let message = format!("header `If-Match` is `{}`, expected `*` or an entity tag", clipped(&text));
        ApiError::new(ErrorCode::InvalidRequest, message)
    })
}

/// Parses the request headers `If-Match` and `If-None-Match: *`, at most one of which may be given.
///
/// # Errors
/// `invalid_request` if one is malformed, both are given, or `If-None-Match` lists tags.
pub fn if_match_or_none(request: &Request) -> Result<IfMatch, ApiError> {
    let matching = if_match(request)?;
    let fields: Vec<_> = request.headers().all("if-none-match").map(String::from_utf8_lossy).collect();
    if fields.is_empty() {
        return Ok(matching);
    }
    let text = fields.join(",");
    let refused = |message| Err(ApiError::new(ErrorCode::InvalidRequest, message));
    if text.trim() != "*" {
        return refused(format!("header `If-None-Match` is `{}`, expected `*`", clipped(&text)));
    }
    match matching {
        IfMatch::Anything => Ok(IfMatch::Absent),
        IfMatch::Existing | IfMatch::Tags(_) | IfMatch::Absent => {
            refused("headers `If-Match` and `If-None-Match` can't be combined".to_owned())
        }
    }
}

impl IfMatch {
    /// The precondition of a write that replaces `current`.
    ///
    /// # Errors
    /// `precondition_failed` if `current` doesn't match.
    pub fn precondition(&self, current: Option<&ObjectMeta>) -> Result<Precondition, ApiError> {
        let failed = || ApiError::of(ErrorCode::PreconditionFailed);
        match self {
            Self::Anything => Ok(Precondition::None),
            Self::Absent if current.is_none() => Ok(Precondition::IfNoneMatch),
            Self::Absent => Err(failed()),
            Self::Existing => {
                let tag = current.and_then(|meta| meta.etag.clone()).ok_or_else(failed)?;
                Ok(Precondition::IfMatch(tag))
            }
            Self::Tags(tags) => {
                let tag = current.and_then(|meta| meta.etag.clone()).ok_or_else(failed)?;
                if tags.contains(&tag) { Ok(Precondition::IfMatch(tag)) } else { Err(failed()) }
            }
        }
    }
}

/// A tag as a header value.
pub fn quoted(tag: &ETag) -> String {
    format!("\"{}\"", tag.0)
}

/// Adds an object's tag, if it has one, to a response about the object.
pub fn tagged(response: Response, tag: Option<&ETag>) -> Response {
    match tag {
        Some(tag) => response.with_header("ETag", quoted(tag)),
        None => response,
    }
}

/// The start of user input, for a message.
pub fn clipped(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    text.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> ObjectMeta {
        let etag = Some(ETag(text.to_owned()));
        ObjectMeta { key: "k".into(), size: 1, etag, modified: chrono::DateTime::UNIX_EPOCH }
    }

    #[test]
    fn precondition_matches_the_current_tag() {
        let one = IfMatch::Tags(vec![ETag("a".into()), ETag("b".into())]);
        assert_eq!(one.precondition(Some(&tag("b"))).unwrap(), Precondition::IfMatch(ETag("b".into())));
        for (asked, there) in [(&one, Some(tag("c"))), (&one, None), (&IfMatch::Existing, None)] {
            assert_eq!(asked.precondition(there.as_ref()).unwrap_err().code(), ErrorCode::PreconditionFailed);
        }
        assert_eq!(IfMatch::Anything.precondition(None).unwrap(), Precondition::None);
        assert_eq!(IfMatch::Absent.precondition(None).unwrap(), Precondition::IfNoneMatch);
        assert!(IfMatch::Absent.precondition(Some(&tag("b"))).is_err());
    }
}
