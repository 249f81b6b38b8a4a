//! Random cells against the standard library, `chrono`, and big numbers.

use arrow::array::AsArray;
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use chrono::{Datelike, NaiveDate, NaiveDateTime};
use proptest::prelude::*;

use super::*;

/// Builds one cell: its value, if it was accepted.
macro_rules! value {
    ($column:expr, $cell:expr, $ty:ty) => {{
        let (array, faults) = build(&$column, &dialect(), &[$cell]);
        faults.is_empty().then(|| array.as_primitive::<$ty>().value(0))
    }};
}

/// Text that is nearly a number.
fn numeric() -> impl Strategy<Value = String> {
    prop_oneof![
        "[+-]?[0-9]{1,25}",
        "[+-]?[0-9]{0,12}\\.?[0-9]{0,12}",
        "-?[0-9]{1,4}\\.[0-9]{12,18}",
        "[+-]?[0-9]{0,20}\\.?[0-9]{0,25}([eE][+-]?[0-9]{0,3})?",
        "[-+0-9.eE a]{1,20}",
        any::<f64>().prop_map(|f| f.to_string()),
        any::<f64>().prop_map(|f| format!("{f:e}")),
        any::<f32>().prop_map(|f| f.to_string()),
        any::<i64>().prop_map(|i| i.to_string()),
    ]
}

const MIXED_TYPES: &[&str] =
    &["int64", "uint8", "float64", "float32", "decimal(18,4)", "string", "boolean", "date", "timestamp", "json"];

/// Cells of all kinds: plain ones, nulls, quoted ones, faulty ones.
fn mixed() -> impl Strategy<Value = String> {
    prop_oneof![
        numeric(),
        "-?[0-9]{1,8}",
        "-?[0-9]{1,6}\\.[0-9]{1,17}",
        temporal(),
        numeric().prop_map(|text| format!("\"{text}\"")),
        numeric().prop_map(|text| format!("  {text} ")),
        prop::sample::select(vec![
            "",
            "\"\"",
            "NULL",
            "-999",
            "\"NULL\"",
            "<absent>",
            "\"a\"\"b\"",
            "true",
            "ü",
            "[1]"
        ])
        .prop_map(str::to_owned),
    ]
}

/// Columns of short numbers, longer than the batch that is read at once.
fn short() -> impl Strategy<Value = Vec<String>> {
    let number = prop_oneof!["-?[0-9]{1,7}", "-?[0-9]{1,4}\\.[0-9]{0,2}", "-?\\.[0-9]{1,6}", "-?0\\.?0?"];
    let nearly = prop_oneof![9 => number, 1 => "[-+0-9.e]{1,9}"];
    prop::collection::vec(nearly, 4..13)
}

/// Text that is nearly a date and time of the given pattern.
fn temporal() -> impl Strategy<Value = String> {
    let date = prop_oneof![
        "[0-9]{4}-[01][0-9]-[0-3][0-9]",
        "[0-3][0-9]\\.[01][0-9]\\.[0-9]{4}",
        "[0-1]?[0-9]/[0-3]?[0-9]/[0-9]{2,4}",
        "[0-9]{4}[01][0-9][0-3][0-9]",
        "[0-9]{1,5}-[0-9]{1,2}-[0-9]{1,3}",
    ];
    let time = prop_oneof![
        "[ T]?[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,11})?",
        "[ T][0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}",
        "[ T][0-2]?[0-9]:[0-5][0-9]",
        "[ T]{0,2}[0-9: ]{0,8}",
        Just(String::new()),
    ];
    let offset = prop_oneof![Just(String::new()), "Z", " ?[+-][0-9]{2}:?[0-9]{0,2}", "[a-zZ ]"];
    (date, time, offset).prop_map(|(date, time, offset)| format!("{date}{time}{offset}"))
}

/// Patterns that have a layout.
const PATTERNS: &[&str] = &[
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%m/%d/%y",
    "%Y%m%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S%.f",
    "%FT%T%.3f",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%Y-%m-%dT%H:%M:%S%.fZ",
    "%Y-%m-%d %H:%M:%S%:z",
    "%Y-%m-%d %H:%M:%S%.f %z",
    "%Y-%m-%dT%H:%M:%S%#z",
    "%H:%M:%S %d.%m.%Y",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn cell_value_is_independent_of_other_cells(
        cells in prop::collection::vec(prop_oneof![mixed().prop_map(|cell| vec![cell]), short()], 1..20), ty in 0..MIXED_TYPES.len(), nullable in any::<bool>(), trim in any::<bool>(),
    ) {
        let column = Column { nullable, ..column(MIXED_TYPES[ty]) };
        let null_values = vec![String::new(), "NULL".to_owned(), "-999".to_owned()];
        let dialect = Dialect { trim, null_values, ..dialect() };
        let cells: Vec<&str> = cells.iter().flatten().map(String::as_str).collect();
        let (all, faults) = build(&column, &dialect, &cells);
        for (row, cell) in cells.iter().enumerate() {
            let (alone, fault) = build(&column, &dialect, &[cell]);
            prop_assert_eq!(show(&all, &faults, row), show(&alone, &fault, 0), "`{}` as {} in row {}", cell, column.ty, row);
        }
        prop_assert!(faults.is_sorted_by_key(|fault| fault.row));
    }

    #[test]
    fn integers_agree_with_the_standard_library(text in numeric()) {
        prop_assume!(!text.is_empty());
        let reference = |text: &str| text.parse::<i128>().ok();
        let in_range = |low: i128, high: i128| reference(&text).filter(|n| (low..=high).contains(n));
        prop_assert_eq!(value!(column("int64"), &text, Int64Type).map(i128::from), in_range(i64::MIN.into(), i64::MAX.into()));
        prop_assert_eq!(value!(column("int16"), &text, Int16Type).map(i128::from), in_range(i16::MIN.into(), i16::MAX.into()));
        prop_assert_eq!(value!(column("uint64"), &text, UInt64Type).map(i128::from), in_range(0, u64::MAX.into()));
    }

    #[test]
    fn floats_agree_bit_for_bit_with_the_standard_library(text in numeric()) {
        prop_assume!(!text.is_empty());
        let spelled = text.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_alphabetic());
        let double = text.parse::<f64>().ok().filter(|f| f.is_finite() || spelled);
        let single = text.parse::<f32>().ok().filter(|f| f.is_finite() || spelled);
        prop_assert_eq!(value!(column("float64"), &text, Float64Type).map(f64::to_bits), double.map(f64::to_bits));
        prop_assert_eq!(value!(column("float32"), &text, Float32Type).map(f32::to_bits), single.map(f32::to_bits));
    }

    #[test]
    fn short_float32_are_rounded_once(whole in 0u64..1 << 26, fraction in 0u64..1 << 30) {
        let text = format!("{whole}.{fraction}");
        let text = &text[..text.len().min(16)];
        prop_assert_eq!(value!(column("float32"), text, Float32Type).map(f32::to_bits), text.parse().ok().map(f32::to_bits));
    }

    #[test]
    fn decimals_agree_with_digit_shifting(text in numeric(), (precision, scale) in (1u8..=38).prop_flat_map(|p| (Just(p), 0..=p))) {
        prop_assume!(!text.is_empty());
        let ty = format!("decimal({precision},{scale})");
        let expected = decimal_by_digits(&text, precision, scale);
        prop_assert_eq!(value!(column(&ty), &text, Decimal128Type), expected, "{} {}", ty, text);
    }

    #[test]
    fn dates_agree_with_chrono(text in temporal()) {
        let column = column("date");
        let canonical = NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok().filter(|d| d.format("%Y-%m-%d").to_string() == text);
        let days = canonical.map(|d| d.num_days_from_ce() - 719_163);
        prop_assert_eq!(value!(column, &text, Date32Type), days);
    }

    #[test]
    fn iso_timestamps_agree_with_chrono(text in temporal()) {
        let fraction = text.split_once('.').map_or(0, |(_, f)| f.len());
        if text.len() != fraction + if fraction > 0 { 20 } else { 19 } || fraction > 9 {
            return Ok(());
        }
        let parsed = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"].iter().find_map(|f| {
            NaiveDateTime::parse_from_str(&text, f).ok().filter(|t| t.format("%H:%M:%S").to_string() == text[11..19])
        });
        // Leap seconds (a billion nanoseconds or more) are rejected.
        let taken = |nanos: u32| nanos < 1_000_000_000 && nanos.is_multiple_of(1000);
        let expect = parsed.filter(|t| taken(t.and_utc().timestamp_subsec_nanos())).map(|t| t.and_utc().timestamp_micros());
        prop_assert_eq!(value!(column("timestamp"), &text, TimestampMicrosecondType), expect, "{}", text);
    }

    #[test]
    fn layouts_agree_with_chrono(text in temporal(), pattern in 0..PATTERNS.len()) {
        super::super::time::check_layout(PATTERNS[pattern], &text);
    }

    #[test]
    fn formatted_timestamps_agree_with_layouts_and_chrono(micros in -60_000_000_000_000_000i64..200_000_000_000_000_000, pattern in 0..PATTERNS.len()) {
        let moment = chrono::DateTime::from_timestamp_micros(micros).unwrap();
        let text = moment.format(&PATTERNS[pattern].replace("%#z", "%:z")).to_string();
        super::super::time::check_layout(PATTERNS[pattern], &text);
    }
}
