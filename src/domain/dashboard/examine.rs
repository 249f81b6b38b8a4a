//! Reads a dashboard's text and finds everything that is wrong with it, as far as that shows without the pipeline's
//! tables.

use std::collections::HashSet;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{Query, VERSION};
use super::limits::{PROBLEMS_MAX, YAML_BYTES_MAX};
use super::needs::{needs, options_needs};
use super::panel::Panel;
use super::param::{OptionsQuery, Param};
use super::problem::{Place, Problem, ProblemKind};
use super::references;
use super::sql_text::{Scanned, scan};
use super::structure;
use super::yaml::{self, Node, child};

/// What can be made of a dashboard's text. Parts that have problems of their own are left out.
#[derive(Debug, Clone, Default)]
pub struct Dashboard {
    pub title: String,
    pub description: String,
    /// With their positions in the document.
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

    /// The options that come from queries, by the parameters' names.
    pub fn options(&self) -> impl Iterator<Item = (&str, &OptionsQuery)> {
        self.params().filter_map(|param| Some((param.name(), references::options_query(param)?.1)))
    }

    /// The columns of a query's result that panels and options name, once each.
    pub fn columns_needed(&self, query: &str) -> Vec<String> {
        let of_panels = self.panels().filter(|panel| panel.query() == Some(query)).flat_map(needs);
        let of_options = self.options().filter(|(_, options)| options.query == query).map(|(_, options)| options);
        let all = of_panels.chain(of_options.flat_map(options_needs)).map(|need| need.column);
        all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    pub fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.panels.iter().map(|(_, panel)| panel)
    }
}

impl NamedQuery {
    /// The statement, without what follows its end.
    pub fn sql(&self) -> &str {
        &self.query.sql[..self.scanned.end]
    }

    /// The parameters that it takes.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.scanned.placeholders.iter().map(|placeholder| placeholder.name.as_str())
    }

    /// Whether it takes a parameter by this name.
    pub fn takes(&self, placeholder: &str) -> bool {
        self.scanned.placeholders.iter().any(|p| p.name == placeholder)
    }
}

/// A text that was looked at.
#[derive(Debug, Default)]
pub struct Examined {
    pub dashboard: Dashboard,
    pub problems: Vec<Problem>,
    /// What is allowed, but probably not meant.
    pub warnings: Vec<Problem>,
    /// The ids of all panels that the document lists, whole or not, where they have one.
    pub panel_ids: Vec<Option<String>>,
    pub(super) source: Source,
}

/// The text with its nodes, for the places of problems.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) text: String,
    pub(super) root: Option<Arc<Node>>,
}

/// Names that the document gives, whether the parts that have them are whole or not.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) params: HashSet<String>,
    pub(super) queries: HashSet<String>,
    /// The queries that panels with problems name, and where.
    pub(super) named_by_broken: Vec<(String, String)>,
}

/// Looks at a dashboard's text.
pub fn examine(bytes: &[u8]) -> Examined {
    if bytes.len() > YAML_BYTES_MAX {
        let message = format!("expected at most {YAML_BYTES_MAX} bytes, found {}", bytes.len());
        return Examined::failed(Problem::new(ProblemKind::Limit, "", message, Place::START));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => return Examined::failed(not_utf8(bytes, error.valid_up_to())),
    };
    let (root, twins) = match yaml::read(text) {
        Ok(read) => read,
        Err(problem) => return Examined::failed(problem),
    };
    let mut examined = Examined {
        problems: twins,
        source: Source { text: text.to_owned(), root: Some(Arc::clone(&root)) },
        ..Examined::default()
    };
    let mut value = root.to_value();
    if let Value::Object(members) = &mut value {
        // Where anchors can be kept.
        members.retain(|name, _| !name.starts_with("x-"));
    }
    if let Some(found) = other_version(&value) {
        let message = format!("unsupported version `{found}`, expected {VERSION}");
        examined.add(ProblemKind::UnsupportedVersion, "/version", message);
        return examined;
    }
    let broken: Vec<String> = structure::check(&value)
        .into_iter()
        .map(|finding| {
            let at = finding.at.clone();
            examined.add(finding.kind, &finding.at, finding.message);
            at
        })
        .collect();
    let names = examined.take_parts(&value, &broken);
    references::check(&mut examined, &names);
    examined.sort();
    examined
}

impl Examined {
    fn failed(problem: Problem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }

    /// Whether anything can be made of the text.
    pub fn is_readable(&self) -> bool {
        self.source.root.is_some()
    }

    /// The panels that have no problem of their own, with their positions among all.
    pub fn whole_panels(&self) -> impl Iterator<Item = (usize, &Panel)> {
        let has_problem = |at: usize| self.problem_under(&format!("/panels/{at}")).is_some();
        self.dashboard.panels.iter().map(|(at, panel)| (*at, panel)).filter(move |(at, _)| !has_problem(*at))
    }

    /// The first problem of a node or one within it.
    pub fn problem_under(&self, pointer: &str) -> Option<&Problem> {
        let is_under =
            |path: &str| path.strip_prefix(pointer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        self.problems.iter().find(|problem| is_under(&problem.path))
    }

    /// The first problem of a query.
    pub fn query_problem(&self, query: &str) -> Option<&Problem> {
        self.problem_under(&child("/queries", query))
    }

    /// Adds a problem at the place of its node.
    pub(super) fn add(&mut self, kind: ProblemKind, at: &str, message: impl Into<String>) {
        let place = self.source.place(kind, at);
        self.add_at(kind, at, message, place);
    }

    pub(super) fn add_at(&mut self, kind: ProblemKind, at: &str, message: impl Into<String>, place: Place) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem::new(kind, at, message, place));
        }
    }

    pub(super) fn warn(&mut self, kind: ProblemKind, at: &str, message: impl Into<String>) {
        if self.warnings.len() < PROBLEMS_MAX {
            self.warnings.push(Problem::new(kind, at, message, self.source.place(kind, at)));
        }
    }

    pub(super) fn sort(&mut self) {
        for list in [&mut self.problems, &mut self.warnings] {
            list.sort_by_key(|problem| (problem.line, problem.column));
            list.dedup();
        }
    }

    /// Reads the parts that nothing was found wrong with.
    fn take_parts(&mut self, value: &Value, broken: &[String]) -> Names {
        let is_whole = |at: &str| {
            !broken.iter().any(|b| b.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
        };
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        self.dashboard.title = text("title");
        self.dashboard.description = text("description");
        let mut names = Names::default();
        for (index, param) in value["params"].as_array().into_iter().flatten().enumerate() {
            names.params.extend(param["name"].as_str().map(str::to_owned));
            let at = format!("/params/{index}");
            if is_whole(&at) {
                let param = self.part(&at, param);
                self.dashboard.params.extend(param.map(|param| (index, param)));
            }
        }
        for (name, query) in value["queries"].as_object().into_iter().flatten() {
            names.queries.insert(name.clone());
            let at = child("/queries", name);
            if is_whole(&at) {
                let query: Option<Query> = self.part(&at, query);
                self.dashboard.queries.extend(query.map(|query| NamedQuery {
                    name: name.clone(),
                    scanned: scan(&query.sql),
                    query,
                }));
            }
        }
        for (index, panel) in value["panels"].as_array().into_iter().flatten().enumerate() {
            let at = format!("/panels/{index}");
            self.panel_ids.push(panel["id"].as_str().map(str::to_owned));
            if is_whole(&at) {
                let panel = self.part(&at, panel);
                self.dashboard.panels.extend(panel.map(|panel| (index, panel)));
            } else if let Some(query) = panel["query"].as_str()
                && is_whole(&format!("{at}/query"))
            {
                names.named_by_broken.push((format!("{at}/query"), query.to_owned()));
            }
        }
        names
    }

    fn part<T: DeserializeOwned>(&mut self, at: &str, value: &Value) -> Option<T> {
        match T::deserialize(value) {
            Ok(part) => Some(part),
            // The schema lets through what the type does not, such as `6.0` for a whole number.
            Err(error) => {
                self.add(ProblemKind::WrongType, at, error.to_string());
                None
            }
        }
    }
}

/// A document of another version has other rules: nothing else can be said of it.
fn other_version(value: &Value) -> Option<&Value> {
    value.get("version").filter(|v| v.is_number() && v.as_u64() != Some(VERSION.into()))
}

fn not_utf8(bytes: &[u8], valid: usize) -> Problem {
    let before = &bytes[..valid];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let line = number(before.iter().filter(|b| **b == b'\n').count() + 1);
    let column = number(String::from_utf8_lossy(&before[line_start..]).chars().count() + 1);
    let message = "the text is not UTF-8 from here on";
    Problem::new(ProblemKind::Syntax, "", message, Place { line, column })
}
