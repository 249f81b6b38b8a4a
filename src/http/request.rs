//! Requests as handlers receive them.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::body::{BodyError, RequestBody};
use super::error::{ApiError, ErrorCode};
use super::head::{Framing, RequestHead};
use super::headers::Headers;
use super::method::Method;
use super::query::QueryString;
use super::request_id::RequestId;
use crate::domain::limits::JSON_BODY_VALUES_MAX;
use crate::domain::text::has_json_values_at_most;

/// The values of a route's `{name}`s, decoded.
pub type PathParams = Vec<(&'static str, String)>;

/// An authorized request.
#[derive(Debug)]
pub struct Request {
    head: Arc<RequestHead>,
    params: PathParams,
    body: RequestBody,
}

impl Request {
    pub(super) fn new(head: Arc<RequestHead>, params: PathParams, body: RequestBody) -> Self {
        Self { head, params, body }
    }

    pub(super) fn into_body(self) -> RequestBody {
        self.body
    }

    pub fn head(&self) -> &RequestHead {
        &self.head
    }

    /// HEAD requests are routed to GET's handler; the body of the response is dropped.
    pub fn method(&self) -> Method {
        self.head.method()
    }

    pub fn id(&self) -> &RequestId {
        self.head.id()
    }

    /// The value of `{name}` in the route's pattern; empty if the pattern has no such name.
    pub fn param(&self, name: &str) -> &str {
        self.params.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }

    pub fn query(&self) -> &QueryString {
        self.head.query()
    }

    pub fn headers(&self) -> &Headers {
        self.head.headers()
    }

    /// The first field of that name, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub fn peer(&self) -> SocketAddr {
        self.head.peer()
    }

    /// The client: the peer, or the address that a trusted proxy names.
    pub fn client(&self) -> IpAddr {
        self.head.client()
    }

    /// The body's size, if the client declared it.
    pub fn body_length(&self) -> Option<u64> {
        match self.head.framing() {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        }
    }

    /// Reads the body from the client, within the route's limit. A read fails with a [`BodyError`] if the client doesn't
    /// send all of it; the end is reported only after the last byte.
    pub fn body_reader(&mut self) -> &mut (dyn Read + Send) {
        &mut self.body
    }

    /// The whole body, which the route's limit bounds.
    ///
    /// # Errors
    /// `payload_too_large`, or `invalid_request` if it is incomplete.
    pub fn body_bytes(&mut self) -> Result<Vec<u8>, ApiError> {
        let mut out = Vec::new();
        if let RequestBody::Bytes(bytes) = &mut self.body
            && bytes.position() == 0
        {
            return Ok(std::mem::take(bytes.get_mut()));
        }
        self.body.read_to_end(&mut out).map_err(|error| body_failure(&error))?;
        Ok(out)
    }

    /// The first `kept_max` bytes of the body, and its length. The rest is read and dropped.
    ///
    /// # Errors
    /// Same as for [`body_bytes`](Self::body_bytes).
    pub fn body_start(&mut self, kept_max: usize) -> Result<(Vec<u8>, u64), ApiError> {
        let mut kept = Vec::new();
        let read = (&mut self.body).take(kept_max as u64).read_to_end(&mut kept);
        let rest = read.and_then(|_| std::io::copy(&mut self.body, &mut std::io::sink()));
        let rest = rest.map_err(|error| body_failure(&error))?;
        let bytes = kept.len() as u64 + rest;
        Ok((kept, bytes))
    }

    /// The whole body as a JSON object.
    ///
    /// # Errors
    /// Same as for [`body_bytes`](Self::body_bytes); `invalid_request` if the body is not a JSON object of that shape.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, ApiError> {
        json_object(&self.body_bytes()?)
    }
}

/// A whole body as a JSON object.
///
/// # Errors
/// `invalid_request` if it is not, or not of that shape.
pub fn json_object<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let refuse = |why: String| ApiError::new(ErrorCode::InvalidRequest, why);
    let Some(first) = bytes.trim_ascii_start().first() else {
        return Err(refuse("the body is empty; expected a JSON object".to_owned()));
    };
    let wrong = |why: String| refuse(format!("invalid request body: {why}"));
    if !has_json_values_at_most(bytes, JSON_BODY_VALUES_MAX) {
        return Err(wrong(format!("expected at most {JSON_BODY_VALUES_MAX} values and brackets, found more")));
    }
    let value = serde_json::from_slice(bytes).map_err(|error| wrong(reword(&error)))?;
    // serde would also deserialize a struct from a list of its fields.
    if *first != b'{' {
        return Err(wrong("expected a JSON object".to_owned()));
    }
    Ok(value)
}

/// Prefixes of the parser's messages, and their replacements; the first match is used.
const STARTS: &[(&str, &str)] = &[
    ("EOF while parsing", "it ends within"),
    ("invalid type: sequence", "found a list"),
    ("invalid type: map", "found an object"),
    ("invalid type: ", "found "),
    ("invalid value: ", "found "),
    ("unknown variant ", "unknown value "),
];
/// Replacements for the parser's words for expected values.
const EXPECTED: &[(&str, &str)] = &[("a map", "an object"), ("struct ", "an object"), ("a sequence", "a list")];

/// Rewords a serde error in JSON's terms.
fn reword(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some((start, word)) = STARTS.iter().find(|(start, _)| text.starts_with(start)) {
        text.replace_range(..start.len(), word);
    }
    let Some(at) = text.rfind(", expected ").map(|at| at + ", expected ".len()) else { return text };
    let (found, expected) = text.split_at(at);
    let Some((start, word)) = EXPECTED.iter().find(|(start, _)| expected.starts_with(start)) else { return text };
    // The name of a struct is meaningless to clients.
    let rest = expected[start.len()..].find(" at line ").map_or("", |at| &expected[start.len() + at..]);
    format!("{found}{word}{rest}")
}

/// The response if a body could not be read; `internal` for errors of other sources.
pub fn body_failure(error: &io::Error) -> ApiError {
    BodyError::within(error).map_or_else(|| ApiError::internal(error), ApiError::from)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[expect(dead_code, reason = "only its shape counts")]
        params: serde_json::Map<String, serde_json::Value>,
    }

    #[test]
    fn wrong_body_is_described_in_terms_of_json() {
        for (body, expected) in [
            ("", "the body is empty; expected a JSON object"),
            (" \n", "the body is empty; expected a JSON object"),
            ("[]", "expected"),
            ("{\"params\"", "it ends within an object at line 1 column 9"),
            ("{\"params\":[]}", ": found a list, expected an object at line 1 column 10"),
            ("7", ": found integer `7`, expected an object at line 1 column 1"),
            ("{}", "missing field `params`"),
            ("{\"parms\":{}}", "unknown field `parms`, expected `params`"),
        ] {
            let error = json_object::<Body>(body.as_bytes()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidRequest);
            assert!(error.message().contains(expected), "{body}: {error}");
        }
    }
}
