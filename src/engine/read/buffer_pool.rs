//! Reuses the text buffers of parsed chunks.
//!
//! Must not: clear buffers. They are overwritten, and fresh or zeroed memory costs more than most of the work done with
//! it.

use parking_lot::Mutex;
use std::fmt;
use std::ops::{Deref, Range};

/// Larger buffers (of a long record) are not kept, in bytes.
const BUFFER_BYTES_MAX: usize = 4 << 20;

/// Text in a buffer that may be larger; bytes outside the span are meaningless.
#[derive(Default)]
pub struct ChunkText {
    buffer: Vec<u8>,
    span: Range<usize>,
}

impl ChunkText {
    /// The bytes of a buffer at `span`.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub(super) fn new(buffer: Vec<u8>, span: Range<usize>) -> Self {
        assert!(buffer.get(span.clone()).is_some(), "a buffer of {} bytes has no {span:?}", buffer.len());
        Self { buffer, span }
    }

    /// Truncates the text to at most `bytes`.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.span.end = self.span.end.min(self.span.start + bytes);
    }

    /// Bytes that the buffer takes up.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

impl Deref for ChunkText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.span.clone()]
    }
}

impl fmt::Debug for ChunkText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self))
    }
}

/// Shared by the readers of a conversion and the parsers of their chunks.
#[derive(Debug, Default)]
pub struct BufferPool {
    kept: Mutex<Vec<Vec<u8>>>,
    buffers_max: usize,
}

impl BufferPool {
    /// Keeps at most `buffers_max` buffers.
    pub fn new(buffers_max: usize) -> Self {
        Self { kept: Mutex::default(), buffers_max }
    }

    /// Returns the buffer of a text.
    pub fn put(&self, text: ChunkText) {
        let buffer = text.buffer;
        if buffer.is_empty() || buffer.capacity() > BUFFER_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.len() < self.buffers_max {
            kept.push(buffer);
        }
    }

    /// A buffer at its full length; an empty one if the pool is empty.
    pub(super) fn take(&self) -> Vec<u8> {
        self.kept.lock().pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_keeps_whole_buffers_up_to_its_limit() {
        let buffers = BufferPool::new(2);
        let mut cut = ChunkText::new((0..100).collect(), 5..90);
        cut.truncate(10);
        cut.truncate(20);
        assert_eq!(*cut, [5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        buffers.put(cut);
        buffers.put(ChunkText::default());
        buffers.put(ChunkText::new(vec![0; BUFFER_BYTES_MAX + 1], 0..1));
        assert_eq!(buffers.take().len(), 100);
        assert!(buffers.take().is_empty());
        for _ in 0..3 {
            buffers.put(ChunkText::new(vec![0; 8], 0..8));
        }
        assert_eq!([buffers.take(), buffers.take(), buffers.take()].map(|buffer| buffer.len()), [8, 8, 0]);
    }
}
