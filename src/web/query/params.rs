//! Parses the parameters of a query.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::domain::limits::QUERY_PARAMETERS_MAX;
use crate::domain::table_log::history::AsOf;
use crate::http::{ApiError, ErrorCode, Request, json_object};
use crate::web::access::{as_of, clipped};
use crate::web::sql::{Param, Statement};

/// By name (`$name`) or in order (`?`, `$1`): numbers, strings, booleans, null, and lists of these.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`params`: expected an object or a list")]
pub(super) enum Params {
    Named(Map<String, Value>),
    Positional(Vec<Value>),
}

/// A version of tables.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`as_of`: expected an RFC 3339 time or a sequence")]
pub(super) enum AsOfParam {
    Sequence(u64),
    Text(String),
}

impl AsOfParam {
    pub(super) fn parse(self) -> Result<AsOf, ApiError> {
        match self {
            Self::Sequence(sequence) => as_of(&sequence.to_string()),
            Self::Text(text) => as_of(&text),
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::Named(Map::new())
    }
}

/// Parses the body of a request with parameters.
///
/// # Errors
/// Errors of [`Request::json`]; `invalid_request` for an integer that doesn't fit 64 bits.
pub(super) fn parse_body<T: DeserializeOwned>(request: &mut Request) -> Result<T, ApiError> {
    let bytes = request.body_bytes()?;
    let value = json_object(&bytes)?;
    match rounded_integer(&bytes) {
        None => Ok(value),
        Some(integer) => {
            let message = format!(
                "the integer `{}` is out of range ({} to {}); send it as a string and cast it in \
                 the SQL",
                clipped(&integer),
                i64::MIN,
                u64::MAX
            );
            Err(ApiError::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// The first integer of a JSON document that fits neither `i64` nor `u64`.
fn rounded_integer(json: &[u8]) -> Option<String> {
    let (mut at, mut quoted) = (0, false);
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'-' | b'0'..=b'9' if !quoted => {
                let rest = &json[at..];
                let end = rest.iter().position(|b| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
                let number = String::from_utf8_lossy(&rest[..end.unwrap_or(rest.len())]);
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number.into_owned());
                }
                at += number.len() - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// A statement with its parameters.
///
/// # Errors
/// `invalid_request` for an unsupported value.
pub(super) fn query(sql: String, params: Params) -> Result<Statement, ApiError> {
    let params: Vec<(String, Value)> = match params {
        Params::Named(named) => named.into_iter().collect(),
        Params::Positional(values) => {
            values.into_iter().enumerate().map(|(at, value)| ((at + 1).to_string(), value)).collect()
        }
    };
    if params.len() > QUERY_PARAMETERS_MAX {
        let message = format!("{} parameters, expected at most {QUERY_PARAMETERS_MAX}", params.len());
        return Err(ApiError::new(ErrorCode::InvalidRequest, message));
    }
    let params = params.into_iter().map(|(name, value)| {
        let param = param(value, true).ok_or_else(|| {
            let expected = "a number, a string, true, false, null or a list of these";
            let message = format!("invalid value of parameter `{}`: expected {expected}", clipped(&name));
            ApiError::new(ErrorCode::InvalidRequest, message)
        })?;
        Ok((name, param))
    });
    Ok(Statement { sql, params: params.collect::<Result<_, ApiError>>()? })
}

fn param(value: Value, may_be_list: bool) -> Option<Param> {
    Some(match value {
        Value::Null => Param::Null,
        Value::Bool(value) => Param::Boolean(value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Param::Integer(integer),
            (None, Some(integer)) => Param::Unsigned(integer),
            (None, None) => Param::Float(number.as_f64()?),
        },
        Value::String(text) => Param::Text(text),
        Value::Array(values) if may_be_list => {
            Param::List(values.into_iter().map(|value| param(value, false)).collect::<Option<_>>()?)
        }
        Value::Array(_) | Value::Object(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(params: Value) -> Result<Vec<(String, Param)>, ErrorCode> {
        let params = serde_json::from_value(params).unwrap();
        query(String::new(), params).map(|statement| statement.params).map_err(|error| error.code())
    }

    #[test]
    fn parameter_values_keep_their_types() {
        let text = |text: &str| Param::Text(text.to_owned());
        assert_eq!(read(json!(["a", 1])), Ok(vec![("1".into(), text("a")), ("2".into(), Param::Integer(1))]));
        let list = Param::List(vec![Param::Null, Param::Boolean(true), Param::Float(1.5)]);
        assert_eq!(read(json!({ "x": [null, true, 1.5] })), Ok(vec![("x".into(), list)]));
        assert_eq!(read(json!([u64::MAX])), Ok(vec![("1".into(), Param::Unsigned(u64::MAX))]));
        for bad in [json!({ "x": { "y": 1 } }), json!([[[1]]]), json!(vec![0; QUERY_PARAMETERS_MAX + 1])] {
            assert_eq!(read(bad), Err(ErrorCode::InvalidRequest));
        }
    }

    #[test]
    fn out_of_range_integers_are_found() {
        for (json, found) in [
            ("[18446744073709551615, -9223372036854775808, 1e300, 12345678901234567890123.0]", None),
            (r#"{"12345678901234567890123": "\"12345678901234567890123\\", "x": 1}"#, None),
            (r#"{"x": [1, 18446744073709551616]}"#, Some("18446744073709551616")),
            ("[-9223372036854775809]", Some("-9223372036854775809")),
        ] {
            assert_eq!(rounded_integer(json.as_bytes()).as_deref(), found, "{json}");
        }
    }
}
