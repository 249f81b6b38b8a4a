//! Plans the dialect for the whole file from its head.

use serde_json::{Value, json};

use super::super::proposal::{Candidate, Finding, Item};
use super::delimiter::{CutRecord, DialectCut, rank};
use super::encoding::{self, EncodingGuess};
use super::header::{self, HeaderVerdict};
use super::kind::CellKinds;
use crate::domain::pipeline::{Dialect, RecordTerminator};
use crate::domain::text::counted;
use crate::engine::cells::cell_text;
use crate::engine::read::records::walk;

/// Decompressed bytes used to detect a CSV's dialect; the rest only confirms it.
const SNIFF_BYTES_MAX: usize = 1 << 20;

/// Records below the first used to judge a header.
const BELOW_MAX: usize = 200;
/// Records above a header that spreadsheets pad with empty cells.
const TITLES_MAX: usize = 20;
/// Dialects shown as candidates.
const CANDIDATES_MAX: usize = 5;
const COMMENTS: [u8; 2] = *b"#%";

/// How to read a file, judged by its head.
#[derive(Debug, Clone)]
pub struct DialectPlan {
    pub dialect: Dialect,
    pub bom: bool,
    /// Names of columns taken by position; `None`: the header names them.
    pub positional: Option<Vec<String>>,
    pub findings: Vec<Finding>,
    pub warnings: Vec<String>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SniffError {
    Empty,
    NotCsv(String),
}

/// Plans by the first bytes of a file; `whole`: they are the whole file.
pub fn make(bytes: &[u8], whole: bool) -> Result<DialectPlan, SniffError> {
    let whole = whole && bytes.len() <= SNIFF_BYTES_MAX;
    let bytes = &bytes[..bytes.len().min(SNIFF_BYTES_MAX)];
    let guess = encoding::guess(bytes, whole).map_err(SniffError::NotCsv)?;
    let (text, _, _) = guess.encoding.decode(bytes);
    if text.trim().is_empty() {
        return Err(SniffError::Empty);
    }
    let text = text.as_bytes();
    let mut plan = DialectPlan {
        dialect: Dialect { encoding: guess.encoding, ..Dialect::default() },
        bom: guess.bom,
        positional: None,
        findings: Vec::new(),
        warnings: Vec::new(),
    };
    plan.encoding(guess);
    plan.terminator(text);
    let mut kinds = CellKinds::new();
    let comments = comment_lines(text, &plan.dialect);
    plan.dialect.comment = comments.first().map(|line| line.mark);
    let mut cuts = rank(text, whole, &plan.dialect, &mut kinds);
    if !comments.is_empty() && are_data(text, &cuts[0], &comments) {
        plan.dialect.comment = None;
        cuts = rank(text, whole, &plan.dialect, &mut kinds);
    }
    plan.cut(&cuts);
    HeaderSettler { text, cut: &cuts[0], comments: &comments, kinds: &mut kinds }.settle(&mut plan);
    Ok(plan)
}

impl DialectPlan {
    fn find(&mut self, item: Item, value: Value, why: impl Into<String>) {
        self.findings.push(Finding { item, value, why: why.into(), candidates: Vec::new() });
    }

    /// Sets the encoding, replacing an earlier finding.
    pub fn encoding(&mut self, guess: EncodingGuess) {
        self.dialect.encoding = guess.encoding;
        self.findings.retain(|finding| finding.item != Item::Encoding);
        self.find(Item::Encoding, json!(label(&self.dialect)), guess.why);
        self.warnings.extend(guess.warning);
    }

    fn terminator(&mut self, text: &[u8]) {
        let lines = memchr::memchr_iter(b'\n', text).count();
        let returns = memchr::memchr_iter(b'\r', text).count();
        let pairs = memchr::memmem::find_iter(text, b"\r\n").count();
        let (terminator, value, why) = if lines == 0 && returns > 0 {
            (RecordTerminator::Cr, "cr", format!("{returns} carriage returns and no line feed"))
        } else {
            (RecordTerminator::Auto, "auto", format!("{lines} line feeds, {pairs} of them after a carriage return"))
        };
        self.dialect.record_terminator = terminator;
        self.find(Item::RecordTerminator, json!(value), why);
    }

    fn cut(&mut self, cuts: &[DialectCut]) {
        let best = &cuts[0];
        self.dialect = best.dialect.clone();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let candidate = |cut: &DialectCut| Candidate {
            value: json!(text(&cut.dialect.delimiter)),
            count: cut.agree as u64,
            of: cut.record_count() as u64,
            why: format!(
                "{} of {} records have {}",
                cut.agree,
                cut.record_count(),
                counted(cut.width as u64, "cell", "cells")
            ),
        };
        let why = if best.width == 1 {
            "no delimiter splits the records into the same number of cells: one column".to_owned()
        } else {
            format!("{} of the first {} records have {} cells", best.agree, best.record_count(), best.width)
        };
        let candidates = cuts.iter().take(CANDIDATES_MAX).map(candidate).collect();
        self.findings.push(Finding {
            item: Item::Delimiter,
            value: json!(text(&best.dialect.delimiter)),
            why,
            candidates,
        });
        let byte = |byte: Option<u8>| byte.map(|byte| char::from(byte).to_string());
        let why = match (best.quoted, best.strays, best.dialect.quote) {
            (_, _, None) => "quotes occur only within cells, and none is closed".to_owned(),
            (0, 0, _) => "no quoted cells found; this is the default".to_owned(),
            (quoted, strays, _) => format!(
                "{} quoted, {} a stray quote",
                counted(quoted as u64, "cell is", "cells are"),
                counted(strays as u64, "record has", "records have")
            ),
        };
        self.find(Item::Quote, json!(byte(best.dialect.quote)), why);
        if best.dialect.escape.is_some() {
            let why = "quotes within quoted cells are escaped with a backslash";
            self.find(Item::Escape, json!(byte(best.dialect.escape)), why);
        }
    }
}

/// The WHATWG label of the dialect's encoding, in lower case.
pub fn label(dialect: &Dialect) -> String {
    dialect.encoding.name().to_lowercase()
}

/// A physical line that starts like a comment.
#[derive(Debug, Clone, Copy)]
struct CommentLine {
    mark: u8,
    start: usize,
    end: usize,
}

/// Lines that start with a comment byte; the first such line determines which.
fn comment_lines(text: &[u8], dialect: &Dialect) -> Vec<CommentLine> {
    let newline = crate::engine::read::records::newline_of(dialect);
    let mut lines: Vec<CommentLine> = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = memchr::memchr(newline, &text[start..]).map_or(text.len(), |at| start + at);
        let mark = text[start];
        // `%` starts comments only at the start of the file.
        let may_be = mark == b'#' || (mark == b'%' && start == 0) || lines.first().is_some_and(|l| l.mark == mark);
        if COMMENTS.contains(&mark) && may_be && lines.first().is_none_or(|first| first.mark == mark) {
            lines.push(CommentLine { mark, start, end });
        }
        start = end + 1;
    }
    lines
}

fn width_of(text: &[u8], line: &CommentLine, dialect: &Dialect) -> usize {
    cells_of(&text[line.start..line.end], &Dialect { comment: None, ..dialect.clone() }).len()
}

/// Whether lines that look like comments are records like the others.
fn are_data(text: &[u8], cut: &DialectCut, comments: &[CommentLine]) -> bool {
    let Some(first) = cut.records.first() else { return true };
    let (top, body): (Vec<_>, Vec<_>) = comments.iter().partition(|line| line.start < first.start);
    if cut.width < 2 {
        return top.is_empty();
    }
    let alike = |lines: &[&CommentLine]| lines.iter().filter(|l| width_of(text, l, &cut.dialect) == cut.width).count();
    alike(&body) * 2 > body.len()
}

/// The cells of the first record of `text`, unescaped and trimmed.
fn cells_of(text: &[u8], dialect: &Dialect) -> Vec<Vec<u8>> {
    let mut cells = Vec::new();
    walk(dialect, text, true, |record| {
        let cell = |field| String::from_utf8_lossy(&cell_text(text, field, dialect)).trim().as_bytes().to_vec();
        cells = record.fields.iter().copied().map(cell).collect();
        false
    });
    cells
}

fn strings(cells: &[Vec<u8>]) -> Vec<String> {
    cells.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
}

/// Decides where column names come from.
struct HeaderSettler<'a> {
    text: &'a [u8],
    cut: &'a DialectCut,
    comments: &'a [CommentLine],
    kinds: &'a mut CellKinds,
}

impl HeaderSettler<'_> {
    fn cells(&self, record: &CutRecord) -> Vec<Vec<u8>> {
        cells_of(&self.text[record.start..record.next], &self.cut.dialect)
    }

    fn lines_before(&self, at: usize) -> u64 {
        let newline = crate::engine::read::records::newline_of(&self.cut.dialect);
        memchr::memchr_iter(newline, &self.text[..at]).count() as u64
    }

    fn settle(mut self, plan: &mut DialectPlan) {
        let cut = self.cut;
        let at = match self.header_of_other_width() {
            Some(at) => at,
            None => cut.first + self.padded_titles(),
        };
        let Some(record) = cut.records.get(at).copied() else { return };
        let own = self.cells(&record);
        let same = |r: &&CutRecord| r.width == cut.width;
        let below: Vec<_> =
            cut.records[at + 1..].iter().filter(same).take(BELOW_MAX).map(|record| self.cells(record)).collect();
        let verdict = if at < cut.first {
            let why = format!("its {} cells are names, although the records below have {}", own.len(), cut.width);
            HeaderVerdict { header: true, why, guessed: false }
        } else {
            header::detect(&own, &below, self.kinds)
        };
        self.comment(plan, record.start);
        if !verdict.header && self.names_in_comment(plan, record.start) {
            return;
        }
        if verdict.guessed && !below.is_empty() {
            let which = if verdict.header { "is read as the header" } else { "is read as data, not as a header" };
            plan.warnings.push(format!("the first record {which}, but the file doesn't show which is right"));
        }
        self.skip(plan, &record, at);
        plan.dialect.header = verdict.header;
        plan.find(Item::Header, json!(verdict.header), verdict.why);
        if verdict.header {
            self.name(plan, &record, &strings(&own));
        } else {
            plan.positional = Some((1..=cut.width).map(|nth| format!("column_{nth}")).collect());
        }
    }

    /// The number of records above the header that are titles, notes or blank, padded to the width of the table: at most a
    /// third of their cells has a value, while all of the header's do, and most of the records below have more.
    fn padded_titles(&mut self) -> usize {
        let cut = self.cut;
        let records = &cut.records[cut.first..];
        let title_cells_max = cut.width / 3;
        let filled = |cells: &[Vec<u8>]| cells.iter().filter(|cell| !cell.is_empty()).count();
        let is_title =
            |record: &&CutRecord| record.width == cut.width && filled(&self.cells(record)) <= title_cells_max;
        let titles = records.iter().take(TITLES_MAX).take_while(is_title).count();
        if titles == 0 {
            return 0;
        }
        let of_width = records[titles..].iter().filter(|record| record.width == cut.width);
        let mut cells = of_width.take(BELOW_MAX + 1).map(|record| self.cells(record));
        let Some(header) = cells.next().filter(|header| filled(header) == cut.width) else { return 0 };
        let below: Vec<_> = cells.collect();
        let sparse = below.iter().filter(|cells| filled(cells) <= title_cells_max).count();
        let is_table = !below.is_empty() && sparse * 10 <= below.len();
        if is_table && header::detect(&header, &below, self.kinds).header { titles } else { 0 }
    }

    /// A record of names right before the data, with one cell more or less.
    fn header_of_other_width(&mut self) -> Option<usize> {
        let at = self.cut.first.checked_sub(1)?;
        let record = self.cut.records[at];
        if record.width < 2 || record.width.abs_diff(self.cut.width) != 1 {
            return None;
        }
        let cells = self.cells(&record);
        let text = cells.iter().filter(|c| !c.is_empty()).all(|c| self.kinds.of(c) == super::kind::CellKind::Text);
        text.then_some(at)
    }

    fn comment(&self, plan: &mut DialectPlan, header: usize) {
        let Some(mark) = self.cut.dialect.comment else { return };
        let below = self.comments.iter().filter(|line| line.start > header).count();
        let above = self.comments.len() - below;
        let why =
            format!("lines that start with it and have no cells: {above} before the first record, {below} after it");
        plan.find(Item::Comment, json!(char::from(mark).to_string()), why);
    }

    /// Skips lines above the first record that are not comments.
    fn skip(&self, plan: &mut DialectPlan, record: &CutRecord, at: usize) {
        if at == 0 {
            return;
        }
        let lines = self.lines_before(record.start);
        plan.dialect.skip_rows = lines;
        let why = format!(
            "{} before the first record with {}{}",
            counted(lines, "line", "lines"),
            counted(self.cut.width as u64, "cell", "cells"),
            if at > self.cut.first { " that have values" } else { "" }
        );
        plan.find(Item::SkipRows, json!(lines), why);
        if self.comments.iter().all(|line| line.start < record.start) {
            plan.dialect.comment = None;
            plan.findings.retain(|finding| finding.item != Item::Comment);
        }
    }

    /// Takes names from the last comment before the data, as in `#chrom`, `pos`. Returns whether it has them.
    fn names_in_comment(&mut self, plan: &mut DialectPlan, data: usize) -> bool {
        let top = self.comments.iter().rfind(|line| line.end < data && self.cut.dialect.comment.is_some());
        let Some(line) = top.copied() else { return false };
        if self.cut.width < 2 || width_of(self.text, &line, &self.cut.dialect) != self.cut.width {
            return false;
        }
        let without = Dialect { comment: None, ..self.cut.dialect.clone() };
        let mut names = strings(&cells_of(&self.text[line.start..line.end], &without));
        let why = "the last comment before the data has a name for each column";
        plan.dialect.header = false;
        plan.dialect.skip_rows = self.lines_before(line.end) + 1;
        if let Some(first) = names.first_mut() {
            *first = first.trim_start_matches(char::from(line.mark)).trim().to_owned();
        }
        plan.positional = Some(names);
        plan.find(Item::Header, json!(false), format!("{why}; columns are read by position"));
        plan.find(Item::SkipRows, json!(plan.dialect.skip_rows), "skips up to the line with the names");
        if self.comments.iter().all(|other| other.start <= line.start) {
            plan.dialect.comment = None;
            plan.findings.retain(|finding| finding.item != Item::Comment);
        }
        true
    }

    /// Takes the columns by name, or by position if the names are not usable.
    fn name(&self, plan: &mut DialectPlan, record: &CutRecord, names: &[String]) {
        let width = self.cut.width;
        let mut folded: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        folded.sort_unstable();
        let duplicate = folded.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone());
        let mut names = names.to_vec();
        let why = if names.len() == width {
            match duplicate {
                None => return,
                Some(duplicate) if duplicate.is_empty() => "several names are blank".to_owned(),
                Some(duplicate) => format!("the name `{duplicate}` is not unique"),
            }
        } else if names.len() > width {
            names.truncate(width);
            format!("it has more names than the records have cells ({width})")
        } else if self.is_empty_at_end(width) {
            names.push(String::new());
            let why = "every record ends with a delimiter, but the header does not";
            plan.find(Item::TrailingDelimiter, json!(true), why);
            why.to_owned()
        } else {
            names.insert(0, "row".to_owned());
            "the records have one more cell, as in files with unnamed row names".to_owned()
        };
        plan.warnings.push(format!("columns are read by position, since the header can't be used: {why}"));
        plan.dialect.header = false;
        // A last line without terminator counts as a line.
        plan.dialect.skip_rows = self.lines_before(record.next) + u64::from(record.next == record.end);
        plan.positional = Some(names);
        plan.findings.retain(|finding| !matches!(finding.item, Item::Header | Item::SkipRows));
        plan.find(Item::Header, json!(false), format!("there is a header, but {why}; columns are read by position"));
        plan.find(Item::SkipRows, json!(plan.dialect.skip_rows), "skips up to the end of the header");
    }

    fn is_empty_at_end(&self, width: usize) -> bool {
        let of_width = self.cut.records.iter().filter(|record| record.width == width).take(BELOW_MAX);
        of_width.map(|record| self.cells(record)).all(|cells| cells.last().is_none_or(Vec::is_empty))
    }
}
