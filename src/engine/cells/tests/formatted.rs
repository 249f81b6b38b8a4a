//! Numbers in a column's own format.

use super::*;
use crate::domain::pipeline::{Negative, NumberFormat};
use proptest::prelude::*;

fn format() -> NumberFormat {
    NumberFormat { decimal: '.', thousands: None, currency: Vec::new(), percent: false, negative: Negative::Minus }
}

fn us() -> NumberFormat {
    NumberFormat {
        thousands: Some(','),
        currency: vec!["US$".into(), "USD".into(), "$".into()],
        negative: Negative::Parentheses,
        ..format()
    }
}

fn written(ty: &str, format: NumberFormat) -> Column {
    Column { number_format: Some(format), ..column(ty) }
}

#[test]
fn accounting_amounts_are_exact() {
    check(
        &written("decimal(10,2)", us()),
        &dialect(),
        &[
            ("$1,234.50", "1234.50"),
            ("1234.5", "1234.50"),
            ("$.5", "0.50"),
            ("($95.00)", "-95.00"),
            ("$(95.00)", "-95.00"),
            ("( 95 )", "-95.00"),
            ("-$95", "-95.00"),
            ("$-95", "-95.00"),
            ("$ 1,234", "1234.00"),
            ("95 USD", "95.00"),
            ("US$95", "95.00"),
            ("+$5", "5.00"),
            ("\u{2212}5", "-5.00"),
            ("$\u{a0}5", "5.00"),
            ("(-5)", "!Syntax"),
            ("-(5)", "!Syntax"),
            ("--5", "!Syntax"),
            ("(5", "!Syntax"),
            ("5)", "!Syntax"),
            ("5-", "!Syntax"),
            ("$5$", "!Syntax"),
            ("$", "!Syntax"),
            ("$$5", "!Syntax"),
            ("€5", "!Syntax"),
            ("5%", "!Syntax"),
            (" $5", "!Syntax"),
            ("$5 ", "!Syntax"),
            ("$1,23", "!Grouping"),
            ("$1,234,56", "!Grouping"),
            ("$1.005", "!Scale(3)"),
            ("$123,456,789.00", "!OutOfRange"),
            ("$1e3", "!Exponent"),
            ("$1 234", "!Syntax"),
            ("$nan", "!Syntax"),
            ("", "null"),
        ],
    );
}

#[test]
fn separators_of_a_column_are_its_own() {
    let german = NumberFormat { decimal: ',', thousands: Some('.'), currency: vec!["€".into()], ..format() };
    check(
        &written("decimal(10,2)", german),
        &dialect(),
        &[("1.234,50 €", "1234.50"), ("1.234,50\u{a0}€", "1234.50"), ("1,234.50", "!Syntax"), ("12.5", "!Grouping")],
    );
    let french = NumberFormat { decimal: ',', thousands: Some(' '), ..format() };
    check(
        &written("decimal(10,2)", french),
        &dialect(),
        &[
            ("1 234,50", "1234.50"),
            ("1\u{a0}234,50", "1234.50"),
            ("1\u{202f}234,50", "1234.50"),
            ("1\u{2009}234", "1234.00"),
            ("1  234", "!Grouping"),
            ("1.234", "!Syntax"),
            ("1 234 ", "!Grouping"),
        ],
    );
    let swiss = NumberFormat { thousands: Some('\''), currency: vec!["Fr.".into(), "CHF".into()], ..format() };
    check(
        &written("decimal(10,2)", swiss),
        &dialect(),
        &[("CHF 1'234.50", "1234.50"), ("1’234.50", "1234.50"), ("Fr. 5", "5.00"), ("1,234", "!Syntax")],
    );
    // The point of an abbreviation is not a decimal separator.
    let danish = NumberFormat { currency: vec!["kr".into()], ..format() };
    check(&written("decimal(10,2)", danish), &dialect(), &[("kr.5", "!Syntax"), ("kr 5", "5.00"), ("5 kr", "5.00")]);
}

#[test]
fn percentages_are_hundredths() {
    let percent = NumberFormat { percent: true, thousands: Some(','), ..format() };
    check(
        &written("decimal(7,4)", percent.clone()),
        &dialect(),
        &[
            ("12.5%", "0.1250"),
            ("12.5 %", "0.1250"),
            ("-0.01%", "-0.0001"),
            ("100%", "1.0000"),
            ("1,234%", "12.3400"),
            ("5%", "0.0500"),
            (".5%", "0.0050"),
            ("12.345%", "!Scale(5)"),
            ("99,999.99%", "999.9999"),
            ("100,000%", "!OutOfRange"),
            ("12.5", "!PercentMissing"),
            ("%", "!Syntax"),
            ("5%%", "!Syntax"),
            ("1e2%", "!Syntax"),
        ],
    );
    check(
        &written("float64", percent.clone()),
        &dialect(),
        &[("12.5%", "0.125"), ("-50%", "-0.5"), ("nan%", "!Syntax")],
    );
    assert_eq!(
        message(&written("float64", percent), &dialect(), "12.5"),
        "column `c`: expected float64, found `12.5`: it has no `%`, which `number_format` expects"
    );
}

#[test]
fn trailing_minus_signs_are_negative_where_declared() {
    let sap = NumberFormat { negative: Negative::TrailingMinus, ..format() };
    check(
        &written("int64", sap.clone()),
        &dialect(),
        &[
            ("95-", "-95"),
            ("-95", "-95"),
            ("95", "95"),
            ("-95-", "!Syntax"),
            ("95--", "!Syntax"),
            ("9.5-", "!Fraction"),
        ],
    );
    check(&written("uint8", sap), &dialect(), &[("0-", "0"), ("5-", "!OutOfRange"), ("256", "!OutOfRange")]);
    assert_eq!(
        message(&written("decimal(5,2)", format()), &dialect(), "5 kg"),
        "column `c`: expected decimal(5,2), found `5 kg`: it does not match `number_format`"
    );
}

#[test]
fn floats_in_a_format_keep_their_names_and_exponents() {
    check(
        &written("float64", us()),
        &dialect(),
        &[("1.5e3", "1500.0"), ("nan", "NaN"), ("inf", "inf"), ("-inf", "!Syntax"), ("$1,000.25", "1000.25")],
    );
}

/// A format, and a number as it writes it.
fn formats() -> impl Strategy<Value = NumberFormat> {
    let separators = prop::sample::select(vec![
        ('.', None),
        ('.', Some(',')),
        (',', Some('.')),
        (',', Some(' ')),
        ('.', Some('\'')),
        ('\u{66b}', Some('\u{66c}')),
    ]);
    let currency = prop::sample::select(vec![vec![], vec!["$".to_owned()], vec!["EUR".to_owned(), "€".to_owned()]]);
    let negative = prop::sample::select(vec![Negative::Minus, Negative::Parentheses, Negative::TrailingMinus]);
    (separators, currency, any::<bool>(), negative).prop_map(|((decimal, thousands), currency, percent, negative)| {
        NumberFormat { decimal, thousands, currency, percent, negative }
    })
}

/// `units` hundredths as `format` writes them, in a form that `choice` decides.
fn text_of(format: &NumberFormat, units: i64, choice: usize) -> String {
    let digits = format!("{:03}", units.unsigned_abs());
    let (whole, places) = digits.split_at(digits.len() - 2);
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) && choice & 1 == 0 {
            grouped.extend(format.thousands.map(|mark| match (mark, choice & 2) {
                (' ', 0) => '\u{202f}',
                ('\'', 0) => '\u{2019}',
                _ => mark,
            }));
        }
        grouped.push(digit);
    }
    let mut text = format!("{grouped}{}{places}", format.decimal);
    if format.percent {
        text.push_str(if choice & 4 == 0 { "%" } else { "\u{a0}%" });
    }
    if let Some(sign) = format.currency.get(choice % (format.currency.len() + 1)) {
        text = if choice & 8 == 0 { format!("{sign} {text}") } else { format!("{text} {sign}") };
    }
    if units < 0 {
        text = match (format.negative, choice & 16) {
            (_, 0) | (Negative::Minus, _) => format!("-{text}"),
            (Negative::Parentheses, _) => format!("({text})"),
            (Negative::TrailingMinus, _) => format!("{text}-"),
        };
    }
    text
}

proptest! {
    /// A format reads back the numbers that it writes.
    #[test]
    fn formatted_number_reads_back_exactly(format in formats(), units in any::<i64>(), choice in 0usize..32) {
        let text = text_of(&format, units, choice);
        let column = written("decimal(38,4)", format.clone());
        let (array, faults) = build(&column, &dialect(), &[&text]);
        prop_assert!(faults.is_empty(), "{text}: {:?}", faults);
        let expected = i128::from(units) * if format.percent { 1 } else { 100 };
        prop_assert_eq!(array.as_primitive::<Decimal128Type>().value(0), expected, "{}", text);
    }

    /// Every cell that is accepted is read as the number with its digits; nothing panics.
    #[test]
    fn formatted_cell_keeps_its_digits(format in formats(), text in "[-+(]?[$€]?[0-9., '’]{1,12}[%)-]?€?") {
        let (array, faults) = build(&written("decimal(38,12)", format.clone()), &dialect(), &[&text]);
        if faults.is_empty() && !array.is_null(0) {
            let units = array.as_primitive::<Decimal128Type>().value(0).unsigned_abs().to_string();
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            let digits = digits.trim_matches('0');
            prop_assert!(units.trim_end_matches('0').ends_with(digits), "{text}: {units}");
        }
    }
}
