//! Integers: an optional sign, digits, thousands separators where declared.

use std::marker::PhantomData;

use arrow::array::{ArrayRef, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::fault::FaultKind;
use super::number::{NumberStyle, scan};
use super::text::Cell;
use super::typed::{Parser, primitive};
use super::word::{CellQuad, Digits, WholeNumber};

/// An Arrow integer type.
pub(super) trait Integer: ArrowPrimitiveType + Send
where
    Self::Native: Send,
{
    /// `None` if it does not fit.
    fn from_parts(negative: bool, magnitude: u64) -> Option<Self::Native>;
}

macro_rules! integers {
    (signed: $($signed:ty),*; unsigned: $($unsigned:ty),*) => {
        $(impl Integer for $signed {
            #[inline(always)]
            fn from_parts(negative: bool, magnitude: u64) -> Option<Self::Native> {
                let value = if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() };
                value?.try_into().ok()
            }
        })*
        $(impl Integer for $unsigned {
            #[inline(always)]
            fn from_parts(negative: bool, magnitude: u64) -> Option<Self::Native> {
                if negative && magnitude != 0 { None } else { magnitude.try_into().ok() }
            }
        })*
    };
}
integers!(signed: Int8Type, Int16Type, Int32Type, Int64Type; unsigned: UInt8Type, UInt16Type, UInt32Type, UInt64Type);

pub(super) struct IntegerParser<T> {
    style: NumberStyle,
    ty: PhantomData<T>,
}

impl<T> IntegerParser<T> {
    pub fn new(style: NumberStyle) -> Self {
        Self { style, ty: PhantomData }
    }
}

impl<T: Integer> Parser for IntegerParser<T>
where
    T::Native: Send,
{
    type Value = T::Native;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<T::Native, FaultKind> {
        let negative = match cell.bytes().first() {
            None => return Err(FaultKind::Syntax),
            Some(first) => *first == b'-',
        };
        T::from_parts(negative, slow(cell.bytes(), self.style)?).ok_or(FaultKind::OutOfRange)
    }

    #[inline(always)]
    fn quick(&mut self, digits: impl Digits, cell: Cell<'_>) -> Option<T::Native> {
        let WholeNumber { negative, digits } = digits.whole(cell)?;
        T::from_parts(negative, digits)
    }

    #[inline(always)]
    fn parse_quads_fast<'a>(
        &mut self,
        digits: impl Digits,
        cells: impl Iterator<Item = CellQuad<'a>>,
        out: &mut [[T::Native; 4]],
    ) -> usize {
        digits.whole_numbers(cells, out, |values| {
            let [a, b, c, d] = values.map(|value| T::from_parts(value < 0, value.unsigned_abs()));
            Some([a?, b?, c?, d?])
        })
    }

    fn array(&self, values: Vec<T::Native>, nulls: Option<NullBuffer>) -> ArrayRef {
        primitive(PrimitiveArray::<T>::new(values.into(), nulls))
    }
}

#[cold]
fn slow(text: &[u8], style: NumberStyle) -> Result<u64, FaultKind> {
    let number = scan(text, style)?;
    if number.exponent.is_some() {
        return Err(FaultKind::Exponent);
    }
    if number.fraction.is_some() {
        return Err(FaultKind::Fraction);
    }
    number
        .whole_digits(style)
        .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(FaultKind::OutOfRange)
}
