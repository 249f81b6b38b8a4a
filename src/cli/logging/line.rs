//! Formats an event as a line.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use tracing::Level;

use super::record::Fields;
use crate::cli::plain::plain;
use crate::domain::text::is_bidi_control;
use crate::runtime::rfc3339;

/// Minimum width of the event in text, so that fields are aligned.
const EVENT_WIDTH: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `{"ts":…,"level":…,"event":…,"target":…,` then the fields `}`.
    Json,
    /// `TIME  LEVEL event  name=value …`
    Text { coloured: bool },
}

/// The parts of a line.
pub(super) struct Line<'a> {
    pub(super) time: DateTime<Utc>,
    pub(super) level: Level,
    pub(super) event: &'a str,
    /// The target, if it is another crate's.
    pub(super) target: Option<&'a str>,
    pub(super) fields: &'a Fields,
}

impl Line<'_> {
    /// The line with its end.
    pub(super) fn render(&self, style: Style) -> String {
        let mut line = match style {
            Style::Json => self.json(),
            Style::Text { coloured } => self.text(coloured),
        };
        line.push('\n');
        line
    }

    fn json(&self) -> String {
        let mut object = Map::new();
        object.insert("ts".into(), rfc3339(self.time).into());
        object.insert("level".into(), self.level.as_str().to_ascii_lowercase().into());
        object.insert("event".into(), self.event.into());
        if let Some(target) = self.target {
            object.insert("target".into(), target.into());
        }
        for (name, value) in self.fields.values() {
            object.insert(name.clone(), value.clone());
        }
        escaped(&Value::Object(object).to_string())
    }

    fn text(&self, coloured: bool) -> String {
        let (on, dim, off) = if coloured { (colour(self.level), "\u{1b}[2m", "\u{1b}[0m") } else { ("", "", "") };
        let (time, level) = (rfc3339(self.time), self.level.as_str());
        let event = plain(self.event);
        let mut line = format!("{dim}{time}{off} {on}{level:>5}{off} {event:<EVENT_WIDTH$}");
        let target = self.target.map(|target| ("target".to_owned(), Value::from(target)));
        let fields = self.fields.values().iter().map(|(name, value)| (name.clone(), value.clone()));
        for (name, value) in target.into_iter().chain(fields) {
            let _ = write!(line, "  {dim}{}={off}{}", plain(&name), shown(&value));
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\u{1b}[1;31m",
        Level::WARN => "\u{1b}[33m",
        Level::INFO => "\u{1b}[32m",
        Level::DEBUG => "\u{1b}[34m",
        Level::TRACE => "\u{1b}[35m",
    }
}

/// An unambiguous value: texts with spaces, `=` or quotes are quoted.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.contains(|c: char| c.is_whitespace() || "=\"".contains(c)) => {
            plain(&escaped(&value.to_string()))
        }
        Value::String(text) => plain(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// JSON in which non-ASCII control characters, line separators and bidirectional controls are escaped as well. In JSON they
/// occur only within strings.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || is_bidi_control(c) || matches!(c, '\u{2028}' | '\u{2029}') {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}
