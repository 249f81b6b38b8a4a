//! What handlers take from a request and from the stores, checked once.

use std::io::Read;

use crate::domain::layout::{check_stored_key, parse_key, parse_new_key, pipeline_prefix};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request, Response};
use crate::ports::store::{Bucket, ETag, ObjectMeta, Precondition, StoreError};

use super::Web;
use super::failure::from_store;

/// The value of `{name}` in the path as a slug.
///
/// # Errors
/// `invalid_slug`.
pub fn slug_param(request: &Request, name: &str) -> Result<Slug, ApiError> {
    slug(request.param(name))
}

/// A text as a slug.
///
/// # Errors
/// `invalid_slug`.
pub fn slug(text: &str) -> Result<Slug, ApiError> {
    Slug::parse(text).map_err(|error| ApiError::new(ErrorCode::InvalidSlug, error.to_string()))
}

/// A text as an object key: NFC, without traversal.
///
/// # Errors
/// `invalid_key`.
pub fn key(text: &str) -> Result<String, ApiError> {
    parse_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))
}

/// A text as the key of an object that is to be made: one that an export can take along.
///
/// # Errors
/// `invalid_key`.
pub fn new_key(text: &str) -> Result<String, ApiError> {
    parse_new_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))
}

/// A text as the start of keys, with or without a `/` at its end; empty for all of them.
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

/// Checks a text as the start of keys under which others may have stored.
///
/// # Errors
/// `invalid_key`.
pub fn check_prefix(text: &str) -> Result<(), ApiError> {
    if text.is_empty() {
        return Ok(());
    }
    check_stored_key(text).map_err(|error| ApiError::new(ErrorCode::InvalidKey, error.to_string()))
}

/// A parameter of the query string that must be there once.
///
/// # Errors
/// `invalid_request`.
pub fn required_query<'a>(request: &'a Request, name: &str) -> Result<&'a str, ApiError> {
    optional_query(request, name)?
        .ok_or_else(|| ApiError::new(ErrorCode::InvalidRequest, format!("the parameter `{name}` is missing")))
}

/// A parameter of the query string that may be there once.
///
/// # Errors
/// `invalid_request` if it is there twice.
pub fn optional_query<'a>(request: &'a Request, name: &str) -> Result<Option<&'a str>, ApiError> {
    let mut values = request.query().all(name);
    let first = values.next();
    if values.next().is_some() {
        return Err(ApiError::new(ErrorCode::InvalidRequest, format!("the parameter `{name}` stands twice")));
    }
    Ok(first)
}

/// Refuses parameters of the query string that the route doesn't know: for routes where one that is misspelt and so
/// ignored would do something else than what was meant.
///
/// # Errors
/// `invalid_request`.
pub fn only_query(request: &Request, known: &[&str]) -> Result<(), ApiError> {
    match request.query().iter().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("unknown parameter `{}`, expected `{}`", clipped(name), known.join("` or `"));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// A switch in the query string, whatever its case: `1`, `true` or just the name; `0` or `false`; missing is false.
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
                format!("the parameter `{name}` is `{}`, expected `true` or `1`, `false` or `0`", clipped(other));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// A whole number in the query string, within bounds.
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
            let message = format!("the parameter `{name}` is `{}`, expected {low} to {high}", clipped(text));
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// What `If-Match` asks for; `*` asks for any object. [`if_match_or_none`] takes `If-None-Match`, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    Anything,
    Existing,
    /// One of these.
    Tags(Vec<ETag>),
    /// That there is none.
    Absent,
}

/// The request header `If-Match`; several fields are one list. A tag is compared by its text alone: proxies make tags
/// weak, and people leave the quotes out.
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
        let message = format!("the header `If-Match` is `{}`, expected `*` or a tag", clipped(&text));
        ApiError::new(ErrorCode::InvalidRequest, message)
    })
}

/// The request headers `If-Match` and `If-None-Match: *`, of which one may be there.
///
/// # Errors
/// `invalid_request` if one is malformed, there are both, or `If-None-Match` names tags.
pub fn if_match_or_none(request: &Request) -> Result<IfMatch, ApiError> {
    let matching = if_match(request)?;
    let fields: Vec<_> = request.headers().all("if-none-match").map(String::from_utf8_lossy).collect();
    if fields.is_empty() {
        return Ok(matching);
    }
    let text = fields.join(",");
    let refused = |message| Err(ApiError::new(ErrorCode::InvalidRequest, message));
    if text.trim() != "*" {
        return refused(format!("the header `If-None-Match` is `{}`, expected `*`", clipped(&text)));
    }
    match matching {
        IfMatch::Anything => Ok(IfMatch::Absent),
        IfMatch::Existing | IfMatch::Tags(_) | IfMatch::Absent => {
            refused("the headers `If-Match` and `If-None-Match` exclude each other".to_owned())
        }
    }
}

impl IfMatch {
    /// The precondition of a write over what is there now.
    ///
    /// # Errors
    /// `precondition_failed` if what is there isn't what was asked for.
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

/// A tag as a header has it.
pub fn quoted(tag: &ETag) -> String {
    format!("\"{}\"", tag.0)
}

/// Adds an object's tag, if it has one, to the response that tells of the object.
pub fn tagged(response: Response, tag: Option<&ETag>) -> Response {
    match tag {
        Some(tag) => response.with_header("ETag", quoted(tag)),
        None => response,
    }
}

/// The start of a text that somebody sent, for a message.
pub fn clipped(text: &str) -> String {
    const CHARS_MAX: usize = 200;
    text.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
}

impl Web {
    /// Whether any object lies under the pipeline's prefix in any bucket.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn exists(&self, pipeline: &Slug) -> Result<bool, ApiError> {
        let prefix = pipeline_prefix(pipeline);
        for bucket in Bucket::ALL {
            let page = self.store.list(bucket, &prefix, None, None, 1).map_err(from_store)?;
            // In folders, what no request can name is somebody else's.
            if !page.objects.is_empty() || (self.store.is_remote() && !page.skipped.is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The slug of the path, if its pipeline exists.
    ///
    /// # Errors
    /// `invalid_slug`, `pipeline_not_found`, `s3_error`, `bucket_not_found`.
    pub fn existing(&self, request: &Request, name: &str) -> Result<Slug, ApiError> {
        let slug = slug_param(request, name)?;
        if self.exists(&slug)? {
            return Ok(slug);
        }
        Err(ApiError::new(ErrorCode::PipelineNotFound, format!("there is no pipeline `{slug}`")))
    }

    /// The bytes of an object of at most `bytes_max`; `None` if there is none.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`; `internal` for one that is larger, since nothing of ours is.
    pub fn read(&self, bucket: Bucket, key: &str, bytes_max: u64) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
        match self.read_start(bucket, key, bytes_max)? {
            Some((_, bytes)) if bytes.len() as u64 > bytes_max => {
                Err(ApiError::internal(format!("`{key}` has more than {bytes_max} bytes")))
            }
            found => Ok(found),
        }
    }

    /// As [`Web::read`], but an object that is larger is told of in the log and counts as none.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn read_up_to(
        &self,
        bucket: Bucket,
        key: &str,
        bytes_max: u64,
    ) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
        let found = self.read_start(bucket, key, bytes_max)?;
        if found.as_ref().is_some_and(|(_, bytes)| bytes.len() as u64 > bytes_max) {
            tracing::warn!(%bucket, key, bytes_max, "an object is larger than any of its kind: passed over");
            return Ok(None);
        }
        Ok(found)
    }

    /// As [`Web::read`], for those to whom a larger object means something.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn read_within(&self, bucket: Bucket, key: &str, bytes_max: u64) -> Result<Bounded, ApiError> {
        Ok(match self.read_start(bucket, key, bytes_max)? {
            None => Bounded::Missing,
            Some((_, bytes)) if bytes.len() as u64 > bytes_max => Bounded::Larger,
            Some((meta, bytes)) => Bounded::Whole(meta, bytes),
        })
    }

    /// The start of an object: `bytes_max` bytes, and one more if there are more; `None` if there is none.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`.
    pub fn read_start(
        &self,
        bucket: Bucket,
        key: &str,
        bytes_max: u64,
    ) -> Result<Option<(ObjectMeta, Vec<u8>)>, ApiError> {
        let reader = match self.store.get(bucket, key, None) {
            Ok(reader) => reader,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(from_store(error)),
        };
        let mut bytes = Vec::new();
        let read = reader.body.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| ApiError::caused(ErrorCode::S3Error, format!("reading `{key}`: {error}")))?;
        Ok(Some((reader.meta, bytes)))
    }
}

/// An object that was read as far as it may go.
pub enum Bounded {
    Whole(ObjectMeta, Vec<u8>),
    Missing,
    Larger,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> ObjectMeta {
        let etag = Some(ETag(text.to_owned()));
        ObjectMeta { key: "k".into(), size: 1, etag, modified: chrono::DateTime::UNIX_EPOCH }
    }

    #[test]
    fn a_write_is_bound_to_the_tag_that_was_seen() {
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
