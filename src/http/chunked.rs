//! Bodies in `Transfer-Encoding: chunked`, read strictly.
//!
//! Invariant: an end is reported only after the last chunk and its trailers; every line is bounded and ends in CR LF, and
//! every trailer is a header field.

use std::io::{self, BufRead, ErrorKind};

/// Longest line with a chunk's size and its extensions, in bytes.
const SIZE_LINE_BYTES_MAX: usize = 256;
/// Longest trailers, all together, in bytes; they are read and dropped.
const TRAILER_BYTES_MAX: usize = 8 << 10;
/// Hex digits of a chunk's size.
const SIZE_DIGITS_MAX: usize = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Data(u64),
    DataEnd,
    Trailers(usize),
    Done,
}

/// The state between two reads of one chunked body.
#[derive(Debug)]
pub(super) struct ChunkDecoder(State);

impl ChunkDecoder {
    pub(super) fn new() -> Self {
        Self(State::Size)
    }

    /// Whether the end was read, trailers too.
    pub(super) fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// Reads decoded bytes; 0 only at the end of the body (`out` must not be empty).
    ///
    /// # Errors
    /// `InvalidData`: malformed; `UnexpectedEof`: cut off; or the error of `source`.
    pub(super) fn read(&mut self, source: &mut impl BufRead, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0 {
                State::Size => {
                    let size = chunk_size(&read_line(source, SIZE_LINE_BYTES_MAX)?)?;
                    self.0 = if size == 0 { State::Trailers(0) } else { State::Data(size) };
                }
                State::Data(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
                    let read = source.read(&mut out[..most])?;
                    if read == 0 {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    let left = left - read as u64;
                    self.0 = if left == 0 { State::DataEnd } else { State::Data(left) };
                    return Ok(read);
                }
                State::DataEnd => {
                    read_line(source, 0)?;
                    self.0 = State::Size;
                }
                State::Trailers(before) => {
                    let line = read_line(source, TRAILER_BYTES_MAX - before)?;
                    if !line.is_empty() && !is_field(&line) {
                        return Err(malformed("a trailer of a chunked body is not a header field"));
                    }
                    self.0 = if line.is_empty() { State::Done } else { State::Trailers(before + line.len()) };
                }
                State::Done => return Ok(0),
            }
        }
    }
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// One line of at most `max` bytes, without its CR LF.
fn read_line(source: &mut impl BufRead, max: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let Some(&byte) = source.fill_buf()?.first() else { return Err(ErrorKind::UnexpectedEof.into()) };
        source.consume(1);
        let after_cr = line.last() == Some(&b'\r');
        if after_cr != (byte == b'\n') {
            return Err(malformed("a line of a chunked body doesn't end in CR LF"));
        }
        if after_cr {
            line.pop();
            return Ok(line);
        }
        if line.len() >= max && byte != b'\r' {
            return Err(malformed("a line of a chunked body is too long"));
        }
        if byte < b' ' && !b"\t\r".contains(&byte) {
            return Err(malformed("a line of a chunked body has a control character"));
        }
        line.push(byte);
    }
}

/// Whether a line is `name: value`, as strictly as in a request head: no folding, no space before the colon.
fn is_field(line: &[u8]) -> bool {
    let name = line.iter().position(|b| *b == b':').map(|colon| &line[..colon]);
    name.is_some_and(|name| !name.is_empty() && name.iter().all(|b| is_token(*b)))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let (digits, extension) = line.split_at(line.iter().position(|b| *b == b';').unwrap_or(line.len()));
    if !quotes_are_closed(extension) {
        return Err(malformed("a chunk's extension has a quote that its line doesn't close"));
    }
    let ok = (1..=SIZE_DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| ok);
    text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or_else(|| malformed("a chunk's size is malformed"))
}

/// A proxy may search for the closing quote beyond the line, and then see another end of the body.
fn quotes_are_closed(extension: &[u8]) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    for byte in extension {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
    }
    !quoted
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn decode(text: &str) -> Result<(String, String), ErrorKind> {
        let (mut source, mut decoder, mut out) = (text.as_bytes(), ChunkDecoder::new(), Vec::new());
        let mut piece = [0; 3];
        loop {
            match decoder.read(&mut source, &mut piece).map_err(|error| error.kind())? {
                0 => break,
                read => out.extend_from_slice(&piece[..read]),
            }
        }
        assert!(decoder.is_done());
        let mut rest = String::new();
        source.read_to_string(&mut rest).unwrap();
        Ok((String::from_utf8(out).unwrap(), rest))
    }

    #[test]
    fn chunks_extensions_and_trailers_are_read() {
        let check = |text: &str, body: &str| assert_eq!(decode(text), Ok((body.into(), "NEXT".into())), "{text:?}");
        check("0\r\n\r\nNEXT", "");
        check("5\r\nhello\r\n0\r\n\r\nNEXT", "hello");
        check("5;a=\"b;\\\"c\"\r\nhello\r\n0\r\n\r\nNEXT", "hello");
        check("0\r\nA: b\r\nx-c:\r\n\r\nNEXT", "");
        check("5;a=b\r\nhello\r\nA\r\n0123456789\r\n000\r\nTrailer: x\r\n\r\nNEXT", "hello0123456789");
    }

    #[test]
    fn malformed_and_incomplete_bodies_are_errors() {
        let bad = |text: &str| assert_eq!(decode(text), Err(ErrorKind::InvalidData), "{text:?}");
        for text in [
            "\r\n",
            "x\r\n",
            "+5\r\n",
            "0x5\r\n",
            "5 \r\nhello\r\n",
            "-1\r\n",
            "5;a=\"\r\nhello\r\n0\r\n\r\n",
            "5;a=\"b\\\"\r\nhello\r\n0\r\n\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhelloX",
            "5\r\nhello\n0\r\n\r\n",
            "ffffffffffffffff\r\n",
            "5\r\nhello\r\n0\r\n\n",
            "5\rx",
            "0\r\na\0: b\r\n\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\nGET / HTTP/1.1\r\n\r\n",
            "0\r\n: nameless\r\n\r\n",
            "0\r\nA : b\r\n\r\n",
            "0\r\nA: b\r\n folded\r\n\r\n",
            "0\r\n\u{e9}: b\r\n\r\n",
        ] {
            bad(text);
        }
        bad(&format!("5;{}\r\n", "x".repeat(SIZE_LINE_BYTES_MAX)));
        bad(&format!("0\r\nA: {}\r\n\r\n", "x".repeat(TRAILER_BYTES_MAX)));
        bad(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(TRAILER_BYTES_MAX / 2)));
        for text in ["", "5", "5\r\nhel", "5\r\nhello", "5\r\nhello\r\n", "0\r\n", "0\r\n\r"] {
            assert_eq!(decode(text), Err(ErrorKind::UnexpectedEof), "{text:?}");
        }
    }
}
