//! Collects small parts of several chunks until they are worth an array each.
//!
//! Invariant: rows of a partition keep their order and end up in a separate batch. A slice of a shared batch would keep
//! the rows of all other partitions in memory while a small partition waits for more.

use arrow::array::RecordBatch;
use arrow::compute::{concat_batches, interleave_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::measure::raw_bytes;

/// Small parts of several chunks.
#[derive(Default)]
pub(super) struct SmallParts {
    /// Rows by partition, one batch per chunk.
    batches: Vec<RecordBatch>,
    parts: Vec<SmallPart>,
    bytes: u64,
}

struct SmallPart {
    partition: usize,
    batch: u32,
    start: u32,
    rows: u32,
}

/// The rows of one partition.
pub(super) struct PartitionRows {
    pub partition: usize,
    pub batch: RecordBatch,
}

impl SmallParts {
    /// Adds rows of one chunk, by the index of the partition.
    pub(super) fn add(&mut self, schema: &SchemaRef, parts: &[(usize, RecordBatch)]) -> Result<(), ArrowError> {
        let (batch, mut start) = (self.batches.len() as u32, 0);
        for (partition, part) in parts {
            let rows = part.num_rows() as u32;
            self.parts.push(SmallPart { partition: *partition, batch, start, rows });
            start += rows;
        }
        let all = concat_batches(schema, parts.iter().map(|(_, part)| part))?;
        self.bytes += raw_bytes(&all, all.num_rows());
        self.batches.push(all);
        Ok(())
    }

    /// Raw bytes collected.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes everything, one batch per partition.
    pub(super) fn take(&mut self) -> Result<Vec<PartitionRows>, ArrowError> {
        let Self { batches, mut parts, .. } = std::mem::take(self);
        // A stable sort keeps the order of a partition's rows.
        parts.sort_by_key(|part| part.partition);
        let partition_rows = |parts: &[SmallPart]| {
            // Only batches with rows of the partition, since there may be thousands.
            let of: Vec<&RecordBatch> = parts.iter().map(|part| &batches[part.batch as usize]).collect();
            let rows = |part: &SmallPart| (part.start..part.start + part.rows).map(|row| row as usize);
            let picks = parts.iter().enumerate().flat_map(|(at, part)| rows(part).map(move |row| (at, row)));
            let batch = interleave_record_batch(&of, &picks.collect::<Vec<_>>())?;
            Ok(PartitionRows { partition: parts[0].partition, batch })
        };
        parts.chunk_by(|a, b| a.partition == b.partition).map(partition_rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::engine::convert::measure::memory_bytes;

    #[test]
    fn small_parts_are_joined_by_partition_without_sharing_memory() {
        let mut small_parts = SmallParts::default();
        for chunk in 0..2 {
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..1_000).map(|row| chunk * 1_000 + row)));
            let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|row| format!("{row:0>100}"))));
            let batch = RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap();
            let parts = [(7, batch.slice(0, 999)), (3, batch.slice(999, 1))];
            small_parts.add(&batch.schema(), &parts).unwrap();
        }
        assert_eq!(small_parts.bytes(), 2 * 1_000 * (8 + 4 + 100));
        let [few, many] = &small_parts.take().unwrap()[..] else { panic!("two partitions") };
        assert_eq!((few.partition, few.batch.num_rows()), (3, 2));
        assert_eq!(many.partition, 7);
        assert_eq!(few.batch.column(0).as_primitive::<Int64Type>().values(), &[999, 1_999]);
        assert_eq!(many.batch.num_rows(), 1_998);
        for PartitionRows { batch, .. } in [few, many] {
            let raw = raw_bytes(batch, batch.num_rows());
            assert!(memory_bytes([batch].into_iter()) < raw + raw / 4 + 2_048, "{raw} bytes of values");
        }
        assert!(small_parts.take().unwrap().is_empty());
        assert_eq!(small_parts.bytes(), 0);
    }
}
