//! Confirms a proposal by reading the file with the converter, so that a run gives the proposed result.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use arrow::row::{RowConverter, SortField};
use serde_json::{Map, Value};

use super::column_stats::ColumnSurvey;
use super::misfits::{self, SHOWN_MAX};
use super::proposal::{Misfit, Misfits, Proposal};
use super::sniff::plan::label;
use super::survey::Survey;
use crate::domain::pipeline::document::{
    CsvDocument, FromDocument, QuotesDocument, RaggedRowsDocument, RecordTerminatorDocument,
};
use crate::domain::pipeline::{Dialect, Mapping, Quotes, RaggedRows, RecordTerminator, validate};
use crate::domain::reject::RejectReason;
use crate::engine::convert::HeadRows;
use crate::engine::read::head::Head;
use crate::ports::Expressions;
use crate::ports::expressions::{
    CheckError, EvaluationError, Evaluator, ExpressionFailure, ExpressionProblem, ExpressionSet,
};

/// The result of the confirmation.
pub(super) enum Confirmed {
    /// The number of accepted rows; only misfits were rejected.
    Rows(u64),
    /// Columns (by position in the file) with values of another type, and the reason.
    Refused(BTreeMap<usize, String>),
}

/// Reads the head with the proposal until its end, until a chunk has an unexpected reject, or until `keep_going` returns
/// false.
///
/// # Errors
/// Why a run could not start.
pub(super) fn confirm(
    proposal: &Proposal,
    survey: &Survey,
    head: &Head,
    keep_going: &dyn Fn() -> bool,
) -> Result<Confirmed, String> {
    let mapping = mapping(proposal)?;
    let mut expected = misfits::records(survey);
    let mut rows = HeadRows::open(&mapping, &UnusedExpressions, head.key(), head).map_err(|error| error.to_string())?;
    let mut taken = 0;
    while let Some(batch) = rows.next().map_err(|error| error.to_string())? {
        let mut refused = BTreeMap::new();
        for reject in &batch.rejects {
            let column =
                reject.column.as_ref().and_then(|name| mapping.columns.iter().position(|c| c.name.as_str() == name));
            let Some(at) = column else { continue };
            let at = file_position(proposal, at, rows.header());
            let of_column = survey.columns.get(at).is_some_and(|column| column.misfits.count() > 0);
            if of_column && expected.remove(&reject.byte_offset) {
                continue;
            }
            let why = match reject.reason {
                RejectReason::NullNotAllowed => "it has nulls".to_owned(),
                _ => format!("line {}: {}", reject.line, reject.message),
            };
            refused.entry(at).or_insert(why);
        }
        if !refused.is_empty() {
            return Ok(Confirmed::Refused(refused));
        }
        taken += batch.rows.num_rows() as u64;
        if !keep_going() {
            return Ok(Confirmed::Rows(taken));
        }
    }
    // Expected rejects that were accepted.
    let taken_after_all = |column: &ColumnSurvey| column.misfits.offsets.iter().any(|offset| expected.contains(offset));
    let wrong = survey.columns.iter().enumerate().filter(|(_, column)| taken_after_all(column));
    let wrong: BTreeMap<usize, String> =
        wrong.map(|(at, _)| (at, "a run accepts values that were expected to be rejected".to_owned())).collect();
    Ok(if wrong.is_empty() { Confirmed::Rows(taken) } else { Confirmed::Refused(wrong) })
}

/// The converter's counts for a file.
#[derive(Debug, Default)]
pub(super) struct FileCheck {
    /// Accepted rows.
    pub rows: u64,
    /// Records that are not rows.
    pub refused: u64,
    /// Rejected values, by column. A row counts for the first column that rejects it.
    pub misfits: BTreeMap<String, Misfits>,
    /// Columns with nulls that are not nullable.
    pub null_columns: BTreeSet<String>,
    /// Whether the whole head was read.
    pub ended: bool,
}

impl FileCheck {
    pub fn rows_misfit(&self) -> u64 {
        self.misfits.values().map(|misfits| misfits.count).sum()
    }
}

/// Reads the head with the proposal until its end, or until `keep_going` returns false.
///
/// # Errors
/// Why a run could not start.
pub(super) fn check(proposal: &Proposal, head: &Head, keep_going: &dyn Fn() -> bool) -> Result<FileCheck, String> {
    let mapping = mapping(proposal)?;
    let mut rows = HeadRows::open(&mapping, &UnusedExpressions, head.key(), head).map_err(|error| error.to_string())?;
    let mut check = FileCheck::default();
    while let Some(batch) = rows.next().map_err(|error| error.to_string())? {
        check.rows += batch.rows.num_rows() as u64;
        for reject in batch.rejects {
            let Some(column) = reject.column else {
                check.refused += 1;
                continue;
            };
            if reject.reason == RejectReason::NullNotAllowed {
                check.null_columns.insert(column.clone());
            }
            let misfits = check.misfits.entry(column).or_default();
            misfits.count += 1;
            if misfits.first.len() < SHOWN_MAX {
                misfits.first.push(Misfit { line: reject.line, value: reject.value.unwrap_or_default() });
            }
        }
        if !keep_going() {
            return Ok(check);
        }
    }
    check.ended = true;
    Ok(check)
}

/// A digest of the rows that a run would take from the head, whatever their order; `None` if it can't be read to its end, or
/// `keep_going` returned false.
pub(super) fn rows_digest(proposal: &Proposal, head: &Head, keep_going: &dyn Fn() -> bool) -> Option<u64> {
    let mapping = mapping(proposal).ok()?;
    let mut rows = HeadRows::open(&mapping, &UnusedExpressions, head.key(), head).ok()?;
    let mut digest = 0u64;
    while let Some(batch) = rows.next().ok()? {
        let fields =
            batch.rows.schema().fields().iter().map(|field| SortField::new(field.data_type().clone())).collect();
        let converted = RowConverter::new(fields).ok()?.convert_columns(batch.rows.columns()).ok()?;
        for row in &converted {
            let mut hasher = DefaultHasher::new();
            row.as_ref().hash(&mut hasher);
            digest = digest.wrapping_add(hasher.finish());
        }
        if !keep_going() {
            return None;
        }
    }
    Some(digest)
}

/// The position in the file of the proposal's column `at`.
fn file_position(proposal: &Proposal, at: usize, header: Option<&[String]>) -> usize {
    match &proposal.columns[at].from {
        FromDocument::Position(position) => usize::try_from(*position).unwrap_or(at),
        FromDocument::Name(name) => {
            let name = name.to_lowercase();
            header.and_then(|cells| cells.iter().position(|cell| cell.to_lowercase() == name)).unwrap_or(at)
        }
        FromDocument::Names(_) => at,
    }
}

/// The mapping of the proposal, validated.
fn mapping(proposal: &Proposal) -> Result<Mapping, String> {
    let text = proposal.config("").to_string();
    let pipeline = validate::parse(&text).map_err(|problems| {
        let problems: Vec<String> = problems.iter().take(3).map(|p| format!("{}: {}", p.path, p.message)).collect();
        problems.join("; ")
    })?;
    pipeline.mappings.into_iter().next().ok_or_else(|| "it has no mapping".to_owned())
}

/// The dialect as in a config: the values that differ from the defaults, and all of them.
pub(super) fn csv(dialect: &Dialect) -> (Value, CsvDocument) {
    let byte = |byte: u8| char::from(byte).to_string();
    let full = CsvDocument {
        delimiter: String::from_utf8_lossy(&dialect.delimiter).into_owned(),
        quote: dialect.quote.map(byte),
        quotes: match dialect.quotes {
            Quotes::Strict => QuotesDocument::Strict,
            Quotes::Lenient => QuotesDocument::Lenient,
        },
        escape: dialect.escape.map(byte),
        header: dialect.header,
        width: dialect.width.map(|width| width as u64),
        skip_rows: dialect.skip_rows,
        skip_rows_after_header: dialect.skip_rows_after_header,
        skip_footer_rows: dialect.skip_footer_rows,
        footer_values: dialect.footer_values.clone(),
        record_terminator: match dialect.record_terminator {
            RecordTerminator::Auto => RecordTerminatorDocument::Auto,
            RecordTerminator::Cr => RecordTerminatorDocument::Cr,
        },
        blank_lines: dialect.blank_lines.into(),
        comment: dialect.comment.map(byte),
        encoding: label(dialect),
        null_values: dialect.null_values.clone(),
        quoted_nulls: dialect.quoted_nulls,
        trim: dialect.trim,
        decimal: byte(dialect.decimal),
        thousands: dialect.thousands.map(byte),
        true_values: dialect.true_values.clone(),
        false_values: dialect.false_values.clone(),
        ragged_rows: match dialect.ragged_rows {
            RaggedRows::Reject => RaggedRowsDocument::Reject,
            RaggedRows::Pad => RaggedRowsDocument::Pad,
            RaggedRows::Fail => RaggedRowsDocument::Fail,
        },
        record_bytes_max: dialect.record_bytes_max,
    };
    let object = |csv: &CsvDocument| match serde_json::to_value(csv) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    let defaults = object(&CsvDocument::default());
    let differing = object(&full).into_iter().filter(|(name, value)| defaults.get(name) != Some(value)).collect();
    (Value::Object(differing), full)
}

/// A proposal has no expressions.
struct UnusedExpressions;

impl Expressions for UnusedExpressions {
    fn check(&self, _: &ExpressionSet) -> Result<Vec<ExpressionProblem>, CheckError> {
        Ok(Vec::new())
    }

    fn bind(&self, _: &ExpressionSet) -> Result<Box<dyn Evaluator>, EvaluationError> {
        Err(ExpressionFailure("a proposal has no expressions".into()).into())
    }

    fn version(&self) -> Result<String, ExpressionFailure> {
        Ok(String::new())
    }
}
