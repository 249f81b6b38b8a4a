//! Reads forms with files (`multipart/form-data`, RFC 7578) as a stream of parts.
//!
//! Invariant: the form ends only at its last delimiter. An incomplete body, bytes before the first delimiter or after the
//! last one, and malformed heads are errors, never a shorter form.
//! Must not: hold more of a body than its buffer, or interpret the parts.

use std::io::{self, Read};

use memchr::memmem;

use super::body::BodyError;
use super::error::{ApiError, ErrorCode};
use super::request::body_failure;

/// Parts of one form.
const PARTS_MAX: usize = 16;
/// Head of one part, in bytes and fields.
const HEAD_BYTES_MAX: usize = 8 << 10;
const HEAD_FIELDS_MAX: usize = 16;
/// The longest boundary of the standard, in bytes.
const BOUNDARY_BYTES_MAX: usize = 70;
const BUFFER_BYTES: usize = 64 << 10;

const _: () = assert!(HEAD_BYTES_MAX + BOUNDARY_BYTES_MAX + 8 < BUFFER_BYTES, "a head fits the buffer");

/// Why a form can't be read. Also wrapped in the `io::Error` of a part's body.
#[derive(Debug, thiserror::Error)]
pub enum MultipartError {
    #[error("the content type must be `multipart/form-data` with a boundary")]
    NoBoundary,
    #[error("the form is malformed: {what}")]
    Malformed { what: &'static str },
    #[error("the form ends before its last delimiter")]
    Truncated,
    #[error("the form has more than {PARTS_MAX} parts")]
    TooManyParts,
    #[error("a part of the form has a head of more than {HEAD_BYTES_MAX} bytes or {HEAD_FIELDS_MAX} fields")]
    HeadTooLarge,
    /// Reading the underlying body failed.
    #[error("{0}")]
    Body(io::Error),
}

impl From<MultipartError> for ApiError {
    fn from(error: MultipartError) -> Self {
        match error {
            MultipartError::Body(error) => body_failure(&error),
            MultipartError::NoBoundary
            | MultipartError::Malformed { .. }
            | MultipartError::Truncated
            | MultipartError::TooManyParts
            | MultipartError::HeadTooLarge => Self::new(ErrorCode::InvalidRequest, error.to_string()),
        }
    }
}

impl From<MultipartError> for io::Error {
    fn from(error: MultipartError) -> Self {
        match error {
            MultipartError::Body(error) => error,
            error => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// The response if a part could not be read; `None` for errors of other sources, such as a disk.
pub fn part_failure(error: &io::Error) -> Option<ApiError> {
    if BodyError::within(error).is_some() {
        return Some(body_failure(error));
    }
    let inner = error.get_ref()?.downcast_ref::<MultipartError>()?;
    Some(ApiError::new(ErrorCode::InvalidRequest, inner.to_string()))
}

/// The head of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartHead {
    /// Name of the form field.
    pub name: String,
    /// For files only.
    pub file_name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Start,
    /// In the body of a part.
    Body,
    /// Right after a delimiter.
    Delimited,
    /// After the last delimiter.
    Done,
}

/// A form that is being read.
pub struct Multipart<R> {
    source: R,
    buffer: Vec<u8>,
    /// Buffered bytes: `buffer[start..end]`.
    start: usize,
    end: usize,
    /// `\r\n--` and the boundary.
    delimiter: Vec<u8>,
    /// Bytes from `start` on that belong to the part, and whether the delimiter follows them.
    clear: usize,
    delimiter_follows: bool,
    state: State,
    parts: usize,
    at_end: bool,
}

impl<R: Read> Multipart<R> {
    /// `content_type`: the request's.
    ///
    /// # Errors
    /// [`MultipartError::NoBoundary`].
    pub fn new(content_type: Option<&str>, source: R) -> Result<Self, MultipartError> {
        let boundary = content_type.and_then(boundary).ok_or(MultipartError::NoBoundary)?;
        let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
        let mut buffer = vec![0; BUFFER_BYTES];
        // Makes the first delimiter, at the start of the body, like all others.
        buffer[..2].copy_from_slice(b"\r\n");
        Ok(Self {
            source,
            buffer,
            start: 0,
            end: 2,
            delimiter,
            clear: 0,
            delimiter_follows: false,
            state: State::Start,
            parts: 0,
            at_end: false,
        })
    }

    /// Skips the rest of the current part and returns the head of the next; `None` after the last.
    ///
    /// # Errors
    /// The form is malformed, or reading the body failed.
    pub fn next_part(&mut self) -> Result<Option<PartHead>, MultipartError> {
        match self.state {
            State::Start => self.take_first_delimiter()?,
            State::Body => {
                while self.available()? > 0 {
                    self.take(self.clear);
                }
                self.take_delimiter();
            }
            State::Delimited => {}
            State::Done => return Ok(None),
        }
        self.need(2)?;
        match &self.buffer[self.start..self.start + 2] {
            b"--" => {
                self.start += 2;
                self.take_end()?;
                self.state = State::Done;
                Ok(None)
            }
            b"\r\n" => {
                self.start += 2;
                self.parts += 1;
                if self.parts > PARTS_MAX {
                    return Err(MultipartError::TooManyParts);
                }
                let head = self.take_head()?;
                self.state = State::Body;
                Ok(Some(head))
            }
            _ => Err(MultipartError::Malformed { what: "a delimiter is not followed by a line ending" }),
        }
    }

    /// The body of the current part.
    pub fn body(&mut self) -> PartBody<'_, R> {
        PartBody(self)
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn take(&mut self, bytes: usize) {
        self.start += bytes;
        self.clear -= bytes;
    }

    fn take_delimiter(&mut self) {
        self.start += self.delimiter.len();
        self.delimiter_follows = false;
        self.state = State::Delimited;
    }

    fn take_first_delimiter(&mut self) -> Result<(), MultipartError> {
        self.need(self.delimiter.len())?;
        if !self.buffered().starts_with(&self.delimiter) {
            return Err(MultipartError::Malformed { what: "it doesn't begin with the boundary of its content type" });
        }
        self.take_delimiter();
        Ok(())
    }

    /// Checks that nothing but a line ending follows the last delimiter.
    fn take_end(&mut self) -> Result<(), MultipartError> {
        while !self.at_end && self.buffered().len() <= 2 {
            self.fill()?;
        }
        if matches!(self.buffered(), b"" | b"\r\n") {
            return Ok(());
        }
        Err(MultipartError::Malformed { what: "data follows its last delimiter" })
    }

    fn take_head(&mut self) -> Result<PartHead, MultipartError> {
        let end = loop {
            let fields_end = memmem::find(self.buffered(), b"\r\n\r\n").map(|at| at + 4);
            if let Some(end) = fields_end.filter(|end| *end <= HEAD_BYTES_MAX) {
                break end;
            }
            if self.buffered().len() > HEAD_BYTES_MAX {
                return Err(MultipartError::HeadTooLarge);
            }
            self.fill_or_truncated()?;
        };
        let head = parse_head(&self.buffer[self.start..self.start + end])?;
        self.start += end;
        Ok(head)
    }

    /// Buffered bytes of the part's body; 0 at its end.
    fn available(&mut self) -> Result<usize, MultipartError> {
        loop {
            if self.clear > 0 || self.delimiter_follows {
                return Ok(self.clear);
            }
            match memmem::find(self.buffered(), &self.delimiter) {
                Some(at) => (self.clear, self.delimiter_follows) = (at, true),
                // The last bytes may be the start of a delimiter.
                None => self.clear = self.buffered().len().saturating_sub(self.delimiter.len() - 1),
            }
            if self.clear == 0 && !self.delimiter_follows {
                self.fill_or_truncated()?;
            }
        }
    }

    fn need(&mut self, bytes: usize) -> Result<(), MultipartError> {
        while self.buffered().len() < bytes {
            self.fill_or_truncated()?;
        }
        Ok(())
    }

    fn fill_or_truncated(&mut self) -> Result<(), MultipartError> {
        self.fill()?;
        if self.at_end { Err(MultipartError::Truncated) } else { Ok(()) }
    }

    /// Reads more into the buffer. The limits guarantee that there is room.
    fn fill(&mut self) -> Result<(), MultipartError> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let read = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(MultipartError::Body)?,
            }
        };
        self.end += read;
        self.at_end = read == 0;
        Ok(())
    }
}

/// The body of a part.
pub struct PartBody<'a, R>(&'a mut Multipart<R>);

impl<R: Read> Read for PartBody<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let form = &mut *self.0;
        if form.state != State::Body || out.is_empty() {
            return Ok(0);
        }
        let bytes = form.available()?.min(out.len());
        out[..bytes].copy_from_slice(&form.buffer[form.start..form.start + bytes]);
        form.take(bytes);
        Ok(bytes)
    }
}

/// The boundary of a `multipart/form-data`.
fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let (_, boundary) = parameters_of(parameters)?.into_iter().find(|(name, _)| name == "boundary")?;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&b);
    let fits = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()) && !boundary.ends_with(' ');
    (fits && boundary.bytes().all(allowed)).then_some(boundary)
}

/// `name=value; name="value"`, names in lowercase; `None` if malformed or if a name repeats.
fn parameters_of(text: &str) -> Option<Vec<(String, String)>> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let name = name.trim().to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_*".contains(&b)) {
            return None;
        }
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted)?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        if found.iter().any(|(other, _)| *other == name) {
            return None;
        }
        found.push((name, value));
        rest = match after.trim_start() {
            "" => "",
            after => after.strip_prefix(';')?.trim(),
        };
    }
    Some(found)
}

/// The value up to its closing quote, and the rest.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            // Only a quote and a backslash are escaped: Windows paths in file names have bare backslashes.
            '\\' => match chars.clone().next() {
                Some((_, next @ ('"' | '\\'))) => {
                    value.push(next);
                    chars.next();
                }
                Some(_) | None => value.push(c),
            },
            c => value.push(c),
        }
    }
    None
}

fn parse_head(bytes: &[u8]) -> Result<PartHead, MultipartError> {
    let malformed = |what| MultipartError::Malformed { what };
    let mut fields = [httparse::EMPTY_HEADER; HEAD_FIELDS_MAX];
    let fields = match httparse::parse_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete((length, fields))) if length == bytes.len() => fields,
        Ok(_) => return Err(malformed("the head of a part has an empty line within")),
        Err(httparse::Error::TooManyHeaders) => return Err(MultipartError::HeadTooLarge),
        Err(_) => return Err(malformed("the head of a part is malformed")),
    };
    let mut dispositions = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("content-disposition"));
    let disposition = dispositions.next().ok_or(malformed("a part has no `Content-Disposition`"))?;
    if dispositions.next().is_some() {
        return Err(malformed("a part has two `Content-Disposition`"));
    }
    let encoded = |field: &httparse::Header<'_>| {
        field.name.eq_ignore_ascii_case("content-transfer-encoding")
            && !["7bit", "8bit", "binary"].iter().any(|plain| field.value.eq_ignore_ascii_case(plain.as_bytes()))
    };
    if fields.iter().any(encoded) {
        return Err(malformed("a part has a transfer encoding, which browsers don't use"));
    }
    let text = std::str::from_utf8(disposition.value).map_err(|_| malformed("the name of a part is not UTF-8"))?;
    let (kind, parameters) = text.split_once(';').unwrap_or((text, ""));
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return Err(malformed("a part is not `form-data`"));
    }
    let parameters = parameters_of(parameters).ok_or(malformed("the `Content-Disposition` of a part is malformed"))?;
    let value = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let name = value("name").ok_or(malformed("a part has no name"))?;
    Ok(PartHead { name, file_name: value("filename") })
}

#[cfg(test)]
mod tests;
