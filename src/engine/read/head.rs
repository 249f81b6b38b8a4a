//! The head of a source in memory, which inference and previews read repeatedly.
//!
//! Invariant: a head shorter than its source yields no part of the record that it cuts.

use std::io::{Cursor, Read};
use std::sync::Arc;

use super::chunk::Chunk;
use super::error::ReadError;
use super::inflate::Inflate;
use super::machine::Machine;
use super::reader::SourceReader;
use super::split::Splitter;
use crate::domain::pipeline::Dialect;

/// Minimal bytes per read.
const STEP_BYTES_MIN: usize = 64 << 10;

/// The first decompressed bytes of a source, or all of them.
#[derive(Clone)]
pub struct Head {
    key: String,
    bytes: Arc<[u8]>,
    whole: bool,
    stored_bytes: u64,
}

impl Head {
    /// Reads (and decompresses by the key's extension) at most `bytes_max` bytes of a body, or stops after the first
    /// step once `keep_going` returns false. `cut`: the body is only the first part of the object, `stored_size` bytes of
    /// it.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn fetch(
        key: &str,
        body: Box<dyn Read + Send>,
        stored_size: u64,
        cut: bool,
        bytes_max: usize,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Self, ReadError> {
        let mut inflate = Inflate::open(key, body, stored_size)?;
        let mut bytes = Vec::new();
        let mut filled = 0;
        // One more byte shows whether the source ends here.
        let room = bytes_max.saturating_add(1);
        let mut ended = false;
        while filled < room && !ended && (filled < STEP_BYTES_MIN || keep_going()) {
            if filled == bytes.len() {
                bytes.resize((filled + filled.max(STEP_BYTES_MIN)).min(room), 0);
            }
            match inflate.read(&mut bytes[filled..]) {
                Ok(0) => ended = true,
                Ok(read) => filled += read,
                Err(ReadError::Truncated { .. }) if cut => break,
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled.min(bytes_max));
        let whole = ended && !cut;
        Ok(Self { key: key.to_owned(), bytes: bytes.into(), whole, stored_bytes: inflate.stored().bytes() })
    }

    /// Decompressed, not decoded.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it is the whole source.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Stored bytes read for it.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Reads its records. A footer is cut off only if the head is the whole source.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn chunks(&self, dialect: &Dialect, chunk_bytes: usize) -> Result<HeadChunks, ReadError> {
        let mut dialect = dialect.clone();
        if !self.whole {
            dialect.skip_footer_rows = 0;
        }
        let inflate = Inflate::plain(&self.key, Box::new(Cursor::new(Arc::clone(&self.bytes))))?;
        let reader = SourceReader::with_inflate(inflate, &dialect, chunk_bytes, &Arc::default())?;
        let splitter = Splitter::new(Machine::new(&dialect));
        Ok(HeadChunks { reader, splitter, whole: self.whole, started: false, waiting: None })
    }
}

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, bytes, whole, .. } = self;
        f.debug_struct("Head").field("key", key).field("bytes", &bytes.len()).field("whole", whole).finish()
    }
}

/// The records of a head, chunk by chunk.
#[derive(Debug)]
pub struct HeadChunks {
    reader: SourceReader,
    splitter: Splitter,
    whole: bool,
    started: bool,
    /// The next chunk; it is the last if none follows.
    waiting: Option<Chunk>,
}

impl HeadChunks {
    /// See [`SourceReader::header`].
    pub fn header(&self) -> Option<&[String]> {
        self.reader.header()
    }

    /// See [`SourceReader::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.reader.is_empty()
    }

    /// See [`SourceReader::width`].
    pub fn width(&self) -> usize {
        self.reader.width()
    }

    /// The next chunk of whole records; `None` at the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    #[expect(clippy::should_implement_trait, reason = "an error ends the reading, which an iterator can't say")]
    pub fn next(&mut self) -> Result<Option<Chunk>, ReadError> {
        if !self.started {
            self.started = true;
            self.waiting = self.reader.next()?;
        }
        let Some(mut chunk) = self.waiting.take() else { return Ok(None) };
        self.waiting = self.reader.next()?;
        if self.waiting.is_none() && !self.whole {
            // An oversize record follows its chunk's text, so it is the truncated one.
            if chunk.oversize.is_empty() {
                let end = self.splitter.last_boundary(&chunk.text);
                chunk.text.truncate(end);
            }
            chunk.oversize.clear();
        }
        Ok(Some(chunk))
    }
}
