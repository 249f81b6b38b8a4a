//! Errors of commands, and their exit statuses.

use super::plain::plain;
use crate::config::{EXIT_STATUS, EnvironmentError};

/// Exit status that asks the caller to retry (`EX_TEMPFAIL` of sysexits.h).
const EXIT_STATUS_INTERRUPTED: u8 = 75;

/// Why a command failed.
pub enum CommandError {
    Environment(EnvironmentError),
    /// A signal ended the command before its work was done; a later call does the rest.
    Interrupted(String),
    /// States the failure and the remedy.
    Other(String),
}

impl CommandError {
    /// The text, safe for a terminal.
    pub(super) fn text(&self) -> String {
        let text = match self {
            Self::Environment(error) => error.to_string(),
            Self::Interrupted(message) | Self::Other(message) => message.clone(),
        };
        text.lines().map(plain).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn exit_status(&self) -> u8 {
        match self {
            Self::Environment(_) => EXIT_STATUS,
            Self::Interrupted(_) => EXIT_STATUS_INTERRUPTED,
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
