//! Floats: the nearest value to the text (ties to even).
//!
//! Accepts `12`, `12.5`, `12.`, `.5`, with a sign and an exponent; `nan`, `inf` and `infinity` in any case, with a
//! sign. A number too large is out of range, never infinite; one too small is the nearest zero.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Array, Float64Array};
use arrow::buffer::NullBuffer;
use fast_float2::FastFloat;

use super::fault::FaultKind;
use super::number::{NumberStyle, scan};
use super::text::Cell;
use super::typed::Parser;
use super::word::{CellQuad, Digits, Point, PortableDigits, WholeNumber};

/// Powers of ten that are exact as floats, so that dividing by one rounds once.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Powers of ten as integers.
const TENS: [u64; 20] = {
    let mut tens = [1; 20];
    let mut at = 1;
    while at < tens.len() {
        tens[at] = tens[at - 1] * 10;
        at += 1;
    }
    tens
};

/// For each power of ten, the first 64 bits of its reciprocal, rounded down, and the shift of the point.
const RECIPROCALS: [(u64, i32); 20] = {
    let mut all = [(0, 0); 20];
    let mut at = 0;
    while at < all.len() {
        let mut exponent = 63;
        while (1u128 << exponent) / (TENS[at] as u128) < 1 << 63 {
            exponent += 1;
        }
        all[at] = (((1u128 << exponent) / (TENS[at] as u128)) as u64, exponent);
        at += 1;
    }
    all
};

/// Cells longer than [`Digits::point`] reads, or as long with a sign; [`long`] reads both.
const LONG_BYTES_MIN: usize = 17;

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
        match quick(PortableDigits, cell, self.0.style) {
            Some(value) => Ok(value),
            None => self.0.slow(cell.bytes(), f64::is_finite),
        }
    }

    #[inline(always)]
    fn quick(&mut self, digits: impl Digits, cell: Cell<'_>) -> Option<f64> {
        quick(digits, cell, self.0.style)
    }

    #[inline(always)]
    fn parse_quads_fast<'a>(
        &mut self,
        digits: impl Digits,
        cells: impl Iterator<Item = CellQuad<'a>>,
        out: &mut [[f64; 4]],
    ) -> usize {
        digits.quotients(cells, self.0.style.decimal, out, Some)
    }

    fn array(&self, values: Vec<f64>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(Float64Array::new(values.into(), nulls))
    }
}

impl Parser for Float32Parser {
    type Value = f32;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<f32, FaultKind> {
        match self.quick(PortableDigits, cell) {
            Some(value) => Ok(value),
            None => self.0.slow(cell.bytes(), f32::is_finite),
        }
    }

    #[inline(always)]
    fn quick(&mut self, digits: impl Digits, cell: Cell<'_>) -> Option<f32> {
        narrowed(quick(digits, cell, self.0.style)?)
    }

    #[inline(always)]
    fn parse_quads_fast<'a>(
        &mut self,
        digits: impl Digits,
        cells: impl Iterator<Item = CellQuad<'a>>,
        out: &mut [[f32; 4]],
    ) -> usize {
        let narrow = |[a, b, c, d]: [f64; 4]| Some([narrowed(a)?, narrowed(b)?, narrowed(c)?, narrowed(d)?]);
        digits.quotients(cells, self.0.style.decimal, out, narrow)
    }

    fn array(&self, values: Vec<f32>, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(Float32Array::new(values.into(), nulls))
    }
}

/// Double rounding is only wrong if the first rounding ended midway between two f32.
#[inline(always)]
fn narrowed(value: f64) -> Option<f32> {
    (value.to_bits() & 0x1FFF_FFFF != 0x1000_0000).then_some(value as f32)
}

/// The common case: few digits without exponent, or as many as identify a float.
#[inline(always)]
fn quick(digits: impl Digits, cell: Cell<'_>, style: NumberStyle) -> Option<f64> {
    if cell.len() < LONG_BYTES_MIN { short(digits, cell, style) } else { long(digits, cell, style) }
}

/// For 17 to 20 bytes after the sign, digits with a mark and no exponent: the float nearest to digits / 10^k, by a
/// 128-bit product. Results are between 1e-19 and 1e19, so neither subnormals nor overflow occur.
#[inline(always)]
fn long(digits: impl Digits, cell: Cell<'_>, style: NumberStyle) -> Option<f64> {
    let negative = cell.text[cell.start] == b'-';
    let tail = Cell { start: cell.end - 16, ..cell };
    let head = &cell.text[cell.start + usize::from(negative)..tail.start];
    if head.len() > 4 {
        return None;
    }
    let (mut first, mut places) = (0, None);
    for &byte in head {
        match byte {
            b'0'..=b'9' => {
                first = first * 10 + u64::from(byte - b'0');
                places = places.map(|places| places + 1);
            }
            _ if byte == style.decimal && places.is_none() => places = Some(0),
            _ => return None,
        }
    }
    let (last, last_digits, places) = match places {
        Some(places) => {
            let WholeNumber { negative: false, digits: last } = digits.whole(tail)? else { return None };
            (last, 16, 16 + places)
        }
        None => match digits.point(tail, style.decimal)? {
            Point { negative: false, digits: last, places: places @ 1.. } => (last, 15, places as usize),
            _ => return None,
        },
    };
    // At most 19 digits.
    let value = quotient(first * TENS[last_digits] + last, places)?;
    Some(f64::from_bits(value.to_bits() | u64::from(negative) << 63))
}

/// The float nearest to `mantissa` / 10^`places`; `None` for zero, and if the product is too close to a tie.
///
/// The first step of Lemire, "Number Parsing at a Gigabyte per Second" (2021), for quotients of integers.
#[inline(always)]
fn quotient(mantissa: u64, places: usize) -> Option<f64> {
    if mantissa == 0 {
        return None;
    }
    let zeros = mantissa.leading_zeros();
    let (reciprocal, exponent) = RECIPROCALS[places];
    // The first 63 or 64 bits of the quotient, less than two below the exact value, since the reciprocal is less than
    // one below.
    let product = u128::from(mantissa << zeros) * u128::from(reciprocal);
    let bits = (product >> 64) as u64;
    let dropped = 11 - bits.leading_zeros();
    let (half, rest) = (1 << (dropped - 1), bits & ((1 << dropped) - 1));
    if rest == half || rest == half - 1 {
        return None;
    }
    let kept = (bits >> dropped) + u64::from(rest > half);
    // As bits of a float; rounding up to 2^53 carries into the exponent.
    let exponent = 64 + dropped as i32 - exponent - zeros as i32;
    Some(f64::from_bits((((exponent + 1074) as u64) << 52) + kept))
}

/// For up to 16 bytes without exponent and digits below 2^53: one exact division, so one rounding. Results are zero or
/// between 1e-15 and 2^53, so neither subnormals nor overflow occur.
#[inline(always)]
fn short(digits: impl Digits, cell: Cell<'_>, style: NumberStyle) -> Option<f64> {
    let Point { negative, digits: mantissa, places } = digits.point(cell, style.decimal)?;
    if mantissa > 1 << 53 {
        return None;
    }
    // Signed integers convert to floats in one instruction.
    let value = mantissa as i64 as f64 / POWERS[places as usize % POWERS.len()];
    Some(f64::from_bits(value.to_bits() | (negative as u64) << 63))
}

/// The nearest float to a text in Rust's syntax; `None` is undecided.
fn nearest<F: FastFloat>(text: &[u8]) -> Option<F> {
    // Names such as `nan` end in letters.
    let numeric = text.last().is_some_and(|last| last.is_ascii_digit() || *last == b'.');
    if numeric { fast_float2::parse(text).ok() } else { None }
}

struct FloatText {
    style: NumberStyle,
    /// The number in Rust's syntax.
    plain: String,
}

impl FloatText {
    fn slow<F: FastFloat + std::str::FromStr + Copy>(
        &mut self,
        text: &[u8],
        finite: fn(F) -> bool,
    ) -> Result<F, FaultKind> {
        // With Rust's decimal mark, the whole syntax is Rust's.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotient_is_the_nearest_float_or_undecided() {
        let check = |mantissa: u64, places: usize| {
            let nearest: f64 = format!("{mantissa}e-{places}").parse().unwrap();
            let found = quotient(mantissa, places);
            assert_eq!(found.unwrap_or(nearest).to_bits(), nearest.to_bits(), "{mantissa} / 10^{places}");
            found.is_some()
        };
        let (mut state, mut undecided, mut all) = (1u64, 0, 0);
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state >> 58;
            for places in 0..20 {
                undecided += usize::from(!check((state >> bits).max(1), places));
                all += 1;
            }
        }
        assert!(undecided * 100 < all, "{undecided} of {all} are undecided");
        for shift in 53..60 {
            for odd in 0..50 {
                // The midpoint between two floats, and its neighbours.
                let midway = (1u64 << shift) + ((2 * odd + 1) << (shift - 53));
                for (places, mantissa) in [midway, midway * 10].into_iter().enumerate() {
                    assert_eq!(quotient(mantissa, places), None, "{mantissa} / 10^{places}");
                    check(mantissa - 1, places);
                    check(mantissa + 1, places);
                }
            }
        }
        for places in 0..20 {
            for power in 0..64 {
                check(1 << power, places);
                check(u64::MAX >> power, places);
            }
        }
    }
}
