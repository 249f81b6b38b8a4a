//! Frames on the pipes: a kind, a length, that many bytes.
//!
//! Invariant: no length is believed before it is compared with a bound.

use std::io::{self, Read, Write};

use arrow::buffer::Buffer;

/// Bytes before a frame's content.
pub const HEAD_BYTES: usize = 5;
/// Largest task or reply, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 32 << 20;
/// Largest piece of a download, in bytes.
pub const PIECE_BYTES_MAX: usize = 64 << 10;
/// Largest text of rows that may be asked for, in bytes.
pub const ROWS_BYTES_MAX: u64 = 256 << 20;

/// Largest batch of columns for an evaluation, in bytes.
pub const INPUT_BYTES_MAX: usize = 1 << 30;
/// Largest outcome of an evaluation, in bytes.
pub const OUTCOME_BYTES_MAX: usize = 256 << 20;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A task or a reply, as JSON.
    Message,
    /// Rows as JSON text.
    Rows,
    /// A piece of a download.
    Piece,
    /// Columns of Arrow, as the message before tells them.
    Columns,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Self::Message => b'M',
            Self::Rows => b'R',
            Self::Piece => b'P',
            Self::Columns => b'C',
        }
    }
}

/// The first bytes of a frame of `length` bytes; `None` if the length has no room in them.
pub fn head(kind: Kind, length: usize) -> Option<[u8; HEAD_BYTES]> {
    let [a, b, c, d] = u32::try_from(length).ok()?.to_le_bytes();
    Some([kind.byte(), a, b, c, d])
}

/// Reads a frame's first bytes.
///
/// # Errors
/// What was found instead.
pub fn parse_head(head: [u8; HEAD_BYTES]) -> Result<(Kind, usize), String> {
    let kind = match head[0] {
        b'M' => Kind::Message,
        b'R' => Kind::Rows,
        b'P' => Kind::Piece,
        b'C' => Kind::Columns,
        other => return Err(format!("a frame of unknown kind `{other}`")),
    };
    Ok((kind, u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize))
}

/// Writes a frame.
///
/// # Errors
/// As the stream has them.
pub fn write(to: &mut impl Write, kind: Kind, content: &[u8]) -> io::Result<()> {
    let head = head(kind, content.len()).ok_or_else(|| io::Error::other("a frame longer than its length can say"))?;
    if content.len() < PIECE_BYTES_MAX {
        return to.write_all(&[&head, content].concat());
    }
    to.write_all(&head)?;
    to.write_all(content)
}

/// Writes a frame of several parts.
///
/// # Errors
/// As the stream has them.
pub fn write_parts(to: &mut impl Write, kind: Kind, parts: &[Buffer]) -> io::Result<()> {
    let length = parts.iter().map(Buffer::len).sum();
    let head = head(kind, length).ok_or_else(|| io::Error::other("a frame longer than its length can say"))?;
    to.write_all(&head)?;
    parts.iter().try_for_each(|part| to.write_all(part))
}

/// Reads the first bytes of a frame of columns, which has `length` bytes.
///
/// # Errors
/// As the stream has them; another frame.
pub fn read_columns_head(from: &mut impl Read, length: usize) -> io::Result<()> {
    let mut head = [0; HEAD_BYTES];
    from.read_exact(&mut head)?;
    match parse_head(head).map_err(io::Error::other)? {
        (Kind::Columns, found) if found == length => Ok(()),
        (kind, found) => {
            Err(io::Error::other(format!("a frame {kind:?} of {found} bytes, expected {length} bytes of columns")))
        }
    }
}

/// Reads a message; `None` at the end of the stream.
///
/// # Errors
/// As the stream has them; a frame of another kind, or one that is too long.
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
    if kind != Kind::Message || length > MESSAGE_BYTES_MAX {
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
    fn messages_read_back_and_nonsense_is_refused() {
        let mut stream = Vec::new();
        write(&mut stream, Kind::Message, b"{}").unwrap();
        write(&mut stream, Kind::Piece, b"x").unwrap();
        let mut from = stream.as_slice();
        assert_eq!(read_message(&mut from).unwrap(), Some(b"{}".to_vec()));
        assert!(read_message(&mut from).is_err(), "a piece is no message");
        assert_eq!(read_message(&mut [].as_slice()).unwrap(), None);
        for bad in [b"M".as_slice(), b"X\0\0\0\0", b"M\xff\xff\xff\xff", b"M\x02\0\0\0{"] {
            assert!(read_message(&mut &*bad).is_err(), "{bad:?}");
        }
    }
}
