//! Reads an object of the lake into blocks of fields: open, decompress, decode, split at record boundaries, index.
//!
//! One thread reads a source ([`reader::SourceReader`]) into chunks of whole records; any thread then indexes a chunk
//! ([`index::Indexer`]) block by block, so all cores parse a large file.
//!
//! Invariant: the exact machine (`machine`) alone defines records and cells. Everything faster (`scan`, `avx2`,
//! `neon`, `split`) gives the machine's answers, and consults it in doubt.

#[cfg(target_arch = "x86_64")]
mod avx2;
pub mod buffer_pool;
pub mod chunk;
mod decode;
pub mod error;
mod first_record;
mod footer;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
pub mod head;
pub mod index;
mod inflate;
pub mod lines;
mod machine;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod reader;
pub mod record_index;
pub mod records;
mod rules;
mod scan;
mod sha256;
mod sha_ni;
mod split;
mod stored;
mod structure;
mod window;

#[cfg(test)]
mod tests;
