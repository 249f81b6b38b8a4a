//! How large rows are.
//!
//! Invariant: the measure depends on the rows alone, not on how they lie in memory.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::DataType;

/// How many of the batch's first rows make at most `rows_max` rows, and end with the row that reaches `bytes_max`.
pub(super) fn cut_rows(batch: &RecordBatch, rows_max: usize, bytes_max: u64) -> usize {
    let most = batch.num_rows().min(rows_max);
    if raw_bytes(batch, most) < bytes_max {
        return most;
    }
    let (mut low, mut high) = (0, most);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if raw_bytes(batch, middle) >= bytes_max { high = middle } else { low = middle }
    }
    high
}

/// The size of the first `rows` rows as values without nulls.
pub(super) fn raw_bytes(batch: &RecordBatch, rows: usize) -> u64 {
    let column = |array: &ArrayRef| -> u64 {
        match array.data_type() {
            DataType::Utf8 => {
                let offsets = array.as_string::<i32>().value_offsets();
                (offsets[rows] - offsets[0]) as u64 + 4 * rows as u64
            }
            DataType::FixedSizeBinary(width) => *width as u64 * rows as u64,
            other => other.primitive_width().unwrap_or(1) as u64 * rows as u64,
        }
    };
    batch.columns().iter().map(column).sum()
}
