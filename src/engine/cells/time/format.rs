//! A declared format: a number ([`super::serial`]), or a strftime pattern as `chrono` reads it, refusing what `chrono` would drop or guess.
//!
//! Stricter than `chrono` in four ways: `%Y` without a sign needs four digits (`24` is not the year 24), adjacent
//! fields of digits have all their digits (`2024115` is not a date by `%Y%m%d`), a fraction of a second is never
//! truncated, and the zone read by `%Z` is honoured or refused instead of ignored. `%f` reads the digits of a fraction
//! of any length, where `chrono` counts nanoseconds: both agree on the nine digits that `chrono` writes, and Python
//! writes six.

use chrono::format::{
    Fixed, Item, Numeric, Pad, ParseError, ParseErrorKind, Parsed, StrftimeItems, parse_and_remainder,
};
use chrono::{Datelike, NaiveDate, NaiveTime, Timelike};

use super::calendar::{DateCache, MICROS_PER_SECOND};
use super::iso;
use super::layout::Layout;
use super::moment::ParsedMoment;
use super::serial;
use super::zone::ZoneName;
use crate::domain::pipeline::named_format::{ISO_FORMAT, SerialFormat};
use crate::domain::pipeline::types::Temporal;
use crate::engine::cells::fault::FaultKind;

/// Days from 0001-01-01 (as day 1) to 1970-01-01.
const DAYS_FROM_CE: i32 = 719_163;
/// Digits of a second's fraction down to nanoseconds.
const NANOSECOND_DIGITS: usize = 9;

pub(super) struct DateTimeFormat {
    kind: FormatKind,
    layout: Option<Layout>,
}

enum FormatKind {
    Iso(Temporal, DateCache),
    Pattern(Vec<FormatField>),
    /// A number, with this byte before a fraction.
    Serial(SerialFormat, u8),
}

/// An item of a pattern.
pub(super) struct FormatField {
    item: Item<'static>,
    /// Its exact number of digits, if adjacent to another field of digits.
    digits: Option<usize>,
}

impl FormatField {
    fn all(items: Vec<Item<'static>>) -> Vec<Self> {
        let adjoins = |at: usize| {
            let before = at.checked_sub(1).is_some_and(|before| ends_in_digits(&items[before]));
            (before, items.get(at + 1).is_some_and(starts_with_digits))
        };
        let digits: Vec<_> = (0..items.len())
            .map(|at| match (&items[at], adjoins(at)) {
                // A fraction may have any length unless digits follow it.
                (Item::Numeric(Numeric::Nanosecond, _), (_, false)) | (_, (false, false)) => None,
                (Item::Numeric(numeric, _), _) => width(numeric),
                _ => None,
            })
            .collect();
        items.into_iter().zip(digits).map(|(item, digits)| Self { item, digits }).collect()
    }
}

fn starts_with_digits(item: &Item<'_>) -> bool {
    match item {
        Item::Literal(text) => text.starts_with(|c: char| c.is_ascii_digit()),
        Item::OwnedLiteral(text) => text.starts_with(|c: char| c.is_ascii_digit()),
        other => ends_in_digits(other),
    }
}

fn ends_in_digits(item: &Item<'_>) -> bool {
    match item {
        Item::Numeric(..) => true,
        Item::Literal(text) => text.ends_with(|c: char| c.is_ascii_digit()),
        Item::OwnedLiteral(text) => text.ends_with(|c: char| c.is_ascii_digit()),
        // The fractions without a dot (`%3f`) have no public name in chrono.
        Item::Fixed(fixed) => format!("{fixed:?}").contains("NoDot"),
        Item::Space(_) | Item::OwnedSpace(_) | Item::Error => false,
    }
}

/// Digits of a number as written by strftime.
fn width(numeric: &Numeric) -> Option<usize> {
    match numeric {
        Numeric::Year | Numeric::IsoYear => Some(4),
        Numeric::YearDiv100
        | Numeric::YearMod100
        | Numeric::IsoYearDiv100
        | Numeric::IsoYearMod100
        | Numeric::Month
        | Numeric::Day
        | Numeric::WeekFromSun
        | Numeric::WeekFromMon
        | Numeric::IsoWeek
        | Numeric::Hour
        | Numeric::Hour12
        | Numeric::Minute
        | Numeric::Second => Some(2),
        Numeric::Quarter | Numeric::NumDaysFromSun | Numeric::WeekdayFromMon => Some(1),
        Numeric::Ordinal => Some(3),
        Numeric::Nanosecond => Some(NANOSECOND_DIGITS),
        _ => None,
    }
}

impl DateTimeFormat {
    /// A pattern with an unknown specifier matches no cell; validation refuses it. `temporal`: the type of the column;
    /// `decimal`: the byte before the fraction of a number.
    pub fn new(pattern: &str, temporal: Temporal, decimal: u8) -> Self {
        if pattern == ISO_FORMAT {
            return Self { kind: FormatKind::Iso(temporal, DateCache::default()), layout: None };
        }
        if let Some(serial) = SerialFormat::parse(pattern) {
            return Self { kind: FormatKind::Serial(serial, decimal), layout: None };
        }
        let items: Vec<Item<'static>> = StrftimeItems::new(pattern).map(Item::to_owned).collect();
        let layout = Layout::new(&items);
        Self { kind: FormatKind::Pattern(FormatField::all(items)), layout }
    }

    /// Reads the whole of `text`, if its fields have fixed positions; `None` is undecided.
    #[inline(always)]
    pub fn quick(&mut self, text: &[u8]) -> Option<ParsedMoment> {
        self.layout.as_mut()?.read(text)
    }

    /// Reads the whole of `text`.
    pub fn read(&mut self, text: &[u8]) -> Result<ParsedMoment, FaultKind> {
        match self.quick(text) {
            Some(moment) => Ok(moment),
            None => match &mut self.kind {
                FormatKind::Iso(temporal, dates) => iso::read(*temporal, text, dates),
                FormatKind::Pattern(fields) => strptime(fields, text),
                FormatKind::Serial(format, decimal) => serial::read(*format, text, *decimal),
            },
        }
    }
}

/// Reads `text` through `chrono`, item by item.
pub(super) fn strptime(fields: &[FormatField], text: &[u8]) -> Result<ParsedMoment, FaultKind> {
    let mut rest = std::str::from_utf8(text).map_err(|_| FaultKind::Syntax)?;
    let mut parsed = Parsed::new();
    let (mut zone, mut impossible) = (None, false);
    for FormatField { item, digits } in fields {
        match item {
            Item::Numeric(Numeric::Nanosecond, _) => {
                rest = read_fraction(&mut parsed, rest, *digits)?;
                continue;
            }
            Item::Numeric(Numeric::Year | Numeric::IsoYear, _) => check_year(rest)?,
            Item::Fixed(Fixed::Nanosecond) => check_fraction(rest)?,
            Item::Fixed(Fixed::RFC3339) => {
                check_year(rest)?;
                rest.find('.').map_or(Ok(()), |dot| check_fraction(&rest[dot..]))?;
            }
            _ => {}
        }
        let before = rest;
        // A field adjacent to others gets exactly its digits.
        let (own, after) = match digits {
            Some(digits) => split_digits(item, rest, *digits)?,
            None => (rest, ""),
        };
        rest = match parse_and_remainder(&mut parsed, own, std::iter::once(item)).map_err(fault) {
            Ok(left) if digits.is_some() && !left.is_empty() => return Err(FaultKind::Syntax),
            Ok(_) if digits.is_some() => after,
            Ok(left) => left,
            Err(FaultKind::NoSuchTime) if digits.is_some() => {
                impossible = true;
                after
            }
            // `20` is not a month, but only the rest of the text shows whether the form matches.
            Err(FaultKind::NoSuchTime) if matches!(item, Item::Numeric(..)) => {
                impossible = true;
                let rest = rest.trim_start();
                rest.get(two_digits(rest)..).unwrap_or_default()
            }
            Err(fault) => return Err(fault),
        };
        if matches!(item, Item::Fixed(Fixed::TimezoneName)) {
            let name = &before[..before.len() - rest.len()];
            zone = if name.is_empty() { None } else { Some(ZoneName::read(name).ok_or(FaultKind::ZoneName)?) };
        }
    }
    if !rest.is_empty() {
        return Err(FaultKind::Syntax);
    }
    if impossible {
        return Err(FaultKind::NoSuchTime);
    }
    Ok(ParsedMoment { zone, ..moment(&parsed)? })
}

/// Splits off a field with an exact number of digits. Blanks may replace leading zeros if the pattern says so (`%e`).
fn split_digits<'t>(item: &Item<'_>, rest: &'t str, digits: usize) -> Result<(&'t str, &'t str), FaultKind> {
    let (own, after) = rest.split_at_checked(digits).ok_or(FaultKind::Syntax)?;
    let padded = if matches!(item, Item::Numeric(_, Pad::Space)) { own.trim_start_matches(' ') } else { own };
    let fits = !padded.is_empty() && padded.bytes().all(|byte| byte.is_ascii_digit());
    if fits { Ok((own, after)) } else { Err(FaultKind::Syntax) }
}

/// Reads the digits of a fraction of a second; returns the rest.
fn read_fraction<'t>(parsed: &mut Parsed, rest: &'t str, exactly: Option<usize>) -> Result<&'t str, FaultKind> {
    let most = exactly.unwrap_or(NANOSECOND_DIGITS);
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if count == 0 || exactly.is_some_and(|exactly| exactly != count) {
        return Err(FaultKind::Syntax);
    }
    let (digits, after) = rest.split_at(count);
    let nanos: i64 = format!("{digits:0<NANOSECOND_DIGITS$}").parse().map_err(|_| FaultKind::Syntax)?;
    parsed.set_nanosecond(nanos).map_err(fault)?;
    Ok(after)
}

fn two_digits(text: &str) -> usize {
    text.bytes().take(2).take_while(u8::is_ascii_digit).count()
}

/// A year without a sign has four digits.
fn check_year(rest: &str) -> Result<(), FaultKind> {
    let rest = rest.trim_start().as_bytes();
    let short = rest.first().is_some_and(u8::is_ascii_digit)
        && !rest.first_chunk::<4>().is_some_and(|year| year.iter().all(u8::is_ascii_digit));
    if short { Err(FaultKind::Syntax) } else { Ok(()) }
}

/// `chrono` drops the digits past the ninth.
fn check_fraction(rest: &str) -> Result<(), FaultKind> {
    let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit);
    if rest.starts_with('.') && digits.skip(6).any(|b| b != b'0') { Err(FaultKind::Precision) } else { Ok(()) }
}

fn fault(error: ParseError) -> FaultKind {
    match error.kind() {
        ParseErrorKind::OutOfRange | ParseErrorKind::Impossible => FaultKind::NoSuchTime,
        _ => FaultKind::Syntax,
    }
}

fn moment(parsed: &Parsed) -> Result<ParsedMoment, FaultKind> {
    if parsed.second() == Some(60) {
        return Err(FaultKind::LeapSecond);
    }
    if parsed.nanosecond().is_some_and(|nanos| nanos % 1000 != 0) {
        return Err(FaultKind::Precision);
    }
    let offset = parsed.offset();
    if offset.is_some_and(|seconds| seconds.abs() >= 86_400) {
        return Err(FaultKind::NoSuchTime);
    }
    if parsed.timestamp().is_some() {
        let local = parsed.to_naive_datetime_with_offset(offset.unwrap_or(0)).map_err(fault)?;
        let (days, micros) = (Some(days(local.date())), Some(micros(local.time())));
        return Ok(ParsedMoment { days, micros, offset, epoch: true, zone: None });
    }
    let has_time = [parsed.hour_div_12(), parsed.hour_mod_12(), parsed.minute(), parsed.second(), parsed.nanosecond()]
        .iter()
        .any(Option::is_some);
    let date = if has_date(parsed) { Some(parsed.to_naive_date().map_err(fault)?) } else { None };
    let time = if has_time { Some(parsed.to_naive_time().map_err(fault)?) } else { None };
    Ok(ParsedMoment { days: date.map(days), micros: time.map(micros), offset, epoch: false, zone: None })
}

fn has_date(parsed: &Parsed) -> bool {
    let years = [
        parsed.year(),
        parsed.year_div_100(),
        parsed.year_mod_100(),
        parsed.isoyear(),
        parsed.isoyear_div_100(),
        parsed.isoyear_mod_100(),
    ];
    let parts = [
        parsed.quarter(),
        parsed.month(),
        parsed.week_from_sun(),
        parsed.week_from_mon(),
        parsed.isoweek(),
        parsed.ordinal(),
        parsed.day(),
    ];
    years.iter().any(Option::is_some) || parts.iter().any(Option::is_some) || parsed.weekday().is_some()
}

fn days(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - DAYS_FROM_CE
}

fn micros(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * MICROS_PER_SECOND + i64::from(time.nanosecond() / 1000)
}

/// Panics if fields at fixed positions of `text` are read differently from `chrono`, for any pattern.
#[cfg(any(test, feature = "fuzzing"))]
pub fn check_format(pattern: &str, text: &str) {
    if DateTimeFormat::new(pattern, Temporal::Timestamp, b'.').layout.is_some() {
        check_layout(pattern, text);
    }
}

/// Like [`check_format`], for patterns that must have a layout.
#[cfg(any(test, feature = "fuzzing"))]
pub fn check_layout(pattern: &str, text: &str) {
    let mut format = DateTimeFormat::new(pattern, Temporal::Timestamp, b'.');
    let FormatKind::Pattern(fields) = &format.kind else { panic!("`{pattern}` is a number") };
    let layout = format.layout.as_mut().unwrap_or_else(|| panic!("`{pattern}` has no layout"));
    // Twice, to use the cached date as well.
    for _ in 0..2 {
        if let Some(moment) = layout.read(text.as_bytes()) {
            assert_eq!(Ok(moment), strptime(fields, text.as_bytes()), "`{text}` by `{pattern}`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_patterns_do_not_need_chrono() {
        for (pattern, text) in [
            ("%Y-%m-%d", "2024-02-29"),
            ("%d.%m.%Y", "29.02.2024"),
            ("%m/%d/%Y %H:%M", "02/29/2024 23:59"),
            ("%Y-%m-%d %H:%M:%S", "2024-02-29 23:59:59"),
            ("%Y-%m-%d %H:%M:%S%.f", "2024-02-29 23:59:59.123456"),
            ("%Y-%m-%dT%H:%M:%S%.3fZ", "2024-02-29T23:59:59.123Z"),
            ("%Y-%m-%dT%H:%M:%S%z", "2024-02-29T23:59:59+0100"),
            ("%FT%T%#z", "2024-02-29T23:59:59Z"),
            ("%H:%M", "23:59"),
            ("%Y%m%d%H%M%S", "20240229235959"),
        ] {
            let mut format = DateTimeFormat::new(pattern, Temporal::Timestamp, b'.');
            let read = format.layout.as_mut().and_then(|layout| layout.read(text.as_bytes()));
            assert!(read.is_some(), "`{text}` by `{pattern}`");
            check_layout(pattern, text);
        }
    }

    #[test]
    fn patterns_with_variable_fields_use_chrono() {
        for pattern in
            ["%b %d %Y", "%Y-%m", "%s", "%I:%M %p", "%H:%M%.f", "%Y-%m-%d %Y", "%j", "%Q", "", "%S", "%z", "%S%f"]
        {
            assert!(DateTimeFormat::new(pattern, Temporal::Timestamp, b'.').layout.is_none(), "{pattern}");
        }
    }
}
