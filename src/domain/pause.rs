//! Pauses of pipelines.

use chrono::{DateTime, Utc};

/// While it lasts, no run of its pipelines starts: windows stay open, and jobs wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub since: DateTime<Utc>,
    /// Free text; may be empty.
    pub reason: String,
}
