//! Sizes of rows.
//!
//! Invariant: sizes depend on the rows alone, not on their layout in memory, except for [`memory_bytes`].

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::DataType;

/// The number of leading rows that are at most `rows_max` and end with the row that reaches `bytes_max`.
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

/// The memory held by batches, in bytes; buffers shared by several columns count once.
pub(super) fn memory_bytes<'a>(batches: impl Iterator<Item = &'a RecordBatch>) -> u64 {
    let (mut seen, mut bytes) = (HashSet::new(), 0);
    for array in batches.flat_map(RecordBatch::columns) {
        let data = array.to_data();
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(nulls) {
            if seen.insert(buffer.data_ptr()) {
                bytes += buffer.capacity();
            }
        }
        bytes += size_of_val(&**array);
    }
    bytes as u64
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringArray;

    use super::*;
    use crate::engine::cells::gather_texts;

    #[test]
    fn shared_buffers_count_once() {
        let texts = StringArray::from_iter_values((0..1_000).map(|row| format!("{row:0>100}")));
        let rows: Vec<u32> = (0..1_000).collect();
        let columns = gather_texts(&[&texts, &texts], &[&rows]).into_iter().flatten().enumerate();
        let columns = columns.map(|(at, texts)| (at.to_string(), Arc::new(texts) as ArrayRef));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let (least, most) = (208_000, 220_000);
        let held = memory_bytes([&batch].into_iter());
        assert!((least..most).contains(&held), "{held}");
        let parts: Vec<RecordBatch> = (0..10).map(|part| batch.slice(part * 100, 100)).collect();
        let held = memory_bytes(parts.iter());
        assert!((least..most).contains(&held), "{held}");
    }
}
