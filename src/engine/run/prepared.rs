//! A converted table, ready to be published.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::job::TableResult;
use crate::domain::manifest::Manifest;
use crate::domain::pipeline::RejectLimits;
use crate::domain::plan::{Listing, Publication};
use crate::engine::convert::SpooledFile;
use crate::ports::store::ETag;

/// The manifest object as the run found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ManifestState {
    Absent,
    /// With its tag, if the store gave one.
    Present(Option<ETag>),
}

/// A table that could be published.
#[derive(Debug)]
pub(super) struct PreparedTable {
    pub state: ManifestState,
    pub old: Option<Manifest>,
    pub publication: Publication,
    /// The spooled file of every key that was made.
    pub made: BTreeMap<String, PathBuf>,
    /// What lay there when the run planned.
    pub output: Listing,
    /// The spooled rejects of the sources that were read, in key order.
    pub rejects: Vec<SpooledFile>,
    pub next: Manifest,
    pub limits: RejectLimits,
    /// The table is as it should be.
    pub is_unchanged: bool,
    pub result: TableResult,
}

impl PreparedTable {
    pub fn name(&self) -> &str {
        &self.next.table
    }

    /// Whether its manifest or any of its files is to be written.
    pub fn is_published(&self) -> bool {
        !self.is_unchanged || self.old.as_ref() != Some(&self.next)
    }
}
