//! Sends Arrow columns over the pipes: their buffers in sequence, after a message with their shapes.
//!
//! Invariant: the lengths of all buffers follow from the known types, the number of rows, and text lengths that are compared
//! with a limit before memory is allocated. Each array is validated in full, since the data may have compromised the other
//! side.
//!
//! The frame holds the buffers of Arrow's columnar format as Arrow IPC does, without its flatbuffers: both ends are the
//! same program and know the types, so nothing needs a description.

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, Decimal128Array, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow::datatypes::{DataType as Arrow, Decimal128Type, Time64MicrosecondType};
use serde::{Deserialize, Serialize};

/// Microseconds of a day.
const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// The data that the reader of a column needs besides its type and the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnShape {
    /// Whether a null bitmap comes first.
    pub nulls: bool,
    /// Bytes of its text; 0 for other types.
    pub text_bytes: u64,
}

/// Bytes of one value of a type of fixed width; `None` for text and booleans.
fn width(ty: &Arrow) -> Option<usize> {
    match ty {
        Arrow::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        Arrow::Boolean | Arrow::Utf8 => None,
        other => other.primitive_width(),
    }
}

/// The shape of `array` and its buffers. Copies a buffer only if the array starts within it.
pub fn parts(array: &ArrayRef) -> Result<(ColumnShape, Vec<Buffer>), String> {
    let rows = array.len();
    let mut shape = ColumnShape { nulls: false, text_bytes: 0 };
    let mut buffers = Vec::with_capacity(3);
    if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
        shape.nulls = true;
        buffers.push(nulls.inner().sliced());
    }
    match array.data_type() {
        Arrow::Boolean => buffers.push(array.as_boolean().values().sliced()),
        Arrow::Utf8 => {
            let text = array.as_string::<i32>();
            let offsets = text.offsets();
            let (first, last) = (offsets[0], offsets[rows]);
            let start = usize::try_from(first).map_err(|error| error.to_string())?;
            let length = usize::try_from(last - first).map_err(|error| error.to_string())?;
            shape.text_bytes = length as u64;
            buffers.push(match first {
                0 => offsets.inner().inner().slice_with_length(0, (rows + 1) * size_of::<i32>()),
                _ => Buffer::from_vec(offsets.iter().map(|offset| offset - first).collect::<Vec<i32>>()),
            });
            buffers.push(text.values().slice_with_length(start, length));
        }
        ty => {
            let width = width(ty).ok_or_else(|| format!("columns of {ty} can't be sent"))?;
            let data = array.to_data();
            let values = data.buffers().first().ok_or("a column without values")?;
            buffers.push(values.slice_with_length(data.offset() * width, rows * width));
        }
    }
    Ok((shape, buffers))
}

/// Reads buffers in sequence.
pub trait BufferReader {
    type Error;

    /// Fills `into`.
    ///
    /// # Errors
    /// The stream ends or fails.
    fn fill(&mut self, into: &mut [u8]) -> Result<(), Self::Error>;

    /// The error for an invalid array.
    fn invalid(&self, why: String) -> Self::Error;
}

fn bitmap_bytes(rows: usize) -> usize {
    rows.div_ceil(8)
}

/// Bytes of the buffers of a column; `None` if they are more than there can be.
pub fn bytes(ty: &Arrow, shape: ColumnShape, rows: usize) -> Option<usize> {
    let nulls = if shape.nulls { bitmap_bytes(rows) } else { 0 };
    let values = match ty {
        Arrow::Boolean => bitmap_bytes(rows),
        Arrow::Utf8 => rows.checked_add(1)?.checked_mul(4)?.checked_add(usize::try_from(shape.text_bytes).ok()?)?,
        other => rows.checked_mul(width(other)?)?,
    };
    nulls.checked_add(values)
}

/// Reads a column of `rows` rows.
///
/// # Errors
/// Errors of `from`; also if the bytes aren't a column of the type.
pub fn read<S: BufferReader>(from: &mut S, ty: &Arrow, shape: ColumnShape, rows: usize) -> Result<ArrayRef, S::Error> {
    let mut buffer = |length: usize| -> Result<Buffer, S::Error> {
        // Aligned for values of any type.
        let mut bytes = MutableBuffer::from_len_zeroed(length);
        from.fill(bytes.as_slice_mut())?;
        Ok(bytes.into())
    };
    let nulls = if shape.nulls { Some(buffer(bitmap_bytes(rows))?) } else { None };
    let mut buffers = Vec::with_capacity(2);
    match ty {
        Arrow::Boolean => buffers.push(buffer(bitmap_bytes(rows))?),
        Arrow::Utf8 => {
            buffers.push(buffer((rows + 1) * size_of::<i32>())?);
            buffers.push(buffer(usize::try_from(shape.text_bytes).unwrap_or(usize::MAX))?);
        }
        other => match width(other) {
            Some(width) => buffers.push(buffer(rows * width)?),
            None => return Err(from.invalid(format!("columns of {other} can't be received"))),
        },
    }
    validated(ty, rows, nulls, buffers).map_err(|why| from.invalid(why))
}

fn validated(ty: &Arrow, rows: usize, nulls: Option<Buffer>, buffers: Vec<Buffer>) -> Result<ArrayRef, String> {
    let nulls = nulls.map(|bits| NullBuffer::new(BooleanBuffer::new(bits, 0, rows)));
    let data = ArrayData::builder(ty.clone()).len(rows).nulls(nulls).buffers(buffers).align_buffers(true);
    let data = data.build().map_err(|error| format!("a column of {ty}: {error}"))?;
    let array = make_array(data);
    let values_fit = match ty {
        Arrow::Decimal128(precision, _) => {
            let decimals: &Decimal128Array = array.as_primitive::<Decimal128Type>();
            decimals.validate_decimal_precision(*precision).is_ok()
        }
        Arrow::Time64(_) => {
            let times = array.as_primitive::<Time64MicrosecondType>();
            times.iter().flatten().all(|time| (0..=DAY_MICROSECONDS).contains(&time))
        }
        _ => true,
    };
    if values_fit { Ok(array) } else { Err(format!("a column of {ty} with values outside the type's range")) }
}

/// The errors of a batch as numbers of rows, expressions and messages.
#[derive(Debug, Default)]
pub struct ErrorColumns {
    pub rows: Vec<u32>,
    pub expressions: Vec<u32>,
    pub messages: Vec<u32>,
}

impl ErrorColumns {
    /// Bytes of `count` errors; `None` if they are more than there can be.
    pub fn bytes(count: usize) -> Option<usize> {
        count.checked_mul(3 * size_of::<u32>())
    }

    pub fn into_parts(self) -> [Buffer; 3] {
        [self.rows, self.expressions, self.messages].map(Buffer::from_vec)
    }

    /// Reads `count` errors.
    ///
    /// # Errors
    /// Errors of `from`.
    pub fn read<S: BufferReader>(from: &mut S, count: usize) -> Result<Self, S::Error> {
        let mut numbers = || -> Result<Vec<u32>, S::Error> {
            let mut bytes = vec![0; count * size_of::<u32>()];
            from.fill(&mut bytes)?;
            Ok(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
        };
        Ok(Self { rows: numbers()?, expressions: numbers()?, messages: numbers()? })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BooleanArray, FixedSizeBinaryArray, Int64Array, StringArray, Time64MicrosecondArray};
    use arrow::datatypes::TimeUnit;

    use super::*;

    impl BufferReader for &[u8] {
        type Error = String;

        fn fill(&mut self, into: &mut [u8]) -> Result<(), String> {
            std::io::Read::read_exact(self, into).map_err(|error| error.to_string())
        }

        fn invalid(&self, why: String) -> String {
            why
        }
    }

    fn sent(array: &ArrayRef) -> (ColumnShape, Vec<u8>) {
        let (shape, parts) = parts(array).unwrap();
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.as_slice().iter().copied()).collect();
        assert_eq!(Some(bytes.len()), super::bytes(array.data_type(), shape, array.len()));
        (shape, bytes)
    }

    fn received(ty: &Arrow, shape: ColumnShape, rows: usize, mut bytes: &[u8]) -> Result<ArrayRef, String> {
        read(&mut bytes, ty, shape, rows)
    }

    #[test]
    fn columns_and_slices_round_trip() {
        let texts = StringArray::from(vec![Some("ä"), None, Some(""), Some("longer than sixteen bytes"), Some("z")]);
        let uuids = FixedSizeBinaryArray::try_from_iter((0..5_u8).map(|n| [n; 16])).unwrap();
        let decimals = Decimal128Array::from(vec![Some(-999), None, Some(0), Some(1), Some(999)]);
        let arrays: [ArrayRef; 6] = [
            Arc::new(texts),
            Arc::new(uuids),
            Arc::new(decimals.with_precision_and_scale(3, 1).unwrap()),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None])),
            Arc::new(Int64Array::from(vec![1, 2, 3, 4, i64::MIN])),
            Arc::new(Time64MicrosecondArray::from(vec![Some(0), None, Some(1), Some(2), Some(DAY_MICROSECONDS)])),
        ];
        for array in &arrays {
            for (start, rows) in [(0, 5), (0, 0), (1, 3), (3, 2), (5, 0)] {
                let part = array.slice(start, rows);
                let (shape, bytes) = sent(&part);
                let back = received(array.data_type(), shape, rows, &bytes).unwrap();
                assert_eq!(&back, &part);
            }
        }
    }

    #[test]
    fn invalid_columns_are_refused() {
        let text = |bytes: u64| ColumnShape { nulls: false, text_bytes: bytes };
        let offsets = |offsets: &[i32], text: &[u8]| -> Vec<u8> {
            offsets.iter().flat_map(|offset| offset.to_le_bytes()).chain(text.iter().copied()).collect()
        };
        for (offsets, text_bytes) in [
            (offsets(&[0, 2, 1], b"ab"), 2),
            (offsets(&[0, 1, 3], b"ab"), 2),
            (offsets(&[-1, 1, 2], b"ab"), 2),
            (offsets(&[0, 1, 2], &[0xc3, 0xa4]), 2),
            (offsets(&[0, 1, 2], &[0xff, b'a']), 2),
            (offsets(&[0, 1, 2], b"ab"), 3),
            (offsets(&[0, 1], b""), 0),
        ] {
            assert!(received(&Arrow::Utf8, text(text_bytes), 2, &offsets).is_err(), "{offsets:?}");
        }
        let plain = text(0);
        let time = (DAY_MICROSECONDS + 1).to_le_bytes();
        assert!(received(&Arrow::Time64(TimeUnit::Microsecond), plain, 1, &time).is_err());
        assert!(received(&Arrow::Decimal128(3, 1), plain, 1, &1_000_i128.to_le_bytes()).is_err());
        assert!(received(&Arrow::Int64, plain, 2, &[0; 15]).is_err());
        assert!(received(&Arrow::Null, plain, 2, &[]).is_err());
        assert_eq!(bytes(&Arrow::Utf8, text(u64::MAX), 2), None);
        assert_eq!(bytes(&Arrow::Int64, plain, usize::MAX), None);
    }
}
