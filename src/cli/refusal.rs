//! Why a command was not done, and the exit status that says so.

use std::fmt;

use crate::config::{EXIT_STATUS, EnvironmentError};

/// Why a command was not done.
#[derive(Debug)]
pub enum Refusal {
    /// Exit status 1.
    Failed(String),
    /// Exit status 78.
    Environment(EnvironmentError),
}

impl Refusal {
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Environment(_) => EXIT_STATUS,
        }
    }

    /// For `map_err`, where the error says it all.
    pub fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => f.write_str(message),
            Self::Environment(error) => error.fmt(f),
        }
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl From<EnvironmentError> for Refusal {
    fn from(error: EnvironmentError) -> Self {
        Self::Environment(error)
    }
}
