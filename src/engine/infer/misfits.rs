//! Finds types of columns that are text only because of a few misfits.
//!
//! Two more passes over the file, for columns inferred as text: the first counts the misfits of each type; the second
//! collects statistics without them.
//!
//! Invariants:
//! - a misfit is not null and has no reading in its column's type; a run rejects its row, and the proposal says so;
//! - a value that a type would change (a leading zero) or could read as another day is not a misfit: it keeps the
//!   column text.

use std::collections::{BTreeMap, BTreeSet};

use super::amounts::AmountKind;
use super::column_stats::{ColumnSurvey, NearlyTyped, Probes, content};
use super::counterexample::{CellValue, Counterexample};
use super::numbers::{NumberFit, STYLES};
use super::survey::Survey;
use super::times::{self, SeveralFormats, TimeFormat};
use super::words::is_boolean_word;
use crate::domain::pipeline::Dialect;
use crate::engine::read::error::ReadError;
use crate::engine::read::head::Head;

/// The percentage of a column's non-null values that must be of a type to propose it. Below, the column is a mixture,
/// and a type would lose intended values; one value in twenty or fewer is typical of typing errors and notes.
pub(super) const FITTING_PERCENT_MIN: u64 = 95;
/// The percentage from which the evidence names the type that a text column almost has.
const REPORTED_PERCENT_MIN: u64 = 80;
/// Misfits shown.
pub(super) const SHOWN_MAX: usize = 3;
/// Sets of formats that read a value of a column.
const CASES_MAX: usize = 256;
/// Searches for date formats in a column.
const SEARCHES_MAX: u32 = 32;

const _: () = assert!(REPORTED_PERCENT_MIN < FITTING_PERCENT_MIN && FITTING_PERCENT_MIN < 100);

/// The number of `values` that may be misfits if `percent` must fit.
pub(super) fn misses_max(values: u64, percent: u64) -> u64 {
    values - (values * percent).div_ceil(100)
}

/// A type that values are checked against.
#[derive(Debug)]
enum CandidateType {
    Boolean,
    Time(TimeFormat),
    Number(usize),
    Amount(AmountKind, usize),
    Uuid,
    Json,
}

impl CandidateType {
    fn plural(&self) -> &'static str {
        match self {
            Self::Boolean => "words for true and false",
            Self::Time(_) => "dates or times",
            Self::Number(_) => "numbers",
            Self::Amount(..) => "amounts",
            Self::Uuid => "UUIDs",
            Self::Json => "JSON objects or arrays",
        }
    }

    fn fit(&mut self, text: &[u8], probes: &mut Probes) -> NumberFit {
        let fits = match self {
            Self::Boolean => is_boolean_word(text),
            Self::Time(format) => format.reads(text),
            Self::Number(style) => return probes.numbers.fit(*style, text),
            Self::Amount(kind, style) => return kind.fit(*style, text, &mut probes.numbers),
            Self::Uuid => probes.is_uuid(text),
            Self::Json => probes.is_json(text),
        };
        if fits { NumberFit::Number } else { NumberFit::NotNumber }
    }
}

#[derive(Debug)]
struct TypeCandidate {
    fit: CandidateType,
    missed: u64,
    first: Option<Counterexample>,
}

/// The misfits of one column per type, in the first pass.
struct FitTally {
    values: u64,
    misses_max: u64,
    candidates: Vec<TypeCandidate>,
    searches: u32,
    /// The first value, which is not checked against formats found later.
    first: Option<Counterexample>,
    /// For each value, as bits, the time formats that read it, with the number of such values.
    read: BTreeMap<u64, u64>,
    /// Whether a value has no date, or there are too many cases to count.
    untimed: bool,
}

impl FitTally {
    fn new(values: u64) -> Self {
        let fits = [CandidateType::Boolean]
            .into_iter()
            .chain((0..STYLES.len()).map(CandidateType::Number))
            .chain([CandidateType::Uuid, CandidateType::Json]);
        let candidates = fits.map(|fit| TypeCandidate { fit, missed: 0, first: None }).collect();
        let misses_max = misses_max(values, REPORTED_PERCENT_MIN);
        Self { values: 0, misses_max, candidates, searches: 0, first: None, read: BTreeMap::new(), untimed: false }
    }

    fn observe(&mut self, value: &CellValue<'_>, probes: &mut Probes) {
        let text = value.text;
        let (mut timed, mut counted, misses_max) = (false, false, self.misses_max);
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.missed <= misses_max) {
            match candidate.fit.fit(text, probes) {
                NumberFit::Number => {
                    timed |= matches!(candidate.fit, CandidateType::Time(_));
                    counted |= matches!(candidate.fit, CandidateType::Amount(..) | CandidateType::Number(_));
                }
                NumberFit::Lossy => candidate.missed = u64::MAX,
                NumberFit::NotNumber => {
                    candidate.missed += 1;
                    candidate.first.get_or_insert_with(|| value.counterexample(""));
                }
            }
        }
        if !timed && self.searches < SEARCHES_MAX && self.values <= misses_max {
            self.search(text);
        }
        if !counted && self.values <= misses_max {
            self.search_amounts(text, probes);
        }
        self.observe_time(text);
        self.first.get_or_insert_with(|| value.counterexample(""));
        self.values += 1;
    }

    /// Counts the formats that read a value, while every value has one.
    fn observe_time(&mut self, text: &[u8]) {
        if self.untimed {
            return;
        }
        let mut bits = self.times_that_read(text);
        if bits == 0 && self.searches < SEARCHES_MAX {
            self.search(text);
            bits = self.times_that_read(text);
        }
        let cases = self.read.len();
        self.untimed |= bits == 0 || cases >= CASES_MAX && !self.read.contains_key(&bits);
        *self.read.entry(bits).or_default() += 1;
    }

    fn times_that_read(&mut self, text: &[u8]) -> u64 {
        self.candidates
            .iter_mut()
            .filter_map(|candidate| match &mut candidate.fit {
                CandidateType::Time(format) => Some(format.reads(text)),
                CandidateType::Boolean
                | CandidateType::Number(_)
                | CandidateType::Amount(..)
                | CandidateType::Uuid
                | CandidateType::Json => None,
            })
            .take(64)
            .enumerate()
            .fold(0, |bits, (at, reads)| bits | u64::from(reads) << at)
    }

    /// The formats of a column of dates in several of them.
    fn several_formats(&self) -> Option<SeveralFormats> {
        if self.untimed {
            return None;
        }
        let formats: Vec<&TimeFormat> = self
            .candidates
            .iter()
            .filter_map(|candidate| match &candidate.fit {
                CandidateType::Time(format) => Some(format),
                CandidateType::Boolean
                | CandidateType::Number(_)
                | CandidateType::Amount(..)
                | CandidateType::Uuid
                | CandidateType::Json => None,
            })
            .collect();
        times::several_formats(&formats, &self.read).filter(|found| found.formats.len() > 1)
    }

    fn search(&mut self, text: &[u8]) {
        let found = TimeFormat::all_for(text);
        self.searches += u32::from(!found.is_empty());
        for format in found {
            let known = |candidate: &TypeCandidate| matches!(&candidate.fit, CandidateType::Time(other) if other.is_same(&format));
            if !self.candidates.iter().any(known) {
                let first = self.first.clone();
                self.candidates.push(TypeCandidate { fit: CandidateType::Time(format), missed: self.values, first });
            }
        }
    }

    /// Adds the kind of an amount, in each number style that reads it.
    fn search_amounts(&mut self, text: &[u8], probes: &mut Probes) {
        let Some(kind) = AmountKind::of(text) else { return };
        let is_known =
            |candidate: &TypeCandidate| matches!(&candidate.fit, CandidateType::Amount(other, _) if *other == kind);
        if self.candidates.iter().any(is_known) {
            return;
        }
        for style in 0..STYLES.len() {
            if kind.fit(style, text, &mut probes.numbers) == NumberFit::Number {
                let fit = CandidateType::Amount(kind.clone(), style);
                self.candidates.push(TypeCandidate { fit, missed: self.values, first: self.first.clone() });
            }
        }
    }

    fn fewest_misfits(&self) -> Option<&TypeCandidate> {
        self.candidates.iter().filter(|candidate| candidate.missed <= self.misses_max).min_by_key(|c| c.missed)
    }

    fn nearly_typed(&self) -> Option<NearlyTyped> {
        let best = self.fewest_misfits()?;
        Some(NearlyTyped {
            plural: best.fit.plural(),
            fitting: self.values - best.missed,
            values: self.values,
            counterexample: best.first.clone()?,
        })
    }

    /// The filter for the second pass, if nearly all values fit a type.
    fn filter(self) -> Option<MisfitFilter> {
        let least = self.fewest_misfits()?.missed;
        if least > misses_max(self.values, FITTING_PERCENT_MIN) {
            return None;
        }
        let (mut fits, mut others) = (Vec::<CandidateType>::new(), Vec::new());
        for TypeCandidate { fit, missed, .. } in self.candidates {
            // Equally good time formats are combined; of other types the first wins.
            match (fit, fits.first()) {
                (fit @ CandidateType::Time(_), None | Some(CandidateType::Time(_))) if missed == least => {
                    fits.push(fit)
                }
                (CandidateType::Time(format), _) => others.push(format),
                (fit, None) if missed == least => fits.push(fit),
                (
                    CandidateType::Boolean
                    | CandidateType::Number(_)
                    | CandidateType::Amount(..)
                    | CandidateType::Uuid
                    | CandidateType::Json,
                    _,
                ) => {}
            }
        }
        Some(MisfitFilter { fits, others, stats: ColumnSurvey::new(), contradicted: false })
    }
}

/// Separates the misfits of one column, in the second pass.
struct MisfitFilter {
    fits: Vec<CandidateType>,
    /// Other time formats that some values suggested.
    others: Vec<TimeFormat>,
    stats: ColumnSurvey,
    contradicted: bool,
}

impl MisfitFilter {
    /// `data_first`: the value is in the first record of a file without header.
    fn observe(&mut self, value: &CellValue<'_>, quoted: bool, data_first: bool, probes: &mut Probes) {
        let Some(text) = content(value.text, quoted) else { return self.stats.observe(value, quoted, probes) };
        if self.fits.iter_mut().all(|fit| fit.fit(text, probes) == NumberFit::Number) {
            return self.stats.observe(value, quoted, probes);
        }
        let ours = |other: &TimeFormat| {
            self.fits.iter().any(|fit| matches!(fit, CandidateType::Time(format) if format.contradicts(other)))
        };
        self.contradicted |= self.others.iter_mut().any(|format| ours(format) && format.reads(text));
        // It may be an undetected header.
        self.contradicted |= data_first;
        let misfits = &mut self.stats.misfits;
        misfits.offsets.push(value.chunk.offset_at(value.start));
        if misfits.first.len() < SHOWN_MAX {
            misfits.first.push(CellValue::new(text, value.chunk, value.start).counterexample(""));
        }
    }

    /// Whether the remaining values may be proposed.
    fn is_plausible(&self) -> bool {
        let misfits = self.stats.misfits.count();
        !self.contradicted && misfits > 0 && misfits <= misses_max(self.stats.values + misfits, FITTING_PERCENT_MIN)
    }
}

/// Examines columns inferred as text, given by position: records the type they almost have, and removes the misfits of
/// those with few from the survey. Does nothing once `keep_going` returns false.
///
/// # Errors
/// Same as for the first pass.
pub(super) fn find(
    survey: &mut Survey,
    texts: &[usize],
    head: &Head,
    dialect: &Dialect,
    keep_going: &dyn Fn() -> bool,
) -> Result<(), ReadError> {
    let mut probes = Probes::new();
    let mut tallies: BTreeMap<usize, FitTally> =
        texts.iter().map(|&at| (at, FitTally::new(survey.columns[at].values))).collect();
    let columns: Vec<usize> = tallies.keys().copied().collect();
    let ended = survey.revisit(head, dialect, &columns, keep_going, &mut |at, _, value, quoted| {
        if let (Some(tally), Some(text)) = (tallies.get_mut(&at), content(value.text, quoted)) {
            tally.observe(&CellValue::new(text, value.chunk, value.start), &mut probes);
        }
    })?;
    if !ended {
        return Ok(());
    }
    let mut filters = BTreeMap::new();
    for (at, tally) in tallies {
        survey.columns[at].nearly_typed = tally.nearly_typed();
        survey.columns[at].several_formats = tally.several_formats();
        if survey.columns[at].several_formats.is_some() {
            continue;
        }
        filters.extend(tally.filter().map(|filter| (at, filter)));
    }
    let columns: Vec<usize> = filters.keys().copied().collect();
    if columns.is_empty() {
        return Ok(());
    }
    let ended = survey.revisit(head, dialect, &columns, keep_going, &mut |at, row, value, quoted| {
        if let Some(filter) = filters.get_mut(&at) {
            filter.observe(value, quoted, row == 0 && !dialect.header, &mut probes);
        }
    })?;
    if ended {
        for (at, filter) in filters.into_iter().filter(|(_, filter)| filter.is_plausible()) {
            let whole = std::mem::replace(&mut survey.columns[at], filter.stats);
            survey.with_misfits.insert(at, whole);
        }
    }
    Ok(())
}

/// The offsets of the records of all misfits.
pub(super) fn records(survey: &Survey) -> BTreeSet<u64> {
    survey.columns.iter().flat_map(|column| column.misfits.offsets.iter().copied()).collect()
}
