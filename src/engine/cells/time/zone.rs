//! Local times of a zone, and zones named in cells.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::domain::zones::{self, Zone as NamedZone};
use crate::engine::cells::fault::FaultKind;

/// A zone named in a cell (`%Z`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneName {
    /// A name of the time-zone database with a `/`.
    Known(NamedZone),
    /// `UTC`, `GMT` or `Z`.
    Utc,
    /// Anything else: only the abbreviation of the column's own zone at that time is accepted, such as `EST` in New
    /// York in winter.
    Abbreviation([u8; 8]),
}

impl ZoneName {
    /// `None` if it can't be a zone.
    pub fn read(text: &str) -> Option<Self> {
        match text {
            "UTC" | "GMT" | "Z" => Some(Self::Utc),
            _ if text.contains('/') => zones::database().zone(text).map(Self::Known),
            _ => {
                let mut name = [0; 8];
                name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
                Some(Self::Abbreviation(name))
            }
        }
    }

    /// Whether this is the abbreviation of `zone` at the local time `seconds` (since 1970) with `offset`.
    fn applies_at(self, zone: &TimeZone, seconds: i64, offset: Offset) -> bool {
        let ZoneName::Abbreviation(name) = self else { return true };
        let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        Timestamp::from_second(seconds - i64::from(offset.seconds()))
            .is_ok_and(|at| zone.to_offset_info(at).abbreviation().as_bytes() == &name[..len])
    }
}

/// The meaning of local times without an offset.
pub(super) struct LocalZone {
    zone: Option<&'static TimeZone>,
    /// Days with one constant offset, by their number modulo the length.
    days: Vec<KnownDay>,
}

#[derive(Clone, Copy)]
struct KnownDay {
    day: i64,
    /// `None`: the offset changes on that day.
    offset: Option<i32>,
}

const KNOWN_DAYS: i64 = 512;

impl LocalZone {
    pub fn new(zone: Option<NamedZone>) -> Self {
        let zone = zone.filter(|zone| zone.name() != "UTC").and_then(NamedZone::rules);
        let slots = if zone.is_some() { KNOWN_DAYS as usize } else { 0 };
        Self { zone, days: vec![KnownDay { day: i64::MIN, offset: None }; slots] }
    }

    /// Seconds that local time is ahead of UTC when clocks show `local` (microseconds since 1970).
    #[inline(always)]
    pub fn offset(&mut self, local: i64, named: Option<ZoneName>) -> Result<i32, FaultKind> {
        match (self.zone, named) {
            (None, None) => Ok(0),
            (Some(zone), None) => self.offset_on_day(zone, local),
            (_, Some(ZoneName::Utc)) => Ok(0),
            (_, Some(ZoneName::Known(zone))) => exact(zone.rules().unwrap_or(&TimeZone::UTC), local, None),
            (zone, Some(name)) => exact(zone.unwrap_or(&TimeZone::UTC), local, Some(name)),
        }
    }

    fn offset_on_day(&mut self, zone: &TimeZone, local: i64) -> Result<i32, FaultKind> {
        let day = local.div_euclid(MICROS_PER_DAY);
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
fn constant_offset(zone: &TimeZone, day: i64) -> Option<i32> {
    let at =
        |hour: i64| exact(zone, day.checked_mul(MICROS_PER_DAY)?.checked_add(hour * (MICROS_PER_DAY / 24))?, None).ok();
    let first = at(0)?;
    (1..=24).all(|hour| at(hour) == Some(first)).then_some(first)
}

fn exact(zone: &TimeZone, local: i64, named: Option<ZoneName>) -> Result<i32, FaultKind> {
    let seconds = within_calendar(local).div_euclid(MICROS_PER_SECOND);
    let local = Timestamp::from_second(seconds).map_err(|_| FaultKind::OutOfRange)?;
    let applies_at = |offset| named.is_none_or(|name| name.applies_at(zone, seconds, offset));
    match zone.to_ambiguous_timestamp(Offset::UTC.to_datetime(local)).offset() {
        AmbiguousOffset::Unambiguous { offset } if applies_at(offset) => Ok(offset.seconds()),
        AmbiguousOffset::Unambiguous { .. } => Err(FaultKind::ZoneName),
        AmbiguousOffset::Fold { before, after } => match (applies_at(before), applies_at(after)) {
            (true, true) => Err(FaultKind::AmbiguousLocal),
            (true, false) => Ok(before.seconds()),
            (false, true) => Ok(after.seconds()),
            (false, false) => Err(FaultKind::ZoneName),
        },
        AmbiguousOffset::Gap { .. } => Err(FaultKind::SkippedLocal),
    }
}

/// A local time within `jiff`'s range at which every zone has the same offset as at `local`: the calendar and the rules
/// of zones repeat after 400 years, and before the first transition nothing changes.
fn within_calendar(local: i64) -> i64 {
    const CYCLE: i64 = 146_097 * MICROS_PER_DAY;
    const LATEST: i64 = 15 * CYCLE;
    const EARLIEST: i64 = -25 * CYCLE;
    if (EARLIEST..LATEST).contains(&local) {
        return local;
    }
    local.rem_euclid(CYCLE) + if local < 0 { EARLIEST } else { LATEST - CYCLE }
}
