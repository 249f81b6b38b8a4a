//! What came back: an answer, a refusal with its code, or nothing.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use chrono::{DateTime, Utc};
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::{Body, Timeout};

use crate::ports::store::ETag;

use super::options::Timeouts;
use super::store_clock::parse_date;
use super::xml::{self, Node};

/// Of an error's text, as much as is kept.
const ERROR_BYTES_MAX: u64 = 64 << 10;
const ERROR_CHARS_MAX: usize = 500;

/// An answer with a status of success, its body unread.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    body: Body,
    timeouts: Timeouts,
}

impl Answer {
    pub(super) fn new(response: Response<Body>, timeouts: Timeouts) -> Self {
        let (parts, body) = response.into_parts();
        Self { status: parts.status, headers: parts.headers, body, timeouts }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The tag without its quotes.
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

    /// The body as it comes, however long.
    pub(super) fn into_reader(self) -> impl Read + Send + 'static {
        BodyReader { body: self.body.into_with_config().limit(u64::MAX).reader(), timeouts: self.timeouts }
    }

    /// The whole body, if it is at most `limit` bytes.
    pub(super) fn bytes(self, limit: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        self.into_reader().take(limit + 1).read_to_end(&mut bytes).map_err(Failure::broken)?;
        if bytes.len() as u64 > limit {
            return Err(Failure::garbage(format!("expected an answer of at most {limit} bytes, found a longer one")));
        }
        Ok(bytes)
    }

    /// The body as a document whose root is `root`. A store may find out that it fails after it has sent its status:
    /// then the document is an error.
    pub(super) fn xml(self, limit: u64, root: &str) -> Result<Node, Failure> {
        let bytes = self.bytes(limit)?;
        let node = xml::parse(&bytes).map_err(|error| Failure::garbage(error.to_string()))?;
        if node.name == root {
            return Ok(node);
        }
        if node.name == "Error" {
            return Err(Failure::refused(Refusal::late(&node)));
        }
        Err(Failure::garbage(format!("expected a `{root}`, found a `{}`", node.name)))
    }

    /// Reads what is left, so that the connection can be used again.
    pub(super) fn drained(self) -> Result<(), Failure> {
        self.bytes(ERROR_BYTES_MAX).map(drop)
    }
}

/// A tag without quotes and without the mark of weakness.
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
            Ok(error) => told(error, &self.timeouts),
            Err(error) => error,
        })
    }
}

/// What the store said instead of doing it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// S3's code, or empty.
    pub(super) code: String,
    pub(super) message: String,
    pub(super) request_id: String,
}

impl Refusal {
    /// Reads an answer's error document; without one (HEAD), only its status is known.
    pub(super) fn read(answer: Answer) -> Self {
        let status = answer.status.as_u16();
        let id = answer.header("x-amz-request-id").unwrap_or_default().to_owned();
        let mut bytes = Vec::new();
        // What came until a failure is told; the status stands anyway.
        let _ = answer.into_reader().take(ERROR_BYTES_MAX).read_to_end(&mut bytes);
        let mut refusal = match xml::parse(&bytes) {
            Ok(node) if node.name == "Error" => Self::of(status, &node),
            Ok(_) | Err(_) => {
                let (code, message) = (String::new(), shown(&String::from_utf8_lossy(&bytes)));
                Self { status, code, message, request_id: String::new() }
            }
        };
        if refusal.request_id.is_empty() {
            refusal.request_id = shown(&id);
        }
        refusal
    }

    /// An error told in the body of an answer that began as a success.
    fn late(node: &Node) -> Self {
        Self::of(500, node)
    }

    pub(super) fn of(status: u16, node: &Node) -> Self {
        let text = |name: &str| shown(node.text_of(name).unwrap_or_default());
        Self { status, code: text("Code"), message: text("Message"), request_id: text("RequestId") }
    }

    /// Whether the signature's time was over. Stores say it in different words; `by_our_clock` is what we think.
    pub(super) fn is_expiry(&self, by_our_clock: bool) -> bool {
        let told = matches!(self.code.as_str(), "ExpiredToken" | "RequestExpired" | "ExpiredRequest")
            || self.message.to_ascii_lowercase().contains("expired");
        matches!(self.status, 400 | 401 | 403) && (told || by_our_clock)
    }

    pub(super) fn is_overload(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
            || matches!(self.code.as_str(), "SlowDown" | "InternalError" | "ServiceUnavailable" | "RequestTimeout")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}", self.status)?;
        if !self.code.is_empty() {
            write!(f, " `{}`", self.code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if !self.request_id.is_empty() {
            write!(f, " (request {})", self.request_id)?;
        }
        Ok(())
    }
}

/// Text from outside on one line, cut.
fn shown(text: &str) -> String {
    text.chars()
        .take(ERROR_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Why there is no answer of success.
#[derive(Debug)]
pub(super) enum Failure {
    /// The store said no. `repeated`: an earlier try, whose answer was lost, may have taken effect. `expired`: a lease
    /// guarded the request, and its signature's time was over.
    Refused { refusal: Refusal, repeated: bool, expired: bool },
    /// No answer, or not all of it, or one that makes no sense. Whether the request took effect is not known, unless
    /// it was never sent.
    Lost { source: io::Error, sent: bool, quick: bool },
    /// The lease is over; nothing was sent.
    LeaseLost,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { refusal, .. } => refusal.fmt(f),
            Self::Lost { source, .. } => source.fmt(f),
            Self::LeaseLost => f.write_str("the lease is over"),
        }
    }
}

impl Failure {
    pub(super) fn refused(refusal: Refusal) -> Self {
        Self::Refused { refusal, repeated: false, expired: false }
    }

    /// The connection failed, or a timer ran out.
    pub(super) fn lost(error: ureq::Error, timeouts: &Timeouts) -> Self {
        let quick = !matches!(error, ureq::Error::Timeout(_) | ureq::Error::HostNotFound | ureq::Error::Rustls(_));
        Self::Lost { source: told(error, timeouts), sent: true, quick }
    }

    /// With where the store is, if it gave no answer.
    pub(super) fn at(self, endpoint: &str) -> Self {
        match self {
            Self::Lost { source, sent, quick } => {
                let source = io::Error::new(source.kind(), format!("the store at {endpoint}: {source}"));
                Self::Lost { source, sent, quick }
            }
            Self::Refused { .. } | Self::LeaseLost => self,
        }
    }

    pub(super) fn unsent(source: io::Error) -> Self {
        Self::Lost { source, sent: false, quick: false }
    }

    /// The body of the answer broke off.
    pub(super) fn broken(source: io::Error) -> Self {
        let quick = source.kind() != io::ErrorKind::TimedOut;
        Self::Lost { source, sent: true, quick }
    }

    pub(super) fn garbage(what: String) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidData, format!("the store's answer makes no sense: {what}"));
        Self::Lost { source, sent: true, quick: false }
    }

    pub(super) fn after(self, earlier: bool) -> Self {
        match self {
            Self::Refused { refusal, repeated, expired } => {
                Self::Refused { refusal, repeated: repeated || earlier, expired }
            }
            Self::Lost { source, sent, quick } => Self::Lost { source, sent: sent || earlier, quick },
            Self::LeaseLost => Self::LeaseLost,
        }
    }

    pub(super) fn may_pass_at_once(&self) -> bool {
        match self {
            Self::Refused { refusal, .. } => refusal.is_overload(),
            Self::Lost { quick, .. } => *quick,
            Self::LeaseLost => false,
        }
    }

    /// Whether there is no answer.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether the store may have refused the request for its date.
    pub(super) fn may_be_of_time(&self) -> bool {
        matches!(self.status(), Some(400 | 401 | 403))
    }

    /// Whether the request may have been carried out all the same.
    pub(super) fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Refused { refusal, repeated, .. } => *repeated || refusal.status >= 500,
            Self::Lost { sent, .. } => *sent,
            Self::LeaseLost => false,
        }
    }

    /// Whether it is a refusal with this status and code; `""` stands for none.
    pub(super) fn is(&self, status: u16, codes: &[&str]) -> bool {
        match self {
            Self::Refused { refusal, .. } => refusal.status == status && codes.contains(&refusal.code.as_str()),
            Self::Lost { .. } | Self::LeaseLost => false,
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal.status),
            Self::Lost { .. } | Self::LeaseLost => None,
        }
    }
}

/// An error of the transport in our words, a timeout with the name and length of its timer.
fn told(error: ureq::Error, timeouts: &Timeouts) -> io::Error {
    match error {
        ureq::Error::Io(error) => error,
        ureq::Error::Timeout(timer) => io::Error::new(io::ErrorKind::TimedOut, timeout_text(timer, timeouts)),
        ureq::Error::HostNotFound => io::Error::new(io::ErrorKind::NotFound, "the store's host name is not known"),
        error => io::Error::other(error),
    }
}

fn timeout_text(timer: Timeout, timeouts: &Timeouts) -> String {
    let of = |what: &str, after: Duration| format!("timed out {what} (after {after:?})");
    match timer {
        Timeout::Resolve => of("looking up the store's host name", timeouts.resolve),
        Timeout::Connect => of("connecting to the store", timeouts.connect),
        Timeout::SendRequest => of("sending a request", timeouts.send),
        Timeout::PerWrite => of("sending, without a byte taken", timeouts.send_idle),
        Timeout::RecvResponse => of("waiting for the store's answer", timeouts.response),
        Timeout::PerRead => of("receiving, without a byte coming", timeouts.receive_idle),
        other => format!("timed out: {other}"),
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

    #[test]
    fn a_refusal_tells_its_code_message_and_request_on_one_line() {
        let node = xml::parse(
            b"<Error><Code>AccessDenied</Code><Message>Access\nDenied</Message><RequestId>4X</RequestId></Error>",
        )
        .unwrap();
        let refusal = Refusal::of(403, &node);
        assert_eq!(refusal.to_string(), "status 403 `AccessDenied`: Access Denied (request 4X)");
        assert!(!refusal.is_expiry(false) && refusal.is_expiry(true));
    }

    #[test]
    fn expiry_is_told_in_several_ways() {
        let refusal = |status, code: &str, message: &str| Refusal {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            request_id: String::new(),
        };
        assert!(refusal(403, "AccessDenied", "Request has expired").is_expiry(false));
        assert!(refusal(403, "AccessDenied", "Invalid date, Signature Expired").is_expiry(false));
        assert!(refusal(400, "ExpiredToken", "").is_expiry(false));
        assert!(!refusal(503, "SlowDown", "").is_expiry(true));
    }
}
