//! Statistics of one column from one pass over a file, independent of the dialect that is settled later.
//!
//! Invariant: memory is bounded for any number of values of any length.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use super::amounts::Amounts;
use super::counterexample::{CellValue, Counterexample, shown};
use super::numbers::{NumberProbes, Numbers};
use super::times::{SeveralFormats, Times, day_of};
use super::words::{TOKENS, is_boolean_word, is_total, token};
use crate::engine::cells::CellProbe;

/// Limit for counting a column's distinct values.
pub(super) const DISTINCT_MAX: usize = 1_000;
/// Values kept as examples.
const SAMPLES_MAX: usize = 5;
/// Bytes up to which the last value is remembered, since neighbours are often equal.
const LAST_BYTES_MAX: usize = 64;
const UUID_BYTES: usize = 36;

/// Parsers shared by all columns.
pub(super) struct Probes {
    pub numbers: NumberProbes,
    uuid: CellProbe,
    json: CellProbe,
    hasher: RandomState,
}

impl Probes {
    pub fn new() -> Self {
        let (uuid, json) = (CellProbe::uuid(), CellProbe::json());
        Self { numbers: NumberProbes::new(), uuid, json, hasher: RandomState::new() }
    }

    pub fn is_uuid(&mut self, text: &[u8]) -> bool {
        text.len() == UUID_BYTES && self.uuid.check(text).is_ok()
    }

    pub fn is_json(&mut self, text: &[u8]) -> bool {
        looks_nested(text) && self.json.check(text).is_ok()
    }
}

fn looks_nested(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'{' | b'['))
}

/// A cell's content as its type parses it; `None` for a null token.
pub(super) fn content(text: &[u8], quoted: bool) -> Option<&[u8]> {
    let trimmed = if quoted { text } else { text.trim_ascii() };
    token(trimmed).is_none().then_some(trimmed)
}

/// Counts of a null token in a column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenSeen {
    pub plain: u64,
    /// With surrounding blanks.
    pub padded: u64,
    pub quoted: u64,
}

impl TokenSeen {
    pub fn all(self) -> u64 {
        self.plain + self.padded + self.quoted
    }
}

/// Distinct values, counted up to a limit.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    seen: HashSet<u64>,
    pub more: bool,
}

impl Distinct {
    fn add(&mut self, hash: u64) {
        if self.seen.len() < DISTINCT_MAX {
            self.seen.insert(hash);
        } else {
            self.more |= !self.seen.contains(&hash);
        }
    }

    pub fn count(&self) -> u64 {
        self.seen.len() as u64
    }
}

/// Values of a column that are not of its type.
#[derive(Debug, Default)]
pub(super) struct MisfitValues {
    pub first: Vec<Counterexample>,
    /// Offsets of their records in the decompressed source, ascending.
    pub offsets: Vec<u64>,
}

impl MisfitValues {
    pub fn count(&self) -> u64 {
        self.offsets.len() as u64
    }
}

/// The type of most values of a text column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NearlyTyped {
    /// The type's name in the plural.
    pub plural: &'static str,
    pub fitting: u64,
    pub values: u64,
    /// The first value of another type.
    pub counterexample: Counterexample,
}

/// The statistics of one column.
#[derive(Debug, Default)]
pub(super) struct ColumnSurvey {
    pub tokens: Vec<TokenSeen>,
    /// Cells other than null tokens.
    pub values: u64,
    /// Values with surrounding blanks, and the first of them.
    pub padded: u64,
    pub first_padded: Option<Counterexample>,
    pub numbers: Numbers,
    /// Numbers with signs around them, from the first one on.
    pub amounts: Option<Amounts>,
    pub times: Times,
    /// The formats that read the dates of a text column together.
    pub several_formats: Option<SeveralFormats>,
    pub not_uuid: Option<Counterexample>,
    pub not_json: Option<Counterexample>,
    /// Words for true and false, until another value occurs.
    pub words: Vec<Vec<u8>>,
    pub not_boolean: Option<Counterexample>,
    /// Values that name a total, not counting repetitions.
    pub totals: u64,
    pub distinct: Distinct,
    pub days: Distinct,
    pub samples: Vec<String>,
    /// Cells excluded from all other statistics.
    pub misfits: MisfitValues,
    /// The type of most values, if not all are of one type.
    pub nearly_typed: Option<NearlyTyped>,
    last: Vec<u8>,
}

impl ColumnSurvey {
    pub fn new() -> Self {
        Self { tokens: vec![TokenSeen::default(); TOKENS.len()], ..Self::default() }
    }

    pub fn observe(&mut self, value: &CellValue<'_>, quoted: bool, probes: &mut Probes) {
        let trimmed = if quoted { value.text } else { value.text.trim_ascii() };
        let padded = trimmed.len() != value.text.len();
        if let Some(at) = token(trimmed) {
            let seen = &mut self.tokens[at];
            match (quoted, padded) {
                (true, _) => seen.quoted += 1,
                (false, true) => seen.padded += 1,
                (false, false) => seen.plain += 1,
            }
            return;
        }
        self.values += 1;
        if padded {
            self.padded += 1;
            self.first_padded.get_or_insert_with(|| value.counterexample(""));
        }
        if self.values > 1 && self.last == trimmed && trimmed.len() <= LAST_BYTES_MAX {
            self.numbers.repeat_last();
            if let Some(amounts) = &mut self.amounts {
                amounts.repeat_last();
            }
            self.times.repeat_last();
            return;
        }
        let line = std::cell::Cell::new(value.line.get());
        self.observe_new(&CellValue { text: trimmed, chunk: value.chunk, start: value.start, line }, probes);
        self.last.clear();
        self.last.extend_from_slice(&trimmed[..trimmed.len().min(LAST_BYTES_MAX + 1)]);
    }

    fn observe_new(&mut self, value: &CellValue<'_>, probes: &mut Probes) {
        let text = value.text;
        self.distinct.add(probes.hasher.hash_one(text));
        self.totals += u64::from(std::str::from_utf8(text).is_ok_and(is_total));
        if self.samples.len() < SAMPLES_MAX {
            let sample = shown(text);
            if !self.samples.contains(&sample) {
                self.samples.push(sample);
            }
        }
        match &mut self.amounts {
            Some(amounts) => amounts.observe(value, &mut probes.numbers),
            None if self.numbers.is_read() || self.values == 1 => {
                self.amounts = Amounts::begin(&self.numbers, self.values - 1, value, &mut probes.numbers);
            }
            None => {}
        }
        self.numbers.observe(value, &mut probes.numbers);
        self.times.observe(value);
        if self.times.counterexample().is_none() {
            self.days.add(probes.hasher.hash_one(day_of(text)));
        }
        if self.not_boolean.is_none() {
            if !is_boolean_word(text) {
                self.not_boolean = Some(value.counterexample(""));
            } else if !self.words.iter().any(|word| word == text) {
                self.words.push(text.to_vec());
            }
        }
        if self.not_uuid.is_none() && !probes.is_uuid(text) {
            self.not_uuid = Some(value.counterexample(""));
        }
        if self.not_json.is_none() && !probes.is_json(text) {
            self.not_json = Some(value.counterexample(if looks_nested(text) { "not valid JSON" } else { "" }));
        }
    }

    /// Null tokens of any kind.
    pub fn token_cells(&self) -> u64 {
        self.tokens.iter().map(|seen| seen.all()).sum()
    }

    /// Whether every cell is empty.
    pub fn is_empty(&self) -> bool {
        self.values == 0 && self.tokens.iter().skip(1).all(|seen| seen.all() == 0)
    }
}
