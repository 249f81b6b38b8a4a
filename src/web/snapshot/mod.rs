//! A pipeline's tables as of one moment, for the process that reads them.
//!
//! Invariant: unless the snapshot says that a table was being published, the files of a table are those of one manifest,
//! which was the same, and without a mark, before they were fetched and after.
//!
//! Must not: wait for a publish again that was waited for already; a mark that a dead run left stays for long.

pub(in crate::web) mod columns;
mod fetch;
pub mod manifest;
pub(in crate::web) mod selection;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::domain::layout::pipeline_prefix;
use crate::domain::limits::{SNAPSHOT_FILES_MAX, SNAPSHOT_WAIT_MS};
use crate::domain::name::Slug;
use crate::domain::table_schema::TableColumn;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Relation, RelationColumn};
use crate::web::Web;
use crate::web::cache::{Patience, Tree};
use crate::web::sql::failure::from_cache;
use crate::web::tables::catalog::CatalogTable;

pub(in crate::web) use selection::Span;
use selection::{Chosen, Selection};

/// Pause between two looks at a manifest.
const PAUSE: Duration = Duration::from_millis(100);
/// Times that files which change under a snapshot of a table that is being published are looked for.
const LOOSE_TRIES_MAX: u32 = 5;
/// Tables of which it is remembered that their publish was waited for.
const WAITED_MAX: usize = 1_000;

/// Tables whose publish was waited for: what the manifests were.
#[derive(Default)]
pub struct Waited(Mutex<HashMap<String, String>>);

impl Waited {
    fn knows(&self, table: &str, state: &str) -> bool {
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

/// See the module. The files are there for as long as it is.
pub struct Snapshot {
    pub relations: Vec<Relation>,
    /// Of each: its files may have other columns, since it is being published; the first file tells them.
    pub unsure: Vec<bool>,
    /// Rows of each, where they are known without reading.
    pub rows: Vec<Option<u64>>,
    /// Rows of the first table in files that were left out since they come before the span that is asked for.
    pub skipped: u64,
    /// Some table was being published, for longer than is waited.
    pub publishing: bool,
    /// Where the files of each are: in a folder by its name.
    pub trees: Vec<Tree>,
}

/// A table on its way into a snapshot.
struct Taking<'a> {
    table: &'a CatalogTable,
    known_as: String,
    /// What its manifests were when its files were chosen.
    state: String,
    files: Vec<Chosen>,
    columns: Vec<TableColumn>,
    /// Those that hold these rows are enough.
    span: Option<Span>,
    /// Rows of all files, and of those before `files`.
    rows: Option<u64>,
    skipped: u64,
    /// The state tells them, to the byte.
    exact: bool,
    /// Its publish was waited for: what is there of it is taken.
    loose: bool,
    /// Times that its files changed while they were taken loosely.
    tries: u32,
}

impl Web {
    /// Takes a snapshot of tables. Only some rows of them may be asked for, in the order of the files; there may be
    /// others too.
    ///
    /// # Errors
    /// `query_too_large`, `query_cancelled`, `query_timeout`, `overloaded`, `s3_error`, `bucket_not_found`, `internal`.
    pub(in crate::web) fn snapshot<'a>(
        &self,
        pipeline: &Slug,
        tables: &[&'a CatalogTable],
        span: Option<Span>,
        patience: Patience<'_>,
    ) -> Result<Snapshot, ApiError> {
        let wait_until = Instant::now() + Duration::from_millis(SNAPSHOT_WAIT_MS);
        let taking = |table: &&'a CatalogTable| Taking {
            table,
            known_as: format!("{pipeline}/{}", table.name),
            state: String::new(),
            files: Vec::new(),
            columns: Vec::new(),
            span,
            rows: None,
            skipped: 0,
            exact: false,
            loose: false,
            tries: 0,
        };
        let mut taking: Vec<Taking<'a>> = tables.iter().map(taking).collect();
        loop {
            if self.choose(pipeline, &mut taking, wait_until)? {
                match self.fetch(pipeline, &taking, patience) {
                    Ok(mut snapshot) => {
                        if self.is_settled(pipeline, &taking, &mut snapshot, wait_until)? {
                            return Ok(snapshot);
                        }
                    }
                    Err(Missed::Changed { key }) => self.changed(pipeline, &mut taking, &key, wait_until)?,
                    Err(Missed::Failed(error)) => return Err(error),
                }
            }
            patience.check().map_err(from_cache)?;
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a table in this state is waited for no longer.
    fn is_over(&self, one: &Taking<'_>, wait_until: Instant) -> bool {
        Instant::now() >= wait_until || self.waited.knows(&one.known_as, &one.state)
    }

    /// Chooses the files of each table; false: one is being published, and is worth waiting for.
    fn choose(&self, pipeline: &Slug, taking: &mut [Taking<'_>], wait_until: Instant) -> Result<bool, ApiError> {
        let mut files = 0;
        for one in taking.iter_mut() {
            let selection = self.select(pipeline, one.table)?;
            one.columns = selection.columns_of(one.table);
            (one.state, one.files, one.exact) = (selection.state, selection.files, selection.exact);
            if selection.marked && !one.loose {
                if !self.is_over(one, wait_until) {
                    return Ok(false);
                }
                self.waited.add(one.known_as.clone(), one.state.clone());
                one.loose = true;
            }
            if one.loose {
                one.files = self.select_present(pipeline, one.table)?;
            }
            one.narrow();
            files += one.files.len();
            if files > SNAPSHOT_FILES_MAX {
                return Err(too_many_files());
            }
        }
        Ok(true)
    }

    /// Whether the manifests are those that they were, as far as that was still waited for.
    fn is_settled(
        &self,
        pipeline: &Slug,
        taking: &[Taking<'_>],
        snapshot: &mut Snapshot,
        wait_until: Instant,
    ) -> Result<bool, ApiError> {
        for one in taking {
            if one.loose {
                snapshot.publishing = true;
            } else if self.state(pipeline, one.table)? != one.state {
                if !self.is_over(one, wait_until) {
                    return Ok(false);
                }
                self.waited.add(one.known_as.clone(), one.state.clone());
                snapshot.publishing = true;
            }
        }
        Ok(true)
    }

    /// Takes note that a file is no longer what its table's manifest says.
    fn changed(
        &self,
        pipeline: &Slug,
        taking: &mut [Taking<'_>],
        key: &str,
        wait_until: Instant,
    ) -> Result<(), ApiError> {
        let relative = key.strip_prefix(&pipeline_prefix(pipeline)).unwrap_or(key);
        let Some(one) = taking.iter_mut().find(|one| one.files.iter().any(|file| file.key == relative)) else {
            return Err(ApiError::internal(format!("`{key}` is of none of the tables")));
        };
        if one.loose {
            one.tries += 1;
        } else if self.is_over(one, wait_until) {
            self.waited.add(one.known_as.clone(), one.state.clone());
            one.loose = true;
        }
        if one.tries < LOOSE_TRIES_MAX {
            return Ok(());
        }
        let cause = format!("`{}` is being published and changes faster than it can be read", one.known_as);
        Err(ApiError::new(ErrorCode::Overloaded, cause).with_retry_after(Duration::from_secs(5)))
    }

    /// The files of a table by its manifests as they are now.
    ///
    /// # Errors
    /// `invalid_config`, `s3_error`, `bucket_not_found`, `internal`.
    pub(in crate::web) fn select(&self, pipeline: &Slug, table: &CatalogTable) -> Result<Selection, ApiError> {
        if table.is_system() { self.select_rejects(pipeline) } else { self.select_table(pipeline, &table.name) }
    }

    /// As [`Selection::state`].
    fn state(&self, pipeline: &Slug, table: &CatalogTable) -> Result<String, ApiError> {
        if table.is_system() { self.state_of_rejects(pipeline) } else { self.state_of_table(pipeline, &table.name) }
    }
}

/// A table's columns as the children know them.
pub(in crate::web) fn relation_columns(columns: &[TableColumn]) -> Vec<RelationColumn> {
    let column = |column: &TableColumn| RelationColumn {
        name: column.name.clone(),
        ty: column.ty.to_string(),
        nullable: column.nullable,
        partition: column.partition,
    };
    columns.iter().map(column).collect()
}

enum Missed {
    /// A file is no longer what the manifest says.
    Changed {
        key: String,
    },
    Failed(ApiError),
}

impl From<ApiError> for Missed {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

fn too_many_files() -> ApiError {
    let message = format!("the query reads more than {SNAPSHOT_FILES_MAX} files; partition the tables more coarsely");
    ApiError::new(ErrorCode::QueryTooLarge, message)
}
