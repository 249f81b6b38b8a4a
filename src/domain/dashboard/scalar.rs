//! Resolves plain scalars by the core schema of YAML 1.2: `no` and `off` are text.

use serde_json::{Number, Value};

/// A resolved scalar.
#[derive(Debug, PartialEq)]
pub(super) enum Resolved {
    Value(Value),
    /// Infinity or NaN.
    NotFinite,
}

/// Resolves a scalar that is neither quoted nor tagged.
pub(super) fn resolve(text: &str) -> Resolved {
    Resolved::Value(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(Some(number)) => Value::Number(number),
            Some(None) => return Resolved::NotFinite,
            None => Value::from(text),
        },
    })
}

/// The tag of a scalar's value.
pub(super) fn tag_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        Value::String(_) => "str",
        Value::Array(_) => "seq",
        Value::Object(_) => "map",
    }
}

/// A number, `Some(None)` if it is not finite, `None` if the text is not a number.
fn number(text: &str) -> Option<Option<Number>> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let all = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return all.then(|| u64::from_str_radix(digits, radix).ok().map(Number::from));
        }
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(None);
    }
    if !is_decimal(unsigned) {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Some(whole.into()));
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(Some(whole.into()));
    }
    text.parse::<f64>().ok().map(Number::from_f64)
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn core_schema_resolves_scalars() {
        for (text, expected) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("null", json!(null)),
            ("nUll", json!("nUll")),
            ("true", json!(true)),
            ("FALSE", json!(false)),
            ("0", json!(0)),
            ("-12", json!(-12)),
            ("+7", json!(7)),
            ("007", json!(7)),
            ("0o17", json!(15)),
            ("0xff", json!(255)),
            ("0x", json!("0x")),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("1_000", json!("1_000")),
            ("1e", json!("1e")),
            (".", json!(".")),
            ("-", json!("-")),
            ("12:30", json!("12:30")),
            ("2013-01-31", json!("2013-01-31")),
        ] {
            assert_eq!(resolve(text), Resolved::Value(expected), "{text}");
        }
        for text in ["no", "yes", "on", "off", "y", "n", "NO", "inf", "nan", "Infinity"] {
            assert_eq!(resolve(text), Resolved::Value(json!(text)));
        }
        for text in [".inf", "-.INF", ".nan", "1e999"] {
            assert_eq!(resolve(text), Resolved::NotFinite, "{text}");
        }
    }
}
