//! Buffers of text that was parsed, for text to come.
//!
//! Must not: clear what a buffer holds. Whoever takes one overwrites it; only bytes that were cut off are zeroed again,
//! since fresh memory costs more than most of what is done with it.

use std::sync::{Mutex, PoisonError};

/// Larger buffers (of a record that was long) are not kept, in bytes.
const BUFFER_BYTES_MAX: usize = 4 << 20;

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

    /// Takes a chunk's text, or another buffer that is done with.
    pub fn give(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() == 0 || buffer.capacity() > BUFFER_BYTES_MAX {
            return;
        }
        buffer.resize(buffer.capacity(), 0);
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
        let mut cut = vec![b'x'; 100];
        cut.truncate(10);
        spares.give(cut);
        spares.give(Vec::new());
        spares.give(Vec::with_capacity(BUFFER_BYTES_MAX + 1));
        let back = spares.take();
        assert!(back.len() >= 100 && back.starts_with(b"xxxxxxxxxx\0"));
        assert!(spares.take().is_empty());
        for _ in 0..3 {
            spares.give(vec![0; 8]);
        }
        assert_eq!([spares.take(), spares.take(), spares.take()].map(|buffer| buffer.len()), [8, 8, 0]);
    }
}
