//! The manifests of tables in the store: reading them ([`TableStore`]), committing ([`Commit`]), removing leftovers of
//! dead runs ([`recover`]), and comparing the store with them ([`verify()`]).
//!
//! Invariant: one conditional write, of the root, changes a table. All objects that a root names are immutable and in
//! the store before it is written, and are deleted only after a later root, by the run that wrote that root or by the
//! next one.
//!
//! Must not: decide what a table's files are; that is `domain::table_log`.

mod commit;
mod compare;
mod delta_checkpoint;
mod delta_log;
mod delta_verify;
mod edit;
mod history;
mod iceberg_catalog;
mod iceberg_log;
mod iceberg_verify;
mod log_fault;
mod new_shards;
mod recover;
mod referenced;
mod repair;
mod restore;
mod retag;
mod verify;

pub use commit::{Commit, NewObjects};
pub use compare::{ChangedPartition, ChangedSource, Comparison, FileCounts, SourceChange, compare};
pub use edit::{Edit, Edited, IcebergHead, PartitionRowCounts, RootHead, WrittenGroup};
pub use history::{NotRetained, expire};
pub use iceberg_catalog::{remove_all_from_catalog, remove_from_catalog};
pub use recover::recover;
pub use referenced::{PublishedObjects, ReferencedObject};
pub use repair::{Marked, mark_for_rebuild, mark_log, mark_lost};
pub use restore::restore;
pub use retag::put_retagged;
pub use verify::{PublishedLog, TableFault, TableFaultKind, Verified, published_log, verify};

use std::io::Read;

use serde::de::DeserializeOwned;

use crate::domain::iceberg::IcebergState;
use crate::domain::layout::{
    manifest_intents_prefix, manifest_key, manifest_root_key, manifest_shard_key, manifests_prefix, pipeline_prefix,
    table_prefix,
};
use crate::domain::limits::{LIST_PAGE_KEYS_MAX, ROOT_BYTES_MAX};
use crate::domain::name::Slug;
use crate::domain::pipeline::TableFormat;
use crate::domain::table_log::entries::{GroupEntry, Members, RangeKey, SourceEntry, StoredFile};
use crate::domain::table_log::root::{Intent, ManifestError, Root};
use crate::domain::table_log::shards::{self, ReadShards, ShardError, ShardKey, ShardRef, ShardedMap};
use crate::ports::store::{Bucket, ETag, ObjectMeta, StoreError, StoreResult, list_all};
use crate::ports::{IcebergCatalog, ObjectStore};

/// Bytes of an intent, or of an earlier root.
const SMALL_BYTES_MAX: u64 = ROOT_BYTES_MAX;
/// Bytes of a shard as stored.
const SHARD_BYTES_MAX: u64 = 64 << 20;

/// Why a table's manifest can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("`{key}`: {error}")]
    Manifest { key: String, error: ManifestError },
    #[error("`{key}`: {error}")]
    Shard { key: String, error: ShardError },
    /// A version of the Delta log or of the Iceberg metadata differs from what its run wrote.
    #[error("{}, `{key}`: {found}", log_of(*format))]
    Log { format: TableFormat, key: String, found: String },
    /// The Iceberg catalog can't be reached, or another program changed the table in it.
    #[error("table `{table}` in the Iceberg catalog: {reason}")]
    Catalog { table: String, reason: String, is_foreign: bool },
}

/// The format's name for the record of a table's versions.
pub const fn log_of(format: TableFormat) -> &'static str {
    match format {
        TableFormat::Delta => "Delta log",
        TableFormat::Iceberg => "Iceberg metadata",
    }
}

impl TableError {
    /// Whether another program changed the published log or metadata.
    pub const fn is_foreign_change(&self) -> bool {
        matches!(self, Self::Log { .. } | Self::Catalog { is_foreign: true, .. })
    }

    /// Whether an object is missing that a root names: a later commit deleted it, and the current root must be read.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Store(StoreError::NotFound { .. }))
    }

    pub fn is_lease_lost(&self) -> bool {
        matches!(self, Self::Store(StoreError::LeaseLost(_)))
    }

    /// Whether an object that a root names is missing or doesn't match it.
    pub fn is_broken(&self) -> bool {
        self.is_gone() || matches!(self, Self::Shard { .. })
    }
}

pub type TableResult<T> = Result<T, TableError>;

/// Why an object of a manifest can't be read.
enum ReadError {
    Store(StoreError),
    TooLarge { reason: String, etag: Option<ETag> },
}

impl ReadError {
    fn of(self, key: &str) -> StoreError {
        let other = |reason: String| StoreError::Transient {
            bucket: Bucket::Pipelines,
            key: key.to_owned(),
            operation: "reading",
            source: std::io::Error::other(reason),
        };
        match self {
            Self::Store(error) => error,
            Self::TooLarge { reason, .. } => other(reason),
        }
    }
}

/// A root as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRoot {
    pub root: Root,
    /// If the store has one.
    pub etag: Option<ETag>,
}

/// The object found at the key of a table's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundRoot {
    Absent,
    Readable(Box<StoredRoot>),
    /// A manifest of an earlier format, or none: the table is rebuilt.
    Unusable {
        etag: Option<ETag>,
        error: ManifestError,
    },
}

impl FoundRoot {
    pub fn readable(&self) -> Option<&Root> {
        match self {
            Self::Readable(stored) => Some(&stored.root),
            Self::Absent | Self::Unusable { .. } => None,
        }
    }
}

/// The tables with a manifest, in order.
///
/// # Errors
/// If the store fails.
pub fn tables(store: &dyn ObjectStore, slug: &Slug) -> StoreResult<Vec<String>> {
    let prefix = manifests_prefix(slug);
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(Bucket::Pipelines, &prefix, Some('/'), after.as_deref(), LIST_PAGE_KEYS_MAX)?;
        let name = |object: &ObjectMeta| Some(object.key.strip_prefix(&prefix)?.strip_suffix(".json")?.to_owned());
        names.extend(page.objects.iter().filter_map(name));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(names),
        }
    }
}

/// A table's manifest in the store.
#[derive(Clone, Copy)]
pub struct TableStore<'a> {
    pub store: &'a dyn ObjectStore,
    pub slug: &'a Slug,
    pub table: &'a str,
    /// The catalog that its Iceberg snapshots are committed to.
    pub catalog: Option<&'a dyn IcebergCatalog>,
}

impl<'a> TableStore<'a> {
    /// Without a catalog.
    pub const fn new(store: &'a dyn ObjectStore, slug: &'a Slug, table: &'a str) -> Self {
        Self { store, slug, table, catalog: None }
    }

    /// Reads the root.
    ///
    /// # Errors
    /// If the store fails, or a newer version wrote it.
    pub fn root(&self) -> TableResult<FoundRoot> {
        let key = manifest_key(self.slug, self.table);
        let (json, etag) = match self.read(&key, ROOT_BYTES_MAX) {
            Ok(found) => found,
            Err(ReadError::Store(StoreError::NotFound { .. })) => return Ok(FoundRoot::Absent),
            Err(ReadError::TooLarge { reason, etag }) => {
                return Ok(FoundRoot::Unusable { etag, error: ManifestError::Unreadable { reason } });
            }
            Err(ReadError::Store(error)) => return Err(error.into()),
        };
        match self.parse(&json) {
            Ok(root) => Ok(FoundRoot::Readable(Box::new(StoredRoot { root, etag }))),
            Err(error @ ManifestError::Newer { .. }) => Err(TableError::Manifest { key, error }),
            Err(error) => Ok(FoundRoot::Unusable { etag, error }),
        }
    }

    /// Reads the root of an earlier commit that is retained; `None` if it isn't.
    ///
    /// # Errors
    /// If the store fails or the root can't be used.
    pub fn earlier_root(&self, sequence: u64) -> TableResult<Option<Root>> {
        let key = manifest_root_key(self.slug, self.table, sequence);
        let Some((json, _)) = self.small(&key)? else { return Ok(None) };
        self.parse(&json).map(Some).map_err(|error| TableError::Manifest { key, error })
    }

    fn parse(&self, json: &[u8]) -> Result<Root, ManifestError> {
        let root = Root::parse(json)?;
        match root.table == self.table {
            true => Ok(root),
            false => Err(ManifestError::Unreadable { reason: format!("it belongs to table `{}`", root.table) }),
        }
    }

    /// The keys of the intents of runs that may have left something behind.
    fn intents(&self) -> TableResult<Vec<String>> {
        let objects = list_all(self.store, Bucket::Pipelines, &manifest_intents_prefix(self.slug, self.table))?;
        Ok(objects.into_iter().map(|object| object.key).collect())
    }

    /// Whether a run may have left something behind.
    ///
    /// # Errors
    /// If the store fails.
    pub fn needs_recovery(&self) -> TableResult<bool> {
        Ok(!self.intents()?.is_empty())
    }

    fn intent(&self, key: &str) -> TableResult<Option<Intent>> {
        let Some((json, _)) = self.small(key)? else { return Ok(None) };
        self.json(key.to_owned(), &json).map(Some)
    }

    fn json<T: DeserializeOwned>(&self, key: String, json: &[u8]) -> TableResult<T> {
        serde_json::from_slice(json).map_err(|error| {
            let error = ManifestError::Unreadable { reason: error.to_string() };
            TableError::Manifest { key, error }
        })
    }

    /// Reads a small object; `None` if there is none.
    fn small(&self, key: &str) -> TableResult<Option<(Vec<u8>, Option<ETag>)>> {
        match self.read(key, SMALL_BYTES_MAX) {
            Ok(found) => Ok(Some(found)),
            Err(ReadError::Store(StoreError::NotFound { .. })) => Ok(None),
            Err(error) => Err(error.of(key).into()),
        }
    }

    fn read(&self, key: &str, bytes_max: u64) -> Result<(Vec<u8>, Option<ETag>), ReadError> {
        let bucket = Bucket::Pipelines;
        let failed = |source| StoreError::Transient { bucket, key: key.to_owned(), operation: "reading", source };
        let object = self.store.get(bucket, key, None).map_err(ReadError::Store)?;
        if object.meta.size > bytes_max {
            let reason = format!("it has {} bytes, expected at most {bytes_max}", object.meta.size);
            return Err(ReadError::TooLarge { reason, etag: object.meta.etag });
        }
        let mut bytes = Vec::with_capacity(object.meta.size as usize);
        object.body.take(bytes_max).read_to_end(&mut bytes).map_err(|error| ReadError::Store(failed(error)))?;
        Ok((bytes, object.meta.etag))
    }

    /// Reads a shard.
    ///
    /// # Errors
    /// If the store fails, or the object isn't the shard.
    pub fn shard<K: ShardKey, V: DeserializeOwned>(&self, shard: &ShardRef<K>) -> TableResult<Vec<(K, V)>> {
        let key = manifest_shard_key(self.slug, self.table, &shard.name);
        let (bytes, _) = self.read(&key, SHARD_BYTES_MAX).map_err(|error| error.of(&key))?;
        shards::decode(shard, &bytes).map_err(|error| TableError::Shard { key, error })
    }

    /// The first shard that is missing or doesn't match the root.
    ///
    /// # Errors
    /// If the store fails.
    pub fn broken_shard(&self, root: &Root) -> TableResult<Option<TableError>> {
        match self.read_shards(root).find_map(|(_, read)| read.err()) {
            Some(error) if !error.is_broken() => Err(error),
            found => Ok(found),
        }
    }

    /// Reads all shards, one at a time: their names, and whether they match the root.
    fn read_shards<'r>(&'r self, root: &'r Root) -> impl Iterator<Item = (&'r str, TableResult<()>)> {
        fn read<'r, K: ShardKey, V: DeserializeOwned>(
            table: &'r TableStore<'_>,
            shards: &'r [ShardRef<K>],
        ) -> impl Iterator<Item = (&'r str, TableResult<()>)> {
            shards.iter().map(|shard| (shard.name.as_str(), table.shard::<K, V>(shard).map(drop)))
        }
        let iceberg = root.iceberg.as_ref().and_then(|iceberg| iceberg.state.as_ref());
        let iceberg = iceberg.map_or(&[][..], std::slice::from_ref);
        (read::<_, SourceEntry>(self, &root.sources))
            .chain(read::<_, GroupEntry>(self, &root.groups))
            .chain(read::<_, Members>(self, &root.members))
            .chain(read::<_, StoredFile>(self, &root.rejects))
            .chain(read::<_, IcebergState>(self, iceberg))
    }

    /// Reads shards of this table, for maps.
    pub fn reader(&self) -> ShardReader<'a> {
        ShardReader(*self)
    }

    /// Where the table is, as other engines address it, without a slash at its end.
    ///
    /// # Errors
    /// If the store has no place for it.
    pub fn location(&self) -> TableResult<String> {
        let prefix = table_prefix(self.slug, self.table);
        Ok(self.store.address(Bucket::Warehouse, prefix.trim_end_matches('/'))?)
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}{key}", pipeline_prefix(self.slug))
    }
}

/// Reads the shards of a table.
#[derive(Clone, Copy)]
pub struct ShardReader<'a>(TableStore<'a>);

impl<K: ShardKey, V: DeserializeOwned> ReadShards<K, V> for ShardReader<'_> {
    type Error = TableError;

    fn read(&mut self, shard: &ShardRef<K>) -> TableResult<Vec<(K, V)>> {
        self.0.shard(shard)
    }
}

/// The maps of a manifest.
#[derive(Debug, Clone)]
pub struct Maps {
    pub sources: ShardedMap<String, SourceEntry>,
    pub groups: ShardedMap<RangeKey, GroupEntry>,
    pub members: ShardedMap<RangeKey, Members>,
    pub rejects: ShardedMap<String, StoredFile>,
}

impl Maps {
    /// `None`: of a table without a manifest.
    pub fn of(root: Option<&Root>) -> Self {
        Self {
            sources: ShardedMap::new(root.map_or(&[], |root| &root.sources)),
            groups: ShardedMap::new(root.map_or(&[], |root| &root.groups)),
            members: ShardedMap::new(root.map_or(&[], |root| &root.members)),
            rejects: ShardedMap::new(root.map_or(&[], |root| &root.rejects)),
        }
    }
}
