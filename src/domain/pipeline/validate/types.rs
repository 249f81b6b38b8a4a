//! Parses types, and suggests one for an unknown name.

use crate::domain::pipeline::types::DataType;
use crate::domain::text::{did_you_mean, quoted, suggest};

/// Names of types in other systems.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("int", "int32"),
    ("integer", "int32"),
    ("int4", "int32"),
    ("bigint", "int64"),
    ("long", "int64"),
    ("hugeint", "decimal(38,0)"),
    ("smallint", "int16"),
    ("short", "int16"),
    ("int2", "int16"),
    ("tinyint", "int8"),
    ("byte", "int8"),
    ("uint", "uint32"),
    ("float", "float64"),
    ("double", "float64"),
    ("double precision", "float64"),
    ("float8", "float64"),
    ("real", "float32"),
    ("float4", "float32"),
    ("number", "float64` or `decimal(18,2)"),
    ("numeric", "decimal(18,2)"),
    ("money", "decimal(18,2)"),
    ("decimal", "decimal(18,2)"),
    ("text", "string"),
    ("str", "string"),
    ("varchar", "string"),
    ("char", "string"),
    ("utf8", "string"),
    ("object", "json"),
    ("jsonb", "json"),
    ("bool", "boolean"),
    ("datetime", "timestamp"),
    ("timestamp without time zone", "timestamp"),
    ("timestamp with time zone", "timestamptz"),
    ("timestamp_tz", "timestamptz"),
    ("datetimetz", "timestamptz"),
    ("guid", "uuid"),
];

/// Parses a type.
///
/// # Errors
/// A message with a suggestion.
pub(super) fn parse(text: &str) -> Result<DataType, String> {
    if let Some(ty) = DataType::parse(text) {
        return Ok(ty);
    }
    let plain = text.trim().to_lowercase();
    let stem = plain.split('(').next().unwrap_or_default().trim_end();
    if stem == "decimal" && plain.contains('(') {
        return Err(format!("{} is not a type: expected `decimal(p,s)` with 1 ≤ p ≤ 38 and 0 ≤ s ≤ p", quoted(text)));
    }
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == plain || *name == stem).map(|(_, ours)| *ours);
    let ours = DataType::PLAIN.iter().map(|(name, _)| *name);
    let meant = ours.clone().find(|name| *name == plain).or(other).or_else(|| suggest(&plain, ours.clone()));
    let hint = match meant {
        Some(meant) => did_you_mean(Some(meant)),
        None => format!(", expected one of {}, decimal(p,s)", ours.collect::<Vec<_>>().join(", ")),
    };
    Err(format!("{} is not a type{hint}", quoted(text)))
}
