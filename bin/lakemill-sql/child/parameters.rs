//! Writes the values of parameters as arguments of `EXECUTE`.
//!
//! Invariant: a value is written only as a text in single quotes with a cast to its type, so that it can't be anything
//! but a value. DuckDB's bindings don't support lists; the arguments of `EXECUTE` do, and are bound too.

use chrono::{NaiveDate, NaiveDateTime};
use lakemill::sql::query::{identifier, literal};
use lakemill::sql::sandbox::task::{StatementParams, Value};

use super::failure::TaskError;

/// The arguments for parameters called `names`.
///
/// # Errors
/// A value is missing, surplus, or malformed.
pub fn arguments(names: &[String], params: &StatementParams) -> Result<String, TaskError> {
    let by_position = |name: &str| name.parse::<usize>().ok().filter(|at| *at > 0);
    let mut out: Vec<String> = Vec::with_capacity(names.len());
    match params {
        StatementParams::Named(values) => {
            for name in names {
                let value = values.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value);
                let value = value.ok_or_else(|| match by_position(name) {
                    None => TaskError::invalid(format!("the parameter `${name}` has no value")),
                    Some(at) => TaskError::invalid(format!("the parameter at position {at} has no value")),
                })?;
                let text =
                    argument(value).map_err(|wrong| TaskError::invalid(format!("the parameter `${name}`: {wrong}")))?;
                out.push(format!("{} := {text}", identifier(name)));
            }
            if let Some(surplus) = values.keys().find(|given| !names.iter().any(|n| n.eq_ignore_ascii_case(given))) {
                return Err(TaskError::invalid(format!("there is no parameter `${surplus}` in the statement")));
            }
        }
        StatementParams::Positional(values) => {
            if let Some(name) = names.iter().find(|name| by_position(name).is_none()) {
                return Err(TaskError::invalid(format!("the parameter `${name}` has no value")));
            }
            let count = names.iter().filter_map(|name| by_position(name)).max().unwrap_or_default();
            if count > values.len() {
                return Err(TaskError::invalid(format!("the parameter at position {} has no value", values.len() + 1)));
            }
            if count < values.len() {
                return Err(TaskError::invalid(format!(
                    "there is no parameter at position {} in the statement",
                    count + 1
                )));
            }
            for (at, value) in values.iter().enumerate() {
                let wrong = |wrong| TaskError::invalid(format!("the parameter at position {}: {wrong}", at + 1));
                out.push(argument(value).map_err(wrong)?);
            }
        }
    }
    Ok(out.join(", "))
}

/// The first of the named parameters that has no value.
pub fn missing<'a>(names: &'a [String], params: &StatementParams) -> Option<&'a str> {
    let has_value = |name: &str| match params {
        StatementParams::Named(values) => values.keys().any(|given| given.eq_ignore_ascii_case(name)),
        StatementParams::Positional(values) => name.parse::<usize>().is_ok_and(|at| (1..=values.len()).contains(&at)),
    };
    names.iter().map(String::as_str).find(|name| !has_value(name))
}

fn cast(text: &str, ty: &str) -> String {
    format!("CAST({} AS {ty})", literal(text))
}

/// The DuckDB type of a value that isn't null or a list.
fn sql_type(value: &Value) -> Option<&'static str> {
    match value {
        Value::Boolean(_) => Some("BOOLEAN"),
        Value::Integer(_) => Some("BIGINT"),
        Value::Unsigned(_) => Some("UBIGINT"),
        Value::Float(_) => Some("DOUBLE"),
        Value::Text(_) => Some("VARCHAR"),
        Value::Date(_) => Some("DATE"),
        Value::Timestamp(_) => Some("TIMESTAMP"),
        Value::Null | Value::List(_) => None,
    }
}

fn argument(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::Null => return Ok("NULL".to_owned()),
        Value::List(values) => return list(values),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Unsigned(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => "NaN".to_owned(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(text) if text.contains('\0') => return Err("a NUL character can't be part of a value".to_owned()),
        Value::Text(text) => text.clone(),
        Value::Date(text) => match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            Ok(date) => date.format("%Y-%m-%d").to_string(),
            Err(_) => return Err(format!("expected a date like `2013-01-31`, found `{text}`")),
        },
        Value::Timestamp(text) => match NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f") {
            Ok(time) => time.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
            Err(_) => return Err(format!("expected a timestamp like `2013-01-31T05:00:00`, found `{text}`")),
        },
    };
    Ok(cast(&text, sql_type(value).unwrap_or("VARCHAR")))
}

fn list(values: &[Value]) -> Result<String, String> {
    let mut first = None;
    for value in values.iter().filter(|value| **value != Value::Null) {
        let own = sql_type(value).ok_or("a nested list can't be used")?;
        first = Some(match first {
            None => own,
            Some(known) if known == own => own,
            Some("BIGINT" | "UBIGINT" | "HUGEINT") if matches!(own, "BIGINT" | "UBIGINT") => "HUGEINT",
            Some(_) => return Err("the values of a list have different types".to_owned()),
        });
    }
    let first = first.unwrap_or("VARCHAR");
    let values = values.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("CAST([{}] AS {first}[])", values.join(", ")))
}
