//! A converted table, ready to be published.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::job::TableResult;
use crate::domain::manifest::Manifest;
use crate::domain::pipeline::RejectLimits;
use crate::domain::plan::{Listing, Publication};
use crate::engine::convert::SpooledFile;
use crate::ports::store::ETag;

/// The manifest object at the start of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ManifestState {
    Absent,
    /// With its ETag, if the store has one.
    Present(Option<ETag>),
}

/// A table ready to be published.
#[derive(Debug)]
pub(super) struct PreparedTable {
    pub state: ManifestState,
    pub old: Option<Manifest>,
    pub publication: Publication,
    /// The spooled file of every new key.
    pub made: BTreeMap<String, PathBuf>,
    /// The files listed when the run planned.
    pub output: Listing,
    /// The spooled rejects of the sources read, in key order.
    pub rejects: Vec<SpooledFile>,
    pub next: Manifest,
    pub limits: RejectLimits,
    /// The table needs no changes.
    pub is_unchanged: bool,
    pub result: TableResult,
}

impl PreparedTable {
    pub fn name(&self) -> &str {
        &self.next.table
    }

    /// Whether its manifest or any file must be written.
    pub fn is_published(&self) -> bool {
        !self.is_unchanged || self.old.as_ref() != Some(&self.next)
    }
}
