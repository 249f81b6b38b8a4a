//! Helpers for messages about JSON Schema violations.

use jsonschema::error::TypeKind;
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

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
