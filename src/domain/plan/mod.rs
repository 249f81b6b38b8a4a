//! Decides what a run must read, rebuild, keep and delete of one table.
//!
//! Invariant: a partition is rebuilt from every source that contributes to it, or not touched at all; so at the end of
//! a run the table is what the sources in its manifest give, plus the retained partitions.
//! Must not: read a CSV or the store; it works on the manifest and the listings alone.
//!
//! The steps, in order: [`fingerprint`](fn@fingerprint) and [`layout`] → [`Plan::new`] (changed sources, dirty
//! partitions) → [`Plan::touched`], once the changed sources were parsed → [`Plan::contributors`], the unchanged
//! sources to read again → [`next_manifest`] → [`publication`].
//!
//! Rules where there was a choice:
//! - A source is *in the lake* if its key is listed, whether or not a glob still matches it: rows that a changed glob
//!   leaves out go, rows whose CSV was deleted are retained.
//! - What a source *had* is also what the files say of it: a retained partition knows the removed sources that fed it.
//!   So when one of them comes back with other rows, that partition is touched, and deleted as moved.
//! - With a `prefix`, a changed source outside it stays as it was last published. But once a partition that holds its
//!   old rows is touched, it has to enter as well: the old rows can't be had any more, and taking the new ones for that
//!   partition alone would leave the table neither old nor new. ([`Plan::pulled`])
//! - Anything dirty lifts the limit of the prefix for the whole table.
//! - A rejects file that isn't as published makes its source count as changed.
//! - Only what a finished run published can be retained. A partition that a died run wrote first, and whose sources
//!   were removed before the next one, is deleted.
//! - A partition without rows has no file and no entry, also the only one (`""`) of a table without partitioning.

mod changes;
mod fingerprint;
mod next;
mod publication;
#[cfg(test)]
mod testing;

pub use changes::{CleanRunRequired, Plan, Situation, differing, needs_head};
pub use fingerprint::{WRITER_FORMAT_VERSION, fingerprint, layout};
pub use next::{Built, Next, next_manifest};
pub use publication::{Publication, publication};

use std::collections::BTreeMap;

/// An object as listed. Without a tag where the store lists none; then only sizes can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub size: u64,
    pub etag: Option<String>,
}

/// Objects by their key, relative to the pipeline's prefix.
pub type Listing = BTreeMap<String, Listed>;

impl Listed {
    /// Whether it can be the object of this size and tag.
    pub fn is(&self, size: u64, etag: Option<&str>) -> bool {
        self.size == size && self.etag.as_deref().zip(etag).is_none_or(|(listed, known)| listed == known)
    }
}
