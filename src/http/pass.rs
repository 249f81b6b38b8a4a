//! What tiny_http answers, read and passed on to the client.
//!
//! Invariant: nothing is passed on as a whole body that isn't.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::chunked::ChunkDecoder;
use super::inner::Fate;
use super::reply::End;

/// Longest head that tiny_http may write, in bytes.
const INNER_HEAD_BYTES_MAX: usize = 64 << 10;
/// Fields of a response.
const INNER_FIELDS_MAX: usize = 128;
/// Copied at a time, in bytes.
const PIECE_BYTES: usize = 64 << 10;

pub(super) type InnerReader = BufReader<InnerStream>;

/// The connection to tiny_http, shared with those who may cut it.
pub(super) struct InnerStream(Arc<UnixStream>);

pub(super) fn reader_of(stream: &Arc<UnixStream>) -> InnerReader {
    BufReader::with_capacity(PIECE_BYTES, InnerStream(Arc::clone(stream)))
}

impl Read for InnerStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // With a timeout set, a signal ends a read whatever its handler says.
        loop {
            match (&*self.0).read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl Drop for InnerStream {
    fn drop(&mut self) {
        // A handler that still writes must not wait.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// `bytes`, then so many of `body`.
pub(super) fn pass_length(
    mut bytes: Vec<u8>,
    length: u64,
    body: &mut impl Read,
    client: &mut impl Write,
) -> io::Result<()> {
    let mut left = length;
    loop {
        let before = bytes.len();
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        bytes.resize(before + most, 0);
        let read = if most == 0 { 0 } else { body.read(&mut bytes[before..])? };
        if most > 0 && read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= read as u64;
        client.write_all(&bytes[..before + read])?;
        if left == 0 {
            return Ok(());
        }
        bytes.clear();
    }
}

/// `bytes`, then `body` without its chunks and, for `End::Chunks`, with chunks of its own. Only a whole body is ended.
pub(super) fn pass_chunks(
    mut bytes: Vec<u8>,
    end: End,
    body: &mut InnerReader,
    client: &mut impl Write,
    fate: &Fate,
) -> io::Result<()> {
    let mut decoder = ChunkDecoder::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = decoder.read(body, &mut piece)?;
        if read == 0 {
            if fate.has_failed() {
                return Err(io::Error::other("the body's reader failed"));
            }
            if end == End::Chunks {
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            return client.write_all(&bytes);
        }
        if end == End::Chunks {
            bytes.extend_from_slice(format!("{read:x}\r\n").as_bytes());
            bytes.extend_from_slice(&piece[..read]);
            bytes.extend_from_slice(b"\r\n");
        } else {
            bytes.extend_from_slice(&piece[..read]);
        }
        client.write_all(&bytes)?;
        bytes.clear();
    }
}

/// What tiny_http said of a response.
pub(super) struct InnerHead {
    pub(super) status: u16,
    pub(super) length: Option<u64>,
    /// Without those about framing, connection and server.
    pub(super) headers: Vec<(String, String)>,
}

impl InnerHead {
    pub(super) fn read(reader: &mut InnerReader) -> io::Result<Self> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let read = reader.by_ref().take(1 + INNER_HEAD_BYTES_MAX as u64).read_until(b'\n', &mut bytes)?;
            if read == 0 || bytes.len() > INNER_HEAD_BYTES_MAX {
                return Err(io::Error::other("the inner response has no head"));
            }
        }
        Self::parse(&bytes).ok_or_else(|| io::Error::other("the inner response's head is malformed"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = vec![httparse::EMPTY_HEADER; INNER_FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        response.parse(bytes).ok().filter(httparse::Status::is_complete)?;
        let mut head = Self { status: response.code?, length: None, headers: Vec::new() };
        for field in response.headers.iter() {
            let value = std::str::from_utf8(field.value).ok()?;
            match field.name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = Some(value.parse().ok()?),
                "connection" | "transfer-encoding" | "server" => {}
                _ => head.headers.push((field.name.to_owned(), value.to_owned())),
            }
        }
        Some(head)
    }
}
