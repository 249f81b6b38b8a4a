//! Finds violations of a JSON Schema, and helpers for messages about them.

use jsonschema::error::TypeKind;
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

/// Values of a document of which all violations are found. The validator collects them before it returns any, some 2 KiB
/// each, and a document of a few bytes per value can have several of each.
pub(crate) const VALUES_CHECKED_MAX: usize = 20_000;

/// Which violations were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Violations {
    All,
    /// The document is large, so only the first one was looked for.
    First,
}

/// Calls `see` for the violations of `value`.
pub(crate) fn each_violation(
    validator: &Validator,
    value: &Value,
    mut see: impl FnMut(&ValidationError<'_>),
) -> Violations {
    if has_at_most(value, VALUES_CHECKED_MAX) {
        validator.iter_errors(value).for_each(|error| see(&error));
        return Violations::All;
    }
    match validator.validate(value) {
        Ok(()) => Violations::All,
        Err(first) => {
            see(&first);
            Violations::First
        }
    }
}

/// Whether a document has at most `most` values, itself included. Looks at no more.
fn has_at_most(value: &Value, most: usize) -> bool {
    let (mut rest, mut seen) = (vec![value], 0);
    while let Some(value) = rest.pop() {
        seen += 1;
        if seen + rest.len() > most {
            return false;
        }
        match value {
            Value::Array(items) if items.len() > most => return false,
            Value::Object(members) if members.len() > most => return false,
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => rest.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}

/// The node of `schema` with the violated keyword.
pub(crate) fn node_around<'a>(schema: &'a Value, error: &ValidationError<'_>) -> &'a Value {
    let keyword = error.schema_path().as_str();
    keyword.rsplit_once('/').and_then(|(node, _)| schema.pointer(node)).unwrap_or(&Value::Null)
}

/// The expected types; `null` last, since it is the least likely intent.
pub(crate) fn types(kind: &TypeKind) -> Vec<JsonType> {
    let mut types = match kind {
        TypeKind::Single(ty) => vec![*ty],
        TypeKind::Multiple(set) => set.iter().collect(),
    };
    types.sort_by_key(|ty| *ty == JsonType::Null);
    types
}
