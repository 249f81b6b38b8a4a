//! Errors of commands, and their exit statuses.

use super::plain::plain;
use crate::config::{EXIT_STATUS, EnvironmentError};

/// Why a command failed.
pub enum CommandError {
    Environment(EnvironmentError),
    /// States the failure and the remedy.
    Other(String),
}

impl CommandError {
    /// The text, safe for a terminal.
    pub(super) fn text(&self) -> String {
        let text = match self {
            Self::Environment(error) => error.to_string(),
            Self::Other(message) => message.clone(),
        };
        text.lines().map(plain).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn exit_status(&self) -> u8 {
        match self {
            Self::Environment(_) => EXIT_STATUS,
            Self::Other(_) => 1,
        }
    }
}

impl From<String> for CommandError {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

impl From<EnvironmentError> for CommandError {
    fn from(error: EnvironmentError) -> Self {
        Self::Environment(error)
    }
}
