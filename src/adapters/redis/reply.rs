//! Decodes replies of the server. An unexpected form is a malformed reply, never a panic.

use ::redis::Value;
use chrono::{DateTime, Utc};

use super::error::malformed;
use crate::ports::kv::{KvError, KvResult};

/// A reply to an operation.
#[derive(Debug)]
pub(super) struct OperationReply {
    operation: &'static str,
    value: Value,
}

impl OperationReply {
    pub(super) fn new(operation: &'static str, value: Value) -> Self {
        Self { operation, value }
    }

    pub(super) fn operation(&self) -> &'static str {
        self.operation
    }

    pub(super) fn is_nil(&self) -> bool {
        self.value == Value::Nil
    }

    /// Text; invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> KvResult<String> {
        match &self.value {
            Value::BulkString(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Value::SimpleString(text) => Ok(text.clone()),
            Value::Okay => Ok("OK".into()),
            _ => Err(self.unexpected("a text")),
        }
    }

    pub(super) fn optional_text(&self) -> KvResult<Option<String>> {
        if self.is_nil() { Ok(None) } else { self.text().map(Some) }
    }

    /// A number, as an integer or as text.
    pub(super) fn number(&self) -> KvResult<i64> {
        match &self.value {
            Value::Int(number) => Ok(*number),
            _ => self.text()?.parse().map_err(|_| self.unexpected("a whole number")),
        }
    }

    pub(super) fn count(&self) -> KvResult<u64> {
        u64::try_from(self.number()?).map_err(|_| self.unexpected("a count"))
    }

    pub(super) fn flag(&self) -> KvResult<bool> {
        Ok(self.number()? != 0)
    }

    pub(super) fn time(&self) -> KvResult<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.number()?).ok_or_else(|| self.unexpected("a time in ms"))
    }

    /// The items of a list; nil is an empty list.
    pub(super) fn list(self) -> KvResult<Vec<Self>> {
        let Self { operation, value } = self;
        match value {
            Value::Array(values) => Ok(values.into_iter().map(|value| Self { operation, value }).collect()),
            Value::Nil => Ok(Vec::new()),
            value => Err(Self { operation, value }.unexpected("a list")),
        }
    }

    /// Exactly `N` items; missing ones at the end are nil.
    pub(super) fn parts<const N: usize>(self) -> KvResult<[Self; N]> {
        let operation = self.operation;
        let mut parts = self.list()?;
        parts.resize_with(parts.len().max(N), || Self { operation, value: Value::Nil });
        <[Self; N]>::try_from(parts)
            .map_err(|parts| malformed(operation, "a shorter list", &format!("{} parts", parts.len())))
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> KvError {
        malformed(self.operation, expected, &format!("{:?}", self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(value: Value) -> OperationReply {
        OperationReply::new("test", value)
    }

    #[test]
    fn numbers_decode_from_integers_and_text() {
        assert_eq!(reply(Value::Int(7)).number().unwrap(), 7);
        assert_eq!(reply(Value::BulkString(b"1700000000000001".to_vec())).count().unwrap(), 1_700_000_000_000_001);
        assert!(reply(Value::BulkString(b"x".to_vec())).number().is_err());
        assert!(reply(Value::Int(-1)).count().is_err());
        assert!(reply(Value::Nil).number().is_err());
    }

    #[test]
    fn missing_parts_are_nil_and_too_many_are_malformed() {
        let list = |n: i64| reply(Value::Array((0..n).map(Value::Int).collect()));
        let [first, second] = list(1).parts().unwrap();
        assert!(!first.is_nil() && second.is_nil());
        assert!(list(3).parts::<2>().is_err());
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(reply(Value::BulkString(b"a\xffb".to_vec())).text().unwrap(), "a\u{fffd}b");
    }
}
