//! Patterns of dates and times: whether they are valid, and determine a value of the type.

use std::fmt::Write;

use chrono::format::{Fixed, Item, Numeric, Parsed, StrftimeItems};
use chrono::{DateTime, FixedOffset, NaiveDate, Timelike};

use crate::domain::limits::FORMAT_BYTES_MAX;
use crate::domain::pipeline::named_format::{ISO_FORMAT, SerialFormat};
use crate::domain::pipeline::types::{DataType, Temporal, TypeClass};
use crate::domain::problem::ProblemKind;
use crate::domain::text::quoted;

/// The part of a date or time that a pattern's item reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text,
    Date,
    Time,
    Offset,
    /// Seconds since 1970, or a date and a time in one.
    Instant,
    /// A date, a time and an offset in one.
    Whole,
    /// A zone's name, which is read over and would be lost.
    ZoneName,
}

/// Checks one pattern for a type that takes patterns.
///
/// # Errors
/// The problem.
pub(super) fn check(pattern: &str, ty: DataType) -> Result<(), (ProblemKind, String)> {
    let TypeClass::Temporal(temporal) = ty.class() else { return Ok(()) };
    let refuse = |kind, why: String| Err((kind, format!("{} {why}", quoted(pattern))));
    if pattern.len() > FORMAT_BYTES_MAX {
        let why = format!("has {} bytes, expected at most {FORMAT_BYTES_MAX}", pattern.len());
        return refuse(ProblemKind::Limit, why);
    }
    if pattern == ISO_FORMAT {
        return Ok(());
    }
    if let Some(serial) = SerialFormat::parse(pattern) {
        return match serial.suits(temporal) {
            true => Ok(()),
            false => {
                refuse(ProblemKind::TypeMismatch, format!("reads a date and a time; a {ty} is not both (timestamp is)"))
            }
        };
    }
    let items: Vec<Item<'_>> = StrftimeItems::new(pattern).collect();
    if items.contains(&Item::Error) {
        let why = match unknown_specifier(pattern) {
            Some(specifier) => format!("has an unknown specifier `{specifier}`"),
            None => "has an unknown specifier".into(),
        };
        return refuse(ProblemKind::InvalidValue, why);
    }
    let parts: Vec<Part> = items.iter().map(part).collect();
    let has = |wanted: &[Part]| parts.iter().any(|p| wanted.contains(p));
    if has(&[Part::ZoneName]) {
        let why = "reads a zone's name (`%Z`) and ignores it; use `%z` for an offset, or `timezone`";
        return refuse(ProblemKind::InvalidValue, why.into());
    }
    let surplus = match temporal {
        Temporal::Date if has(&[Part::Time, Part::Instant, Part::Whole]) => {
            Some("a time of day, which type `date` doesn't store")
        }
        Temporal::Time if has(&[Part::Date, Part::Instant, Part::Whole]) => {
            Some("a date, which type `time` doesn't store")
        }
        Temporal::Date | Temporal::Time | Temporal::Timestamp if has(&[Part::Offset, Part::Whole]) => {
            Some("an offset; use the type `timestamptz`")
        }
        Temporal::Date | Temporal::Time | Temporal::Timestamp | Temporal::TimestampTz => None,
    };
    if let Some(surplus) = surplus {
        return refuse(ProblemKind::TypeMismatch, format!("reads {surplus}"));
    }
    let is_day = has(&[Part::Date]) && !has(&[Part::Time, Part::Offset, Part::Instant, Part::Whole]);
    let read = match temporal {
        // A day is its midnight.
        Temporal::Timestamp | Temporal::TimestampTz if is_day => Temporal::Date,
        other => other,
    };
    if !round_trips(&items, read, has(&[Part::Offset, Part::Whole])) {
        return refuse(ProblemKind::InvalidValue, format!("doesn't determine a {ty}{}", lacks(temporal, &parts)));
    }
    Ok(())
}

fn lacks(temporal: Temporal, parts: &[Part]) -> &'static str {
    let has = |part| parts.contains(&part) || parts.contains(&Part::Instant) || parts.contains(&Part::Whole);
    match temporal {
        Temporal::Timestamp | Temporal::TimestampTz if !has(Part::Date) => ": it reads no date",
        Temporal::Date | Temporal::Time | Temporal::Timestamp | Temporal::TimestampTz => "",
    }
}

/// The first `%…` that chrono doesn't know.
fn unknown_specifier(pattern: &str) -> Option<String> {
    let at = pattern.match_indices('%').map(|(at, _)| at).find(|&at| {
        // A pattern breaks at the first specifier up to which it can't be read.
        let end = pattern[at + 1..].find('%').map_or(pattern.len(), |next| at + 1 + next);
        StrftimeItems::new(&pattern[..end]).any(|item| item == Item::Error) && !pattern[at..].starts_with("%%")
    })?;
    let mut taken = String::from("%");
    for c in pattern[at + 1..].chars().take(4) {
        taken.push(c);
        if c.is_alphabetic() {
            break;
        }
    }
    Some(taken)
}

fn part(item: &Item<'_>) -> Part {
    match item {
        Item::Numeric(numeric, _) => match numeric {
            Numeric::Year
            | Numeric::YearDiv100
            | Numeric::YearMod100
            | Numeric::IsoYear
            | Numeric::IsoYearDiv100
            | Numeric::IsoYearMod100
            | Numeric::Quarter
            | Numeric::Month
            | Numeric::Day
            | Numeric::WeekFromSun
            | Numeric::WeekFromMon
            | Numeric::IsoWeek
            | Numeric::NumDaysFromSun
            | Numeric::WeekdayFromMon
            | Numeric::Ordinal => Part::Date,
            Numeric::Hour | Numeric::Hour12 | Numeric::Minute | Numeric::Second | Numeric::Nanosecond => Part::Time,
            Numeric::Timestamp => Part::Instant,
            _ => Part::Text,
        },
        Item::Fixed(fixed) => match fixed {
            Fixed::ShortMonthName | Fixed::LongMonthName | Fixed::ShortWeekdayName | Fixed::LongWeekdayName => {
                Part::Date
            }
            Fixed::LowerAmPm
            | Fixed::UpperAmPm
            | Fixed::Nanosecond
            | Fixed::Nanosecond3
            | Fixed::Nanosecond6
            | Fixed::Nanosecond9 => Part::Time,
            Fixed::TimezoneName => Part::ZoneName,
            Fixed::RFC2822 | Fixed::RFC3339 => Part::Whole,
            Fixed::TimezoneOffset
            | Fixed::TimezoneOffsetZ
            | Fixed::TimezoneOffsetColon
            | Fixed::TimezoneOffsetColonZ
            | Fixed::TimezoneOffsetDoubleColon
            | Fixed::TimezoneOffsetTripleColon => Part::Offset,
            // `%#z` and the fractions without a dot, which chrono keeps to itself.
            other if is_permissive_offset(other) => Part::Offset,
            _ => Part::Time,
        },
        Item::Literal(_) | Item::OwnedLiteral(_) | Item::Space(_) | Item::OwnedSpace(_) | Item::Error => Part::Text,
    }
}

/// `%#z`, which reads offsets of several forms, has no public name in chrono.
fn is_permissive_offset(fixed: &Fixed) -> bool {
    format!("{fixed:?}").contains("Permissive")
}

/// Whether values written by the pattern are read back unchanged, to the minute.
fn round_trips(items: &[Item<'_>], temporal: Temporal, has_offset: bool) -> bool {
    let Some(zone) = FixedOffset::east_opt(2 * 3_600) else { return false };
    let samples = [(2013, 10, 25, 13, 47, 58, 123_456_000), (2001, 2, 3, 4, 5, 6, 0)];
    samples.into_iter().all(|(year, month, day, hour, minute, second, nano)| {
        let naive =
            NaiveDate::from_ymd_opt(year, month, day).and_then(|d| d.and_hms_nano_opt(hour, minute, second, nano));
        naive
            .and_then(|naive| round_trips_value(items, temporal, has_offset, naive.and_local_timezone(zone).single()?))
            .is_some()
    })
}

fn round_trips_value(
    items: &[Item<'_>],
    temporal: Temporal,
    has_offset: bool,
    sample: DateTime<FixedOffset>,
) -> Option<()> {
    let mut text = String::new();
    // `%#z` can be read but not written.
    let written = items.iter().map(|item| match item {
        Item::Fixed(fixed) if is_permissive_offset(fixed) => Item::Fixed(Fixed::TimezoneOffsetColon),
        other => other.clone(),
    });
    write!(text, "{}", sample.format_with_items(written)).ok()?;
    let mut parsed = Parsed::new();
    chrono::format::parse(&mut parsed, &text, items.iter()).ok()?;
    let to_minute = |hour, minute| hour == sample.hour() && minute == sample.minute();
    let same = match temporal {
        Temporal::Date => parsed.to_naive_date().ok()? == sample.date_naive(),
        Temporal::Time => parsed.to_naive_time().map(|t| to_minute(t.hour(), t.minute())).ok()?,
        Temporal::Timestamp | Temporal::TimestampTz if has_offset => {
            (parsed.to_datetime().ok()? - sample).num_minutes() == 0
        }
        Temporal::Timestamp | Temporal::TimestampTz => {
            let naive = parsed.to_naive_datetime_with_offset(0).ok()?;
            // Seconds since 1970 are read as UTC, other formats as written.
            let local = naive.date() == sample.date_naive() && to_minute(naive.hour(), naive.minute());
            local || naive.and_utc().timestamp() == sample.timestamp()
        }
    };
    same.then_some(())
}
