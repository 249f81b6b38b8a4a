//! Sorts the rows of a partition by `sort_by`: ascending, nulls last, stable.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{SortOptions, interleave_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};

use super::error::{ConvertError, internal};
use super::measure::raw_bytes;

/// Rows and approximate raw bytes per batch that sorting or merging yields.
const BATCH_ROWS: usize = 8_192;
const BATCH_BYTES: u64 = 512 << 10;
/// Runs merged at a time; each has a batch in memory.
pub(super) const MERGED_RUNS_MAX: usize = 24;

/// Sorts batches of one schema.
#[derive(Debug, Clone)]
pub(super) struct Sorter {
    fields: Vec<SortField>,
    columns: Vec<usize>,
}

pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ConvertError>>>;

impl Sorter {
    /// `columns` are positions in `schema`.
    pub(super) fn new(schema: &SchemaRef, columns: Vec<usize>) -> Self {
        let options = SortOptions { descending: false, nulls_first: false };
        let field = |&c: &usize| SortField::new_with_options(schema.field(c).data_type().clone(), options);
        Self { fields: columns.iter().map(field).collect(), columns }
    }

    fn converter(&self) -> Result<RowConverter, ConvertError> {
        RowConverter::new(self.fields.clone()).map_err(internal)
    }

    fn keys(&self, converter: &RowConverter, batch: &RecordBatch) -> Result<Rows, ConvertError> {
        let columns: Vec<ArrayRef> = self.columns.iter().map(|&c| batch.column(c).clone()).collect();
        converter.convert_columns(&columns).map_err(internal)
    }

    /// Sorts rows in memory; yields them in batches.
    pub(super) fn sort(
        &self,
        batches: Vec<RecordBatch>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, ConvertError>> + use<>, ConvertError> {
        let converter = self.converter()?;
        let keys = batches.iter().map(|batch| self.keys(&converter, batch)).collect::<Result<Vec<_>, _>>()?;
        let places =
            |(nth, batch): (usize, &RecordBatch)| (0..batch.num_rows() as u32).map(move |row| (nth as u32, row));
        let mut order: Vec<(u32, u32)> = batches.iter().enumerate().flat_map(places).collect();
        let key = |&(nth, row): &(u32, u32)| keys[nth as usize].row(row as usize);
        order.sort_by(|a, b| key(a).cmp(&key(b)));
        drop(keys);
        let bytes: u64 = batches.iter().map(|batch| raw_bytes(batch, batch.num_rows())).sum();
        let rows = (order.len() as u64 * BATCH_BYTES / bytes.max(1)).clamp(1, BATCH_ROWS as u64) as usize;
        let mut at = 0;
        Ok(std::iter::from_fn(move || {
            let end = (at + rows).min(order.len());
            let picks: Vec<(usize, usize)> =
                order[at..end].iter().map(|&(nth, row)| (nth as usize, row as usize)).collect();
            at = end;
            let all: Vec<&RecordBatch> = batches.iter().collect();
            (!picks.is_empty()).then(|| interleave_record_batch(&all, &picks).map_err(internal))
        }))
    }

    /// Merges sorted runs; equal rows of earlier runs come first.
    pub(super) fn merge(&self, runs: Vec<Batches>) -> Result<Merge, ConvertError> {
        let mut merge =
            Merge { sorter: self.clone(), converter: self.converter()?, runs: Vec::new(), heap: BinaryHeap::new() };
        for batches in runs {
            merge.runs.push(SortedRun { batches, batch: None, keys: None, row: 0, row_bytes: 0 });
        }
        for run in 0..merge.runs.len() {
            merge.advance(run)?;
        }
        Ok(merge)
    }
}

struct SortedRun {
    batches: Batches,
    batch: Option<RecordBatch>,
    keys: Option<Rows>,
    row: usize,
    /// The average row size of `batch`.
    row_bytes: u64,
}

/// Yields the merged rows in batches.
pub(super) struct Merge {
    sorter: Sorter,
    converter: RowConverter,
    runs: Vec<SortedRun>,
    heap: BinaryHeap<Reverse<(OwnedRow, usize)>>,
}

impl Merge {
    /// Pushes the run's current row onto the heap, loading the next batch if necessary.
    fn advance(&mut self, at: usize) -> Result<(), ConvertError> {
        let run = &mut self.runs[at];
        while run.batch.as_ref().is_none_or(|batch| run.row >= batch.num_rows()) {
            let Some(batch) = run.batches.next() else {
                run.batch = None;
                return Ok(());
            };
            let batch = batch?;
            run.keys = Some(self.sorter.keys(&self.converter, &batch)?);
            run.row_bytes = raw_bytes(&batch, batch.num_rows()) / batch.num_rows().max(1) as u64;
            run.batch = Some(batch);
            run.row = 0;
        }
        if let Some(keys) = &run.keys {
            self.heap.push(Reverse((keys.row(run.row).owned(), at)));
        }
        Ok(())
    }

    /// The next batch, `None` at the end.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ConvertError> {
        let mut sources: Vec<RecordBatch> = Vec::new();
        let mut place: Vec<Option<usize>> = vec![None; self.runs.len()];
        let mut picks: Vec<(usize, usize)> = Vec::new();
        let mut bytes = 0;
        while picks.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some(Reverse((_, at))) = self.heap.pop() else { break };
            let run = &mut self.runs[at];
            let Some(batch) = &run.batch else { break };
            let source = *place[at].get_or_insert_with(|| {
                sources.push(batch.clone());
                sources.len() - 1
            });
            picks.push((source, run.row));
            bytes += run.row_bytes;
            run.row += 1;
            if run.row >= batch.num_rows() {
                place[at] = None;
            }
            self.advance(at)?;
        }
        if picks.is_empty() {
            return Ok(None);
        }
        let sources: Vec<&RecordBatch> = sources.iter().collect();
        interleave_record_batch(&sources, &picks).map(Some).map_err(internal)
    }
}

impl Iterator for Merge {
    type Item = Result<RecordBatch, ConvertError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
