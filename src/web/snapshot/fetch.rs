//! Stages the files of tables, each table in a folder: a pooled one of an earlier query, or a new one.

use std::path::Path;

use super::selection::{Span, TableFile};
use super::{FetchError, PendingTable, Snapshots, TableSnapshot};
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::http::ApiError;
use crate::sql::sandbox::{Relation, StagingFolder};
use crate::web::cache::{CacheError, CacheWait, Deadline, RequestedFile, StagedTable, StagedTableKey};
use crate::web::sql::failure::{from_cache, from_sandbox};
use crate::web::tables::catalog::{CatalogTable, relation_columns};

/// The files of a table.
enum Part {
    /// Staged by an earlier query.
    Staged(StagedTable),
    New(StagingFolder, Vec<RequestedFile>),
}

impl Snapshots {
    /// Stages the files. Those of all new tables are provided in one step.
    pub(super) fn fetch(
        &self,
        pending: &[PendingTable<'_>],
        deadline: Deadline<'_>,
    ) -> Result<TableSnapshot, FetchError> {
        let parts = pending.iter().map(|one| self.part(one, true)).collect::<Result<Vec<_>, _>>()?;
        let holds = parts.iter().any(|part| matches!(part, Part::Staged(_)));
        let staged = match self.stage(pending, parts, deadline, if holds { CacheWait::Fail } else { CacheWait::Block })
        {
            // A query must not hold staged tables while it waits for room.
            Err(CacheError::Busy) if holds => {
                let parts = pending.iter().map(|one| self.part(one, false)).collect::<Result<Vec<_>, _>>()?;
                self.stage(pending, parts, deadline, CacheWait::Block)
            }
            outcome => outcome,
        };
        let staged = staged.map_err(|error| match error {
            CacheError::Gone { key } => FetchError::Gone { key },
            error => FetchError::Failed(from_cache(error)),
        })?;
        let (mut relations, mut rows) = (Vec::new(), Vec::new());
        for one in pending {
            let files =
                one.files.iter().map(|file| file.staged_path(&one.table.name)).collect::<Result<Vec<_>, _>>()?;
            relations.push(Relation { name: one.table.name.clone(), columns: relation_columns(&one.columns), files });
            rows.push(one.rows);
        }
        let skipped = pending.first().map_or(0, |one| one.skipped);
        Ok(TableSnapshot { relations, rows, skipped, staged })
    }

    fn part(&self, one: &PendingTable<'_>, reuse: bool) -> Result<Part, ApiError> {
        if let Some(table) = one.key().filter(|_| reuse).and_then(|key| self.cache.take_staged(&key)) {
            return Ok(Part::Staged(table));
        }
        let folder = self.sandbox.staging().map_err(from_sandbox)?;
        let wanted = wanted(one.pipeline, one.table, &one.files, folder.path())?;
        Ok(Part::New(folder, wanted))
    }

    /// Provides the files of new tables.
    fn stage(
        &self,
        pending: &[PendingTable<'_>],
        parts: Vec<Part>,
        deadline: Deadline<'_>,
        room: CacheWait,
    ) -> Result<Vec<StagedTable>, CacheError> {
        let groups: Vec<&[RequestedFile]> = parts
            .iter()
            .filter_map(|part| match part {
                Part::New(_, wanted) => Some(wanted.as_slice()),
                Part::Staged(_) => None,
            })
            .collect();
        let mut pins = self.cache.provide_each(&*self.store, &groups, deadline, room)?.into_iter();
        let stage = |(one, part): (&PendingTable<'_>, Part)| match part {
            Part::Staged(table) => Some(table),
            Part::New(folder, wanted) => {
                pins.next().map(|pins| StagedTable::new(one.key(), folder, pins, wanted.len()))
            }
        };
        Ok(pending.iter().zip(parts).filter_map(stage).collect())
    }
}

impl PendingTable<'_> {
    /// Drops files without requested rows. Files of system tables may each lack columns, so all are kept.
    pub(super) fn narrow(&mut self, span: Option<Span>) {
        let Some(span) = span.filter(|_| !self.table.is_system()) else { return };
        let (range, skipped) = span.of(&self.files);
        if range.len() < self.files.len() {
            (self.files, self.skipped, self.is_whole) = (self.files[range].to_vec(), skipped, false);
        }
    }

    /// The key under which later queries find the files; `None` if the files are only a part of the table.
    fn key(&self) -> Option<StagedTableKey> {
        self.is_whole.then(|| StagedTableKey { table: self.known_as.clone(), state: self.state.clone() })
    }
}

/// The files to provide, with their paths in `folder`, in which their folders are created.
fn wanted(
    pipeline: &Slug,
    table: &CatalogTable,
    files: &[TableFile],
    folder: &Path,
) -> Result<Vec<RequestedFile>, ApiError> {
    let internal = |error: std::io::Error| ApiError::internal(format!("creating a query's folder: {error}"));
    let mut made = folder.join(&table.name);
    std::fs::create_dir_all(&made).map_err(internal)?;
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        let into = folder.join(file.staged_path(&table.name)?);
        if let Some(parent) = into.parent().filter(|parent| **parent != made) {
            std::fs::create_dir_all(parent).map_err(internal)?;
            made = parent.to_owned();
        }
        let key = format!("{}{}", pipeline_prefix(pipeline), file.key);
        all.push(RequestedFile { key, sha256: file.sha256.clone(), size: file.size, into });
    }
    Ok(all)
}
