//! Buffers rows of sources that were read to learn their partitions, until the partitions are built.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::conversion::SourceOutcome;
use super::error::{ConvertError, internal};
use super::measure::memory_bytes;
use super::partitions::PartitionPath;
use super::spill::{ScratchFolder, Spill, SpillWriter};

/// Rows of one chunk, by partition.
type Parts = Vec<(PartitionPath, RecordBatch)>;

/// Sources in key order, with their rows.
#[derive(Default)]
pub struct BufferedRows {
    pub sources: Vec<SourceOutcome>,
    pub(super) rows: Vec<SourceRows>,
}

/// The rows of one source, in order.
#[derive(Default)]
pub(super) struct SourceRows {
    in_memory: Vec<Parts>,
    /// The rows after those in memory.
    spilled: Option<(Spill, VecDeque<PartitionPath>)>,
}

/// Buffers the rows of sources, one source after the other.
pub(super) struct RowBuffer<'a> {
    scratch: &'a ScratchFolder,
    schema: SchemaRef,
    /// Memory left, in bytes.
    memory_bytes: u64,
    current: Vec<Parts>,
    writer: Option<(SpillWriter, VecDeque<PartitionPath>)>,
    done: Vec<SourceRows>,
}

impl<'a> RowBuffer<'a> {
    pub(super) fn new(scratch: &'a ScratchFolder, schema: SchemaRef, memory_bytes: u64) -> Self {
        Self { scratch, schema, memory_bytes, current: Vec::new(), writer: None, done: Vec::new() }
    }

    pub(super) fn add(&mut self, parts: Parts) -> Result<(), ConvertError> {
        let bytes = memory_bytes(parts.iter().map(|(_, batch)| batch));
        // Once a source spills, all further rows of it spill, to keep their order.
        if self.writer.is_none() && bytes <= self.memory_bytes {
            self.memory_bytes -= bytes;
            self.current.push(parts);
            return Ok(());
        }
        let (writer, paths) = match &mut self.writer {
            Some(writer) => writer,
            None => self.writer.insert((SpillWriter::create(self.scratch, &self.schema)?, VecDeque::new())),
        };
        for (path, batch) in parts {
            writer.write(&batch)?;
            paths.push_back(path);
        }
        Ok(())
    }

    pub(super) fn finish_source(&mut self) -> Result<(), ConvertError> {
        let spilled = match self.writer.take() {
            Some((writer, paths)) => Some((writer.finish()?, paths)),
            None => None,
        };
        self.done.push(SourceRows { in_memory: std::mem::take(&mut self.current), spilled });
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<SourceRows> {
        self.done
    }
}

impl SourceRows {
    /// Bytes held in memory.
    pub(super) fn bytes(&self) -> u64 {
        // Buffers are shared within a chunk only.
        self.in_memory.iter().map(|parts| memory_bytes(parts.iter().map(|(_, batch)| batch))).sum()
    }

    /// Replays the rows in order until `take` returns false.
    pub(super) fn replay(self, mut take: impl FnMut(Parts) -> bool) -> Result<(), ConvertError> {
        for parts in self.in_memory {
            if !take(parts) {
                return Ok(());
            }
        }
        let Some((spill, mut paths)) = self.spilled else { return Ok(()) };
        for batch in spill.read()? {
            let batch = batch?;
            let path = paths.pop_front().ok_or_else(|| internal("a spill has more batches than paths"))?;
            if !take(vec![(path, batch)]) {
                return Ok(());
            }
        }
        Ok(())
    }
}
