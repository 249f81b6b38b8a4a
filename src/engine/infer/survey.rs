//! Surveys a file in one pass: statistics of each column, and records that are not rows.

use std::collections::{BTreeMap, VecDeque};

use super::column_stats::{ColumnSurvey, Probes};
use super::counterexample::{CellValue, shown};
use super::notes::note_value;
use crate::domain::limits::COLUMNS_MAX;
use crate::domain::pipeline::{Dialect, RaggedRows};
use crate::domain::reject::RejectReason;
use crate::engine::cells::cell_text;
use crate::engine::read::chunk::Chunk;
use crate::engine::read::error::ReadError;
use crate::engine::read::head::Head;
use crate::engine::read::index::{BLOCK_BYTES_DEFAULT, Indexer};
use crate::engine::read::record_index::RecordIndex;

/// Bytes of text per chunk; the time limit is checked after each.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows at the end that are kept, to find totals.
const LAST_ROWS: usize = 8;

/// Rejected records with one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedRecords {
    pub count: u64,
    pub first_line: u64,
    pub message: String,
}

/// The result of a pass.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The header as read.
    pub header: Option<Vec<String>>,
    pub width: usize,
    pub columns: Vec<ColumnSurvey>,
    /// Statistics including misfits, of columns whose misfits were removed.
    pub with_misfits: BTreeMap<usize, ColumnSurvey>,
    pub rows: u64,
    pub refused: BTreeMap<RejectReason, RefusedRecords>,
    /// The trailing ragged records: the number of rows before them, and their number.
    ragged_run: (u64, u64),
    /// The footer marks of the last ones, as in [`note_value`].
    ragged_notes: VecDeque<Option<String>>,
    pub quoted_cells: u64,
    /// The last rows, with truncated cells of the examined columns.
    pub last_rows: VecDeque<Vec<String>>,
    /// Rows with characters beyond ASCII.
    pub beyond_ascii: u64,
    /// Bytes of the longest complete record.
    pub longest: u64,
    pub ended: bool,
    /// Decompressed bytes examined; the whole head if it was read to its end.
    pub bytes: u64,
}

impl Survey {
    /// Reads the head with `dialect`, until its end or until `keep_going` returns false.
    pub fn read(head: &Head, dialect: &Dialect, keep_going: &dyn Fn() -> bool) -> Result<Self, ReadError> {
        let mut chunks = head.chunks(dialect, CHUNK_BYTES)?;
        let width = chunks.width();
        let mut survey = Self { header: chunks.header().map(<[String]>::to_vec), width, ..Self::default() };
        survey.columns = (0..width.min(COLUMNS_MAX)).map(|_| ColumnSurvey::new()).collect();
        let mut indexer = Indexer::new(dialect, width, RaggedRows::Reject);
        let (mut index, mut probes) = (RecordIndex::default(), Probes::new());
        loop {
            let Some(chunk) = chunks.next()? else {
                survey.ended = true;
                survey.bytes = head.bytes().len() as u64;
                return Ok(survey);
            };
            for record in &chunk.oversize {
                survey.refuse(record.reason, record.line, &record.message);
            }
            let mut position = 0;
            while indexer.next_block(&chunk, &mut position, BLOCK_BYTES_DEFAULT, &mut index) {
                survey.block(&chunk, &mut index, dialect, &mut probes);
            }
            if !keep_going() {
                survey.bytes = chunk.offset_at(chunk.text.len());
                return Ok(survey);
            }
        }
    }

    fn block(&mut self, chunk: &Chunk, index: &mut RecordIndex, dialect: &Dialect, probes: &mut Probes) {
        let last_row = index.records.last().map(|(start, _)| *start);
        let rows = self.rows + index.records.len() as u64;
        for bad in index.malformed.drain(..) {
            let length = u64::from(bad.end - bad.start);
            self.longest = self.longest.max(length);
            if bad.reason == RejectReason::RaggedRow && last_row.is_none_or(|last| bad.start > last) {
                let before = if self.ragged_run.0 == rows { self.ragged_run.1 } else { 0 };
                self.ragged_run = (rows, before + 1);
                self.ragged_notes.push_back(note_value(&chunk.text[bad.start as usize..bad.end as usize], dialect));
                self.ragged_notes.drain(..self.ragged_notes.len().saturating_sub(LAST_ROWS));
            }
            self.refuse(bad.reason, chunk.line_at(bad.start as usize), &bad.message);
        }
        if index.records.is_empty() {
            return;
        }
        let (rows, width) = (index.rows(), index.width);
        for &(start, end) in &index.records {
            self.longest = self.longest.max(u64::from(end - start));
            self.beyond_ascii += u64::from(!chunk.text[start as usize..end as usize].is_ascii());
        }
        self.quoted_cells += index.fields.iter().filter(|field| field.is_quoted()).count() as u64;
        for (at, column) in self.columns.iter_mut().enumerate().take(width) {
            for row in 0..rows {
                let field = index.field(row, at);
                let text = cell_text(&chunk.text, field, dialect);
                let value = CellValue::new(&text, chunk, index.records[row].0 as usize);
                column.observe(&value, field.is_quoted(), probes);
            }
        }
        for row in rows.saturating_sub(LAST_ROWS)..rows {
            let cells = (0..self.columns.len().min(width)).map(|at| {
                let text = cell_text(&chunk.text, index.field(row, at), dialect);
                shown(text.trim_ascii())
            });
            self.last_rows.push_back(cells.collect());
        }
        self.last_rows.drain(..self.last_rows.len().saturating_sub(LAST_ROWS));
        self.rows += rows as u64;
    }

    /// Visits the cells of some columns again, column by column within a block of rows. `observe` receives the column, the
    /// row number, the value and whether it is quoted. Returns false if `keep_going` returned false before the end.
    pub fn revisit(
        &self,
        head: &Head,
        dialect: &Dialect,
        columns: &[usize],
        keep_going: &dyn Fn() -> bool,
        observe: &mut dyn FnMut(usize, u64, &CellValue<'_>, bool),
    ) -> Result<bool, ReadError> {
        let mut chunks = head.chunks(dialect, CHUNK_BYTES)?;
        let mut indexer = Indexer::new(dialect, self.width, RaggedRows::Reject);
        let (mut index, mut before) = (RecordIndex::default(), 0);
        while let Some(chunk) = chunks.next()? {
            let mut position = 0;
            while indexer.next_block(&chunk, &mut position, BLOCK_BYTES_DEFAULT, &mut index) {
                for (&at, row) in columns.iter().flat_map(|at| (0..index.rows()).map(move |row| (at, row))) {
                    let field = index.field(row, at);
                    let text = cell_text(&chunk.text, field, dialect);
                    let value = CellValue::new(&text, &chunk, index.records[row].0 as usize);
                    observe(at, before + row as u64, &value, field.is_quoted());
                }
                before += index.rows() as u64;
            }
            if !keep_going() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Includes a column's misfits in its statistics again. Returns false if there are none.
    pub fn take_back(&mut self, at: usize) -> bool {
        let whole = self.with_misfits.remove(&at);
        whole.is_some_and(|whole| {
            self.columns[at] = whole;
            true
        })
    }

    fn refuse(&mut self, reason: RejectReason, line: u64, message: &str) {
        let first = || RefusedRecords { count: 0, first_line: line, message: message.to_owned() };
        self.refused.entry(reason).or_insert_with(first).count += 1;
    }

    pub fn count(&self, reason: RejectReason) -> u64 {
        self.refused.get(&reason).map_or(0, |refused| refused.count)
    }

    pub fn refused_rows(&self) -> u64 {
        self.refused.values().map(|refused| refused.count).sum()
    }

    /// The number of ragged records, and what marks the last of them, if all come after the last row.
    pub fn ragged_at_end(&self) -> Option<(u64, impl Iterator<Item = &Option<String>>)> {
        let records = self.count(RejectReason::RaggedRow);
        if records == 0 || !self.ended || self.ragged_run != (self.rows, records) {
            return None;
        }
        let kept = self.ragged_notes.len();
        let from = kept - usize::try_from(records).unwrap_or(usize::MAX).min(kept);
        Some((records, self.ragged_notes.range(from..)))
    }
}
