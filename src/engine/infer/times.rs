//! Finds the date, time and timestamp formats that read a column's values.
//!
//! ISO 8601 has priority. A search for patterns starts when no remaining format reads a value; found patterns must also
//! read the values kept from before.

use std::collections::BTreeSet;

use super::counterexample::{CellValue, Counterexample};
use crate::domain::pipeline::named_format::ISO_FORMAT;
use crate::engine::cells::CellProbe;

/// The order of a date's parts, to distinguish readings of the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DateOrder {
    YearFirst,
    DayFirst,
    MonthFirst,
    /// The month is a name, or there is no date.
    Plain,
}

impl DateOrder {
    /// Whether a pattern starts with the day or the month as a number; `None`: neither.
    pub fn of_pattern(pattern: &str) -> Option<Self> {
        match pattern.get(..2) {
            Some("%d") => Some(Self::DayFirst),
            Some("%m") => Some(Self::MonthFirst),
            _ => None,
        }
    }
}

use DateOrder::{DayFirst, MonthFirst, Plain, YearFirst};

const DATES: &[(&str, DateOrder)] = &[
    ("%Y-%m-%d", YearFirst),
    ("%Y/%m/%d", YearFirst),
    ("%Y.%m.%d", YearFirst),
    ("%d/%m/%Y", DayFirst),
    ("%m/%d/%Y", MonthFirst),
    ("%d-%m-%Y", DayFirst),
    ("%m-%d-%Y", MonthFirst),
    ("%d.%m.%Y", DayFirst),
    ("%d/%m/%y", DayFirst),
    ("%m/%d/%y", MonthFirst),
    ("%y/%m/%d", YearFirst),
    ("%d-%m-%y", DayFirst),
    ("%m-%d-%y", MonthFirst),
    ("%y-%m-%d", YearFirst),
    ("%d.%m.%y", DayFirst),
    ("%d-%b-%Y", Plain),
    ("%d %b %Y", Plain),
    ("%b %d, %Y", Plain),
    ("%b %d %Y", Plain),
    ("%d/%b/%Y", Plain),
    ("%d-%b-%y", Plain),
    ("%d-%B-%Y", Plain),
    ("%d %B %Y", Plain),
    ("%B %d, %Y", Plain),
    ("%B %d %Y", Plain),
    ("%a, %d %b %Y", Plain),
    ("%a %b %d %Y", Plain),
];
/// Eight digits, which usually are a number.
const COMPACT_DATE: &str = "%Y%m%d";
const COMPACT_YEARS: std::ops::RangeInclusive<u32> = 1900..=2100;

const TIMES: &[&str] = &["%H:%M:%S", "%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M:%S%p", "%I:%M%p"];
const OFFSETS: &[&str] = &["%#z", " %#z", " UTC", " GMT"];
/// Separators between date and time.
const DATE_TIME_SEPARATORS: &[&str] = &[" ", "T", ", ", ":", "  "];

const TEXT_BYTES_MIN: usize = 4;
const TEXT_BYTES_MAX: usize = 40;
/// Values kept to check new patterns.
const KEPT_MAX: usize = 32;
/// Searches for patterns.
const SEARCHES_MAX: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeKind {
    Date,
    Time,
    Timestamp,
    TimestampTz,
}

impl TimeKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamptz",
        }
    }
}

#[derive(Debug)]
pub(super) struct TimeFormat {
    kind: TimeKind,
    /// `None`: ISO 8601.
    pattern: Option<String>,
    order: DateOrder,
    probe: CellProbe,
}

impl TimeFormat {
    /// All formats that read `text`.
    pub fn all_for(text: &[u8]) -> Vec<Self> {
        if !looks_temporal(text) {
            return Vec::new();
        }
        let mut formats = iso_formats();
        formats.retain_mut(|format| format.reads(text));
        formats.extend(pattern_formats(text, &mut |probe| probe.check(text).is_ok()));
        formats
    }

    pub fn reads(&mut self, text: &[u8]) -> bool {
        looks_temporal(text) && self.probe.check(text).is_ok()
    }

    /// Its name among `formats`. ISO 8601 with an optional zone has none, since it would read a time without a zone as UTC;
    /// for dates and times of day there are patterns.
    fn name(&self) -> Option<&str> {
        match (&self.pattern, self.kind) {
            (Some(pattern), _) => Some(pattern),
            (None, TimeKind::Timestamp) => Some(ISO_FORMAT),
            (None, TimeKind::Date | TimeKind::Time | TimeKind::TimestampTz) => None,
        }
    }

    pub fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.pattern == other.pattern
    }

    /// Whether both may read a text as different days.
    pub fn contradicts(&self, other: &Self) -> bool {
        // A year of four digits in front allows only one order.
        let open = |format: &Self| match format.order {
            DateOrder::DayFirst | DateOrder::MonthFirst => true,
            DateOrder::YearFirst => format.pattern.as_ref().is_some_and(|pattern| pattern.starts_with("%y")),
            DateOrder::Plain => false,
        };
        open(self) && open(other) && self.order != other.order
    }
}

/// Formats that together read all dates of a column, each value by one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeveralFormats {
    pub kind: TimeKind,
    /// With the number of values, the most first.
    pub formats: Vec<(String, u64)>,
    /// Those of days, if others have times.
    pub days: Vec<String>,
    /// Two of them that read some values as different days, with the number of such values.
    pub ambiguous: Option<(String, String, u64)>,
}

/// Formats of a column; more would hide a mistake.
const SEVERAL_MAX: usize = 4;

/// The formats of a column whose values each have one. `read`: for each value, as bits, the formats that read it, with
/// the number of such values.
pub(super) fn several_formats(
    formats: &[&TimeFormat],
    read: &std::collections::BTreeMap<u64, u64>,
) -> Option<SeveralFormats> {
    let named = |at: usize| formats[at].name();
    let kind_of = |at: usize| formats[at].kind;
    // A day is a timestamp at midnight.
    let is_day_or_time = |kind| matches!(kind, TimeKind::Date | TimeKind::Timestamp);
    let agree = |one: TimeKind, other: TimeKind| one == other || is_day_or_time(one) && is_day_or_time(other);
    let mut left: Vec<(u64, u64)> = read.iter().map(|(bits, count)| (*bits, *count)).collect();
    let mut chosen: Vec<(usize, u64)> = Vec::new();
    while !left.is_empty() {
        let kind = chosen.first().map(|(at, _)| kind_of(*at));
        let usable =
            (0..formats.len()).filter(|at| named(*at).is_some() && kind.is_none_or(|kind| agree(kind_of(*at), kind)));
        let share =
            |at: usize| left.iter().filter(|(bits, _)| bits >> at & 1 == 1).map(|(_, count)| count).sum::<u64>();
        let (at, count) =
            usable.map(|at| (at, share(at))).max_by_key(|(at, count)| (*count, std::cmp::Reverse(*at)))?;
        if count == 0 || chosen.len() == SEVERAL_MAX {
            return None;
        }
        chosen.push((at, count));
        left.retain(|(bits, _)| bits >> at & 1 == 0);
    }
    let both = |a: usize, b: usize| {
        read.iter().filter(|(bits, _)| *bits >> a & 1 == 1 && *bits >> b & 1 == 1).map(|(_, count)| count).sum::<u64>()
    };
    // A chosen format stays ambiguous if the opposite order of day and month reads the same values.
    let undecided = |a: usize, b: usize| read.keys().all(|bits| bits >> a & 1 == bits >> b & 1);
    let pairs = chosen.iter().flat_map(|(a, _)| (0..formats.len()).map(move |b| (*a, b)));
    let ambiguous = pairs
        .filter(|(a, b)| a != b && kind_of(*a) == kind_of(*b) && formats[*a].contradicts(formats[*b]))
        .map(|(a, b)| (a, b, both(a, b)))
        .find(|(a, b, count)| *count > 0 && (chosen.iter().any(|(at, _)| at == b) || undecided(*a, *b)));
    let first = kind_of(chosen.first()?.0);
    let has_times = chosen.iter().any(|(at, _)| kind_of(*at) == TimeKind::Timestamp);
    let days = chosen.iter().filter(|(at, _)| has_times && kind_of(*at) == TimeKind::Date);
    Some(SeveralFormats {
        kind: if has_times { TimeKind::Timestamp } else { first },
        days: days.filter_map(|(at, _)| named(*at)).map(str::to_owned).collect(),
        ambiguous: ambiguous.and_then(|(a, b, count)| Some((named(a)?.to_owned(), named(b)?.to_owned(), count))),
        formats: chosen.into_iter().filter_map(|(at, count)| Some((named(at)?.to_owned(), count))).collect(),
    })
}

/// A remaining reading of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeReading {
    pub kind: TimeKind,
    pub pattern: Option<String>,
    pub order: DateOrder,
}

/// The dates and times of a column.
#[derive(Debug, Default)]
pub(super) struct Times {
    formats: Vec<TimeFormat>,
    kept: Vec<Vec<u8>>,
    searches: u32,
    seen: u64,
    /// Values without a zone.
    naive: u64,
    last_naive: bool,
    counterexample: Option<Counterexample>,
    /// The first values that ruled out patterns, newest last.
    ruled_out: Vec<(String, Counterexample)>,
    /// The first and the second number of all values.
    parts: [BTreeSet<u8>; 2],
}

impl Times {
    /// Repeats the previous value.
    pub fn repeat_last(&mut self) {
        self.seen += 1;
        self.naive += u64::from(self.last_naive);
    }

    pub fn observe(&mut self, value: &CellValue<'_>) {
        if self.counterexample.is_some() {
            return;
        }
        self.seen += 1;
        if !looks_temporal(value.text) {
            self.rule_out(value);
            return;
        }
        let ruled_out = &mut self.ruled_out;
        self.formats.retain_mut(|format| {
            let reads = format.probe.check(value.text).is_ok();
            if !reads {
                let name = format.pattern.clone().unwrap_or_else(|| "ISO 8601".to_owned());
                if !ruled_out.iter().any(|(known, _)| *known == name) {
                    ruled_out.push((name, value.counterexample("")));
                }
            }
            reads
        });
        if self.formats.is_empty() {
            self.search(value);
        }
        if self.kept.len() < KEPT_MAX && !self.kept.iter().any(|kept| kept == value.text) {
            self.kept.push(value.text.to_vec());
        }
        if let Some(numbers) = first_numbers(value.text) {
            for (part, number) in self.parts.iter_mut().zip(numbers) {
                part.insert(number);
            }
        }
        self.last_naive = !has_zone(value.text);
        self.naive += u64::from(self.last_naive);
    }

    fn rule_out(&mut self, value: &CellValue<'_>) {
        self.counterexample = Some(value.counterexample(""));
        self.formats.clear();
        self.kept = Vec::new();
    }

    /// Searches for formats that read `value` and all kept values.
    fn search(&mut self, value: &CellValue<'_>) {
        self.searches += 1;
        if self.searches > SEARCHES_MAX {
            return self.rule_out(value);
        }
        let kept = &self.kept;
        let mut reads = |probe: &mut CellProbe| {
            probe.check(value.text).is_ok() && kept.iter().all(|text| probe.check(text).is_ok())
        };
        self.formats =
            iso_formats().into_iter().filter_map(|mut format| reads(&mut format.probe).then_some(format)).collect();
        if self.formats.is_empty() {
            self.formats = pattern_formats(value.text, &mut reads);
        }
        if self.formats.is_empty() {
            self.rule_out(value);
        }
    }

    /// The remaining readings, best first: the first for each order of a date's parts.
    pub fn readings(&self) -> Vec<TimeReading> {
        let mut readings: Vec<TimeReading> = Vec::new();
        let naive = self.formats.iter().any(|format| format.kind == TimeKind::Timestamp);
        for format in &self.formats {
            // A column that `timestamp` reads needs no zone.
            if format.kind == TimeKind::TimestampTz && naive {
                continue;
            }
            if !readings.iter().any(|known| known.order == format.order && known.kind == format.kind) {
                readings.push(TimeReading { kind: format.kind, pattern: format.pattern.clone(), order: format.order });
            }
        }
        readings
    }

    /// The order of day and month by which all dates are of one month, and many days of it. Dates that all start with 1 may
    /// be the first days of months.
    pub fn order_of_one_month(&self) -> Option<DateOrder> {
        const DAYS_MIN: usize = 3;
        let [first, second] = &self.parts;
        match (first.len(), second.len()) {
            (days, 1) if days >= DAYS_MIN && !second.contains(&1) => Some(DayFirst),
            (1, days) if days >= DAYS_MIN && !first.contains(&1) => Some(MonthFirst),
            _ => None,
        }
    }

    /// Values without a zone, and all values.
    pub fn without_zone(&self) -> (u64, u64) {
        (self.naive, self.seen)
    }

    /// The value that is neither a date nor a time.
    pub fn counterexample(&self) -> Option<&Counterexample> {
        self.counterexample.as_ref()
    }

    /// The values that ruled out formats.
    pub fn ruled_out(&self) -> &[(String, Counterexample)] {
        &self.ruled_out
    }
}

/// The numbers before and after the first separator, of at most two digits each.
fn first_numbers(text: &[u8]) -> Option<[u8; 2]> {
    let mut numbers = text.split(|byte| !byte.is_ascii_digit());
    let mut next = || {
        let digits = numbers.next().filter(|digits| (1..=2).contains(&digits.len()))?;
        Some(digits.iter().fold(0, |number, digit| number * 10 + (digit - b'0')))
    };
    Some([next()?, next()?])
}

/// A cheap test, since most text is not a date.
fn looks_temporal(text: &[u8]) -> bool {
    if !(TEXT_BYTES_MIN..=TEXT_BYTES_MAX).contains(&text.len()) {
        return false;
    }
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    if digits == text.len() {
        return digits == 8;
    }
    digits >= 3 && text.iter().filter(|b| matches!(b, b'-' | b'/' | b'.' | b':' | b' ')).count() >= 1 && {
        let first = text[0];
        first.is_ascii_digit() || first.is_ascii_alphabetic()
    }
}

fn iso_formats() -> Vec<TimeFormat> {
    let format = |kind, probe| TimeFormat { kind, pattern: None, order: YearFirst, probe };
    vec![
        format(TimeKind::Date, CellProbe::date(&[])),
        format(TimeKind::Time, CellProbe::time(&[])),
        format(TimeKind::Timestamp, CellProbe::timestamp(&[])),
        format(TimeKind::TimestampTz, CellProbe::timestamptz(&[])),
    ]
}

fn pattern_formats(text: &[u8], reads: &mut dyn FnMut(&mut CellProbe) -> bool) -> Vec<TimeFormat> {
    let mut formats = Vec::new();
    let mut try_one = |kind: TimeKind, pattern: String, order| {
        let patterns = [pattern];
        let mut probe = match kind {
            TimeKind::Date => CellProbe::date(&patterns),
            TimeKind::Time => CellProbe::time(&patterns),
            TimeKind::Timestamp => CellProbe::timestamp(&patterns),
            TimeKind::TimestampTz => CellProbe::timestamptz(&patterns),
        };
        if reads(&mut probe) {
            let [pattern] = patterns;
            formats.push(TimeFormat { kind, pattern: Some(pattern), order, probe });
        }
    };
    if text.iter().all(u8::is_ascii_digit) {
        let year = std::str::from_utf8(&text[..4.min(text.len())]).ok().and_then(|y| y.parse().ok());
        if year.is_some_and(|year| COMPACT_YEARS.contains(&year)) {
            try_one(TimeKind::Date, COMPACT_DATE.to_owned(), YearFirst);
        }
        return formats;
    }
    for (date, order) in DATES {
        try_one(TimeKind::Date, (*date).to_owned(), *order);
    }
    if !text.contains(&b':') {
        return formats;
    }
    for time in TIMES {
        try_one(TimeKind::Time, (*time).to_owned(), Plain);
    }
    for (date, order) in starting_dates(text) {
        for joint in DATE_TIME_SEPARATORS {
            for time in TIMES {
                try_one(TimeKind::Timestamp, format!("{date}{joint}{time}"), order);
                for offset in OFFSETS {
                    try_one(TimeKind::TimestampTz, format!("{date}{joint}{time}{offset}"), order);
                }
            }
        }
    }
    formats
}

/// The patterns that read a prefix of `text` up to a separator.
fn starting_dates(text: &[u8]) -> Vec<(&'static str, DateOrder)> {
    let ends: Vec<usize> = (1..text.len()).filter(|&i| matches!(text[i], b' ' | b'T' | b',' | b':')).collect();
    let starts_with = |date: &str| {
        let mut probe = CellProbe::date(&[date.to_owned()]);
        ends.iter().any(|&end| probe.check(&text[..end]).is_ok())
    };
    DATES.iter().filter(|(date, _)| starts_with(date)).copied().collect()
}

/// Whether a timestamp has a zone after its time of day.
fn has_zone(text: &[u8]) -> bool {
    let colon = text.iter().position(|b| *b == b':').unwrap_or(text.len());
    let rest = &text[colon..];
    rest.iter().any(|b| matches!(b, b'+' | b'-' | b'Z')) || rest.ends_with(b"UTC") || rest.ends_with(b"GMT")
}

/// The part of a timestamp before its time of day, to count days.
pub(super) fn day_of(text: &[u8]) -> &[u8] {
    let colon = text.iter().position(|b| *b == b':').unwrap_or(text.len());
    let hour = text[..colon].iter().rposition(|b| !b.is_ascii_digit()).unwrap_or(colon);
    &text[..hour]
}
