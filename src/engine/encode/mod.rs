//! Encodes Parquet column chunks. Row groups, footers and files are written by the `parquet` crate.
//!
//! Writes data pages of version 1; `PLAIN`, `RLE_DICTIONARY` and `DELTA_BINARY_PACKED`, which DuckDB, Polars, pyarrow,
//! Spark from 3.3 and Trino read, and if configured `DELTA_LENGTH_BYTE_ARRAY`, which Spark before 3.5.9 and 4.0.5 reads
//! wrong; a column index and an offset index of every page.
//!
//! Must not: depend on anything but rows, types and codec.

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

pub use bits::{put_varint, take_varint};
pub use codec::codec;
pub use column_chunk::{ChunkBytes, ColumnChunk};
pub use column_encoder::ColumnEncoder;
pub use page_spill::PageSpill;

#[cfg(test)]
mod tests;
