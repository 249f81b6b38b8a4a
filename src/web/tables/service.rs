//! The service, and what its handlers share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::catalog::{Catalog, CatalogTable};
use super::catalogs::Catalogs;
use super::footers::Footers;
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode, Request};
use crate::runtime::Clock;
use crate::web::access::clipped;
use crate::web::locks::Locks;
use crate::web::snapshot::Snapshots;
use crate::web::snapshot::manifest::Manifests;
use crate::web::sql::Sql;

/// Maximum number of cached statistics.
const CACHED_MAX: usize = 64;
/// Maximum number of columns of cached statistics.
const CACHED_COLUMNS_MAX: usize = 1_000;

/// The service.
pub struct Tables {
    pub catalogs: Arc<Catalogs>,
    pub manifests: Arc<Manifests>,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) footers: Arc<Footers>,
    pub(super) sql: Arc<Sql>,
    pub(super) locks: Arc<Locks>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) stats: StatsCache,
}

impl Tables {
    pub fn new(
        catalogs: Arc<Catalogs>,
        manifests: Arc<Manifests>,
        snapshots: Arc<Snapshots>,
        footers: Arc<Footers>,
        sql: Arc<Sql>,
        locks: Arc<Locks>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { catalogs, manifests, snapshots, footers, sql, locks, clock, stats: StatsCache::default() }
    }
}

/// The table in the path, case-sensitive.
///
/// # Errors
/// `table_not_found`.
pub fn table_param<'a>(request: &Request, catalog: &'a Catalog, pipeline: &Slug) -> Result<&'a CatalogTable, ApiError> {
    let name = request.param("table");
    catalog.tables.iter().find(|table| table.name == name).ok_or_else(|| {
        let message = format!("the pipeline `{pipeline}` has no table `{}`", clipped(name));
        ApiError::new(ErrorCode::TableNotFound, message)
    })
}

/// Statistics of a table.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Stats {
    pub(super) table: String,
    /// Rows of the whole table.
    pub(super) rows: u64,
    pub(super) files_read: u64,
    pub(super) files_total: u64,
    /// Whether all files were read.
    pub(super) complete: bool,
    pub(super) columns: Vec<ColumnStats>,
}

/// Statistics of a column. Values have the format of rows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ColumnStats {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
    /// Null values in the files read; null if a file has no null counts.
    pub(super) nulls: Option<u64>,
    /// Null if there is no value, or if a row group has no bounds, such as one with NaN.
    pub(super) min: Value,
    pub(super) max: Value,
    /// Whether `min` and `max` are exact; otherwise there may be smaller or larger values, or they are truncated.
    pub(super) exact: bool,
}

/// Cached statistics, with the state from which they were computed.
struct Entry {
    state: String,
    table: CatalogTable,
    stats: Arc<Stats>,
    used: u64,
}

/// Cached statistics, by pipeline and table.
#[derive(Default)]
pub struct StatsCache(Mutex<HashMap<String, Entry>>);

impl StatsCache {
    pub(super) fn get(&self, name: &str, state: &str, table: &CatalogTable) -> Option<Arc<Stats>> {
        let mut cached = self.0.lock();
        let used = cached.values().map(|one| one.used).max().unwrap_or_default() + 1;
        let one = cached.get_mut(name).filter(|one| one.state == state && one.table == *table)?;
        one.used = used;
        Some(Arc::clone(&one.stats))
    }

    pub(super) fn insert(&self, name: String, state: String, table: &CatalogTable, stats: &Arc<Stats>) {
        if stats.columns.len() > CACHED_COLUMNS_MAX {
            return;
        }
        let mut cached = self.0.lock();
        let used = cached.values().map(|one| one.used).max().unwrap_or_default() + 1;
        cached.insert(name, Entry { state, table: table.clone(), stats: Arc::clone(stats), used });
        if cached.len() > CACHED_MAX {
            let oldest = cached.iter().min_by_key(|(_, one)| one.used).map(|(name, _)| name.clone());
            oldest.and_then(|name| cached.remove(&name));
        }
    }
}
