//! Request ids, in every response and every log line of a request.

use std::fmt;
use std::sync::Arc;

/// Longest id accepted from a client, in bytes.
pub const REQUEST_ID_BYTES_MAX: usize = 64;

/// The client's id if it is `[A-Za-z0-9-]{1,64}`, otherwise a new UUIDv7.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

impl RequestId {
    pub fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }

    /// The client's id if it is well-formed, else a new one.
    pub fn accept(offered: Option<&[u8]>) -> Self {
        let ok = |id: &&[u8]| {
            (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
        };
        let text = offered.filter(ok).and_then(|id| std::str::from_utf8(id).ok());
        text.map_or_else(Self::new, |id| Self(id.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_ids_are_kept_and_others_replaced() {
        assert_eq!(RequestId::accept(Some(b"aZ-09")).as_str(), "aZ-09");
        let longest = "x".repeat(REQUEST_ID_BYTES_MAX);
        assert_eq!(RequestId::accept(Some(longest.as_bytes())).as_str(), longest);
        let too_long = "x".repeat(REQUEST_ID_BYTES_MAX + 1);
        let refused: [&[u8]; 5] = [b"", b"a b", b"a\"b", "\u{e9}".as_bytes(), too_long.as_bytes()];
        for offered in refused.map(Some).into_iter().chain([None]) {
            let id = RequestId::accept(offered);
            assert_eq!(uuid::Uuid::parse_str(id.as_str()).unwrap().get_version_num(), 7, "{offered:?} gave {id}");
        }
    }
}
