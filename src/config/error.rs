//! Faults of the environment, reported all at once.

use std::fmt;

/// Exit status for an invalid environment (`EX_CONFIG` of sysexits.h).
pub const EXIT_STATUS: u8 = 78;

/// A missing or malformed variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{name} ({purpose}) is missing")]
    Missing { name: &'static str, purpose: &'static str },
    /// `found` is never a secret.
    #[error("{name} ({purpose}): found `{found}`, expected {expected}")]
    Malformed { name: &'static str, purpose: &'static str, found: String, expected: String },
    #[error("{name} ({purpose}): expected {expected} (its value is not shown)")]
    MalformedSecret { name: &'static str, purpose: &'static str, expected: String },
    #[error("{name} ({purpose}): reading `{path}` failed: {why}")]
    Unreadable { name: &'static str, purpose: &'static str, path: String, why: String },
    #[error("{name} ({purpose}) is given twice, as {name} and as {name}_FILE")]
    Ambiguous { name: &'static str, purpose: &'static str },
}

impl Fault {
    /// The variable.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Missing { name, .. }
            | Self::Malformed { name, .. }
            | Self::MalformedSecret { name, .. }
            | Self::Unreadable { name, .. }
            | Self::Ambiguous { name, .. } => name,
        }
    }
}

/// All faults of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentError {
    /// At least one, in the order in which the variables are documented.
    pub faults: Vec<Fault>,
}

impl std::error::Error for EnvironmentError {}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.faults.len();
        write!(f, "{count} environment variable{} can't be used:", if count == 1 { "" } else { "s" })?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}
