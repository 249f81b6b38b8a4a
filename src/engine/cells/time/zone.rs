//! Local times of a zone, and the zones that cells name.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{OffsetName, Tz, TzOffset};

use super::calendar::MICROS_A_DAY;
use crate::engine::cells::fault::FaultKind;

/// A zone as a cell writes it (`%Z`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneName {
    /// `UTC`, `GMT`, `Z`, or a name of the time-zone database with a `/`.
    Known(Tz),
    /// Anything else: only what the column's own zone is called at that time is taken, as `EST` in New York in winter.
    Abbreviation([u8; 8]),
}

impl ZoneName {
    /// `None` if it can't be a zone.
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "UTC" | "GMT" | "Z" => Some(Self::Known(Tz::UTC)),
            _ if text.contains('/') => text.parse().ok().map(Self::Known),
            _ => {
                let mut name = [0; 8];
                name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
                Some(Self::Abbreviation(name))
            }
        }
    }

    fn is_called(self, offset: &TzOffset) -> bool {
        let ZoneName::Abbreviation(name) = self else { return true };
        let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        offset.abbreviation().is_some_and(|known| known.as_bytes() == &name[..len])
    }
}

/// What a local time without an offset means.
pub(super) struct Zone {
    zone: Option<Tz>,
    /// Days whose every hour has one offset, by their number modulo the length.
    days: Vec<KnownDay>,
}

#[derive(Clone, Copy)]
struct KnownDay {
    day: i64,
    /// `None`: the offset changes on that day.
    offset: Option<i32>,
}

const KNOWN_DAYS: i64 = 512;

impl Zone {
    pub fn new(zone: Option<Tz>) -> Self {
        let zone = zone.filter(|zone| *zone != Tz::UTC);
        let slots = if zone.is_some() { KNOWN_DAYS as usize } else { 0 };
        Self { zone, days: vec![KnownDay { day: i64::MIN, offset: None }; slots] }
    }

    /// Seconds that local time is ahead of UTC when clocks show `local` (microseconds since 1970).
    #[inline(always)]
    pub fn offset(&mut self, local: i64, named: Option<ZoneName>) -> Result<i32, FaultKind> {
        match (self.zone, named) {
            (None, None) => Ok(0),
            (Some(zone), None) => self.of_day(zone, local),
            (_, Some(ZoneName::Known(zone))) => exact(zone, local, None),
            (zone, Some(name)) => exact(zone.unwrap_or(Tz::UTC), local, Some(name)),
        }
    }

    fn of_day(&mut self, zone: Tz, local: i64) -> Result<i32, FaultKind> {
        let day = local.div_euclid(MICROS_A_DAY);
        let slot = &mut self.days[day.rem_euclid(KNOWN_DAYS) as usize];
        if slot.day != day {
            *slot = KnownDay { day, offset: constant_offset(zone, day) };
        }
        match slot.offset {
            Some(offset) => Ok(offset),
            None => exact(zone, local, None),
        }
    }
}

/// The offset of a day on which it does not change.
fn constant_offset(zone: Tz, day: i64) -> Option<i32> {
    let at =
        |hour: i64| exact(zone, day.checked_mul(MICROS_A_DAY)?.checked_add(hour * (MICROS_A_DAY / 24))?, None).ok();
    let first = at(0)?;
    (1..=24).all(|hour| at(hour) == Some(first)).then_some(first)
}

fn exact(zone: Tz, local: i64, named: Option<ZoneName>) -> Result<i32, FaultKind> {
    let local: NaiveDateTime = DateTime::from_timestamp_micros(local).ok_or(FaultKind::OutOfRange)?.naive_utc();
    let is_called = |offset: &TzOffset| named.is_none_or(|name| name.is_called(offset));
    let seconds = |offset: TzOffset| offset.fix().local_minus_utc();
    match zone.offset_from_local_datetime(&local) {
        MappedLocalTime::Single(offset) if is_called(&offset) => Ok(seconds(offset)),
        MappedLocalTime::Single(_) => Err(FaultKind::ZoneName),
        MappedLocalTime::Ambiguous(a, b) => match (is_called(&a), is_called(&b)) {
            (true, true) => Err(FaultKind::AmbiguousLocal),
            (true, false) => Ok(seconds(a)),
            (false, true) => Ok(seconds(b)),
            (false, false) => Err(FaultKind::ZoneName),
        },
        MappedLocalTime::None => Err(FaultKind::SkippedLocal),
    }
}
