//! A successful response, and the reading of any response's body.

use std::io::{self, Read};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::Body;
use ureq::http::{HeaderMap, Response, StatusCode};

use crate::ports::store::ETag;

use super::failure::{ErrorElement, RequestError, StoreRejection, describe, one_line};
use super::options::Timeouts;
use super::store_clock::parse_date;
use super::xml::Document;

const ERROR_BYTES_MAX: u64 = 64 << 10;

/// A response with its body unread.
pub(super) struct StoreResponse {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    body: Body,
    timeouts: Timeouts,
}

impl StoreResponse {
    pub(super) fn new(response: Response<Body>, timeouts: Timeouts) -> Self {
        let (parts, body) = response.into_parts();
        Self { status: parts.status, headers: parts.headers, body, timeouts }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn etag(&self) -> Option<ETag> {
        self.header("etag").and_then(unquoted)
    }

    pub(super) fn length(&self) -> Option<u64> {
        self.header("content-length").and_then(|length| length.parse().ok())
    }

    pub(super) fn last_modified(&self) -> Option<DateTime<Utc>> {
        self.header("last-modified").and_then(parse_date)
    }

    pub(super) fn date(&self) -> Option<DateTime<Utc>> {
        self.header("date").and_then(parse_date)
    }

    /// The body, of any length.
    pub(super) fn into_reader(self) -> impl Read + Send + 'static {
        BodyReader { body: self.body.into_with_config().limit(u64::MAX).reader(), timeouts: self.timeouts }
    }

    /// The whole body, of at most `limit` bytes.
    pub(super) fn bytes(self, limit: u64) -> Result<Vec<u8>, RequestError> {
        let mut bytes = Vec::new();
        self.into_reader().take(limit + 1).read_to_end(&mut bytes).map_err(RequestError::body)?;
        if bytes.len() as u64 > limit {
            return Err(RequestError::invalid_response(format!("expected at most {limit} bytes, found more")));
        }
        Ok(bytes)
    }

    /// The body as a document with this root. A store may fail after it has sent a success status; the document is an
    /// `Error` then.
    pub(super) fn xml<T: DeserializeOwned>(self, limit: u64, root: &str) -> Result<T, RequestError> {
        let bytes = self.bytes(limit)?;
        let document = Document::parse(&bytes).map_err(RequestError::invalid_response)?;
        if document.root == root {
            return document.read().map_err(RequestError::invalid_response);
        }
        if document.root == "Error" {
            let error: ErrorElement = document.read().map_err(RequestError::invalid_response)?;
            return Err(RequestError::rejected(StoreRejection::new(500, &error)));
        }
        Err(RequestError::invalid_response(format!("expected a `{root}`, found a `{}`", document.root)))
    }

    /// Reads the rest of the body, so that the connection can be reused.
    pub(super) fn drain(self) -> Result<(), RequestError> {
        self.bytes(ERROR_BYTES_MAX).map(drop)
    }

    /// Reads an error response; without a body (HEAD) only its status is known.
    pub(super) fn into_rejection(self) -> StoreRejection {
        let status = self.status.as_u16();
        let id = one_line(self.header("x-amz-request-id").unwrap_or_default());
        let region = self.header("x-amz-bucket-region").map(one_line);
        let mut bytes = Vec::new();
        // Keeps the bytes before a failure: the status is known anyway.
        let _ = self.into_reader().take(ERROR_BYTES_MAX).read_to_end(&mut bytes);
        let document = Document::parse(&bytes).ok().filter(|document| document.root == "Error");
        let mut rejection = match document.and_then(|document| document.read().ok()) {
            Some(error) => StoreRejection::new(status, &error),
            None => {
                let (code, message) = (String::new(), one_line(&String::from_utf8_lossy(&bytes)));
                StoreRejection { status, code, message, ..StoreRejection::default() }
            }
        };
        rejection.region = region.or(rejection.region);
        if rejection.request_id.is_empty() {
            rejection.request_id = id;
        }
        rejection
    }
}

/// A response of which only tag and time are used.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct WriteResult {
    #[serde(rename = "ETag")]
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) upload_id: Option<String>,
    /// Of a part that was copied.
    #[serde(rename = "ChecksumSHA256")]
    pub(super) sha256: Option<String>,
}

impl WriteResult {
    pub(super) fn etag(&self) -> Option<ETag> {
        self.etag.as_deref().and_then(unquoted)
    }
}

/// A tag without quotes and without the weakness prefix.
pub(super) fn unquoted(text: &str) -> Option<ETag> {
    let text = text.trim();
    let text = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    (!text.is_empty()).then(|| ETag(text.to_owned()))
}

struct BodyReader {
    body: ureq::BodyReader<'static>,
    timeouts: Timeouts,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer).map_err(|error| match error.downcast::<ureq::Error>() {
            Ok(error) => describe(error, &self.timeouts),
            Err(error) => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_lose_their_quotes() {
        assert_eq!(unquoted("\"abc-2\""), Some(ETag("abc-2".to_owned())));
        assert_eq!(unquoted(" W/\"x\" "), Some(ETag("x".to_owned())));
        assert_eq!(unquoted("bare"), Some(ETag("bare".to_owned())));
        assert_eq!(unquoted("\"\""), None);
    }
}
