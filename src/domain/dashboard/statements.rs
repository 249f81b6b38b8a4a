//! Builds the statements of panels and options.
//!
//! Invariant: chosen values never become part of a statement's text; only quoted column names of the document do.

use super::examined::{Dashboard, NamedQuery};
use super::panel::{Aggregate, Compare, Panel};
use super::param::{OptionsQuery, Param};
use super::preset::DayRange;
use super::settings::{BoundValue, ParamSettings};

impl NamedQuery {
    /// The chosen values that it uses.
    pub fn bound(&self, settings: &ParamSettings) -> Vec<(String, BoundValue)> {
        settings.bound().into_iter().filter(|(name, _)| self.uses(name)).collect()
    }
}

impl Dashboard {
    /// The settings of a panel's comparison: `settings` with its date range moved. `None` without a comparison or target.
    pub fn compared(&self, panel: &Panel, settings: &ParamSettings) -> Option<(ParamSettings, DayRange)> {
        let (compare, named) = panel.compare();
        let query = self.query(panel.query()?)?;
        let compare = compare?;
        let name = named.or_else(|| ranges_of(self, query).first().copied())?;
        settings.moved(name, |range| match compare {
            Compare::PreviousPeriod => range.previous_period(),
            Compare::PreviousYear => range.previous_year(),
        })
    }
}

/// The date ranges that a query uses.
pub(super) fn ranges_of<'a>(dashboard: &'a Dashboard, query: &NamedQuery) -> Vec<&'a str> {
    let uses = |name: &str| query.uses(&format!("{name}_start")) || query.uses(&format!("{name}_end"));
    let ranges = dashboard.params().filter(|param| matches!(param, Param::DateRange(_)));
    ranges.map(Param::name).filter(|name| uses(name)).collect()
}

/// The SQL of a panel: its query, or aggregates over it, which are exact for any number of rows.
pub fn panel_sql(panel: &Panel, query: &NamedQuery) -> String {
    match panel {
        Panel::Kpi(kpi) => match kpi.value.aggregate {
            Some(aggregate) => {
                let field = &kpi.value.field;
                format!(
                    "SELECT {} AS {} FROM (\n{}\n) AS q",
                    aggregate_of(aggregate, field),
                    quoted(field),
                    query.sql()
                )
            }
            None => format!("SELECT * FROM (\n{}\n) AS q LIMIT 1", query.sql()),
        },
        Panel::Pivot(pivot) => {
            let by: Vec<String> = pivot.rows.iter().chain(&pivot.columns).map(|field| quoted(field.name())).collect();
            let values = pivot.values.iter().map(|value| {
                let name = format!("{}({})", aggregate_name(value.aggregate), value.field);
                format!("{} AS {}", aggregate_of(value.aggregate, &value.field), quoted(&name))
            });
            let selected = by.iter().cloned().chain(values).collect::<Vec<_>>().join(", ");
            let positions = (1..=by.len()).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
            format!("SELECT {selected} FROM (\n{}\n) AS q GROUP BY {positions} ORDER BY {positions}", query.sql())
        }
        Panel::Line(_)
        | Panel::Area(_)
        | Panel::Bar(_)
        | Panel::Pie(_)
        | Panel::Scatter(_)
        | Panel::Heatmap(_)
        | Panel::Table(_)
        | Panel::Markdown(_) => query.sql().to_owned(),
    }
}

/// The SQL of a parameter's options: value and label.
pub fn options_sql(options: &OptionsQuery, query: &NamedQuery) -> String {
    let label = options.label.as_ref().unwrap_or(&options.value);
    format!("SELECT {} AS value, {} AS label FROM (\n{}\n) AS q", quoted(&options.value), quoted(label), query.sql())
}

fn aggregate_of(aggregate: Aggregate, field: &str) -> String {
    let field = quoted(field);
    match aggregate {
        Aggregate::CountDistinct => format!("count(DISTINCT {field})"),
        Aggregate::Sum
        | Aggregate::Avg
        | Aggregate::Min
        | Aggregate::Max
        | Aggregate::Median
        | Aggregate::Count
        | Aggregate::First
        | Aggregate::Last => format!("{}({field})", aggregate_name(aggregate)),
    }
}

fn aggregate_name(aggregate: Aggregate) -> &'static str {
    match aggregate {
        Aggregate::Sum => "sum",
        Aggregate::Avg => "avg",
        Aggregate::Min => "min",
        Aggregate::Max => "max",
        Aggregate::Median => "median",
        Aggregate::Count => "count",
        Aggregate::CountDistinct => "count_distinct",
        Aggregate::First => "first",
        Aggregate::Last => "last",
    }
}

/// A quoted identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
