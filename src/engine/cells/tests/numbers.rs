use super::*;

#[test]
fn integers_accept_a_sign_and_digits_within_range() {
    check(
        &column("int8"),
        &dialect(),
        &[
            ("0", "0"),
            ("127", "127"),
            ("-128", "-128"),
            ("+5", "5"),
            ("-0", "0"),
            ("007", "7"),
            ("0000000000000000000000000000000000012", "12"),
            ("128", "!OutOfRange"),
            ("-129", "!OutOfRange"),
            ("99999999999999999999999999", "!OutOfRange"),
            ("-99999999999999999999999999", "!OutOfRange"),
            ("", "null"),
            ("<absent>", "null"),
            ("1.0", "!Fraction"),
            ("1.", "!Fraction"),
            ("1e3", "!Exponent"),
            ("1.5e3", "!Exponent"),
            ("-", "!Syntax"),
            ("+", "!Syntax"),
            ("--1", "!Syntax"),
            ("+-1", "!Syntax"),
            ("1-", "!Syntax"),
            (" 1", "!Syntax"),
            ("1 ", "!Syntax"),
            ("0x10", "!Syntax"),
            ("1_000", "!Syntax"),
            ("1,000", "!Syntax"),
            ("٣", "!Syntax"),
            ("12a45678", "!Syntax"),
            ("1234567890abcdef", "!Syntax"),
            ("null", "!Syntax"),
        ],
    );
}

#[test]
fn integer_types_have_exact_bounds() {
    let bounds: [(&str, i128, i128); 8] = [
        ("int8", i8::MIN.into(), i8::MAX.into()),
        ("int16", i16::MIN.into(), i16::MAX.into()),
        ("int32", i32::MIN.into(), i32::MAX.into()),
        ("int64", i64::MIN.into(), i64::MAX.into()),
        ("uint8", 0, u8::MAX.into()),
        ("uint16", 0, u16::MAX.into()),
        ("uint32", 0, u32::MAX.into()),
        ("uint64", 0, u64::MAX.into()),
    ];
    for (ty, low, high) in bounds {
        let [low, high, under, over] = [low, high, low - 1, high + 1].map(|n| n.to_string());
        let table = [(&*low, &*low), (&*high, &*high), (&*under, "!OutOfRange"), (&*over, "!OutOfRange"), ("-0", "0")];
        check(&column(ty), &dialect(), &table);
    }
}

#[test]
fn thousands_separators_must_separate_groups_of_three() {
    let grouped = Dialect { thousands: Some(b','), ..dialect() };
    check(
        &column("int32"),
        &grouped,
        &[
            ("1,234", "1234"),
            ("-1,234,567", "-1234567"),
            ("12,345", "12345"),
            ("1234567", "1234567"),
            ("12,34", "!Grouping"),
            ("1234,567", "!Grouping"),
            (",123", "!Grouping"),
            ("1,", "!Grouping"),
            ("1,,234", "!Grouping"),
            ("1,234,56", "!Grouping"),
            ("9,999,999,999", "!OutOfRange"),
            ("1,234.5", "!Fraction"),
        ],
    );
    check(
        &column("float64"),
        &grouped,
        &[("1,234.5", "1234.5"), ("1,234e2", "123400.0"), ("1,23.5", "!Grouping"), ("1.234,5", "!Syntax")],
    );
    let german = Dialect { thousands: Some(b'.'), decimal: b',', ..dialect() };
    check(
        &column("decimal(10,2)"),
        &german,
        &[
            ("1.234,5", "1234.50"),
            ("1234,50", "1234.50"),
            ("1234.50", "!Grouping"),
            ("0,05", "0.05"),
            ("1,2,3", "!Syntax"),
        ],
    );
    check(&column("float64"), &german, &[("1,5", "1.5"), ("1.5", "!Grouping"), ("1.500", "1500.0"), ("-,5", "-0.5")]);
    check(&column("float64"), &Dialect { decimal: b',', ..dialect() }, &[("1,5", "1.5"), ("1.5", "!Syntax")]);
}

#[test]
fn floats_are_the_nearest_value() {
    check(
        &column("float64"),
        &dialect(),
        &[
            ("0.1", "0.1"),
            ("-0", "-0.0"),
            ("-0.0", "-0.0"),
            ("+1.5", "1.5"),
            ("5.", "5.0"),
            (".5", "0.5"),
            ("9007199254740993", "9007199254740992.0"),
            ("9007199254740992.", "9007199254740992.0"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("1e308", "1e308"),
            ("1E+3", "1000.0"),
            ("1e-400", "0.0"),
            ("4.9e-324", "5e-324"),
            ("1e999", "!OutOfRange"),
            ("-1e999", "!OutOfRange"),
            ("1e99999999999999999999", "!OutOfRange"),
            ("NaN", "NaN"),
            ("-nan", "NaN"),
            ("inf", "inf"),
            ("-Infinity", "-inf"),
            ("+INF", "inf"),
            ("", "null"),
            (".", "!Syntax"),
            ("-", "!Syntax"),
            ("e5", "!Syntax"),
            ("1e", "!Syntax"),
            ("1e+", "!Syntax"),
            ("1.5.2", "!Syntax"),
            ("infinit", "!Syntax"),
            ("--1", "!Syntax"),
            ("1,5", "!Syntax"),
            ("0x1p3", "!Syntax"),
            (" 1.5", "!Syntax"),
            ("1.5 ", "!Syntax"),
            ("1.5%", "!Syntax"),
        ],
    );
}

#[test]
fn float32_is_rounded_once() {
    // Between two f32: rounded to f64 first, it would be a tie and round down to even.
    check(
        &column("float32"),
        &dialect(),
        &[
            ("1.00000017881393432617187499", "1.0000001"),
            ("1.00000017881393432617187500", "1.0000002"),
            ("1.00000017881393432617187501", "1.0000002"),
            ("16777217", "16777216.0"),
            ("16777219", "16777220.0"),
            ("0.1", "0.1"),
            ("3.5e38", "!OutOfRange"),
            ("1e39", "!OutOfRange"),
            ("1e-50", "0.0"),
        ],
    );
}

#[test]
fn decimals_are_never_rounded() {
    check(
        &column("decimal(5,2)"),
        &dialect(),
        &[
            ("1", "1.00"),
            ("1.5", "1.50"),
            ("-1.25", "-1.25"),
            ("+1.25", "1.25"),
            (".5", "0.50"),
            ("5.", "5.00"),
            ("999.99", "999.99"),
            ("-999.99", "-999.99"),
            ("000999.99", "999.99"),
            ("1.2500000000000000000000000000000", "1.25"),
            ("1.255", "!Scale(3)"),
            ("1.2550", "!Scale(3)"),
            ("0.000000000000000000000000000001", "!Scale(30)"),
            ("1000", "!OutOfRange"),
            ("1000.00", "!OutOfRange"),
            ("-99999999999999999999999999999999999999999999", "!OutOfRange"),
            ("1e2", "!Exponent"),
            ("1,5", "!Syntax"),
            ("", "null"),
            (".", "!Syntax"),
            ("-", "!Syntax"),
            ("nan", "!Syntax"),
            ("inf", "!Syntax"),
            ("1.2.3", "!Syntax"),
        ],
    );
    let nines = "9".repeat(38);
    let over = format!("1{}", "0".repeat(38));
    check(
        &column("decimal(38,0)"),
        &dialect(),
        &[(&nines, &nines), (&over, "!OutOfRange"), ("1.0", "1"), ("1.", "1"), ("0.5", "!Scale(1)")],
    );
    let small = format!("0.{nines}");
    check(
        &column("decimal(38,38)"),
        &dialect(),
        &[(&small, &small), ("1", "!OutOfRange"), ("0", &format!("0.{}", "0".repeat(38)))],
    );
}

#[test]
fn messages_name_expected_found_and_reason() {
    let say = |ty: &str, cell: &str| message(&column(ty), &dialect(), cell);
    assert_eq!(say("int32", "1.0"), "column `c`: expected int32, found `1.0`: an integer has no decimal places");
    assert_eq!(say("int8", "300"), "column `c`: expected int8, found `300`: the type holds -128 to 127");
    assert_eq!(say("int32", "abc"), "column `c`: expected int32, found `abc`");
    assert_eq!(
        say("decimal(10,2)", "12.345"),
        "column `c`: expected decimal(10,2), found `12.345`: it has 3 decimal places, the type holds 2, and nothing is rounded"
    );
    assert_eq!(
        say("decimal(4,2)", "123"),
        "column `c`: expected decimal(4,2), found `123`: the type holds 2 digits before the decimal mark"
    );
    assert_eq!(say("int32", "\"\""), "column `c`: expected int32, found an empty cell that is not a null token");
    assert!(say("int32", " 1").contains("white space"));
    assert_eq!(
        say("timestamp", "2024-01-01T00:00:00Z"),
        "column `c`: expected timestamp, found `2024-01-01T00:00:00Z`: it has an offset from UTC, which the type `timestamptz` applies"
    );
    let long = say("int32", &"é".repeat(100));
    assert!(long.contains(&format!("{}…`", "é".repeat(60))), "{long}");
    let broken = say("int32", "\"a\nb\"");
    assert!(broken.contains("`a\\nb`"), "{broken}");
}
