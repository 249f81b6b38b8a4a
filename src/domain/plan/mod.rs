//! Decides when a table must be rebuilt although none of its sources changed.

mod fingerprint;

pub use fingerprint::{WRITER_FORMAT_VERSION, fingerprint, layout};
