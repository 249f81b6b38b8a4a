//! The date and time in a cell.

use super::calendar::MICROS_PER_DAY;
use super::zone::ZoneName;
use crate::engine::cells::fault::FaultKind;

/// The date and time in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ParsedMoment {
    /// Since 1970-01-01.
    pub days: Option<i32>,
    /// Since midnight.
    pub micros: Option<i64>,
    /// Seconds that local time is ahead of UTC.
    pub offset: Option<i32>,
    /// The cell counts seconds since 1970 in UTC (`%s`).
    pub epoch: bool,
    /// The zone named in the cell (`%Z`).
    pub zone: Option<ZoneName>,
}

impl ParsedMoment {
    pub fn has_offset(&self) -> bool {
        self.offset.is_some() || self.zone.is_some()
    }

    /// Local microseconds since 1970; at midnight if the time of day is missing.
    pub fn local_micros(&self) -> Result<i64, FaultKind> {
        let days = self.days.ok_or(FaultKind::Syntax)?;
        let micros = self.micros.unwrap_or(0);
        i64::from(days).checked_mul(MICROS_PER_DAY).and_then(|m| m.checked_add(micros)).ok_or(FaultKind::OutOfRange)
    }
}
