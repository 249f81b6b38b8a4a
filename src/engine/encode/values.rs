//! Extracts the values of a column's page from pieces of arrays: the valid ones, contiguous, in their physical form.
//!
//! Invariant: bytes under a null never appear in the output.

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowNativeType, ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};

/// The number of rows with a value; `bits` becomes their bitmap, unless all or none have one.
pub(super) fn presence(pieces: &[ArrayRef], bits: &mut BooleanBufferBuilder) -> usize {
    bits.truncate(0);
    let rows: usize = pieces.iter().map(|piece| piece.len()).sum();
    let nulls: usize = pieces.iter().map(|piece| piece.null_count()).sum();
    if nulls > 0 && nulls < rows {
        for piece in pieces {
            match piece.nulls() {
                Some(nulls) => bits.append_buffer(nulls.inner()),
                None => bits.append_n(piece.len(), true),
            }
        }
    }
    rows - nulls
}

/// The null bitmap of an array that has nulls.
fn nulls_of(array: &dyn Array) -> Option<&NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Appends the valid values.
fn append_valid<T: Copy + Default, U>(
    values: &[U],
    nulls: Option<&NullBuffer>,
    out: &mut Vec<T>,
    of: impl Fn(&U) -> T,
) {
    let Some(nulls) = nulls else {
        out.extend(values.iter().map(of));
        return;
    };
    let start = out.len();
    out.resize(start + values.len(), T::default());
    let all = &mut out[start..];
    let mut count = 0;
    let chunks = nulls.inner().bit_chunks();
    for (mask, values) in chunks.iter_padded().zip(values.chunks(64)) {
        // Each value is written and kept only if valid, without a branch to predict.
        for (at, value) in values.iter().enumerate() {
            all[count] = of(value);
            count += (mask >> at & 1) as usize;
        }
    }
    out.truncate(start + count);
}

/// The numbers of a primitive array as others of the same bits.
fn raw<T: ArrowPrimitiveType, N: ArrowNativeType>(array: &dyn Array) -> &[N] {
    array.as_primitive::<T>().values().inner().typed_data()
}

fn raw32(array: &dyn Array) -> Option<&[i32]> {
    Some(match array.data_type() {
        DataType::Int32 => raw::<Int32Type, _>(array),
        DataType::UInt32 => raw::<UInt32Type, _>(array),
        DataType::Date32 => raw::<Date32Type, _>(array),
        DataType::Float32 => raw::<Float32Type, _>(array),
        _ => return None,
    })
}

/// The values of a column of 4-byte words.
pub(super) fn words32<'a>(pieces: &'a [ArrayRef], out: &'a mut Vec<i32>) -> &'a [i32] {
    out.clear();
    if let [only] = pieces
        && nulls_of(only).is_none()
        && let Some(values) = raw32(only)
    {
        return values;
    }
    for piece in pieces {
        let nulls = nulls_of(piece);
        match piece.data_type() {
            DataType::Int8 => append_valid(piece.as_primitive::<Int8Type>().values(), nulls, out, |&v| v.into()),
            DataType::Int16 => append_valid(piece.as_primitive::<Int16Type>().values(), nulls, out, |&v| v.into()),
            DataType::UInt8 => append_valid(piece.as_primitive::<UInt8Type>().values(), nulls, out, |&v| v.into()),
            DataType::UInt16 => append_valid(piece.as_primitive::<UInt16Type>().values(), nulls, out, |&v| v.into()),
            DataType::Decimal128(_, _) => {
                append_valid(piece.as_primitive::<Decimal128Type>().values(), nulls, out, |&v| v as i32);
            }
            _ => append_valid(raw32(piece).unwrap_or_default(), nulls, out, |&v| v),
        }
    }
    out
}

fn raw64(array: &dyn Array) -> Option<&[i64]> {
    Some(match array.data_type() {
        DataType::Int64 => raw::<Int64Type, _>(array),
        DataType::UInt64 => raw::<UInt64Type, _>(array),
        DataType::Float64 => raw::<Float64Type, _>(array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => raw::<TimestampMicrosecondType, _>(array),
        DataType::Time64(TimeUnit::Microsecond) => raw::<Time64MicrosecondType, _>(array),
        _ => return None,
    })
}

/// The values of a column of 8-byte words.
pub(super) fn words64<'a>(pieces: &'a [ArrayRef], out: &'a mut Vec<i64>) -> &'a [i64] {
    out.clear();
    if let [only] = pieces
        && nulls_of(only).is_none()
        && let Some(values) = raw64(only)
    {
        return values;
    }
    for piece in pieces {
        let nulls = nulls_of(piece);
        if let DataType::Decimal128(_, _) = piece.data_type() {
            append_valid(piece.as_primitive::<Decimal128Type>().values(), nulls, out, |&v| v as i64);
        } else {
            append_valid(raw64(piece).unwrap_or_default(), nulls, out, |&v| v);
        }
    }
    out
}

/// The values of a column of `width` bytes each.
pub(super) fn fixed<'a>(pieces: &[ArrayRef], width: usize, out: &'a mut Vec<u8>) -> &'a [u8] {
    out.clear();
    for piece in pieces {
        let nulls = nulls_of(piece);
        if nulls.is_none()
            && let Some(array) = piece.as_fixed_size_binary_opt()
        {
            out.extend_from_slice(array.value_data());
            continue;
        }
        let mut each = |row: usize| match piece.data_type() {
            DataType::Decimal128(_, _) => {
                let bytes = piece.as_primitive::<Decimal128Type>().value(row).to_be_bytes();
                out.extend_from_slice(&bytes[bytes.len() - width..]);
            }
            _ => out.extend_from_slice(piece.as_fixed_size_binary().value(row)),
        };
        match nulls {
            Some(nulls) => nulls.valid_indices().for_each(&mut each),
            None => (0..piece.len()).for_each(&mut each),
        }
    }
    out
}

/// The values of a column of booleans, and how many of them are true.
pub(super) fn booleans<'a>(pieces: &[ArrayRef], out: &'a mut BooleanBufferBuilder) -> (&'a [u8], usize) {
    out.truncate(0);
    for piece in pieces {
        let values = piece.as_boolean().values();
        match nulls_of(piece) {
            Some(nulls) => nulls.valid_indices().for_each(|row| out.append(values.value(row))),
            None => out.append_buffer(values),
        }
    }
    let trues = out.as_slice().iter().map(|byte| byte.count_ones() as usize).sum();
    (out.as_slice(), trues)
}

/// The values of a column of text.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    pieces: &'a [ArrayRef],
}

impl<'a> Texts<'a> {
    pub(super) fn new(pieces: &'a [ArrayRef]) -> Self {
        Self { pieces }
    }

    /// Calls `each` with each text and its [`TextStart`], until an error.
    #[inline(always)]
    pub(super) fn try_each<E>(self, mut each: impl FnMut(&'a [u8], TextStart) -> Result<(), E>) -> Result<(), E> {
        for piece in self.pieces {
            let strings = piece.as_string::<i32>();
            let (offsets, data) = (strings.value_offsets(), strings.value_data());
            let mut slices = nulls_of(piece).map(NullBuffer::valid_slices);
            let mut whole = slices.is_none().then_some((0, piece.len()));
            while let Some((start, end)) = whole.take().or_else(|| slices.as_mut()?.next()) {
                for pair in offsets[start..=end].windows(2) {
                    let (start, end) = (pair[0] as usize, pair[1] as usize);
                    // Bytes after a short text are read with it and masked out, without a branch by length.
                    let known = match data[start..].first_chunk::<START_BYTES>() {
                        Some(first) => TextStart::from_chunk(first, end - start),
                        None => TextStart::of(&data[start..end]),
                    };
                    each(&data[start..end], known)?;
                }
            }
        }
        Ok(())
    }

    /// Calls `each` with each text and its first word, which compares like its first bytes.
    pub(super) fn each(self, mut each: impl FnMut(&'a [u8], u64)) {
        let Ok(()) = self.try_each(|text, start| {
            each(text, start.words[0]);
            Ok::<_, std::convert::Infallible>(())
        });
    }

    /// Writes their lengths.
    pub(super) fn lengths(self, out: &mut Vec<i32>) {
        out.clear();
        for piece in self.pieces {
            let offsets = piece.as_string::<i32>().value_offsets();
            match nulls_of(piece) {
                Some(nulls) => out.extend(nulls.valid_indices().map(|row| offsets[row + 1] - offsets[row])),
                None => out.extend(offsets.windows(2).map(|pair| pair[1] - pair[0])),
            }
        }
    }

    /// The total of their bytes.
    pub(super) fn total_bytes(self) -> usize {
        let of = |piece: &ArrayRef| {
            let offsets = piece.as_string::<i32>().value_offsets();
            match nulls_of(piece) {
                Some(nulls) => nulls.valid_slices().map(|(start, end)| (offsets[end] - offsets[start]) as usize).sum(),
                None => (offsets[piece.len()] - offsets[0]) as usize,
            }
        };
        self.pieces.iter().map(of).sum()
    }

    /// Appends their bytes.
    pub(super) fn bytes(self, out: &mut Vec<u8>) {
        for piece in self.pieces {
            let strings = piece.as_string::<i32>();
            let (offsets, data) = (strings.value_offsets(), strings.value_data());
            match nulls_of(piece) {
                // Neighbouring texts are contiguous.
                Some(nulls) => {
                    for (start, end) in nulls.valid_slices() {
                        out.extend_from_slice(&data[offsets[start] as usize..offsets[end] as usize]);
                    }
                }
                None => {
                    let (start, end) = (offsets[0] as usize, offsets[piece.len()] as usize);
                    out.extend_from_slice(&data[start..end]);
                }
            }
        }
    }
}

/// The first bytes of a text, zero-padded, as words that compare like them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextStart {
    pub words: [u64; 2],
}

/// The longest text that its start contains whole.
pub(super) const START_BYTES: usize = 16;
pub(super) const WORD_BYTES: usize = 8;

impl TextStart {
    pub(super) fn of(text: &[u8]) -> Self {
        match text.first_chunk() {
            Some(chunk) => Self::from_chunk(chunk, text.len()),
            None => {
                let mut chunk = [0; START_BYTES];
                chunk[..text.len()].copy_from_slice(text);
                Self::from_chunk(&chunk, text.len())
            }
        }
    }

    /// The start of the text of `length` bytes at the beginning of `chunk`.
    #[inline(always)]
    fn from_chunk(chunk: &[u8; START_BYTES], length: usize) -> Self {
        let word = |at: usize| u64::from_be_bytes(chunk.as_chunks().0[at]);
        let kept = WORD_MASKS[length.min(WORD_BYTES)];
        let kept_of_next = WORD_MASKS[length.clamp(WORD_BYTES, START_BYTES) - WORD_BYTES];
        Self { words: [word(0) & kept, word(1) & kept_of_next] }
    }
}

/// The bits of the first bytes of a word, by their number. A table, since a shift by a possibly whole word is slower.
const WORD_MASKS: [u64; WORD_BYTES + 1] = {
    let mut masks = [u64::MAX; WORD_BYTES + 1];
    let mut length = 0;
    while length < WORD_BYTES {
        masks[length] = !(u64::MAX >> (8 * length));
        length += 1;
    }
    masks
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn text_start_is_the_first_sixteen_bytes_at_any_position() {
        let text = b"abcdefghijklmnopqr";
        for length in 0..=text.len() {
            let mut first = [0; 16];
            let kept = length.min(16);
            first[..kept].copy_from_slice(&text[..kept]);
            let words = [0, 8].map(|at| u64::from_be_bytes(first[at..at + 8].try_into().unwrap()));
            assert_eq!(TextStart::of(&text[..length]), TextStart { words }, "{length}");
            let around = std::str::from_utf8(text).unwrap();
            for after in [0, 3, 18] {
                let texts: ArrayRef = Arc::new(StringArray::from(vec![&around[..length], &around[..after]]));
                let mut found = Vec::new();
                let Ok(()) = Texts::new(&[texts]).try_each(|text, start| {
                    found.push((text.to_vec(), start));
                    Ok::<_, std::convert::Infallible>(())
                });
                assert_eq!(found[0], (text[..length].to_vec(), TextStart { words }), "{length}, {after} after it");
                assert_eq!(
                    found[1],
                    (text[..after].to_vec(), TextStart::of(&text[..after])),
                    "{length}, {after} after it"
                );
            }
        }
    }
}
