//! Validates a PipelineConfig: returns the pipeline, or every problem of the document.
//!
//! Invariant: all problems are reported at once, each with the JSON Pointer of its node; a problem neither hides nor causes
//! problems of other nodes. Expressions are checked as text only; binding them needs a SQL engine (`engine::validate`).

mod canonical;
mod columns;
mod dialect;
mod files;
mod formats;
mod json;
mod mapping;
mod numbers;
mod partitions;
mod publish;
mod readers;
mod report;
mod structure;
mod types;
mod variants;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use self::report::{Pointer, Report};
use super::document::VERSION;
use super::{Mapping, NotifyEvent, Pipeline};
use crate::domain::limits::CONFIG_BYTES_MAX;
use crate::domain::problem::{Problem, ProblemKind};

pub use json::{TextSpan, unchecked};

/// The result of an examination.
#[derive(Debug)]
pub struct ExaminedConfig {
    /// In document order.
    pub problems: Vec<Problem>,
    /// Allowed, but probably unintended; in document order.
    pub warnings: Vec<Problem>,
    /// Mappings whose expressions can be checked, even if the document has problems elsewhere.
    pub drafts: Vec<ValidMapping>,
    title: String,
    description: String,
    auto_run: bool,
    notify: BTreeSet<NotifyEvent>,
}

/// A mapping with valid columns, of a document that may have problems.
#[derive(Debug)]
pub struct ValidMapping {
    pub mapping: Mapping,
    /// Its index in the document's `mappings`.
    pub index: usize,
}

impl ExaminedConfig {
    /// The pipeline, if there were no problems and `more` (those of other checks) is empty.
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
        let Self { title, description, auto_run, notify, drafts, .. } = self;
        let mappings = drafts.into_iter().map(|draft| draft.mapping).collect();
        Ok(Pipeline { title, description, auto_run, notify, mappings })
    }
}

/// Parses and validates a PipelineConfig.
///
/// # Errors
/// Every problem that can be seen without a SQL engine, in the order of the document.
pub fn parse(text: &str) -> Result<Pipeline, Vec<Problem>> {
    examine(text).conclude(text, Vec::new())
}

/// Examines a PipelineConfig and keeps its valid parts.
pub fn examine(text: &str) -> ExaminedConfig {
    let mut report = Report::default();
    let mut examined = ExaminedConfig {
        problems: Vec::new(),
        warnings: Vec::new(),
        drafts: Vec::new(),
        title: String::new(),
        description: String::new(),
        auto_run: true,
        notify: BTreeSet::new(),
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
    report_duplicates(text, &mut report);
    let (document, later) = structure::check(&mut value, &mut report);
    let mut tables = HashMap::new();
    let mut variant_columns = 0;
    for (index, written) in document.mappings.iter().enumerate() {
        let at = Pointer::default().key("mappings").index(index);
        mapping::check_table_is_new(written, &at, &mut tables, &mut report);
        variant_columns += written.variants.len() * written.columns.len();
        if let Some(mapping) = mapping::resolve(written, variant_columns, &at, &mut report) {
            readers::check(&mapping, &written.parquet.readers, &at, &mut report);
            examined.drafts.push(ValidMapping { mapping, index });
        }
    }
    later.finish(&mut report);
    examined.title = document.title;
    examined.description = document.description;
    examined.auto_run = document.auto_run;
    examined.notify = document.notify.iter().map(|event| (*event).into()).collect();
    (examined.problems, examined.warnings) = report.finish();
    sort(text, &mut examined.problems);
    sort(text, &mut examined.warnings);
    examined
}

/// The line and column (in characters, both from 1) at which the node of a JSON Pointer starts; `None` without such a node.
pub fn locate(text: &str, pointer: &str) -> Option<(usize, usize)> {
    byte_ranges(text, &[pointer]).remove(pointer).map(|(_, value)| json::span(value, text)).map(|p| (p.line, p.column))
}

/// The span of each problem: the value, the name of an unknown field, or the end of the text that could be parsed.
pub fn spans(text: &str, problems: &[Problem]) -> Vec<TextSpan> {
    let pointers: Vec<&str> = problems.iter().map(|p| p.path.as_str()).collect();
    let ranges = byte_ranges(text, &pointers);
    let span = |problem: &Problem| {
        let syntax = if problem.path.is_empty() { json::syntax_span(text) } else { None };
        syntax.unwrap_or_else(|| match ranges.get(problem.path.as_str()) {
            Some((Some(name), _)) if problem.kind == ProblemKind::UnknownField => json::span(*name, text),
            Some((_, value)) => json::span(*value, text),
            None => TextSpan { line: 1, column: 1, width: 1 },
        })
    };
    problems.iter().map(span).collect()
}

type ByteRange = (usize, usize);

/// The byte ranges of name and value of each of `pointers` in the text; the last of duplicate members.
fn byte_ranges<'a>(text: &str, pointers: &[&'a str]) -> BTreeMap<&'a str, (Option<ByteRange>, ByteRange)> {
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
    let ranges = byte_ranges(text, &pointers.iter().map(String::as_str).collect::<Vec<_>>());
    problems.sort_by_key(|p| ranges.get(p.path.as_str()).map_or(usize::MAX, |(_, value)| value.0));
    problems.dedup();
}

/// The version, if it is another. Other versions have other rules, so nothing else is checked.
fn other_version(value: &Value) -> Option<Problem> {
    let found = value.get("version").filter(|v| v.is_number() && v.as_u64() != Some(VERSION.into()))?;
    let message = format!("unsupported version `{found}`, expected {VERSION}");
    Some(Problem::new(ProblemKind::UnsupportedVersion, "/version", message))
}

/// Refuses duplicate members, whose meaning JSON leaves open.
fn report_duplicates(text: &str, report: &mut Report) {
    json::walk(text, &mut |seen| {
        if seen.repeated {
            let name = seen.pointer.as_str().rsplit('/').next().unwrap_or_default();
            let message = format!("duplicate field `{name}`");
            report.push_always(ProblemKind::Duplicate, seen.pointer, message);
        }
    });
}
