//! Days and ranges of days by their distance from today.

use chrono::{Datelike, Days, Months, NaiveDate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A day by its distance from today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DayPreset {
    Today,
    Yesterday,
    /// The Monday of this week.
    StartOfWeek,
    StartOfMonth,
    StartOfQuarter,
    StartOfYear,
}

/// A range of days by its distance from today; weeks begin on Monday. Presets other than past ones include today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RangePreset {
    Today,
    Yesterday,
    #[serde(rename = "last_7_days")]
    Last7Days,
    #[serde(rename = "last_14_days")]
    Last14Days,
    #[serde(rename = "last_28_days")]
    Last28Days,
    #[serde(rename = "last_30_days")]
    Last30Days,
    #[serde(rename = "last_90_days")]
    Last90Days,
    #[serde(rename = "last_180_days")]
    Last180Days,
    #[serde(rename = "last_365_days")]
    Last365Days,
    ThisWeek,
    LastWeek,
    ThisMonth,
    LastMonth,
    ThisQuarter,
    LastQuarter,
    ThisYear,
    LastYear,
    /// From 0001-01-01 to 9999-12-31.
    All,
}

/// A first and a last day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayRange {
    pub start: NaiveDate,
    pub end: NaiveDate,
}

fn first_of_month(day: NaiveDate) -> NaiveDate {
    day.with_day(1).unwrap_or(day)
}

fn first_of_quarter(day: NaiveDate) -> NaiveDate {
    let month = (day.month0() / 3) * 3;
    first_of_month(day).with_month0(month).unwrap_or(day)
}

fn first_of_year(day: NaiveDate) -> NaiveDate {
    NaiveDate::from_ymd_opt(day.year(), 1, 1).unwrap_or(day)
}

fn monday(day: NaiveDate) -> NaiveDate {
    back(day, day.weekday().num_days_from_monday().into())
}

fn back(day: NaiveDate, days: u64) -> NaiveDate {
    day.checked_sub_days(Days::new(days)).unwrap_or(day)
}

/// `count` months, starting at `start`.
fn months(start: NaiveDate, count: u32) -> DayRange {
    let next = start.checked_add_months(Months::new(count)).unwrap_or(start);
    DayRange { start, end: back(next, 1) }
}

fn months_before(start: NaiveDate, count: u32) -> DayRange {
    months(start.checked_sub_months(Months::new(count)).unwrap_or(start), count)
}

impl DayPreset {
    pub fn day(self, today: NaiveDate) -> NaiveDate {
        match self {
            Self::Today => today,
            Self::Yesterday => back(today, 1),
            Self::StartOfWeek => monday(today),
            Self::StartOfMonth => first_of_month(today),
            Self::StartOfQuarter => first_of_quarter(today),
            Self::StartOfYear => first_of_year(today),
        }
    }
}

impl RangePreset {
    pub fn range(self, today: NaiveDate) -> DayRange {
        let last = |days: u64| DayRange { start: back(today, days - 1), end: today };
        let week = |start| DayRange { start, end: start.checked_add_days(Days::new(6)).unwrap_or(start) };
        match self {
            Self::Today => last(1),
            Self::Yesterday => DayRange { start: back(today, 1), end: back(today, 1) },
            Self::Last7Days => last(7),
            Self::Last14Days => last(14),
            Self::Last28Days => last(28),
            Self::Last30Days => last(30),
            Self::Last90Days => last(90),
            Self::Last180Days => last(180),
            Self::Last365Days => last(365),
            Self::ThisWeek => week(monday(today)),
            Self::LastWeek => week(back(monday(today), 7)),
            Self::ThisMonth => months(first_of_month(today), 1),
            Self::LastMonth => months_before(first_of_month(today), 1),
            Self::ThisQuarter => months(first_of_quarter(today), 3),
            Self::LastQuarter => months_before(first_of_quarter(today), 3),
            Self::ThisYear => months(first_of_year(today), 12),
            Self::LastYear => months_before(first_of_year(today), 12),
            Self::All => DayRange::ALL,
        }
    }
}

impl DayRange {
    /// Every day that has a year of four digits.
    pub const ALL: Self = {
        match (NaiveDate::from_ymd_opt(1, 1, 1), NaiveDate::from_ymd_opt(9_999, 12, 31)) {
            (Some(start), Some(end)) => Self { start, end },
            _ => panic!("both are days"),
        }
    };

    /// The same number of days immediately before; `None` if that is out of range.
    pub fn previous_period(self) -> Option<Self> {
        let days = Days::new(u64::try_from((self.end - self.start).num_days()).ok()? + 1);
        Self { start: self.start.checked_sub_days(days)?, end: self.end.checked_sub_days(days)? }.if_in_bounds()
    }

    /// The same days a year before; `None` if that is out of range.
    pub fn previous_year(self) -> Option<Self> {
        let year = Months::new(12);
        Self { start: self.start.checked_sub_months(year)?, end: self.end.checked_sub_months(year)? }.if_in_bounds()
    }

    fn if_in_bounds(self) -> Option<Self> {
        (self.start >= Self::ALL.start).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn presets_are_whole_days_relative_to_today() {
        // A Sunday, and a day of month that not every month has.
        let today = day("2024-03-31");
        for (preset, start, end) in [
            (RangePreset::Today, "2024-03-31", "2024-03-31"),
            (RangePreset::Yesterday, "2024-03-30", "2024-03-30"),
            (RangePreset::Last7Days, "2024-03-25", "2024-03-31"),
            (RangePreset::Last30Days, "2024-03-02", "2024-03-31"),
            (RangePreset::ThisWeek, "2024-03-25", "2024-03-31"),
            (RangePreset::LastWeek, "2024-03-18", "2024-03-24"),
            (RangePreset::ThisMonth, "2024-03-01", "2024-03-31"),
            (RangePreset::LastMonth, "2024-02-01", "2024-02-29"),
            (RangePreset::ThisQuarter, "2024-01-01", "2024-03-31"),
            (RangePreset::LastQuarter, "2023-10-01", "2023-12-31"),
            (RangePreset::ThisYear, "2024-01-01", "2024-12-31"),
            (RangePreset::LastYear, "2023-01-01", "2023-12-31"),
            (RangePreset::All, "0001-01-01", "9999-12-31"),
        ] {
            assert_eq!(preset.range(today), DayRange { start: day(start), end: day(end) }, "{preset:?}");
        }
        assert_eq!(DayPreset::StartOfQuarter.day(day("2024-12-31")), day("2024-10-01"));
        assert_eq!(DayPreset::StartOfWeek.day(today), day("2024-03-25"));
    }

    #[test]
    fn previous_period_has_equal_length_and_ends_at_the_start() {
        let range = DayRange { start: day("2024-03-01"), end: day("2024-03-31") };
        let before = DayRange { start: day("2024-01-30"), end: day("2024-02-29") };
        assert_eq!(range.previous_period(), Some(before));
        let leap = DayRange { start: day("2024-02-29"), end: day("2024-02-29") };
        assert_eq!(leap.previous_year().unwrap().start, day("2023-02-28"));
        assert_eq!(DayRange::ALL.previous_period(), None);
        assert_eq!(DayRange { start: day("0001-01-01"), end: day("0001-06-01") }.previous_year(), None);
    }
}
