//! Level and format of the log.

use super::env::{Expected, Var, VariableReader};

/// Least severity that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    Text,
}

/// Logging, on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogConfig {
    /// `SVC_LOG`: `error`, `warn`, `info` (default), `debug` or `trace`.
    pub level: LogLevel,
    /// `SVC_LOG_FORMAT`: `json` or `text`; `None` (default): `text` on a terminal, else `json`.
    pub format: Option<LogFormat>,
}

const LEVELS: &[(&str, LogLevel)] = &[
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];
const FORMATS: &[(&str, LogFormat)] = &[("json", LogFormat::Json), ("text", LogFormat::Text)];

impl LogConfig {
    pub(super) fn read(reader: &VariableReader<'_>) -> Self {
        Self {
            level: reader.or(Var("SVC_LOG", "minimum severity of the log"), LogLevel::default(), one_of(LEVELS)),
            format: reader.optional(Var("SVC_LOG_FORMAT", "format of the log"), one_of(FORMATS)),
        }
    }
}

fn one_of<T: Copy>(choices: &'static [(&'static str, T)]) -> impl Fn(&str) -> Result<T, Expected> {
    move |text| {
        let names = || choices.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        choices
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, choice)| *choice)
            .ok_or_else(|| format!("one of {}", names()))
    }
}
