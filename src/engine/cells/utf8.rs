//! Builds text columns without validating UTF-8 again.
//!
//! Invariant: good records of the reader are valid UTF-8, and a cell is cut from its record at whole delimiters, quotes
//! and white space, so concatenated cells are valid too.

use arrow::array::{Array, StringArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::text::Cell;

/// Appends `text[start..end]`, which is usually short.
#[inline(always)]
fn push_text(data: &mut Vec<u8>, text: &[u8], start: usize, end: usize) {
    // A copy of constant size takes a few registers; the surplus is truncated.
    let length = end - start;
    if length <= 16
        && let Some(chunk) = text[start..].first_chunk::<16>()
    {
        push_start(data, chunk, length);
    } else if length <= 64
        && let Some(chunk) = text[start..].first_chunk::<64>()
    {
        push_start(data, chunk, length);
    } else {
        data.extend_from_slice(&text[start..end]);
    }
}

/// Appends the first `length` bytes of `chunk`.
#[inline(always)]
fn push_start<const BYTES: usize>(data: &mut Vec<u8>, chunk: &[u8; BYTES], length: usize) {
    let end = data.len() + length;
    data.extend_from_slice(chunk);
    data.truncate(end);
}

/// Texts gathered into memory with room for them and for one more copy of the largest width.
struct GatherBuffer {
    bytes: Vec<u8>,
    /// For all texts.
    capacity: usize,
}

/// Texts up to these lengths are copied with constant size, without a branch on their lengths.
const WIDTHS: [usize; 3] = [16, 64, 128];

impl GatherBuffer {
    fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes + WIDTHS[2]), capacity: bytes }
    }

    /// Adds the texts at `rows`, none longer than `longest`; `ends` are their ends in the gathered bytes.
    fn add(&mut self, texts: &StringArray, rows: &[u32], longest: i32, ends: &[i32]) {
        let (from, text) = (texts.value_offsets(), texts.value_data());
        let places = rows.iter().map(|row| from[*row as usize] as usize).zip(ends);
        match WIDTHS.iter().position(|width| longest as usize <= *width) {
            Some(0) => self.copy::<{ WIDTHS[0] }>(text, places),
            Some(1) => self.copy::<{ WIDTHS[1] }>(text, places),
            Some(_) => self.copy::<{ WIDTHS[2] }>(text, places),
            None => places.for_each(|(start, end)| {
                let length = *end as usize - self.bytes.len();
                push_text(&mut self.bytes, text, start, start + length);
            }),
        }
    }

    /// Appends texts of at most `WIDTH` bytes, given by their starts and their ends in the gathered bytes.
    fn copy<'a, const WIDTH: usize>(&mut self, text: &[u8], places: impl Iterator<Item = (usize, &'a i32)>) {
        let mut at = self.bytes.len();
        for (start, end) in places {
            let end = *end as usize;
            match text[start..].first_chunk::<WIDTH>() {
                Some(chunk) => {
                    assert!(at <= end && end - at <= WIDTH && end <= self.capacity, "texts are as long as they were");
                    // SAFETY: `at` is at most `capacity`, after which the memory of `bytes` has room for the largest
                    // width (`with_capacity`; a vector never shrinks by itself); `chunk` does not overlap, since
                    // `bytes` is owned.
                    unsafe { self.bytes.as_mut_ptr().add(at).cast::<[u8; WIDTH]>().write_unaligned(*chunk) };
                }
                None => {
                    let last = &text[start..start + (end - at)];
                    // SAFETY: everything before `at` is written.
                    unsafe { self.bytes.set_len(at) };
                    self.bytes.extend_from_slice(last);
                }
            }
            at = end;
        }
        // SAFETY: everything before `at` is written: each text is no longer than the copy, up to the start of the next
        // text.
        unsafe { self.bytes.set_len(at) };
    }
}

/// Collects the texts of one part's rows.
struct PartTexts<'a> {
    rows: &'a [u32],
    /// For each column one more than the rows: where texts begin and end.
    offsets: Vec<i32>,
    /// Length of each column's longest text.
    longest: Vec<i32>,
    /// Bytes of all texts.
    bytes: i64,
}

impl<'a> PartTexts<'a> {
    fn new(rows: &'a [u32], columns: usize) -> Self {
        let offsets = Vec::with_capacity((rows.len() + 1) * columns);
        Self { rows, offsets, longest: Vec::with_capacity(columns), bytes: 0 }
    }

    fn measure(&mut self, texts: &StringArray) {
        let (from, mut longest, mut bytes) = (texts.value_offsets(), 0, self.bytes);
        self.offsets.push(bytes as i32);
        self.offsets.extend(self.rows.iter().map(|row| {
            let length = from[*row as usize + 1] - from[*row as usize];
            longest = longest.max(length);
            bytes += i64::from(length);
            bytes as i32
        }));
        self.bytes = bytes;
        self.longest.push(longest);
    }

    /// The ends of a column's texts.
    fn ends(&self, column: usize) -> &[i32] {
        &self.offsets[column * (self.rows.len() + 1)..][1..=self.rows.len()]
    }

    /// The columns; `data` is their text.
    fn finish(self, columns: &[&StringArray], data: Vec<u8>) -> Vec<StringArray> {
        assert_eq!(data.len() as i64, self.bytes, "texts are as long as they were");
        let (data, offsets, rows) = (Buffer::from_vec(data), ScalarBuffer::from(self.offsets), self.rows);
        let finished = |(at, texts): (usize, &&StringArray)| {
            let nulls = texts.nulls().map(|nulls| {
                NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |at| nulls.is_valid(rows[at] as usize)))
            });
            let offsets = offsets.slice(at * (rows.len() + 1), rows.len() + 1);
            // SAFETY: each offset is the previous one plus a length, which is not negative since the offsets of `texts`
            // ascend; the last, which fits an `i32`, is the length of `data`: values of such columns.
            unsafe { strings(offsets, data.clone(), nulls) }
        };
        columns.iter().enumerate().map(finished).collect()
    }
}

/// The texts at the rows of each of `parts`, for each of `columns`; rows are distinct. The columns of a part share
/// their buffers, since there are many and most are short.
pub fn gather_texts(columns: &[&StringArray], parts: &[&[u32]]) -> Vec<Vec<StringArray>> {
    let mut all: Vec<PartTexts<'_>> = parts.iter().map(|rows| PartTexts::new(rows, columns.len())).collect();
    // Column by column rather than part by part, so that one column stays in the cache for all parts.
    for texts in columns {
        all.iter_mut().for_each(|part| part.measure(texts));
    }
    if all.iter().any(|part| i32::try_from(part.bytes).is_err()) && columns.len() > 1 {
        let mut gathered: Vec<_> = parts.iter().map(|_| Vec::with_capacity(columns.len())).collect();
        for texts in columns {
            gathered.iter_mut().zip(gather_texts(&[texts], parts)).for_each(|(all, texts)| all.extend(texts));
        }
        return gathered;
    }
    assert!(
        all.iter().all(|part| i32::try_from(part.bytes).is_ok()),
        "texts that are each there once fit 32-bit offsets"
    );
    let mut gathering: Vec<_> = all.iter().map(|part| GatherBuffer::with_capacity(part.bytes as usize)).collect();
    for (column, texts) in columns.iter().enumerate() {
        for (part, gathering) in all.iter().zip(&mut gathering) {
            gathering.add(texts, part.rows, part.longest[column], part.ends(column));
        }
    }
    all.into_iter().zip(gathering).map(|(part, data)| part.finish(columns, data.bytes)).collect()
}

/// The concatenated texts of a column's cells; nulls are empty.
pub(super) struct CellTexts {
    data: Vec<u8>,
    /// Zero, and the length of `data` after each text, ascending.
    offsets: Vec<i32>,
}

impl CellTexts {
    pub(super) fn new() -> Self {
        Self { data: Vec::new(), offsets: vec![0] }
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Reserves room for more texts.
    pub(super) fn reserve(&mut self, texts: usize) {
        self.offsets.reserve(texts);
    }

    /// Bytes of all texts.
    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Reserves room for exactly that many more texts and bytes.
    pub(super) fn reserve_exact(&mut self, texts: usize, bytes: usize) {
        self.offsets.reserve_exact(texts);
        self.data.reserve_exact(bytes);
    }

    /// Adds the text of a cell of a good record.
    #[inline(always)]
    pub(super) fn push(&mut self, cell: Cell<'_>) {
        push_text(&mut self.data, cell.text, cell.start, cell.end);
        self.offsets.push(self.data.len() as i32);
    }

    pub(super) fn push_null(&mut self) {
        self.offsets.push(self.data.len() as i32);
    }

    /// Takes the column, leaving no texts.
    ///
    /// # Panics
    /// If it has more than 2 GiB, which no chunk has.
    pub(super) fn take(&mut self, nulls: Option<NullBuffer>) -> StringArray {
        let Self { data, offsets } = std::mem::replace(self, Self::new());
        assert!(i32::try_from(data.len()).is_ok(), "a column of a chunk fits 32-bit offsets");
        // SAFETY: each of `offsets` was the length of `data` at some time, the last its current length; it only grew,
        // up to at most the largest offset. Its texts are cells of good records.
        unsafe { strings(offsets.into(), data.into(), nulls) }
    }

    /// Reuses the memory of a column returned by [`Self::take`], if nothing else refers to it and there are no texts
    /// yet.
    pub(super) fn recycle(&mut self, column: StringArray) {
        let (offsets, data, _) = column.into_parts();
        if let (Ok(mut offsets), Ok(mut data)) = (offsets.into_inner().into_inner().into_vec(), data.into_vec())
            && self.data.is_empty()
            && self.len() == 0
        {
            data.clear();
            offsets.clear();
            offsets.push(0);
            (self.data, self.offsets) = (data, offsets);
        }
    }
}

/// A text column.
///
/// # Safety
/// `offsets` is not empty, ascends from at least zero, and does not exceed `data`, which consists of the text of cells
/// of good records (unescaped), or of values of such columns; each offset is the start or end of one of these.
unsafe fn strings(offsets: ScalarBuffer<i32>, data: Buffer, nulls: Option<NullBuffer>) -> StringArray {
    debug_assert!(offsets.first().is_some_and(|first| *first >= 0), "offsets begin in their text");
    debug_assert!(offsets.last().is_some_and(|last| *last as usize <= data.len()), "offsets end where their text does");
    debug_assert!(offsets.is_sorted(), "offsets ascend");
    debug_assert!(
        std::str::from_utf8(&data).is_ok_and(|text| offsets.iter().all(|at| text.is_char_boundary(*at as usize))),
        "cells are valid UTF-8"
    );
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() + 1 == offsets.len()), "a null bit for each value");
    // SAFETY: offsets ascend and are within `data`, by the contract above. Values are the texts of cells, by the same
    // contract: the reader rejects records with invalid UTF-8 (`read::index`), and cells are cut out of a record (and
    // escapes out of a cell) at whole characters: delimiters are text, and quotes, escapes and white space are ASCII.
    unsafe { StringArray::new_unchecked(OffsetBuffer::new_unchecked(offsets), data, nulls) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_texts_match_their_rows() {
        for longest in [0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 300] {
            // As many two-byte `ü`s as fit, and one ASCII letter.
            let text = |row: usize| {
                let bytes = if row == 50 { longest } else { row * 31 % (longest + 1) };
                "x".repeat(bytes % 2) + &"ü".repeat(bytes / 2)
            };
            let texts: StringArray = (0..100).map(|row| (row % 7 != 3).then(|| text(row))).collect();
            for from in [0, 10] {
                let texts = texts.slice(from, 100 - from);
                let rows = 0..texts.len() as u32;
                let parts = [vec![], vec![rows.end - 1], rows.clone().collect(), rows.step_by(3).collect::<Vec<u32>>()];
                let other = StringArray::from_iter_values((0..texts.len()).map(|row| row.to_string()));
                let gathered = gather_texts(&[&texts, &other], &parts.each_ref().map(|rows| &rows[..]));
                assert_eq!(gathered.len(), parts.len());
                for (rows, gathered) in parts.iter().zip(gathered) {
                    let value = |row: &u32| texts.is_valid(*row as usize).then(|| texts.value(*row as usize));
                    let expected: StringArray = rows.iter().map(value).collect();
                    let [gathered, others] = &gathered[..] else { panic!("two columns") };
                    assert_eq!(gathered, &expected, "up to {longest} bytes");
                    let expected = StringArray::from_iter_values(rows.iter().map(|row| row.to_string()));
                    assert_eq!(others, &expected);
                }
            }
        }
    }
}
