//! Epoch times and Excel's serial dates among columns of numbers.
//!
//! A number of a plausible size is not sufficient evidence: the column's name must also suggest a time. Otherwise the
//! time is listed as an alternative.

use super::column_stats::ColumnSurvey;
use super::numbers::STYLES;
use super::proposal::Alternative;
use super::typed::Typed;

/// 1990 and 2050 in seconds since 1970.
const PLAUSIBLE_SECONDS: (i128, i128) = (631_152_000, 2_524_608_000);
/// 1955 and 2065 in Excel's days.
const PLAUSIBLE_DAYS: (i128, i128) = (20_000, 60_300);
const UNITS: [(&str, &str, i128); 4] = [
    ("epoch_s", "seconds", 1),
    ("epoch_ms", "milliseconds", 1_000),
    ("epoch_us", "microseconds", 1_000_000),
    ("epoch_ns", "nanoseconds", 1_000_000_000),
];
/// Microseconds are the finest that a timestamp holds.
const SECOND_PLACES_MAX: usize = 6;
const EPOCH_WORDS: [&str; 21] = [
    "time",
    "timestamp",
    "ts",
    "epoch",
    "unix",
    "at",
    "created",
    "updated",
    "modified",
    "date",
    "datetime",
    "when",
    "zeit",
    "zeitpunkt",
    "zeitstempel",
    "datum",
    "heure",
    "fecha",
    "hora",
    "ms",
    "seen",
];
const DATE_WORDS: [&str; 5] = ["date", "datum", "datetime", "fecha", "data"];

/// A date or time, if the numbers are plausible and the name suggests it.
pub(super) fn serial_type(column: &ColumnSurvey, style: usize, name: &str) -> Option<Typed> {
    let named = |words: &[&str]| name.split('_').any(|word| words.contains(&word));
    let (min, max) = column.numbers.bounds(style)?;
    if named(&EPOCH_WORDS)
        && let Some((format, unit)) = epoch(column, style)
    {
        let why = format!(
            "numbers from {min} to {max}, which are {unit} since 1970 for times from 1990 to 2050, and the name suggests a time"
        );
        let mut typed = Typed::new("timestamptz", why);
        typed.formats = vec![format.to_owned()];
        typed.alternatives.push(number(column, style, name));
        return Some(typed);
    }
    if named(&DATE_WORDS) && is_excel(column, style) {
        let ty = if column.numbers.places(style).is_none() { "date" } else { "timestamp" };
        let why = format!(
            "numbers from {min} to {max}, which are Excel serial dates from 1955 to 2065, and the name suggests a date"
        );
        let mut typed = Typed::new(ty, why);
        typed.formats = vec!["excel".to_owned()];
        typed.alternatives.push(number(column, style, name));
        return Some(typed);
    }
    None
}

/// Times that the numbers may represent, judged by their size alone.
pub(super) fn alternatives(ty: &str, column: &ColumnSurvey, style: usize) -> Vec<Alternative> {
    if ty != "int64" {
        return Vec::new();
    }
    let made = |(format, unit): (&str, &str)| Alternative {
        ty: "timestamptz".into(),
        formats: vec![format.to_owned()],
        why: format!("{unit} since 1970, from 1990 to 2050"),
    };
    epoch(column, style).map(made).into_iter().collect()
}

fn number(column: &ColumnSurvey, style: usize, name: &str) -> Alternative {
    let ty = column.numbers.ty(style, name).map_or_else(|| "float64".to_owned(), |number| number.ty);
    Alternative { ty, formats: Vec::new(), why: "keeps the numbers".into() }
}

fn epoch(column: &ColumnSurvey, style: usize) -> Option<(&'static str, &'static str)> {
    let numbers = &column.numbers;
    let (min, max) = numbers.bounds(style)?;
    let places = numbers.places(style).map_or(0, |(_, most)| most);
    // Thousands separators are for numbers that people add up.
    if numbers.is_grouped(style) {
        return None;
    }
    let fits = |(format, unit, scale): (&'static str, &'static str, i128)| {
        let digits = SECOND_PLACES_MAX.saturating_sub(scale.ilog10() as usize);
        let plausible = min >= PLAUSIBLE_SECONDS.0 * scale && max < PLAUSIBLE_SECONDS.1 * scale;
        (plausible && places <= digits && !numbers.below_micros).then_some((format, unit))
    };
    UNITS.into_iter().find_map(fits)
}

fn is_excel(column: &ColumnSurvey, style: usize) -> bool {
    let (_, thousands) = STYLES[style];
    column.numbers.bounds(style).is_some_and(|(min, max)| min >= PLAUSIBLE_DAYS.0 && max < PLAUSIBLE_DAYS.1)
        && (thousands.is_none() || !column.numbers.is_grouped(style))
}
