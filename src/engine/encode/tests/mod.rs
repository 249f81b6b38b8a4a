//! Reads the encoder's output with the `parquet` crate, and compares it with the crate's own writer.

mod chunks;
mod decisions;
mod support;
