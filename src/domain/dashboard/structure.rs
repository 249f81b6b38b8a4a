//! Validates a document against the JSON Schema, and describes violations in words.

use std::collections::HashSet;
use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use super::document::schema;
use super::limits::PROBLEMS_MAX;
use super::problem::DashboardProblemKind;
use super::yaml::child;
use crate::domain::schema::{Violations, each_violation, node_around, types};
use crate::domain::text::{did_you_mean, list, one_of, quoted, suggest, ticked};

static VALIDATOR: LazyLock<Option<Validator>> = LazyLock::new(|| jsonschema::draft202012::new(schema()).ok());

/// Prefix of the pattern of days in the schema.
const DAY_PATTERN: &str = "^[0-9]{4}-";

/// A violation.
pub(super) struct StructureFault {
    pub(super) kind: DashboardProblemKind,
    /// A JSON Pointer.
    pub(super) at: String,
    pub(super) message: String,
}

/// Violations of the schema: all, or the first of a large document.
pub(super) fn check(value: &Value) -> (Vec<StructureFault>, Violations) {
    let mut findings = Findings(Vec::new());
    let mut found = Violations::All;
    if let Some(validator) = VALIDATOR.as_ref() {
        found = each_violation(validator, value, |error| findings.see(error));
        if found == Violations::First {
            for finding in &mut findings.0 {
                finding.message.push_str("; the dashboard is large, so only this problem is shown");
            }
        }
    }
    let mut findings = findings.0;
    // A value of the wrong type violates other rules as well: only the type is reported.
    let wrong = findings.iter().filter(|finding| finding.kind == DashboardProblemKind::WrongType);
    let wrong: HashSet<String> = wrong.map(|finding| finding.at.clone()).collect();
    findings.retain(|finding| finding.kind == DashboardProblemKind::WrongType || !wrong.contains(&finding.at));
    (findings, found)
}

struct Findings(Vec<StructureFault>);

impl Findings {
    fn add(&mut self, kind: DashboardProblemKind, at: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(StructureFault { kind, at: at.into(), message: message.into() });
        }
    }

    fn see(&mut self, error: &ValidationError<'_>) {
        let at = error.instance_path().as_str();
        let value = error.instance().as_ref();
        let node = node_around(schema(), error);
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => self.unknown(at, node, unexpected),
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let about = node["properties"][name]["description"].as_str().unwrap_or_default();
                let about = about.split(['.', ';', ':']).next().unwrap_or_default().replace('\n', " ");
                let mut rest = about.chars();
                let first = rest.next().map(|c| c.to_ascii_lowercase());
                let about = first.map(|first| format!(" ({first}{})", rest.as_str())).unwrap_or_default();
                self.add(DashboardProblemKind::MissingField, at, format!("missing field `{name}`{about}"));
            }
            ValidationErrorKind::Type { kind } => {
                let expected: Vec<&str> = types(kind).into_iter().map(type_name).collect();
                self.add(DashboardProblemKind::WrongType, at, expected_found(&list(&expected), value));
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                self.branches(at, value, context);
            }
            ValidationErrorKind::Constant { expected_value } => {
                self.add(DashboardProblemKind::InvalidValue, at, expected_found(&format!("`{expected_value}`"), value));
            }
            ValidationErrorKind::Maximum { .. }
            | ValidationErrorKind::Minimum { .. }
            | ValidationErrorKind::ExclusiveMinimum { .. } => {
                self.add(DashboardProblemKind::InvalidValue, at, range_message(node, value));
            }
            ValidationErrorKind::MaxItems { limit } => {
                let found = value.as_array().map_or(0, Vec::len);
                self.add(DashboardProblemKind::Limit, at, format!("expected at most {limit} items, found {found}"));
            }
            ValidationErrorKind::MaxProperties { limit } => {
                let found = value.as_object().map_or(0, serde_json::Map::len);
                self.add(DashboardProblemKind::Limit, at, format!("expected at most {limit} names, found {found}"));
            }
            ValidationErrorKind::MaxLength { limit } => {
                let found = value.as_str().map_or(0, |s| s.chars().count());
                self.add(
                    DashboardProblemKind::Limit,
                    at,
                    format!("expected at most {limit} characters, found {found}"),
                );
            }
            ValidationErrorKind::MinItems { limit } => {
                let message = format!("expected at least {limit} item, found an empty list");
                self.add(DashboardProblemKind::InvalidValue, at, message);
            }
            ValidationErrorKind::MinLength { .. } => {
                self.add(DashboardProblemKind::InvalidValue, at, "expected text, found an empty string");
            }
            ValidationErrorKind::Pattern { pattern } => {
                let expected = if pattern.starts_with(DAY_PATTERN) {
                    "a day such as `2013-01-31`".to_owned()
                } else {
                    format!("text that matches `{pattern}`")
                };
                self.add(DashboardProblemKind::InvalidValue, at, expected_found(&expected, value));
            }
            // The schema uses no other keyword; an unknown one must not make the document valid.
            _ => self.add(DashboardProblemKind::InvalidValue, at, error.to_string()),
        }
    }

    fn unknown(&mut self, at: &str, node: &Value, unexpected: &[String]) {
        let known: Vec<&str> = node["properties"].as_object().into_iter().flatten().map(|(k, _)| &**k).collect();
        for name in unexpected.iter().take(PROBLEMS_MAX) {
            let hint = suggest(name, known.iter().copied());
            let hint = if hint.is_some() { did_you_mean(hint) } else { one_of(&known) };
            self.add(
                DashboardProblemKind::UnknownField,
                child(at, name),
                format!("unknown field {}{hint}", quoted(name)),
            );
        }
    }

    /// For several alternatives, reports the problem of the most likely one, or the alternatives.
    fn branches(&mut self, at: &str, value: &Value, branches: &[Vec<ValidationError<'static>>]) {
        let tag = child(at, "type");
        let speaks_of_tag = |branch: &&Vec<ValidationError<'static>>| {
            branch.iter().any(|error| {
                let its = error.instance_path().as_str();
                let lacks = |property: &Value| property.as_str() == Some("type");
                its == tag
                    || (its == at
                        && matches!(error.kind(), ValidationErrorKind::Required { property } if lacks(property)))
            })
        };
        if value.is_object() && branches.iter().filter(speaks_of_tag).count() + 1 >= branches.len().max(2) {
            return match branches.iter().find(|branch| !speaks_of_tag(branch)) {
                Some(meant) => meant.iter().for_each(|error| self.see(error)),
                None => self.tag(at, &tag, value, branches),
            };
        }
        let mut expected = ExpectedTypes::default();
        match expected.matching_branch(at, branches) {
            Some(meant) => meant.iter().for_each(|error| self.see(error)),
            None => {
                let (kind, message) = expected.message(value);
                self.add(kind, at, message);
            }
        }
    }

    /// No alternative has the value's `type`.
    fn tag(&mut self, at: &str, tag: &str, value: &Value, branches: &[Vec<ValidationError<'static>>]) {
        let mut expected = ExpectedTypes::default();
        expected.matching_branch(tag, branches);
        match value.get("type") {
            Some(found) => {
                let (kind, message) = expected.message(found);
                self.add(kind, tag, message);
            }
            None => self.add(DashboardProblemKind::MissingField, at, "missing field `type` (its kind)"),
        }
    }
}

/// The types that alternatives accept.
#[derive(Default)]
struct ExpectedTypes {
    types: Vec<&'static str>,
    choices: Vec<String>,
}

impl ExpectedTypes {
    /// The alternative whose type the value at `at` has; records the types of the others.
    fn matching_branch<'a>(
        &mut self,
        at: &str,
        branches: &'a [Vec<ValidationError<'static>>],
    ) -> Option<&'a [ValidationError<'static>]> {
        let mut meant = None;
        for branch in branches {
            let mut fits = true;
            for error in branch.iter().filter(|error| error.instance_path().as_str() == at) {
                match error.kind() {
                    ValidationErrorKind::Type { kind } => {
                        fits = false;
                        self.types.extend(types(kind).into_iter().map(type_name));
                    }
                    ValidationErrorKind::Constant { expected_value } => {
                        fits = false;
                        self.choices.extend(expected_value.as_str().map(str::to_owned));
                    }
                    ValidationErrorKind::Enum { options } => {
                        fits = false;
                        let options = options.as_array().into_iter().flatten();
                        self.choices.extend(options.filter_map(Value::as_str).map(str::to_owned));
                    }
                    ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                        fits &= self.matching_branch(at, context).is_some();
                    }
                    _ => {}
                }
            }
            if fits && meant.is_none() {
                meant = Some(branch.as_slice());
            }
        }
        meant
    }

    fn message(&self, value: &Value) -> (DashboardProblemKind, String) {
        let mut choices: Vec<&str> = self.choices.iter().map(String::as_str).collect();
        choices.dedup();
        match value {
            Value::String(found) if !choices.is_empty() => {
                let hint = did_you_mean(suggest(found, choices.iter().copied()));
                let message = format!("found {}, expected one of {}{hint}", quoted(found), ticked(&choices));
                (DashboardProblemKind::InvalidValue, message)
            }
            _ if !choices.is_empty() => {
                (DashboardProblemKind::WrongType, expected_found(&format!("one of {}", ticked(&choices)), value))
            }
            _ => {
                let mut types = self.types.clone();
                types.sort_unstable();
                types.dedup();
                (DashboardProblemKind::WrongType, expected_found(&list(&types), value))
            }
        }
    }
}

fn range_message(node: &Value, value: &Value) -> String {
    match (node["minimum"].as_f64(), node["maximum"].as_f64()) {
        (Some(low), Some(high)) => format!("expected {low} to {high}, found `{value}`"),
        (Some(low), None) => format!("expected {low} or more, found `{value}`"),
        (None, Some(high)) => format!("expected at most {high}, found `{value}`"),
        (None, None) => format!("expected more than 0, found `{value}`"),
    }
}

fn type_name(ty: JsonType) -> &'static str {
    match ty {
        JsonType::Null => "null",
        JsonType::Boolean => "`true` or `false`",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "text",
        JsonType::Array => "a list",
        JsonType::Object => "a mapping",
    }
}

fn expected_found(expected: &str, value: &Value) -> String {
    let found = match value {
        Value::Null => "nothing".into(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a mapping".into(),
    };
    format!("expected {expected}, found {found}")
}
