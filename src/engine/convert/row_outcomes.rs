//! Tracks the rows of one chunk that are not written: rejected or filtered.
//!
//! Invariant: a row has at most one outcome, the first; rejects are in source order.

use std::borrow::Cow;

use arrow::array::BooleanArray;

use super::error::ConvertError;
use super::partitions::PartitionFault;
use crate::domain::job::{RunError, RunErrorCode};
use crate::domain::limits::{REJECT_RAW_BYTES_MAX, REJECT_VALUE_BYTES_MAX};
use crate::domain::pipeline::{Check, Mapping, OnError, SourceFormat};
use crate::domain::reject::{Excerpt, ExpressionFault, Reject, RejectReason};
use crate::engine::cells::{CellFault, cell_text};
use crate::engine::read::reader::Chunk;
use crate::engine::read::record_index::{FieldRange, Malformed};
use crate::ports::expressions::UNEXPLAINED;

/// The byte range of a record in its chunk, without its terminator.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSpan {
    pub start: u32,
    pub end: u32,
}

/// A failed evaluation of an expression on a row.
#[derive(Debug, Clone)]
pub(super) struct EvaluationFault {
    pub message: String,
    /// Its index among the failures of the chunk.
    pub nth: u64,
}

/// The outcomes of one chunk's rows.
pub(super) struct RowOutcomes<'a> {
    mapping: &'a Mapping,
    format: SourceFormat<'a>,
    source: &'a str,
    chunk: &'a Chunk,
    rejects: Vec<Reject>,
    /// Excluded rows of the current arrays; missing entries are false.
    excluded: Vec<bool>,
    any_excluded: bool,
    rejected_without_row: u64,
}

impl<'a> RowOutcomes<'a> {
    pub(super) fn new(mapping: &'a Mapping, format: SourceFormat<'a>, source: &'a str, chunk: &'a Chunk) -> Self {
        Self {
            mapping,
            format,
            source,
            chunk,
            rejects: Vec::new(),
            excluded: Vec::new(),
            any_excluded: false,
            rejected_without_row: 0,
        }
    }

    /// Records without a row in the arrays (malformed or too long); all of them are rejected.
    pub(super) fn records_without_row(&self) -> u64 {
        self.rejected_without_row
    }

    /// Rejects the oversize records reported by the reader; returns their bytes.
    pub(super) fn reject_oversize(&mut self) -> u64 {
        for record in &self.chunk.oversize {
            self.rejected_without_row += 1;
            self.rejects.push(Reject {
                line: record.line,
                byte_offset: record.offset,
                byte_length: record.source_bytes,
                column: None,
                value: None,
                reason: record.reason,
                message: record.message.clone(),
                fault: None,
                raw: Excerpt::new(&record.raw, record.length, REJECT_RAW_BYTES_MAX),
            });
        }
        self.chunk.oversize.iter().map(|record| record.length_with_terminator).sum()
    }

    pub(super) fn reject_malformed(&mut self, bad: Malformed) {
        self.rejected_without_row += 1;
        let span = RowSpan { start: bad.start, end: bad.end };
        self.push(span, bad.reason, bad.message, None, None);
    }

    /// Handles a faulty cell according to the column's `on_error`.
    ///
    /// # Errors
    /// `row_failed` where the column says `fail`.
    pub(super) fn reject_cell(
        &mut self,
        column: usize,
        fault: &CellFault,
        field: Option<FieldRange>,
        span: RowSpan,
    ) -> Result<(), ConvertError> {
        self.reject_value(column, fault, span, |own| {
            let field = field.filter(|f| !f.is_absent())?;
            Some(cell_text(&own.chunk.text, field, own.format.csv))
        })
    }

    /// The same for a value that the source's path has.
    ///
    /// # Errors
    /// As of [`Self::reject_cell`].
    pub(super) fn reject_path_value(
        &mut self,
        column: usize,
        fault: &CellFault,
        value: &str,
        span: RowSpan,
    ) -> Result<(), ConvertError> {
        self.reject_value(column, fault, span, |_| Some(value.as_bytes().into()))
    }

    fn reject_value<'v>(
        &mut self,
        column: usize,
        fault: &CellFault,
        span: RowSpan,
        value: impl FnOnce(&Self) -> Option<Cow<'v, [u8]>>,
    ) -> Result<(), ConvertError> {
        let rule = &self.format.columns[column];
        let null_refused = fault.reason == RejectReason::NullNotAllowed;
        if rule.on_error == OnError::Null && !null_refused && rule.nullable {
            return Ok(());
        }
        if self.is_excluded(fault.row) {
            return Ok(());
        }
        let value = value(self);
        let message = fault.message(rule, value.as_deref().unwrap_or_default());
        if rule.on_error == OnError::Fail {
            return Err(self.row_failed(span.start as usize, Some(column), &message));
        }
        let reason = if rule.on_error == OnError::Null { RejectReason::NullNotAllowed } else { fault.reason };
        let value = value.map(|value| Excerpt::of(&value, REJECT_VALUE_BYTES_MAX).text);
        self.exclude(fault.row);
        self.push(span, reason, message, Some(column), value);
        Ok(())
    }

    /// Handles a computed column that failed on a row, according to its `on_error`.
    ///
    /// # Errors
    /// `row_failed` where the column says `fail`.
    pub(super) fn reject_computed(
        &mut self,
        column: usize,
        span: RowSpan,
        row: usize,
        failure: &EvaluationFault,
    ) -> Result<(), ConvertError> {
        let rule = &self.mapping.columns[column];
        if self.is_excluded(row) || (rule.on_error == OnError::Null && rule.nullable) {
            return Ok(());
        }
        if rule.on_error == OnError::Fail {
            return Err(self.row_failed(span.start as usize, Some(column), &failure.message));
        }
        self.exclude(row);
        self.push_fault(span, Some(column), failure, |message| message.to_owned());
        Ok(())
    }

    /// Rejects a row with a null in a computed column that is not nullable.
    pub(super) fn reject_computed_null(&mut self, column: usize, span: RowSpan, row: usize) {
        if !self.is_excluded(row) {
            self.exclude(row);
            let message = "the expression returned null, and the column is not nullable".to_owned();
            self.push(span, RejectReason::NullNotAllowed, message, Some(column), None);
        }
    }

    /// Rejects a row on which `where` failed.
    pub(super) fn reject_filter_fault(&mut self, what: &str, span: RowSpan, row: usize, failure: &EvaluationFault) {
        if !self.is_excluded(row) {
            self.exclude(row);
            self.push_fault(span, None, failure, |message| format!("`{what}`: {message}"));
        }
    }

    /// Rejects a row that fails a check; `error`: the check could not be evaluated.
    pub(super) fn reject_check(&mut self, check: &Check, span: RowSpan, row: usize, error: Option<&EvaluationFault>) {
        self.exclude(row);
        match error {
            Some(error) => {
                self.push_fault(span, None, error, |message| format!("check `{}`: {message}", check.name));
            }
            None => {
                let message = format!("check `{}` failed: {}", check.name, check.assert);
                self.push(span, RejectReason::CheckFailed, message, None, None);
            }
        }
    }

    /// Rejects a row without a valid partition. The caller drops the row.
    pub(super) fn reject_partition(&mut self, fault: PartitionFault, span: RowSpan) {
        let value = fault.value.map(|value| Excerpt::of(value.as_bytes(), REJECT_VALUE_BYTES_MAX).text);
        self.push(span, RejectReason::PartitionValue, fault.message, Some(fault.column), value);
    }

    /// Excludes a filtered row, without a reject.
    pub(super) fn mark_filtered(&mut self, row: usize) {
        self.exclude(row);
    }

    pub(super) fn is_excluded(&self, row: usize) -> bool {
        self.excluded.get(row).copied().unwrap_or(false)
    }

    /// Which of `rows` remain; `None` if all do. Further outcomes are indexed by the remaining rows.
    pub(super) fn take_kept(&mut self, rows: usize) -> Option<BooleanArray> {
        let mut out = std::mem::take(&mut self.excluded);
        if !std::mem::take(&mut self.any_excluded) {
            return None;
        }
        out.resize(rows, false);
        Some(out.into_iter().map(|out| Some(!out)).collect())
    }

    /// The rejects in source order.
    pub(super) fn finish(mut self) -> Vec<Reject> {
        self.rejects.sort_by_key(|reject| reject.byte_offset);
        self.rejects
    }

    /// ``` `a.csv` lines 3 to 9: ```, or nothing without rows.
    pub(super) fn line_range(&self, rows: &[RowSpan]) -> String {
        let line = |span: &RowSpan| self.chunk.line_at(span.start as usize);
        match rows {
            [] => String::new(),
            [one] => format!("`{}` line {}: ", self.source, line(one)),
            [first, .., last] => format!("`{}` lines {} to {}: ", self.source, line(first), line(last)),
        }
    }

    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    pub(super) fn row_failed(&self, start: usize, column: Option<usize>, message: &str) -> ConvertError {
        let line = self.chunk.line_at(start);
        let column = column.map(|at| format!("column `{}`: ", self.mapping.columns[at].name)).unwrap_or_default();
        // A cell's message already names the column.
        let message = message.strip_prefix(&column).unwrap_or(message);
        RunError::new(RunErrorCode::RowFailed, format!("`{}` line {line}: {column}{message}", self.source))
            .detail("the config says that such a row fails the run; correct the source, or let it be rejected")
            .path(self.source)
            .into()
    }

    fn exclude(&mut self, row: usize) {
        if self.excluded.len() <= row {
            self.excluded.resize(row + 1, false);
        }
        self.excluded[row] = true;
        self.any_excluded = true;
    }

    fn push_fault(
        &mut self,
        span: RowSpan,
        column: Option<usize>,
        failure: &EvaluationFault,
        describe: impl Fn(&str) -> String,
    ) {
        self.push(span, RejectReason::ExpressionError, describe(&failure.message), column, None);
        if let Some(reject) = self.rejects.last_mut() {
            reject.fault = Some(ExpressionFault { nth: failure.nth, general: describe(UNEXPLAINED) });
        }
    }

    fn push(
        &mut self,
        span: RowSpan,
        reason: RejectReason,
        message: String,
        column: Option<usize>,
        value: Option<String>,
    ) {
        let start = span.start as usize;
        let raw = &self.chunk.text[start..span.end as usize];
        self.rejects.push(Reject {
            line: self.chunk.line_at(start),
            byte_offset: self.chunk.offset_at(start),
            byte_length: self.chunk.source_bytes(start, span.end as usize),
            column: column.map(|at| self.mapping.columns[at].name.to_string()),
            value,
            reason,
            message,
            fault: None,
            raw: Excerpt::of(raw, REJECT_RAW_BYTES_MAX),
        });
    }
}
