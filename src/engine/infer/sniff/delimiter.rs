//! Finds the delimiter and quotes that split the first records into the same number of cells.

use super::kind::{CellKind, CellKinds};
use crate::domain::pipeline::Dialect;
use crate::engine::read::records::walk;

/// Maximum number of records used to detect a CSV's dialect.
const SNIFF_RECORDS_MAX: usize = 2_000;

/// A possible delimiter and its prior. A *weak* delimiter is common within values too.
struct KnownDelimiter {
    delimiter: &'static str,
    prior: f64,
    weak: bool,
}

const fn known(delimiter: &'static str, prior: f64, weak: bool) -> KnownDelimiter {
    KnownDelimiter { delimiter, prior, weak }
}

const DELIMITERS: [KnownDelimiter; 14] = [
    known(",", 1.0, false),
    known("\t", 1.0, false),
    known(";", 1.0, false),
    known("|", 1.0, false),
    known("\u{1f}", 1.0, false),
    known("\u{1}", 1.0, false),
    known("||", 1.01, false),
    known("::", 0.95, false),
    known(", ", 0.9, false),
    known("; ", 0.9, false),
    known("^", 0.9, false),
    known("~", 0.9, false),
    known(":", 0.6, true),
    known(" ", 0.6, true),
];
/// A cell that contains one of these may be split wrongly.
const DELIMITER_LIKE: [u8; 4] = *b",;\t|";
/// Below this score, the file is treated as one column.
const SCORE_MIN: f64 = 0.35;
/// The share of numbers and dates that a weak delimiter requires.
const WEAK_TYPED_MIN: f64 = 0.5;
/// Records, and cells of each, whose content is examined.
const JUDGED_RECORDS: usize = 60;
const JUDGED_CELLS: usize = 40;

/// One record of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutRecord {
    pub start: usize,
    pub end: usize,
    pub next: usize,
    pub width: usize,
}

/// The head split by a dialect.
#[derive(Debug, Clone)]
pub struct DialectCut {
    pub dialect: Dialect,
    pub records: Vec<CutRecord>,
    /// The most common number of cells, and the first record with it.
    pub width: usize,
    pub first: usize,
    /// Records with this width, from `first`.
    pub agree: usize,
    /// Records with a stray quote.
    pub strays: usize,
    /// Quoted cells in records without stray quotes.
    pub quoted: usize,
    pub unclosed: bool,
    /// Typed cells (numbers, dates and the like) after the first record, and all cells that are not empty.
    typed: (usize, usize),
    pub score: f64,
}

impl DialectCut {
    /// Records from `first`.
    pub fn record_count(&self) -> usize {
        self.records.len() - self.first
    }
}

/// All dialects tried, best first.
pub fn rank(text: &[u8], whole: bool, base: &Dialect, kinds: &mut CellKinds) -> Vec<DialectCut> {
    let has = |needle: &str| memchr::memmem::find(text, needle.as_bytes()).is_some();
    let mut cuts: Vec<DialectCut> = Vec::new();
    for known in &DELIMITERS {
        if has(known.delimiter) {
            let dialect = Dialect { delimiter: known.delimiter.as_bytes().to_vec(), ..base.clone() };
            let mut cut = best_quotes(text, whole, &dialect, kinds);
            cut.score *= known.prior;
            let typed = cut.typed.0 as f64 / cut.typed.1.max(1) as f64;
            if cut.width < 2 || (known.weak && typed < WEAK_TYPED_MIN) {
                cut.score = 0.0;
            }
            cuts.push(cut);
        }
    }
    let single = single(text, whole, base, kinds);
    let lines_typed = single.typed.0 as f64 / single.typed.1.max(1) as f64;
    for cut in &mut cuts {
        let weak = matches!(cut.dialect.delimiter[..], [b':' | b' ']);
        // Lines of one value each: times contain colons, numbers commas.
        let header_is_single = cut.first == 1 && cut.records.first().is_some_and(|r| r.width == 1);
        if lines_typed > 0.9 && (weak || header_is_single) {
            cut.score = 0.0;
        }
    }
    cuts.push(single);
    cuts.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.width.cmp(&a.width)));
    cuts
}

/// One column: a delimiter that the text doesn't contain.
fn single(text: &[u8], whole: bool, base: &Dialect, kinds: &mut CellKinds) -> DialectCut {
    let unused = [",", "\t", ";", "|", "\u{1f}", "\u{1}"]
        .into_iter()
        .find(|d| memchr::memmem::find(text, d.as_bytes()).is_none());
    let dialect = Dialect { delimiter: unused.unwrap_or("\u{1e}").as_bytes().to_vec(), ..base.clone() };
    let mut cut = best_quotes(text, whole, &dialect, kinds);
    cut.score = SCORE_MIN;
    cut
}

/// The best quotes and escapes for a delimiter.
fn best_quotes(text: &[u8], whole: bool, base: &Dialect, kinds: &mut CellKinds) -> DialectCut {
    let has = |needle: &[u8]| memchr::memmem::find(text, needle).is_some();
    let mut best = cut(text, whole, base, kinds);
    if !has(b"\"") && !has(b"'") {
        return best;
    }
    let flawed = |cut: &DialectCut| cut.strays > 0 || cut.unclosed;
    if has(b"\\\"") && (flawed(&best) || best.agree < best.record_count()) {
        let escaped = cut(text, whole, &Dialect { escape: Some(b'\\'), ..base.clone() }, kinds);
        if escaped.strays < best.strays || escaped.score > best.score {
            best = escaped;
        }
    }
    if best.quoted == 0 && has(b"'") {
        let single = cut(text, whole, &Dialect { quote: Some(b'\''), ..base.clone() }, kinds);
        if single.quoted >= 2 && !flawed(&single) && single.score >= best.score {
            return single;
        }
    }
    if best.quoted == 0 && flawed(&best) {
        let plain = cut(text, whole, &Dialect { quote: None, ..base.clone() }, kinds);
        if plain.score >= best.score {
            best = plain;
        }
    }
    best
}

fn cut(text: &[u8], whole: bool, dialect: &Dialect, kinds: &mut CellKinds) -> DialectCut {
    let mut made = DialectCut {
        dialect: dialect.clone(),
        records: Vec::new(),
        width: 0,
        first: 0,
        agree: 0,
        strays: 0,
        quoted: 0,
        unclosed: false,
        typed: (0, 0),
        score: 0.0,
    };
    let mut last = (0, false);
    let stop = walk(dialect, text, true, |record| {
        last = (record.fields.iter().filter(|field| field.is_quoted()).count(), record.unclosed);
        made.strays += usize::from(record.stray);
        made.quoted += if record.stray || record.unclosed { 0 } else { last.0 };
        let (start, end, next, width) = (record.start, record.end, record.next, record.fields.len());
        made.records.push(CutRecord { start, end, next, width });
        made.records.len() < SNIFF_RECORDS_MAX
    });
    made.unclosed = last.1 && whole;
    // The head ends within its last record, unless it is the only one.
    if stop >= text.len() && !whole && made.records.len() > 1 {
        made.records.pop();
    }
    made.width = most_common(&made.records);
    made.first = made.records.iter().position(|record| record.width == made.width).unwrap_or(0);
    made.agree = made.records[made.first..].iter().filter(|record| record.width == made.width).count();
    if made.records.is_empty() {
        return made;
    }
    let clean = sample_cells(text, &mut made, kinds);
    let agree = made.agree as f64 / made.record_count() as f64;
    let strays = made.strays as f64 / made.records.len() as f64;
    let preamble = if made.first > 0 { 0.95 } else { 1.0 };
    let unclosed = if made.unclosed { 0.5 } else { 1.0 };
    made.score = agree * (0.5 + 0.5 * clean) * (1.0 - 0.5 * strays) * preamble * unclosed;
    made
}

fn most_common(records: &[CutRecord]) -> usize {
    let mut widths: Vec<usize> = records.iter().map(|record| record.width).collect();
    widths.sort_unstable();
    let runs = widths.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0]));
    runs.max().map_or(0, |(_, width)| width)
}

/// Examines some cells: counts typed ones, and returns the share that was split cleanly.
fn sample_cells(text: &[u8], cut: &mut DialectCut, kinds: &mut CellKinds) -> f64 {
    let delimiter = cut.dialect.delimiter.clone();
    let suspects: Vec<u8> = DELIMITER_LIKE.into_iter().filter(|b| !delimiter.contains(b)).collect();
    let (mut clean, mut all) = (0usize, 0usize);
    let mut typed = (0, 0);
    let step = (cut.record_count() / JUDGED_RECORDS).max(1);
    for (nth, record) in cut.records[cut.first..].iter().enumerate().step_by(step) {
        walk(&cut.dialect, &text[record.start..record.end], true, |record_again| {
            for field in record_again.fields.iter().take(JUDGED_CELLS) {
                let cell = &text[record.start..record.end][field.range()];
                let kind = kinds.of(cell);
                all += 1;
                let suspicious = !field.is_quoted() && cell.iter().any(|b| suspects.contains(b));
                clean += usize::from(kind != CellKind::Text || !suspicious);
                if (cut.first > 0 || nth > 0) && kind != CellKind::Empty {
                    typed.1 += 1;
                    typed.0 += usize::from(kind != CellKind::Text);
                }
            }
            false
        });
    }
    cut.typed = typed;
    clean as f64 / all.max(1) as f64
}
