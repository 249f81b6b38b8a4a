//! The head of a request, parsed and checked once.
//!
//! Invariant: a `RequestHead` is unambiguous: one length of the body, one host, one decoded path, and the true peer.
//! Must not: know routes.

use std::net::{IpAddr, SocketAddr};

use crate::config::AddressRange;

use super::address::client_address;
use super::headers::Headers;
use super::hosts::is_loopback;
use super::method::Method;
use super::query::QueryString;
use super::refusal::{RefusedRequest, decode, refuse};
use super::request_id::RequestId;

/// Fields with this prefix are internal; those of clients are dropped.
const OWN_PREFIX: &str = "x-lakemill-";
/// The internal field with the true peer.
pub const PEER_HEADER: &str = "X-Lakemill-Peer";

/// How the end of the body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body: no `Content-Length`, or one of zero.
    None,
    /// This many bytes, at least one.
    Length(u64),
    Chunked,
}

/// A checked request head.
#[derive(Debug, Clone)]
pub struct RequestHead {
    method: Method,
    /// As sent, after `/` and before `?`.
    raw_path: String,
    /// The authority of a target in absolute form.
    target_authority: Option<String>,
    segments: Vec<String>,
    query: QueryString,
    headers: Headers,
    framing: Framing,
    peer: SocketAddr,
    client: IpAddr,
    id: RequestId,
    pub(super) method_text: String,
    pub(super) keep_alive: bool,
    pub(super) http_1_0: bool,
    pub(super) expects_continue: bool,
}

impl RequestHead {
    /// Parses one head, including its empty line.
    pub(super) fn parse(
        bytes: &[u8],
        fields_max: usize,
        peer: SocketAddr,
        trusted: &[AddressRange],
    ) -> Result<Self, RefusedRequest> {
        let mut fields = vec![httparse::EMPTY_HEADER; fields_max];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(bytes) {
            Ok(status) if status.is_complete() => {}
            Ok(_) => return refuse(400, "the request head is malformed"),
            Err(httparse::Error::Version) => return Err(version_refusal(bytes)),
            Err(httparse::Error::TooManyHeaders) => return refuse(431, "the request has too many header fields"),
            Err(
                httparse::Error::HeaderName
                | httparse::Error::HeaderValue
                | httparse::Error::NewLine
                | httparse::Error::Status
                | httparse::Error::Token,
            ) => return refuse(400, "the request head is malformed"),
        }
        let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
            return refuse(400, "the request line is malformed");
        };
        let mut headers = Headers::default();
        for field in request.headers.iter() {
            let own = field.name.get(..OWN_PREFIX.len()).is_some_and(|p| p.eq_ignore_ascii_case(OWN_PREFIX));
            if !own {
                headers.push(field.name, field.value.trim_ascii());
            }
        }
        headers.push(PEER_HEADER, peer.to_string().as_bytes());
        let target = Target::parse(target)?;
        check_host(&headers, minor == 0, target.authority.is_some())?;
        let keep_alive = minor == 1 && !closes(&headers);
        Ok(Self {
            method: Method::of(method),
            raw_path: target.path.to_owned(),
            target_authority: target.authority.map(str::to_owned),
            segments: segments(target.path)?,
            query: QueryString::parse(target.query)?,
            framing: framing(&headers, minor == 0)?,
            client: client_address(peer.ip(), &headers, trusted),
            id: RequestId::accept(headers.only("x-request-id")),
            expects_continue: expects_continue(&headers, minor == 0)?,
            peer,
            headers,
            method_text: method.to_owned(),
            keep_alive,
            http_1_0: minor == 0,
        })
    }

    pub fn method(&self) -> Method {
        self.method
    }

    /// The path as sent, without the query.
    pub fn raw_path(&self) -> &str {
        &self.raw_path
    }

    /// The path's segments, percent-decoded once. `/` has one, which is empty.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Whether the path's first segments are these.
    pub fn is_under(&self, prefix: &[&str]) -> bool {
        self.segments.len() >= prefix.len() && self.segments.iter().zip(prefix).all(|(own, other)| own == other)
    }

    pub fn query(&self) -> &QueryString {
        &self.query
    }

    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The first field of that name, if it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The other end of the TCP connection.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The client: the peer, or the address that a trusted proxy names.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Whether the request seems to come from this machine: its peer does, no field of a proxy is present, it is
    /// addressed to this machine, and it is not HTTP/1.0, which proxies speak by default (nginx before 1.29.7). Another
    /// proxy that adds no field and sets its own `Host` can't be detected.
    pub fn is_local(&self) -> bool {
        let forwarded = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];
        self.peer.ip().to_canonical().is_loopback()
            && !self.http_1_0
            && forwarded.iter().all(|name| self.headers.bytes(name).is_none())
            && self.authorities().all(is_loopback)
    }

    /// Host and port of an absolute target and of `Host`. Empty for HTTP/1.0 without either.
    pub(super) fn authorities(&self) -> impl Iterator<Item = &str> {
        let host = self.headers.get("host").filter(|host| !host.is_empty());
        self.target_authority.as_deref().into_iter().chain(host)
    }

    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// A head as if it had come from 127.0.0.1.
    #[cfg(test)]
    pub(crate) fn for_test(method: &str, target: &str, fields: &[(&str, &str)]) -> Self {
        Self::for_host(method, target, "x", fields)
    }

    /// [`RequestHead::for_test`], addressed to `host`.
    #[cfg(test)]
    pub(crate) fn for_host(method: &str, target: &str, host: &str, fields: &[(&str, &str)]) -> Self {
        let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        Self::parse(text.as_bytes(), 64, SocketAddr::from(([127, 0, 0, 1], 4711)), &[]).unwrap()
    }
}

/// The refusal of a version that httparse doesn't know: another HTTP version, or a malformed line.
fn version_refusal(bytes: &[u8]) -> RefusedRequest {
    let line = bytes.trim_ascii_start().split(|b| *b == b'\r').next().unwrap_or_default();
    let parts: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let known = |version: &[u8]| {
        let digits = version.strip_prefix(b"HTTP/").unwrap_or_default();
        matches!(digits, [major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit())
    };
    match parts[..] {
        [_, _, version] if known(version) => RefusedRequest {
            status: 505,
            message: "the service supports HTTP/1.1 \
         only",
        },
        _ => RefusedRequest { status: 400, message: "the request line is malformed" },
    }
}

/// The request target: `/path?query`, or `http://host/path?query`.
struct Target<'a> {
    path: &'a str,
    query: &'a str,
    /// Host and port, for the second form.
    authority: Option<&'a str>,
}

impl<'a> Target<'a> {
    fn parse(text: &'a str) -> Result<Self, RefusedRequest> {
        if !text.bytes().all(|b| (0x21..0x7f).contains(&b)) || text.contains('#') {
            return refuse(400, "the request target is malformed");
        }
        let scheme =
            |s: &str| text.get(..s.len()).is_some_and(|start| start.eq_ignore_ascii_case(s)).then_some(s.len());
        let (text, authority) = match scheme("http://").or_else(|| scheme("https://")) {
            Some(length) => {
                let rest = &text[length..];
                let host = rest.find(['/', '?']).unwrap_or(rest.len());
                if !is_host(&rest.as_bytes()[..host]) {
                    return refuse(400, "the request target is malformed");
                }
                (&rest[host..], Some(&rest[..host]))
            }
            None => (text, None),
        };
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        match (path, authority) {
            ("", Some(_)) => Ok(Self { path: "/", query, authority }),
            _ if path.starts_with('/') => Ok(Self { path, query, authority }),
            // `*` and `host:port` are for OPTIONS and CONNECT, which this server doesn't support.
            _ => refuse(400, "the request target is not a path"),
        }
    }
}

/// `path` starts with `/`.
fn segments(path: &str) -> Result<Vec<String>, RefusedRequest> {
    path[1..].split('/').map(decode).collect()
}

fn is_host(host: &[u8]) -> bool {
    !host.is_empty() && host.iter().all(|b| b.is_ascii_alphanumeric() || b"-._:[]%~".contains(b))
}

fn check_host(headers: &Headers, http_1_0: bool, absolute: bool) -> Result<(), RefusedRequest> {
    match (headers.all("host").count(), headers.bytes("host")) {
        (0, _) if http_1_0 => Ok(()),
        (0, _) => refuse(400, "the `Host` field is missing"),
        (1, Some(host)) if is_host(host) || (absolute && host.is_empty()) => Ok(()),
        (1, _) => refuse(400, "the `Host` field is malformed"),
        _ => refuse(400, "there is more than one `Host` field"),
    }
}

fn framing(headers: &Headers, http_1_0: bool) -> Result<Framing, RefusedRequest> {
    let (lengths, encodings) = (headers.all("content-length").count(), headers.all("transfer-encoding").count());
    match (lengths, encodings) {
        (0, 0) => Ok(Framing::None),
        (_, 0) => match headers.only("content-length") {
            Some(text) => length(text),
            None => refuse(400, "there is more than one `Content-Length` field"),
        },
        (0, _) if http_1_0 => refuse(400, "`Transfer-Encoding` is not for HTTP/1.0"),
        (0, _) => match headers.only("transfer-encoding") {
            Some(coding) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            Some(_) | None => refuse(400, "`Transfer-Encoding` must be `chunked`, once"),
        },
        _ => refuse(400, "`Content-Length` and `Transfer-Encoding` are mutually exclusive"),
    }
}

fn length(text: &[u8]) -> Result<Framing, RefusedRequest> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| digits).and_then(|text| text.parse::<u64>().ok());
    match number {
        Some(0) => Ok(Framing::None),
        Some(length) => Ok(Framing::Length(length)),
        None => refuse(400, "`Content-Length` is not a number"),
    }
}

fn closes(headers: &Headers) -> bool {
    let tokens = headers.all("connection").flat_map(|value| value.split(|b| *b == b','));
    tokens.into_iter().any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"))
}

fn expects_continue(headers: &Headers, http_1_0: bool) -> Result<bool, RefusedRequest> {
    match (headers.all("expect").count(), headers.bytes("expect")) {
        (0, _) => Ok(false),
        (1, Some(value)) if value.eq_ignore_ascii_case(b"100-continue") => Ok(!http_1_0),
        _ => refuse(417, "the only supported expectation is `100-continue`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RequestHead, RefusedRequest> {
        RequestHead::parse(text.as_bytes(), 4, SocketAddr::from(([192, 0, 2, 1], 9)), &[])
    }

    fn refused(text: &str, status: u16) {
        assert_eq!(parse(text).map_err(|r| r.status).err(), Some(status), "{text:?}");
    }

    fn path(target: &str, expected: &[&str]) {
        let head = parse(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).unwrap();
        assert_eq!(head.segments(), expected, "{target}");
    }

    #[test]
    fn paths_are_decoded_once_by_segment() {
        path("/", &[""]);
        path("/a/b", &["a", "b"]);
        path("/a/", &["a", ""]);
        path("//a", &["", "a"]);
        path("/a%2Fb/%25%32%35", &["a/b", "%25"]);
        path("/a+b/%C3%A9?x=/y", &["a+b", "é"]);
        path("/../%2e%2E", &["..", ".."]);
        path("http://other:80/a?b", &["a"]);
        path("HTTPS://[::1]/a", &["a"]);
        path("http://other", &[""]);
        path("http://other?a", &[""]);
    }

    #[test]
    fn malformed_targets_are_refused() {
        for target in [
            "a",
            "*",
            "host:80",
            "/%",
            "/%4",
            "/%zz",
            "/%00",
            "/%ff",
            "/a#b",
            "/é",
            "ftp://a/b",
            "http:///a",
            "http://u@a/b",
        ] {
            refused(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
        }
        refused("GET /?a=%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    }

    #[test]
    fn malformed_request_lines_are_refused() {
        for line in [
            "GET /",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 ",
            "GET / /HTTP/1.1",
            "GET / http/1.1",
            " GET / HTTP/1.1",
            "G(T / HTTP/1.1",
            "GET / HTTP/1.10",
            "GET / HTTP/1",
            "/ HTTP/1.1",
        ] {
            refused(&format!("{line}\r\nHost: a\r\n\r\n"), 400);
        }
        for version in ["2.0", "3.0", "0.9", "1.2"] {
            refused(&format!("GET / HTTP/{version}\r\nHost: a\r\n\r\n"), 505);
        }
        refused("PRI * HTTP/2.0\r\n\r\n", 505);
    }

    #[test]
    fn malformed_fields_are_refused() {
        for field in ["A : b", "A b: c", " folded", "A\r\n b", ": b", "A", "Host: b", "A\u{e9}: b"] {
            refused(&format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n"), 400);
        }
        refused("GET / HTTP/1.1\r\n\r\n", 400);
        refused("GET / HTTP/1.1\r\nHost:\r\n\r\n", 400);
        refused("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400);
        refused("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400);
        refused("GET / HTTP/1.1\r\nHost: a\r\n1: 1\r\n2: 2\r\n3: 3\r\n4: 4\r\n\r\n", 431);
        refused("GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n", 417);
        assert!(parse("GET / HTTP/1.0\r\n\r\n").is_ok());
    }

    #[test]
    fn body_has_one_length() {
        let check = |fields: &str, expected: Option<Framing>| {
            let head = parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
            assert_eq!(head.as_ref().ok().map(RequestHead::framing), expected, "{fields:?}");
            assert!(head.map_err(|r| r.status).err().is_none_or(|status| status == 400));
        };
        check("", Some(Framing::None));
        check("Content-Length: 0\r\n", Some(Framing::None));
        check("Content-Length: 5\r\n", Some(Framing::Length(5)));
        check("Content-Length: \t 5 \r\n", Some(Framing::Length(5)));
        check("content-length: 18446744073709551615\r\n", Some(Framing::Length(u64::MAX)));
        check("Transfer-Encoding: chunked\r\n", Some(Framing::Chunked));
        check("transfer-encoding: Chunked\r\n", Some(Framing::Chunked));
        for value in ["", "+5", "-5", "0x5", "5 5", "5,5", "5.0", "five", "\u{a0}5", "18446744073709551616"] {
            check(&format!("Content-Length: {value}\r\n"), None);
        }
        for value in ["", "gzip", "chunked, gzip", "gzip, chunked", "xchunked", "chunked;q=1", "chunked,", "identity"] {
            check(&format!("Transfer-Encoding: {value}\r\n"), None);
        }
        check("Content-Length: 5\r\nContent-Length: 5\r\n", None);
        check("Content-Length: 5\r\nContent-Length: 6\r\n", None);
        check("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", None);
        check("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", None);
        check("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", None);
        refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
    }

    #[test]
    fn internal_fields_of_clients_are_dropped() {
        let head = parse("GET / HTTP/1.1\r\nHost: a\r\nx-LAKEMILL-peer: 127.0.0.1:1\r\nX-Lakemill-Other: 1\r\n\r\n");
        let head = head.unwrap();
        let peers: Vec<_> = head.headers().all(PEER_HEADER).collect();
        assert_eq!(peers, [b"192.0.2.1:9"]);
        assert_eq!(head.header("x-lakemill-other"), None);
        assert!(!head.is_local());
    }

    #[test]
    fn request_of_a_proxy_without_settings_is_not_local() {
        let local = |text: &str| {
            RequestHead::parse(text.as_bytes(), 64, SocketAddr::from(([127, 0, 0, 1], 9)), &[]).unwrap().is_local()
        };
        assert!(local("GET / HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n\r\n"));
        assert!(!local("GET / HTTP/1.0\r\nHost: 127.0.0.1:3000\r\nConnection: close\r\n\r\n"));
        assert!(!local("GET / HTTP/1.0\r\n\r\n"));
    }

    #[test]
    fn connections_stay_open_unless_either_says_close() {
        let keeps = |text: &str| parse(text).unwrap().keep_alive;
        assert!(keeps("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, closed\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"));
        assert!(!keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    }
}
