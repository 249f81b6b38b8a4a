//! Checks a document against the JSON Schema: members, types, choices, limits.
//!
//! Invariant: afterwards the document deserializes. Invalid nodes were reported, replaced by the type's default, and marked
//! in the [`Report`], so that later rules skip them.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::Value;

use super::report::{Pointer, Report};
use crate::domain::limits::PROBLEMS_MAX;
use crate::domain::pipeline::document::{PipelineDocument, schema};
use crate::domain::problem::ProblemKind;
use crate::domain::schema::{Violations, each_violation, node_around, types};
use crate::domain::text::{did_you_mean, list, one_of, quoted, suggest, ticked};

/// Numbers with a natural range; other ranges are limits of this program.
const NATURAL_RANGES: [&str; 2] = ["max_ratio", "compression_level"];

static VALIDATOR: LazyLock<Option<Validator>> = LazyLock::new(|| jsonschema::draft202012::new(schema()).ok());

/// Work that is left after the other rules.
pub(super) struct DeferredWork {
    patterns: Vec<(Pointer, String)>,
}

impl DeferredWork {
    /// Reports values that violate the schema's pattern without a problem of another rule.
    pub(super) fn finish(self, report: &mut Report) {
        for (at, message) in self.patterns {
            if !report.has_problem_within(&at) {
                report.push(ProblemKind::InvalidValue, &at, message);
            }
        }
    }
}

/// Reports violations of the schema, and returns the rest of the document.
pub(super) fn check(value: &mut Value, report: &mut Report) -> (PipelineDocument, DeferredWork) {
    let mut findings = Vec::new();
    if let Some(validator) = VALIDATOR.as_ref() {
        let found = each_violation(validator, value, |error| find(error, &mut findings));
        if found == Violations::First {
            for Finding { kind, at, message, .. } in findings {
                report.push_always(kind, &at, format!("{message}; the config is large, so only this problem is shown"));
            }
            report.replace(&Pointer::default());
            return (PipelineDocument::default(), DeferredWork { patterns: Vec::new() });
        }
    }
    let wrong_types: std::collections::BTreeSet<String> =
        findings.iter().filter(|f| f.kind == ProblemKind::WrongType).map(|f| f.at.as_str().to_owned()).collect();
    let mut patterns = Vec::new();
    let mut unknown = Vec::new();
    for finding in findings {
        if finding.kind != ProblemKind::WrongType && wrong_types.contains(finding.at.as_str()) {
            continue;
        }
        match finding.action {
            NodeAction::Keep => report.push_always(finding.kind, &finding.at, finding.message),
            NodeAction::Cut(length) => {
                report.push_always(finding.kind, &finding.at, finding.message);
                cut(value, &finding.at, length);
            }
            NodeAction::DeferToRules => patterns.push((finding.at, finding.message)),
            NodeAction::Replace => {
                report.push_always(finding.kind, &finding.at, finding.message);
                report.replace(&finding.at);
                take_out(value, &finding.at);
            }
            NodeAction::MissingMember(member) => {
                report.push_always(finding.kind, &finding.at, finding.message);
                report.replace(&finding.at.key(&member));
            }
            NodeAction::Drop => {
                report.push_always(finding.kind, &finding.at, finding.message);
                unknown.push(finding.at);
            }
        }
    }
    for at in unknown {
        take_out(value, &at);
    }
    let document = serde_json::from_value(std::mem::take(value)).unwrap_or_else(|error| {
        report.push_always(ProblemKind::WrongType, &Pointer::default(), error.to_string());
        PipelineDocument::default()
    });
    (document, DeferredWork { patterns })
}

/// What happens to the node of a finding.
enum NodeAction {
    Keep,
    /// Truncated to this many items, which bounds the work of other rules.
    Cut(usize),
    /// Replaced by its default.
    Replace,
    /// Kept, since other rules report it better; reported if none does.
    DeferToRules,
    /// A member is missing.
    MissingMember(String),
    /// Removed.
    Drop,
}

struct Finding {
    kind: ProblemKind,
    at: Pointer,
    message: String,
    action: NodeAction,
}

/// Removes the member, or replaces an item of an array by an empty one, so that the others keep their indices.
fn take_out(root: &mut Value, at: &Pointer) {
    let Some((parent, last)) = at.as_str().rsplit_once('/') else {
        *root = Value::Object(serde_json::Map::new());
        return;
    };
    match root.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.shift_remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            let objects = holds_objects(parent);
            if let Some(item) = last.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                *item = if objects { Value::Object(serde_json::Map::new()) } else { Value::String(String::new()) };
            }
        }
        // A node around it was removed before.
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}

/// Arrays that other nodes refer to stay whole; the rules are fast on long ones.
fn cut(root: &mut Value, at: &Pointer, length: usize) {
    if let Some(Value::Array(items)) = root.pointer_mut(at.as_str()).filter(|_| !holds_objects(at.as_str())) {
        items.truncate(length);
    }
}

fn holds_objects(pointer: &str) -> bool {
    matches!(pointer.rsplit('/').next(), Some("mappings" | "columns" | "checks" | "variants"))
}

fn find(error: &ValidationError<'_>, out: &mut Vec<Finding>) {
    let at = Pointer::from(error.instance_path().as_str());
    let value = error.instance().as_ref();
    let node = node_around(schema(), error);
    let mut add = |kind, at: Pointer, message: String, action| out.push(Finding { kind, at, message, action });
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known: Vec<&str> = node["properties"].as_object().into_iter().flatten().map(|(k, _)| &**k).collect();
            for name in unexpected.iter().take(PROBLEMS_MAX) {
                let hint = suggest(name, known.iter().copied());
                let hint = if hint.is_some() { did_you_mean(hint) } else { one_of(&known) };
                let message = format!("unknown field {}{hint}", quoted(name));
                add(ProblemKind::UnknownField, at.key(name), message, NodeAction::Drop);
            }
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let about = node["properties"][name]["description"].as_str().unwrap_or_default();
            let about = about.split(['.', ';']).next().unwrap_or_default().replace('\n', " ");
            let about = about.split(": ").next().unwrap_or_default().to_lowercase();
            add(
                ProblemKind::MissingField,
                at,
                format!("missing field `{name}` ({about})"),
                NodeAction::MissingMember(name.into()),
            );
        }
        ValidationErrorKind::Type { kind } => {
            let expected: Vec<&str> = types(kind).into_iter().map(a_type).collect();
            add(ProblemKind::WrongType, at, expected_found(&list(&expected), value), NodeAction::Replace);
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            find_in_branches(at, value, context, out);
        }
        ValidationErrorKind::Constant { expected_value } => {
            let message = expected_found(&format!("`{expected_value}`"), value);
            add(ProblemKind::InvalidValue, at, message, NodeAction::Replace);
        }
        ValidationErrorKind::Enum { options } => {
            let choices: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let (kind, message) = other_choice(value, &choices);
            add(kind, at, message, NodeAction::Replace);
        }
        ValidationErrorKind::Maximum { limit } | ValidationErrorKind::Minimum { limit } => {
            add(range_kind(&at, value), at, range_message(node, limit, value), NodeAction::Replace);
        }
        ValidationErrorKind::MaxItems { limit } => {
            let found = value.as_array().map_or(0, Vec::len);
            add(
                ProblemKind::Limit,
                at,
                format!("expected at most {limit} items, found {found}"),
                NodeAction::Cut(*limit as usize),
            );
        }
        ValidationErrorKind::MaxLength { limit } => {
            // The rules of the dialect have better messages for single characters.
            let action = if *limit <= 8 { NodeAction::DeferToRules } else { NodeAction::Replace };
            let found = value.as_str().map_or(0, |s| s.chars().count());
            add(ProblemKind::Limit, at, format!("expected at most {limit} characters, found {found}"), action);
        }
        ValidationErrorKind::MinItems { limit } => {
            let message = format!("expected at least {limit} item, found an empty array");
            add(ProblemKind::InvalidValue, at, message, NodeAction::Keep);
        }
        ValidationErrorKind::MinLength { .. } => {
            add(ProblemKind::InvalidValue, at, "expected text, found an empty string".into(), NodeAction::DeferToRules);
        }
        ValidationErrorKind::Pattern { pattern } => {
            let message = format!("expected text that matches `{pattern}`, found {}", quoted(&value.to_string()));
            add(ProblemKind::InvalidValue, at, message, NodeAction::DeferToRules);
        }
        // The schema uses no other keyword; if it ever does, the document is refused.
        _ => add(ProblemKind::InvalidValue, at, error.to_string(), NodeAction::Replace),
    }
}

/// Reports the alternative whose type fits the value, or lists the types that would fit.
fn find_in_branches(at: Pointer, value: &Value, branches: &[Vec<ValidationError<'static>>], out: &mut Vec<Finding>) {
    let about_it = |e: &ValidationError<'_>| e.instance_path().as_str() == at.as_str();
    let mut types_expected: Vec<&str> = Vec::new();
    let mut choices: Vec<String> = Vec::new();
    for branch in branches {
        let mut fits = true;
        for error in branch.iter().filter(|e| about_it(e)) {
            match error.kind() {
                ValidationErrorKind::Type { kind } => {
                    fits = false;
                    types_expected.extend(types(kind).into_iter().map(a_type));
                }
                ValidationErrorKind::Constant { expected_value } => {
                    fits = false;
                    choices.extend(expected_value.as_str().map(str::to_owned));
                }
                ValidationErrorKind::Enum { options } => {
                    fits = false;
                    choices
                        .extend(options.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
        }
        if fits {
            branch.iter().for_each(|error| find(error, out));
            return;
        }
    }
    let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
    let (kind, message) = if choices.is_empty() {
        types_expected.dedup();
        (ProblemKind::WrongType, expected_found(&list(&types_expected), value))
    } else {
        other_choice(value, &choices)
    };
    out.push(Finding { kind, at, message, action: NodeAction::Replace });
}

/// A value outside the choices.
fn other_choice(value: &Value, choices: &[&str]) -> (ProblemKind, String) {
    let Value::String(found) = value else {
        return (ProblemKind::WrongType, expected_found(&format!("one of {}", ticked(choices)), value));
    };
    let hint = did_you_mean(suggest(found, choices.iter().copied()));
    (ProblemKind::InvalidValue, format!("found {}, expected one of {}{hint}", quoted(found), ticked(choices)))
}

fn range_kind(at: &Pointer, value: &Value) -> ProblemKind {
    let name = at.as_str().rsplit('/').next().unwrap_or_default();
    let negative = value.as_f64().is_some_and(|v| v < 0.0);
    if negative || NATURAL_RANGES.contains(&name) { ProblemKind::InvalidValue } else { ProblemKind::Limit }
}

fn range_message(node: &Value, limit: &Value, value: &Value) -> String {
    match (node["minimum"].as_f64(), node["maximum"].as_f64()) {
        (Some(low), Some(high)) => format!("expected {low} to {high}, found `{value}`"),
        (Some(low), None) => format!("expected {low} or more, found `{value}`"),
        (None, Some(high)) => format!("expected at most {high}, found `{value}`"),
        (None, None) => format!("expected a number up to {limit}, found `{value}`"),
    }
}

fn a_type(ty: JsonType) -> &'static str {
    match ty {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "an array",
        JsonType::Object => "an object",
    }
}

fn expected_found(expected: &str, value: &Value) -> String {
    let found = match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("`{value}`"),
        Value::Number(number) => format!("the number `{number}`"),
        Value::String(text) => format!("the string {}", quoted(text)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    };
    format!("expected {expected}, found {found}")
}
