//! Converts chunks of text into rows by partition, and rejects. One [`ChunkConverter`] per thread.
//!
//! Invariant: every record of a chunk is counted once, as written, rejected or filtered.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;

use super::error::{ConvertError, internal};
use super::partitions::{self, PartitionPath};
use super::row_outcomes::{EvaluationFault, RowOutcomes, RowSpan};
use super::source_layout::SourceLayout;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::pipeline::{Column, ColumnSource, Dialect, Mapping, OnFail, RaggedRows, SourceFormat};
use crate::domain::reject::{Reject, RejectReason};
use crate::engine::cells::{CellFault, ColumnBuilder};
use crate::engine::read::index::Indexer;
use crate::engine::read::reader::Chunk;
use crate::engine::read::record_index::{FieldRange, RecordIndex};
use crate::ports::Expressions;
use crate::ports::arrow_types::mapping_schema;
use crate::ports::expressions::{EvaluationCrashed, EvaluationError, Evaluator, ExpressionId, expression_set};

/// Bytes of text indexed and parsed at a time; they stay in the cache.
const BLOCK_BYTES: usize = 32 << 10;

/// Characters of an expression shown in an error.
const SQL_CHARS_SHOWN: usize = 200;

/// The result of converting a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkRows {
    pub rows_read: u64,
    pub rows_written: u64,
    pub rows_rejected: u64,
    pub rows_filtered: u64,
    /// Blank lines that are not rows.
    pub blank_lines: u64,
    /// Bytes of the rows that were read, and of the gaps between them.
    pub counted_bytes: u64,
    /// The stored columns in row order; paths in order of their first row.
    pub parts: Vec<(PartitionPath, RecordBatch)>,
    pub rejects: Vec<Reject>,
    /// Failed evaluations of expressions, regardless of the row's outcome.
    pub failures: u64,
    pub warnings: BTreeMap<String, u64>,
}

/// Converts the chunks of one table.
pub(super) struct ChunkConverter<'a> {
    mapping: &'a Mapping,
    schema: SchemaRef,
    stored: Vec<usize>,
    evaluator: Option<Box<dyn Evaluator>>,
    /// The variant of the sources that `builders` and `indexer` are for.
    variant: Option<usize>,
    /// One for each column read from the source.
    builders: Vec<Option<ColumnBuilder>>,
    /// The indexer for sources of this width.
    indexer: Option<(usize, Indexer)>,
    index: RecordIndex,
}

impl<'a> ChunkConverter<'a> {
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
            variant: None,
            builders: builders(mapping.format_at(None)),
            indexer: None,
            index: RecordIndex::default(),
        })
    }

    /// Converts `chunk`, which is part of `source`.
    pub(super) fn convert(
        &mut self,
        source: &str,
        chunk: &Chunk,
        layout: &SourceLayout,
    ) -> Result<ChunkRows, ConvertError> {
        let (made, batch) = self.convert_with_rows(source, chunk, layout)?;
        let (_, columns, _) = batch.into_parts();
        for (builder, column) in self.builders.iter_mut().zip(columns) {
            if let Some(builder) = builder {
                builder.recycle(column);
            }
        }
        Ok(made)
    }

    /// Like [`Self::convert`], with the written rows as one batch of all columns of the mapping, in source order.
    pub(super) fn convert_with_rows(
        &mut self,
        source: &str,
        chunk: &Chunk,
        layout: &SourceLayout,
    ) -> Result<(ChunkRows, RecordBatch), ConvertError> {
        let format = self.mapping.format_at(layout.variant);
        if self.variant != layout.variant {
            (self.variant, self.builders, self.indexer) = (layout.variant, builders(format), None);
        }
        let mut outcomes = RowOutcomes::new(self.mapping, format, source, chunk);
        let mut out = ChunkRows::default();
        let (columns, spans) = self.parse(chunk, layout, &mut outcomes, &mut out)?;
        out.rows_read = spans.len() as u64 + outcomes.records_without_row();
        let (batch, spans) = self.evaluate(columns, spans, &mut outcomes, &mut out)?;
        let refused = self.sort(&batch, &spans, &mut outcomes, &mut out)?;
        let batch = match refused {
            None => batch,
            Some(refused) => {
                let keep = refused.into_iter().map(|refused| Some(!refused)).collect();
                arrow::compute::filter_record_batch(&batch, &keep).map_err(internal)?
            }
        };
        out.rejects = outcomes.finish();
        out.rows_rejected = out.rejects.len() as u64;
        if out.rows_read != out.rows_written + out.rows_rejected + out.rows_filtered {
            return Err(RunError::new(
                RunErrorCode::AccountingBroken,
                format!(
                    "`{source}`: {} rows read don't equal {} written, {} rejected and {} filtered",
                    out.rows_read, out.rows_written, out.rows_rejected, out.rows_filtered
                ),
            )
            .path(source)
            .into());
        }
        Ok((out, batch))
    }

    /// Parses the columns read from the source. Rows with rejected cells are recorded in `outcomes` but still in the
    /// arrays.
    fn parse(
        &mut self,
        chunk: &Chunk,
        layout: &SourceLayout,
        outcomes: &mut RowOutcomes<'_>,
        out: &mut ChunkRows,
    ) -> Result<(Vec<Option<ArrayRef>>, Vec<RowSpan>), ConvertError> {
        let csv = self.mapping.format_at(self.variant).csv;
        let ragged = csv.ragged_rows;
        let indexer = match &mut self.indexer {
            Some((width, indexer)) if *width == layout.width => indexer,
            other => &mut other.insert((layout.width, Indexer::new(csv, layout.width, ragged))).1,
        };
        let mut spans: Vec<RowSpan> = Vec::new();
        let mut faults: Vec<CellFault> = Vec::new();
        out.counted_bytes += outcomes.reject_oversize();
        let mut position = 0;
        while indexer.next_block(chunk, &mut position, BLOCK_BYTES, &mut self.index) {
            out.counted_bytes += self.index.counted_bytes;
            out.blank_lines += self.index.blank_lines;
            for bad in self.index.malformed.drain(..) {
                if bad.reason == RejectReason::RaggedRow && ragged == RaggedRows::Fail {
                    return Err(outcomes.row_failed(bad.start as usize, None, &bad.message));
                }
                outcomes.reject_malformed(bad);
            }
            let base = spans.len();
            spans.extend(self.index.records.iter().map(|&(start, end)| RowSpan { start, end }));
            for (at, builder) in self.builders.iter_mut().enumerate() {
                let Some(builder) = builder else { continue };
                builder.append(&chunk.text, &self.index, layout.positions[at], &mut faults);
                for fault in faults.drain(..) {
                    let field = layout.positions[at].map(|field| self.index.field(fault.row - base, field));
                    outcomes.reject_cell(at, &fault, field, spans[fault.row])?;
                }
            }
            if base == 0 && position < chunk.text.len() {
                // The rest is similar; a small surplus is cheaper than growing again.
                let blocks = (chunk.text.len() - position) as f64 / position as f64 * 1.02;
                self.builders.iter_mut().flatten().for_each(|builder| builder.reserve(blocks));
                spans.reserve_exact((spans.len() as f64 * blocks) as usize);
            }
        }
        let mut columns: Vec<_> = self.builders.iter_mut().map(|b| b.as_mut().map(ColumnBuilder::finish)).collect();
        let format = self.mapping.format_at(self.variant);
        for (at, value) in &layout.path_values {
            let (one, fault) = parsed(&format.columns[*at], csv, value.as_deref());
            if let Some((mut fault, value)) = fault.zip(value.as_deref()) {
                for (row, span) in spans.iter().enumerate() {
                    fault.row = row;
                    outcomes.reject_path_value(*at, &fault, value, *span)?;
                }
            }
            let rows = UInt32Array::from_value(0, spans.len());
            columns[*at] = Some(arrow::compute::take(&one, &rows, None).map_err(internal)?);
        }
        Ok((columns, spans))
    }

    /// Drops excluded rows, computes the `expr` columns, and applies `where` and the checks.
    fn evaluate(
        &mut self,
        columns: Vec<Option<ArrayRef>>,
        spans: Vec<RowSpan>,
        outcomes: &mut RowOutcomes<'_>,
        out: &mut ChunkRows,
    ) -> Result<(RecordBatch, Vec<RowSpan>), ConvertError> {
        let keep = outcomes.take_kept(spans.len());
        let (columns, spans) = filter(columns, spans, keep.as_ref())?;
        let Some(evaluator) = self.evaluator.as_mut() else {
            let arrays = columns.into_iter().flatten().collect();
            return Ok((batch_of(&self.schema, arrays, spans.len())?, spans));
        };
        if spans.is_empty() {
            return Ok((RecordBatch::new_empty(Arc::clone(&self.schema)), spans));
        }
        let inputs: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].is_some()).collect();
        let input_schema = Arc::new(self.schema.project(&inputs).map_err(internal)?);
        let input = batch_of(&input_schema, columns.iter().flatten().cloned().collect(), spans.len())?;
        let evaluated = evaluator
            .evaluate(&input)
            .map_err(|error| evaluation_failed(self.mapping, error, Some((&*outcomes, &spans))))?;
        let computed: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].is_none()).collect();
        let has_filter = self.mapping.filter.is_some();

        let mut predicates = evaluated.predicates;
        let mut failed: Vec<Vec<(ExpressionId, EvaluationFault)>> = Vec::new();
        out.failures = evaluated.errors.len() as u64;
        if !evaluated.errors.is_empty() {
            failed = vec![Vec::new(); spans.len()];
            for (nth, error) in (0..).zip(evaluated.errors) {
                failed[error.row].push((error.id, EvaluationFault { message: error.message, nth }));
            }
        }
        // A failed column rejects its row before `where` applies; one with `on_error: null` does not.
        for (row, errors) in failed.iter().enumerate() {
            for (id, failure) in errors {
                match *id {
                    ExpressionId::Computed(nth) => outcomes.reject_computed(computed[nth], spans[row], row, failure)?,
                    ExpressionId::Predicate(nth) if has_filter && nth == 0 => {
                        outcomes.reject_filter_fault("where", spans[row], row, failure);
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
                            outcomes.reject_computed_null(at, spans[row], row);
                        }
                    }
                    arrays.push(array);
                }
            }
        }
        let filter_array = has_filter.then(|| predicates.remove(0));
        let mut filtered = 0;
        for (row, &span) in spans.iter().enumerate() {
            let passes = filter_array.as_ref().is_none_or(|keep| keep.is_valid(row) && keep.value(row));
            if outcomes.is_excluded(row) {
                continue;
            }
            if !passes {
                outcomes.mark_filtered(row);
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
                        outcomes.reject_check(check, span, row, error);
                        break;
                    }
                    OnFail::Fail => {
                        let message = format!(
                            "check `{}` failed: {}",
                            check.name,
                            error.map_or(&check.assert, |failure| &failure.message)
                        );
                        return Err(outcomes.row_failed(span.start as usize, None, &message));
                    }
                }
            }
        }
        out.rows_filtered = filtered;
        let keep = outcomes.take_kept(spans.len());
        let (arrays, spans) = filter(arrays.into_iter().map(Some).collect(), spans, keep.as_ref())?;
        let arrays = arrays.into_iter().flatten().collect();
        Ok((batch_of(&self.schema, arrays, spans.len())?, spans))
    }

    /// Splits the remaining rows by partition. Returns which rows are rejected, if any.
    fn sort(
        &self,
        batch: &RecordBatch,
        spans: &[RowSpan],
        outcomes: &mut RowOutcomes<'_>,
        out: &mut ChunkRows,
    ) -> Result<Option<Vec<bool>>, ConvertError> {
        let sorted = partitions::partition_rows(self.mapping, batch);
        let mut refused = vec![false; if sorted.faults.is_empty() { 0 } else { batch.num_rows() }];
        for fault in sorted.faults {
            refused[fault.row] = true;
            let span = spans[fault.row];
            outcomes.reject_partition(fault, span);
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
        out.parts = partitions::split_by_partition(&stored, parts).map_err(internal)?;
        Ok((!refused.is_empty()).then_some(refused))
    }
}

fn builders(format: SourceFormat<'_>) -> Vec<Option<ColumnBuilder>> {
    format.columns.iter().map(|column| builder(column, format.csv)).collect()
}

fn builder(column: &Column, dialect: &Dialect) -> Option<ColumnBuilder> {
    match column.source {
        ColumnSource::Header(_) | ColumnSource::Position(_) => Some(ColumnBuilder::new(column, dialect)),
        ColumnSource::Path(_) | ColumnSource::Expr(_) => None,
    }
}

/// A value as a cell of `column`; `None` is null.
fn parsed(column: &Column, dialect: &Dialect, value: Option<&str>) -> (ArrayRef, Option<CellFault>) {
    let text = value.unwrap_or_default();
    let index = RecordIndex {
        fields: vec![FieldRange::new(0, text.len(), true, false)],
        records: vec![(0, text.len() as u32)],
        width: 1,
        ..RecordIndex::default()
    };
    let mut builder = ColumnBuilder::new(column, dialect);
    let mut faults = Vec::new();
    builder.append(text.as_bytes(), &index, value.map(|_| 0), &mut faults);
    (builder.finish(), faults.pop())
}

type Columns = Vec<Option<ArrayRef>>;

fn filter(
    columns: Columns,
    spans: Vec<RowSpan>,
    keep: Option<&BooleanArray>,
) -> Result<(Columns, Vec<RowSpan>), ConvertError> {
    let Some(keep) = keep else { return Ok((columns, spans)) };
    let pass = |array: Option<ArrayRef>| -> Result<Option<ArrayRef>, ConvertError> {
        array.map(|array| arrow::compute::filter(&array, keep).map_err(internal)).transpose()
    };
    let columns = columns.into_iter().map(pass).collect::<Result<_, _>>()?;
    let spans = spans.into_iter().enumerate().filter(|(row, _)| keep.value(*row)).map(|(_, span)| span).collect();
    Ok((columns, spans))
}

fn batch_of(schema: &SchemaRef, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ConvertError> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(internal)
}

/// The run error for a failed evaluation. `batch`: the current rows, if any.
fn evaluation_failed(
    mapping: &Mapping,
    error: EvaluationError,
    batch: Option<(&RowOutcomes<'_>, &[RowSpan])>,
) -> ConvertError {
    let at = |rows: &[RowSpan]| batch.map(|(outcomes, _)| outcomes.line_range(rows)).unwrap_or_default();
    let all = batch.map_or(&[][..], |(_, spans)| spans);
    let failed = match error {
        // Another attempt may be able to start a process.
        EvaluationError::Unavailable { .. } => RunError::new(RunErrorCode::Internal, error.to_string()),
        EvaluationError::Failure(failure) => {
            RunError::new(RunErrorCode::ExpressionFailed, format!("{}{failure}", at(all)))
                .detail("the SQL engine failed, independent of a row; simplify the expressions")
        }
        EvaluationError::Ended(EvaluationCrashed { cause, rows, id }) => {
            let (expression, sql) = match id {
                Some(id) => described(mapping, id),
                None => ("its expressions".to_owned(), None),
            };
            let span = at(all.get(rows).unwrap_or(all));
            let message = format!("{span}evaluating {expression} crashed its process: {cause}");
            let advice = "it ended again on a retry; correct the rows, or simplify the expression";
            let sql = sql.map(|sql| format!("`{}`: ", clipped(sql))).unwrap_or_default();
            RunError::new(RunErrorCode::ExpressionFailed, message).detail(format!("{sql}{advice}"))
        }
    };
    match batch {
        Some((outcomes, _)) => failed.path(outcomes.source()).into(),
        None => failed.into(),
    }
}

/// An expression's purpose and text.
fn described(mapping: &Mapping, id: ExpressionId) -> (String, Option<&str>) {
    let filter = usize::from(mapping.filter.is_some());
    match id {
        ExpressionId::Computed(nth) => {
            let computed = mapping.columns.iter().filter_map(|column| match &column.source {
                ColumnSource::Expr(sql) => Some((format!("column `{}`", column.name), Some(sql.as_str()))),
                ColumnSource::Header(_) | ColumnSource::Position(_) | ColumnSource::Path(_) => None,
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
