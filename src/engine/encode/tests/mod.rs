//! What the encoder writes, read back by the `parquet` crate and held against what its own writer says of the same rows.

mod chunks;
mod decisions;
mod support;
