//! A converted table, ready to be published.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::job::TableResult;
use crate::domain::pipeline::RejectLimits;
use crate::domain::table_log::root::{Retirement, Totals};
use crate::engine::convert::SpooledFile;
use crate::pipelines::tables::{Edited, FoundRoot};

/// A table ready to be published.
#[derive(Debug)]
pub(super) struct PreparedTable {
    pub name: String,
    pub found: FoundRoot,
    /// The next manifest; `None` if the table is as it was.
    pub edited: Option<Edited>,
    /// Totals of the next manifest, or of the current one.
    pub totals: Totals,
    /// The spooled file of every new key.
    pub made: BTreeMap<String, SpooledFile>,
    /// The spooled rejects of the sources read, in key order.
    pub rejects: Vec<SpooledFile>,
    pub limits: RejectLimits,
    /// How long retired objects are kept.
    pub keep_history: Duration,
    pub result: TableResult,
}

impl PreparedTable {
    /// The retained commits that have expired, oldest first. `now`: by the store's clock.
    pub fn expired(&self, now: DateTime<Utc>) -> Vec<Retirement> {
        self.found.readable().map(|root| root.expired(self.keep_history, now)).unwrap_or_default()
    }
}
