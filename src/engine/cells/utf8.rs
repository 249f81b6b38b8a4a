//! Text columns made without looking for invalid UTF-8 once more.
//!
//! Invariant: what the reader gives as good records is valid UTF-8, and a cell is cut from its record at whole
//! delimiters, quotes and white space, so that cells one after the other are valid too.

use arrow::array::{Array, StringArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::text::Cell;

/// Appends `text[start..end]`, which is short more often than not.
#[inline(always)]
fn push_text(data: &mut Vec<u8>, text: &[u8], start: usize, end: usize) {
    // A copy of known size is a few registers' worth; what is too much is cut again.
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

/// Texts that are gathered into memory that has room for them, and for as much again as is copied at a time.
struct Gathering {
    bytes: Vec<u8>,
    /// Of all texts.
    capacity: usize,
}

/// Longest texts that are copied as if they were all so long: by a few registers, and without a branch by their length.
const WIDTHS: [usize; 3] = [16, 64, 128];

impl Gathering {
    fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes + WIDTHS[2]), capacity: bytes }
    }

    /// Adds the texts at `rows`, of which none is longer than `longest`; `ends` are theirs in what is gathered.
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

    /// Appends texts of at most `WIDTH` bytes, by their starts and where each ends then.
    fn copy<'a, const WIDTH: usize>(&mut self, text: &[u8], places: impl Iterator<Item = (usize, &'a i32)>) {
        let mut at = self.bytes.len();
        for (start, end) in places {
            let end = *end as usize;
            match text[start..].first_chunk::<WIDTH>() {
                Some(chunk) => {
                    assert!(at <= end && end - at <= WIDTH && end <= self.capacity, "texts are as long as they were");
                    // SAFETY: `at` is at most `capacity`, behind which the memory of `bytes` has room for the widest
                    // (`with_capacity`; a vector never gives room away); `chunk` lies elsewhere, since `bytes` is ours.
                    unsafe { self.bytes.as_mut_ptr().add(at).cast::<[u8; WIDTH]>().write_unaligned(*chunk) };
                }
                None => {
                    let last = &text[start..start + (end - at)];
                    // SAFETY: what comes before `at` is written.
                    unsafe { self.bytes.set_len(at) };
                    self.bytes.extend_from_slice(last);
                }
            }
            at = end;
        }
        // SAFETY: all before `at` is written: each text is no wider than what was, up to where the next begins.
        unsafe { self.bytes.set_len(at) };
    }
}

/// The texts of one part of `columns`' rows, on their way.
struct PartTexts<'a> {
    rows: &'a [u32],
    /// One more than there are rows, for each column: where texts begin and end.
    offsets: Vec<i32>,
    /// The longest of each column.
    longest: Vec<i32>,
    /// Of all texts.
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

    /// Where the texts of a column end.
    fn ends(&self, column: usize) -> &[i32] {
        &self.offsets[column * (self.rows.len() + 1)..][1..=self.rows.len()]
    }

    /// The columns, of which `data` is all text.
    fn finish(self, columns: &[&StringArray], data: Vec<u8>) -> Vec<StringArray> {
        assert_eq!(data.len() as i64, self.bytes, "texts are as long as they were");
        let (data, offsets, rows) = (Buffer::from_vec(data), ScalarBuffer::from(self.offsets), self.rows);
        let finished = |(at, texts): (usize, &&StringArray)| {
            let nulls = texts.nulls().map(|nulls| {
                NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |at| nulls.is_valid(rows[at] as usize)))
            });
            let offsets = offsets.slice(at * (rows.len() + 1), rows.len() + 1);
            // SAFETY: each is the one before and a length, which is not negative where offsets ascend, as those of `texts`
            // do; the last of all, which an `i32` can hold, is how many bytes `data` has: values of such columns.
            unsafe { strings(offsets, data.clone(), nulls) }
        };
        columns.iter().enumerate().map(finished).collect()
    }
}

/// For each of `parts` the texts at its rows, which are there once, of each of `columns`. Those of a part share their
/// buffers, since there are many such columns and most are short.
pub fn gather_texts(columns: &[&StringArray], parts: &[&[u32]]) -> Vec<Vec<StringArray>> {
    let mut all: Vec<PartTexts<'_>> = parts.iter().map(|rows| PartTexts::new(rows, columns.len())).collect();
    // Column by column, and not part by part: what all parts take from one column is near as long as they do.
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
    let mut gathering: Vec<_> = all.iter().map(|part| Gathering::with_capacity(part.bytes as usize)).collect();
    for (column, texts) in columns.iter().enumerate() {
        for (part, gathering) in all.iter().zip(&mut gathering) {
            gathering.add(texts, part.rows, part.longest[column], part.ends(column));
        }
    }
    all.into_iter().zip(gathering).map(|(part, data)| part.finish(columns, data.bytes)).collect()
}

/// The texts of a column's cells, one after the other, or of nulls, which have none.
pub(super) struct CellTexts {
    data: Vec<u8>,
    /// Zero, and what `data` had after each text: they ascend.
    offsets: Vec<i32>,
}

impl CellTexts {
    pub(super) fn new() -> Self {
        Self { data: Vec::new(), offsets: vec![0] }
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, texts: usize) {
        self.offsets.reserve(texts);
    }

    /// Bytes of all texts.
    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Makes room for so many more of so many bytes, and no more.
    pub(super) fn reserve_exact(&mut self, texts: usize, bytes: usize) {
        self.offsets.reserve_exact(texts);
        self.data.reserve_exact(bytes);
    }

    /// Adds the text of a good record's cell.
    #[inline(always)]
    pub(super) fn push(&mut self, cell: Cell<'_>) {
        push_text(&mut self.data, cell.text, cell.start, cell.end);
        self.offsets.push(self.data.len() as i32);
    }

    pub(super) fn push_null(&mut self) {
        self.offsets.push(self.data.len() as i32);
    }

    /// The column, after which there are no texts.
    ///
    /// # Panics
    /// If it has more than 2 GiB, which no chunk has.
    pub(super) fn take(&mut self, nulls: Option<NullBuffer>) -> StringArray {
        let Self { data, offsets } = std::mem::replace(self, Self::new());
        assert!(i32::try_from(data.len()).is_ok(), "a column of a chunk fits 32-bit offsets");
        // SAFETY: each of `offsets` is what `data` had at some time, the last all of it; it only grew, and to no more than
        // an offset can be. Its texts are cells of good records.
        unsafe { strings(offsets.into(), data.into(), nulls) }
    }

    /// Takes back the memory of a column that [`Self::take`] gave, if nobody else has it and there are no texts yet.
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

/// The values of a column.
///
/// # Safety
/// `offsets` is not empty, its numbers ascend from zero on or above, and none is beyond `data`, which is nothing but the
/// text of cells of good records (unescaped), or values of such columns; each number is where one of these begins or ends.
unsafe fn strings(offsets: ScalarBuffer<i32>, data: Buffer, nulls: Option<NullBuffer>) -> StringArray {
    debug_assert!(offsets.first().is_some_and(|first| *first >= 0), "offsets begin in their text");
    debug_assert!(offsets.last().is_some_and(|last| *last as usize <= data.len()), "offsets end where their text does");
    debug_assert!(offsets.is_sorted(), "offsets ascend");
    debug_assert!(
        std::str::from_utf8(&data).is_ok_and(|text| offsets.iter().all(|at| text.is_char_boundary(*at as usize))),
        "cells are valid UTF-8"
    );
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() + 1 == offsets.len()), "a null bit for each value");
    // SAFETY: offsets ascend and lie within `data`, by the contract above. Values are the texts of cells, by the same: the
    // reader sets records with invalid UTF-8 aside (`read::index`), and where cells are cut out of a record (or escapes out
    // of a cell) whole characters are: delimiters are text, and quotes, escapes and white space are ASCII.
    unsafe { StringArray::new_unchecked(OffsetBuffer::new_unchecked(offsets), data, nulls) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_texts_are_those_of_their_rows() {
        for longest in [0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 300] {
            // As many bytes of `ü` as fit, and a letter of one byte.
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
