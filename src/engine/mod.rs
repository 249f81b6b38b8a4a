//! Converts CSV objects to Parquet objects: read ([`read`]) → cells ([`cells`]) → tables ([`convert`]) → plan, publish
//! and finish ([`run`]).
//!
//! Must not: depend on a store backend or the SQL engine; it uses `ports` alone.

pub mod cells;
pub mod convert;
pub mod encode;
pub mod infer;
pub mod preview;
pub mod read;
pub mod run;
pub mod run_error;
mod simd;
pub mod validate;

/// The version of the Parquet writer; part of every fingerprint, since the bytes of a table depend on it.
pub fn versions() -> String {
    parquet::file::properties::DEFAULT_CREATED_BY.to_owned()
}
