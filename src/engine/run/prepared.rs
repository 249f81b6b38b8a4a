//! A converted table, ready to be published.

use std::collections::BTreeMap;

use crate::domain::job::TableResult;
use crate::domain::pipeline::RejectLimits;
use crate::domain::table_log::root::Totals;
use crate::engine::convert::SpooledFile;
use crate::pipelines::tables::{Edited, FoundRoot};

/// A table ready to be published.
#[derive(Debug)]
pub(super) struct PreparedTable {
    pub name: String,
    pub found: FoundRoot,
    /// The next manifest; `None` if the table is as it was.
    pub edited: Option<Edited>,
    /// Of the next manifest, or of the present one.
    pub totals: Totals,
    /// The spooled file of every new key.
    pub made: BTreeMap<String, SpooledFile>,
    /// The spooled rejects of the sources read, in key order.
    pub rejects: Vec<SpooledFile>,
    pub limits: RejectLimits,
    pub result: TableResult,
}
