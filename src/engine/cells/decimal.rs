//! Decimals: digits, a decimal mark, thousands separators where declared; no exponent, and never rounded.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType as Arrow;

use super::fault::FaultKind;
use super::number::{NumberStyle, scan};
use super::text::Cell;
use super::typed::Parser;
use super::word::{Digits, Point, PortableDigits};

pub(super) struct DecimalParser {
    style: NumberStyle,
    precision: u8,
    scale: u8,
    /// 10^precision: the first magnitude that does not fit.
    limit: u128,
    /// 10^(scale - k) for k decimal places.
    factors: Vec<u128>,
}

impl DecimalParser {
    /// `precision` is 1 to 38, `scale` at most `precision`.
    pub fn new(style: NumberStyle, precision: u8, scale: u8) -> Self {
        let factors = (0..=u32::from(scale)).map(|places| 10u128.pow(u32::from(scale) - places)).collect();
        Self { style, precision, scale, limit: 10u128.pow(u32::from(precision)), factors }
    }

    #[cold]
    fn slow(&self, text: &[u8]) -> Result<u128, FaultKind> {
        let number = scan(text, self.style)?;
        if number.exponent.is_some() {
            return Err(FaultKind::Exponent);
        }
        let fraction = number.fraction.unwrap_or_default();
        let places = fraction.iter().rposition(|b| *b != b'0').map_or(0, |at| at + 1);
        if places > usize::from(self.scale) {
            return Err(FaultKind::Scale(u32::try_from(places).unwrap_or(u32::MAX)));
        }
        let mut digits = number.whole_digits(self.style).chain(fraction[..places].iter().copied());
        let magnitude = digits
            .try_fold(0u128, |sum, digit| sum.checked_mul(10)?.checked_add(u128::from(digit - b'0')))
            .ok_or(FaultKind::OutOfRange)?;
        self.scaled(magnitude, places)
    }

    #[inline(always)]
    fn scaled(&self, magnitude: u128, places: usize) -> Result<u128, FaultKind> {
        match magnitude.checked_mul(self.factors[places]) {
            Some(value) if value < self.limit => Ok(value),
            Some(_) | None => Err(FaultKind::OutOfRange),
        }
    }
}

impl Parser for DecimalParser {
    type Value = i128;

    fn parse(&mut self, cell: Cell<'_>) -> Result<i128, FaultKind> {
        if let Some(value) = self.quick(PortableDigits, cell) {
            return Ok(value);
        }
        let negative = match cell.bytes().first() {
            None => return Err(FaultKind::Syntax),
            Some(first) => *first == b'-',
        };
        let value = self.slow(cell.bytes())? as i128;
        Ok(if negative { -value } else { value })
    }

    #[inline(always)]
    fn quick(&mut self, digits: impl Digits, cell: Cell<'_>) -> Option<i128> {
        let Point { negative, digits, places } = digits.point(cell, self.style.decimal)?;
        if places > u32::from(self.scale) {
            return None;
        }
        let value = self.scaled(u128::from(digits), places as usize).ok()? as i128;
        Some(if negative { -value } else { value })
    }

    fn array(&self, values: Vec<i128>, nulls: Option<NullBuffer>) -> ArrayRef {
        let ty = Arrow::Decimal128(self.precision, self.scale as i8);
        Arc::new(Decimal128Array::new(values.into(), nulls).with_data_type(ty))
    }
}

/// The number that `text` writes with `.`, in units of the last of `scale` places, by moving digits without arithmetic.
/// `None` if it is not a decimal or does not fit.
#[cfg(any(test, feature = "fuzzing"))]
pub fn decimal_by_digits(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let moved = format!("{whole}{fraction:0<width$}", width = usize::from(scale));
    let moved = moved.trim_start_matches('0');
    if fraction.len() > usize::from(scale) || moved.len() > usize::from(precision) {
        return None;
    }
    let value: i128 = if moved.is_empty() { 0 } else { moved.parse().ok()? };
    Some(if text.starts_with('-') { -value } else { value })
}
