//! Buffers of text that was parsed, for text to come.
//!
//! Must not: clear what a buffer holds. Whoever takes one overwrites it, and fresh or zeroed memory costs more than most
//! of what is done with it.

use parking_lot::Mutex;
use std::fmt;
use std::ops::{Deref, Range};

/// Larger buffers (of a record that was long) are not kept, in bytes.
const BUFFER_BYTES_MAX: usize = 4 << 20;

/// ChunkText in a buffer that may be larger: what lies before and behind the text means nothing.
#[derive(Default)]
pub struct ChunkText {
    buffer: Vec<u8>,
    span: Range<usize>,
}

impl ChunkText {
    /// The bytes of a buffer at `span`.
    ///
    /// # Panics
    /// If it has none there.
    pub(super) fn new(buffer: Vec<u8>, span: Range<usize>) -> Self {
        assert!(buffer.get(span.clone()).is_some(), "a buffer of {} bytes has no {span:?}", buffer.len());
        Self { buffer, span }
    }

    /// Leaves the first `bytes`, if there are more.
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

/// Shared by all readers of a conversion and those that parse their chunks.
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

    /// Takes the buffer of a text that is done with.
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

    /// Some buffer, as long as it is large; an empty one if there is none.
    pub(super) fn take(&self) -> Vec<u8> {
        self.kept.lock().pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_as_large_as_they_are_and_no_more_than_may_be_kept() {
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
