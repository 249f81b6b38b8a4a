//! Runs user-supplied SQL over a pipeline's tables, in child processes: the basis of queries, dashboards and the impact of
//! a config.

mod borrow;
mod cancellation;
mod describe;
pub mod failure;
mod others;
mod results;
mod run;
mod types;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use borrow::{BorrowedChild, OpenedTables, TablesRequest, checked_or_error, may_list_tables};
pub use cancellation::{Cancellation, QueryAnnouncement};
pub use others::OtherPipelines;
pub use run::{DOWNLOAD_MAX, Limits, Sql, TIMEOUTS_MAX, query_id};
pub use types::{
    LimitReason, Param, ResultColumn, RowLimits, Rows, ShapeColumn, SqlProblem, Statement, TableShape,
    push_object_with_rows, push_rows, rows_json, statement,
};

use crate::sql::sandbox::Sandbox;
use crate::web::cache::Cache;

/// The parts that [`Sql`] needs.
pub struct SqlParts {
    pub sandbox: Sandbox,
    /// The sandbox's largest number of borrowed children.
    pub children_max: usize,
    /// Caches warehouse files; on the file system of the children's folders.
    pub cache: Arc<Cache>,
    /// Timeout of a statement.
    pub timeout: Duration,
}

/// The subfolders of the cache folder for child processes and for files.
pub fn folders(cache: &std::path::Path) -> (PathBuf, PathBuf) {
    (cache.join("queries"), cache.join("files"))
}
