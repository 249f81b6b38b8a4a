//! Dates, times of day and timestamps: ISO 8601, or the declared formats in their order.
//!
//! - [`iso`]: what is read without formats; [`format`]: a strftime pattern, through [`layout`] where its fields stand at
//!   fixed places and through `chrono` otherwise; [`zone`]: local times; [`calendar`]: the arithmetic.
//!
//! Invariant: no part of a cell is dropped. A date keeps no time of day but midnight, a `timestamp` takes no offset, and
//! nothing is finer than a microsecond.

mod calendar;
mod format;
mod iso;
mod layout;
mod zone;

use arrow::array::{ArrayRef, Date32Array, Time64MicrosecondArray, TimestampMicrosecondArray};
use arrow::buffer::NullBuffer;

use super::fault::FaultKind;
use super::text::Cell;
use super::typed::{Parser, primitive};
use crate::domain::zones::Zone as NamedZone;
use calendar::{DateCache, MICROS_A_DAY, MICROS_A_SECOND};
use format::Format;
use zone::{Zone, ZoneName};

/// What a cell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Moment {
    /// Since 1970-01-01.
    days: Option<i32>,
    /// Since midnight.
    micros: Option<i64>,
    /// Seconds that local time is ahead of UTC.
    offset: Option<i32>,
    /// The cell counts seconds since 1970 in UTC (`%s`).
    epoch: bool,
    /// The zone that the cell names (`%Z`).
    zone: Option<ZoneName>,
}

impl Moment {
    fn has_offset(&self) -> bool {
        self.offset.is_some() || self.zone.is_some()
    }

    /// Microseconds since 1970 as the cell's clock shows them; without a time of day, midnight.
    fn local_micros(&self) -> Result<i64, FaultKind> {
        let days = self.days.ok_or(FaultKind::Syntax)?;
        let micros = self.micros.unwrap_or(0);
        i64::from(days).checked_mul(MICROS_A_DAY).and_then(|m| m.checked_add(micros)).ok_or(FaultKind::OutOfRange)
    }
}

/// Tries formats in their order.
#[inline(always)]
fn by_formats<T>(
    formats: &mut [Format],
    text: &[u8],
    mut take: impl FnMut(Moment) -> Result<T, FaultKind>,
) -> Result<T, FaultKind> {
    if let Some(moment) = formats.first_mut().and_then(|first| first.quick(text))
        && let Ok(value) = take(moment)
    {
        return Ok(value);
    }
    by_each_format(formats, text, &mut take)
}

#[inline(never)]
fn by_each_format<T>(
    formats: &mut [Format],
    text: &[u8],
    take: &mut dyn FnMut(Moment) -> Result<T, FaultKind>,
) -> Result<T, FaultKind> {
    let several = formats.len() > 1;
    let mut first = None;
    for format in formats {
        match format.read(text).and_then(&mut *take) {
            Ok(value) => return Ok(value),
            // A fault of the value says more than that the form is another.
            Err(fault) if first.is_none() && fault != FaultKind::Syntax => first = Some(fault),
            Err(_) => {}
        }
    }
    Err(first.unwrap_or(if several { FaultKind::NoFormat } else { FaultKind::Syntax }))
}

fn compiled(formats: &[String]) -> Vec<Format> {
    formats.iter().map(|f| Format::new(f)).collect()
}

/// `date`.
pub(super) struct DateParser {
    formats: Vec<Format>,
    dates: DateCache,
}

impl DateParser {
    pub fn new(formats: &[String]) -> Self {
        Self { formats: compiled(formats), dates: DateCache::default() }
    }

    fn take(moment: Moment) -> Result<i32, FaultKind> {
        if moment.has_offset() {
            return Err(FaultKind::OffsetGiven);
        }
        if moment.micros.unwrap_or(0) != 0 {
            return Err(FaultKind::TimeGiven);
        }
        moment.days.ok_or(FaultKind::Syntax)
    }
}

impl Parser for DateParser {
    type Value = i32;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<i32, FaultKind> {
        if self.formats.is_empty() {
            return iso::date(cell.bytes(), &mut self.dates);
        }
        by_formats(&mut self.formats, cell.bytes(), Self::take)
    }

    fn array(&self, values: Vec<i32>, nulls: Option<NullBuffer>) -> ArrayRef {
        primitive(Date32Array::new(values.into(), nulls))
    }
}

/// `time`.
pub(super) struct TimeParser {
    formats: Vec<Format>,
}

impl TimeParser {
    pub fn new(formats: &[String]) -> Self {
        Self { formats: compiled(formats) }
    }

    fn take(moment: Moment) -> Result<i64, FaultKind> {
        if moment.has_offset() {
            return Err(FaultKind::OffsetGiven);
        }
        if moment.days.is_some() {
            return Err(FaultKind::DateGiven);
        }
        moment.micros.ok_or(FaultKind::Syntax)
    }
}

impl Parser for TimeParser {
    type Value = i64;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<i64, FaultKind> {
        if self.formats.is_empty() {
            return iso::time(cell.bytes());
        }
        by_formats(&mut self.formats, cell.bytes(), Self::take)
    }

    fn array(&self, values: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
        primitive(Time64MicrosecondArray::new(values.into(), nulls))
    }
}

/// `timestamp`.
pub(super) struct TimestampParser {
    formats: Vec<Format>,
    dates: DateCache,
}

impl TimestampParser {
    pub fn new(formats: &[String]) -> Self {
        Self { formats: compiled(formats), dates: DateCache::default() }
    }

    #[inline(always)]
    fn take(moment: Moment) -> Result<i64, FaultKind> {
        if moment.has_offset() { Err(FaultKind::OffsetGiven) } else { moment.local_micros() }
    }
}

impl Parser for TimestampParser {
    type Value = i64;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<i64, FaultKind> {
        if self.formats.is_empty() {
            return Self::take(iso::moment(cell.bytes(), &mut self.dates)?);
        }
        by_formats(&mut self.formats, cell.bytes(), Self::take)
    }

    fn array(&self, values: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
        primitive(TimestampMicrosecondArray::new(values.into(), nulls))
    }
}

/// `timestamptz`.
pub(super) struct TimestampTzParser {
    formats: Vec<Format>,
    dates: DateCache,
    zone: Zone,
}

impl TimestampTzParser {
    /// `zone` is what a value without an offset means; `None`: UTC.
    pub fn new(formats: &[String], zone: Option<NamedZone>) -> Self {
        Self { formats: compiled(formats), dates: DateCache::default(), zone: Zone::new(zone) }
    }

    #[inline(always)]
    fn take(zone: &mut Zone, moment: Moment) -> Result<i64, FaultKind> {
        let local = moment.local_micros()?;
        let offset = match moment.offset {
            Some(offset) => offset,
            None if moment.epoch => 0,
            None => zone.offset(local, moment.zone)?,
        };
        local.checked_sub(i64::from(offset) * MICROS_A_SECOND).ok_or(FaultKind::OutOfRange)
    }
}

impl Parser for TimestampTzParser {
    type Value = i64;

    #[inline(always)]
    fn parse(&mut self, cell: Cell<'_>) -> Result<i64, FaultKind> {
        let zone = &mut self.zone;
        if self.formats.is_empty() {
            return Self::take(zone, iso::moment(cell.bytes(), &mut self.dates)?);
        }
        by_formats(&mut self.formats, cell.bytes(), |moment| Self::take(zone, moment))
    }

    fn array(&self, values: Vec<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
        primitive(TimestampMicrosecondArray::new(values.into(), nulls).with_timezone("UTC"))
    }
}

#[cfg(any(test, feature = "fuzzing"))]
/// Panics if fields at fixed places of `text` are read otherwise than `chrono` reads them, whatever the pattern.
pub fn check_format(pattern: &str, text: &str) {
    if Format::new(pattern).has_layout() {
        format::check_layout(pattern, text);
    }
}

/// Panics if a layout of `pattern` takes `text` otherwise than `chrono` does, or takes no text of the usual form.
#[cfg(test)]
pub(super) fn check_layout(pattern: &str, text: &str) {
    format::check_layout(pattern, text);
}
