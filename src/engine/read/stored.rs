//! The stored object: hashed while it is read, or later by the reader; its first bytes are inspected first.

use std::io::{self, Read};

use super::sha256::Hash;

/// Enough to distinguish the formats.
const MAGIC_BYTES: usize = 6;

pub(super) struct StoredBody {
    body: Box<dyn Read + Send>,
    /// Read already, not yet returned.
    head: Vec<u8>,
    head_given: usize,
    hash: Hash,
    /// Returned bytes at the end that the reader has yet to hash, if the reader hashes.
    unhashed: Option<usize>,
    bytes: u64,
    failed: bool,
}

impl StoredBody {
    /// Reads the first bytes.
    pub fn open(mut body: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut head = Vec::with_capacity(MAGIC_BYTES);
        body.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
        Ok(Self { body, head, head_given: 0, hash: Hash::new(), unhashed: None, bytes: 0, failed: false })
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Bytes returned so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the store failed, not the decompression.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Hex, of the bytes returned (and hashed) so far.
    pub fn sha256(&self) -> String {
        self.hash.hex()
    }

    /// Leaves hashing of all further bytes to the reader, by [`Self::take_unhashed`].
    pub fn hash_later(&mut self) {
        self.unhashed.get_or_insert(0);
    }

    /// The hash, and the number of returned bytes it has yet to include; they count as hashed now.
    pub fn take_unhashed(&mut self) -> (&mut Hash, usize) {
        let unhashed = self.unhashed.as_mut().map_or(0, std::mem::take);
        (&mut self.hash, unhashed)
    }
}

impl Read for StoredBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = if self.head_given < self.head.len() {
            let read = (&self.head[self.head_given..]).read(out)?;
            self.head_given += read;
            read
        } else {
            self.body.read(out).inspect_err(|e| self.failed |= e.kind() != io::ErrorKind::Interrupted)?
        };
        match &mut self.unhashed {
            Some(unhashed) => *unhashed += read,
            None => self.hash.update(&out[..read]),
        }
        self.bytes += read as u64;
        Ok(read)
    }
}
