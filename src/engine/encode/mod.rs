//! Our own encoder of Parquet column chunks. Row groups, footers and files are the `parquet` crate's.
//!
//! What it writes: data pages of the first version; `PLAIN`, `RLE_DICTIONARY` and `DELTA_BINARY_PACKED`, which DuckDB,
//! Polars, pyarrow, Spark from 3.3 on and Trino read, and where the config asks for it `DELTA_LENGTH_BYTE_ARRAY`, which
//! Spark before 3.5.9 and 4.0.5 reads wrong; a column index and an offset index of every page. Must not: depend on anything but rows, types and codec.

mod bits;
mod bounds;
mod chunk;
mod codec;
mod column;
mod delta;
mod dictionary;
mod direct;
mod hybrid;
mod page;
mod page_writer;
mod parking;
mod values;

pub use chunk::{Chunk, ChunkBytes};
pub use codec::codec;
pub use column::ColumnEncoder;
pub use parking::Parking;

#[cfg(test)]
mod tests;
