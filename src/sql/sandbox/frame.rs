//! Frames on the pipes: a kind, a length, that many bytes.
//!
//! Invariant: a length is compared with a limit before memory is allocated for it.

use std::io::{self, Read, Write};

use arrow::buffer::Buffer;

/// Bytes before a frame's content.
pub const HEAD_BYTES: usize = 5;
/// Largest task or reply, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 32 << 20;
/// Largest piece of a download, in bytes.
pub const PIECE_BYTES_MAX: usize = 64 << 10;
/// Largest JSON text of rows, in bytes.
pub const ROWS_BYTES_MAX: u64 = 256 << 20;

/// Largest batch of columns for an evaluation, in bytes.
pub const INPUT_BYTES_MAX: usize = 1 << 30;
/// Largest outcome of an evaluation, in bytes.
pub const OUTCOME_BYTES_MAX: usize = 256 << 20;

/// The kind of a frame's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A task or a reply, as JSON.
    Message,
    /// Rows as JSON text.
    Rows,
    /// A piece of a download.
    Piece,
    /// Arrow columns, described by the previous message.
    Columns,
}

impl FrameKind {
    fn byte(self) -> u8 {
        match self {
            Self::Message => b'M',
            Self::Rows => b'R',
            Self::Piece => b'P',
            Self::Columns => b'C',
        }
    }
}

/// The head of a frame of `length` bytes; `None` if the length doesn't fit.
pub fn head(kind: FrameKind, length: usize) -> Option<[u8; HEAD_BYTES]> {
    let [a, b, c, d] = u32::try_from(length).ok()?.to_le_bytes();
    Some([kind.byte(), a, b, c, d])
}

/// Parses the head of a frame.
///
/// # Errors
/// The text of the found bytes.
pub fn parse_head(head: [u8; HEAD_BYTES]) -> Result<(FrameKind, usize), String> {
    let kind = match head[0] {
        b'M' => FrameKind::Message,
        b'R' => FrameKind::Rows,
        b'P' => FrameKind::Piece,
        b'C' => FrameKind::Columns,
        other => return Err(format!("a frame of unknown kind `{other}`")),
    };
    Ok((kind, u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize))
}

/// Writes a frame.
///
/// # Errors
/// Errors of the stream.
pub fn write(to: &mut impl Write, kind: FrameKind, content: &[u8]) -> io::Result<()> {
    let head = head(kind, content.len()).ok_or_else(|| io::Error::other("the frame is too long"))?;
    if content.len() < PIECE_BYTES_MAX {
        return to.write_all(&[&head, content].concat());
    }
    to.write_all(&head)?;
    to.write_all(content)
}

/// Writes a frame of several parts.
///
/// # Errors
/// Errors of the stream.
pub fn write_parts(to: &mut impl Write, kind: FrameKind, parts: &[Buffer]) -> io::Result<()> {
    let length = parts.iter().map(Buffer::len).sum();
    let head = head(kind, length).ok_or_else(|| io::Error::other("the frame is too long"))?;
    to.write_all(&head)?;
    parts.iter().try_for_each(|part| to.write_all(part))
}

/// Reads the head of a frame of columns with `length` bytes.
///
/// # Errors
/// Errors of the stream; also another frame.
pub fn read_columns_head(from: &mut impl Read, length: usize) -> io::Result<()> {
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    match parse_head(head).map_err(io::Error::other)? {
        (FrameKind::Columns, found) if found == length => Ok(()),
        (kind, found) => {
            Err(io::Error::other(format!("a frame {kind:?} of {found} bytes, expected {length} bytes of columns")))
        }
    }
}

/// Reads a message; `None` at the end of the stream.
///
/// # Errors
/// Errors of the stream; also a frame of another kind, or one that is too long.
pub fn read_message(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; HEAD_BYTES];
    let mut read = 0;
    while read < HEAD_BYTES {
        match from.read(&mut head[read..]) {
            Ok(0) if read == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let (kind, length) = parse_head(head).map_err(io::Error::other)?;
    if kind != FrameKind::Message || length > MESSAGE_BYTES_MAX {
        return Err(io::Error::other(format!("a frame {kind:?} of {length} bytes, expected a message")));
    }
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_and_invalid_frames_are_refused() {
        let mut stream = Vec::new();
        write(&mut stream, FrameKind::Message, b"{}").unwrap();
        write(&mut stream, FrameKind::Piece, b"x").unwrap();
        let mut from = stream.as_slice();
        assert_eq!(read_message(&mut from).unwrap(), Some(b"{}".to_vec()));
        assert!(read_message(&mut from).is_err(), "a piece is not a message");
        assert_eq!(read_message(&mut [].as_slice()).unwrap(), None);
        for bad in [b"M".as_slice(), b"X\0\0\0\0", b"M\xff\xff\xff\xff", b"M\x02\0\0\0{"] {
            assert!(read_message(&mut &*bad).is_err(), "{bad:?}");
        }
    }
}
