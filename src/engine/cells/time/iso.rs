//! ISO 8601, used without declared formats.
//!
//! Dates are `YYYY-MM-DD`; times `HH:MM`, `HH:MM:SS` or `HH:MM:SS.f` with one to nine digits, where digits past the
//! sixth must be zeros; timestamps a date, `T` or one space, and a time; offsets `Z`, `+hh:mm`, `+hhmm` or `+hh`.

use super::calendar::{self, DateCache, MICROS_PER_SECOND, two_digits};
use super::moment::ParsedMoment;
use crate::domain::pipeline::types::Temporal;
use crate::engine::cells::fault::FaultKind;

/// Reads the whole of `text` as a value of a type.
pub(super) fn read(temporal: Temporal, text: &[u8], dates: &mut DateCache) -> Result<ParsedMoment, FaultKind> {
    match temporal {
        Temporal::Date => Ok(ParsedMoment { days: Some(date(text, dates)?), ..ParsedMoment::default() }),
        Temporal::Time => Ok(ParsedMoment { micros: Some(time(text)?), ..ParsedMoment::default() }),
        Temporal::Timestamp | Temporal::TimestampTz => moment(text, dates),
    }
}

/// Reads the whole of `text` as a date, in days since 1970.
#[inline(always)]
pub(super) fn date(text: &[u8], dates: &mut DateCache) -> Result<i32, FaultKind> {
    if let Ok(ten) = text.try_into() {
        return date10(ten, dates);
    }
    let is_longer = text.first_chunk().is_some_and(|ten| date10(ten, dates).is_ok());
    let separated = text.get(10).is_some_and(|b| matches!(b, b'T' | b' '));
    Err(if is_longer && separated { FaultKind::TimeGiven } else { FaultKind::Syntax })
}

#[inline(always)]
fn date10(text: &[u8; 10], dates: &mut DateCache) -> Result<i32, FaultKind> {
    dates.get(text, || {
        let fields = || {
            let dashes = text[4] == b'-' && text[7] == b'-';
            if dashes {
                Some((two_digits(text, 0)? * 100 + two_digits(text, 2)?, two_digits(text, 5)?, two_digits(text, 8)?))
            } else {
                None
            }
        };
        let (year, month, day) = fields().ok_or(FaultKind::Syntax)?;
        calendar::days(year, month, day).ok_or(FaultKind::NoSuchTime)
    })
}

/// Reads the whole of `text` as a time of day, in microseconds.
pub(super) fn time(text: &[u8]) -> Result<i64, FaultKind> {
    let (micros, rest) = clock(text)?;
    match rest {
        [] => Ok(micros),
        _ if offset(rest).is_some() => Err(FaultKind::OffsetGiven),
        _ => Err(FaultKind::Syntax),
    }
}

/// Reads the whole of `text` as a timestamp, with or without offset.
#[inline(always)]
pub(super) fn moment(text: &[u8], dates: &mut DateCache) -> Result<ParsedMoment, FaultKind> {
    let Some((ten, rest)) = text.split_first_chunk() else { return Err(FaultKind::Syntax) };
    let days = date10(ten, dates)?;
    let rest = match rest {
        [b' ' | b'T', rest @ ..] => rest,
        [] => return Err(FaultKind::TimeMissing),
        _ => return Err(FaultKind::Syntax),
    };
    let (micros, rest) = clock(rest)?;
    let offset = match rest {
        [] => None,
        _ => Some(offset(rest).ok_or(FaultKind::Syntax)?),
    };
    Ok(ParsedMoment { days: Some(days), micros: Some(micros), offset, ..ParsedMoment::default() })
}

/// Reads a time of day; returns the rest.
#[inline(always)]
fn clock(text: &[u8]) -> Result<(i64, &[u8]), FaultKind> {
    if let Some((eight, rest)) = text.split_first_chunk()
        && let Some(micros) = calendar::clock8(eight)
    {
        if rest.first() != Some(&b'.') {
            return Ok((micros, rest));
        }
        let (fraction, _, rest) = fraction(&rest[1..])?;
        return Ok((micros + fraction, rest));
    }
    clock_slow(text)
}

#[cold]
fn clock_slow(text: &[u8]) -> Result<(i64, &[u8]), FaultKind> {
    let fields = || (text.get(2) == Some(&b':')).then(|| Some((two_digits(text, 0)?, two_digits(text, 3)?))).flatten();
    let (hour, minute) = fields().ok_or(FaultKind::Syntax)?;
    if text.get(5) == Some(&b':') {
        let second = two_digits(text, 6).ok_or(FaultKind::Syntax)?;
        return Err(if second == 60 { FaultKind::LeapSecond } else { FaultKind::NoSuchTime });
    }
    let micros = calendar::clock(hour, minute, 0).ok_or(FaultKind::NoSuchTime)?;
    Ok((micros, &text[5..]))
}

/// Reads one to nine digits of a second's fraction: microseconds, the number of digits, and the rest.
#[inline(always)]
pub(super) fn fraction(text: &[u8]) -> Result<(i64, usize, &[u8]), FaultKind> {
    let digits = text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    if digits == 0 || digits > 9 {
        return Err(FaultKind::Syntax);
    }
    let (fraction, rest) = text.split_at(digits);
    let mut micros = 0;
    for place in 0..6 {
        micros = micros * 10 + i64::from(fraction.get(place).map_or(0, |b| b - b'0'));
    }
    if fraction.iter().skip(6).any(|b| *b != b'0') {
        return Err(FaultKind::Precision);
    }
    debug_assert!(micros < MICROS_PER_SECOND);
    Ok((micros, digits, rest))
}

/// Reads the whole of `text` as an offset, in seconds ahead of UTC.
#[inline(always)]
pub(super) fn offset(text: &[u8]) -> Option<i32> {
    let (sign, rest) = match text {
        b"Z" => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let hours = two_digits(rest, 0)?;
    let minutes = match rest.len() {
        2 => 0,
        4 => two_digits(rest, 2)?,
        5 if rest[2] == b':' => two_digits(rest, 3)?,
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60) as i32)
}
