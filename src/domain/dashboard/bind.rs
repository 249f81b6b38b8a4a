//! Compares the columns that a document names with those that its queries return.

use super::column_references::{ColumnReference, column_references, options_column_references};
use super::examined::{ExaminedDashboard, NamedQuery};
use super::format::ValueClass;
use super::problem::DashboardProblemKind;
use super::yaml::child;
use crate::domain::text::{did_you_mean, quoted, suggest};

/// Why a query can't be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    pub message: String,
    /// Line and column within the SQL, from 1, if they are known.
    pub position: Option<(u32, u32)>,
}

/// The columns of a query's result by name and type, or the reason why they are unknown.
pub type QueryColumns = Result<Vec<(String, String)>, QueryError>;

impl ExaminedDashboard {
    /// The queries that can be bound: those without problems.
    pub fn bindable_queries(&self) -> Vec<NamedQuery> {
        let has_problem = |query: &NamedQuery| {
            let at = child("/queries", &query.name);
            self.problems.iter().any(|p| p.path.strip_prefix(&at).is_some_and(|rest| rest.starts_with('/')))
        };
        self.dashboard.queries.iter().filter(|query| !has_problem(query)).cloned().collect()
    }

    /// Adds the problems found by comparing references with the columns of the queries' results.
    pub fn bind(&mut self, results: Vec<(String, QueryColumns)>) {
        for (name, result) in &results {
            if let Err(fault) = result {
                let at = format!("{}/sql", child("/queries", name));
                let position = match fault.position {
                    Some((line, column)) => self.source.position_within(&at, line, column),
                    None => self.source.position(DashboardProblemKind::InvalidSql, &at),
                };
                self.add_at(DashboardProblemKind::InvalidSql, &at, fault.message.clone(), position);
            }
        }
        let columns =
            |query: &str| results.iter().find(|(name, _)| name == query).and_then(|(_, result)| result.as_ref().ok());
        let dashboard = self.dashboard.clone();
        for (index, param) in &dashboard.params {
            if let Some(options) = param.options_query()
                && let Some(columns) = columns(&options.query)
            {
                self.bind_column_references(
                    &format!("/params/{index}"),
                    &options.query,
                    &options_column_references(options),
                    columns,
                );
            }
        }
        for (index, panel) in &dashboard.panels {
            if let Some(query) = panel.query()
                && let Some(columns) = columns(query)
            {
                self.bind_column_references(&format!("/panels/{index}"), query, &column_references(panel), columns);
            }
        }
        self.sort();
    }

    fn bind_column_references(
        &mut self,
        at: &str,
        query: &str,
        column_references: &[ColumnReference],
        columns: &[(String, String)],
    ) {
        for need in column_references {
            let at = format!("{at}{}", need.at);
            let Some((_, ty)) = columns.iter().find(|(name, _)| *name == need.column) else {
                let hint = did_you_mean(suggest(&need.column, columns.iter().map(|(name, _)| name.as_str())));
                let message = format!("the query `{query}` returns no column {}{hint}", quoted(&need.column));
                self.add(DashboardProblemKind::UnknownColumn, &at, message);
                continue;
            };
            let Some(family) = need.family.filter(|family| *family != ValueClass::of(ty)) else { continue };
            let expected = match family {
                ValueClass::Number => "numbers",
                ValueClass::Time => "a date or time",
                ValueClass::Other => "another type",
            };
            let column = quoted(&need.column);
            let message = format!("the column {column} is of type `{ty}`, expected {expected}, since {}", need.purpose);
            self.add(DashboardProblemKind::TypeMismatch, &at, message);
        }
    }
}
