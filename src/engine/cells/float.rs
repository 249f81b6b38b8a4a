//! Floats, always the nearest one to what is written (ties to even).
//!
//! Taken: `12`, `12.5`, `12.`, `.5`, with a sign and an exponent; `nan`, `inf` and `infinity` in any case, with a sign.
//! A number too large is out of range, never infinite; one too small is the zero nearest to it.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Array, Float64Array};
use arrow::buffer::NullBuffer;
use fast_float2::FastFloat;

use super::fault::FaultKind;
use super::number::{NumberStyle, scan};
use super::text::Cell;
use super::typed::Parser;
use super::word::{Digits, Point, Portable};

/// Powers of ten that a float holds exactly, so that dividing by one rounds once.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

pub(super) struct Float64Parser(FloatText);
pub(super) struct Float32Parser(FloatText);

impl Float64Parser {
    pub fn new(style: NumberStyle) -> Self {
        Self(FloatText { style, plain: String::new() })
    }
}

impl Float32Parser {
    pub fn new(style: NumberStyle) -> Self {
        Self(FloatText { style, plain: String::new() })
    }
}

impl Parser for Float64Parser {
    type Value = f64;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<f64, FaultKind> {
        match quick(Portable, cell, self.0.style) {
            Some(value) => Ok(value),
            None => self.0.slow(cell.bytes(), f64::is_finite),
        }
    }

    #[inline(always)]
    fn quick(&mut self, digits: impl Digits, cell: Cell<'_>) -> Option<f64> {
        quick(digits, cell, self.0.style)
    }

    fn array(&self, values: Vec<f64>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(Float64Array::new(values.into(), nulls))
    }
}

impl Parser for Float32Parser {
    type Value = f32;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<f32, FaultKind> {
        match self.quick(Portable, cell) {
            Some(value) => Ok(value),
            None => self.0.slow(cell.bytes(), f32::is_finite),
        }
    }

    #[inline(always)]
    fn quick(&mut self, digits: impl Digits, cell: Cell<'_>) -> Option<f32> {
        // Rounding twice is only wrong where the first rounding ended midway between two f32.
        let value = quick(digits, cell, self.0.style).filter(|value| value.to_bits() & 0x1FFF_FFFF != 0x1000_0000);
        value.map(|value| value as f32)
    }

    fn array(&self, values: Vec<f32>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(Float32Array::new(values.into(), nulls))
    }
}

/// Up to 16 bytes without exponent whose digits are below 2^53: one exact division, so one rounding. Zero or between
/// 1e-15 and 2^53, so neither float type's subnormals nor overflow are met.
#[inline(always)]
fn quick(digits: impl Digits, cell: Cell<'_>, style: NumberStyle) -> Option<f64> {
    let Point { negative, digits: mantissa, places } = digits.point(cell, style.decimal)?;
    if mantissa > 1 << 53 {
        return None;
    }
    // Signed: processors turn these into floats in one step.
    let value = mantissa as i64 as f64 / POWERS[places as usize % POWERS.len()];
    Some(f64::from_bits(value.to_bits() | (negative as u64) << 63))
}

/// What is written as Rust writes it, the nearest float to it; `None` says nothing.
fn nearest<F: FastFloat>(text: &[u8]) -> Option<F> {
    // Names of what is no number end in letters.
    let numeric = text.last().is_some_and(|last| last.is_ascii_digit() || *last == b'.');
    if numeric { fast_float2::parse(text).ok() } else { None }
}

struct FloatText {
    style: NumberStyle,
    /// The number as Rust writes it.
    plain: String,
}

impl FloatText {
    fn slow<F: FastFloat + std::str::FromStr + Copy>(
        &mut self,
        text: &[u8],
        finite: fn(F) -> bool,
    ) -> Result<F, FaultKind> {
        // Where the marks are Rust's own, so is the whole form.
        if self.style.decimal == b'.'
            && let Some(value) = nearest(text)
            && finite(value)
        {
            return Ok(value);
        }
        let number = match scan(text, self.style) {
            Ok(number) => number,
            Err(fault) => return named(text).ok_or(fault),
        };
        self.plain.clear();
        let digits = number.whole_digits(self.style).map(char::from);
        self.plain.extend(number.negative.then_some('-').into_iter().chain(digits));
        if let Some(fraction) = number.fraction {
            self.plain.extend(std::iter::once('.').chain(fraction.iter().copied().map(char::from)));
        }
        if let Some(exponent) = number.exponent {
            self.plain.extend(std::iter::once('e').chain(exponent.iter().copied().map(char::from)));
        }
        let value: F = self.plain.parse().map_err(|_| FaultKind::Syntax)?;
        if finite(value) { Ok(value) } else { Err(FaultKind::OutOfRange) }
    }
}

/// `nan`, `inf` and `infinity`.
fn named<F: std::str::FromStr>(text: &[u8]) -> Option<F> {
    let name = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let known = [&b"nan"[..], b"inf", b"infinity"].iter().any(|known| name.eq_ignore_ascii_case(known));
    if known { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}
