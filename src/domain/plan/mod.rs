//! When a table must be made anew although none of its sources changed.

mod fingerprint;

pub use fingerprint::{WRITER_FORMAT_VERSION, fingerprint, layout};
