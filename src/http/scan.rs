//! Finds the end of a request head while it arrives, and refuses malformed bytes at once.
//!
//! Invariant: each byte is examined once, however slowly the head arrives.

use super::refusal::RefusedRequest;

/// The state of a head so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadState {
    Partial,
    /// Maximum length of the head in bytes.
    Complete(usize),
    Malformed(HeadFault),
}

/// Why the bytes are not a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadFault {
    /// A control character, or a line that doesn't end in CR LF.
    Control,
    TooLong,
    TooManyFields,
}

impl HeadFault {
    pub(super) fn refusal(self) -> RefusedRequest {
        let (status, message) = match self {
            Self::Control => (400, "the request head has a control character or a line that doesn't end in CR LF"),
            Self::TooLong => (431, "the request head is too long"),
            Self::TooManyFields => (431, "the request has too many header fields"),
        };
        RefusedRequest { status, message }
    }
}

/// Scans one head, which starts at the first byte of the buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadScanner {
    at: usize,
    line_start: usize,
    /// Lines that were not empty.
    lines: usize,
}

impl HeadScanner {
    /// Continues where the last call stopped; `bytes` starts with the bytes of the last call.
    pub(super) fn advance(&mut self, bytes: &[u8], bytes_max: usize, fields_max: usize) -> HeadState {
        while let Some(&byte) = bytes.get(self.at) {
            if self.at >= bytes_max {
                return HeadState::Malformed(HeadFault::TooLong);
            }
            let after_cr = self.at > self.line_start && bytes[self.at - 1] == b'\r';
            if after_cr != (byte == b'\n') || (byte < b' ' && !b"\t\r\n".contains(&byte)) || byte == 0x7f {
                return HeadState::Malformed(HeadFault::Control);
            }
            self.at += 1;
            if byte == b'\n' {
                let empty = self.at - self.line_start == 2;
                self.line_start = self.at;
                if empty && self.lines > 0 {
                    return HeadState::Complete(self.at);
                }
                self.lines += usize::from(!empty);
                // The request line is not a field.
                if self.lines > fields_max + 1 {
                    return HeadState::Malformed(HeadFault::TooManyFields);
                }
            }
        }
        HeadState::Partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: HeadState) {
        let whole = HeadScanner::default().advance(text.as_bytes(), 64, 2);
        let mut drip = HeadScanner::default();
        let dripped = (1..=text.len())
            .map(|end| drip.advance(&text.as_bytes()[..end], 64, 2))
            .find(|scanned| *scanned != HeadState::Partial)
            .unwrap_or(HeadState::Partial);
        assert_eq!((whole, dripped), (expected, expected), "{text:?}");
    }

    #[test]
    fn head_ends_at_its_empty_line() {
        check("GET / HTTP/1.1\r\n\r\nrest", HeadState::Complete(18));
        check("\r\n\r\nGET / HTTP/1.1\r\n\r\n", HeadState::Complete(22));
        check("GET / HTTP/1.1\r\na: b\r\nc:\td\r\n\r\n", HeadState::Complete(30));
        check("GET / HTTP/1.1\r\n", HeadState::Partial);
        check("\r\n\r\n", HeadState::Partial);
        check("", HeadState::Partial);
    }

    #[test]
    fn malformed_head_is_refused_at_the_first_wrong_byte() {
        check("GET / HTTP/1.1\n\n", HeadState::Malformed(HeadFault::Control));
        check("GET / HTTP/1.1\r\n\n", HeadState::Malformed(HeadFault::Control));
        check("GET /\rX HTTP/1.1\r\n\r\n", HeadState::Malformed(HeadFault::Control));
        check("GET / HTTP/1.1\r\r\n", HeadState::Malformed(HeadFault::Control));
        check("GET / HTTP/1.1\r\na: \0\r\n\r\n", HeadState::Malformed(HeadFault::Control));
        check("GET / HTTP/1.1\r\na: \x7f\r\n\r\n", HeadState::Malformed(HeadFault::Control));
        check("\x16\x03\x01", HeadState::Malformed(HeadFault::Control));
        check("\n", HeadState::Malformed(HeadFault::Control));
        check("G / HTTP/1.1\r\na:b\r\nc:d\r\ne:f\r\n\r\n", HeadState::Malformed(HeadFault::TooManyFields));
        check(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(80)), HeadState::Malformed(HeadFault::TooLong));
    }
}
