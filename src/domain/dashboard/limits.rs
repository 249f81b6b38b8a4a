//! Limits of dashboards; those of documents are in the JSON Schema.

/// Largest text of a dashboard, in bytes.
pub const YAML_BYTES_MAX: usize = 256 << 10;
/// Nodes of a document, keys included, once aliases are expanded.
pub const NODES_MAX: usize = 100_000;
/// Text of a document once aliases are expanded, in bytes.
pub const EXPANDED_BYTES_MAX: usize = 4 * YAML_BYTES_MAX;
/// Deepest nesting of a document.
pub const DEPTH_MAX: usize = 32;
/// Longest name in a mapping, in bytes.
pub const KEY_BYTES_MAX: usize = 256;
/// Duplicate names that one validation reports.
pub const DUPLICATES_MAX: usize = 100;
/// Problems that one validation reports.
pub const PROBLEMS_MAX: usize = 1_000;
/// Parameters of a dashboard.
pub const PARAMS_MAX: usize = 32;
/// Queries of a dashboard.
pub const QUERIES_MAX: usize = 64;
/// Panels of a dashboard.
pub const PANELS_MAX: usize = 100;
/// Longest SQL of a query, in characters.
pub const SQL_CHARS_MAX: usize = 64 << 10;
/// Longest name of a parameter, query or panel, in bytes.
pub const NAME_BYTES_MAX: usize = 63;
/// Longest title, in characters.
pub const TITLE_CHARS_MAX: usize = 200;
/// Longest description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 10_000;
/// Longest text of a `markdown` panel, in characters.
pub const MARKDOWN_CHARS_MAX: usize = 20_000;
/// Longest name of a column, in characters.
pub const FIELD_CHARS_MAX: usize = 256;
/// Columns of a table, or series of a chart.
pub const FIELDS_MAX: usize = 100;
/// Options of a parameter, in the document or from a query.
pub const OPTIONS_MAX: usize = 1_000;
/// Chosen values of one parameter.
pub const CHOICES_MAX: usize = 1_000;
/// Longest text given for a parameter, in characters.
pub const VALUE_CHARS_MAX: usize = 4_096;
/// Columns of the grid of panels.
pub const GRID_COLUMNS: u8 = 12;
/// Minimum and maximum height of a panel, in CSS pixels.
pub const HEIGHT_PX_MIN: u16 = 40;
pub const HEIGHT_PX_MAX: u16 = 4_000;
