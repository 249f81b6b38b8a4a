//! Generates the text that each commit of a table adds to its Delta log.
//!
//! Invariant: equal roots and entries give equal text. Nothing is read back from a log.
//!
//! Must not: read or write the store.

mod actions;
mod partition_values;
mod schema;

pub use actions::{FileAction, LogVersion, encoded_path, partition_values};
pub use schema::{Metadata, Protocol, delta_type, metadata, protocol};

/// Longest text that is a column's bound, in bytes.
pub const TEXT_BOUND_BYTES_MAX: usize = 128;
/// Maximum digits of a decimal bound: readers may parse it as a double.
pub const DECIMAL_DIGITS_MAX: u32 = 15;
/// Columns with statistics, in the order of the table; the default of other writers.
pub const STATS_COLUMNS_MAX: usize = 32;
/// Minimum and maximum number of versions between checkpoints.
const CHECKPOINT_INTERVAL: (u64, u64) = (10, 100);
/// Files per version between checkpoints, so that a checkpoint costs a version no more than about this many.
const CHECKPOINT_FILES: u64 = 1_000;

/// Whether a version of a table with this number of files has a checkpoint. A checkpoint lists all files, so large
/// tables have fewer checkpoints.
pub fn has_checkpoint(version: u64, files: u64) -> bool {
    let (min, max) = CHECKPOINT_INTERVAL;
    let interval = (files / CHECKPOINT_FILES / min * min).clamp(min, max);
    version > 0 && version.is_multiple_of(interval)
}

#[cfg(test)]
mod tests {
    use super::has_checkpoint;

    #[test]
    fn checkpoints_of_large_tables_are_rarer() {
        let next = |files: u64| (1..).find(|version| has_checkpoint(*version, files));
        assert_eq!(next(0), Some(10));
        assert_eq!(next(19_999), Some(10));
        assert_eq!(next(50_000), Some(50));
        assert_eq!(next(100_000), Some(100));
        assert_eq!(next(10_000_000), Some(100));
        assert!(!has_checkpoint(0, 1));
    }
}
