//! Compresses pages with contexts and buffers that each thread reuses.

use std::cell::RefCell;
use std::io;

use parquet::basic::{Compression as Codec, Encoding, ZstdLevel};
use zstd::zstd_safe::CParameter;

use crate::domain::pipeline::Compression;

/// The Parquet codec of a config.
pub fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::None => Codec::UNCOMPRESSED,
        Compression::Snappy => Codec::SNAPPY,
        Compression::Lz4 => Codec::LZ4_RAW,
        // The level was validated with the config; unknown levels fall back to the default.
        Compression::Zstd(level) => Codec::ZSTD(ZstdLevel::try_new(level).unwrap_or_default()),
    }
}

/// The contexts of a thread.
#[derive(Default)]
struct Contexts {
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    snappy: Option<snap::raw::Encoder>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::default();
}

/// How far back matches are searched. Applies to the Zstandard levels that use a single hash table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchScope {
    /// The default of the compression level.
    Whole,
    /// Uses a hash table that fits the L1 cache: faster for data with few matches. Only for levels where
    /// [`is_searched_once`] is true.
    Near,
}

impl SearchScope {
    /// The base-2 logarithm of the table's entries; 0 leaves it to the level.
    fn hash_log(self) -> u32 {
        match self {
            Self::Whole => 0,
            Self::Near => NEAR_HASH_LOG,
        }
    }
}

/// For entries of four bytes.
const NEAR_HASH_LOG: u32 = 10;

/// Whether a Zstandard level searches a single table (`ZSTD_fast`; `clevels.h` of zstd 1.5).
fn is_searched_once(level: i32) -> bool {
    (1..=2).contains(&level)
}

/// Compresses `bytes` into `out`, which is cleared first.
pub(super) fn compress(compression: Compression, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    compress_by(compression, SearchScope::Whole, bytes, out)
}

/// Like [`compress`], with a search scope.
pub(super) fn compress_by(
    compression: Compression,
    search: SearchScope,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> io::Result<()> {
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
            context.set_parameter(CParameter::HashLog(search.hash_log()))?;
            out.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
            context.compress_to_buffer(bytes, out).map(|_| ())
        })?,
    }
    Ok(())
}

/// Largest block of a Zstandard frame.
const BLOCK_BYTES: usize = 128 << 10;

/// Writes `bytes` to `out` as an uncompressed Zstandard frame.
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

/// How a page is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageEffort {
    Compressed(SearchScope),
    /// Uncompressed, in the codec's frame.
    Stored,
}

/// The compression gain of a column's earlier pages. Depends on earlier pages of the column chunk alone.
#[derive(Debug, Default)]
pub(super) struct CompressionGain {
    /// The sufficient effort for pages of this encoding, if less than the full effort.
    enough: Option<(Encoding, PageEffort)>,
    /// Pages since then.
    pages: usize,
}

/// The fraction (1/n) that compression must save to be worthwhile, as in LevelDB's blocks.
const GAIN_MIN: usize = 8;
/// Pages with reduced effort after a page with too little gain, before the next trial.
const LOW_GAIN_PAGES: usize = 7;
/// The size that entropy coding alone leaves of text with few distinct letters: more than two fifths. A smaller size
/// means that repetitions were found.
const REPEATED: (usize, usize) = (2, 5);
/// Bytes sampled from the middle of a page to estimate a near search, and the minimum page size for sampling.
const SAMPLE_BYTES: usize = 32 << 10;
const SAMPLED_BYTES_MIN: usize = 8 * SAMPLE_BYTES;
/// The size a near search may leave, in percent of the full search; includes the overhead of a separate code table for
/// the sample.
const NEAR_SIZE_PERCENT_MAX: usize = 102;

impl CompressionGain {
    /// The effort for the next page of this encoding.
    pub(super) fn effort(&self, encoding: Encoding) -> PageEffort {
        match self.enough {
            Some((of, effort)) if of == encoding && self.pages <= LOW_GAIN_PAGES => effort,
            _ => PageEffort::Compressed(SearchScope::Whole),
        }
    }

    /// Records a page compressed with [`CompressionGain::effort`].
    ///
    /// # Errors
    /// If the codec fails.
    pub(super) fn take(
        &mut self,
        compression: Compression,
        encoding: Encoding,
        body: &[u8],
        compressed: usize,
    ) -> io::Result<()> {
        if self.effort(encoding) != PageEffort::Compressed(SearchScope::Whole) {
            self.pages += 1;
            return Ok(());
        }
        let effort = if compressed > body.len() - body.len() / GAIN_MIN {
            Some(PageEffort::Stored)
        } else if is_near_enough(compression, encoding, body, compressed)? {
            Some(PageEffort::Compressed(SearchScope::Near))
        } else {
            None
        };
        *self = Self { enough: effort.map(|effort| (encoding, effort)), pages: 1 };
        Ok(())
    }
}

/// Whether a near search would leave little more than `compressed` bytes of text.
fn is_near_enough(compression: Compression, encoding: Encoding, body: &[u8], compressed: usize) -> io::Result<bool> {
    let is_searched_once = matches!(compression, Compression::Zstd(level) if is_searched_once(level));
    let (of, parts) = REPEATED;
    if !is_searched_once
        || encoding != Encoding::DELTA_LENGTH_BYTE_ARRAY
        || body.len() < SAMPLED_BYTES_MIN
        || compressed < body.len() / parts * of
    {
        return Ok(false);
    }
    let sample = &body[body.len() / 2..][..SAMPLE_BYTES];
    let mut out = Vec::new();
    compress_by(compression, SearchScope::Near, sample, &mut out)?;
    // As u64, since the products could overflow a 32-bit `usize`.
    let (with, without) = (out.len() as u64 * body.len() as u64, compressed as u64 * SAMPLE_BYTES as u64);
    Ok(with <= without / 100 * NEAR_SIZE_PERCENT_MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncompressed_frames_read_back() {
        for length in [0, 1, 1_000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * at) as u8).collect();
            let mut out = vec![1];
            store(&bytes, &mut out);
            assert_eq!(zstd::bulk::decompress(&out, length).unwrap(), bytes, "{length}");
            assert_eq!(zstd::stream::decode_all(out.as_slice()).unwrap(), bytes, "{length}");
        }
    }

    const WHOLE: PageEffort = PageEffort::Compressed(SearchScope::Whole);

    #[test]
    fn pages_are_stored_after_little_gain_until_the_next_trial() {
        let (mut gain, body) = (CompressionGain::default(), [0; 1_000]);
        let plain = Encoding::PLAIN;
        let take =
            |gain: &mut CompressionGain, compressed| gain.take(Compression::Zstd(1), plain, &body, compressed).unwrap();
        assert_eq!(gain.effort(plain), WHOLE);
        take(&mut gain, 880);
        assert_eq!(gain.effort(Encoding::RLE_DICTIONARY), WHOLE);
        for _ in 0..LOW_GAIN_PAGES {
            assert_eq!(gain.effort(plain), PageEffort::Stored);
            take(&mut gain, 1_012);
        }
        assert_eq!(gain.effort(plain), WHOLE);
        take(&mut gain, 870);
        assert_eq!(gain.effort(plain), WHOLE);
    }

    /// Hexadecimal digits of pseudo-random numbers.
    fn ids(length: usize) -> Vec<u8> {
        let mut state = 7u64;
        let digit = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            b"0123456789abcdef"[(state >> 60) as usize]
        };
        (0..length).map(digit).collect()
    }

    /// The effort for the page after a page of such text.
    fn effort_after(compression: Compression, encoding: Encoding, body: &[u8]) -> PageEffort {
        let (mut gain, mut out) = (CompressionGain::default(), Vec::new());
        compress(compression, body, &mut out).unwrap();
        gain.take(compression, encoding, body, out.len()).unwrap();
        gain.effort(encoding)
    }

    #[test]
    fn text_without_repetitions_gets_a_near_search_until_the_next_trial() {
        let (zstd, texts) = (Compression::Zstd(1), Encoding::DELTA_LENGTH_BYTE_ARRAY);
        let near = PageEffort::Compressed(SearchScope::Near);
        let ids = ids(SAMPLED_BYTES_MIN);
        assert_eq!(effort_after(zstd, texts, &ids), near);
        assert_eq!(effort_after(Compression::Zstd(3), texts, &ids), WHOLE);
        assert_eq!(effort_after(Compression::Snappy, texts, &ids), PageEffort::Stored);
        assert_eq!(effort_after(zstd, Encoding::PLAIN, &ids), WHOLE);
        assert_eq!(effort_after(zstd, texts, &ids[1..]), WHOLE, "too small to decide by a sample");
        let again = [&ids[..SAMPLED_BYTES_MIN * 9 / 10], &ids].concat();
        assert_eq!(effort_after(zstd, texts, &again), WHOLE, "repeats from afar");

        let mut gain = CompressionGain::default();
        let mut bytes = [0; 2];
        for nth in 0..=LOW_GAIN_PAGES {
            let PageEffort::Compressed(search) = gain.effort(texts) else { panic!("stored") };
            assert_eq!(search, if nth == 0 { SearchScope::Whole } else { SearchScope::Near });
            let mut out = Vec::new();
            compress_by(zstd, search, &ids, &mut out).unwrap();
            assert_eq!(zstd::bulk::decompress(&out, ids.len()).unwrap(), ids);
            gain.take(zstd, texts, &ids, out.len()).unwrap();
            bytes[nth.min(1)] = out.len();
        }
        assert_eq!(gain.effort(texts), WHOLE);
        assert!(bytes[1] * 100 <= bytes[0] * 101, "{} bytes by a near search, {} else", bytes[1], bytes[0]);
    }

    #[test]
    fn reused_contexts_give_the_same_bytes() {
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
