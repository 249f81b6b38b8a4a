//! Malformed or excess requests: answered with a status, then closed.

use percent_encoding::percent_decode_str;

/// A head or connection that is refused with `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefusedRequest {
    pub(super) status: u16,
    pub(super) message: &'static str,
}

pub(super) const fn refuse<T>(status: u16, message: &'static str) -> Result<T, RefusedRequest> {
    Err(RefusedRequest { status, message })
}

/// Decodes `%XX` once; refuses a `%` without two hex digits, NUL, and invalid UTF-8.
pub(super) fn decode(text: &str) -> Result<String, RefusedRequest> {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let escaped = bytes.iter().enumerate().filter(|(_, b)| **b == b'%').all(|(at, _)| hex(at + 1) && hex(at + 2));
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) if escaped && !decoded.contains('\0') => Ok(decoded.into_owned()),
        Ok(_) | Err(_) => refuse(400, "the request target has a malformed percent escape"),
    }
}
