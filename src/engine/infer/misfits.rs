//! Types that nearly_typed all values of a column are of, which a few stray cells would hide.
//!
//! Two more passes over the file, for columns that came out as text: the first counts for each type the values that are
//! not of it; the second sees a column as if those were not there.
//!
//! Invariants:
//! - a stray is no null and of no reading of its column; a run rejects its row, and the proposal tells of it;
//! - what a type would take and change (a leading zero), or might take for another day, is no stray: it keeps the column
//!   text.

use std::collections::{BTreeMap, BTreeSet};

use super::column_stats::{ColumnStats, NearlyTyped, Probes, content};
use super::counterexample::{CellValue, Counterexample};
use super::numbers::{NumberFit, STYLES};
use super::survey::Survey;
use super::times::TimeFormat;
use super::words::is_boolean_word;
use crate::domain::pipeline::Dialect;
use crate::engine::read::error::ReadError;
use crate::engine::read::head::Head;

/// Of a column's values that are no null, so many in a hundred must be of a type for it to be proposed. Below, a column is
/// a mixture, of which a type would throw away what somebody meant; one value in twenty and fewer is what slips of the
/// pen and notes in place of a value make.
const FITTING_PERCENT_MIN: u64 = 95;
/// From so many in a hundred on, the evidence tells what a column of text nearly_typed was.
const TOLD_PERCENT_MIN: u64 = 80;
/// MisfitValues that are shown.
const SHOWN_MAX: usize = 3;
/// Times that ways to read a date are looked for in a column.
const SEARCHES_MAX: u32 = 32;

const _: () = assert!(TOLD_PERCENT_MIN < FITTING_PERCENT_MIN && FITTING_PERCENT_MIN < 100);

/// Of `values`, those that may miss if so many in a hundred must fit.
fn misses_max(values: u64, percent: u64) -> u64 {
    values - (values * percent).div_ceil(100)
}

/// What a type asks of a value.
#[derive(Debug)]
enum CandidateType {
    Boolean,
    Time(TimeFormat),
    Number(usize),
    Uuid,
    Json,
}

impl CandidateType {
    fn plural(&self) -> &'static str {
        match self {
            Self::Boolean => "words for true and false",
            Self::Time(_) => "dates or times",
            Self::Number(_) => "numbers",
            Self::Uuid => "UUIDs",
            Self::Json => "JSON objects or arrays",
        }
    }

    fn fit(&mut self, text: &[u8], probes: &mut Probes) -> NumberFit {
        let fits = match self {
            Self::Boolean => is_boolean_word(text),
            Self::Time(format) => format.reads(text),
            Self::Number(style) => return probes.numbers.fit(*style, text),
            Self::Uuid => probes.is_uuid(text),
            Self::Json => probes.is_json(text),
        };
        if fits { NumberFit::Number } else { NumberFit::NotNumber }
    }
}

#[derive(Debug)]
struct Candidate {
    fit: CandidateType,
    missed: u64,
    first: Option<Counterexample>,
}

/// One column in the first pass.
struct FitTally {
    values: u64,
    misses_max: u64,
    candidates: Vec<Candidate>,
    searches: u32,
    /// The first value of all, which ways that are found later miss.
    first: Option<Counterexample>,
}

impl FitTally {
    fn new(values: u64) -> Self {
        let fits = [CandidateType::Boolean]
            .into_iter()
            .chain((0..STYLES.len()).map(CandidateType::Number))
            .chain([CandidateType::Uuid, CandidateType::Json]);
        let candidates = fits.map(|fit| Candidate { fit, missed: 0, first: None }).collect();
        Self { values: 0, misses_max: misses_max(values, TOLD_PERCENT_MIN), candidates, searches: 0, first: None }
    }

    fn see(&mut self, value: &CellValue<'_>, probes: &mut Probes) {
        let text = value.text;
        let (mut timed, misses_max) = (false, self.misses_max);
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.missed <= misses_max) {
            match candidate.fit.fit(text, probes) {
                NumberFit::Number => timed |= matches!(candidate.fit, CandidateType::Time(_)),
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
        self.first.get_or_insert_with(|| value.counterexample(""));
        self.values += 1;
    }

    fn search(&mut self, text: &[u8]) {
        let found = TimeFormat::all_for(text);
        self.searches += u32::from(!found.is_empty());
        for format in found {
            let known =
                |candidate: &Candidate| matches!(&candidate.fit, CandidateType::Time(other) if other.is_same(&format));
            if !self.candidates.iter().any(known) {
                let first = self.first.clone();
                self.candidates.push(Candidate { fit: CandidateType::Time(format), missed: self.values, first });
            }
        }
    }

    fn missed_least(&self) -> Option<&Candidate> {
        self.candidates.iter().filter(|candidate| candidate.missed <= self.misses_max).min_by_key(|c| c.missed)
    }

    fn nearly_typed(&self) -> Option<NearlyTyped> {
        let best = self.missed_least()?;
        let (what, of) = (best.fit.plural(), self.values);
        Some(NearlyTyped { what, fitting: of - best.missed, of, but: best.first.clone()? })
    }

    /// What the column's values are to be held against, if nearly_typed all of them fit.
    fn filter(self) -> Option<MisfitFilter> {
        let least = self.missed_least()?.missed;
        if least > misses_max(self.values, FITTING_PERCENT_MIN) {
            return None;
        }
        let (mut fits, mut others) = (Vec::<CandidateType>::new(), Vec::new());
        for Candidate { fit, missed, .. } in self.candidates {
            // Of times all equals decide together; of the rest the first.
            match (fit, fits.first()) {
                (fit @ CandidateType::Time(_), None | Some(CandidateType::Time(_))) if missed == least => {
                    fits.push(fit)
                }
                (CandidateType::Time(format), _) => others.push(format),
                (fit, None) if missed == least => fits.push(fit),
                (CandidateType::Boolean | CandidateType::Number(_) | CandidateType::Uuid | CandidateType::Json, _) => {}
            }
        }
        Some(MisfitFilter { fits, others, stats: ColumnStats::new(), contradicted: false })
    }
}

/// One column in the second pass.
struct MisfitFilter {
    fits: Vec<CandidateType>,
    /// Other ways to read times, which some value brought up.
    others: Vec<TimeFormat>,
    stats: ColumnStats,
    contradicted: bool,
}

impl MisfitFilter {
    /// `data_first`: there is no header, and this is the first record.
    fn see(&mut self, value: &CellValue<'_>, quoted: bool, data_first: bool, probes: &mut Probes) {
        let Some(text) = content(value.text, quoted) else { return self.stats.see(value, quoted, probes) };
        if self.fits.iter_mut().all(|fit| fit.fit(text, probes) == NumberFit::Number) {
            return self.stats.see(value, quoted, probes);
        }
        let ours = |other: &TimeFormat| {
            self.fits.iter().any(|fit| matches!(fit, CandidateType::Time(format) if format.contradicts(other)))
        };
        self.contradicted |= self.others.iter_mut().any(|format| ours(format) && format.reads(text));
        // It may be a header that was not taken for one.
        self.contradicted |= data_first;
        let misfits = &mut self.stats.misfits;
        misfits.offsets.push(value.chunk.offset_at(value.start));
        if misfits.first.len() < SHOWN_MAX {
            misfits.first.push(CellValue::new(text, value.chunk, value.start).counterexample(""));
        }
    }

    /// Whether what is left may be proposed.
    fn holds(&self) -> bool {
        let misfits = self.stats.misfits.count();
        !self.contradicted && misfits > 0 && misfits <= misses_max(self.stats.values + misfits, FITTING_PERCENT_MIN)
    }
}

/// Looks again at columns that came out as text, by position: tells what they nearly_typed are, and leaves the misfits of those
/// out of the survey that are a type but for few. Does nothing once `go_on` says no.
///
/// # Errors
/// As the first pass.
pub(super) fn find(
    survey: &mut Survey,
    texts: &[usize],
    head: &Head,
    dialect: &Dialect,
    go_on: &dyn Fn() -> bool,
) -> Result<(), ReadError> {
    let mut probes = Probes::new();
    let mut tallies: BTreeMap<usize, FitTally> =
        texts.iter().map(|&at| (at, FitTally::new(survey.columns[at].values))).collect();
    let columns: Vec<usize> = tallies.keys().copied().collect();
    let ended = survey.revisit(head, dialect, &columns, go_on, &mut |at, _, value, quoted| {
        if let (Some(tally), Some(text)) = (tallies.get_mut(&at), content(value.text, quoted)) {
            tally.see(&CellValue::new(text, value.chunk, value.start), &mut probes);
        }
    })?;
    if !ended {
        return Ok(());
    }
    let mut filters = BTreeMap::new();
    for (at, tally) in tallies {
        survey.columns[at].nearly_typed = tally.nearly_typed();
        filters.extend(tally.filter().map(|filter| (at, filter)));
    }
    let columns: Vec<usize> = filters.keys().copied().collect();
    if columns.is_empty() {
        return Ok(());
    }
    let ended = survey.revisit(head, dialect, &columns, go_on, &mut |at, row, value, quoted| {
        if let Some(filter) = filters.get_mut(&at) {
            filter.see(value, quoted, row == 0 && !dialect.header, &mut probes);
        }
    })?;
    if ended {
        for (at, filter) in filters.into_iter().filter(|(_, filter)| filter.holds()) {
            let whole = std::mem::replace(&mut survey.columns[at], filter.stats);
            survey.with_misfits.insert(at, whole);
        }
    }
    Ok(())
}

/// The records of all misfits, by their offset.
pub(super) fn records(survey: &Survey) -> BTreeSet<u64> {
    survey.columns.iter().flat_map(|column| column.misfits.offsets.iter().copied()).collect()
}
