//! Sorts the rows of a partition by `sort_by`: ascending, nulls last, ties in their order of arrival.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{SortOptions, interleave_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};

use super::ConvertError;
use super::rows::internal;

/// Rows of a batch that a merge gives.
const MERGED_ROWS: usize = 8_192;

/// Sorts batches of one schema.
#[derive(Debug, Clone)]
pub(super) struct Sorter {
    fields: Vec<SortField>,
    columns: Vec<usize>,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ConvertError>>>;

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

    /// Sorts rows held in memory.
    pub(super) fn sort(&self, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>, ConvertError> {
        let all = arrow::compute::concat_batches(schema, batches).map_err(internal)?;
        let keys = self.keys(&self.converter()?, &all)?;
        let mut order: Vec<u32> = (0..all.num_rows() as u32).collect();
        order.sort_by(|&a, &b| keys.row(a as usize).cmp(&keys.row(b as usize)));
        let sorted = |rows: &[u32]| arrow::compute::take_record_batch(&all, &UInt32Array::from(rows.to_vec()));
        order.chunks(MERGED_ROWS).map(sorted).collect::<Result<_, _>>().map_err(internal)
    }

    /// Merges sorted runs; of equal rows those of an earlier run come first.
    pub(super) fn merge(&self, runs: Vec<Batches>) -> Result<Merge, ConvertError> {
        let mut merge =
            Merge { sorter: self.clone(), converter: self.converter()?, runs: Vec::new(), heap: BinaryHeap::new() };
        for batches in runs {
            merge.runs.push(Run { batches, batch: None, keys: None, row: 0 });
        }
        for run in 0..merge.runs.len() {
            merge.advance(run)?;
        }
        Ok(merge)
    }
}

struct Run {
    batches: Batches,
    batch: Option<RecordBatch>,
    keys: Option<Rows>,
    row: usize,
}

/// The merged rows, batch after batch.
pub(super) struct Merge {
    sorter: Sorter,
    converter: RowConverter,
    runs: Vec<Run>,
    heap: BinaryHeap<Reverse<(OwnedRow, usize)>>,
}

impl Merge {
    /// Puts the run's current row on the heap, with a new batch where the old one is used up.
    fn advance(&mut self, at: usize) -> Result<(), ConvertError> {
        let run = &mut self.runs[at];
        while run.batch.as_ref().is_none_or(|batch| run.row >= batch.num_rows()) {
            let Some(batch) = run.batches.next() else {
                run.batch = None;
                return Ok(());
            };
            let batch = batch?;
            run.keys = Some(self.sorter.keys(&self.converter, &batch)?);
            run.batch = Some(batch);
            run.row = 0;
        }
        if let Some(keys) = &run.keys {
            self.heap.push(Reverse((keys.row(run.row).owned(), at)));
        }
        Ok(())
    }

    /// The next batch, `None` at the end.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>, ConvertError> {
        let mut sources: Vec<RecordBatch> = Vec::new();
        let mut place: Vec<Option<usize>> = vec![None; self.runs.len()];
        let mut picks: Vec<(usize, usize)> = Vec::with_capacity(MERGED_ROWS);
        while picks.len() < MERGED_ROWS {
            let Some(Reverse((_, at))) = self.heap.pop() else { break };
            let run = &mut self.runs[at];
            let Some(batch) = &run.batch else { break };
            let source = *place[at].get_or_insert_with(|| {
                sources.push(batch.clone());
                sources.len() - 1
            });
            picks.push((source, run.row));
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
