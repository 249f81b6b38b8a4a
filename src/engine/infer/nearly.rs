//! Types that nearly all values of a column are of, which a few stray cells would hide.
//!
//! Two more passes over the file, for columns that came out as text: the first counts for each type the values that are
//! not of it; the second sees a column as if those were not there.
//!
//! Invariants:
//! - a stray is no null and of no reading of its column; a run rejects its row, and the proposal tells of it;
//! - what a type would take and change (a leading zero), or might take for another day, is no stray: it keeps the column
//!   text.

use std::collections::{BTreeMap, BTreeSet};

use super::column::{ColumnStats, Nearly, Probes, content};
use super::numbers::{STYLES, Stands};
use super::struck::{Struck, Value};
use super::survey::Survey;
use super::times::Way;
use super::words::is_boolean_word;
use crate::domain::pipeline::Dialect;
use crate::engine::read::error::ReadError;
use crate::engine::read::head::Head;

/// Of a column's values that are no null, so many in a hundred must be of a type for it to be proposed. Below, a column is
/// a mixture, of which a type would throw away what somebody meant; one value in twenty and fewer is what slips of the
/// pen and notes in place of a value make.
const FITTING_PERCENT_MIN: u64 = 95;
/// From so many in a hundred on, the evidence tells what a column of text nearly was.
const TOLD_PERCENT_MIN: u64 = 80;
/// Strays that are shown.
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
enum Fit {
    Boolean,
    Time(Way),
    Number(usize),
    Uuid,
    Json,
}

impl Fit {
    fn plural(&self) -> &'static str {
        match self {
            Self::Boolean => "words for true and false",
            Self::Time(_) => "dates or times",
            Self::Number(_) => "numbers",
            Self::Uuid => "UUIDs",
            Self::Json => "JSON objects or arrays",
        }
    }

    fn stands(&mut self, text: &[u8], probes: &mut Probes) -> Stands {
        let fits = match self {
            Self::Boolean => is_boolean_word(text),
            Self::Time(way) => way.reads(text),
            Self::Number(style) => return probes.numbers.stands(*style, text),
            Self::Uuid => probes.is_uuid(text),
            Self::Json => probes.is_json(text),
        };
        if fits { Stands::Number } else { Stands::NoNumber }
    }
}

#[derive(Debug)]
struct Candidate {
    fit: Fit,
    missed: u64,
    first: Option<Struck>,
}

/// One column in the first pass.
struct Tally {
    values: u64,
    misses_max: u64,
    candidates: Vec<Candidate>,
    searches: u32,
    /// The first value of all, which ways that are found later miss.
    first: Option<Struck>,
}

impl Tally {
    fn new(values: u64) -> Self {
        let fits = [Fit::Boolean].into_iter().chain((0..STYLES.len()).map(Fit::Number)).chain([Fit::Uuid, Fit::Json]);
        let candidates = fits.map(|fit| Candidate { fit, missed: 0, first: None }).collect();
        Self { values: 0, misses_max: misses_max(values, TOLD_PERCENT_MIN), candidates, searches: 0, first: None }
    }

    fn see(&mut self, value: &Value<'_>, probes: &mut Probes) {
        let text = value.text;
        let (mut timed, misses_max) = (false, self.misses_max);
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.missed <= misses_max) {
            match candidate.fit.stands(text, probes) {
                Stands::Number => timed |= matches!(candidate.fit, Fit::Time(_)),
                Stands::Loses => candidate.missed = u64::MAX,
                Stands::NoNumber => {
                    candidate.missed += 1;
                    candidate.first.get_or_insert_with(|| value.struck(""));
                }
            }
        }
        if !timed && self.searches < SEARCHES_MAX && self.values <= misses_max {
            self.search(text);
        }
        self.first.get_or_insert_with(|| value.struck(""));
        self.values += 1;
    }

    fn search(&mut self, text: &[u8]) {
        let found = Way::all_for(text);
        self.searches += u32::from(!found.is_empty());
        for way in found {
            let known = |candidate: &Candidate| matches!(&candidate.fit, Fit::Time(other) if other.is_as(&way));
            if !self.candidates.iter().any(known) {
                let first = self.first.clone();
                self.candidates.push(Candidate { fit: Fit::Time(way), missed: self.values, first });
            }
        }
    }

    fn missed_least(&self) -> Option<&Candidate> {
        self.candidates.iter().filter(|candidate| candidate.missed <= self.misses_max).min_by_key(|c| c.missed)
    }

    fn nearly(&self) -> Option<Nearly> {
        let best = self.missed_least()?;
        let (what, of) = (best.fit.plural(), self.values);
        Some(Nearly { what, fitting: of - best.missed, of, but: best.first.clone()? })
    }

    /// What the column's values are to be held against, if nearly all of them fit.
    fn filter(self) -> Option<Filter> {
        let least = self.missed_least()?.missed;
        if least > misses_max(self.values, FITTING_PERCENT_MIN) {
            return None;
        }
        let (mut fits, mut others) = (Vec::<Fit>::new(), Vec::new());
        for Candidate { fit, missed, .. } in self.candidates {
            // Of times all equals decide together; of the rest the first.
            match (fit, fits.first()) {
                (fit @ Fit::Time(_), None | Some(Fit::Time(_))) if missed == least => fits.push(fit),
                (Fit::Time(way), _) => others.push(way),
                (fit, None) if missed == least => fits.push(fit),
                (Fit::Boolean | Fit::Number(_) | Fit::Uuid | Fit::Json, _) => {}
            }
        }
        Some(Filter { fits, others, stats: ColumnStats::new(), contradicted: false })
    }
}

/// One column in the second pass.
struct Filter {
    fits: Vec<Fit>,
    /// Other ways to read times, which some value brought up.
    others: Vec<Way>,
    stats: ColumnStats,
    contradicted: bool,
}

impl Filter {
    /// `data_first`: there is no header, and this is the first record.
    fn see(&mut self, value: &Value<'_>, quoted: bool, data_first: bool, probes: &mut Probes) {
        let Some(text) = content(value.text, quoted) else { return self.stats.see(value, quoted, probes) };
        if self.fits.iter_mut().all(|fit| fit.stands(text, probes) == Stands::Number) {
            return self.stats.see(value, quoted, probes);
        }
        let ours = |other: &Way| self.fits.iter().any(|fit| matches!(fit, Fit::Time(way) if way.contradicts(other)));
        self.contradicted |= self.others.iter_mut().any(|way| ours(way) && way.reads(text));
        // It may be a header that was not taken for one.
        self.contradicted |= data_first;
        let strays = &mut self.stats.strays;
        strays.offsets.push(value.chunk.offset_at(value.start));
        if strays.first.len() < SHOWN_MAX {
            strays.first.push(Value::new(text, value.chunk, value.start).struck(""));
        }
    }

    /// Whether what is left may be proposed.
    fn holds(&self) -> bool {
        let strays = self.stats.strays.count();
        !self.contradicted && strays > 0 && strays <= misses_max(self.stats.values + strays, FITTING_PERCENT_MIN)
    }
}

/// Looks again at columns that came out as text, by position: tells what they nearly are, and leaves the strays of those
/// out of the survey that are a type but for few. Does nothing once `go_on` says no.
///
/// # Errors
/// As the first pass.
pub(super) fn look(
    survey: &mut Survey,
    texts: &[usize],
    head: &Head,
    dialect: &Dialect,
    go_on: &dyn Fn() -> bool,
) -> Result<(), ReadError> {
    let mut probes = Probes::new();
    let mut tallies: BTreeMap<usize, Tally> =
        texts.iter().map(|&at| (at, Tally::new(survey.columns[at].values))).collect();
    let columns: Vec<usize> = tallies.keys().copied().collect();
    let ended = survey.revisit(head, dialect, &columns, go_on, &mut |at, _, value, quoted| {
        if let (Some(tally), Some(text)) = (tallies.get_mut(&at), content(value.text, quoted)) {
            tally.see(&Value::new(text, value.chunk, value.start), &mut probes);
        }
    })?;
    if !ended {
        return Ok(());
    }
    let mut filters = BTreeMap::new();
    for (at, tally) in tallies {
        survey.columns[at].nearly = tally.nearly();
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
            survey.with_strays.insert(at, whole);
        }
    }
    Ok(())
}

/// The records of all strays, by their offset.
pub(super) fn records(survey: &Survey) -> BTreeSet<u64> {
    survey.columns.iter().flat_map(|column| column.strays.offsets.iter().copied()).collect()
}
