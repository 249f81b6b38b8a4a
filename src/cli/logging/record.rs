//! Collects the message and the typed fields of an event.

use std::fmt::Debug;

use serde_json::{Map, Number, Value};
use tracing::field::{Field, Visit};

/// Names of a line's own fields; event fields with these names get a trailing `_`.
const RESERVED: [&str; 4] = ["ts", "level", "event", "target"];
/// Longest text, in bytes, so that lines are bounded.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Fields by name, in order of arrival; a later value replaces an earlier one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields {
    message: String,
    values: Map<String, Value>,
}

impl Fields {
    pub(super) fn put(&mut self, name: &str, value: Value) {
        let name = name.strip_prefix("r#").unwrap_or(name);
        let name = if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() };
        self.values.insert(name, value);
    }

    pub(super) fn put_text(&mut self, name: &str, text: &str) {
        if name == "message" {
            self.message = cut(text);
        } else {
            self.put(name, Value::String(cut(text)));
        }
    }

    pub(super) fn put_all(&mut self, others: &Self) {
        for (name, value) in &others.values {
            self.values.insert(name.clone(), value.clone());
        }
    }

    pub(super) fn take_message(&mut self) -> String {
        std::mem::take(&mut self.message)
    }

    pub(super) fn values(&self) -> &Map<String, Value> {
        &self.values
    }
}

fn cut(text: &str) -> String {
    match text.len() <= TEXT_BYTES_MAX {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]),
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_text(field.name(), &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinities.
        let value = Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number);
        self.put(field.name(), value);
    }
}
