//! Decompresses by the key's extension, within bounds; errors state the offset.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::error::ReadError;
use super::stored::StoredBody;
use crate::domain::limits::{INFLATE_FREE_BYTES, INFLATE_RATIO_MAX};
use crate::domain::source_name::{SourceCompression, compression};

const STORED_BUFFER_BYTES: usize = 128 << 10;
/// Largest zstd window, as a power of two: the maximum of `zstd` without `--long`.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

enum StoredFormat {
    Plain(StoredBody),
    /// Any number of members.
    Gzip(Box<MultiGzDecoder<BufReader<StoredBody>>>),
    /// Any number of frames.
    Zstd(zstd::stream::read::Decoder<'static, BufReader<StoredBody>>),
}

/// The decompressed bytes of an object.
pub(super) struct Inflate {
    key: String,
    format: StoredFormat,
    stored_size: u64,
    bytes: u64,
}

impl Inflate {
    pub fn open(key: &str, body: Box<dyn Read + Send>, stored_size: u64) -> Result<Self, ReadError> {
        let io_error = |source| ReadError::Io { key: key.to_owned(), source };
        let stored = StoredBody::open(body).map_err(io_error)?;
        let named = KeyExtension::of(key);
        let found = magic(stored.head());
        let wrong = |found| ReadError::WrongMagic { key: key.to_owned(), expected: named.expected(), found };
        let format = match (named, found) {
            (KeyExtension::Plain, None) => StoredFormat::Plain(stored),
            (KeyExtension::Gzip, Some(GZIP)) => {
                let stored = BufReader::with_capacity(STORED_BUFFER_BYTES, stored);
                StoredFormat::Gzip(Box::new(MultiGzDecoder::new(stored)))
            }
            (KeyExtension::Zstd, Some(ZSTD)) => {
                let stored = BufReader::with_capacity(STORED_BUFFER_BYTES, stored);
                let mut decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(io_error)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(io_error)?;
                StoredFormat::Zstd(decoder)
            }
            (KeyExtension::Gzip | KeyExtension::Zstd, None) if stored.head().is_empty() => {
                return Err(wrong("an empty object"));
            }
            (KeyExtension::Gzip | KeyExtension::Zstd, None) => return Err(wrong("other bytes")),
            (_, Some(found)) => return Err(wrong(found)),
        };
        Ok(Self { key: key.to_owned(), format, stored_size, bytes: 0 })
    }

    /// Bytes that are already decompressed, regardless of the key's extension.
    pub fn plain(key: &str, body: Box<dyn Read + Send>) -> Result<Self, ReadError> {
        let stored = StoredBody::open(body).map_err(|source| ReadError::Io { key: key.to_owned(), source })?;
        Ok(Self { key: key.to_owned(), format: StoredFormat::Plain(stored), stored_size: 0, bytes: 0 })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn stored(&self) -> &StoredBody {
        match &self.format {
            StoredFormat::Plain(stored) => stored,
            StoredFormat::Gzip(decoder) => decoder.get_ref().get_ref(),
            StoredFormat::Zstd(decoder) => decoder.get_ref().get_ref(),
        }
    }

    /// The object's size in bytes; 0 where it is irrelevant.
    pub fn stored_size(&self) -> u64 {
        self.stored_size
    }

    /// The object, if its bytes are returned as stored.
    pub fn as_stored(&mut self) -> Option<&mut StoredBody> {
        match &mut self.format {
            StoredFormat::Plain(stored) => Some(stored),
            StoredFormat::Gzip(_) | StoredFormat::Zstd(_) => None,
        }
    }

    /// Decompressed bytes returned so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads bytes; 0 at the end of the object.
    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, ReadError> {
        loop {
            let read = match &mut self.format {
                StoredFormat::Plain(stored) => stored.read(out),
                StoredFormat::Gzip(decoder) => decoder.read(out),
                StoredFormat::Zstd(decoder) => decoder.read(out),
            };
            match read {
                Ok(read) => {
                    self.bytes += read as u64;
                    self.check_ratio()?;
                    return Ok(read);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.explain(e)),
            }
        }
    }

    fn check_ratio(&self) -> Result<(), ReadError> {
        let ratio_max = self.stored_size.saturating_mul(INFLATE_RATIO_MAX);
        match self.format {
            StoredFormat::Plain(_) => Ok(()),
            StoredFormat::Gzip(_) | StoredFormat::Zstd(_) if self.bytes <= INFLATE_FREE_BYTES.max(ratio_max) => Ok(()),
            StoredFormat::Gzip(_) | StoredFormat::Zstd(_) => {
                Err(ReadError::InflatesTooMuch { key: self.key.clone(), stored: self.stored_size, offset: self.bytes })
            }
        }
    }

    fn explain(&self, source: io::Error) -> ReadError {
        let key = self.key.clone();
        let format = match &self.format {
            StoredFormat::Plain(_) => return ReadError::Io { key, source },
            StoredFormat::Gzip(_) => "gzip",
            StoredFormat::Zstd(_) => "zstd",
        };
        if self.stored().failed() {
            ReadError::Io { key, source }
        } else if source.kind() == io::ErrorKind::UnexpectedEof {
            ReadError::Truncated { key, format, offset: self.bytes }
        } else {
            ReadError::Corrupt { key, format, offset: self.bytes, reason: source.to_string() }
        }
    }
}

/// Whether the object of this key is compressed.
pub(super) fn is_compressed(key: &str) -> bool {
    !matches!(KeyExtension::of(key), KeyExtension::Plain)
}

#[derive(Clone, Copy)]
enum KeyExtension {
    Plain,
    Gzip,
    Zstd,
}

impl KeyExtension {
    fn of(key: &str) -> Self {
        match compression(key) {
            None => Self::Plain,
            Some(SourceCompression::Gzip) => Self::Gzip,
            Some(SourceCompression::Zstd) => Self::Zstd,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Plain => "uncompressed text",
            Self::Gzip => GZIP,
            Self::Zstd => ZSTD,
        }
    }
}

const GZIP: &str = "gzip data";
const ZSTD: &str = "zstd data";

/// The format by magic bytes, if the bytes can't be text.
fn magic(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x1f, 0x8b, ..] => Some(GZIP),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(ZSTD),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz data"),
        _ => None,
    }
}
