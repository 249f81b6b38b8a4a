//! Buffers of text that was parsed, for text to come.
//!
//! Must not: clear what a buffer holds. Whoever takes one overwrites it, and fresh or zeroed memory costs more than most
//! of what is done with it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// Larger buffers (of a record that was long) are not kept, in bytes.
const BUFFER_BYTES_MAX: usize = 4 << 20;

/// Text in a buffer that may be larger: what lies behind the text means nothing.
#[derive(Default)]
pub struct Text {
    buffer: Vec<u8>,
    bytes: usize,
}

impl Text {
    /// The first `bytes` of a buffer.
    ///
    /// # Panics
    /// If it has fewer.
    pub(super) fn new(buffer: Vec<u8>, bytes: usize) -> Self {
        assert!(bytes <= buffer.len(), "a buffer of {} bytes has no {bytes}", buffer.len());
        Self { buffer, bytes }
    }

    /// Leaves the first `bytes`, if there are more.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.bytes = self.bytes.min(bytes);
    }

    /// Bytes that the buffer takes up.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.bytes]
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self))
    }
}

/// Shared by all readers of a conversion and those that parse their chunks.
#[derive(Debug, Default)]
pub struct Spares {
    kept: Mutex<Vec<Vec<u8>>>,
    buffers_max: usize,
}

impl Spares {
    /// Keeps at most `buffers_max` buffers.
    pub fn new(buffers_max: usize) -> Self {
        Self { kept: Mutex::default(), buffers_max }
    }

    /// Takes the buffer of a text that is done with.
    pub fn give(&self, text: Text) {
        let buffer = text.buffer;
        if buffer.is_empty() || buffer.capacity() > BUFFER_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < self.buffers_max {
            kept.push(buffer);
        }
    }

    /// Some buffer, as long as it is large; an empty one if there is none.
    pub(super) fn take(&self) -> Vec<u8> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_as_large_as_they_are_and_no_more_than_may_be_kept() {
        let spares = Spares::new(2);
        let mut cut = Text::new(vec![b'x'; 100], 90);
        cut.truncate(10);
        cut.truncate(20);
        assert_eq!(&*cut, b"xxxxxxxxxx");
        spares.give(cut);
        spares.give(Text::default());
        spares.give(Text::new(vec![0; BUFFER_BYTES_MAX + 1], 1));
        assert_eq!(spares.take().len(), 100);
        assert!(spares.take().is_empty());
        for _ in 0..3 {
            spares.give(Text::new(vec![0; 8], 8));
        }
        assert_eq!([spares.take(), spares.take(), spares.take()].map(|buffer| buffer.len()), [8, 8, 0]);
    }
}
