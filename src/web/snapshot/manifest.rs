//! Reads manifests: roots cached by tag, lists of files by root.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::source_shards::SourceShards;
use crate::domain::layout::manifest_key;
use crate::domain::limits::ROOT_BYTES_MAX;
use crate::domain::name::{Slug, TableName};
use crate::domain::table_log::entries::StoredFile;
use crate::domain::table_log::history::AsOf;
use crate::domain::table_log::root::{ManifestError, Root};
use crate::http::{ApiError, ErrorCode};
use crate::pipelines::tables::{Maps, TableError, TableStore, tables};
use crate::ports::IcebergCatalog;
use crate::ports::store::{Bucket, ETag};
use crate::sync::parallel_map;
use crate::web::cache::parsed::{Cached, Parsed};
use crate::web::failure::{from_store, from_table, version_not_found};
use crate::web::stores::Objects;

/// Concurrent HEAD requests.
const PARALLEL_HEADS_MAX: usize = 8;
/// Maximum number of attempts to read a table whose objects later commits delete meanwhile.
pub const TRIES_MAX: u32 = 10;
/// Files of all cached lists.
const CACHED_FILES_MAX: usize = 500_000;

/// Totals of a table's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileTotals {
    pub files: u64,
    pub rows: u64,
    pub bytes: u64,
}

impl FileTotals {
    /// The totals of the data files.
    pub fn of(root: &Root) -> Self {
        Self { files: root.totals.files, rows: root.totals.rows, bytes: root.totals.bytes }
    }

    /// The totals of the files of rejected rows.
    pub fn for_rejects(root: &Root) -> Self {
        let totals = root.totals;
        Self { files: totals.rejects_files, rows: totals.rows_rejected, bytes: totals.rejects_bytes }
    }

    pub fn and(self, other: Self) -> Self {
        Self { files: self.files + other.files, rows: self.rows + other.rows, bytes: self.bytes + other.bytes }
    }
}

/// Parses a root; an unusable one is `None`, since the next run rebuilds the table.
///
/// # Errors
/// `invalid_config` if a newer version wrote it.
fn parse(bytes: &[u8]) -> Result<Option<Root>, ApiError> {
    match Root::parse(bytes) {
        Ok(root) => Ok(Some(root)),
        Err(error @ ManifestError::Newer { .. }) => {
            Err(ApiError::new(ErrorCode::InvalidConfig, format!("this version can't read a manifest: {error}")))
        }
        Err(error @ (ManifestError::Older { .. } | ManifestError::Unreadable { .. })) => {
            tracing::warn!(%error, "manifest is not usable; table is empty until its next run");
            Ok(None)
        }
    }
}

/// The value of a root that exceeds the size limit.
#[expect(clippy::unnecessary_wraps, reason = "a parser of `Parsed`")]
fn too_large(bytes_max: u64) -> Result<Option<Root>, ApiError> {
    tracing::warn!(bytes_max, "manifest exceeds size limit; table is empty until its next run");
    Ok(None)
}

pub fn keeps_changing() -> ApiError {
    let message = "the tables are published so often that no version could be read completely; try again";
    ApiError::new(ErrorCode::Overloaded, message).with_retry_after(std::time::Duration::from_secs(1))
}

/// The kind of a table's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    Data,
    Rejects,
}

/// The files of a root.
type Files = Arc<Vec<StoredFile>>;

#[derive(Default)]
struct FileLists {
    /// By table and kind: the root's tag and its files.
    lists: HashMap<(String, FileKind), (ETag, Files)>,
    files: usize,
}

/// Reads manifests.
pub struct Manifests {
    pub(super) store: Objects,
    /// For commits.
    catalog: Option<Arc<dyn IcebergCatalog>>,
    roots: Parsed<Option<Root>>,
    files: Mutex<FileLists>,
    /// For lookups of sources.
    pub source_shards: SourceShards,
}

impl Manifests {
    pub fn new(store: Objects, catalog: Option<Arc<dyn IcebergCatalog>>) -> Self {
        Self {
            store,
            catalog,
            roots: Parsed::new(ROOT_BYTES_MAX, parse, too_large),
            files: Mutex::default(),
            source_shards: SourceShards::default(),
        }
    }

    /// A table's current root; `None` if there is no usable one.
    pub fn get(&self, pipeline: &Slug, table: &str) -> Result<Option<Cached<Option<Root>>>, ApiError> {
        let found = self.roots.get(&self.store, &manifest_key(pipeline, table))?;
        Ok(found.filter(|found| found.value.as_ref().as_ref().is_some_and(|root| root.table == table)))
    }

    /// The roots of all tables of a pipeline, by table, including those removed from the config.
    pub fn all(&self, pipeline: &Slug) -> Result<BTreeMap<String, Cached<Option<Root>>>, ApiError> {
        let mut all = BTreeMap::new();
        for name in self.tables(pipeline)? {
            if let Some(found) = self.get(pipeline, &name)? {
                all.insert(name, found);
            }
        }
        Ok(all)
    }

    /// The tags of all roots, by table.
    pub fn tags(&self, pipeline: &Slug) -> Result<BTreeMap<String, ETag>, ApiError> {
        let tables = self.tables(pipeline)?;
        let tag = |name: &String| self.store.head(Bucket::Pipelines, &manifest_key(pipeline, name));
        let tags = parallel_map(&tables, PARALLEL_HEADS_MAX, tag).map_err(from_store)?;
        // Tables without a tag were deleted meanwhile.
        Ok(tables.into_iter().zip(tags).filter_map(|(name, meta)| Some((name, meta?.etag?))).collect())
    }

    /// The tables with a manifest.
    pub(super) fn tables(&self, pipeline: &Slug) -> Result<Vec<String>, ApiError> {
        let mut names = tables(&*self.store, pipeline).map_err(from_store)?;
        // Other programs may have stored other objects there.
        names.retain(|name| TableName::parse(name).is_ok());
        Ok(names)
    }

    /// Calls `read` on a table's current commit; `None` if the table has no usable manifest. If `read` returns `None`,
    /// a later commit has deleted an object that it needed, and the new root is tried.
    ///
    /// # Errors
    /// Errors of `read`; `table_damaged` if the same root is found again, `overloaded` if a new one is found each time.
    pub fn present<T>(
        &self,
        pipeline: &Slug,
        table: &str,
        mut read: impl FnMut(&Cached<Option<Root>>) -> Result<Option<T>, ApiError>,
    ) -> Result<Option<T>, ApiError> {
        let mut before: Option<ETag> = None;
        for _ in 0..TRIES_MAX {
            let Some(found) = self.get(pipeline, table)? else { return Ok(None) };
            if before.as_ref() == Some(&found.etag) {
                let message = format!("the manifest of table `{table}` is incomplete; do a clean run");
                return Err(ApiError::new(ErrorCode::TableDamaged, message));
            }
            if let Some(done) = read(&found)? {
                return Ok(Some(done));
            }
            before = Some(found.etag);
        }
        Err(keeps_changing())
    }

    /// Reads a part of a table's manifest; `None` if a later commit deleted an object of it.
    pub fn read<T>(
        &self,
        pipeline: &Slug,
        root: &Root,
        read: impl FnOnce(&TableStore<'_>, Maps) -> Result<T, TableError>,
    ) -> Result<Option<T>, ApiError> {
        let table = self.table(pipeline, &root.table);
        match read(&table, Maps::of(Some(root))) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(from_table(error)),
        }
    }

    /// Opens a table's manifest.
    pub fn table<'a>(&'a self, pipeline: &'a Slug, table: &'a str) -> TableStore<'a> {
        TableStore { catalog: self.catalog.as_deref(), ..TableStore::new(&*self.store, pipeline, table) }
    }

    /// A table's root as of a version, unless that is the current one. `None`: a later commit deleted a needed object.
    ///
    /// # Errors
    /// `version_not_found`.
    pub fn earlier(
        &self,
        pipeline: &Slug,
        present: &Root,
        as_of: Option<AsOf>,
    ) -> Result<Option<Option<Root>>, ApiError> {
        let Some(as_of) = as_of else { return Ok(Some(None)) };
        let found = self.read(pipeline, present, |table, _| table.root_as_of(present, as_of))?;
        let root = found.transpose().map_err(|none| version_not_found(&present.table, as_of, &none))?;
        Ok(root.map(|root| Some(root).filter(|root| root.sequence != present.sequence)))
    }

    /// The files that a root names, in the order of partitions and sources, without the cache; `None` if a later commit
    /// deleted some of the manifest.
    pub fn list(&self, pipeline: &Slug, root: &Root, kind: FileKind) -> Result<Option<Vec<StoredFile>>, ApiError> {
        self.read(pipeline, root, |table, maps| {
            let mut files = Vec::new();
            match kind {
                FileKind::Data => maps.groups.visit(&mut table.reader(), |_, group| {
                    files.extend(group.files.iter().cloned());
                    Ok(())
                })?,
                FileKind::Rejects => maps.rejects.visit(&mut table.reader(), |_, file| {
                    files.push(file.clone());
                    Ok(())
                })?,
            }
            Ok(files)
        })
    }

    /// The files that a root names, in the order of partitions and sources; `None` if a later commit deleted some of the
    /// manifest.
    pub fn files(
        &self,
        pipeline: &Slug,
        found: &Cached<Option<Root>>,
        kind: FileKind,
    ) -> Result<Option<Files>, ApiError> {
        let Some(root) = found.value.as_ref() else { return Ok(Some(Files::default())) };
        let of = (format!("{pipeline}/{}", root.table), kind);
        if let Some((_, files)) = self.files.lock().lists.get(&of).filter(|(tag, _)| *tag == found.etag) {
            return Ok(Some(Arc::clone(files)));
        }
        let files = self.list(pipeline, root, kind)?;
        let Some(files) = files.map(Arc::new) else { return Ok(None) };
        self.files.lock().insert(of, found.etag.clone(), &files);
        Ok(Some(files))
    }
}

impl FileLists {
    fn insert(&mut self, of: (String, FileKind), tag: ETag, files: &Files) {
        if let Some((_, before)) = self.lists.remove(&of) {
            self.files -= before.len();
        }
        if files.len() > CACHED_FILES_MAX {
            return;
        }
        if self.files + files.len() > CACHED_FILES_MAX {
            *self = Self::default();
        }
        self.files += files.len();
        self.lists.insert(of, (tag, Arc::clone(files)));
    }
}
