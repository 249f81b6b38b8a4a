//! Compresses pages. Contexts and buffers are a thread's, and used again and again.

use std::cell::RefCell;
use std::io;

use parquet::basic::{Compression as Codec, ZstdLevel};

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

#[cfg(test)]
mod tests {
    use super::*;

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
