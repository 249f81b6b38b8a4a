//! The configs and dashboards shown in the docs are valid.

use std::path::Path;

use serde_json::{Value, json};

use super::markdown::pages;
use crate::support::program::{call, lakemill};

/// A whole pipeline around the excerpt on a page; `None` if the block is something else.
fn whole(shown: &Value) -> Option<Value> {
    let column = json!({ "name": "x", "type": "string" });
    let mapping = |own: Value| {
        let base = json!({ "table": "t", "files": ["*.csv"], "columns": [column] });
        let members = own.as_object().cloned().unwrap_or_default();
        members.into_iter().fold(base, |mut mapping, (name, value)| {
            mapping[name] = value;
            mapping
        })
    };
    let pipeline = |mapping: Value| Some(json!({ "version": 1, "mappings": [mapping] }));
    let has = |name: &str| shown.get(name).is_some();
    if has("mappings") {
        Some(shown.clone())
    } else if has("table") || has("columns") {
        pipeline(mapping(shown.clone()))
    } else if has("name") && has("type") {
        pipeline(mapping(json!({ "columns": [shown] })))
    } else if has("delimiter") || has("encoding") || has("null_values") {
        pipeline(mapping(json!({ "csv": shown })))
    } else {
        None
    }
}

fn validate(path: &Path, place: &str, problems: &mut Vec<String>) {
    let ran = call(lakemill().arg("validate").arg(path));
    if ran.status != 0 {
        problems.push(format!("{place}:\n{}{}", ran.stdout, ran.stderr));
    }
}

#[test]
fn every_file_to_save_is_named_before_its_contents() {
    for page in pages() {
        let lines: Vec<&str> = page.text.lines().collect();
        for block in page.blocks() {
            let Some(name) = block.note("file") else { continue };
            let before = lines[..block.line - 1].iter().rev();
            let words: Vec<&&str> = before
                .skip_while(|line| line.trim().is_empty() || line.starts_with("<!--"))
                .take_while(|line| !line.trim().is_empty())
                .collect();
            let named = words.iter().any(|line| line.contains(&format!("`{name}`")));
            assert!(named, "{}:{}: readers don't see that this is `{name}`", page.path, block.line);
        }
    }
}

#[test]
fn every_config_and_dashboard_that_the_docs_show_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let (mut problems, mut pipelines, mut dashboards) = (Vec::new(), 0, 0);
    for page in pages() {
        for block in page.blocks() {
            let place = format!("{}:{}", page.path, block.line);
            match block.language.as_str() {
                "json" => {
                    let shown: Value = match serde_json::from_str(&block.text) {
                        Ok(shown) => shown,
                        Err(error) => {
                            problems.push(format!("{place}: no JSON: {error}"));
                            continue;
                        }
                    };
                    if let Some(whole) = whole(&shown) {
                        // Only a complete config keeps its lines.
                        let text = if whole == shown { block.text.clone() } else { format!("{whole:#}") };
                        let path = folder.path().join("pipeline.json");
                        std::fs::write(&path, text).unwrap();
                        validate(&path, &place, &mut problems);
                        pipelines += 1;
                    }
                }
                "yaml" if block.text.starts_with("version: 2") => {
                    let path = folder.path().join("dashboard.yaml");
                    std::fs::write(&path, &block.text).unwrap();
                    validate(&path, &place, &mut problems);
                    dashboards += 1;
                }
                _ => {}
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(pipelines >= 5 && dashboards >= 2, "only {pipelines} configs and {dashboards} dashboards were found");
}
