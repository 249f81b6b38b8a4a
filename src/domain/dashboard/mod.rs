//! Dashboards, version 2: the document as people write it ([`DashboardDocument`]), what is wrong with a text
//! ([`examine`]), what its parameters stand for ([`Settings`]), and the statements that its panels need.
//!
//! Invariants: the text is what is stored; it is read, never written anew. A parameter's value is bound to a statement,
//! never put into its text.

mod bind;
mod document;
mod examine;
mod format;
pub mod limits;
mod needs;
mod panel;
mod param;
mod place;
mod preset;
mod problem;
mod references;
mod scalar;
mod settings;
mod sql_text;
mod statements;
mod structure;
mod yaml;

pub use bind::{Described, SqlFault};
pub use document::{DashboardDocument, Query, SCHEMA_PATH, VERSION, schema};
pub use examine::{Dashboard, Examined, NamedQuery, examine};
pub use format::{Family, Format};
pub use needs::{Need, needs};
pub use panel::{Aggregate, Compare, Field, Panel};
pub use param::{Options, OptionsQuery, Param};
pub use preset::{DayPreset, DayRange, RangePreset};
pub use problem::{Place, Problem, ProblemKind};
pub use settings::{Bound, Setting, Settings};
pub use sql_text::{Placeholder, scan};
pub use statements::{options_sql, panel_sql};

/// The text of a new dashboard.
pub const TEMPLATE: &str = include_str!("template.yaml");

#[cfg(test)]
mod tests;
