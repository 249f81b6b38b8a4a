//! Consistent snapshots of tables.
//!
//! Invariant: the files of each table are those of one commit. They can't change; a later commit can delete them, and
//! then the snapshot is taken again.

mod fetch;
pub mod manifest;
pub mod selection;
mod source_shards;

use std::sync::Arc;

use crate::domain::name::Slug;
use crate::domain::table_log::history::AsOf;
use crate::domain::table_schema::TableColumn;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Relation, Sandbox};
use crate::web::cache::{Cache, Deadline, StagedTable};
use crate::web::sql::failure::from_cache;
use crate::web::stores::Objects;
use crate::web::tables::catalog::CatalogTable;

use manifest::{Manifests, TRIES_MAX, keeps_changing};
pub use selection::Span;
use selection::{Selection, TableFile};

/// Files that one query reads.
const SNAPSHOT_FILES_MAX: usize = 20_000;

/// A snapshot; its files exist as long as the value.
pub struct TableSnapshot {
    pub relations: Vec<Relation>,
    /// Rows of each table.
    pub rows: Vec<u64>,
    /// Rows of the first table in files that were skipped since they precede the requested span.
    pub skipped: u64,
    /// The files of each table, in a folder with its name.
    pub staged: Vec<StagedTable>,
}

/// A table to take a snapshot of.
#[derive(Debug, Clone, Copy)]
pub struct RequestedTable<'a> {
    pub pipeline: &'a Slug,
    pub table: &'a CatalogTable,
}

/// A table being added to a snapshot.
struct PendingTable<'a> {
    pipeline: &'a Slug,
    table: &'a CatalogTable,
    known_as: String,
    /// See [`Selection::state`].
    state: String,
    files: Vec<TableFile>,
    columns: Vec<TableColumn>,
    /// Rows of all files, and of those before `files`.
    rows: u64,
    skipped: u64,
    /// Whether `files` are all of the table.
    is_whole: bool,
}

/// Takes snapshots.
pub struct Snapshots {
    store: Objects,
    manifests: Arc<Manifests>,
    cache: Arc<Cache>,
    sandbox: Arc<Sandbox>,
}

impl Snapshots {
    pub fn new(store: Objects, manifests: Arc<Manifests>, cache: Arc<Cache>, sandbox: Arc<Sandbox>) -> Self {
        Self { store, manifests, cache, sandbox }
    }

    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// Takes a snapshot of tables. With a `span`, files of the first table without these rows may be skipped.
    ///
    /// # Errors
    /// `version_not_found`, `query_too_large`, `query_cancelled`, `query_timeout`, `overloaded`, `s3_error`, `bucket_not_found`, `internal`.
    pub fn take(
        &self,
        tables: &[RequestedTable<'_>],
        span: Option<Span>,
        as_of: Option<AsOf>,
        deadline: Deadline<'_>,
    ) -> Result<TableSnapshot, ApiError> {
        let mut gone: Option<(String, Vec<String>)> = None;
        for _ in 0..TRIES_MAX {
            deadline.check().map_err(from_cache)?;
            let pending =
                tables.iter().map(|wanted| self.pending(*wanted, span, as_of)).collect::<Result<Vec<_>, _>>()?;
            if pending.iter().map(|one| one.files.len()).sum::<usize>() > SNAPSHOT_FILES_MAX {
                return Err(too_many_files());
            }
            match self.fetch(&pending, deadline) {
                Ok(snapshot) => return Ok(snapshot),
                Err(FetchError::Failed(error)) => return Err(error),
                Err(FetchError::Gone { key }) => {
                    let states = pending.into_iter().map(|one| one.state).collect();
                    if gone.as_ref().is_some_and(|(_, before)| *before == states) {
                        return Err(missing(&key));
                    }
                    gone = Some((key, states));
                }
            }
        }
        Err(keeps_changing())
    }

    fn pending<'a>(
        &self,
        RequestedTable { pipeline, table }: RequestedTable<'a>,
        span: Option<Span>,
        as_of: Option<AsOf>,
    ) -> Result<PendingTable<'a>, ApiError> {
        let selection = self.select(pipeline, table, as_of)?;
        let columns = selection.columns_of(table);
        let Selection { files, state, .. } = selection;
        let known_as = format!("{pipeline}/{}", table.name);
        let rows = files.iter().map(|file| file.rows).sum();
        let mut one =
            PendingTable { pipeline, table, known_as, state, files, columns, rows, skipped: 0, is_whole: true };
        one.narrow(span);
        Ok(one)
    }

    /// Selects the files of a table by its current manifest, or as of an earlier version.
    ///
    /// # Errors
    /// `invalid_config`, `s3_error`, `bucket_not_found`, `overloaded`, `internal`.
    pub fn select(&self, pipeline: &Slug, table: &CatalogTable, as_of: Option<AsOf>) -> Result<Selection, ApiError> {
        match table.is_system() {
            true => self.manifests.select_rejects(pipeline, as_of),
            false => self.manifests.select_table(pipeline, &table.name, as_of),
        }
    }
}

enum FetchError {
    /// A file is missing or differs from the manifest's.
    Gone {
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

fn missing(key: &str) -> ApiError {
    let message = format!("the table's file `{key}` is missing or was replaced by another program; do a clean run");
    ApiError::new(ErrorCode::TableDamaged, message)
}
