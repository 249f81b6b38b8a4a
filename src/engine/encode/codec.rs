//! Compresses pages. Contexts and buffers are a thread's, and used again and again.

use std::cell::RefCell;
use std::io;

use parquet::basic::{Compression as Codec, Encoding, ZstdLevel};

use crate::domain::pipeline::Compression;

/// The codec of a config, as Parquet names it.
pub fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::None => Codec::UNCOMPRESSED,
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        // The level was checked when the config was read; the default stands in for one that isn't known here.
        Compression::Zstd(level) => Codec::ZSTD(ZstdLevel::try_new(level).unwrap_or_default()),
    }
}

/// A thread's contexts.
#[derive(Default)]
struct Contexts {
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    snappy: Option<snap::raw::Encoder>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

/// Compresses `bytes` into `out`, which is emptied before.
pub(super) fn compress(compression: Compression, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    match compression {
        Compression::None => out.extend_from_slice(bytes),
        Compression::Snappy => CONTEXTS.with_borrow_mut(|contexts| {
            out.resize(snap::raw::max_compress_len(bytes.len()), 0);
            let length = contexts.snappy.get_or_insert_with(snap::raw::Encoder::new).compress(bytes, out)?;
            out.truncate(length);
            Ok::<_, snap::Error>(())
        })?,
        Compression::Lz4 => {
            out.resize(lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
            let length = lz4_flex::block::compress_into(bytes, out).map_err(io::Error::other)?;
            out.truncate(length);
        }
        Compression::Zstd(level) => CONTEXTS.with_borrow_mut(|contexts| {
            let context = match contexts.zstd.take() {
                Some((of, context)) if of == level => context,
                _ => zstd::bulk::Compressor::new(level)?,
            };
            let (_, context) = contexts.zstd.insert((level, context));
            out.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
            context.compress_to_buffer(bytes, out).map(|_| ())
        })?,
    }
    Ok(())
}

/// Largest block of a Zstandard frame.
const BLOCK_BYTES: usize = 128 << 10;

/// Puts `bytes` into `out` as a Zstandard frame that stores them as they are.
pub(super) fn store(bytes: &[u8], out: &mut Vec<u8>) {
    out.clear();
    // The magic number; one segment, whose size follows in 4 bytes.
    out.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0xa0]);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    let blocks = bytes.len().div_ceil(BLOCK_BYTES).max(1);
    for block in 0..blocks {
        let bytes = &bytes[block * BLOCK_BYTES..bytes.len().min((block + 1) * BLOCK_BYTES)];
        let head = (bytes.len() as u32) << 3 | u32::from(block + 1 == blocks);
        out.extend_from_slice(&head.to_le_bytes()[..3]);
        out.extend_from_slice(bytes);
    }
}

/// What a column's pages gained by their compression so far. It is told by earlier pages of the column chunk alone.
#[derive(Debug, Default)]
pub(super) struct Gain {
    poor: Option<Encoding>,
    /// Pages since it was found so.
    pages: usize,
}

/// What compression takes off a page to be worth the reader's time and ours: an eighth, as LevelDB has it for its blocks.
const GAIN_MIN: usize = 8;
/// Pages that aren't compressed after one that gained too little, before another is tried.
const POOR_PAGES: usize = 7;

impl Gain {
    /// Whether the next page of this encoding is expected to gain too little.
    pub(super) fn is_poor(&self, encoding: Encoding) -> bool {
        self.poor == Some(encoding) && self.pages <= POOR_PAGES
    }

    /// Takes in a page, compressed unless [`Gain::is_poor`].
    pub(super) fn take(&mut self, encoding: Encoding, bytes: usize, compressed: usize) {
        if self.is_poor(encoding) {
            self.pages += 1;
            return;
        }
        let is_poor = compressed > bytes - bytes / GAIN_MIN;
        *self = Self { poor: is_poor.then_some(encoding), pages: 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_what_comes_out() {
        for length in [0, 1, 1_000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * at) as u8).collect();
            let mut out = vec![1];
            store(&bytes, &mut out);
            assert_eq!(zstd::bulk::decompress(&out, length).unwrap(), bytes, "{length}");
            assert_eq!(zstd::stream::decode_all(out.as_slice()).unwrap(), bytes, "{length}");
        }
    }

    #[test]
    fn pages_after_one_that_gained_little_are_stored_until_another_is_tried() {
        let mut gain = Gain::default();
        let plain = Encoding::PLAIN;
        assert!(!gain.is_poor(plain));
        gain.take(plain, 1_000, 880);
        assert!(!gain.is_poor(Encoding::RLE_DICTIONARY));
        for _ in 0..POOR_PAGES {
            assert!(gain.is_poor(plain));
            gain.take(plain, 1_000, 1_012);
        }
        assert!(!gain.is_poor(plain));
        gain.take(plain, 1_000, 870);
        assert!(!gain.is_poor(plain));
    }

    #[test]
    fn contexts_that_are_used_again_give_the_same_bytes() {
        let texts: Vec<Vec<u8>> = (0..40).map(|nth| b"abcdefgh".repeat(nth * nth)).collect();
        for compression in [Compression::None, Compression::Snappy, Compression::Lz4, Compression::Zstd(1)] {
            let all = || -> Vec<Vec<u8>> {
                let one = |text: &Vec<u8>| {
                    let mut out = vec![1; 77];
                    compress(compression, text, &mut out).unwrap();
                    out
                };
                texts.iter().map(one).collect()
            };
            let once = all();
            assert_eq!(all(), once);
            assert_eq!(
                std::thread::spawn({
                    let texts = texts.clone();
                    move || {
                        let mut out = Vec::new();
                        compress(compression, texts.last().unwrap(), &mut out).unwrap();
                        out
                    }
                })
                .join()
                .unwrap(),
                once[39]
            );
        }
    }
}
