//! Dates and times that are one number: epoch times and Excel's serial dates.

use super::calendar::MICROS_PER_DAY;
use super::moment::ParsedMoment;
use crate::domain::pipeline::named_format::{EpochUnit, SerialFormat};
use crate::engine::cells::fault::FaultKind;

/// Days from 1970 of 0001-01-01 and of the day after 9999-12-31.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;
const MICROSECOND_PLACES: u32 = 6;
/// Excel's day 60 is 29 February 1900, which didn't exist; later days are off by one.
const EXCEL_NO_DAY: i64 = 60;
/// Excel's day 1, 1900-01-01, as days since 1970.
const EXCEL_FIRST: i64 = -25_567;
/// Excel's resolution, in microseconds.
const MICROS_PER_MILLISECOND: i64 = 1_000;
const FRACTION_DIGITS_MAX: usize = 18;

/// Reads the whole of `text`, with `decimal` before a fraction.
pub(super) fn read(format: SerialFormat, text: &[u8], decimal: u8) -> Result<ParsedMoment, FaultKind> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (whole, fraction) = match digits.iter().position(|byte| *byte == decimal) {
        Some(at) => (&digits[..at], Some(&digits[at + 1..])),
        None => (digits, None),
    };
    if whole.is_empty() || fraction.is_some_and(<[u8]>::is_empty) {
        return Err(FaultKind::Syntax);
    }
    let fraction = fraction.unwrap_or_default();
    if !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return Err(FaultKind::Syntax);
    }
    let whole = number(whole).ok_or(FaultKind::OutOfRange)?;
    match format {
        SerialFormat::Epoch(unit) => epoch(unit, negative, whole, fraction),
        SerialFormat::Excel if negative => Err(FaultKind::NoSuchTime),
        SerialFormat::Excel => excel(whole, fraction),
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |sum, digit| sum.checked_mul(10)?.checked_add(i64::from(digit - b'0')))
}

fn epoch(unit: EpochUnit, negative: bool, whole: i64, fraction: &[u8]) -> Result<ParsedMoment, FaultKind> {
    let micros = match MICROSECOND_PLACES.checked_sub(unit.places()) {
        Some(places) => {
            let kept = fraction.len().min(places as usize);
            if fraction[kept..].iter().any(|digit| *digit != b'0') {
                return Err(FaultKind::Precision);
            }
            let part = number(&fraction[..kept]).unwrap_or(0) * 10i64.pow(places - kept as u32);
            whole.checked_mul(10i64.pow(places)).and_then(|micros| micros.checked_add(part))
        }
        None => {
            let finer = 10i64.pow(unit.places() - MICROSECOND_PLACES);
            if whole % finer != 0 || fraction.iter().any(|digit| *digit != b'0') {
                return Err(FaultKind::Precision);
            }
            Some(whole / finer)
        }
    };
    let micros = micros.ok_or(FaultKind::OutOfRange)?;
    let micros = if negative { -micros } else { micros };
    let days = micros.div_euclid(MICROS_PER_DAY);
    if !(FIRST_DAY..=LAST_DAY).contains(&days) {
        return Err(FaultKind::OutOfRange);
    }
    let day_micros = micros.rem_euclid(MICROS_PER_DAY);
    Ok(ParsedMoment {
        days: i32::try_from(days).ok(),
        micros: Some(day_micros),
        epoch: true,
        ..ParsedMoment::default()
    })
}

fn excel(serial: i64, fraction: &[u8]) -> Result<ParsedMoment, FaultKind> {
    let (mut day, mut micros) = (serial, day_micros(fraction)?);
    if micros == MICROS_PER_DAY {
        (day, micros) = (day + 1, 0);
    }
    // Day 0 is a time of day without a date.
    if day == 0 {
        return Ok(ParsedMoment { micros: Some(micros), ..ParsedMoment::default() });
    }
    if day == EXCEL_NO_DAY {
        return Err(FaultKind::NoSuchTime);
    }
    let days = EXCEL_FIRST + day - 1 - i64::from(day > EXCEL_NO_DAY);
    if days > LAST_DAY {
        return Err(FaultKind::OutOfRange);
    }
    Ok(ParsedMoment { days: i32::try_from(days).ok(), micros: Some(micros), ..ParsedMoment::default() })
}

/// The microseconds of a fraction of a day, to the nearest millisecond: Excel's fractions are floats, which can't
/// represent most times exactly.
fn day_micros(fraction: &[u8]) -> Result<i64, FaultKind> {
    const MILLISECONDS: u128 = (MICROS_PER_DAY / MICROS_PER_MILLISECOND) as u128;
    let digits = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
    let part = number(digits).ok_or(FaultKind::OutOfRange)?;
    let (part, one) = (u128::try_from(part).unwrap_or(0), 10u128.pow(digits.len() as u32));
    let milliseconds = (part * MILLISECONDS * 2 + one) / (one * 2);
    i64::try_from(milliseconds).map(|n| n * MICROS_PER_MILLISECOND).map_err(|_| FaultKind::OutOfRange)
}
