//! Parsers of dates, times of day and timestamps.

use arrow::array::{ArrayRef, Date32Array, Time64MicrosecondArray, TimestampMicrosecondArray};
use arrow::buffer::NullBuffer;

use super::calendar::{DateCache, MICROS_PER_SECOND};
use super::format::DateTimeFormat;
use super::iso;
use super::moment::ParsedMoment;
use super::zone::LocalZone;
use crate::domain::pipeline::named_format::ISO_FORMAT;
use crate::domain::pipeline::types::Temporal;
use crate::domain::zones::Zone as NamedZone;
use crate::engine::cells::fault::FaultKind;
use crate::engine::cells::text::Cell;
use crate::engine::cells::typed::{Parser, primitive};

/// The declared formats of a column.
#[derive(Clone, Copy)]
pub struct TimeFormats<'a> {
    pub formats: &'a [String],
    /// The byte before the fraction of a number.
    pub decimal: u8,
}

impl TimeFormats<'_> {
    /// Empty: ISO 8601.
    fn compiled(self, temporal: Temporal) -> Vec<DateTimeFormat> {
        if let [only] = self.formats
            && only == ISO_FORMAT
        {
            return Vec::new();
        }
        self.formats.iter().map(|format| DateTimeFormat::new(format, temporal, self.decimal)).collect()
    }
}

/// The value according to the formats; `None` if two formats give different values.
#[inline(always)]
fn by_formats<T: PartialEq>(
    formats: &mut [DateTimeFormat],
    text: &[u8],
    mut take: impl FnMut(ParsedMoment) -> Result<T, FaultKind>,
) -> Result<T, FaultKind> {
    if let [only] = formats
        && let Some(moment) = only.quick(text)
        && let Ok(value) = take(moment)
    {
        return Ok(value);
    }
    by_each_format(formats, text, &mut take)
}

#[inline(never)]
fn by_each_format<T: PartialEq>(
    formats: &mut [DateTimeFormat],
    text: &[u8],
    take: &mut dyn FnMut(ParsedMoment) -> Result<T, FaultKind>,
) -> Result<T, FaultKind> {
    let several = formats.len() > 1;
    let (mut read, mut first) = (None, None);
    for format in formats {
        match format.read(text).and_then(&mut *take) {
            Ok(value) if read.as_ref().is_some_and(|other| *other != value) => return Err(FaultKind::AmbiguousFormat),
            Ok(value) => read = Some(value),
            // A fault of the value is more specific than a mismatch of the form.
            Err(fault) if first.is_none() && fault != FaultKind::Syntax => first = Some(fault),
            Err(_) => {}
        }
    }
    read.ok_or(first.unwrap_or(if several { FaultKind::NoFormat } else { FaultKind::Syntax }))
}

/// `date`.
pub struct DateParser {
    formats: Vec<DateTimeFormat>,
    dates: DateCache,
}

impl DateParser {
    pub fn new(formats: TimeFormats<'_>) -> Self {
        Self { formats: formats.compiled(Temporal::Date), dates: DateCache::default() }
    }

    fn take(moment: ParsedMoment) -> Result<i32, FaultKind> {
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
pub struct TimeParser {
    formats: Vec<DateTimeFormat>,
}

impl TimeParser {
    pub fn new(formats: TimeFormats<'_>) -> Self {
        Self { formats: formats.compiled(Temporal::Time) }
    }

    fn take(moment: ParsedMoment) -> Result<i64, FaultKind> {
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
pub struct TimestampParser {
    formats: Vec<DateTimeFormat>,
    dates: DateCache,
}

impl TimestampParser {
    pub fn new(formats: TimeFormats<'_>) -> Self {
        Self { formats: formats.compiled(Temporal::Timestamp), dates: DateCache::default() }
    }

    #[inline(always)]
    fn take(moment: ParsedMoment) -> Result<i64, FaultKind> {
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
pub struct TimestampTzParser {
    formats: Vec<DateTimeFormat>,
    dates: DateCache,
    zone: LocalZone,
}

impl TimestampTzParser {
    /// `zone`: the zone of values without an offset; `None`: UTC.
    pub fn new(formats: TimeFormats<'_>, zone: Option<NamedZone>) -> Self {
        Self {
            formats: formats.compiled(Temporal::TimestampTz),
            dates: DateCache::default(),
            zone: LocalZone::new(zone),
        }
    }

    #[inline(always)]
    fn take(zone: &mut LocalZone, moment: ParsedMoment) -> Result<i64, FaultKind> {
        let local = moment.local_micros()?;
        let offset = match moment.offset {
            Some(offset) => offset,
            None if moment.epoch => 0,
            None => zone.offset(local, moment.zone)?,
        };
        local.checked_sub(i64::from(offset) * MICROS_PER_SECOND).ok_or(FaultKind::OutOfRange)
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
