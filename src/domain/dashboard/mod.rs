//! Dashboards, version 2: the document ([`DashboardDocument`]), its problems ([`examine`]), chosen parameters
//! ([`ParamSettings`]), and the statements of its panels.
//!
//! Invariants: the stored text is read and never rewritten. A parameter's value is bound to a statement, never inserted
//! into its text.

mod bind;
mod column_references;
mod document;
mod examine;
mod examined;
mod format;
pub mod limits;
mod panel;
mod param;
mod position;
mod preset;
mod problem;
mod references;
mod scalar;
mod settings;
mod sql_text;
mod statements;
mod structure;
mod yaml;

pub use bind::{QueryColumns, QueryError};
pub use column_references::{ColumnReference, column_references};
pub use document::{DashboardDocument, Query, SCHEMA_PATH, VERSION, schema};
pub use examine::examine;
pub use examined::{Dashboard, ExaminedDashboard, NamedQuery};
pub use format::{Format, ValueClass};
pub use panel::{Aggregate, Compare, Field, Panel};
pub use param::{Options, OptionsQuery, Param};
pub use preset::{DayPreset, DayRange, RangePreset};
pub use problem::{DashboardProblem, DashboardProblemKind};
pub use settings::{BoundValue, ParamSettings, Setting};
pub use sql_text::{Placeholder, scan};
pub use statements::{options_sql, panel_sql};

/// The text of a new dashboard.
pub const TEMPLATE: &str = include_str!("template.yaml");

#[cfg(test)]
mod tests;
