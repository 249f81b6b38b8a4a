//! Turns a chunk of text into rows, sorted into partitions, and rejects. One [`RowMaker`] a thread.
//!
//! Invariant: every record of a chunk is counted once, as written, rejected or filtered.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::error::{ConvertError, internal};
use super::partitions::{self, PartitionPath};
use super::row_outcomes::{Failure, RowPlace, Verdicts};
use super::source_layout::SourceLayout;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::pipeline::{Column, ColumnSource, Dialect, Mapping, OnFail, RaggedRows};
use crate::domain::reject::{Reject, RejectReason};
use crate::engine::cells::{CellFault, ColumnBuilder};
use crate::engine::read::index::Indexer;
use crate::engine::read::reader::Chunk;
use crate::engine::read::record_index::RecordIndex;
use crate::ports::Expressions;
use crate::ports::arrow_types::mapping_schema;
use crate::ports::expressions::{EvaluationEnded, EvaluationError, Evaluator, ExpressionId, expression_set};

/// Text that is indexed and parsed at a time, in bytes, so that it stays in the cache.
const BLOCK_BYTES: usize = 32 << 10;

/// Characters of an expression that an error shows.
const SQL_CHARS_SHOWN: usize = 200;

/// What a chunk gave.
#[derive(Debug, Default)]
pub(super) struct ChunkRows {
    pub rows_read: u64,
    pub rows_written: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
    /// Blank lines that are no rows.
    pub blank_lines: u64,
    /// Bytes of the rows that were read, and of what stands between them.
    pub counted_bytes: u64,
    /// The stored columns, in order of the rows; paths in order of their first row.
    pub parts: Vec<(PartitionPath, RecordBatch)>,
    pub rejects: Vec<Reject>,
    /// How often an expression failed on a row, whatever became of the row.
    pub failures: u64,
    pub warnings: BTreeMap<String, u64>,
}

/// Makes rows of chunks of one table.
pub(super) struct RowMaker<'a> {
    mapping: &'a Mapping,
    schema: SchemaRef,
    stored: Vec<usize>,
    evaluator: Option<Box<dyn Evaluator>>,
    /// For each column that comes from the source.
    builders: Vec<Option<ColumnBuilder>>,
    /// For sources of this width.
    indexer: Option<(usize, Indexer)>,
    index: RecordIndex,
}

impl<'a> RowMaker<'a> {
    pub(super) fn new(mapping: &'a Mapping, expressions: &dyn Expressions) -> Result<Self, ConvertError> {
        let evaluator = if mapping.has_expressions() {
            let bound = expressions.bind(&expression_set(mapping));
            Some(bound.map_err(|error| evaluation_failed(mapping, error, None))?)
        } else {
            None
        };
        Ok(Self {
            mapping,
            schema: mapping_schema(mapping),
            stored: mapping.stored_columns(),
            evaluator,
            builders: mapping.columns.iter().map(|column| builder(column, &mapping.csv)).collect(),
            indexer: None,
            index: RecordIndex::default(),
        })
    }

    /// Makes the rows of `chunk`, which is part of `source`.
    pub(super) fn make(
        &mut self,
        source: &str,
        chunk: &Chunk,
        layout: &SourceLayout,
    ) -> Result<ChunkRows, ConvertError> {
        let (made, batch) = self.make_shown(source, chunk, layout)?;
        let (_, columns, _) = batch.into_parts();
        for (builder, column) in self.builders.iter_mut().zip(columns) {
            if let Some(builder) = builder {
                builder.recycle(column);
            }
        }
        Ok(made)
    }

    /// As [`Self::make`], and the rows that are written as one batch of all columns of the mapping, in their order in
    /// the source.
    pub(super) fn make_shown(
        &mut self,
        source: &str,
        chunk: &Chunk,
        layout: &SourceLayout,
    ) -> Result<(ChunkRows, RecordBatch), ConvertError> {
        let mut verdicts = Verdicts::new(self.mapping, source, chunk);
        let mut out = ChunkRows::default();
        let (columns, places) = self.parse(chunk, layout, &mut verdicts, &mut out)?;
        out.rows_read = places.len() as u64 + verdicts.records_without_row();
        let (batch, places) = self.evaluate(columns, places, &mut verdicts, &mut out)?;
        let refused = self.sort(&batch, &places, &mut verdicts, &mut out)?;
        let batch = match refused {
            None => batch,
            Some(refused) => {
                let keep = refused.into_iter().map(|refused| Some(!refused)).collect();
                arrow::compute::filter_record_batch(&batch, &keep).map_err(internal)?
            }
        };
        out.rejects = verdicts.finish();
        out.rows_rejected = out.rejects.len() as u64;
        if out.rows_read != out.rows_written + out.rows_rejected + out.rows_filtered {
            return Err(RunError::new(
                RunErrorCode::AccountingBroken,
                format!(
                    "`{source}`: {} rows read are not the {} written, {} rejected and {} filtered",
                    out.rows_read, out.rows_written, out.rows_rejected, out.rows_filtered
                ),
            )
            .path(source)
            .into());
        }
        Ok((out, batch))
    }

    /// Parses the columns that come from the source. Rows of refused cells are in `verdicts` and still in the arrays.
    fn parse(
        &mut self,
        chunk: &Chunk,
        layout: &SourceLayout,
        verdicts: &mut Verdicts<'_>,
        out: &mut ChunkRows,
    ) -> Result<(Vec<Option<ArrayRef>>, Vec<RowPlace>), ConvertError> {
        let ragged = self.mapping.csv.ragged_rows;
        let indexer = match &mut self.indexer {
            Some((width, indexer)) if *width == layout.width => indexer,
            other => &mut other.insert((layout.width, Indexer::new(&self.mapping.csv, layout.width, ragged))).1,
        };
        let mut places: Vec<RowPlace> = Vec::new();
        let mut faults: Vec<CellFault> = Vec::new();
        out.counted_bytes += verdicts.oversize();
        let mut position = 0;
        while indexer.next_block(chunk, &mut position, BLOCK_BYTES, &mut self.index) {
            out.counted_bytes += self.index.counted_bytes;
            out.blank_lines += self.index.blank_lines;
            for bad in self.index.malformed.drain(..) {
                if bad.reason == RejectReason::RaggedRow && ragged == RaggedRows::Fail {
                    return Err(verdicts.row_failed(bad.start as usize, None, &bad.message));
                }
                verdicts.malformed(bad);
            }
            let base = places.len();
            places.extend(self.index.records.iter().map(|&(start, end)| RowPlace { start, end }));
            for (at, builder) in self.builders.iter_mut().enumerate() {
                let Some(builder) = builder else { continue };
                builder.append(&chunk.text, &self.index, layout.positions[at], &mut faults);
                for fault in faults.drain(..) {
                    let field = layout.positions[at].map(|field| self.index.field(fault.row - base, field));
                    verdicts.cell(at, &fault, field, places[fault.row])?;
                }
            }
            if base == 0 && position < chunk.text.len() {
                // The rest will be much the same; a little more is cheaper than to grow once more.
                let blocks = (chunk.text.len() - position) as f64 / position as f64 * 1.02;
                self.builders.iter_mut().flatten().for_each(|builder| builder.reserve(blocks));
                places.reserve_exact((places.len() as f64 * blocks) as usize);
            }
        }
        Ok((self.builders.iter_mut().map(|b| b.as_mut().map(ColumnBuilder::finish)).collect(), places))
    }

    /// Drops the rows that were refused, computes the `expr` columns, and applies `where` and the checks.
    fn evaluate(
        &mut self,
        columns: Vec<Option<ArrayRef>>,
        places: Vec<RowPlace>,
        verdicts: &mut Verdicts<'_>,
        out: &mut ChunkRows,
    ) -> Result<(RecordBatch, Vec<RowPlace>), ConvertError> {
        let keep = verdicts.take_kept(places.len());
        let (columns, places) = filter(columns, places, keep.as_ref())?;
        let Some(evaluator) = self.evaluator.as_mut() else {
            let arrays = columns.into_iter().flatten().collect();
            return Ok((batch_of(&self.schema, arrays, places.len())?, places));
        };
        if places.is_empty() {
            return Ok((RecordBatch::new_empty(Arc::clone(&self.schema)), places));
        }
        let inputs: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].is_some()).collect();
        let input_schema = Arc::new(self.schema.project(&inputs).map_err(internal)?);
        let input = batch_of(&input_schema, columns.iter().flatten().cloned().collect(), places.len())?;
        let evaluated = evaluator
            .evaluate(&input)
            .map_err(|error| evaluation_failed(self.mapping, error, Some((&*verdicts, &places))))?;
        let computed: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].is_none()).collect();
        let has_filter = self.mapping.filter.is_some();

        let mut predicates = evaluated.predicates;
        let mut failed: Vec<Vec<(ExpressionId, Failure)>> = Vec::new();
        out.failures = evaluated.errors.len() as u64;
        if !evaluated.errors.is_empty() {
            failed = vec![Vec::new(); places.len()];
            for (nth, error) in (0..).zip(evaluated.errors) {
                failed[error.row].push((error.id, Failure { message: error.message, nth }));
            }
        }
        // A column that failed takes its row with it before `where` is asked; one with `on_error: null` does not.
        for (row, errors) in failed.iter().enumerate() {
            for (id, failure) in errors {
                match *id {
                    ExpressionId::Computed(nth) => verdicts.computed(computed[nth], places[row], row, failure)?,
                    ExpressionId::Predicate(nth) if has_filter && nth == 0 => {
                        verdicts.expression("where", places[row], row, failure);
                    }
                    ExpressionId::Predicate(_) => {}
                }
            }
        }
        let mut arrays = Vec::with_capacity(columns.len());
        let mut made = evaluated.computed.into_iter();
        for (at, column) in columns.into_iter().enumerate() {
            match column {
                Some(array) => arrays.push(array),
                None => {
                    let array = made.next().ok_or_else(|| internal("a computed column is missing"))?;
                    if !self.mapping.columns[at].nullable && array.null_count() > 0 {
                        for row in (0..array.len()).filter(|&row| array.is_null(row)) {
                            verdicts.computed_null(at, places[row], row);
                        }
                    }
                    arrays.push(array);
                }
            }
        }
        let filter_array = has_filter.then(|| predicates.remove(0));
        let mut filtered = 0;
        for (row, &place) in places.iter().enumerate() {
            let passes = filter_array.as_ref().is_none_or(|keep| keep.is_valid(row) && keep.value(row));
            if verdicts.is_refused(row) {
                continue;
            }
            if !passes {
                verdicts.filter(row);
                filtered += 1;
                continue;
            }
            for (nth, check) in self.mapping.checks.iter().enumerate() {
                if predicates[nth].is_valid(row) && predicates[nth].value(row) {
                    continue;
                }
                let id = ExpressionId::Predicate(nth + usize::from(has_filter));
                let error =
                    failed.get(row).and_then(|e| e.iter().find(|(at, _)| *at == id)).map(|(_, failure)| failure);
                match check.on_fail {
                    OnFail::Warn => *out.warnings.entry(check.name.clone()).or_default() += 1,
                    OnFail::Reject => {
                        verdicts.check(check, place, row, error);
                        break;
                    }
                    OnFail::Fail => {
                        let message = format!(
                            "check `{}` failed: {}",
                            check.name,
                            error.map_or(&check.assert, |failure| &failure.message)
                        );
                        return Err(verdicts.row_failed(place.start as usize, None, &message));
                    }
                }
            }
        }
        out.rows_filtered = filtered;
        let keep = verdicts.take_kept(places.len());
        let (arrays, places) = filter(arrays.into_iter().map(Some).collect(), places, keep.as_ref())?;
        let arrays = arrays.into_iter().flatten().collect();
        Ok((batch_of(&self.schema, arrays, places.len())?, places))
    }

    /// Sorts the rows that are left into their partitions. Says which of them are refused, if any are.
    fn sort(
        &self,
        batch: &RecordBatch,
        places: &[RowPlace],
        verdicts: &mut Verdicts<'_>,
        out: &mut ChunkRows,
    ) -> Result<Option<Vec<bool>>, ConvertError> {
        let sorted = partitions::sort_rows(self.mapping, batch);
        let mut refused = vec![false; if sorted.faults.is_empty() { 0 } else { batch.num_rows() }];
        for fault in sorted.faults {
            refused[fault.row] = true;
            let place = places[fault.row];
            verdicts.partition(fault, place);
        }
        let stored = batch.project(&self.stored).map_err(internal)?;
        let mut parts = Vec::with_capacity(sorted.paths.len());
        for (path, mut rows) in sorted.paths.into_iter().zip(sorted.rows) {
            if !refused.is_empty() {
                rows.retain(|&row| !refused[row as usize]);
            }
            if !rows.is_empty() {
                out.rows_written += rows.len() as u64;
                parts.push((path, rows));
            }
        }
        out.parts = partitions::pick_all(&stored, parts).map_err(internal)?;
        Ok((!refused.is_empty()).then_some(refused))
    }
}

fn builder(column: &Column, dialect: &Dialect) -> Option<ColumnBuilder> {
    match column.source {
        ColumnSource::Header(_) | ColumnSource::Position(_) => Some(ColumnBuilder::new(column, dialect)),
        ColumnSource::Expr(_) => None,
    }
}

type Columns = Vec<Option<ArrayRef>>;

fn filter(
    columns: Columns,
    places: Vec<RowPlace>,
    keep: Option<&BooleanArray>,
) -> Result<(Columns, Vec<RowPlace>), ConvertError> {
    let Some(keep) = keep else { return Ok((columns, places)) };
    let pass = |array: Option<ArrayRef>| -> Result<Option<ArrayRef>, ConvertError> {
        array.map(|array| arrow::compute::filter(&array, keep).map_err(internal)).transpose()
    };
    let columns = columns.into_iter().map(pass).collect::<Result<_, _>>()?;
    let places = places.into_iter().enumerate().filter(|(row, _)| keep.value(*row)).map(|(_, place)| place).collect();
    Ok((columns, places))
}

fn batch_of(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ConvertError> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(internal)
}

/// Words an error of the expressions. `batch`: the rows at hand, if there are any.
fn evaluation_failed(
    mapping: &Mapping,
    error: EvaluationError,
    batch: Option<(&Verdicts<'_>, &[RowPlace])>,
) -> ConvertError {
    let at = |rows: &[RowPlace]| batch.map(|(verdicts, _)| verdicts.lines(rows)).unwrap_or_default();
    let all = batch.map_or(&[][..], |(_, places)| places);
    let failed = match error {
        // Another attempt may find room for a process.
        EvaluationError::Unavailable { .. } => RunError::new(RunErrorCode::Internal, error.to_string()),
        EvaluationError::Failure(failure) => {
            RunError::new(RunErrorCode::ExpressionFailed, format!("{}{failure}", at(all)))
                .detail("the SQL engine failed as a whole, not on a row; simplify the expressions")
        }
        EvaluationError::Ended(EvaluationEnded { cause, rows, id }) => {
            let (expression, sql) = match id {
                Some(id) => described(mapping, id),
                None => ("its expressions".to_owned(), None),
            };
            let place = at(all.get(rows).unwrap_or(all));
            let message = format!("{place}evaluating {expression} ended the process that does it: {cause}");
            let advice = "it ended again when it was tried once more; correct the rows, or simplify the expression";
            let sql = sql.map(|sql| format!("`{}`: ", clipped(sql))).unwrap_or_default();
            RunError::new(RunErrorCode::ExpressionFailed, message).detail(format!("{sql}{advice}"))
        }
    };
    match batch {
        Some((verdicts, _)) => failed.path(verdicts.source()).into(),
        None => failed.into(),
    }
}

/// What an expression is for, and its text.
fn described(mapping: &Mapping, id: ExpressionId) -> (String, Option<&str>) {
    let filter = usize::from(mapping.filter.is_some());
    match id {
        ExpressionId::Computed(nth) => {
            let computed = mapping.columns.iter().filter_map(|column| match &column.source {
                ColumnSource::Expr(sql) => Some((format!("column `{}`", column.name), Some(sql.as_str()))),
                ColumnSource::Header(_) | ColumnSource::Position(_) => None,
            });
            computed.into_iter().nth(nth).unwrap_or_else(|| ("a column".to_owned(), None))
        }
        ExpressionId::Predicate(0) if filter == 1 => ("`where`".to_owned(), mapping.filter.as_deref()),
        ExpressionId::Predicate(nth) => match mapping.checks.get(nth - filter) {
            Some(check) => (format!("check `{}`", check.name), Some(&check.assert)),
            None => ("a check".to_owned(), None),
        },
    }
}

fn clipped(sql: &str) -> String {
    let cut: String = sql.chars().take(SQL_CHARS_SHOWN).collect();
    if cut.len() < sql.len() { format!("{cut}…") } else { cut }
}
