//! The loop over the cells of a column, and the buffers it fills.

use std::ops::Range;
use std::slice::ChunksExact;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow::util::bit_util::unset_bit;

use super::fault::{CellFault, FaultKind};
use super::text::Cell;
use super::utf8::CellTexts;
use super::word::{CellQuad, Digits, PortableDigits, QUAD_CELL_BYTES_MAX};
use crate::domain::limits::JSON_DEPTH_MAX;
use crate::domain::pipeline::Dialect;
use crate::engine::read::record_index::FieldRange;
use crate::engine::read::record_index::unescape;
use crate::engine::simd::Simd;

/// Parses the cells of one type.
pub(super) trait Parser: Send {
    type Value: Copy + Default + Send;

    fn parse(&mut self, cell: Cell<'_>) -> Result<Self::Value, FaultKind>;

    /// The result of [`Self::parse`] for common cells, in a few steps without a call; `None` is undecided.
    #[inline(always)]
    fn quick(&mut self, _digits: impl Digits, cell: Cell<'_>) -> Option<Self::Value> {
        self.parse(cell).ok()
    }

    /// The results of [`Self::quick`] for four cells at a time, up to the first undecided quad; returns the number of
    /// quads.
    #[inline(always)]
    fn parse_quads_fast<'a>(
        &mut self,
        _digits: impl Digits,
        _cells: impl Iterator<Item = CellQuad<'a>>,
        _out: &mut [[Self::Value; 4]],
    ) -> usize {
        0
    }

    fn array(&self, values: Vec<Self::Value>, nulls: Option<NullBuffer>) -> ArrayRef;
}

pub(super) fn primitive<T: Array + 'static>(array: T) -> ArrayRef {
    Arc::new(array)
}

/// The declared null tokens, with a fast test by length, since most cells are not null.
#[derive(Debug, Clone)]
struct NullTokens {
    /// Bit `min(len, 63)` is set if a token has that length.
    lengths: u64,
    tokens: Vec<Box<[u8]>>,
}

impl NullTokens {
    fn new(tokens: &[String]) -> Self {
        let lengths = tokens.iter().fold(0, |bits, token| bits | 1 << token.len().min(63));
        Self { lengths, tokens: tokens.iter().map(|t| t.as_bytes().into()).collect() }
    }

    /// Bit `min(len, 63)` is set if a token has that length.
    fn lengths(&self) -> u64 {
        self.lengths
    }

    #[inline(always)]
    fn contains(&self, cell: &[u8]) -> bool {
        // The empty token needs no comparison.
        self.lengths >> cell.len().min(63) & 1 != 0 && (cell.is_empty() || self.is_token(cell))
    }

    #[inline(never)]
    fn is_token(&self, cell: &[u8]) -> bool {
        self.tokens.iter().any(|token| **token == *cell)
    }
}

/// Which cells are null, and how quoted content is read.
pub(super) struct CellRules {
    nulls: NullTokens,
    nullable: bool,
    dialect: Dialect,
}

impl CellRules {
    pub fn new(dialect: &Dialect, nullable: bool) -> Self {
        Self { nulls: NullTokens::new(&dialect.null_values), nullable, dialect: dialect.clone() }
    }

    /// Bit `min(len, 63)` is set if an unquoted cell of that length may be null or needs trimming.
    fn null_lengths(&self) -> u64 {
        if self.dialect.trim { u64::MAX } else { self.nulls.lengths() }
    }

    /// Bit `len` is set if an unquoted cell of that length can be read four at a time and can't be null.
    fn short_lengths(&self) -> u64 {
        !self.null_lengths() & ((2 << QUAD_CELL_BYTES_MAX) - 2)
    }

    /// The cell's text, or `None` for a null.
    fn resolve<'a>(&self, text: &'a [u8], field: FieldRange, scratch: &'a mut Vec<u8>) -> Option<Cell<'a>> {
        if field.is_absent() {
            return None;
        }
        let range = field.range();
        let mut cell = Cell { text, start: range.start, end: range.end };
        if field.is_escaped() {
            scratch.clear();
            unescape(cell.bytes(), &self.dialect, scratch);
            cell = Cell::new(scratch);
        }
        let quoted = field.is_quoted();
        if self.dialect.trim && !quoted {
            cell = cell.trimmed();
        }
        if (!quoted || self.dialect.quoted_nulls) && self.nulls.contains(cell.bytes()) { None } else { Some(cell) }
    }
}

/// The cells of one column in one block.
pub(super) struct Cells<'a> {
    pub text: &'a [u8],
    pub fields: &'a [FieldRange],
    pub width: usize,
    /// Less than `width`.
    pub position: usize,
    pub rules: &'a CellRules,
}

impl Cells<'_> {
    fn len(&self) -> usize {
        self.fields.len() / self.width
    }

    /// The cells of these rows, up to the first that is quoted or may be null.
    #[inline(always)]
    fn plain(&self, rows: Range<usize>) -> PlainCells<'_> {
        PlainCells {
            text: self.text,
            records: self.fields[rows.start * self.width..rows.end * self.width].chunks_exact(self.width),
            position: self.position,
            null_lengths: self.rules.null_lengths(),
        }
    }

    /// Like [`Self::plain`], including quoted cells without escapes.
    #[inline(always)]
    fn texts(&self, rows: Range<usize>) -> TextCells<'_> {
        TextCells { plain: self.plain(rows), quoted: !self.rules.dialect.quoted_nulls }
    }

    /// The cells from row `from`, four at a time, up to the first quad with a cell that is quoted, too long, or may be
    /// null.
    #[inline(always)]
    fn quads(&self, from: usize) -> CellQuads<'_> {
        CellQuads {
            text: self.text,
            records: self.fields[from * self.width..].chunks_exact(self.width),
            position: self.position,
            lengths: self.rules.short_lengths(),
        }
    }

    /// Any cell: its text, or `None` for a null.
    fn cell<'b>(&'b self, row: usize, scratch: &'b mut Vec<u8>) -> Option<Cell<'b>> {
        self.rules.resolve(self.text, self.fields[row * self.width + self.position], scratch)
    }

    /// The fault of a null, if the column is not nullable.
    fn null_fault(&self) -> Option<FaultKind> {
        if self.rules.nullable { None } else { Some(FaultKind::Null) }
    }
}

/// Cells that need no further checks. The loop contains nothing else, so that its state stays in registers.
struct PlainCells<'a> {
    text: &'a [u8],
    records: ChunksExact<'a, FieldRange>,
    position: usize,
    null_lengths: u64,
}

impl<'a> Iterator for PlainCells<'a> {
    type Item = Cell<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Cell<'a>> {
        let range = self.records.next()?[self.position].plain()?;
        self.unless_null(range)
    }
}

impl<'a> PlainCells<'a> {
    /// The cell; `None` if it has the length of a null token.
    #[inline(always)]
    fn unless_null(&self, Range { start, end }: Range<usize>) -> Option<Cell<'a>> {
        let may_be_null = self.null_lengths >> (end.wrapping_sub(start)).min(63) & 1 != 0;
        (!may_be_null).then_some(Cell { text: self.text, start, end })
    }
}

/// Like [`PlainCells`], including quoted cells without escapes.
struct TextCells<'a> {
    plain: PlainCells<'a>,
    /// Whether quoted cells are never null.
    quoted: bool,
}

impl<'a> Iterator for TextCells<'a> {
    type Item = Cell<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Cell<'a>> {
        let field = self.plain.records.next()?[self.plain.position];
        match field.plain() {
            Some(range) => self.plain.unless_null(range),
            None if self.quoted => {
                let Range { start, end } = field.quoted()?;
                Some(Cell { text: self.plain.text, start, end })
            }
            None => None,
        }
    }
}

/// Like [`PlainCells`], four at a time.
struct CellQuads<'a> {
    text: &'a [u8],
    records: ChunksExact<'a, FieldRange>,
    position: usize,
    /// Bit `len` is set if cells of that length are included.
    lengths: u64,
}

impl CellQuads<'_> {
    /// The next cell's end and length.
    #[inline(always)]
    fn short(&mut self) -> Option<(usize, usize)> {
        let Range { start, end } = self.records.next()?[self.position].plain()?;
        let length = end - start;
        (length < 64 && self.lengths >> length & 1 != 0).then_some((end, length))
    }
}

impl<'a> Iterator for CellQuads<'a> {
    type Item = CellQuad<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<CellQuad<'a>> {
        let [a, b, c, d] = [self.short()?, self.short()?, self.short()?, self.short()?];
        Some(CellQuad { text: self.text, ends: [a.0, b.0, c.0, d.0], lengths: [a.1, b.1, c.1, d.1] })
    }
}

/// A column under construction, of any type.
pub(super) trait ColumnValues: Send {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>);
    fn append_nulls(&mut self, count: usize);
    fn len(&self) -> usize;
    /// Reserves `blocks` times the size appended since the last [`ColumnValues::finish`].
    fn reserve(&mut self, blocks: f64);
    fn finish(&mut self) -> ArrayRef;
    /// Reuses the memory of an array returned by [`ColumnValues::finish`], if nothing else refers to it.
    fn recycle(&mut self, _array: ArrayRef) {}
}

/// Null rows as a list: most columns have few.
#[derive(Default)]
struct NullRows(Vec<u32>);

impl NullRows {
    fn push(&mut self, row: usize) {
        debug_assert!(u32::try_from(row).is_ok());
        self.0.push(row as u32);
    }

    fn finish(&mut self, len: usize) -> Option<NullBuffer> {
        if self.0.is_empty() {
            return None;
        }
        let mut bits = MutableBuffer::new(len.div_ceil(8)).with_bitset(len.div_ceil(8), true);
        for row in std::mem::take(&mut self.0) {
            unset_bit(&mut bits, row as usize);
        }
        Some(NullBuffer::new(BooleanBuffer::new(bits.into(), 0, len)))
    }
}

/// Cells read one by one after four that could not be read together, and the maximum after repeated failures.
const SINGLE_CELLS_MIN: usize = 4;
const SINGLE_CELLS_MAX: usize = 256;

/// A column of fixed-size values.
pub(super) struct FixedColumn<P: Parser> {
    parser: P,
    values: Vec<P::Value>,
    nulls: NullRows,
    simd: Option<Simd>,
}

impl<P: Parser> FixedColumn<P> {
    pub fn new(parser: P) -> Self {
        Self { parser, values: Vec::new(), nulls: NullRows::default(), simd: Simd::detect() }
    }

    /// [`ColumnValues::append`] with the given implementation of `digits`.
    #[inline(always)]
    pub fn append_by(&mut self, digits: impl Digits, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        let Self { parser, values, nulls, .. } = self;
        let (first_row, rows) = (values.len(), cells.len());
        values.resize(first_row + rows, P::Value::default());
        let out = &mut values[first_row..];
        let mut scratch = Vec::new();
        let (mut row, mut alone) = (0, SINGLE_CELLS_MIN);
        while row < rows {
            let quads = parser.parse_quads_fast(digits, cells.quads(row), out[row..].as_chunks_mut().0);
            row += 4 * quads;
            alone = if quads > 0 { SINGLE_CELLS_MIN } else { (alone * 2).min(SINGLE_CELLS_MAX) };
            let until = rows.min(row + alone);
            while row < until {
                for cell in cells.plain(row..until) {
                    let (Some(value), Some(out)) = (parser.quick(digits, cell), out.get_mut(row)) else { break };
                    *out = value;
                    row += 1;
                }
                if row == until {
                    break;
                }
                let fault = match cells.cell(row, &mut scratch).map(|cell| parser.parse(cell)) {
                    Some(Ok(value)) => {
                        out[row] = value;
                        row += 1;
                        continue;
                    }
                    Some(Err(fault)) => Some(fault),
                    None => cells.null_fault(),
                };
                nulls.push(first_row + row);
                faults.extend(fault.map(|kind| CellFault::new(first_row + row, kind)));
                row += 1;
            }
        }
    }
}

impl<P: Parser> ColumnValues for FixedColumn<P> {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        match self.simd {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Some(simd) => simd.append(self, cells, faults),
            _ => self.append_by(PortableDigits, cells, faults),
        }
    }

    fn append_nulls(&mut self, count: usize) {
        for _ in 0..count {
            self.nulls.push(self.values.len());
            self.values.push(P::Value::default());
        }
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn reserve(&mut self, blocks: f64) {
        self.values.reserve_exact(scaled(self.values.len(), blocks));
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.values.len());
        self.parser.array(std::mem::take(&mut self.values), nulls)
    }
}

/// `blocks` times the size of one block.
fn scaled(of_one: usize, blocks: f64) -> usize {
    (of_one as f64 * blocks) as usize
}

/// A column of text, or of text checked to be JSON.
pub(super) struct TextColumn {
    json: bool,
    texts: CellTexts,
    nulls: NullRows,
}

impl TextColumn {
    pub fn new(json: bool) -> Self {
        Self { json, texts: CellTexts::new(), nulls: NullRows::default() }
    }
}

impl ColumnValues for TextColumn {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        let first_row = self.len();
        let Self { json, texts, nulls } = self;
        let (json, rows) = (*json, cells.len());
        texts.reserve(rows);
        let mut scratch = Vec::new();
        let mut row = 0;
        loop {
            for cell in cells.texts(row..rows) {
                if json && check_json(cell.bytes()).is_err() {
                    break;
                }
                texts.push(cell);
                row += 1;
            }
            if row == rows {
                return;
            }
            let fault = match cells.cell(row, &mut scratch) {
                Some(cell) => match if json { check_json(cell.bytes()) } else { Ok(()) } {
                    Ok(()) => {
                        texts.push(cell);
                        row += 1;
                        continue;
                    }
                    Err(fault) => Some(fault),
                },
                None => cells.null_fault(),
            };
            nulls.push(first_row + row);
            texts.push_null();
            faults.extend(fault.map(|kind| CellFault::new(first_row + row, kind)));
            row += 1;
        }
    }

    fn append_nulls(&mut self, count: usize) {
        for _ in 0..count {
            self.nulls.push(self.len());
            self.texts.push_null();
        }
    }

    fn len(&self) -> usize {
        self.texts.len()
    }

    fn reserve(&mut self, blocks: f64) {
        self.texts.reserve_exact(scaled(self.len(), blocks), scaled(self.texts.bytes(), blocks));
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.len());
        Arc::new(self.texts.take(nulls))
    }

    fn recycle(&mut self, array: ArrayRef) {
        let Some(texts) = array.as_string_opt::<i32>().cloned() else { return };
        drop(array);
        self.texts.recycle(texts);
    }
}

pub(super) fn check_json(text: &[u8]) -> Result<(), FaultKind> {
    // Counting brackets is cheap, and only many of them can nest deeply.
    if memchr::memchr2_iter(b'[', b'{', text).nth(JSON_DEPTH_MAX).is_some() && nests_too_deep(text) {
        return Err(FaultKind::JsonDepth);
    }
    serde_json::from_slice::<serde::de::IgnoredAny>(text).map(|_| ()).map_err(|_| FaultKind::Syntax)
}

fn nests_too_deep(text: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            return true;
        }
    }
    false
}
