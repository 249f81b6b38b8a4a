//! Counts, hashes and writes the bytes of a scratch file.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use rustix::fs::{Advice, fadvise};
use sha2::{Digest, Sha256};

use crate::domain::digest::hex;
use crate::runtime::threads;

/// Bytes written and hashed at a time; still in the cache when they are hashed.
const BUFFER_BYTES: usize = 64 << 10;
/// Buffers that may wait to be hashed.
const WAITING_BUFFERS: usize = 16;
/// Bytes after which writeback to the disk is requested.
const WRITEBACK_BYTES: u64 = 8 << 20;

/// A file being written.
pub(super) struct HashingFile {
    path: PathBuf,
    /// `None` while the file is suspended.
    file: Option<File>,
    buffer: Vec<u8>,
    hash: Sha256,
    /// Hashes in place of `hash`.
    background: Option<HashThread>,
    /// Bytes written, without those in the buffer.
    bytes: u64,
    /// The offset up to which writeback was requested, if it is enabled.
    written_back_to: Option<u64>,
}

impl HashingFile {
    /// # Errors
    /// If the file exists or can't be created.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let file = Some(File::create_new(&path)?);
        let hash = Sha256::new();
        Ok(Self { path, file, buffer: Vec::new(), hash, background: None, bytes: 0, written_back_to: None })
    }

    pub(super) fn enable_early_writeback(&mut self) {
        self.written_back_to = Some(self.bytes);
    }

    /// Hashes on a separate thread from now on, if one can be spawned.
    pub(super) fn hash_in_background(&mut self) {
        if self.background.is_none() && threads::parallelism(2) > 1 {
            self.background = HashThread::begin(self.hash.clone());
        }
    }

    /// Hashes on the caller's thread again.
    pub(super) fn hash_inline(&mut self) {
        if let Some(background) = self.background.take() {
            self.hash = background.end();
        }
    }

    /// Closes the file until the next write.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file = None;
        self.buffer = Vec::new();
        Ok(())
    }

    /// The number of bytes and their SHA-256 in hex.
    pub(super) fn finish(mut self) -> io::Result<(u64, String)> {
        self.flush()?;
        self.hash_inline();
        Ok((self.bytes, hex(&self.hash.finalize())))
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::options().append(true).open(&self.path)?,
        };
        let file = self.file.insert(file);
        file.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        if let Some(from) = &mut self.written_back_to
            && self.bytes - *from >= WRITEBACK_BYTES
        {
            // Also drops clean pages in the range; newly written data has none. Failures are harmless.
            let _ = fadvise(&*file, *from, NonZeroU64::new(self.bytes - *from), Advice::DontNeed);
            *from = self.bytes;
        }
        match &self.background {
            Some(background) => self.buffer = background.hash(std::mem::take(&mut self.buffer)),
            None => {
                self.hash.update(&self.buffer);
                self.buffer.clear();
            }
        }
        Ok(())
    }
}

impl Write for HashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() == BUFFER_BYTES {
            self.write_buffer()?;
        }
        let length = bytes.len().min(BUFFER_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.write_buffer() }
    }
}

/// A thread that hashes buffers.
struct HashThread {
    full: Sender<Vec<u8>>,
    hashed: Receiver<Vec<u8>>,
    thread: JoinHandle<Sha256>,
}

impl HashThread {
    fn begin(mut hash: Sha256) -> Option<Self> {
        let (full, waiting) = bounded::<Vec<u8>>(WAITING_BUFFERS);
        let (done, hashed) = bounded(WAITING_BUFFERS);
        let work = move || {
            for mut buffer in waiting {
                hash.update(&buffer);
                buffer.clear();
                // If the channel is full, enough buffers are in circulation.
                let _ = done.try_send(buffer);
            }
            hash
        };
        let thread = Builder::new().name("hash".into()).spawn(work).ok()?;
        Some(Self { full, hashed, thread })
    }

    /// Hashes `buffer`; returns an empty buffer for reuse.
    fn hash(&self, buffer: Vec<u8>) -> Vec<u8> {
        // Fails only if the thread panicked, which `end` reports.
        let _ = self.full.send(buffer);
        self.hashed.try_recv().unwrap_or_default()
    }

    fn end(self) -> Sha256 {
        drop(self.full);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| ((at * at) >> 7) as u8).collect()
    }

    #[test]
    fn hash_matches_written_bytes_on_either_thread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file-0");
        for length in [0, 1, BUFFER_BYTES, 3 * BUFFER_BYTES + 5, 70 * BUFFER_BYTES] {
            let bytes = bytes(length);
            for early in [false, true] {
                let mut sink = HashingFile::create(path.clone()).unwrap();
                if early {
                    sink.enable_early_writeback();
                }
                for (nth, part) in bytes.chunks(length / 3 + 1).enumerate() {
                    match nth {
                        0 => {}
                        1 => sink.hash_in_background(),
                        _ => sink.hash_inline(),
                    }
                    sink.write_all(part).unwrap();
                    if nth == 2 {
                        sink.suspend().unwrap();
                    }
                }
                assert_eq!(sink.finish().unwrap(), (length as u64, hex(&Sha256::digest(&bytes))));
                assert!(std::fs::read(&path).unwrap() == bytes, "{length} bytes");
                std::fs::remove_file(&path).unwrap();
            }
        }
    }

    #[test]
    fn existing_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file-0");
        std::fs::write(&path, "other").unwrap();
        assert_eq!(HashingFile::create(path.clone()).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"other");
    }
}
