//! Our own encoder of Parquet column chunks. Row groups, footers and files are the `parquet` crate's.
//!
//! What it writes: data pages of the first version; `PLAIN`, `RLE_DICTIONARY` and `DELTA_BINARY_PACKED`, which DuckDB,
//! Polars, pyarrow, Spark from 3.3 on and Trino read, and where the config asks for it `DELTA_LENGTH_BYTE_ARRAY`, which
//! Spark before 3.5.9 and 4.0.5 reads wrong; a column index and an offset index of every page. Must not: depend on anything but rows, types and codec.

mod bits;
mod bounds;
mod codec;
mod column_chunk;
mod column_encoder;
mod delta;
mod dictionary;
mod direct;
mod hybrid;
mod page;
mod page_spill;
mod page_writer;
mod values;

pub use codec::codec;
pub use column_chunk::{Chunk, ChunkBytes};
pub use column_encoder::ColumnEncoder;
pub use page_spill::PageSpill;

#[cfg(test)]
mod tests;
