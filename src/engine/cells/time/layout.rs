//! Formats with fields at fixed positions, such as `%d.%m.%Y %H:%M:%S%.f`, read without `chrono`.
//!
//! Invariant: `chrono` reads everything that a layout reads, with the same meaning. The rest is undecided; the caller
//! asks `chrono`, which knows more forms (`1` for `01`) and the faults.

use chrono::format::{Fixed, Item, Numeric, StrftimeItems};

use super::calendar::{self, DateCache, two_digits};
use super::iso;
use super::moment::ParsedMoment;

pub(super) struct Layout {
    /// Bytes of the part with fixed positions; a fraction, literals and an offset may follow.
    len: usize,
    date: Option<DateFields>,
    clock: Option<ClockFields>,
    /// Position and byte of each literal outside the date.
    literals: Vec<(usize, u8)>,
    fraction: Fraction,
    /// Literals after the fraction.
    suffix: Vec<u8>,
    offset: OffsetForm,
    dates: DateCache,
}

struct DateFields {
    span: std::ops::Range<usize>,
    year: usize,
    /// 2 or 4.
    year_digits: usize,
    month: usize,
    day: usize,
    /// Position and byte of each literal within the date.
    literals: Vec<(usize, u8)>,
}

struct ClockFields {
    hour: usize,
    minute: usize,
    second: Option<usize>,
    /// `HH:MM:SS` is contiguous, including its colons.
    together: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Fraction {
    None,
    /// `%.f`.
    Any,
    /// `%.3f` and the like.
    Digits(usize),
}

#[derive(Clone, Copy, PartialEq)]
enum OffsetForm {
    None,
    /// `%z`, `%:z`.
    Numeric,
    /// `%#z`.
    Permissive,
}

/// Collects fields from the items of a pattern.
#[derive(Default)]
struct LayoutBuilder {
    len: usize,
    year: Option<(usize, usize)>,
    month: Option<usize>,
    day: Option<usize>,
    hour: Option<usize>,
    minute: Option<usize>,
    second: Option<usize>,
    literals: Vec<(usize, u8)>,
}

impl LayoutBuilder {
    /// `None` for a field of variable length, or a duplicate.
    fn number(&mut self, number: &Numeric) -> Option<()> {
        let at = self.len;
        if let Numeric::Year | Numeric::YearMod100 = number {
            let digits = if *number == Numeric::Year { 4 } else { 2 };
            self.len += digits;
            return self.year.replace((at, digits)).is_none().then_some(());
        }
        let field = match number {
            Numeric::Month => &mut self.month,
            Numeric::Day => &mut self.day,
            Numeric::Hour => &mut self.hour,
            Numeric::Minute => &mut self.minute,
            Numeric::Second => &mut self.second,
            _ => return None,
        };
        self.len += 2;
        field.replace(at).is_none().then_some(())
    }

    fn literal(&mut self, text: &str) {
        self.literals.extend(text.bytes().enumerate().map(|(i, byte)| (self.len + i, byte)));
        self.len += text.len();
    }

    /// `None` for an incomplete date, or one too long for the cache.
    fn date(&mut self) -> Option<Option<DateFields>> {
        let ((year, year_digits), month, day) = match (self.year, self.month, self.day) {
            (None, None, None) => return Some(None),
            (Some(year), Some(month), Some(day)) => (year, month, day),
            _ => return None,
        };
        let span = year.min(month).min(day)..(year + year_digits).max(month + 2).max(day + 2);
        let clock_within = [self.hour, self.minute, self.second].into_iter().flatten().any(|at| span.contains(&at));
        if clock_within || span.len() > DateCache::TEXT_BYTES_MAX {
            return None;
        }
        let (literals, others) = self.literals.iter().partition(|(at, _)| span.contains(at));
        self.literals = others;
        Some(Some(DateFields { span, year, year_digits, month, day, literals }))
    }

    /// `None` for an incomplete time of day.
    fn clock(&mut self) -> Option<Option<ClockFields>> {
        let (hour, minute) = match (self.hour, self.minute, self.second) {
            (None, None, None) => return Some(None),
            (Some(hour), Some(minute), _) => (hour, minute),
            _ => return None,
        };
        let colons = [(hour + 2, b':'), (hour + 5, b':')];
        let together = minute == hour + 3
            && self.second == Some(hour + 6)
            && colons.iter().all(|colon| self.literals.contains(colon));
        if together {
            self.literals.retain(|literal| !colons.contains(literal));
        }
        Some(Some(ClockFields { hour, minute, second: self.second, together }))
    }
}

impl Layout {
    /// `None` if a field has no fixed position or needs `chrono`.
    pub fn new(items: &[Item<'static>]) -> Option<Self> {
        let permissive = StrftimeItems::new("%#z").next();
        let mut builder = LayoutBuilder::default();
        let (mut fraction, mut suffix, mut offset) = (Fraction::None, Vec::new(), OffsetForm::None);
        for item in items {
            let fixed = fraction == Fraction::None;
            if offset != OffsetForm::None {
                return None;
            }
            match item {
                Item::Numeric(number, _) if fixed => builder.number(number)?,
                Item::OwnedLiteral(_) | Item::Literal(_) | Item::OwnedSpace(_) | Item::Space(_) => {
                    let text = literal(item)?;
                    if fixed { builder.literal(text) } else { suffix.extend(text.bytes()) }
                }
                Item::Fixed(Fixed::Nanosecond) if fixed => fraction = Fraction::Any,
                Item::Fixed(Fixed::Nanosecond3) if fixed => fraction = Fraction::Digits(3),
                Item::Fixed(Fixed::Nanosecond6) if fixed => fraction = Fraction::Digits(6),
                Item::Fixed(Fixed::Nanosecond9) if fixed => fraction = Fraction::Digits(9),
                Item::Fixed(Fixed::TimezoneOffset | Fixed::TimezoneOffsetColon) => offset = OffsetForm::Numeric,
                _ if Some(item) == permissive.as_ref() => offset = OffsetForm::Permissive,
                _ => return None,
            }
        }
        let (date, clock) = (builder.date()?, builder.clock()?);
        let seconds_last = builder.second.is_some_and(|at| at + 2 == builder.len);
        if date.is_none() && clock.is_none() || fraction != Fraction::None && !seconds_last {
            return None;
        }
        let LayoutBuilder { len, literals, .. } = builder;
        Some(Self { len, date, clock, literals, fraction, suffix, offset, dates: DateCache::default() })
    }

    #[inline(always)]
    pub fn read(&mut self, text: &[u8]) -> Option<ParsedMoment> {
        let (head, tail) = text.split_at_checked(self.len)?;
        if !matches(head, &self.literals) {
            return None;
        }
        let days = match &self.date {
            Some(date) => {
                let span = head.get(date.span.clone())?;
                Some(self.dates.get(span, || date.read(head).ok_or(())).ok()?)
            }
            None => None,
        };
        let mut micros = match &self.clock {
            Some(clock) => Some(clock.read(head)?),
            None => None,
        };
        if tail.is_empty() && self.suffix.is_empty() && self.offset == OffsetForm::None {
            return Some(ParsedMoment { days, micros, ..ParsedMoment::default() });
        }
        let (fraction, tail) = self.fraction.read(tail)?;
        micros = micros.map(|micros| micros + fraction);
        let tail = tail.strip_prefix(&self.suffix[..])?;
        let offset = self.offset.read(tail)?;
        Some(ParsedMoment { days, micros, offset, ..ParsedMoment::default() })
    }
}

/// The text of a literal, or of white space of one space.
fn literal<'a>(item: &'a Item<'static>) -> Option<&'a str> {
    match item {
        Item::Literal(text) => Some(text),
        Item::OwnedLiteral(text) => Some(text),
        Item::Space(text) if *text == " " => Some(text),
        Item::OwnedSpace(text) if **text == *" " => Some(text),
        _ => None,
    }
}

#[inline(always)]
fn matches(text: &[u8], literals: &[(usize, u8)]) -> bool {
    literals.iter().all(|(at, byte)| text.get(*at) == Some(byte))
}

impl DateFields {
    fn read(&self, text: &[u8]) -> Option<i32> {
        if !matches(text, &self.literals) {
            return None;
        }
        let first = two_digits(text, self.year)?;
        let year = match self.year_digits {
            4 => first * 100 + two_digits(text, self.year + 2)?,
            _ if first < 70 => 2000 + first,
            _ => 1900 + first,
        };
        calendar::days(year, two_digits(text, self.month)?, two_digits(text, self.day)?)
    }
}

impl ClockFields {
    #[inline(always)]
    fn read(&self, text: &[u8]) -> Option<i64> {
        if self.together {
            return calendar::clock8(text.get(self.hour..)?.first_chunk()?);
        }
        let second = match self.second {
            Some(at) => two_digits(text, at)?,
            None => 0,
        };
        calendar::clock(two_digits(text, self.hour)?, two_digits(text, self.minute)?, second)
    }
}

impl Fraction {
    /// Microseconds and the rest.
    #[inline(always)]
    fn read(self, tail: &[u8]) -> Option<(i64, &[u8])> {
        let [b'.', digits @ ..] = tail else { return Some((0, tail)) };
        if self == Self::None {
            return Some((0, tail));
        }
        let (micros, count, rest) = iso::fraction(digits).ok()?;
        match self {
            Self::Digits(expected) if expected != count => None,
            Self::None | Self::Any | Self::Digits(_) => Some((micros, rest)),
        }
    }
}

impl OffsetForm {
    /// Parses the UTC offset, if the form has one, from `tail`, which must contain nothing else.
    #[inline(always)]
    fn read(self, tail: &[u8]) -> Option<Option<i32>> {
        match self {
            Self::None => tail.is_empty().then_some(None),
            Self::Numeric if tail.len() < 5 => None,
            Self::Numeric | Self::Permissive => iso::offset(tail).map(Some),
        }
    }
}
