use super::*;
use crate::domain::zones;

fn zoned(zone: &str, formats: &[&str]) -> Column {
    Column { timezone: zones::database().zone(zone), ..formatted("timestamptz", formats) }
}

#[test]
fn dates_without_formats_are_iso() {
    check(
        &column("date"),
        &dialect(),
        &[
            ("2024-02-29", "2024-02-29"),
            ("1970-01-01", "1970-01-01"),
            ("0000-01-01", "0000-01-01"),
            ("9999-12-31", "9999-12-31"),
            ("1900-02-29", "!NoSuchTime"),
            ("2000-02-29", "2000-02-29"),
            ("2024-02-30", "!NoSuchTime"),
            ("2024-13-01", "!NoSuchTime"),
            ("2024-00-10", "!NoSuchTime"),
            ("2024-1-1", "!Syntax"),
            ("24-01-01", "!Syntax"),
            ("20240101", "!Syntax"),
            ("2024/01/01", "!Syntax"),
            ("01-02-2024", "!Syntax"),
            ("+2024-01-01", "!Syntax"),
            ("2024-01-01 00:00:00", "!TimeGiven"),
            ("2024-01-01x", "!Syntax"),
            ("2024-01-0a", "!Syntax"),
            ("", "null"),
        ],
    );
}

#[test]
fn times_of_day_without_formats_are_iso() {
    check(
        &column("time"),
        &dialect(),
        &[
            ("12:34", "12:34:00"),
            ("12:34:56", "12:34:56"),
            ("12:34:56.7", "12:34:56.700"),
            ("12:34:56.123456", "12:34:56.123456"),
            ("12:34:56.123456000", "12:34:56.123456"),
            ("12:34:56.1234567", "!Precision"),
            ("12:34:56.0000000000", "!Syntax"),
            ("12:34:56.", "!Syntax"),
            ("12:34.5", "!Syntax"),
            ("24:00:00", "!NoSuchTime"),
            ("23:60", "!NoSuchTime"),
            ("23:59:60", "!LeapSecond"),
            ("23:59:61", "!NoSuchTime"),
            ("1:02:03", "!Syntax"),
            ("12:34:5", "!Syntax"),
            ("12", "!Syntax"),
            ("12:34:56Z", "!OffsetGiven"),
            ("12:34:56+01:00", "!OffsetGiven"),
            ("12:34 PM", "!Syntax"),
        ],
    );
}

#[test]
fn timestamps_without_formats_are_iso_and_have_no_offset() {
    check(
        &column("timestamp"),
        &dialect(),
        &[
            ("2024-01-02T03:04:05", "2024-01-02T03:04:05"),
            ("2024-01-02 03:04:05.25", "2024-01-02T03:04:05.250"),
            ("2024-01-02 03:04", "2024-01-02T03:04:00"),
            ("1969-12-31 23:59:59.999999", "1969-12-31T23:59:59.999999"),
            ("0000-01-01 00:00:00", "0000-01-01T00:00:00"),
            ("2024-01-02", "!TimeMissing"),
            ("2024-01-02 ", "!Syntax"),
            ("2024-01-02  03:04:05", "!Syntax"),
            ("2024-01-02t03:04:05", "!Syntax"),
            ("2024-01-02 03:04:05Z", "!OffsetGiven"),
            ("2024-01-02 03:04:05+0100", "!OffsetGiven"),
            ("2024-01-02 03:04:05 ", "!Syntax"),
            ("2024-02-30 03:04:05", "!NoSuchTime"),
            ("2024-01-02 03:04:60", "!LeapSecond"),
            ("2024-01-02 03:04:05.0000001", "!Precision"),
            ("1704164645", "!Syntax"),
            ("02/01/2024 03:04:05", "!Syntax"),
        ],
    );
}

#[test]
fn offsets_are_honoured_and_local_times_read_in_the_zone() {
    let iso = [
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02 03:04:05+01:00", "2024-01-02T02:04:05Z"),
        ("2024-01-02 03:04:05.5-0330", "2024-01-02T06:34:05.500Z"),
        ("2024-01-02 03:04+02", "2024-01-02T01:04:00Z"),
        ("2024-01-02 03:04:05+24:00", "!Syntax"),
        ("2024-01-02 03:04:05+01:60", "!Syntax"),
        ("2024-01-02 03:04:05+1", "!Syntax"),
        ("2024-01-02 03:04:05 Z", "!Syntax"),
        ("2024-01-02 03:04:05z", "!Syntax"),
        ("2024-01-02", "!TimeMissing"),
    ];
    check(&column("timestamptz"), &dialect(), &iso);
    check(&column("timestamptz"), &dialect(), &[("2024-07-01 12:00:00", "2024-07-01T12:00:00Z")]);
    check(&zoned("America/New_York", &[]), &dialect(), &iso);
    check(
        &zoned("America/New_York", &[]),
        &dialect(),
        &[
            ("2024-07-01 12:00:00", "2024-07-01T16:00:00Z"),
            ("2024-01-01 12:00:00", "2024-01-01T17:00:00Z"),
            ("2024-03-10 01:59:59", "2024-03-10T06:59:59Z"),
            ("2024-03-10 02:30:00", "!SkippedLocal"),
            ("2024-03-10 03:00:00", "2024-03-10T07:00:00Z"),
            ("2024-11-03 00:59:59", "2024-11-03T04:59:59Z"),
            ("2024-11-03 01:30:00", "!AmbiguousLocal"),
            ("2024-11-03 02:00:00", "2024-11-03T07:00:00Z"),
            ("2024-03-10 02:30:00-05:00", "2024-03-10T07:30:00Z"),
            ("1883-11-18 12:03:57", "!AmbiguousLocal"),
        ],
    );
    // A day that a zone skipped entirely, and a transition by half an hour.
    check(&zoned("Pacific/Apia", &[]), &dialect(), &[("2011-12-30 12:00:00", "!SkippedLocal")]);
    check(
        &zoned("Australia/Lord_Howe", &[]),
        &dialect(),
        &[("2024-04-07 01:45:00", "!AmbiguousLocal"), ("2024-04-07 02:00:00", "2024-04-06T15:30:00Z")],
    );
    assert_eq!(
        message(&zoned("America/New_York", &[]), &dialect(), "2024-03-10 02:30:00"),
        "column `c`: expected timestamptz, found `2024-03-10 02:30:00`: it did not occur in `America/New_York`, since clocks were set forward"
    );
}

#[test]
fn value_of_several_formats_has_one_meaning() {
    check(
        &formatted("date", &["%d/%m/%Y", "%m/%d/%Y", "%b %e, %Y"]),
        &dialect(),
        &[
            ("03/04/2024", "!AmbiguousFormat"),
            ("03/03/2024", "2024-03-03"),
            ("03/14/2024", "2024-03-14"),
            ("14/03/2024", "2024-03-14"),
            ("3/4/2024", "!AmbiguousFormat"),
            ("Mar 4, 2024", "2024-03-04"),
            ("2024-03-04", "!NoFormat"),
            ("30/30/2024", "!NoSuchTime"),
            ("03/04/24", "!NoFormat"),
            ("03/04/2024x", "!NoFormat"),
            (" 03/14/2024", "2024-03-14"),
        ],
    );
    check(&formatted("date", &["%d/%m/%Y"]), &dialect(), &[("03/14/2024", "!NoSuchTime"), ("2024-03-04", "!Syntax")]);
    check(&formatted("date", &["%d.%m.%y"]), &dialect(), &[("01.02.69", "2069-02-01"), ("01.02.70", "1970-02-01")]);
    check(
        &formatted("date", &["%Y-%j", "%Y%m%d"]),
        &dialect(),
        &[("2024-060", "2024-02-29"), ("20240229", "2024-02-29")],
    );
}

#[test]
fn day_of_a_timestamp_is_its_midnight() {
    let cells = [
        ("2024-01-02", "2024-01-02T00:00:00"),
        ("31.01.2024", "2024-01-31T00:00:00"),
        ("2024-01-02 03:04:05.25", "2024-01-02T03:04:05.250"),
        ("2024-01-02T03:04", "2024-01-02T03:04:00"),
        ("2024-01-02 03:04:05Z", "!OffsetGiven"),
        ("2024-02-30", "!NoSuchTime"),
        ("01/02/2024", "!NoFormat"),
    ];
    check(&formatted("timestamp", &["iso", "%Y-%m-%d", "%d.%m.%Y"]), &dialect(), &cells);
    check(
        &zoned("America/Sao_Paulo", &["%Y-%m-%d", "iso"]),
        &dialect(),
        &[
            ("2024-01-02", "2024-01-02T03:00:00Z"),
            ("2024-01-02 00:00:00+00:00", "2024-01-02T00:00:00Z"),
            // Clocks were set forward at midnight.
            ("2018-11-04", "!SkippedLocal"),
        ],
    );
    check(&formatted("timestamp", &["%Y-%m-%d", "%Y-%d-%m"]), &dialect(), &[("2024-01-02", "!AmbiguousFormat")]);
}

#[test]
fn iso_among_formats_is_as_strict_as_alone() {
    check(
        &formatted("date", &["iso", "%d.%m.%Y"]),
        &dialect(),
        &[("2024-01-02", "2024-01-02"), ("02.01.2024", "2024-01-02"), ("2024-01-02 00:00", "!TimeGiven")],
    );
    check(
        &formatted("time", &["iso", "%I:%M %p"]),
        &dialect(),
        &[("12:34:56.5", "12:34:56.500"), ("12:34 PM", "12:34:00"), ("1:34", "!NoFormat")],
    );
    check(&formatted("timestamp", &["iso"]), &dialect(), &[("2024-01-02", "!TimeMissing"), ("2024-1-2", "!Syntax")]);
}

#[test]
fn epoch_times_are_exact() {
    check(
        &formatted("timestamp", &["epoch_s"]),
        &dialect(),
        &[
            ("1704164645", "2024-01-02T03:04:05"),
            ("1704164645.25", "2024-01-02T03:04:05.250"),
            ("1704164645.123456", "2024-01-02T03:04:05.123456"),
            ("1704164645.1234560", "2024-01-02T03:04:05.123456"),
            ("1704164645.1234567", "!Precision"),
            ("0", "1970-01-01T00:00:00"),
            ("-1", "1969-12-31T23:59:59"),
            ("-0.5", "1969-12-31T23:59:59.500"),
            ("-62135596800", "0001-01-01T00:00:00"),
            ("-62135596801", "!OutOfRange"),
            ("253402300799", "9999-12-31T23:59:59"),
            ("1704164645000", "!OutOfRange"),
            ("99999999999999999999", "!OutOfRange"),
            ("1704164645.", "!Syntax"),
            (".5", "!Syntax"),
            ("1,704", "!Syntax"),
            ("1.7e9", "!Syntax"),
            ("+1", "!Syntax"),
            ("2024-01-02", "!Syntax"),
        ],
    );
    check(
        &zoned("Asia/Tokyo", &["epoch_ms"]),
        &dialect(),
        &[
            ("1704164645250", "2024-01-02T03:04:05.250Z"),
            ("1704164645250.001", "2024-01-02T03:04:05.250001Z"),
            ("1704164645250.0001", "!Precision"),
        ],
    );
    check(
        &formatted("timestamp", &["epoch_us"]),
        &dialect(),
        &[
            ("1704164645250001", "2024-01-02T03:04:05.250001"),
            ("1.0", "1970-01-01T00:00:00.000001"),
            ("1.5", "!Precision"),
        ],
    );
    check(
        &formatted("timestamp", &["epoch_ns"]),
        &dialect(),
        &[("1704164645250001000", "2024-01-02T03:04:05.250001"), ("1704164645250001001", "!Precision")],
    );
    let comma = Dialect { decimal: b',', ..dialect() };
    check(&formatted("timestamp", &["epoch_s"]), &comma, &[("1,5", "1970-01-01T00:00:01.500"), ("1.5", "!Syntax")]);
}

#[test]
fn serial_dates_are_those_of_excel() {
    check(
        &formatted("date", &["excel"]),
        &dialect(),
        &[
            ("1", "1900-01-01"),
            ("59", "1900-02-28"),
            ("60", "!NoSuchTime"),
            ("61", "1900-03-01"),
            ("25569", "1970-01-01"),
            ("45293", "2024-01-02"),
            ("45293.0", "2024-01-02"),
            ("2958465", "9999-12-31"),
            ("2958466", "!OutOfRange"),
            ("45293.5", "!TimeGiven"),
            ("0", "!Syntax"),
            ("-1", "!NoSuchTime"),
            ("45,293", "!Syntax"),
        ],
    );
    check(
        &formatted("timestamp", &["excel"]),
        &dialect(),
        &[
            ("45293.5", "2024-01-02T12:00:00"),
            ("45293.3333333333", "2024-01-02T08:00:00"),
            ("45293.333333333336", "2024-01-02T08:00:00"),
            ("45293.1278356481", "2024-01-02T03:04:05"),
            ("45293.99999999999", "2024-01-03T00:00:00"),
            ("59.99999999999", "!NoSuchTime"),
        ],
    );
    check(
        &formatted("time", &["excel"]),
        &dialect(),
        &[("0.75", "18:00:00"), ("1.5", "!DateGiven"), ("0", "00:00:00")],
    );
    check(&zoned("Europe/Berlin", &["excel"]), &dialect(), &[("45293.5", "2024-01-02T11:00:00Z")]);
    check(
        &formatted("date", &["%d.%m.%Y", "excel"]),
        &dialect(),
        &[("02.01.2024", "2024-01-02"), ("45293", "2024-01-02")],
    );
    // Read as a serial date, eight digits are far in the future.
    check(
        &formatted("timestamp", &["%Y%m%d%H%M", "epoch_s"]),
        &dialect(),
        &[("202401020304", "!AmbiguousFormat"), ("1704164645", "2024-01-02T03:04:05")],
    );
}

#[test]
fn year_needs_its_four_digits() {
    let column = formatted("date", &["%Y-%m-%d"]);
    let table = [
        ("24-01-02", "!Syntax"),
        ("0024-01-02", "0024-01-02"),
        ("-0044-03-15", "-044-03-15"),
        ("2024-1-2", "2024-01-02"),
    ];
    let (array, faults) = build(&column, &dialect(), &table.map(|(cell, _)| cell));
    assert_eq!(show(&array, &faults, 0), "!Syntax");
    assert_eq!(show(&array, &faults, 1), "0024-01-02");
    assert_eq!(faults.len(), 1);
    assert_eq!(show(&array, &faults, 3), "2024-01-02");
}

#[test]
fn formats_drop_no_part_of_a_cell() {
    check(
        &formatted("date", &["%Y-%m-%d %H:%M:%S"]),
        &dialect(),
        &[("2024-01-02 00:00:00", "2024-01-02"), ("2024-01-02 00:00:01", "!TimeGiven")],
    );
    check(&formatted("date", &["%Y-%m-%d%z"]), &dialect(), &[("2024-01-02+0100", "!OffsetGiven")]);
    check(&formatted("time", &["%Y-%m-%d %H:%M"]), &dialect(), &[("2024-01-02 10:00", "!DateGiven")]);
    check(&formatted("time", &["%I:%M %p"]), &dialect(), &[("10:05 PM", "22:05:00"), ("13:05 PM", "!NoSuchTime")]);
    check(
        &formatted("timestamp", &["%Y-%m-%dT%H:%M:%S%z"]),
        &dialect(),
        &[("2024-01-02T03:04:05+0000", "!OffsetGiven")],
    );
    check(&formatted("timestamp", &["%Y-%m-%d"]), &dialect(), &[("2024-01-02", "2024-01-02T00:00:00")]);
    check(
        &formatted("timestamp", &["%Y-%m-%d %H:%M:%S%.f"]),
        &dialect(),
        &[
            ("2024-01-02 03:04:05", "2024-01-02T03:04:05"),
            ("2024-01-02 03:04:05.123", "2024-01-02T03:04:05.123"),
            ("2024-01-02 03:04:05.123456000000", "2024-01-02T03:04:05.123456"),
            ("2024-01-02 03:04:05.1234560000001", "!Precision"),
            ("2024-01-02 03:04:05.1234567", "!Precision"),
            ("2024-01-02 03:04:05.", "!Syntax"),
            ("2024-01-02 03:04:60", "!LeapSecond"),
            ("2024-01-02 3:4:5", "2024-01-02T03:04:05"),
        ],
    );
    check(
        &formatted("timestamp", &["%d.%m.%Y %H:%M:%S%.3f"]),
        &dialect(),
        &[("02.01.2024 03:04:05.123", "2024-01-02T03:04:05.123"), ("02.01.2024 03:04:05.12", "!Syntax")],
    );
}

#[test]
fn formats_read_epochs_and_offsets() {
    check(&formatted("timestamp", &["%s"]), &dialect(), &[("1704164645", "2024-01-02T03:04:05"), ("x", "!Syntax")]);
    check(&zoned("Asia/Tokyo", &["%s%.f"]), &dialect(), &[("1704164645.25", "2024-01-02T03:04:05.250Z")]);
    check(
        &zoned("Asia/Tokyo", &["%Y-%m-%dT%H:%M:%S%.f%:z", "%d/%m/%Y %H:%M"]),
        &dialect(),
        &[
            ("2024-01-02T03:04:05.5+02:00", "2024-01-02T01:04:05.500Z"),
            ("2024-01-02T03:04:05 -0200", "2024-01-02T05:04:05Z"),
            ("2024-01-02T03:04:05+99:00", "!NoSuchTime"),
            ("02/01/2024 09:00", "2024-01-02T00:00:00Z"),
            ("2024-01-02T03:04:05Z", "!NoFormat"),
        ],
    );
    check(
        &formatted("timestamptz", &["%Y-%m-%dT%H:%M:%S%#z"]),
        &dialect(),
        &[("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"), ("2024-01-02T03:04:05+02", "2024-01-02T01:04:05Z")],
    );
    check(
        &formatted("timestamptz", &["%+"]),
        &dialect(),
        &[("2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05.500Z"), ("2024-01-02T03:04:05.1234560001Z", "!Precision")],
    );
}

#[test]
fn named_zone_is_honoured_or_refused() {
    check(
        &zoned("America/New_York", &["%Y-%m-%d %H:%M %Z"]),
        &dialect(),
        &[
            ("2024-01-02 12:00 EST", "2024-01-02T17:00:00Z"),
            ("2024-07-02 12:00 EST", "!ZoneName"),
            ("2024-11-03 01:30 EDT", "2024-11-03T05:30:00Z"),
            ("2024-11-03 01:30 EST", "2024-11-03T06:30:00Z"),
            ("2024-01-02 12:00 UTC", "2024-01-02T12:00:00Z"),
            ("2024-01-02 12:00 Europe/Berlin", "2024-01-02T11:00:00Z"),
            ("2024-01-02 12:00 Europe/Nowhere", "!ZoneName"),
            ("2024-01-02 12:00 CET", "!ZoneName"),
            ("2024-01-02 12:00 ", "2024-01-02T17:00:00Z"),
        ],
    );
    check(&formatted("timestamp", &["%Y-%m-%d %H:%M %Z"]), &dialect(), &[("2024-01-02 12:00 EST", "!OffsetGiven")]);
}

#[test]
fn adjacent_numbers_need_all_their_digits() {
    let date = |pattern: &str, cells: &[(&str, &str)]| check(&formatted("date", &[pattern]), &dialect(), cells);
    date(
        "%Y%m%d",
        &[("20240115", "2024-01-15"), ("2024115", "!Syntax"), ("202411 5", "!Syntax"), ("20241305", "!NoSuchTime")],
    );
    date("%y%m%d", &[("040115", "2004-01-15"), ("40115", "!Syntax"), (" 40115", "!Syntax")]);
    date("%d%b%Y", &[("5Jan2024", "2024-01-05"), ("05Jan2024", "2024-01-05")]);
    date("%Y%j", &[("2024060", "2024-02-29"), ("202460", "!Syntax")]);
    date("%Y%m%e", &[("202401 5", "2024-01-05"), ("20240115", "2024-01-15"), ("2024015", "!Syntax")]);
    date("%d.%m.%Y", &[("5.1.2024", "2024-01-05")]);
    let time = |pattern: &str, cells: &[(&str, &str)]| check(&formatted("time", &[pattern]), &dialect(), cells);
    time("%H%M%S", &[("012345", "01:23:45"), ("12345", "!Syntax"), ("1234567", "!Syntax"), ("246060", "!NoSuchTime")]);
    time("%H%M", &[("0123", "01:23:00"), ("123", "!Syntax")]);
    time("%H%M%S%3f", &[("012345678", "01:23:45.678"), ("12345678", "!Syntax")]);
}

#[test]
fn fraction_digits_start_at_tenths() {
    let time = |pattern: &str, cells: &[(&str, &str)]| check(&formatted("time", &[pattern]), &dialect(), cells);
    let cells = [
        ("01:02:03.500000", "01:02:03.500"),
        ("01:02:03.5", "01:02:03.500"),
        ("01:02:03.000005", "01:02:03.000005"),
        ("01:02:03.000500000", "01:02:03.000500"),
        ("01:02:03.0000005", "!Precision"),
        ("01:02:03.", "!Syntax"),
        ("01:02:03. 5", "!Syntax"),
        ("01:02:03.0000000000", "!Syntax"),
    ];
    time("%H:%M:%S.%f", &cells);
    time("%H%M%S%f", &[("0102035", "01:02:03.500"), ("010203", "!Syntax")]);
}
