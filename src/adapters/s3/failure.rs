//! Failed requests: an error response with its code, or no usable response.

use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use ureq::Timeout;

use super::options::Timeouts;

const ERROR_CHARS_MAX: usize = 500;

/// An `Error` element. If a child is repeated, the first one counts, so that the error isn't lost.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ErrorElement {
    #[serde(deserialize_with = "first")]
    pub(super) code: String,
    #[serde(deserialize_with = "first")]
    pub(super) message: String,
    #[serde(deserialize_with = "first")]
    pub(super) request_id: String,
    /// Where the request must be sent, or what it must be signed for.
    #[serde(deserialize_with = "first")]
    pub(super) region: String,
    /// Set in entries of a `DeleteResult`.
    pub(super) key: Option<String>,
}

fn first<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Vec::<String>::deserialize(deserializer)?.into_iter().next().unwrap_or_default())
}

/// The store rejected the request.
#[derive(Debug, Default)]
pub(super) struct StoreRejection {
    pub(super) status: u16,
    /// S3's code, or empty.
    pub(super) code: String,
    pub(super) message: String,
    pub(super) request_id: String,
    /// The bucket's, if the store says it.
    pub(super) region: Option<String>,
}

impl StoreRejection {
    pub(super) fn new(status: u16, error: &ErrorElement) -> Self {
        Self {
            status,
            code: one_line(&error.code),
            message: one_line(&error.message),
            request_id: one_line(&error.request_id),
            region: Some(one_line(&error.region)).filter(|region| !region.is_empty()),
        }
    }

    /// Whether the signature had expired. Stores word it differently; `by_our_clock` is our own estimate.
    pub(super) fn is_expiry(&self, by_our_clock: bool) -> bool {
        let reported = matches!(self.code.as_str(), "ExpiredToken" | "RequestExpired" | "ExpiredRequest")
            || self.message.to_ascii_lowercase().contains("expired");
        matches!(self.status, 400 | 401 | 403) && (reported || by_our_clock)
    }

    /// Whether the store may not know the keys that signed the request, or no longer.
    pub(super) fn is_of_keys(&self) -> bool {
        const CODES: &[&str] = &["ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"];
        matches!(self.status, 400 | 401 | 403) && CODES.contains(&self.code.as_str())
    }

    /// Whether the request's date is too far from the store's time.
    pub(super) fn is_of_date(&self) -> bool {
        self.code == "RequestTimeTooSkewed"
    }

    pub(super) fn is_overload(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504)
            || matches!(self.code.as_str(), "SlowDown" | "InternalError" | "ServiceUnavailable" | "RequestTimeout")
    }
}

impl fmt::Display for StoreRejection {
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

/// Text from the store on one line, truncated.
pub(super) fn one_line(text: &str) -> String {
    let line: String = text.chars().take(ERROR_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

/// Why a request has no successful response.
#[derive(Debug)]
pub(super) enum RequestError {
    /// `repeated`: an earlier attempt, whose response was lost, may have taken effect. `expired`: the request carried a
    /// lease, and its signature had expired.
    Rejected { rejection: StoreRejection, repeated: bool, expired: bool },
    /// No response, an incomplete one, or an invalid one. The request may have taken effect if it was `sent`. `quick`:
    /// a retry is cheap and may succeed.
    NoResponse { source: io::Error, sent: bool, quick: bool },
    /// The lease has expired; nothing was sent.
    LeaseLost,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { rejection, .. } => rejection.fmt(f),
            Self::NoResponse { source, .. } => source.fmt(f),
            Self::LeaseLost => f.write_str("the lease has expired"),
        }
    }
}

impl RequestError {
    pub(super) fn rejected(rejection: StoreRejection) -> Self {
        Self::Rejected { rejection, repeated: false, expired: false }
    }

    /// The connection failed, or a timeout elapsed.
    pub(super) fn transport(error: ureq::Error, timeouts: &Timeouts, endpoint: &str) -> Self {
        let quick = !matches!(error, ureq::Error::Timeout(_) | ureq::Error::HostNotFound | ureq::Error::Rustls(_));
        let source = describe(error, timeouts);
        let source = io::Error::new(source.kind(), format!("the store at {endpoint}: {source}"));
        Self::NoResponse { source, sent: true, quick }
    }

    pub(super) fn unsent(source: io::Error) -> Self {
        Self::NoResponse { source, sent: false, quick: false }
    }

    /// Reading the response's body failed.
    pub(super) fn body(source: io::Error) -> Self {
        let quick = source.kind() != io::ErrorKind::TimedOut;
        Self::NoResponse { source, sent: true, quick }
    }

    pub(super) fn invalid_response(what: impl fmt::Display) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidData, format!("invalid response from the store: {what}"));
        Self::NoResponse { source, sent: true, quick: false }
    }

    /// The error of the last attempt; `earlier`: whether an attempt before it may have taken effect.
    pub(super) fn after(self, earlier: bool) -> Self {
        match self {
            Self::Rejected { rejection, repeated, expired } => {
                Self::Rejected { rejection, repeated: repeated || earlier, expired }
            }
            Self::NoResponse { source, sent, quick } => Self::NoResponse { source, sent: sent || earlier, quick },
            Self::LeaseLost => Self::LeaseLost,
        }
    }

    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Rejected { rejection, .. } => rejection.is_overload(),
            Self::NoResponse { quick, .. } => *quick,
            Self::LeaseLost => false,
        }
    }

    /// See [`StoreRejection::is_of_keys`].
    pub(super) fn is_of_keys(&self) -> bool {
        matches!(self, Self::Rejected { rejection, .. } if rejection.is_of_keys())
    }

    /// Whether the store may have rejected the request's date.
    pub(super) fn may_be_clock_skew(&self) -> bool {
        matches!(self.status(), Some(400 | 401 | 403))
    }

    pub(super) fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Rejected { rejection, repeated, .. } => *repeated || rejection.status >= 500,
            Self::NoResponse { sent, .. } => *sent,
            Self::LeaseLost => false,
        }
    }

    /// Whether reading the object's metadata may resolve if the request took effect. After a timeout it would be one more
    /// wait.
    pub(super) fn is_uncertain(&self) -> bool {
        match self {
            Self::Rejected { repeated, .. } => *repeated,
            Self::NoResponse { sent, quick, .. } => *sent && *quick,
            Self::LeaseLost => false,
        }
    }

    /// Whether the store rejected the request with this status and one of the codes; `""` is not a code.
    pub(super) fn is(&self, status: u16, codes: &[&str]) -> bool {
        match self {
            Self::Rejected { rejection, .. } => rejection.status == status && codes.contains(&rejection.code.as_str()),
            Self::NoResponse { .. } | Self::LeaseLost => false,
        }
    }

    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Rejected { rejection, .. } => Some(rejection.status),
            Self::NoResponse { .. } | Self::LeaseLost => None,
        }
    }
}

/// Describes a transport error; a timeout with its phase and length.
pub(super) fn describe(error: ureq::Error, timeouts: &Timeouts) -> io::Error {
    match error {
        ureq::Error::Io(error) => error,
        ureq::Error::Timeout(timer) => io::Error::new(io::ErrorKind::TimedOut, describe_timeout(timer, timeouts)),
        ureq::Error::HostNotFound => io::Error::new(io::ErrorKind::NotFound, "the host name can't be resolved"),
        error => io::Error::other(error),
    }
}

fn describe_timeout(timer: Timeout, timeouts: &Timeouts) -> String {
    let of = |phase: &str, after: Duration| format!("timed out {phase} (after {after:?})");
    match timer {
        Timeout::Resolve => of("resolving the host name", timeouts.resolve),
        Timeout::Connect => of("connecting to the store", timeouts.connect),
        Timeout::SendRequest => of("sending a request", timeouts.send),
        Timeout::PerWrite => of("sending, without progress", timeouts.send_idle),
        Timeout::RecvResponse => of("waiting for the store's response", timeouts.response),
        Timeout::PerRead => of("receiving, without progress", timeouts.receive_idle),
        other => format!("timed out: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejection_shows_code_message_and_request_on_one_line() {
        let element = ErrorElement {
            code: "AccessDenied".to_owned(),
            message: "Access\nDenied".to_owned(),
            request_id: "4X".to_owned(),
            ..ErrorElement::default()
        };
        let rejection = StoreRejection::new(403, &element);
        assert_eq!(rejection.to_string(), "status 403 `AccessDenied`: Access Denied (request 4X)");
        assert!(!rejection.is_expiry(false) && rejection.is_expiry(true));
    }

    #[test]
    fn expiry_is_recognized_in_every_wording() {
        let rejection = |status, code: &str, message: &str| StoreRejection {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            ..StoreRejection::default()
        };
        assert!(rejection(403, "AccessDenied", "Request has expired").is_expiry(false));
        assert!(rejection(403, "AccessDenied", "Invalid date, Signature Expired").is_expiry(false));
        assert!(rejection(400, "ExpiredToken", "").is_expiry(false));
        assert!(!rejection(503, "SlowDown", "").is_expiry(true));
    }
}
