//! The files of chosen tables, each table's in a folder of its own: one that a query before left, or a new one.

use std::path::Path;

use super::selection::Chosen;
use super::{Missed, Snapshot, Taking, relation_columns};
use crate::domain::layout::pipeline_prefix;
use crate::domain::name::Slug;
use crate::http::ApiError;
use crate::sql::sandbox::{Relation, StagingFolder};
use crate::web::Web;
use crate::web::cache::{CacheError, Patience, Room, Tree, TreeKey, Wanted};
use crate::web::sql::failure::{from_cache, from_sandbox};
use crate::web::tables::catalog::CatalogTable;

/// A table's files on their way.
enum Part {
    /// As a query before had them.
    Kept(Tree),
    New(StagingFolder, Vec<Wanted>),
}

impl Web {
    /// Takes the files. Those of all tables that aren't kept come in one step.
    pub(super) fn fetch(
        &self,
        pipeline: &Slug,
        taking: &[Taking<'_>],
        patience: Patience<'_>,
    ) -> Result<Snapshot, Missed> {
        let parts = taking.iter().map(|one| self.part(pipeline, one, true)).collect::<Result<Vec<_>, _>>()?;
        let holds = parts.iter().any(|part| matches!(part, Part::Kept(_)));
        let trees = match self.trees(taking, parts, patience, if holds { Room::AtOnce } else { Room::Waited }) {
            // What is held would have to be held while room is waited for.
            Err(CacheError::Busy) if holds => {
                let parts = taking.iter().map(|one| self.part(pipeline, one, false)).collect::<Result<Vec<_>, _>>()?;
                self.trees(taking, parts, patience, Room::Waited)
            }
            outcome => outcome,
        };
        let trees = trees.map_err(|error| match error {
            CacheError::Changed { key } => Missed::Changed { key },
            error => Missed::Failed(from_cache(error)),
        })?;
        let (mut relations, mut rows, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
        for one in taking {
            let files = one.files.iter().map(|file| file.place(&one.table.name)).collect::<Result<Vec<_>, _>>()?;
            unsure.push(one.loose && !one.table.is_system());
            relations.push(Relation { name: one.table.name.clone(), columns: relation_columns(&one.columns), files });
            rows.push(one.rows);
        }
        let skipped = taking.first().map_or(0, |one| one.skipped);
        Ok(Snapshot { relations, unsure, rows, skipped, publishing: false, trees })
    }

    fn part(&self, pipeline: &Slug, one: &Taking<'_>, may_be_kept: bool) -> Result<Part, ApiError> {
        if let Some(tree) = one.key().filter(|_| may_be_kept).and_then(|key| self.cache.take_tree(&key)) {
            return Ok(Part::Kept(tree));
        }
        let folder = self.sql.sandbox.staging().map_err(from_sandbox)?;
        let wanted = wanted(pipeline, one.table, &one.files, folder.path())?;
        Ok(Part::New(folder, wanted))
    }

    /// Provides what is new, and makes it trees.
    fn trees(
        &self,
        taking: &[Taking<'_>],
        parts: Vec<Part>,
        patience: Patience<'_>,
        room: Room,
    ) -> Result<Vec<Tree>, CacheError> {
        let groups: Vec<&[Wanted]> = parts
            .iter()
            .filter_map(|part| match part {
                Part::New(_, wanted) => Some(wanted.as_slice()),
                Part::Kept(_) => None,
            })
            .collect();
        let mut pins = self.cache.provide_each(&*self.store, &groups, patience, room)?.into_iter();
        let tree = |(one, part): (&Taking<'_>, Part)| match part {
            Part::Kept(tree) => Some(tree),
            Part::New(folder, wanted) => pins.next().map(|pins| Tree::new(one.key(), folder, pins, wanted.len())),
        };
        Ok(taking.iter().zip(parts).filter_map(tree).collect())
    }
}

impl Taking<'_> {
    /// Leaves out the files that hold none of the rows that are asked for. The system's own tables may have files that
    /// don't tell all columns each.
    pub(super) fn narrow(&mut self) {
        (self.rows, self.skipped) = (self.files.iter().map(|file| file.rows).sum(), 0);
        let span = self.span.filter(|_| !self.table.is_system());
        let Some((range, skipped)) = span.and_then(|span| span.of(&self.files)) else { return };
        if range.len() < self.files.len() {
            (self.files, self.skipped, self.exact) = (self.files[range].to_vec(), skipped, false);
        }
    }

    /// By which its files are known to other queries; `None` if they aren't told by its manifests alone.
    fn key(&self) -> Option<TreeKey> {
        (self.exact && !self.loose).then(|| TreeKey { table: self.known_as.clone(), state: self.state.clone() })
    }
}

/// A table's files as they are wanted in a folder, which gets their folders.
fn wanted(pipeline: &Slug, table: &CatalogTable, files: &[Chosen], folder: &Path) -> Result<Vec<Wanted>, ApiError> {
    let internal = |error: std::io::Error| ApiError::internal(format!("a query's folder: {error}"));
    let mut made = folder.join(&table.name);
    std::fs::create_dir_all(&made).map_err(internal)?;
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        let into = folder.join(file.place(&table.name)?);
        if let Some(parent) = into.parent().filter(|parent| **parent != made) {
            std::fs::create_dir_all(parent).map_err(internal)?;
            made = parent.to_owned();
        }
        let key = format!("{}{}", pipeline_prefix(pipeline), file.key);
        let (etag, sha256) = (file.etag.clone(), file.sha256.clone());
        all.push(Wanted { key, etag, sha256, size: file.size, into });
    }
    Ok(all)
}
