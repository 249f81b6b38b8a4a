//! SHA-256 (FIPS 180-4) of one object, or of two in parallel, which is faster than one after the other where each
//! instruction waits for the previous one.

use sha2::block_api::compress256;

use super::sha_ni::{BLOCK_BYTES, HashState, ShaNi};
use crate::domain::digest::hex;

/// The end of the last block: the message's length in bits.
const LENGTH_BYTES: usize = 8;

/// The first 32 bits of the fractional parts of the square roots of the first eight primes.
const START: HashState =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// A hash in progress.
#[derive(Clone)]
pub(super) struct Hash {
    state: HashState,
    /// The first `rest_bytes` are an incomplete block.
    rest: [u8; BLOCK_BYTES],
    rest_bytes: usize,
    bytes: u64,
}

impl Hash {
    pub fn new() -> Self {
        Self { state: START, rest: [0; BLOCK_BYTES], rest_bytes: 0, bytes: 0 }
    }

    /// Whether [`Self::update_both`] is faster than two calls of [`Self::update`].
    pub fn is_faster_in_pairs() -> bool {
        ShaNi::detect().is_some()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        let bytes = self.complete(bytes);
        self.take_blocks(bytes);
    }

    /// Updates `self` with `first` and `other` with `second`.
    pub fn update_both(&mut self, first: &[u8], other: &mut Self, second: &[u8]) {
        let (mut first, mut second) = (self.complete(first), other.complete(second));
        if let Some(sha) = ShaNi::detect() {
            let (some, more) = (first.as_chunks().0, second.as_chunks().0);
            let both = some.len().min(more.len());
            sha.compress_both([&mut self.state, &mut other.state], [&some[..both], &more[..both]]);
            (first, second) = (&first[both * BLOCK_BYTES..], &second[both * BLOCK_BYTES..]);
        }
        self.take_blocks(first);
        other.take_blocks(second);
    }

    /// The digest so far, in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        let mut end = [0; 2 * BLOCK_BYTES];
        end[..self.rest_bytes].copy_from_slice(&self.rest[..self.rest_bytes]);
        end[self.rest_bytes] = 0x80;
        let blocks = (self.rest_bytes + 1 + LENGTH_BYTES).div_ceil(BLOCK_BYTES);
        let end = &mut end[..blocks * BLOCK_BYTES];
        let length = end.len() - LENGTH_BYTES;
        end[length..].copy_from_slice(&(self.bytes * 8).to_be_bytes());
        let mut state = self.state;
        compress256(&mut state, end.as_chunks().0);
        hex(state.map(u32::to_be_bytes).as_flattened())
    }

    /// Completes the pending block with the first of `bytes`; returns the remaining ones.
    fn complete<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        self.bytes += bytes.len() as u64;
        if self.rest_bytes == 0 {
            return bytes;
        }
        let (first, others) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.rest_bytes));
        self.wait(first);
        if self.rest_bytes == BLOCK_BYTES {
            compress256(&mut self.state, &[self.rest]);
            self.rest_bytes = 0;
        }
        others
    }

    /// Hashes the blocks of `bytes`; the rest stays pending.
    fn take_blocks(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks();
        compress256(&mut self.state, blocks);
        self.wait(rest);
    }

    /// Appends `bytes` to the pending block, which has room.
    fn wait(&mut self, bytes: &[u8]) {
        let end = self.rest_bytes + bytes.len();
        self.rest[self.rest_bytes..end].copy_from_slice(bytes);
        self.rest_bytes = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;

    fn bytes(length: usize, seed: usize) -> Vec<u8> {
        (0..length).map(|at| (((at + seed) * 2_654_435_761) >> 13) as u8).collect()
    }

    fn expected(bytes: &[u8]) -> String {
        hex(&Sha256::digest(bytes))
    }

    #[test]
    fn digest_of_any_length_matches_the_library() {
        for length in 0..4 * BLOCK_BYTES {
            let bytes = bytes(length, 7);
            let mut hash = Hash::new();
            hash.update(&bytes);
            assert_eq!(hash.hex(), expected(&bytes), "{length}");
        }
    }

    proptest! {
        #[test]
        fn paired_digests_match_the_library(
            parts in prop::collection::vec((0usize..700, 0usize..700, 0u8..3), 0..8),
            seeds in (0usize..1_000, 0usize..1_000),
        ) {
            let total = |of: fn(&(usize, usize, u8)) -> usize| parts.iter().map(of).sum::<usize>();
            let (first, second) = (bytes(total(|p| p.0), seeds.0), bytes(total(|p| p.1), seeds.1));
            let (mut a, mut b) = (Hash::new(), Hash::new());
            let (mut left, mut right) = (&first[..], &second[..]);
            for (some, more, way) in parts {
                let (some, more) = (left.split_off(..some).unwrap(), right.split_off(..more).unwrap());
                match way {
                    0 => a.update_both(some, &mut b, more),
                    1 => b.update_both(more, &mut a, some),
                    _ => {
                        a.update(some);
                        b.update(more);
                    }
                }
            }
            prop_assert_eq!(a.hex(), expected(&first));
            prop_assert_eq!(b.hex(), expected(&second));
        }
    }
}
