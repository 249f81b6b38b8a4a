//! The rules of PipelineConfig: what a document says, or everything that is wrong with it.
//!
//! Invariant: all problems are given at once, each with the JSON Pointer of its node; a problem silences neither those
//! of other nodes nor brings others about. Expressions are only looked at as text here; binding them needs a SQL
//! engine (`engine::validate`).

mod canonical;
mod columns;
mod dialect;
mod files;
mod formats;
mod json;
mod mapping;
mod partitions;
mod readers;
mod report;
mod structure;
mod types;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use self::report::{Pointer, Report};
use super::document::VERSION;
use super::{Mapping, Pipeline};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::problem::{Problem, ProblemKind};

pub use json::Place;

/// What a look at a document gave.
#[derive(Debug)]
pub struct Examined {
    /// In the order of the document.
    pub problems: Vec<Problem>,
    /// What is allowed, and probably not meant, in the order of the document.
    pub warnings: Vec<Problem>,
    /// Mappings whose expressions can be checked, whether or not the document has problems elsewhere.
    pub drafts: Vec<Draft>,
    title: String,
    description: String,
    auto_run: bool,
}

/// A mapping of a document that may have problems; all its columns stand.
#[derive(Debug)]
pub struct Draft {
    pub mapping: Mapping,
    /// Its place in the document's `mappings`.
    pub index: usize,
}

impl Examined {
    /// The pipeline, if nothing was wrong and `more` (problems found by others) is empty.
    ///
    /// # Errors
    /// All problems, in the order of `text`, the text that was examined.
    pub fn conclude(self, text: &str, more: Vec<Problem>) -> Result<Pipeline, Vec<Problem>> {
        let mut problems = self.problems;
        problems.extend(more);
        if !problems.is_empty() {
            sort(text, &mut problems);
            return Err(problems);
        }
        let mappings = self.drafts.into_iter().map(|draft| draft.mapping).collect();
        Ok(Pipeline { title: self.title, description: self.description, auto_run: self.auto_run, mappings })
    }
}

/// Reads a PipelineConfig.
///
/// # Errors
/// Every problem that can be seen without a SQL engine, in the order of the document.
pub fn parse(text: &str) -> Result<Pipeline, Vec<Problem>> {
    examine(text).conclude(text, Vec::new())
}

/// Looks at a PipelineConfig as [`parse`] does, and keeps what can be kept.
pub fn examine(text: &str) -> Examined {
    let mut report = Report::default();
    let mut examined = Examined {
        problems: Vec::new(),
        warnings: Vec::new(),
        drafts: Vec::new(),
        title: String::new(),
        description: String::new(),
        auto_run: true,
    };
    if text.len() > CONFIG_BYTES_MAX {
        let message = format!("expected at most {CONFIG_BYTES_MAX} bytes, found {}", text.len());
        examined.problems.push(Problem::new(ProblemKind::Limit, "", message));
        return examined;
    }
    let mut value = match json::read(text) {
        Ok(value) => value,
        Err(problem) => {
            examined.problems.push(problem);
            return examined;
        }
    };
    if let Some(problem) = other_version(&value) {
        examined.problems.push(problem);
        return examined;
    }
    report_twins(text, &mut report);
    let (document, later) = structure::check(&mut value, &mut report);
    let mut tables = HashMap::new();
    for (index, written) in document.mappings.iter().enumerate() {
        let at = Pointer::default().key("mappings").index(index);
        mapping::check_table_is_new(written, &at, &mut tables, &mut report);
        if let Some(mapping) = mapping::resolve(written, &at, &mut report) {
            readers::check(&mapping, &written.parquet.readers, &at, &mut report);
            examined.drafts.push(Draft { mapping, index });
        }
    }
    later.finish(&mut report);
    examined.title = document.title;
    examined.description = document.description;
    examined.auto_run = document.auto_run;
    (examined.problems, examined.warnings) = report.finish();
    sort(text, &mut examined.problems);
    sort(text, &mut examined.warnings);
    examined
}

/// The line and column (in characters, both counted from 1) at which the node of a JSON Pointer starts in `text`;
/// `None` if the text has no such node.
pub fn locate(text: &str, pointer: &str) -> Option<(usize, usize)> {
    spans(text, &[pointer]).remove(pointer).map(|(_, value)| json::place(value, text)).map(|p| (p.line, p.column))
}

/// Where each problem is to be shown, in their order: at the value, for an unknown field at its name, for a syntax
/// error where reading stopped.
pub fn places(text: &str, problems: &[Problem]) -> Vec<Place> {
    let pointers: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    let spans = spans(text, &pointers);
    let place = |problem: &Problem| {
        let syntax = if problem.path.is_empty() { json::syntax_place(text) } else { None };
        syntax.unwrap_or_else(|| match spans.get(problem.path.as_str()) {
            Some((Some(name), _)) if problem.kind == ProblemKind::UnknownField => json::place(*name, text),
            Some((_, value)) => json::place(*value, text),
            None => Place { line: 1, column: 1, width: 1 },
        })
    };
    problems.iter().map(place).collect()
}

type Span = (usize, usize);

/// The spans of name and value of each of `pointers` that the text has; of members that stand twice, the last.
fn spans<'a>(text: &str, pointers: &[&'a str]) -> BTreeMap<&'a str, (Option<Span>, Span)> {
    let wanted: std::collections::HashSet<&'a str> = pointers.iter().copied().collect();
    let mut found = BTreeMap::new();
    json::walk(text, &mut |seen| {
        if let Some(pointer) = wanted.get(seen.pointer.as_str()) {
            found.insert(*pointer, (seen.name, seen.value));
        }
    });
    found
}

fn sort(text: &str, problems: &mut Vec<Problem>) {
    let pointers: Vec<String> = problems.iter().map(|p| p.path.clone()).collect();
    let spans = spans(text, &pointers.iter().map(String::as_str).collect::<Vec<_>>());
    problems.sort_by_key(|p| spans.get(p.path.as_str()).map_or(usize::MAX, |(_, value)| value.0));
    problems.dedup();
}

/// A document of another version has other rules: nothing else can be said of it.
fn other_version(value: &Value) -> Option<Problem> {
    let found = value.get("version").filter(|v| v.is_number() && v.as_u64() != Some(VERSION.into()))?;
    let message = format!("unsupported version `{found}`, expected {VERSION}");
    Some(Problem::new(ProblemKind::UnsupportedVersion, "/version", message))
}

/// JSON leaves open what a member that stands twice means, so it is refused.
fn report_twins(text: &str, report: &mut Report) {
    json::walk(text, &mut |seen| {
        if seen.again {
            let name = seen.pointer.as_str().rsplit('/').next().unwrap_or_default();
            let message = format!("the member `{name}` stands twice in one object");
            report.push_always(ProblemKind::Duplicate, seen.pointer, message);
        }
    });
}
