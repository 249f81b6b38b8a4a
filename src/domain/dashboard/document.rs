//! A dashboard document, version 2, and its JSON Schema.
//!
//! Invariant: the schema is derived from these types, so the published schema, the editor's completion and the accepted
//! documents can't drift apart.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::*;
use super::panel::Panel;
use super::param::Param;

/// The version of dashboards that this program reads.
pub const VERSION: u32 = 2;

/// Where the schema is served.
pub const SCHEMA_PATH: &str = "/schemas/dashboard.json";

/// Queries over a pipeline's tables, panels that show their results, and parameters that viewers choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Dashboard")]
pub struct DashboardDocument {
    /// URL of this schema, for editors; not read.
    #[serde(rename = "$schema", default)]
    pub schema: Option<String>,
    /// Version of the format: 2.
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    /// Title of the dashboard.
    #[schemars(length(min = 1, max = TITLE_CHARS_MAX))]
    pub title: String,
    /// Description of the dashboard.
    #[serde(default)]
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    pub description: String,
    /// Parameters that viewers choose. A query uses them as `$name`.
    #[serde(default)]
    #[schemars(length(max = PARAMS_MAX))]
    pub params: Vec<Param>,
    /// The queries, by name: 1 to 63 of a-z, 0-9 and `_`, starting with a letter.
    #[serde(default)]
    #[schemars(extend("maxProperties" = QUERIES_MAX))]
    pub queries: BTreeMap<String, Query>,
    /// The panels, in order. They fill rows of 12 columns from left to right.
    #[schemars(length(max = PANELS_MAX))]
    pub panels: Vec<Panel>,
}

/// A query over the pipeline's tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// One SELECT in DuckDB's dialect. A parameter `p` is `$p`, a date range `$p_start` and `$p_end`. Values are bound,
    /// never inserted into the text; an unset parameter is null.
    #[schemars(length(min = 1, max = SQL_CHARS_MAX))]
    pub sql: String,
    /// Description of the query.
    #[serde(default)]
    #[schemars(length(max = DESCRIPTION_CHARS_MAX))]
    pub description: String,
}

/// The published JSON Schema of dashboards (draft 2020-12), without `$ref`s, so that the schema has the same structure
/// as a document.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<DashboardDocument>().to_value();
        if let Value::Object(root) = &mut schema {
            root.insert("$id".into(), SCHEMA_PATH.into());
        }
        schema
    });
    &SCHEMA
}
