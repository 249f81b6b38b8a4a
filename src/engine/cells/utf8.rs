//! Text columns made without looking for invalid UTF-8 once more.
//!
//! Invariant: what the reader gives as good records is valid UTF-8, and a cell is cut from its record at whole
//! delimiters, quotes and white space, so that cells one after the other are valid too.

use arrow::array::{Array, StringArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};

/// Appends `text[start..end]`, which is short more often than not.
#[inline(always)]
pub(super) fn push_text(data: &mut Vec<u8>, text: &[u8], start: usize, end: usize) {
    match text[start..].first_chunk::<16>() {
        // A copy of known size is a register's worth; what is too much is cut again.
        Some(chunk) if end - start <= 16 => {
            let end = data.len() + (end - start);
            data.extend_from_slice(chunk);
            data.truncate(end);
        }
        Some(_) | None => data.extend_from_slice(&text[start..end]),
    }
}

/// The texts at `rows`, each of which is a row of `texts`, and none there twice.
pub fn gather_texts(texts: &StringArray, rows: &[u32]) -> StringArray {
    let (from, text) = (texts.value_offsets(), texts.value_data());
    let place = |row: &u32| (from[*row as usize] as usize, from[*row as usize + 1] as usize);
    let bytes: usize = rows.iter().map(place).map(|(start, end)| end - start).sum();
    let mut data = Vec::with_capacity(bytes + 16);
    let mut offsets = Vec::with_capacity(rows.len() + 1);
    offsets.push(0);
    for (start, end) in rows.iter().map(place) {
        push_text(&mut data, text, start, end);
        offsets.push(data.len() as i32);
    }
    let nulls = texts
        .nulls()
        .map(|nulls| NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |at| nulls.is_valid(rows[at] as usize))));
    strings(offsets, data, nulls)
}

/// The values of a column: `data` is nothing but the text of cells of good records (unescaped), or values of such
/// columns, and each of `offsets`,
/// which ascend from zero, is where one of these texts begins or ends.
pub(super) fn strings(offsets: Vec<i32>, data: Vec<u8>, nulls: Option<NullBuffer>) -> StringArray {
    debug_assert!(
        std::str::from_utf8(&data).is_ok_and(|text| offsets.iter().all(|at| text.is_char_boundary(*at as usize))),
        "cells are valid UTF-8"
    );
    assert_eq!(offsets.last().copied(), i32::try_from(data.len()).ok(), "offsets end where their text does");
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() + 1 == offsets.len()), "a null bit for each value");
    let offsets = OffsetBuffer::new(offsets.into());
    // SAFETY: `OffsetBuffer::new` checks that offsets ascend from zero, and the last is the length of `data`, so each
    // value lies within it. Values are the texts of cells, by the contract above; the reader sets records with invalid
    // UTF-8 aside (`read::index`), and where cells are cut out of a record (or escapes out of a cell) whole characters
    // are: delimiters are text, and quotes, escapes and white space are ASCII.
    unsafe { StringArray::new_unchecked(offsets, Buffer::from_vec(data), nulls) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_texts_are_those_of_their_rows() {
        let words = ["", "a", "sixteen bytes ok", "seventeen bytes ü", "ende"];
        let texts: StringArray =
            (0..100).map(|row| (row % 7 != 3).then(|| words[row % words.len()].to_owned())).collect();
        for rows in [vec![], vec![99], (0..100).collect(), (0..100).step_by(3).collect::<Vec<u32>>()] {
            for from in [0, 10] {
                let texts = texts.slice(from, 100 - from);
                let rows: Vec<u32> = rows.iter().copied().filter(|row| (*row as usize) < texts.len()).collect();
                let value = |row: &u32| texts.is_valid(*row as usize).then(|| texts.value(*row as usize));
                let expected: StringArray = rows.iter().map(value).collect();
                assert_eq!(gather_texts(&texts, &rows), expected);
            }
        }
    }
}
