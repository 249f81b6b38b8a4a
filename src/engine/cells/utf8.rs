//! Text columns made without looking for invalid UTF-8 once more.
//!
//! Invariant: what the reader gives as good records is valid UTF-8, and a cell is cut from its record at whole
//! delimiters, quotes and white space, so that cells one after the other are valid too.

use arrow::array::StringArray;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};

/// The values of a column: `data` is nothing but the text of cells of good records (unescaped), and each of `offsets`,
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
