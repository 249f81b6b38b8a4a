//! An examined dashboard: its valid parts, its problems, and their positions.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::column_references::{column_references, options_column_references};
use super::document::Query;
use super::limits::PROBLEMS_MAX;
use super::panel::Panel;
use super::param::{OptionsQuery, Param};
use super::problem::{DashboardProblem, DashboardProblemKind};
use super::sql_text::Scanned;
use super::yaml::{Node, child};
use crate::domain::text::Position;

/// The parts of a dashboard that have no problems themselves.
#[derive(Debug, Clone, Default)]
pub struct Dashboard {
    pub title: String,
    pub description: String,
    /// With their indices in the document.
    pub(super) params: Vec<(usize, Param)>,
    pub(super) queries: Vec<NamedQuery>,
    pub(super) panels: Vec<(usize, Panel)>,
}

/// A query with its name.
#[derive(Debug, Clone)]
pub struct NamedQuery {
    pub name: String,
    pub query: Query,
    pub(super) scanned: Scanned,
}

impl Dashboard {
    pub fn params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().map(|(_, param)| param)
    }

    pub fn queries(&self) -> &[NamedQuery] {
        &self.queries
    }

    pub fn query(&self, name: &str) -> Option<&NamedQuery> {
        self.queries.iter().find(|query| query.name == name)
    }

    /// The options that come from queries, by parameter name.
    pub fn options(&self) -> impl Iterator<Item = (&str, &OptionsQuery)> {
        self.params().filter_map(|param| Some((param.name(), param.options_query()?)))
    }

    /// The columns of a query's result that panels and options reference, once each.
    pub fn columns_needed(&self, query: &str) -> Vec<String> {
        let of_panels = self.panels().filter(|panel| panel.query() == Some(query)).flat_map(column_references);
        let of_options = self.options().filter(|(_, options)| options.query == query).map(|(_, options)| options);
        let all = of_panels.chain(of_options.flat_map(options_column_references)).map(|need| need.column);
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.panels.iter().map(|(_, panel)| panel)
    }
}

impl NamedQuery {
    /// The statement, without the text after its end.
    pub fn sql(&self) -> &str {
        &self.query.sql[..self.scanned.end]
    }

    /// The parameters that it uses.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.scanned.placeholders.iter().map(|placeholder| placeholder.name.as_str())
    }

    /// Whether it uses a parameter of this name.
    pub fn uses(&self, placeholder: &str) -> bool {
        self.scanned.placeholders.iter().any(|p| p.name == placeholder)
    }
}

/// The result of an examination.
#[derive(Debug, Default)]
pub struct ExaminedDashboard {
    pub dashboard: Dashboard,
    pub problems: Vec<DashboardProblem>,
    /// Allowed, but probably unintended.
    pub warnings: Vec<DashboardProblem>,
    /// The ids of all panels in the document, valid or not.
    pub panel_ids: Vec<Option<String>>,
    pub(super) source: SourceText,
}

/// The text with its nodes, for the positions of problems.
#[derive(Debug, Default)]
pub(super) struct SourceText {
    pub(super) text: String,
    pub(super) root: Option<Arc<Node>>,
}

/// The names in the document, of valid and invalid parts.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) params: HashSet<String>,
    pub(super) queries: HashSet<String>,
    /// Pointers and names of queries in panels with problems.
    pub(super) in_invalid_panels: Vec<(String, String)>,
}

impl ExaminedDashboard {
    pub(super) fn failed(problem: DashboardProblem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// Whether the text could be parsed.
    pub fn is_readable(&self) -> bool {
        self.source.root.is_some()
    }

    /// The panels without problems, with their indices.
    pub fn valid_panels(&self) -> impl Iterator<Item = (usize, &Panel)> {
        let has_problem = |at: usize| self.problem_under(&format!("/panels/{at}")).is_some();
        self.dashboard.panels.iter().map(|(at, panel)| (*at, panel)).filter(move |(at, _)| !has_problem(*at))
    }

    /// The first problem of a node or one within it.
    pub fn problem_under(&self, pointer: &str) -> Option<&DashboardProblem> {
        let is_under =
            |path: &str| path.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.problems.iter().find(|problem| is_under(&problem.path))
    }

    /// The first problem of a query.
    pub fn query_problem(&self, query: &str) -> Option<&DashboardProblem> {
        self.problem_under(&child("/queries", query))
    }

    /// Adds a problem at the position of its node.
    pub(super) fn add(&mut self, kind: DashboardProblemKind, at: &str, message: impl Into<String>) {
        let position = self.source.position(kind, at);
        self.add_at(kind, at, message, position);
    }

    pub(super) fn add_at(
        &mut self,
        kind: DashboardProblemKind,
        at: &str,
        message: impl Into<String>,
        position: Position,
    ) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(DashboardProblem::new(kind, at, message, position));
        }
    }

    pub(super) fn warn(&mut self, kind: DashboardProblemKind, at: &str, message: impl Into<String>) {
        if self.warnings.len() < PROBLEMS_MAX {
            self.warnings.push(DashboardProblem::new(kind, at, message, self.source.position(kind, at)));
        }
    }

    pub(super) fn sort(&mut self) {
        for list in [&mut self.problems, &mut self.warnings] {
            list.sort_by_key(|problem| (problem.line, problem.column));
            list.dedup();
        }
    }
}
