//! A pipeline's tables as of one moment, in the folder of the process that reads them.
//!
//! Invariant: unless the snapshot says that a table was being published, the files of a table are those of one manifest,
//! which was the same, and without a mark, before they were fetched and after.
//!
//! Must not: wait for a publish again that was waited for already; a mark that a dead run left stays for long.

mod columns;
pub mod manifest;
mod selection;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::limits::{SNAPSHOT_FILES_MAX, SNAPSHOT_WAIT_MS};
use crate::domain::name::Slug;
use crate::http::{ApiError, ErrorCode};
use crate::sql::sandbox::{Relation, RelationColumn};
use crate::web::Web;
use crate::web::cache::{CacheError, Patience, Pins, Wanted};
use crate::web::sql::failure::from_cache;
use crate::web::tables::catalog::CatalogTable;

use selection::Selection;

/// Pause between two looks at a manifest.
const PAUSE: Duration = Duration::from_millis(100);
/// Times that files which change under a snapshot of a table that is being published are looked for.
const LOOSE_TRIES_MAX: u32 = 5;
/// Tables of which it is remembered that their publish was waited for.
const WAITED_MAX: usize = 1_000;
/// Longest time in which the files of a query may come.
pub const FETCH_MAX: Duration = Duration::from_secs(600);

/// Tables whose publish was waited for: what the manifests were.
#[derive(Default)]
pub struct Waited(Mutex<HashMap<String, String>>);

impl Waited {
    fn knows(&self, table: &str, state: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(table).is_some_and(|known| known == state)
    }

    fn add(&self, table: String, state: String) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= WAITED_MAX {
            known.clear();
        }
        known.insert(table, state);
    }
}

/// See the module. The files are there for as long as it is.
pub struct Snapshot {
    pub relations: Vec<Relation>,
    /// Rows of each, where they are known without reading.
    pub rows: Vec<Option<u64>>,
    /// Some table was being published, for longer than is waited.
    pub publishing: bool,
    _pins: Vec<Pins>,
}

/// One table's part of a snapshot.
struct Taken {
    relation: Relation,
    rows: Option<u64>,
    publishing: bool,
    pins: Pins,
}

impl Web {
    /// Takes a snapshot of tables into `folder`, which is empty.
    ///
    /// # Errors
    /// `query_too_large`, `query_cancelled`, `overloaded`, `s3_error`, `bucket_not_found`, `internal`.
    pub(in crate::web) fn snapshot(
        &self,
        pipeline: &Slug,
        tables: &[&CatalogTable],
        folder: &Path,
        stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Snapshot, ApiError> {
        let wait_until = Instant::now() + Duration::from_millis(SNAPSHOT_WAIT_MS);
        let patience = Patience { until: Instant::now() + FETCH_MAX, stopped };
        let mut snapshot = Snapshot { relations: Vec::new(), rows: Vec::new(), publishing: false, _pins: Vec::new() };
        let mut files = 0;
        for table in tables {
            let taken = self.take(pipeline, table, folder, wait_until, patience)?;
            files += taken.relation.files.len();
            if files > SNAPSHOT_FILES_MAX {
                return Err(too_many_files());
            }
            snapshot.publishing |= taken.publishing;
            snapshot.rows.push(taken.rows);
            snapshot.relations.push(taken.relation);
            snapshot._pins.push(taken.pins);
        }
        Ok(snapshot)
    }

    fn take(
        &self,
        pipeline: &Slug,
        table: &CatalogTable,
        folder: &Path,
        wait_until: Instant,
        patience: Patience<'_>,
    ) -> Result<Taken, ApiError> {
        let known_as = format!("{pipeline}/{}", table.name);
        loop {
            let selection = self.select(pipeline, table)?;
            let over = self.waited.knows(&known_as, &selection.state) || Instant::now() >= wait_until;
            if !selection.marked {
                match self.fetch(pipeline, table, &selection.files, folder, patience) {
                    Ok(taken) if self.select(pipeline, table)?.state == selection.state => return Ok(taken),
                    Ok(taken) if over => {
                        self.waited.add(known_as, selection.state);
                        return Ok(Taken { publishing: true, ..taken });
                    }
                    Ok(_) | Err(Missed::Changed) => {}
                    Err(Missed::Failed(error)) => return Err(error),
                }
            }
            if over {
                self.waited.add(known_as, selection.state);
                return self.take_loosely(pipeline, table, folder, patience);
            }
            if (patience.stopped)() {
                return Err(from_cache(CacheError::Stopped));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Of a table that is being published: what is there of the files that it has, and is to have.
    fn take_loosely(
        &self,
        pipeline: &Slug,
        table: &CatalogTable,
        folder: &Path,
        patience: Patience<'_>,
    ) -> Result<Taken, ApiError> {
        for _ in 0..LOOSE_TRIES_MAX {
            let files = self.select_present(pipeline, table)?;
            match self.fetch(pipeline, table, &files, folder, patience) {
                Ok(taken) => return Ok(Taken { publishing: true, ..taken }),
                Err(Missed::Changed) => {}
                Err(Missed::Failed(error)) => return Err(error),
            }
        }
        let message = format!("`{}` is being published and changes faster than it can be read", table.name);
        Err(ApiError::new(ErrorCode::Overloaded, message).with_retry_after(Duration::from_secs(5)))
    }

    /// Puts the files into the folder, in the place of those of an earlier attempt.
    fn fetch(
        &self,
        pipeline: &Slug,
        table: &CatalogTable,
        files: &[selection::Chosen],
        folder: &Path,
        patience: Patience<'_>,
    ) -> Result<Taken, Missed> {
        if files.len() > SNAPSHOT_FILES_MAX {
            return Err(Missed::Failed(too_many_files()));
        }
        let internal = |error: std::io::Error| Missed::Failed(ApiError::internal(format!("a query's folder: {error}")));
        let own = folder.join(&table.name);
        match std::fs::remove_dir_all(&own) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(internal(error)),
            Ok(()) | Err(_) => {}
        }
        let (mut wanted, mut names) = (Vec::with_capacity(files.len()), Vec::with_capacity(files.len()));
        let mut made = own;
        std::fs::create_dir_all(&made).map_err(internal)?;
        for file in files {
            let name = file.place(&table.name).map_err(Missed::Failed)?;
            let into = folder.join(&name);
            if let Some(parent) = into.parent().filter(|parent| **parent != made) {
                std::fs::create_dir_all(parent).map_err(internal)?;
                made = parent.to_owned();
            }
            let key = format!("{}{}", crate::domain::layout::pipeline_prefix(pipeline), file.key);
            let (etag, sha256) = (file.etag.clone(), file.sha256.clone());
            wanted.push(Wanted { key, etag, sha256, size: file.size, into });
            names.push(name);
        }
        let pins = self.cache.provide(&*self.store, &wanted, patience).map_err(|error| match error {
            CacheError::Changed { .. } => Missed::Changed,
            error => Missed::Failed(from_cache(error)),
        })?;
        let columns = self.columns(pipeline, table, folder, &names).map_err(Missed::Failed)?;
        let relation = Relation { name: table.name.clone(), columns, files: names };
        let rows = files.iter().map(|file| file.rows).sum();
        Ok(Taken { relation, rows, publishing: false, pins })
    }

    fn select(&self, pipeline: &Slug, table: &CatalogTable) -> Result<Selection, ApiError> {
        if table.is_system() { self.select_rejects(pipeline) } else { self.select_table(pipeline, &table.name) }
    }

    /// The table's columns as its files have them.
    fn columns(
        &self,
        pipeline: &Slug,
        table: &CatalogTable,
        folder: &Path,
        files: &[String],
    ) -> Result<Vec<RelationColumn>, ApiError> {
        if let (Some(layout), Some(first)) = (&table.layout, files.first()) {
            let manifest = self.manifest(pipeline, &table.name)?;
            let known = manifest.as_ref().and_then(|found| found.value.as_ref().as_ref());
            if known.is_some_and(|known| known.manifest.layout != *layout) {
                return columns::of_file(folder, first, table);
            }
        }
        Ok(declared(table))
    }
}

/// A table's columns as the config has them.
pub(in crate::web) fn declared(table: &CatalogTable) -> Vec<RelationColumn> {
    let column = |column: &crate::web::tables::catalog::CatalogColumn| RelationColumn {
        name: column.name.clone(),
        ty: column.ty.to_string(),
        nullable: column.nullable,
        partition: column.partition,
    };
    table.columns.iter().map(column).collect()
}

enum Missed {
    /// A file is no longer what the manifest says.
    Changed,
    Failed(ApiError),
}

fn too_many_files() -> ApiError {
    let message = format!("the query reads more than {SNAPSHOT_FILES_MAX} files; partition the tables more coarsely");
    ApiError::new(ErrorCode::QueryTooLarge, message)
}
