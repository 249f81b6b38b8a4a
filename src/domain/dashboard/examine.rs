//! Parses a dashboard's text and finds every problem that can be found without the pipeline's tables.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{Query, VERSION};
use super::examined::{ExaminedDashboard, NamedQuery, Names, SourceText};
use super::limits::YAML_BYTES_MAX;
use super::problem::{DashboardProblem, DashboardProblemKind};
use super::sql_text::scan;
use super::yaml::{self, child};
use super::{references, structure};
use crate::domain::schema::Violations;
use crate::domain::text::Position;

/// Examines a dashboard's text.
pub fn examine(bytes: &[u8]) -> ExaminedDashboard {
    if bytes.len() > YAML_BYTES_MAX {
        let message = format!("expected at most {YAML_BYTES_MAX} bytes, found {}", bytes.len());
        return ExaminedDashboard::failed(DashboardProblem::new(
            DashboardProblemKind::Limit,
            "",
            message,
            Position::START,
        ));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => return ExaminedDashboard::failed(not_utf8(bytes, error.valid_up_to())),
    };
    let (root, duplicates) = match yaml::read(text) {
        Ok(read) => read,
        Err(problem) => return ExaminedDashboard::failed(problem),
    };
    let mut examined = ExaminedDashboard {
        problems: duplicates,
        source: SourceText { text: text.to_owned(), root: Some(Arc::clone(&root)) },
        ..ExaminedDashboard::default()
    };
    let mut value = root.to_value();
    if let Value::Object(members) = &mut value {
        // Members that hold anchors.
        members.retain(|name, _| !name.starts_with("x-"));
    }
    if let Some(found) = other_version(&value) {
        let message = format!("unsupported version `{found}`, expected {VERSION}");
        examined.add(DashboardProblemKind::UnsupportedVersion, "/version", message);
        return examined;
    }
    let (faults, found) = structure::check(&value);
    let broken: Vec<String> = faults
        .into_iter()
        .map(|finding| {
            let at = finding.at.clone();
            examined.add(finding.kind, &finding.at, finding.message);
            at
        })
        .collect();
    if found == Violations::First {
        return examined;
    }
    let names = examined.take_parts(&value, &broken);
    references::check(&mut examined, &names);
    examined.sort();
    examined
}

impl ExaminedDashboard {
    /// Parses the parts without problems.
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
                names.in_invalid_panels.push((format!("{at}/query"), query.to_owned()));
            }
        }
        names
    }

    fn part<T: DeserializeOwned>(&mut self, at: &str, value: &Value) -> Option<T> {
        match T::deserialize(value) {
            Ok(part) => Some(part),
            // The schema accepts more than the Rust type, such as `6.0` for an integer.
            Err(error) => {
                self.add(DashboardProblemKind::WrongType, at, error.to_string());
                None
            }
        }
    }
}

/// The version, if it is not the supported one. Other versions have other rules, so nothing else is checked.
fn other_version(value: &Value) -> Option<&Value> {
    value.get("version").filter(|v| v.is_number() && v.as_u64() != Some(VERSION.into()))
}

fn not_utf8(bytes: &[u8], valid: usize) -> DashboardProblem {
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let message = "the text is not UTF-8 from here on";
    DashboardProblem::new(DashboardProblemKind::Syntax, "", message, Position::at_byte(&before, valid))
}
