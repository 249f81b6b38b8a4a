//! Heads of responses as clients get them, and answers that need no handler.
//!
//! Invariant: every answer carries the standard headers and its request id, and says how its body ends.

use std::fmt::Write as _;

use super::response::STANDARD_HEADERS;

/// How the end of a response's body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There is no body and no length, as with 204, 304 and HEAD of a body of unknown length.
    NoBody,
    Length(u64),
    Chunks,
    /// With the connection, for HTTP/1.0.
    Close,
}

/// The head of a response: `headers` as they are, without those about framing and connection.
pub(super) fn head<'a>(
    status: u16,
    headers: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    end: End,
    request_id: &str,
    keep_alive: bool,
) -> Vec<u8> {
    let reason = tiny_http::StatusCode(status).default_reason_phrase();
    let mut text = format!("HTTP/1.1 {status} {reason}\r\n");
    let mut field = |name: &str, value: &str| {
        let _ = write!(text, "{name}: {value}\r\n");
    };
    headers.clone().for_each(|(name, value)| field(name, value));
    for (name, value) in STANDARD_HEADERS {
        if !headers.clone().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
            field(name, value);
        }
    }
    field("X-Request-Id", request_id);
    match end {
        End::NoBody | End::Close => {}
        End::Length(length) => field("Content-Length", &length.to_string()),
        End::Chunks => field("Transfer-Encoding", "chunked"),
    }
    if !keep_alive {
        field("Connection", "close");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_headers_stand_unless_they_are_set_otherwise() {
        let headers = [("cache-control", "max-age=60"), ("X-A", "b")];
        let text = String::from_utf8(head(200, headers.into_iter(), End::Length(3), "id-1", false)).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\nX-A: b\r\n"), "{text}");
        assert!(text.ends_with("X-Request-Id: id-1\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"), "{text}");
        assert!(text.contains("X-Content-Type-Options: nosniff\r\n") && !text.contains("no-store"), "{text}");
        assert!(text.contains("frame-ancestors 'none'") && !text.contains("unsafe-"), "{text}");
    }
}
