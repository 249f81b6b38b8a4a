//! Names, keys and documents from users and other programs.

use std::path::{Component, Path};

use serde_json::Value;

use crate::domain::dashboard::{self, ParamSettings};
use crate::domain::layout;
use crate::domain::limits::{KEY_BYTES_MAX, KEY_DECODINGS_MAX, PROBLEMS_MAX};
use crate::domain::name::{ColumnName, QueryId, Slug, TableName};
use crate::domain::pipeline::types::DataType;
use crate::domain::pipeline::validate;
use crate::engine::cells::ColumnBuilder;
use crate::worker::events::{self as worker_events, EventBody};

/// The whole input is a name of any kind.
pub fn names(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let bounded = |max: usize| !text.is_empty() && text.len() <= max;
    let small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let first = text.chars().next().unwrap_or(' ');

    let is_slug = bounded(63) && small(first) && text.chars().all(|c| small(c) || "_-".contains(c));
    let slug = Slug::parse(text);
    assert_eq!(slug.is_ok(), is_slug, "{text:?}");
    let is_table = bounded(63) && first.is_ascii_lowercase() && text.chars().all(|c| small(c) || c == '_');
    assert_eq!(TableName::parse(text).is_ok(), is_table, "{text:?}");
    let is_id = bounded(64) && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    assert_eq!(QueryId::parse(text).is_ok(), is_id, "{text:?}");
    let column = ColumnName::parse(text);
    assert!(column.is_ok() || !is_slug);
    assert!(column.is_err() || bounded(128) && !text.contains(char::is_control) && text.trim() != "", "{text:?}");

    let as_json = serde_json::to_string(text).expect("it is text");
    let read: Result<Slug, _> = serde_json::from_str(&as_json);
    assert_eq!(read.ok(), slug.clone().ok());
    if let Ok(slug) = slug {
        for key in [layout::config_key(&slug), layout::dashboard_key(&slug, &slug), layout::manifest_key(&slug, "t")] {
            assert!(key.starts_with(&layout::pipeline_prefix(&slug)));
            assert_eq!(layout::parse_key(&key).as_deref(), Ok(&*key));
            assert_eq!(layout::pipeline_of(&key), Some(slug.clone()));
        }
    }
    if let Some(ty) = DataType::parse(text) {
        assert_eq!(DataType::parse(&ty.to_string()), Some(ty));
    }
}

/// The whole input is a key: an accepted one stays within its folder, however it is decoded.
pub fn keys(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Some(slug) = layout::pipeline_of(text) {
        assert!(text.starts_with(&layout::pipeline_prefix(&slug)));
    }
    let Ok(key) = layout::parse_key(text) else {
        assert!(layout::parse_new_key(text).is_err());
        return;
    };
    assert_eq!(layout::parse_key(&key).as_deref(), Ok(&*key), "an accepted key is normalized");
    assert!(key.len() <= KEY_BYTES_MAX && !key.contains('\\') && !key.contains(char::is_control));
    assert!(!key.chars().any(crate::domain::text::is_bidi_control));
    let plain = |text: &str| Path::new(text).components().all(|part| matches!(part, Component::Normal(_)));
    assert!(plain(&key) && key.split('/').all(|part| !matches!(part, "" | "." | "..")), "{key:?}");
    let Ok(new) = layout::parse_new_key(text) else { return };
    assert_eq!(new, key);
    assert_eq!(layout::check_portable_in_warehouse(&key), Ok(()));
    let mut decoded = key.clone();
    for _ in 0..=KEY_DECODINGS_MAX {
        assert!(!decoded.split(['/', '\\']).any(|part| matches!(part, "." | "..")), "{key:?}");
        decoded = percent_encoding::percent_decode_str(&decoded).decode_utf8_lossy().into_owned();
    }
}

/// The whole input is the body of a post.
pub fn events(input: &[u8]) {
    let Ok(body) = worker_events::read(input, "lake") else { return };
    let envelope: Value = serde_json::from_slice(input).expect("what was read is JSON");
    let (summary, envelope) = match body {
        EventBody::Events(summary) => (summary, envelope),
        EventBody::Topic(message) => {
            let Ok(summary) = worker_events::read_message(&message, "lake") else { return };
            (summary, serde_json::from_str(&message.message).expect("what was read is JSON"))
        }
    };
    assert!(summary.changes.len() as u64 <= summary.accepted);
    assert_eq!(summary.accepted == 0, summary.changes.is_empty());
    let Some(records) = envelope["Records"].as_array() else {
        assert!(summary.accepted + summary.ignored <= 1);
        return;
    };
    assert_eq!(summary.accepted + summary.ignored, records.len() as u64);
    let created = |record: &&Value| {
        record["eventName"].as_str().is_some_and(|name| name.contains("ObjectCreated:"))
            && record["s3"]["bucket"]["name"] == "lake"
    };
    assert!(summary.accepted <= records.iter().filter(created).count() as u64);
}

/// The whole input is a `pipeline.json`.
pub fn pipeline(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let examined = validate::examine(text);
    assert!(examined.problems.len() <= PROBLEMS_MAX + 1);
    let lines = text.split('\n').count();
    let spans = validate::spans(text, &examined.problems);
    assert_eq!(spans.len(), examined.problems.len());
    for (span, problem) in spans.iter().zip(&examined.problems) {
        assert!((1..=lines).contains(&span.line) && span.column >= 1 && span.width >= 1, "{problem:?}: {span:?}");
        let characters = text.split('\n').nth(span.line - 1).unwrap_or_default().chars().count();
        assert!(span.column <= characters + 1, "{problem:?}: {span:?}");
    }
    for draft in &examined.drafts {
        for column in &draft.mapping.columns {
            let _ = ColumnBuilder::new(column, &draft.mapping.csv).finish();
        }
    }
    match validate::parse(text) {
        Ok(pipeline) => {
            assert!(examined.problems.is_empty());
            assert_eq!(pipeline.mappings.len(), examined.drafts.len());
            let again = validate::parse(text).expect("it was read before");
            let canonical = |of: &crate::domain::pipeline::Pipeline| -> Vec<String> {
                of.mappings.iter().map(|mapping| mapping.canonical.clone()).collect()
            };
            assert_eq!(canonical(&again), canonical(&pipeline));
            // A document's whitespace has no meaning.
            let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).expect("it is JSON");
            let dense = validate::parse(&value.to_string()).expect("it is the same document");
            assert_eq!(canonical(&dense), canonical(&pipeline));
        }
        Err(problems) => assert_eq!(problems, examined.problems),
    }
}

/// The whole input is a dashboard's YAML.
pub fn dashboard(input: &[u8]) {
    use dashboard::limits::{NODES_MAX, PROBLEMS_MAX};
    let examined = dashboard::examine(input);
    assert!(examined.problems.len() <= PROBLEMS_MAX && examined.warnings.len() <= PROBLEMS_MAX);
    assert!(examined.panel_ids.len() <= NODES_MAX);
    let lines = input.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    for problem in examined.problems.iter().chain(&examined.warnings) {
        assert!(problem.line >= 1 && problem.column >= 1 && problem.line as usize <= lines + 1, "{problem:?}");
        assert!(!problem.message.is_empty());
    }
    let board = &examined.dashboard;
    let day = chrono::NaiveDate::from_ymd_opt(2024, 2, 29).expect("it is a day");
    let settings = ParamSettings::sample(board.params(), day);
    assert!(settings.bound().len() >= board.params().count());
    for query in board.queries() {
        assert!(query.sql().len() <= query.query.sql.len());
        assert!(query.placeholders().all(|name| query.uses(name)));
        let _ = board.columns_needed(&query.name);
    }
    for panel in board.panels() {
        if let Some(query) = panel.query().and_then(|name| board.query(name)) {
            assert!(!dashboard::panel_sql(panel, query).is_empty());
        }
    }
    assert!(std::str::from_utf8(input).is_ok() || examined.problems.len() == 1);
}
