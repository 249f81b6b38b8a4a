//! Selects the files of tables.

use std::ops::Range;
use std::sync::Arc;

use super::manifest::{FileKind, Manifests};
use crate::domain::name::Slug;
use crate::domain::table_log::entries::StoredFile;
use crate::domain::table_log::history::AsOf;
use crate::domain::table_log::root::Root;
use crate::domain::table_schema::TableColumn;
use crate::http::ApiError;
use crate::sql::sandbox::staged_path;
use crate::web::cache::parsed::Cached;
use crate::web::tables::catalog::CatalogTable;

/// A file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    /// Relative to the pipeline's prefix.
    pub key: String,
    pub size: u64,
    pub sha256: String,
    pub rows: u64,
}

impl From<&StoredFile> for TableFile {
    fn from(file: &StoredFile) -> Self {
        Self { key: file.key.clone(), size: file.size, sha256: file.sha256.clone(), rows: file.rows }
    }
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
    /// The files that contain these rows, at least one if there are any, and the number of rows before them.
    pub fn of(self, files: &[TableFile]) -> (Range<usize>, u64) {
        let (mut start, mut skipped) = (0, 0);
        while start + 1 < files.len() && skipped + files[start].rows <= self.offset {
            skipped += files[start].rows;
            start += 1;
        }
        let (mut end, mut reached) = (start, skipped);
        while end < files.len() && (end == start || reached < self.offset.saturating_add(self.rows)) {
            reached += files[end].rows;
            end += 1;
        }
        (start..end, skipped)
    }
}

/// The files of a table at one commit.
pub struct Selection {
    /// In the order of partitions and sources.
    pub files: Vec<TableFile>,
    /// Identifies the commit, or those of all tables for a system table.
    pub state: String,
    /// The columns, unless the table has no manifest.
    columns: Option<Vec<TableColumn>>,
}

impl Selection {
    fn empty() -> Self {
        Self { files: Vec::new(), state: String::new(), columns: None }
    }

    /// The columns of the table's files.
    pub fn columns_of(&self, table: &CatalogTable) -> Vec<TableColumn> {
        self.columns.as_ref().unwrap_or(&table.columns).clone()
    }
}

impl Manifests {
    pub(super) fn select_table(
        &self,
        pipeline: &Slug,
        table: &str,
        as_of: Option<AsOf>,
    ) -> Result<Selection, ApiError> {
        let select = |found: &Cached<Option<Root>>| {
            if let Some(present) = found.value.as_ref() {
                match self.earlier(pipeline, present, as_of)? {
                    Some(None) => {}
                    Some(Some(root)) => return self.select_earlier(pipeline, &root),
                    None => return Ok(None),
                }
            }
            let files = self.files(pipeline, found, FileKind::Data)?;
            let columns = found.value.as_ref().as_ref().map(|root| root.schema.columns.clone());
            Ok(files.map(|files| {
                let files = files.iter().map(TableFile::from).collect();
                Selection { files, state: found.etag.0.clone(), columns }
            }))
        };
        Ok(self.present(pipeline, table, select)?.unwrap_or_else(Selection::empty))
    }

    fn select_earlier(&self, pipeline: &Slug, root: &Root) -> Result<Option<Selection>, ApiError> {
        let files = self.list(pipeline, root, FileKind::Data)?;
        let columns = Some(root.schema.columns.clone());
        Ok(files.map(|files| Selection {
            files: files.iter().map(TableFile::from).collect(),
            state: state(root),
            columns,
        }))
    }

    pub(super) fn select_rejects(&self, pipeline: &Slug, as_of: Option<AsOf>) -> Result<Selection, ApiError> {
        let mut selection = Selection::empty();
        for table in self.tables(pipeline)? {
            let select = |found: &Cached<Option<Root>>| {
                if let Some(present) = found.value.as_ref() {
                    match self.earlier(pipeline, present, as_of)? {
                        Some(None) => {}
                        Some(Some(root)) => {
                            let files = self.list(pipeline, &root, FileKind::Rejects)?;
                            return Ok(files.map(|files| (Arc::new(files), state(&root))));
                        }
                        None => return Ok(None),
                    }
                }
                let files = self.files(pipeline, found, FileKind::Rejects)?;
                Ok(files.map(|files| (files, found.etag.0.clone())))
            };
            if let Some((files, tag)) = self.present(pipeline, &table, select)? {
                selection.files.extend(files.iter().map(TableFile::from));
                selection.state.push_str(&format!("{table} {tag}\n"));
            }
        }
        Ok(selection)
    }
}

/// Identifies an earlier commit.
fn state(root: &Root) -> String {
    format!("{} {} {}", root.sequence, root.fence, root.committed_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[u64], offset: u64, limit: u64) -> (Range<usize>, u64) {
        let file =
            |rows: &u64| TableFile { key: "t/part.parquet".to_owned(), size: 1, sha256: String::new(), rows: *rows };
        Span { offset, rows: limit }.of(&rows.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn span_selects_the_files_with_its_rows() {
        let rows = [3, 0, 2, 5];
        for (offset, limit, files, skipped) in [
            (0, 1, 0..1, 0),
            (0, 3, 0..1, 0),
            (2, 2, 0..3, 0),
            (3, 1, 2..3, 3),
            (4, 100, 2..4, 3),
            (5, 5, 3..4, 5),
            (9, 1, 3..4, 5),
            // Beyond the end, one file is kept for its columns.
            (10, 1, 3..4, 5),
            (u64::MAX, u64::MAX, 3..4, 5),
            (4, 0, 2..3, 3),
        ] {
            assert_eq!(of(&rows, offset, limit), (files, skipped), "{offset} {limit}");
        }
        assert_eq!(of(&[], 0, 10), (0..0, 0));
    }
}
