//! A difference between the record of a table's versions and its manifest.

/// How a Delta log or Iceberg metadata isn't what the manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogFault {
    pub key: String,
    pub is_missing: bool,
    pub found: String,
}
