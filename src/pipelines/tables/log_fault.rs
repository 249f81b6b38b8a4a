//! A difference between the record of a table's versions and its manifest.

/// A difference between a Delta log or Iceberg metadata and the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogFault {
    pub key: String,
    pub is_missing: bool,
    pub found: String,
}
