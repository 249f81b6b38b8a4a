//! From an object in the lake to blocks of fields: open, decompress, decode, split at record boundaries, index.
//!
//! A source is read by one thread ([`reader::SourceReader`]), which gives chunks of whole records; any thread then
//! indexes a chunk ([`index::Indexer`]), block by block, so that a large file is parsed by all cores.
//!
//! Invariant: where a record ends and a cell begins is defined once, by the exact machine (`machine`). Everything
//! faster (`scan`, `simd`, `split`) only ever answers what the machine would, and asks it where it is not sure.

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
pub mod reader;
pub mod record_index;
pub mod records;
mod rules;
mod scan;
mod sha256;
mod sha_ni;
#[cfg(target_arch = "x86_64")]
mod simd;
mod split;
mod stored;
mod structure;
mod window;

#[cfg(test)]
mod tests;
