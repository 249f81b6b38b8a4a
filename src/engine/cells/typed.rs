//! The loop over the cells of a column, and the buffers that it fills.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow::util::bit_util::unset_bit;

use super::fault::{CellFault, FaultKind};
use super::nulls::NullTokens;
use super::text::Cell;
use crate::domain::limits::JSON_DEPTH_MAX;
use crate::domain::pipeline::Dialect;
use crate::engine::read::index::Field;
use crate::engine::read::unescape::unescape;

/// Reads the cells of one type.
pub(super) trait Parser: Send {
    type Value: Copy + Default + Send;

    fn parse(&mut self, cell: Cell<'_>) -> Result<Self::Value, FaultKind>;

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

    /// The cell's text, or `None` for a null.
    #[inline(always)]
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

impl<'a> Cells<'a> {
    fn len(&self) -> usize {
        self.fields.len() / self.width
    }

    /// Gives each cell in order to `take`, which says what is wrong with it; `null` is told of every row that it must
    /// fill with a null.
    #[inline(always)]
    fn each<S>(
        &self,
        sink: &mut S,
        first_row: usize,
        faults: &mut Vec<CellFault>,
        mut take: impl FnMut(&mut S, Cell<'_>) -> Result<(), FaultKind>,
        null: impl Fn(&mut S),
    ) {
        let mut scratch = Vec::new();
        for (row, field) in self.fields[self.position..].iter().step_by(self.width).enumerate() {
            let fault = match self.rules.resolve(self.text, *field, &mut scratch) {
                Some(cell) => match take(sink, cell) {
                    Ok(()) => continue,
                    Err(fault) => Some(fault),
                },
                None if self.rules.nullable => None,
                None => Some(FaultKind::Null),
            };
            null(sink);
            faults.extend(fault.map(|kind| CellFault::new(first_row + row, kind)));
        }
    }
}

/// A column under construction, whatever its type.
pub(super) trait Typed: Send {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>);
    fn append_nulls(&mut self, count: usize);
    fn len(&self) -> usize;
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
}

impl<P: Parser> Fixed<P> {
    pub fn new(parser: P) -> Self {
        Self { parser, values: Vec::new(), nulls: NullRows::default() }
    }
}

impl<P: Parser> Typed for Fixed<P> {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        let first_row = self.values.len();
        self.values.reserve(cells.len());
        let take = |column: &mut Self, cell: Cell<'_>| {
            let value = column.parser.parse(cell)?;
            column.values.push(value);
            Ok(())
        };
        let null = |column: &mut Self| column.append_nulls(1);
        cells.each(self, first_row, faults, take, null);
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

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.values.len());
        self.parser.array(std::mem::take(&mut self.values), nulls)
    }
}

/// A column of text, as it stands or checked to be JSON.
pub(super) struct Text {
    json: bool,
    data: Vec<u8>,
    /// The end of each value in `data`.
    ends: Vec<i32>,
    nulls: NullRows,
}

impl Text {
    pub fn new(json: bool) -> Self {
        Self { json, data: Vec::new(), ends: Vec::new(), nulls: NullRows::default() }
    }

    #[inline(always)]
    fn push(&mut self, cell: Cell<'_>) {
        match cell.text[cell.start..].first_chunk::<16>() {
            // A copy of known size is a register's worth; what is too much is cut again.
            Some(chunk) if cell.len() <= 16 => {
                let end = self.data.len() + cell.len();
                self.data.extend_from_slice(chunk);
                self.data.truncate(end);
            }
            Some(_) | None => self.data.extend_from_slice(cell.bytes()),
        }
        self.close();
    }

    #[inline(always)]
    fn close(&mut self) {
        debug_assert!(i32::try_from(self.data.len()).is_ok(), "a column of a block fits 32-bit offsets");
        self.ends.push(self.data.len() as i32);
    }
}

impl Typed for Text {
    fn append(&mut self, cells: &Cells<'_>, faults: &mut Vec<CellFault>) {
        let first_row = self.ends.len();
        self.ends.reserve(cells.len());
        let null = |column: &mut Self| column.append_nulls(1);
        if self.json {
            let take = |column: &mut Self, cell: Cell<'_>| {
                check_json(cell.bytes())?;
                column.push(cell);
                Ok(())
            };
            cells.each(self, first_row, faults, take, null);
        } else {
            let take = |column: &mut Self, cell: Cell<'_>| {
                column.push(cell);
                Ok(())
            };
            cells.each(self, first_row, faults, take, null);
        }
    }

    fn append_nulls(&mut self, count: usize) {
        for _ in 0..count {
            self.nulls.push(self.ends.len());
            self.close();
        }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn finish(&mut self) -> ArrayRef {
        let nulls = self.nulls.finish(self.ends.len());
        let ends = std::mem::take(&mut self.ends);
        let mut offsets = Vec::with_capacity(ends.len() + 1);
        offsets.push(0);
        offsets.extend(ends);
        let data = Buffer::from_vec(std::mem::take(&mut self.data));
        let array = StringArray::try_new(OffsetBuffer::new(offsets.into()), data, nulls);
        // Records with invalid UTF-8 were set aside by the reader.
        Arc::new(array.expect("records are valid UTF-8"))
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
