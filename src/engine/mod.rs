//! Turns CSV objects into Parquet objects: read ([`read`]) → cells ([`cells`]) → tables ([`convert`]) → plan, publish
//! and finish ([`run`]).
//!
//! Must not: know a backend of the store or the SQL engine; it sees `ports` alone.

pub mod cells;
pub mod convert;
pub mod read;
pub mod run;
pub mod validate;
