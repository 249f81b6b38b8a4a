//! A table's Iceberg metadata, extended by each commit.
//!
//! A snapshot is a commit of the table, with its sequence as the id. Each shard of the table's manifest that lists data
//! files has one Iceberg manifest, so that a commit rewrites equally many of both.
//!
//! Invariant: equal roots and states give equal bytes. Nothing is read back from the metadata.
//!
//! Must not: read or write the store.

mod avro;
mod catalog;
mod manifest;
mod metadata;
mod schema;
mod values;

pub use catalog::{CatalogMetadata, ForeignChange};
pub use manifest::{Count, ManifestContext, ManifestEntry, PartitionError, manifest_list, name_matches_content};
pub use metadata::{IcebergState, Snapshot, SnapshotTotals};
pub use schema::{Evolution, Schemas, iceberg_type};
pub use values::decimal_bound;

/// Columns with bounds, in the order of the table; the number of columns with statistics of other writers.
pub const BOUNDS_COLUMNS_MAX: usize = 100;
/// Characters of a text that is a bound; longer ones are cut, and the upper bound is rounded up.
pub const TEXT_BOUND_CHARS_MAX: usize = 32;
