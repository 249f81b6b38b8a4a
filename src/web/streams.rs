//! Responses that are streamed or saved as files.
//!
//! A streamed body lasts as long as its client takes; permits bound their number, so that slow clients leave handlers for
//! others.

use std::fmt::Write as _;
use std::io::{self, Read};

use crate::http::Response;
use crate::sync::Permit;

/// Bodies of unbounded length that are sent or received at a time.
pub const STREAMS_MAX: usize = 16;

/// A body that holds its permit until it is sent or its client disconnects.
struct Streamed<R> {
    inner: R,
    _permit: Permit,
}

impl<R: Read> Read for Streamed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.inner.read(into)
    }
}

/// A response whose body is read while it is sent; see [`Response::reader`].
pub fn streamed(
    status: u16,
    content_type: &str,
    body: impl Read + Send + 'static,
    length: Option<u64>,
    permit: Permit,
) -> Response {
    Response::reader(status, content_type, Streamed { inner: body, _permit: permit }, length)
}

/// The `Content-Disposition` that makes browsers save a response as a file (RFC 6266): the name in ASCII, and in UTF-8
/// if that differs.
pub fn attachment(name: &str) -> String {
    let plain = |c: char| if (c.is_ascii_graphic() || c == ' ') && !"\"\\%/".contains(c) { c } else { '_' };
    let fallback: String = name.chars().map(plain).collect();
    if fallback == name {
        return format!("attachment; filename=\"{name}\"");
    }
    let mut encoded = String::new();
    for byte in name.bytes() {
        // The characters that RFC 5987 leaves unencoded.
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    format!("attachment; filename=\"{fallback}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachment_names_are_escaped() {
        for (name, expected) in [
            ("a b.csv", r#"attachment; filename="a b.csv""#),
            ("é.csv", r#"attachment; filename="_.csv"; filename*=UTF-8''%C3%A9.csv"#),
            (r#"a";x=".csv"#, r#"attachment; filename="a_;x=_.csv"; filename*=UTF-8''a%22%3Bx%3D%22.csv"#),
            ("100%.csv", r#"attachment; filename="100_.csv"; filename*=UTF-8''100%25.csv"#),
            ("a\r\nb", r#"attachment; filename="a__b"; filename*=UTF-8''a%0D%0Ab"#),
        ] {
            assert_eq!(attachment(name), expected);
        }
    }
}
