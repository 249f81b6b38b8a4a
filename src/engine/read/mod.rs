//! From an object in the lake to blocks of fields: open, decompress, decode, split at record boundaries, index.
//!
//! A source is read by one thread ([`reader::SourceReader`]), which gives chunks of whole records; any thread then
//! indexes a chunk ([`index::Indexer`]), block by block, so that a large file is parsed by all cores.

pub mod index;
pub mod reader;
