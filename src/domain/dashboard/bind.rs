//! Compares what a document names with what its queries really return.

use super::examine::{Examined, NamedQuery};
use super::format::Family;
use super::needs::{Need, needs, options_needs};
use super::problem::ProblemKind;
use super::references::options_query;
use super::yaml::child;
use crate::domain::words::{did_you_mean, quoted, suggest};

/// Why a query can't be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlFault {
    pub message: String,
    /// Line and column within the SQL, from 1, if they are known.
    pub position: Option<(u32, u32)>,
}

/// The columns that a query returns, by name and type, or why it can't be told.
pub type Described = Result<Vec<(String, String)>, SqlFault>;

impl Examined {
    /// The queries that can be asked what they return: those whose text has no problem yet.
    pub fn askable(&self) -> Vec<NamedQuery> {
        let has_problem = |query: &NamedQuery| {
            let at = child("/queries", &query.name);
            self.problems.iter().any(|p| p.path.strip_prefix(&at).is_some_and(|rest| rest.starts_with('/')))
        };
        self.dashboard.queries.iter().filter(|query| !has_problem(query)).cloned().collect()
    }

    /// Takes what queries of the dashboard return, by their names, and adds the problems that follow from it.
    pub fn bind(&mut self, results: Vec<(String, Described)>) {
        for (name, result) in &results {
            if let Err(fault) = result {
                let at = format!("{}/sql", child("/queries", name));
                let place = match fault.position {
                    Some((line, column)) => self.source.place_within(&at, line, column),
                    None => self.source.place(ProblemKind::InvalidSql, &at),
                };
                self.add_at(ProblemKind::InvalidSql, &at, fault.message.clone(), place);
            }
        }
        let columns =
            |query: &str| results.iter().find(|(name, _)| name == query).and_then(|(_, result)| result.as_ref().ok());
        let dashboard = self.dashboard.clone();
        for (index, param) in &dashboard.params {
            if let Some((query, options)) = options_query(param)
                && let Some(columns) = columns(query)
            {
                self.bind_needs(&format!("/params/{index}"), query, &options_needs(options), columns);
            }
        }
        for (index, panel) in &dashboard.panels {
            if let Some(query) = panel.query()
                && let Some(columns) = columns(query)
            {
                self.bind_needs(&format!("/panels/{index}"), query, &needs(panel), columns);
            }
        }
        self.sort();
    }

    fn bind_needs(&mut self, at: &str, query: &str, needs: &[Need], columns: &[(String, String)]) {
        for need in needs {
            let at = format!("{at}{}", need.at);
            let Some((_, ty)) = columns.iter().find(|(name, _)| *name == need.column) else {
                let hint = did_you_mean(suggest(&need.column, columns.iter().map(|(name, _)| name.as_str())));
                let message = format!("the query `{query}` returns no column {}{hint}", quoted(&need.column));
                self.add(ProblemKind::UnknownColumn, &at, message);
                continue;
            };
            let Some(family) = need.family.filter(|family| *family != Family::of(ty)) else { continue };
            let expected = match family {
                Family::Number => "numbers",
                Family::Time => "days or times",
                Family::Other => "something else",
            };
            let column = quoted(&need.column);
            let message = format!("the column {column} is of type `{ty}`, expected {expected}, since {}", need.purpose);
            self.add(ProblemKind::TypeMismatch, &at, message);
        }
    }
}
