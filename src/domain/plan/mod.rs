//! Decides what a run must read, rebuild, keep and delete of one table.
//!
//! Invariant: a partition is rebuilt from every source that contributes to it, or not touched at all; after a run the table
//! is the result of the sources in its manifest, plus the retained partitions.
//!
//! Must not: read a CSV or the store; it works on the manifest and the listings only.
//!
//! The steps, in order: [`fingerprint`](fn@fingerprint) and [`layout`] → [`Plan::new`] (changed sources, dirty
//! partitions) → [`Plan::affected_partitions`], once the changed sources are parsed → [`Plan::contributors`], the unchanged
//! sources to read again → [`next_manifest`] → [`publication`].
//!
//! Rules where there was a choice:
//! - A source is *in the lake* if its key is listed, whether a glob matches it or not: rows that a changed glob excludes
//!   are deleted, rows of a deleted CSV are retained.
//! - The files record sources too: a retained partition knows the removed sources that contributed to it. If one of them
//!   comes back with other rows, that partition is affected, and deleted as moved.
//! - With a `prefix`, a changed source outside it stays as last published. If a partition with its old rows is affected, the
//!   source is included too: the old rows are gone, and the new ones in that partition alone would leave the table neither
//!   old nor new ([`Plan::required_sources`]).
//! - Anything dirty lifts the prefix for the whole table.
//! - A rejects file that isn't as published makes its source count as changed.
//! - Only a finished run's output can be retained. A partition that a crashed run wrote first, and whose sources were removed
//!   before the next run, is deleted.
//! - A partition without rows has no file and no entry; neither has the only one (`""`) of an unpartitioned table.

mod changes;
mod fingerprint;
mod next;
mod publication;
#[cfg(test)]
mod testing;

pub use changes::{CleanRunRequired, Plan, PlanInput, changed_sources, needs_head};
pub use fingerprint::{WRITER_FORMAT_VERSION, fingerprint, layout};
pub use next::{BuiltTable, NextManifest, next_manifest};
pub use publication::{Publication, publication};

use std::collections::BTreeMap;

/// A listed object. Without a tag if the store lists none; then only sizes can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    pub size: u64,
    pub etag: Option<String>,
}

/// Objects by their key, relative to the pipeline's prefix.
pub type Listing = BTreeMap<String, ListedObject>;

impl ListedObject {
    /// Whether it can be the object with this size and tag.
    pub fn matches(&self, size: u64, etag: Option<&str>) -> bool {
        self.size == size && self.etag.as_deref().zip(etag).is_none_or(|(listed, known)| listed == known)
    }
}
