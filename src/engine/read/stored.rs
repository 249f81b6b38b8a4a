//! The object as it lies in the store: hashed while it is read, its first bytes looked at beforehand.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

use crate::domain::digest::hex;

/// Enough to tell the formats apart.
const MAGIC_BYTES: usize = 6;

pub(super) struct Stored {
    body: Box<dyn Read + Send>,
    /// Read already, not yet given on.
    head: Vec<u8>,
    head_given: usize,
    sha256: Sha256,
    bytes: u64,
    failed: bool,
}

impl Stored {
    /// Reads the first bytes.
    pub fn open(mut body: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut head = Vec::with_capacity(MAGIC_BYTES);
        body.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
        Ok(Self { body, head, head_given: 0, sha256: Sha256::new(), bytes: 0, failed: false })
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Bytes given on so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it was the store that failed, and not what decompresses.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Hex, of the bytes given on so far.
    pub fn sha256(&self) -> String {
        hex(&self.sha256.clone().finalize())
    }
}

impl Read for Stored {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = if self.head_given < self.head.len() {
            let read = (&self.head[self.head_given..]).read(out)?;
            self.head_given += read;
            read
        } else {
            self.body.read(out).inspect_err(|e| self.failed |= e.kind() != io::ErrorKind::Interrupted)?
        };
        self.sha256.update(&out[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
