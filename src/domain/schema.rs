//! What a failed validation against a JSON Schema of ours says, for whoever words it.

use jsonschema::error::TypeKind;
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

/// The node of `schema` that holds the keyword which failed.
pub(crate) fn node_around<'a>(schema: &'a Value, error: &ValidationError<'_>) -> &'a Value {
    let keyword = error.schema_path().as_str();
    keyword.rsplit_once('/').and_then(|(node, _)| schema.pointer(node)).unwrap_or(&Value::Null)
}

/// The types that would have been right. `null` comes last, since it is the least likely to have been meant.
pub(crate) fn types(kind: &TypeKind) -> Vec<JsonType> {
    let mut types = match kind {
        TypeKind::Single(ty) => vec![*ty],
        TypeKind::Multiple(set) => set.iter().collect(),
    };
    types.sort_by_key(|ty| *ty == JsonType::Null);
    types
}
