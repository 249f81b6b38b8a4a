//! The loop over the cells of a column, and the buffers that it fills.

use std::ops::Range;
use std::slice::ChunksExact;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::{BooleanBuffer, MutableBuffer, NullBuffer};
use arrow::util::bit_util::unset_bit;

use super::fault::{CellFault, FaultKind};
use super::nulls::NullTokens;
use super::text::Cell;
use super::utf8::{push_text, strings};
use super::word::{Digits, Portable};
use crate::domain::limits::JSON_DEPTH_MAX;
use crate::domain::pipeline::Dialect;
use crate::engine::avx2::Avx2;
use crate::engine::read::index::Field;
use crate::engine::read::unescape::unescape;

/// Reads the cells of one type.
pub(super) trait Parser: Send {
    type Value: Copy + Default + Send;

    fn parse(&mut self, cell: Cell<'_>) -> Result<Self::Value, FaultKind>;

    /// What [`Self::parse`] gives for the usual cell, in a few steps and without a call; `None` says nothing.
    #[inline(always)]
    fn quick(&mut self, _digits: impl Digits, cell: Cell<'_>) -> Option<Self::Value> {
        self.parse(cell).ok()
    }

    fn array(&self, values: Vec<Self::Value>, nulls: Option<NullBuffer>) -> ArrayRef;
}

pub(super) fn primitive<T: Array + 'static>(array: T) -> ArrayRef {
    Arc::new(array)
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

    /// Bit `min(len, 63)` is set if a plain cell of that length may be a null, or needs another look anyhow.
    fn null_lengths(&self) -> u64 {
        if self.dialect.trim { u64::MAX } else { self.nulls.lengths() }
    }

    /// The cell's text, or `None` for a null.
    fn resolve<'a>(&self, text: &'a [u8], field: Field, scratch: &'a mut Vec<u8>) -> Option<Cell<'a>> {
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
    pub fields: &'a [Field],
    pub width: usize,
    /// Less than `width`.
    pub position: usize,
    pub rules: &'a CellRules,
}

impl Cells<'_> {
    fn len(&self) -> usize {
        self.fields.len() / self.width
    }

    /// The cells from row `from` on, up to the first that is not plain or may be a null.
    #[inline(always)]
    fn plain(&self, from: usize) -> PlainCells<'_> {
        PlainCells {
            text: self.text,
            records: self.fields[from * self.width..].chunks_exact(self.width),
            position: self.position,
            null_lengths: self.rules.null_lengths(),
        }
    }

    /// Any cell: its text, or `None` for a null.
    fn cell<'b>(&'b self, row: usize, scratch: &'b mut Vec<u8>) -> Option<Cell<'b>> {
        self.rules.resolve(self.text, self.fields[row * self.width + self.position], scratch)
    }

    /// What is wrong with a null.
    fn null_fault(&self) -> Option<FaultKind> {
        if self.rules.nullable { None } else { Some(FaultKind::Null) }
    }
}

/// Cells that need no second look. Nothing else is in the loop over them, so that what it works with stays in registers.
struct PlainCells<'a> {
    text: &'a [u8],
    records: ChunksExact<'a, Field>,
    position: usize,
    null_lengths: u64,
}

impl<'a> Iterator for PlainCells<'a> {
    type Item = Cell<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Cell<'a>> {
        let Range { start, end } = self.records.next()?[self.position].plain()?;
        let may_be_null = self.null_lengths >> (end.wrapping_sub(start)).min(63) & 1 != 0;
        (!may_be_null).then_some(Cell { text: self.text, start, end })
    }
}

/// A column under construction, whatever its type.
pub(super) trait Typed: Send {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>);
    fn append_nulls(&mut self, count: usize);
    fn len(&self) -> usize;
    /// Makes room for `blocks` times what was appended since the last [`Typed::finish`].
    fn reserve(&mut self, blocks: f64);
    fn finish(&mut self) -> ArrayRef;
}

/// The rows that are null, kept as a list: a column has few, or is quick anyway.
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

/// A column of values of one size.
pub(super) struct Fixed<P: Parser> {
    parser: P,
    values: Vec<P::Value>,
    nulls: NullRows,
    avx2: Option<Avx2>,
}

impl<P: Parser> Fixed<P> {
    pub fn new(parser: P) -> Self {
        Self { parser, values: Vec::new(), nulls: NullRows::default(), avx2: Avx2::detect() }
    }

    /// [`Typed::append`], with digits read by `digits`.
    #[inline(always)]
    pub fn append_by(&mut self, digits: impl Digits, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        let Self { parser, values, nulls, .. } = self;
        let (first_row, rows) = (values.len(), cells.len());
        values.resize(first_row + rows, P::Value::default());
        let out = &mut values[first_row..];
        let mut scratch = Vec::new();
        let mut row = 0;
        loop {
            for cell in cells.plain(row) {
                let (Some(value), Some(out)) = (parser.quick(digits, cell), out.get_mut(row)) else { break };
                *out = value;
                row += 1;
            }
            if row == rows {
                return;
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

impl<P: Parser> Typed for Fixed<P> {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        match self.avx2 {
            #[cfg(target_arch = "x86_64")]
            Some(avx2) => avx2.append(self, cells, faults),
            _ => self.append_by(Portable, cells, faults),
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
        self.values.reserve_exact(share(self.values.len(), blocks));
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.values.len());
        self.parser.array(std::mem::take(&mut self.values), nulls)
    }
}

/// `blocks` times what one block gave.
fn share(of_one: usize, blocks: f64) -> usize {
    (of_one as f64 * blocks) as usize
}

/// A column of text, as it stands or checked to be JSON.
pub(super) struct Text {
    json: bool,
    data: Vec<u8>,
    /// Zero, and the end of each value in `data`.
    offsets: Vec<i32>,
    nulls: NullRows,
}

impl Text {
    pub fn new(json: bool) -> Self {
        Self { json, data: Vec::new(), offsets: vec![0], nulls: NullRows::default() }
    }
}

/// Appends the cell; gives the end of `data`.
#[inline(always)]
fn push_cell(data: &mut Vec<u8>, cell: Cell<'_>) -> i32 {
    push_text(data, cell.text, cell.start, cell.end);
    debug_assert!(i32::try_from(data.len()).is_ok(), "a column of a chunk fits 32-bit offsets");
    data.len() as i32
}

impl Typed for Text {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        let first_row = self.len();
        let Self { json, data, offsets, nulls } = self;
        let (json, rows) = (*json, cells.len());
        offsets.reserve(rows);
        let mut scratch = Vec::new();
        let mut row = 0;
        loop {
            for cell in cells.plain(row) {
                if json && check_json(cell.bytes()).is_err() {
                    break;
                }
                offsets.push(push_cell(data, cell));
                row += 1;
            }
            if row == rows {
                return;
            }
            let fault = match cells.cell(row, &mut scratch) {
                Some(cell) => match if json { check_json(cell.bytes()) } else { Ok(()) } {
                    Ok(()) => {
                        offsets.push(push_cell(data, cell));
                        row += 1;
                        continue;
                    }
                    Err(fault) => Some(fault),
                },
                None => cells.null_fault(),
            };
            nulls.push(first_row + row);
            offsets.push(data.len() as i32);
            faults.extend(fault.map(|kind| CellFault::new(first_row + row, kind)));
            row += 1;
        }
    }

    fn append_nulls(&mut self, count: usize) {
        for _ in 0..count {
            self.nulls.push(self.len());
            self.offsets.push(self.data.len() as i32);
        }
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn reserve(&mut self, blocks: f64) {
        self.offsets.reserve_exact(share(self.len(), blocks));
        self.data.reserve_exact(share(self.data.len(), blocks));
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.len());
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let data = std::mem::take(&mut self.data);
        Arc::new(strings(offsets, data, nulls))
    }
}

pub(super) fn check_json(text: &[u8]) -> Result<(), FaultKind> {
    // Counting brackets is cheap, and only many of them can nest deep.
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
