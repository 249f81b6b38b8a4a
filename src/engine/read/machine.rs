//! The exact record machine: the only definition of where cells and records begin and end.
//!
//! - A quote opens only at the start of a cell. Inside quotes, a doubled quote (no `escape`) or the escape byte and any
//!   byte after it are content; outside quotes the escape byte is text.
//! - After a closing quote only a delimiter, a terminator or the end may follow. Anything else is text up to the next
//!   delimiter or terminator, and the record has a *stray* quote, as has one with a quote in an unquoted cell.
//! - `auto`: LF ends a record, including one CR right before it; other CRs are text. `cr`: CR ends a record, LF is
//!   text.
//! - An empty line is skipped if `blank_lines` is `skip`, otherwise it is a record with an empty cell. A line that
//!   starts with the comment byte is skipped.
//!
//! The machine can suspend anywhere for lack of input and continue later, so records of any length need little memory.

use crate::domain::pipeline::{BlankLines, Dialect, RecordTerminator};

/// The state within a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordState {
    CellStart,
    Unquoted,
    Quoted,
    Comment,
}

/// Receives each cell: the range of its content, and whether it is quoted and has escapes.
pub(super) trait CellSink {
    fn cell(&mut self, start: usize, end: usize, quoted: bool, escaped: bool);
}

/// Ignores cells.
pub(super) struct NoCells;

impl CellSink for NoCells {
    #[inline]
    fn cell(&mut self, _: usize, _: usize, _: bool, _: bool) {}
}

/// The result of [`Machine::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Ended(RecordEnd),
    /// Continue at `at` in `state` with more input; everything before `at` is processed.
    More {
        at: usize,
        state: RecordState,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordEnd {
    /// Without the terminator.
    pub end: usize,
    /// Start of the next record or gap.
    pub next: usize,
    /// Position of the first stray quote, or of the first text after a closing quote.
    pub stray: Option<usize>,
    /// The text ended within quotes.
    pub unclosed: bool,
}

/// The text between records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// A record starts here.
    Record(usize),
    /// A comment starts here and does not end in the text.
    Comment(usize),
    /// Only gaps up to here; the rest is undecided.
    More(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Machine {
    delimiter: Vec<u8>,
    quote: Option<u8>,
    escape: Option<u8>,
    comment: Option<u8>,
    newline: u8,
    crlf: bool,
    skips_blank_lines: bool,
    /// Bytes that end a run of text in an unquoted cell.
    stops: [bool; 256],
}

impl Machine {
    pub fn new(dialect: &Dialect) -> Self {
        let quote = dialect.quote;
        let newline = newline(dialect);
        let mut stops = [false; 256];
        stops[usize::from(newline)] = true;
        for byte in quote.iter().chain(dialect.delimiter.first()) {
            stops[usize::from(*byte)] = true;
        }
        Self {
            delimiter: dialect.delimiter.clone(),
            quote,
            escape: dialect.escape.filter(|escape| quote.is_some_and(|quote| quote != *escape)),
            comment: dialect.comment,
            newline,
            crlf: dialect.record_terminator == RecordTerminator::Auto,
            skips_blank_lines: dialect.blank_lines == BlankLines::Skip,
            stops,
        }
    }

    pub fn quote(&self) -> Option<u8> {
        self.quote
    }

    pub fn newline(&self) -> u8 {
        self.newline
    }

    pub fn crlf(&self) -> bool {
        self.crlf
    }

    /// The delimiter, if the fast scan supports the dialect: doubled quotes, no comments, and a delimiter of one byte
    /// without other meaning.
    pub fn simple_delimiter(&self) -> Option<u8> {
        let [delimiter] = self.delimiter[..] else { return None };
        let distinct = Some(delimiter) != self.quote && !matches!(delimiter, b'\r' | b'\n');
        let plain_quote = !matches!(self.quote, Some(b'\r' | b'\n'));
        (self.escape.is_none() && self.comment.is_none() && distinct && plain_quote).then_some(delimiter)
    }

    /// The same machine, skipping blank lines, as before a header.
    pub fn skipping_blank_lines(&self) -> Self {
        Self { skips_blank_lines: true, ..self.clone() }
    }

    /// Counts the blank lines among the blank lines and comments of `gap`.
    pub fn blank_lines_in(&self, gap: &[u8]) -> u64 {
        let is_blank = |line: &&[u8]| line.is_empty() || (self.crlf && *line == b"\r");
        // Each line of a gap has its terminator, except a comment at the end of the source.
        let lines = gap.split(|byte| *byte == self.newline);
        lines.filter(is_blank).count() as u64 - u64::from(gap.is_empty() || gap.ends_with(&[self.newline]))
    }

    /// Skips comments, and blank lines that are not records, from `at`, the start of a line.
    pub fn skip_gaps(&self, text: &[u8], at: usize, at_end: bool) -> Gap {
        let mut at = at;
        loop {
            let Some(&byte) = text.get(at) else { return Gap::More(at) };
            if byte == self.newline && self.skips_blank_lines {
                at += 1;
            } else if self.crlf && byte == b'\r' && self.skips_blank_lines {
                match text.get(at + 1) {
                    Some(b'\n') => at += 2,
                    None if !at_end => return Gap::More(at),
                    Some(_) | None => return Gap::Record(at),
                }
            } else if Some(byte) == self.comment {
                match memchr::memchr(self.newline, &text[at..]) {
                    Some(length) => at += length + 1,
                    None => return Gap::Comment(at),
                }
            } else {
                return Gap::Record(at);
            }
        }
    }

    /// Runs from `at` in `state` to the end of the record (or comment). `at_end`: no more input follows `text`.
    ///
    /// Cells are reported only whole. Callers that need cells start at the record with `RecordState::CellStart` and treat
    /// `Step::More` as incomplete.
    #[inline]
    pub fn advance<C: CellSink>(
        &self,
        text: &[u8],
        at: usize,
        state: RecordState,
        at_end: bool,
        cells: &mut C,
    ) -> Step {
        let mut run = CellRun { pos: at, cell: at, quoted: false, escaped: false, stray: None };
        let mut state = state;
        loop {
            let transition = match state {
                RecordState::CellStart => self.cell_start(text, &mut run, at_end),
                RecordState::Unquoted => self.unquoted(text, &mut run, at_end, cells),
                RecordState::Quoted => self.quoted(text, &mut run, at_end, cells),
                RecordState::Comment => self.comment(text, &mut run, at_end),
            };
            match transition {
                Transition::To(next) => state = next,
                Transition::More => return Step::More { at: run.pos, state },
                Transition::Ended { end, next, unclosed } => {
                    return Step::Ended(RecordEnd { end, next, stray: run.stray, unclosed });
                }
            }
        }
    }

    #[inline]
    fn cell_start(&self, text: &[u8], run: &mut CellRun, at_end: bool) -> Transition {
        run.escaped = false;
        run.quoted = false;
        match text.get(run.pos) {
            None if !at_end => Transition::More,
            Some(&byte) if Some(byte) == self.quote => {
                run.pos += 1;
                run.cell = run.pos;
                run.quoted = true;
                Transition::To(RecordState::Quoted)
            }
            Some(_) | None => {
                run.cell = run.pos;
                Transition::To(RecordState::Unquoted)
            }
        }
    }

    #[inline]
    fn unquoted<C: CellSink>(&self, text: &[u8], run: &mut CellRun, at_end: bool, cells: &mut C) -> Transition {
        loop {
            while run.pos < text.len() && !self.stops[usize::from(text[run.pos])] {
                run.pos += 1;
            }
            let Some(&byte) = text.get(run.pos) else {
                if !at_end {
                    // The CR may be part of the terminator.
                    run.pos -= usize::from(self.carriage_before(text, run));
                    return Transition::More;
                }
                cells.cell(run.cell, run.pos, run.quoted, run.escaped);
                return Transition::Ended { end: run.pos, next: run.pos, unclosed: false };
            };
            if byte == self.newline {
                let end = run.pos - usize::from(self.carriage_before(text, run));
                cells.cell(run.cell, end, run.quoted, run.escaped);
                return Transition::Ended { end, next: run.pos + 1, unclosed: false };
            }
            if Some(byte) == self.quote {
                run.stray.get_or_insert(run.pos);
                run.pos += 1;
                continue;
            }
            match self.delimiter_at(text, run.pos, at_end) {
                DelimiterMatch::Yes => {
                    cells.cell(run.cell, run.pos, run.quoted, run.escaped);
                    run.pos += self.delimiter.len();
                    return Transition::To(RecordState::CellStart);
                }
                DelimiterMatch::No => run.pos += 1,
                DelimiterMatch::Undecided => return Transition::More,
            }
        }
    }

    #[inline]
    fn carriage_before(&self, text: &[u8], run: &CellRun) -> bool {
        self.crlf && run.pos > run.cell && text[run.pos - 1] == b'\r'
    }

    #[inline]
    fn quoted<C: CellSink>(&self, text: &[u8], run: &mut CellRun, at_end: bool, cells: &mut C) -> Transition {
        let Some(quote) = self.quote else { return Transition::To(RecordState::Unquoted) };
        loop {
            let found = match self.escape {
                None => memchr::memchr(quote, &text[run.pos..]),
                Some(escape) => memchr::memchr2(quote, escape, &text[run.pos..]),
            };
            let Some(found) = found else {
                run.pos = text.len();
                if !at_end {
                    return Transition::More;
                }
                return Self::unclosed(text, run, cells);
            };
            let at = run.pos + found;
            run.pos = at;
            if text[at] != quote {
                if at + 1 >= text.len() {
                    if !at_end {
                        return Transition::More;
                    }
                    return Self::unclosed(text, run, cells);
                }
                run.escaped = true;
                run.pos = at + 2;
                continue;
            }
            match self.after_quote(text, at + 1, at_end) {
                AfterQuote::Undecided => return Transition::More,
                AfterQuote::Doubled => {
                    run.escaped = true;
                    run.pos = at + 2;
                }
                AfterQuote::Delimiter => {
                    cells.cell(run.cell, at, true, run.escaped);
                    run.pos = at + 1 + self.delimiter.len();
                    return Transition::To(RecordState::CellStart);
                }
                AfterQuote::Record { next } => {
                    cells.cell(run.cell, at, true, run.escaped);
                    return Transition::Ended { end: at + 1, next, unclosed: false };
                }
                AfterQuote::Text => {
                    run.stray.get_or_insert(at + 1);
                    run.escaped = true;
                    run.pos = at + 1;
                    return Transition::To(RecordState::Unquoted);
                }
            }
        }
    }

    fn unclosed<C: CellSink>(text: &[u8], run: &CellRun, cells: &mut C) -> Transition {
        cells.cell(run.cell, text.len(), true, run.escaped);
        Transition::Ended { end: text.len(), next: text.len(), unclosed: true }
    }

    #[inline]
    fn after_quote(&self, text: &[u8], at: usize, at_end: bool) -> AfterQuote {
        let Some(&byte) = text.get(at) else {
            return if at_end { AfterQuote::Record { next: at } } else { AfterQuote::Undecided };
        };
        if byte == self.newline {
            return AfterQuote::Record { next: at + 1 };
        }
        if self.escape.is_none() && Some(byte) == self.quote {
            return AfterQuote::Doubled;
        }
        match self.delimiter_at(text, at, at_end) {
            DelimiterMatch::Yes => return AfterQuote::Delimiter,
            DelimiterMatch::Undecided => return AfterQuote::Undecided,
            DelimiterMatch::No => {}
        }
        if self.crlf && byte == b'\r' {
            match text.get(at + 1) {
                Some(b'\n') => return AfterQuote::Record { next: at + 2 },
                None if !at_end => return AfterQuote::Undecided,
                Some(_) | None => {}
            }
        }
        AfterQuote::Text
    }

    #[inline]
    fn delimiter_at(&self, text: &[u8], at: usize, at_end: bool) -> DelimiterMatch {
        if let [delimiter] = self.delimiter[..] {
            return if text[at] == delimiter { DelimiterMatch::Yes } else { DelimiterMatch::No };
        }
        let rest = &text[at..];
        if rest.starts_with(&self.delimiter) {
            DelimiterMatch::Yes
        } else if !at_end && rest.len() < self.delimiter.len() && self.delimiter.starts_with(rest) {
            DelimiterMatch::Undecided
        } else {
            DelimiterMatch::No
        }
    }

    fn comment(&self, text: &[u8], run: &mut CellRun, at_end: bool) -> Transition {
        match memchr::memchr(self.newline, &text[run.pos..]) {
            Some(length) => Transition::Ended { end: run.pos + length, next: run.pos + length + 1, unclosed: false },
            None if at_end => Transition::Ended { end: text.len(), next: text.len(), unclosed: false },
            None => {
                run.pos = text.len();
                Transition::More
            }
        }
    }
}

/// The byte that ends a physical line.
pub(super) fn newline(dialect: &Dialect) -> u8 {
    match dialect.record_terminator {
        RecordTerminator::Auto => b'\n',
        RecordTerminator::Cr => b'\r',
    }
}

struct CellRun {
    pos: usize,
    /// Start of the cell's content.
    cell: usize,
    quoted: bool,
    escaped: bool,
    stray: Option<usize>,
}

enum Transition {
    To(RecordState),
    More,
    Ended { end: usize, next: usize, unclosed: bool },
}

enum AfterQuote {
    Undecided,
    Doubled,
    Delimiter,
    Record { next: usize },
    Text,
}

enum DelimiterMatch {
    Yes,
    No,
    Undecided,
}
