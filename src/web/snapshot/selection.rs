//! Selects the files of tables.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::manifest::Manifests;
use crate::domain::layout::{
    pipeline_prefix, rejects_prefix, relative_rejects_key, relative_rejects_prefix, table_prefix,
};
use crate::domain::manifest::{FileEntry, partition_of};
use crate::domain::name::Slug;
use crate::domain::table_schema::TableColumn;
use crate::http::ApiError;
use crate::ports::store::{Bucket, ETag, ObjectMeta, list_all};
use crate::sql::sandbox::staged_path;
use crate::web::failure::from_store;
use crate::web::stores::Objects;
use crate::web::tables::catalog::CatalogTable;

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    /// Relative to the pipeline's prefix.
    pub key: String,
    pub size: u64,
    pub etag: ETag,
    /// Empty if unknown.
    pub sha256: String,
    /// Number of rows, if known.
    pub rows: Option<u64>,
}

impl TableFile {
    /// Its path in a child's folder, below that of its table.
    ///
    /// # Errors
    /// `internal` if it isn't a file of the table.
    pub fn staged_path(&self, table: &str) -> Result<String, ApiError> {
        let own = self.key.strip_prefix(table).is_some_and(|rest| rest.starts_with('/'));
        let name = staged_path(&self.key).filter(|_| own);
        name.ok_or_else(|| ApiError::internal(format!("the manifest of `{table}` names `{}`", self.key)))
    }
}

/// A range of a table's rows in the order of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub offset: u64,
    pub rows: u64,
}

impl Span {
    /// The files that contain these rows, at least one if there are any, and the number of rows before them. `None` if the
    /// files' rows are unknown.
    pub fn of(self, files: &[TableFile]) -> Option<(Range<usize>, u64)> {
        let rows: Vec<u64> = files.iter().map(|file| file.rows).collect::<Option<_>>()?;
        let (mut start, mut skipped) = (0, 0);
        while start + 1 < rows.len() && skipped + rows[start] <= self.offset {
            skipped += rows[start];
            start += 1;
        }
        let (mut end, mut reached) = (start, skipped);
        while end < rows.len() && (end == start || reached < self.offset.saturating_add(self.rows)) {
            reached += rows[end];
            end += 1;
        }
        Some((start..end, skipped))
    }
}

/// The files of a table, from its manifests.
pub struct Selection {
    /// In key order.
    pub files: Vec<TableFile>,
    /// A run is publishing, or died while publishing.
    pub marked: bool,
    /// Identifies the version of the manifests.
    pub state: String,
    /// Whether the manifests have all tags, so that `state` identifies the files as well.
    pub exact: bool,
    /// The columns, if the manifest has them.
    columns: Option<Vec<TableColumn>>,
}

impl Selection {
    fn empty() -> Self {
        Self { files: Vec::new(), marked: false, state: String::new(), exact: true, columns: None }
    }

    /// The columns of the table's files.
    pub fn columns_of(&self, table: &CatalogTable) -> Vec<TableColumn> {
        self.columns.as_ref().unwrap_or(&table.columns).clone()
    }
}

impl Manifests {
    pub(super) fn select_table(&self, pipeline: &Slug, table: &str) -> Result<Selection, ApiError> {
        let found = self.get(pipeline, table)?;
        let Some((tag, known)) = found.as_ref().and_then(|f| Some((&f.etag, f.value.as_ref().as_ref()?))) else {
            return Ok(Selection::empty());
        };
        let manifest = &known.manifest;
        let files = manifest.partitions.values().flat_map(|partition| &partition.files);
        let exact = files.clone().all(|file| file.etag.is_some());
        let files = table_files(&self.store, pipeline, files)?;
        let columns = manifest.schema.as_ref().map(|schema| schema.columns.clone());
        Ok(Selection { files, marked: manifest.publishing.is_some(), state: tag.0.clone(), exact, columns })
    }

    pub(super) fn state_of_table(&self, pipeline: &Slug, table: &str) -> Result<String, ApiError> {
        let found = self.get(pipeline, table)?;
        let readable = found.filter(|found| found.value.is_some());
        Ok(readable.map_or_else(String::new, |found| found.etag.0))
    }

    pub(super) fn select_rejects(&self, pipeline: &Slug) -> Result<Selection, ApiError> {
        let mut selection = Selection::empty();
        for (table, found) in self.all(pipeline)? {
            let Some(known) = found.value.as_ref() else { continue };
            selection.exact &= known.manifest.rejects.values().all(|file| file.etag.is_some());
            selection.files.extend(table_files(&self.store, pipeline, known.manifest.rejects.values())?);
            selection.marked |= known.manifest.publishing.as_ref().is_some_and(|intent| !intent.rejects.is_empty());
            selection.state.push_str(&state_in_all(&table, &found.etag));
        }
        Ok(selection)
    }

    pub(super) fn state_of_rejects(&self, pipeline: &Slug) -> Result<String, ApiError> {
        let found = self.all(pipeline)?;
        let readable = found.iter().filter(|(_, found)| found.value.is_some());
        Ok(readable.map(|(table, found)| state_in_all(table, &found.etag)).collect())
    }

    /// The files in the store that the table's manifests, or publish intents in them, name.
    pub(super) fn select_present(&self, pipeline: &Slug, table: &CatalogTable) -> Result<Vec<TableFile>, ApiError> {
        let own = pipeline_prefix(pipeline);
        let mut named = BTreeMap::new();
        let mut prefixes = BTreeSet::new();
        if table.is_system() {
            for (table, found) in self.all(pipeline)? {
                let Some(known) = found.value.as_ref() else { continue };
                let marked = known.manifest.publishing.iter().flat_map(|intent| &intent.rejects);
                named.extend(marked.map(|source| (relative_rejects_key(&table, source), String::new())));
                named.extend(known.manifest.rejects.values().map(|file| (file.key.clone(), file.sha256.clone())));
                named.retain(|key, _| !key.is_empty());
                if named.keys().any(|key| key.starts_with(&relative_rejects_prefix(&table))) {
                    prefixes.insert(rejects_prefix(pipeline, &table));
                }
            }
        } else if let Some(found) = self.get(pipeline, &table.name)?
            && let Some(known) = found.value.as_ref()
        {
            let marked = known.manifest.publishing.iter().flat_map(|intent| &intent.files);
            let files = known.manifest.partitions.values().flat_map(|partition| &partition.files).chain(marked);
            let files = files.filter(|file| partition_of(&table.name, &file.key).is_some());
            named.extend(files.map(|file| (file.key.clone(), file.sha256.clone())));
            prefixes.insert(table_prefix(pipeline, &table.name));
        }
        let mut present = Vec::new();
        for prefix in prefixes {
            for object in list_all(&*self.store, Bucket::Warehouse, &prefix).map_err(from_store)? {
                let key = object.key.strip_prefix(&own).unwrap_or_default().to_owned();
                if named.contains_key(&key)
                    && let Some(meta) = self.tagged(object)?
                {
                    // Its current content is unknown.
                    let etag = meta.etag.unwrap_or(ETag(String::new()));
                    present.push(TableFile { key, size: meta.size, etag, sha256: String::new(), rows: None });
                }
            }
        }
        Ok(present)
    }

    /// The object with its tag; `None` if it was deleted.
    fn tagged(&self, object: ObjectMeta) -> Result<Option<ObjectMeta>, ApiError> {
        if object.etag.is_some() {
            return Ok(Some(object));
        }
        self.store.head(Bucket::Warehouse, &object.key).map_err(from_store)
    }
}

/// The files that a manifest lists, by key. A file without a tag in the manifest has its current one: if the file was
/// deleted or replaced, fetching it will fail.
///
/// # Errors
/// `s3_error`, `bucket_not_found`.
pub fn table_files<'a>(
    store: &Objects,
    pipeline: &Slug,
    files: impl Iterator<Item = &'a FileEntry>,
) -> Result<Vec<TableFile>, ApiError> {
    let mut found = Vec::new();
    for file in files {
        let etag = match &file.etag {
            Some(etag) => Some(ETag(etag.clone())),
            None => {
                let key = format!("{}{}", pipeline_prefix(pipeline), file.key);
                store.head(Bucket::Warehouse, &key).map_err(from_store)?.and_then(|meta| meta.etag)
            }
        };
        found.push(TableFile {
            key: file.key.clone(),
            size: file.size,
            etag: etag.unwrap_or(ETag(String::new())),
            sha256: file.sha256.clone(),
            rows: Some(file.rows),
        });
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

/// A manifest's part of the state of a table that is built from all manifests.
fn state_in_all(table: &str, tag: &ETag) -> String {
    format!("{table} {}\n", tag.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[Option<u64>], offset: u64, limit: u64) -> Option<(Range<usize>, u64)> {
        let file = |rows: &Option<u64>| TableFile {
            key: "t/part-00000.parquet".to_owned(),
            size: 1,
            etag: ETag(String::new()),
            sha256: String::new(),
            rows: *rows,
        };
        Span { offset, rows: limit }.of(&rows.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn span_selects_the_files_with_its_rows() {
        let rows = [3, 0, 2, 5].map(Some);
        for (offset, limit, files, skipped) in [
            (0, 1, 0..1, 0),
            (0, 3, 0..1, 0),
            (2, 2, 0..3, 0),
            (3, 1, 2..3, 3),
            (4, 100, 2..4, 3),
            (5, 5, 3..4, 5),
            (9, 1, 3..4, 5),
            // Beyond the end: one tells the columns.
            (10, 1, 3..4, 5),
            (u64::MAX, u64::MAX, 3..4, 5),
            (4, 0, 2..3, 3),
        ] {
            assert_eq!(of(&rows, offset, limit), Some((files, skipped)), "{offset} {limit}");
        }
        assert_eq!(of(&[], 0, 10), Some((0..0, 0)));
        assert_eq!(of(&[Some(1), None], 0, 1), None);
    }
}
