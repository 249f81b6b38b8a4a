//! Parses and resolves number formats of columns.

use super::report::{Pointer, Report};
use crate::domain::limits::CURRENCY_BYTES_MAX;
use crate::domain::pipeline::document::{ColumnDocument, NumberFormatDocument};
use crate::domain::pipeline::types::{DataType, TypeClass};
use crate::domain::pipeline::{Dialect, NumberFormat};
use crate::domain::problem::ProblemKind::{Duplicate, InvalidValue, Limit, TypeMismatch};
use crate::domain::text::quoted;

/// Resolves the number format of a column, with defaults from the dialect.
pub(super) fn resolve(
    document: &ColumnDocument,
    csv: &Dialect,
    ty: Option<DataType>,
    at: &Pointer,
    report: &mut Report,
) -> Option<NumberFormat> {
    let format = document.number_format.as_ref()?;
    let at = at.key("number_format");
    if document.expr.is_some() {
        report.push(InvalidValue, &at, "a column with `expr` is computed, not read: it has no `number_format`");
        return None;
    }
    let ty = ty?;
    let takes_percent = match ty.class() {
        TypeClass::Integer => false,
        TypeClass::Float | TypeClass::Decimal => true,
        TypeClass::Boolean | TypeClass::Text | TypeClass::Temporal(_) | TypeClass::Uuid | TypeClass::Json => {
            let message = format!("a column of type {ty} has no `number_format`; integers, floats and decimals have");
            report.push(TypeMismatch, &at, message);
            return None;
        }
    };
    if format.percent && !takes_percent {
        let message = format!("a hundredth is not a whole number, so {ty} can't hold it; use decimal(p,s) or float64");
        report.push(TypeMismatch, &at.key("percent"), message);
    }
    let (decimal, thousands) = separators(format, csv, &at, report)?;
    let mut currency = currencies(format, decimal, thousands, &at.key("currency"), report);
    currency.sort_by_key(|sign| std::cmp::Reverse(sign.len()));
    Some(NumberFormat { decimal, thousands, currency, percent: format.percent, negative: format.negative.into() })
}

fn separators(
    format: &NumberFormatDocument,
    csv: &Dialect,
    at: &Pointer,
    report: &mut Report,
) -> Option<(char, Option<char>)> {
    let mut given = |name: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(_) if report.is_replaced(&at.key(name)) => Err(()),
        Some(text) => separator(text, &at.key(name), report).map(Some).ok_or(()),
    };
    let (decimal, thousands) = (given("decimal", &format.decimal), given("thousands", &format.thousands));
    let (decimal, thousands) = match (decimal.ok()?, thousands.ok()?) {
        (None, None) => (char::from(csv.decimal), csv.thousands.map(char::from)),
        (decimal, thousands) => (decimal.unwrap_or('.'), thousands),
    };
    if thousands == Some(decimal) {
        let name = if format.thousands.is_some() { "thousands" } else { "decimal" };
        let message = format!("{} is both the decimal and the thousands separator", quoted(&decimal.to_string()));
        report.push(InvalidValue, &at.key(name), message);
        return None;
    }
    Some((decimal, thousands))
}

/// One character within numbers: no digit, sign or letter, which have their own meaning there.
fn separator(text: &str, at: &Pointer, report: &mut Report) -> Option<char> {
    let mut characters = text.chars();
    if let (Some(found), None) = (characters.next(), characters.next())
        && !found.is_alphanumeric()
        && !found.is_control()
        && !matches!(found, '+' | '-' | '\u{2212}' | '(' | ')' | '%')
    {
        return Some(found);
    }
    report.push(InvalidValue, at, format!("expected one character such as `.`, `,` or `'`, found {}", quoted(text)));
    None
}

fn currencies(
    format: &NumberFormatDocument,
    decimal: char,
    thousands: Option<char>,
    at: &Pointer,
    report: &mut Report,
) -> Vec<String> {
    let mut signs: Vec<String> = Vec::new();
    for (index, sign) in format.currency.iter().enumerate() {
        let at = at.index(index);
        if report.is_replaced(&at) {
            continue;
        }
        // A sign must not read as a part of the number.
        let number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '\u{2212}' | '(' | ')' | '%');
        let edge = |c: Option<char>| c.is_none_or(|c| c.is_whitespace() || c == decimal || Some(c) == thousands);
        if sign.len() > CURRENCY_BYTES_MAX {
            let message = format!("has {} bytes, expected at most {CURRENCY_BYTES_MAX}", sign.len());
            report.push(Limit, &at, format!("{} {message}", quoted(sign)));
        } else if sign.contains(number) || edge(sign.chars().next()) {
            let message = "expected a sign such as `$`, `€` or `CHF`, without digits, number signs, or a leading space or \
                           separator in front";
            report.push(InvalidValue, &at, format!("{message}; found {}", quoted(sign)));
        } else if signs.contains(sign) {
            report.push(Duplicate, &at, format!("{} is listed twice", quoted(sign)));
        } else {
            signs.push(sign.clone());
        }
    }
    signs
}
