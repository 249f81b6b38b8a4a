//! Consistent snapshots of a pipeline's tables.
//!
//! Invariant: unless a snapshot is marked as publishing, the files of each table are those of one manifest version without
//! a publish intent, unchanged before and after the files were fetched.
//!
//! Must not: wait twice for the same publish; the intent of a dead run stays for long.

mod fetch;
pub mod manifest;
pub mod selection;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::domain::table_schema::TableColumn;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Relation, Sandbox};
use crate::web::cache::{Cache, Deadline, StagedTable};
use crate::web::sql::failure::from_cache;
use crate::web::stores::Objects;
use crate::web::tables::catalog::CatalogTable;

use manifest::Manifests;
pub use selection::Span;
use selection::{Selection, TableFile};

/// Longest wait of a reader for the end of a table's publish, in ms.
const SNAPSHOT_WAIT_MS: u64 = 5_000;
/// Files that one query reads.
const SNAPSHOT_FILES_MAX: usize = 20_000;
/// Pause before a manifest is read again.
const PAUSE: Duration = Duration::from_millis(100);
/// Attempts to fetch files that change during a best-effort snapshot.
const BEST_EFFORT_TRIES_MAX: u32 = 5;
/// Most remembered tables.
const WAITED_MAX: usize = 1_000;

/// Tables whose publish was waited for, with the state of their manifests.
#[derive(Default)]
struct WaitedPublishes(Mutex<HashMap<String, String>>);

impl WaitedPublishes {
    fn contains(&self, table: &str, state: &str) -> bool {
        let known = self.0.lock();
        known.get(table).is_some_and(|known| known == state)
    }

    fn add(&self, table: String, state: String) {
        let mut known = self.0.lock();
        if known.len() >= WAITED_MAX {
            known.clear();
        }
        known.insert(table, state);
    }
}

/// A snapshot, which keeps its files.
pub struct TableSnapshot {
    pub relations: Vec<Relation>,
    /// For each: whether its columns may differ, since it is being published; then the first file has them.
    pub unsure: Vec<bool>,
    /// Rows of each, if known without reading.
    pub rows: Vec<Option<u64>>,
    /// Rows of the first table in files that were skipped since they precede the requested span.
    pub skipped: u64,
    /// A table was being published for longer than the wait.
    pub publishing: bool,
    /// The files of each, in a folder by its name.
    pub staged: Vec<StagedTable>,
}

/// A table being added to a snapshot.
struct PendingTable<'a> {
    table: &'a CatalogTable,
    known_as: String,
    /// State of its manifests when its files were selected.
    state: String,
    files: Vec<TableFile>,
    columns: Vec<TableColumn>,
    /// Only files with these rows are needed.
    span: Option<Span>,
    /// Rows of all files, and of those before `files`.
    rows: Option<u64>,
    skipped: u64,
    /// Whether the state identifies the files.
    exact: bool,
    /// Its publish was waited for: the present files are used.
    best_effort: bool,
    /// Best-effort attempts in which its files changed.
    tries: u32,
}

/// Takes snapshots.
pub struct Snapshots {
    store: Objects,
    manifests: Arc<Manifests>,
    cache: Arc<Cache>,
    sandbox: Arc<Sandbox>,
    waited: WaitedPublishes,
}

impl Snapshots {
    pub fn new(store: Objects, manifests: Arc<Manifests>, cache: Arc<Cache>, sandbox: Arc<Sandbox>) -> Self {
        Self { store, manifests, cache, sandbox, waited: WaitedPublishes::default() }
    }

    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// Takes a snapshot of tables. With a `span`, files without these rows may be skipped.
    ///
    /// # Errors
    /// `query_too_large`, `query_cancelled`, `query_timeout`, `overloaded`, `s3_error`, `bucket_not_found`, `internal`.
    pub fn take<'a>(
        &self,
        pipeline: &Slug,
        tables: &[&'a CatalogTable],
        span: Option<Span>,
        deadline: Deadline<'_>,
    ) -> Result<TableSnapshot, ApiError> {
        let wait_until = Instant::now() + Duration::from_millis(SNAPSHOT_WAIT_MS);
        let pending = |table: &&'a CatalogTable| PendingTable {
            table,
            known_as: format!("{pipeline}/{}", table.name),
            state: String::new(),
            files: Vec::new(),
            columns: Vec::new(),
            span,
            rows: None,
            skipped: 0,
            exact: false,
            best_effort: false,
            tries: 0,
        };
        let mut pending: Vec<PendingTable<'a>> = tables.iter().map(pending).collect();
        loop {
            if self.select_all(pipeline, &mut pending, wait_until)? {
                match self.fetch(pipeline, &pending, deadline) {
                    Ok(mut snapshot) => {
                        if self.is_settled(pipeline, &pending, &mut snapshot, wait_until)? {
                            return Ok(snapshot);
                        }
                    }
                    Err(FetchError::Changed { key }) => {
                        self.on_changed_file(pipeline, &mut pending, &key, wait_until)?
                    }
                    Err(FetchError::Failed(error)) => return Err(error),
                }
            }
            deadline.check().map_err(from_cache)?;
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether the wait for a table in this state is over.
    fn has_waited(&self, one: &PendingTable<'_>, wait_until: Instant) -> bool {
        Instant::now() >= wait_until || self.waited.contains(&one.known_as, &one.state)
    }

    /// Selects the files of each table; false if one is being published and should be waited for.
    fn select_all(
        &self,
        pipeline: &Slug,
        pending: &mut [PendingTable<'_>],
        wait_until: Instant,
    ) -> Result<bool, ApiError> {
        let mut files = 0;
        for one in pending.iter_mut() {
            let selection = self.select(pipeline, one.table)?;
            one.columns = selection.columns_of(one.table);
            (one.state, one.files, one.exact) = (selection.state, selection.files, selection.exact);
            if selection.marked && !one.best_effort {
                if !self.has_waited(one, wait_until) {
                    return Ok(false);
                }
                self.waited.add(one.known_as.clone(), one.state.clone());
                one.best_effort = true;
            }
            if one.best_effort {
                one.files = self.manifests.select_present(pipeline, one.table)?;
            }
            one.narrow();
            files += one.files.len();
            if files > SNAPSHOT_FILES_MAX {
                return Err(too_many_files());
            }
        }
        Ok(true)
    }

    /// Whether the manifests are unchanged, or the wait for them is over.
    fn is_settled(
        &self,
        pipeline: &Slug,
        pending: &[PendingTable<'_>],
        snapshot: &mut TableSnapshot,
        wait_until: Instant,
    ) -> Result<bool, ApiError> {
        for one in pending {
            if one.best_effort {
                snapshot.publishing = true;
            } else if self.state(pipeline, one.table)? != one.state {
                if !self.has_waited(one, wait_until) {
                    return Ok(false);
                }
                self.waited.add(one.known_as.clone(), one.state.clone());
                snapshot.publishing = true;
            }
        }
        Ok(true)
    }

    /// Records that a file differs from its table's manifest.
    fn on_changed_file(
        &self,
        pipeline: &Slug,
        pending: &mut [PendingTable<'_>],
        key: &str,
        wait_until: Instant,
    ) -> Result<(), ApiError> {
        let relative = key.strip_prefix(&pipeline_prefix(pipeline)).unwrap_or(key);
        let Some(one) = pending.iter_mut().find(|one| one.files.iter().any(|file| file.key == relative)) else {
            return Err(ApiError::internal(format!("`{key}` belongs to none of the tables")));
        };
        if one.best_effort {
            one.tries += 1;
        } else if self.has_waited(one, wait_until) {
            self.waited.add(one.known_as.clone(), one.state.clone());
            one.best_effort = true;
        }
        if one.tries < BEST_EFFORT_TRIES_MAX {
            return Ok(());
        }
        let cause = format!("`{}` is being published and keeps changing while it is read", one.known_as);
        Err(ApiError::new(ErrorCode::Overloaded, cause).with_retry_after(Duration::from_secs(5)))
    }

    /// Selects the files of a table by its current manifests.
    ///
    /// # Errors
    /// `invalid_config`, `s3_error`, `bucket_not_found`, `internal`.
    pub fn select(&self, pipeline: &Slug, table: &CatalogTable) -> Result<Selection, ApiError> {
        if table.is_system() {
            self.manifests.select_rejects(pipeline)
        } else {
            self.manifests.select_table(pipeline, &table.name)
        }
    }

    /// The current [`Selection::state`].
    fn state(&self, pipeline: &Slug, table: &CatalogTable) -> Result<String, ApiError> {
        if table.is_system() {
            self.manifests.state_of_rejects(pipeline)
        } else {
            self.manifests.state_of_table(pipeline, &table.name)
        }
    }
}

enum FetchError {
    /// A file differs from the manifest.
    Changed {
        key: String,
    },
    Failed(ApiError),
}

impl From<ApiError> for FetchError {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

fn too_many_files() -> ApiError {
    let message = format!("the query reads more than {SNAPSHOT_FILES_MAX} files; partition the tables more coarsely");
    ApiError::new(ErrorCode::QueryTooLarge, message)
}
