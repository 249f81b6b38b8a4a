//! The steps of inference: sniff, survey, settle, confirm.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::time::{Duration, Instant};

use super::confirm::{self, Confirmed};
use super::proposal::{Proposal, SampleInfo};
use super::settle::{self, Settled};
use super::sniff::plan::{self, DialectPlan, SniffError};
use super::survey::Survey;
use super::{adjust, misfits, naming, suggest};
use crate::domain::text::counted;
use crate::engine::read::error::ReadError;
use crate::engine::read::head::Head;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, StoreError};

/// Default limits of an inference: decompressed bytes, and time in ms.
const INFER_BYTES_DEFAULT: usize = 64 << 20;
const INFER_MS_DEFAULT: u64 = 5_000;

/// Limits of an inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InferOptions {
    /// Decompressed bytes to read, held in memory.
    pub bytes_max: usize,
    /// Time for reading; after that, the data read decides. Sniffing is not limited.
    pub time_max: Duration,
}

impl Default for InferOptions {
    fn default() -> Self {
        Self { bytes_max: INFER_BYTES_DEFAULT, time_max: Duration::from_millis(INFER_MS_DEFAULT) }
    }
}

/// Why nothing is proposed.
#[derive(Debug, thiserror::Error)]
pub enum InferError {
    #[error("not a CSV: `{key}`: {reason}")]
    NotCsv { key: String, reason: String },
    #[error(
        "`{key}` has no rows: it is empty, or has blank lines only; choose a file that has at least one line of values"
    )]
    Empty { key: String },
    /// The object is damaged, or not a CSV by its first bytes.
    #[error(transparent)]
    Unreadable(ReadError),
    #[error(transparent)]
    Store(StoreError),
    #[error("`{key}`: no mapping reads this file: {reason}")]
    NoMapping { key: String, reason: String },
}

/// Proposes a mapping for the object `key` of the lake bucket.
///
/// # Errors
/// See [`InferError`].
pub fn infer(store: &dyn ObjectStore, key: &str, options: &InferOptions) -> Result<Proposal, InferError> {
    let (head, size) = fetch(store, key, options)?;
    infer_head(key, &head, size, options).map(Proposal::with_warnings)
}

/// Proposes a mapping for a stored object in memory; `key` names it and determines the compression.
///
/// # Errors
/// See [`InferError`].
pub fn propose(key: &str, bytes: &[u8], options: &InferOptions) -> Result<Proposal, InferError> {
    let size = bytes.len() as u64;
    let head = head_of(key, Box::new(Cursor::new(bytes.to_vec())), size, options)?;
    infer_head(key, &head, size, options).map(Proposal::with_warnings)
}

/// Passes over the file, each with the dialect adjusted by the previous one.
const PASSES_MAX: usize = 6;
/// Rounds in which columns become text because the converter rejects them.
const CONFIRMATIONS_MAX: usize = 8;

/// The head of an object of the lake bucket, and the object's size.
pub(super) fn fetch(store: &dyn ObjectStore, key: &str, options: &InferOptions) -> Result<(Head, u64), InferError> {
    let object = store.get(Bucket::Lake, key, None).map_err(InferError::Store)?;
    let size = object.meta.size;
    Ok((head_of(key, object.body, size, options)?, size))
}

fn head_of(key: &str, body: Box<dyn Read + Send>, size: u64, options: &InferOptions) -> Result<Head, InferError> {
    let deadline = Instant::now() + options.time_max;
    // The first bytes are read in any case.
    let fetched = std::cell::Cell::new(false);
    let fetch_on = || !fetched.replace(true) || Instant::now() < deadline;
    Head::fetch(key, body, size, false, options.bytes_max, &fetch_on).map_err(|error| unreadable(key, error))
}

/// The proposal for a head alone, without the warnings about misfits; `size`: bytes of its object.
pub(super) fn infer_head(key: &str, head: &Head, size: u64, options: &InferOptions) -> Result<Proposal, InferError> {
    let deadline = Instant::now() + options.time_max;
    let keep_going = || Instant::now() < deadline;
    let bytes_max = options.bytes_max;
    let mut plan = plan::make(head.bytes(), head.is_whole()).map_err(|no| match no {
        SniffError::Empty => InferError::Empty { key: key.to_owned() },
        SniffError::NotCsv(reason) => InferError::NotCsv { key: key.to_owned(), reason },
    })?;
    let mut survey = survey_by(key, head, &plan, &keep_going)?;
    for _ in 1..PASSES_MAX {
        if !adjust::adjust(&mut plan, &survey) {
            break;
        }
        survey = survey_by(key, head, &plan, &keep_going)?;
    }
    let whole = head.is_whole() && survey.ended;
    let texts = settle::settle(&mut plan.clone(), &survey, whole, &BTreeMap::new()).texts;
    misfits::find(&mut survey, &texts, head, &plan.dialect, &keep_going).map_err(|error| unreadable(key, error))?;
    let mut demoted = BTreeMap::new();
    for _ in 0..CONFIRMATIONS_MAX {
        let (plan, settled) = settled(&plan, &mut survey, whole, &demoted);
        let sample = sample(head, size, bytes_max, &survey);
        let proposal = assemble(key, plan, settled, &survey, sample);
        match confirm::confirm(&proposal, &survey, head, &keep_going).map_err(|reason| no_mapping(key, reason))? {
            Confirmed::Rows(rows) => {
                let sample = SampleInfo { rows_confirmed: rows, ..proposal.sample };
                return Ok(Proposal { sample, ..proposal });
            }
            Confirmed::Refused(columns) => {
                demoted.extend(columns.into_iter().filter(|(at, _)| !survey.take_back(*at)));
            }
        }
    }
    Err(no_mapping(key, "too many columns have values of another type than inferred".into()))
}

/// Settles the plan. If a column is text even without its misfits, they count as values again, and the plan is settled
/// again.
fn settled(
    plan: &DialectPlan,
    survey: &mut Survey,
    whole: bool,
    demoted: &BTreeMap<usize, String>,
) -> (DialectPlan, Settled) {
    loop {
        let mut plan = plan.clone();
        let settled = settle::settle(&mut plan, survey, whole, demoted);
        let lost: Vec<usize> = survey.with_misfits.keys().filter(|at| !settled.typed.contains(at)).copied().collect();
        if lost.is_empty() {
            return (plan, settled);
        }
        for at in lost {
            survey.take_back(at);
        }
    }
}

fn survey_by(key: &str, head: &Head, plan: &DialectPlan, keep_going: &dyn Fn() -> bool) -> Result<Survey, InferError> {
    Survey::read(head, &plan.dialect, keep_going).map_err(|error| unreadable(key, error))
}

fn unreadable(key: &str, error: ReadError) -> InferError {
    match error {
        ReadError::WrongMagic { found, .. } => InferError::NotCsv {
            key: key.to_owned(),
            reason: format!("its name is that of a CSV, but it contains {found}"),
        },
        ReadError::HeaderUnclosedQuote { .. }
        | ReadError::HeaderTooLong { .. }
        | ReadError::HeaderEncoding { .. }
        | ReadError::HeaderLoneCr { .. }
        | ReadError::LoneCr { .. } => InferError::NotCsv { key: key.to_owned(), reason: error.to_string() },
        ReadError::Io { .. }
        | ReadError::Truncated { .. }
        | ReadError::Corrupt { .. }
        | ReadError::InflatesTooMuch { .. }
        | ReadError::Undecodable { .. } => InferError::Unreadable(error),
    }
}

fn no_mapping(key: &str, reason: String) -> InferError {
    InferError::NoMapping { key: key.to_owned(), reason }
}

/// How much was read, and the limit.
fn sample(head: &Head, size: u64, bytes_max: usize, survey: &Survey) -> SampleInfo {
    let whole = head.is_whole() && survey.ended;
    let limited_by = match (whole, head.bytes().len()) {
        (true, _) => None,
        (false, bytes) if bytes >= bytes_max && survey.ended => {
            Some(format!("only the first {bytes} decompressed bytes were read"))
        }
        (false, _) => Some("the time limit was reached".to_owned()),
    };
    SampleInfo {
        bytes_read: survey.bytes,
        bytes_total: size,
        rows_read: survey.rows,
        rows_refused: survey.refused_rows(),
        rows_misfit: misfits::records(survey).len() as u64,
        whole,
        rows_confirmed: 0,
        limited_by,
    }
}

fn assemble(key: &str, plan: DialectPlan, settled: Settled, survey: &Survey, sample: SampleInfo) -> Proposal {
    let mut warnings = plan.warnings;
    warnings.extend(settled.warnings);
    for (reason, refused) in &survey.refused {
        warnings.push(format!(
            "{} rejected as {reason}, first on line {}: {}",
            counted(refused.count, "record is", "records are"),
            refused.first_line,
            refused.message
        ));
    }
    let (csv, csv_full) = confirm::csv(&plan.dialect);
    let header = survey.header.clone().unwrap_or_default();
    let suggestions = suggest::suggest(&settled.columns, &survey.columns, &header, survey.rows);
    let mut findings = plan.findings;
    findings.extend(settled.findings);
    Proposal {
        key: key.to_owned(),
        table: naming::table(key),
        files: vec![naming::glob(key)],
        csv,
        csv_full,
        findings,
        columns: settled.columns,
        variants: Vec::new(),
        partial: false,
        suggestions,
        sample,
        warnings,
    }
}
