//! Finds the end of a request head while it arrives, and refuses at once what can't become one.
//!
//! Invariant: a byte is looked at once, however slowly it comes.

/// What is known of the head so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scanned {
    Partial,
    /// The head ends after this many bytes.
    Complete(usize),
    Bad(Flaw),
}

/// Why the bytes are no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// A control character, or a line that doesn't end in CR LF.
    Control,
    TooLong,
    TooManyFields,
}

/// The scan of one head, which starts at the first byte of the buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Scan {
    at: usize,
    line_start: usize,
    /// Lines that weren't empty.
    lines: usize,
}

impl Scan {
    /// Goes on where the last call stopped; `bytes` are those of the last call and more.
    pub(super) fn advance(&mut self, bytes: &[u8], bytes_max: usize, fields_max: usize) -> Scanned {
        while let Some(&byte) = bytes.get(self.at) {
            if self.at >= bytes_max {
                return Scanned::Bad(Flaw::TooLong);
            }
            let after_cr = self.at > self.line_start && bytes[self.at - 1] == b'\r';
            if after_cr != (byte == b'\n') || (byte < b' ' && !b"\t\r\n".contains(&byte)) || byte == 0x7f {
                return Scanned::Bad(Flaw::Control);
            }
            self.at += 1;
            if byte == b'\n' {
                let empty = self.at - self.line_start == 2;
                self.line_start = self.at;
                if empty && self.lines > 0 {
                    return Scanned::Complete(self.at);
                }
                self.lines += usize::from(!empty);
                // The request line is no field.
                if self.lines > fields_max + 1 {
                    return Scanned::Bad(Flaw::TooManyFields);
                }
            }
        }
        Scanned::Partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Scanned) {
        let whole = Scan::default().advance(text.as_bytes(), 64, 2);
        let mut drip = Scan::default();
        let dripped = (1..=text.len())
            .map(|end| drip.advance(&text.as_bytes()[..end], 64, 2))
            .find(|scanned| *scanned != Scanned::Partial)
            .unwrap_or(Scanned::Partial);
        assert_eq!((whole, dripped), (expected, expected), "{text:?}");
    }

    #[test]
    fn heads_end_at_their_empty_line() {
        check("GET / HTTP/1.1\r\n\r\nrest", Scanned::Complete(18));
        check("\r\n\r\nGET / HTTP/1.1\r\n\r\n", Scanned::Complete(22));
        check("GET / HTTP/1.1\r\na: b\r\nc:\td\r\n\r\n", Scanned::Complete(30));
        check("GET / HTTP/1.1\r\n", Scanned::Partial);
        check("\r\n\r\n", Scanned::Partial);
        check("", Scanned::Partial);
    }

    #[test]
    fn what_is_no_head_is_refused_at_the_byte() {
        check("GET / HTTP/1.1\n\n", Scanned::Bad(Flaw::Control));
        check("GET / HTTP/1.1\r\n\n", Scanned::Bad(Flaw::Control));
        check("GET /\rX HTTP/1.1\r\n\r\n", Scanned::Bad(Flaw::Control));
        check("GET / HTTP/1.1\r\r\n", Scanned::Bad(Flaw::Control));
        check("GET / HTTP/1.1\r\na: \0\r\n\r\n", Scanned::Bad(Flaw::Control));
        check("GET / HTTP/1.1\r\na: \x7f\r\n\r\n", Scanned::Bad(Flaw::Control));
        check("\x16\x03\x01", Scanned::Bad(Flaw::Control));
        check("\n", Scanned::Bad(Flaw::Control));
        check("G / HTTP/1.1\r\na:b\r\nc:d\r\ne:f\r\n\r\n", Scanned::Bad(Flaw::TooManyFields));
        check(&format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(80)), Scanned::Bad(Flaw::TooLong));
    }
}
