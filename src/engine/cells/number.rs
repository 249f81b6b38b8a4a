//! The general parser of numbers, for cells that the fast paths can't read, and for error messages.

use super::fault::FaultKind;
use crate::domain::pipeline::Dialect;

/// The number format of the dialect.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberStyle {
    pub decimal: u8,
    pub thousands: Option<u8>,
}

impl NumberStyle {
    pub fn new(dialect: &Dialect) -> Self {
        Self { decimal: dialect.decimal, thousands: dialect.thousands }
    }
}

/// The checked parts of a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScannedNumber<'a> {
    pub negative: bool,
    /// Digits and well-placed thousands separators.
    pub whole: &'a [u8],
    /// The digits after the decimal mark, if there is one.
    pub fraction: Option<&'a [u8]>,
    /// A sign, if there is one, and digits.
    pub exponent: Option<&'a [u8]>,
}

impl<'a> ScannedNumber<'a> {
    /// The digits before the decimal mark.
    pub fn whole_digits(self, style: NumberStyle) -> impl Iterator<Item = u8> + 'a {
        self.whole.iter().copied().filter(move |b| Some(*b) != style.thousands)
    }
}

/// Splits `[sign] digits [mark digits] [e [sign] digits]`. Digits may be missing on one side of the mark.
pub(super) fn scan(text: &[u8], style: NumberStyle) -> Result<ScannedNumber<'_>, FaultKind> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mantissa, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.iter().position(|b| *b == style.decimal) {
        Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
        None => (mantissa, None),
    };
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
        if digits.is_empty() || !all_digits(digits) {
            return Err(FaultKind::Syntax);
        }
    }
    if whole.is_empty() && fraction.is_none_or(<[u8]>::is_empty) || !fraction.is_none_or(all_digits) {
        return Err(FaultKind::Syntax);
    }
    if !all_digits(whole) {
        check_groups(whole, style)?;
    }
    Ok(ScannedNumber { negative, whole, fraction, exponent })
}

fn all_digits(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

/// One to three digits, then groups of exactly three.
fn check_groups(whole: &[u8], style: NumberStyle) -> Result<(), FaultKind> {
    let Some(separator) = style.thousands else { return Err(FaultKind::Syntax) };
    if !whole.iter().all(|b| b.is_ascii_digit() || *b == separator) {
        return Err(FaultKind::Syntax);
    }
    let mut groups = whole.split(|b| *b == separator);
    let first = groups.next().map_or(0, <[u8]>::len);
    if (1..=3).contains(&first) && groups.all(|g| g.len() == 3) { Ok(()) } else { Err(FaultKind::Grouping) }
}
