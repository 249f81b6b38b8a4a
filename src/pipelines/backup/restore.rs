//! Restores a pipeline from a backup.
//!
//! CSVs first, then the files of each table, then its root; the config is last, so that no run sees half of a pipeline.
//! The manifests get the tags of the restored CSVs.
//!
//! Must not: replace an object of the store.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::check::check_hash;
use super::error::{BackupError, BackupResult};
use super::place::{BackupPlace, shards_with, visit_with};
use super::source_tags::SourceTags;
use super::transfer::{TRANSFERS_MAX, TransferWatch};
use crate::domain::backup::{BackupObject, BackupRoot, BackupTable, BackupTableObject, PART_BYTES, TableBucket};
use crate::domain::digest::{hex, sha256_hex};
use crate::domain::layout::{
    SETTINGS_KEY, check_stored_key, config_key, manifests_prefix, pipeline_of, pipeline_prefix, split_key,
};
use crate::domain::limits::ROOT_BYTES_MAX;
use crate::domain::name::{Slug, TableName};
use crate::domain::table_log::root::Root;
use crate::domain::table_log::shards::ShardedMap;
use crate::pipelines::tables::{FoundRoot, TableStore, put_retagged};
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, Lease, Precondition, StoreError, WriteOptions};
use crate::runtime::failpoint::reach;
use crate::sync::{Semaphore, parallel_map};

/// Objects restored together.
const BATCH: usize = 1_000;
/// Objects larger than a part in scratch at the same time.
const LARGE_MAX: usize = 2;
/// Problems that are named.
const PROBLEMS_MAX: usize = 1_000;

/// Where to restore to, and how.
pub struct RestoreRequest<'a> {
    pub place: BackupPlace<'a>,
    pub root: &'a BackupRoot,
    pub store: &'a dyn ObjectStore,
    /// For objects larger than a part.
    pub scratch: &'a Path,
    /// Whether objects may be there already; these stay.
    pub missing_only: bool,
    pub watch: TransferWatch<'a>,
}

/// The result of restoring a pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredPipeline {
    /// Objects that were not restored, and why.
    pub problems: Vec<String>,
    /// Whether the lake may lack CSVs that its tables were made of: a run would delete their rows.
    pub lacks_csvs: bool,
    /// Objects that were there already.
    pub kept: u64,
}

/// The pipelines that a backup has.
///
/// # Errors
/// If the index can't be read.
pub fn pipelines_in(place: &BackupPlace<'_>, root: &BackupRoot) -> BackupResult<BTreeSet<Slug>> {
    let mut slugs = BTreeSet::new();
    let mut last = None;
    let mut add = |key: &str| {
        let slug = pipeline_of(key);
        if slug != last {
            slugs.extend(slug.clone());
            last = slug;
        }
        Ok(())
    };
    for shards in [&root.plain, &root.lake] {
        visit_with(place, shards, "", |key, _: BackupObject| add(&key))?;
    }
    visit_with(place, &root.tables, "", |key, _: BackupTable| add(&key))?;
    Ok(slugs)
}

/// Restores the workspace's settings if the store has none.
///
/// # Errors
/// If the store or the place fails, or the object is damaged.
pub fn restore_workspace(request: &RestoreRequest<'_>) -> BackupResult<()> {
    let restore = Restore::new(request, None);
    visit_with(&request.place, &request.root.plain, SETTINGS_KEY, |key, object: BackupObject| {
        if key == SETTINGS_KEY { restore.put(Bucket::Pipelines, &key, &object).map(drop) } else { Ok(()) }
    })?;
    restore.sync()
}

/// Restores a pipeline. The caller holds its lock.
///
/// # Errors
/// If the store or the place fails, or the index can't be read. Damaged objects are problems in the result.
pub fn restore_pipeline(
    request: &RestoreRequest<'_>,
    slug: &Slug,
    lease: &dyn Lease,
) -> BackupResult<RestoredPipeline> {
    let restore = Restore::new(request, Some(lease));
    let prefix = pipeline_prefix(slug);
    let lake = restore.objects(Bucket::Lake, &prefix, &|_| true)?;
    reach("restore::after_lake");
    restore.tables(slug, &prefix)?;
    reach("restore::after_tables");
    let config = config_key(slug);
    restore.objects(Bucket::Pipelines, &prefix, &|key| key != config)?;
    restore.sync()?;
    reach("restore::before_config");
    let mut restored = restore.restored.into_inner();
    restored.lacks_csvs =
        lake.damaged > 0 || (request.root.without_csvs && lake.count == 0 && !has_csvs(request, &prefix)?);
    Ok(restored)
}

/// Restores the config, after [`restore_pipeline`]: from then on runs may start.
///
/// # Errors
/// Same as for [`restore_pipeline`].
pub fn restore_config(request: &RestoreRequest<'_>, slug: &Slug, lease: &dyn Lease) -> BackupResult<Vec<String>> {
    let restore = Restore::new(request, Some(lease));
    restore.objects(Bucket::Pipelines, &config_key(slug), &|key| key == config_key(slug))?;
    restore.sync()?;
    Ok(restore.restored.into_inner().problems)
}

fn has_csvs(request: &RestoreRequest<'_>, prefix: &str) -> BackupResult<bool> {
    Ok(!request.store.list(Bucket::Lake, prefix, None, None, 1)?.objects.is_empty())
}

/// Counts of one map's entries.
#[derive(Debug, Clone, Copy, Default)]
struct ObjectCounts {
    count: u64,
    damaged: u64,
}

struct Restore<'a> {
    request: &'a RestoreRequest<'a>,
    lease: Option<&'a dyn Lease>,
    restored: Mutex<RestoredPipeline>,
    large: Semaphore,
}

/// An object to put.
type Entry = (Bucket, String, BackupObject);

impl<'a> Restore<'a> {
    fn new(request: &'a RestoreRequest<'a>, lease: Option<&'a dyn Lease>) -> Self {
        Self { request, lease, restored: Mutex::default(), large: Semaphore::new(LARGE_MAX) }
    }

    fn options(&self) -> WriteOptions<'a> {
        WriteOptions { lease: self.lease, ..WriteOptions::default() }
    }

    fn sync(&self) -> BackupResult<()> {
        Ok(self.request.store.sync(BATCH)?)
    }

    fn problem(&self, text: String) {
        let mut restored = self.restored.lock();
        if restored.problems.len() < PROBLEMS_MAX {
            restored.problems.push(text);
        }
    }

    /// Restores the entries of a bucket's map with this prefix.
    fn objects(&self, bucket: Bucket, prefix: &str, is_wanted: &dyn Fn(&str) -> bool) -> BackupResult<ObjectCounts> {
        let root = self.request.root;
        let shards = if bucket == Bucket::Lake { &root.lake } else { &root.plain };
        let (mut counts, mut batch) = (ObjectCounts::default(), Vec::new());
        let put = |batch: &mut Vec<Entry>, counts: &mut ObjectCounts| {
            counts.count += batch.len() as u64;
            counts.damaged += self.put_all(&std::mem::take(batch))?;
            Ok(())
        };
        visit_with(&self.request.place, shards, prefix, |key, object| {
            if is_wanted(&key) {
                batch.push((bucket, key, object));
            }
            if batch.len() >= BATCH { put(&mut batch, &mut counts) } else { Ok(()) }
        })?;
        put(&mut batch, &mut counts)?;
        Ok(counts)
    }

    /// Returns the number of objects that could not be restored.
    fn put_all(&self, entries: &[Entry]) -> BackupResult<u64> {
        let put = parallel_map(entries, TRANSFERS_MAX, |(bucket, key, object)| self.put(*bucket, key, object))?;
        self.sync()?;
        Ok(put.into_iter().filter(|is_put| !is_put).count() as u64)
    }

    /// False if the object is damaged or can't be stored, which is a problem then.
    fn put(&self, bucket: Bucket, key: &str, object: &BackupObject) -> BackupResult<bool> {
        let watch = self.request.watch;
        watch.check()?;
        let put = self.try_put(bucket, key, object);
        watch.seen();
        match put {
            Ok(true) => {
                watch.written(object.size);
                reach("restore::object");
                Ok(true)
            }
            Ok(false) => {
                self.restored.lock().kept += 1;
                Ok(true)
            }
            Err(error @ (BackupError::Damaged { .. } | BackupError::Store(StoreError::InvalidKey { .. }))) => {
                self.problem(match error {
                    BackupError::Damaged { .. } => format!("{bucket} bucket: {error}"),
                    error => error.to_string(),
                });
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// False if the store has the object already.
    fn try_put(&self, bucket: Bucket, key: &str, object: &BackupObject) -> BackupResult<bool> {
        let damaged = |found: &str| BackupError::Damaged { key: key.to_owned(), found: found.to_owned() };
        if key != SETTINGS_KEY && (split_key(key).is_none() || check_stored_key(key).is_err()) {
            return Err(damaged("it is not the key of a pipeline's object"));
        }
        object.check().map_err(damaged)?;
        let store = self.request.store;
        if self.request.missing_only && store.head(bucket, key)?.is_some() {
            return Ok(false);
        }
        let mut options = self.options().with(Precondition::IfNoneMatch);
        options.defer_sync = true;
        options.sha256 = Some(&object.sha256);
        let put = if object.size <= PART_BYTES {
            store.put(bucket, key, &self.bytes(key, object)?, &options)
        } else {
            let _permit = self.request.watch.permit(&self.large)?;
            let file = self.file(key, object)?;
            store.put_file(bucket, key, file.path(), &options)
        };
        match put {
            Ok(_) => Ok(true),
            Err(StoreError::PreconditionFailed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The checked bytes of an object of one part.
    fn bytes(&self, key: &str, object: &BackupObject) -> BackupResult<Vec<u8>> {
        let mut bytes = Vec::new();
        self.request.place.read_parts(key, object, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        check_hash(key, object, &sha256_hex(&bytes))?;
        Ok(bytes)
    }

    /// The checked bytes of a larger object.
    fn file(&self, key: &str, object: &BackupObject) -> BackupResult<NamedTempFile> {
        let mut file = NamedTempFile::new_in(self.request.scratch).map_err(BackupError::Scratch)?;
        let mut hash = Sha256::new();
        self.request.place.read_parts(key, object, &mut |part| {
            self.request.watch.check()?;
            hash.update(part);
            file.write_all(part).map_err(BackupError::Scratch)
        })?;
        check_hash(key, object, &hex(&hash.finalize()))?;
        Ok(file)
    }

    fn tables(&self, slug: &Slug, prefix: &str) -> BackupResult<()> {
        visit_with(&self.request.place, &self.request.root.tables, prefix, |key, table: BackupTable| {
            let name = key.strip_prefix(&manifests_prefix(slug)).and_then(|name| name.strip_suffix(".json"));
            match name.filter(|name| TableName::parse(name).is_ok()) {
                Some(name) => self.table(slug, name, &key, &table),
                None => {
                    self.problem(format!("`{key}`: it is not the key of a table's manifest"));
                    Ok(())
                }
            }
        })
    }

    fn table(&self, slug: &Slug, name: &str, key: &str, table: &BackupTable) -> BackupResult<()> {
        let target = TableStore::new(self.request.store, slug, name);
        let json = match self.root_json(key, &table.root) {
            Ok(json) => json,
            Err(error @ BackupError::Damaged { .. }) => {
                self.problem(format!("table `{name}`: {error}; it is not restored"));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let has_root = match target.root()? {
            FoundRoot::Absent => false,
            found if is_same_commit(&found, &json) => true,
            _ => {
                self.problem(format!("table `{name}`: the store has another state of it, which stays"));
                return Ok(());
            }
        };
        let damaged = self.table_objects(slug, table)?;
        if damaged > 0 {
            self.problem(format!("table `{name}`: it is not restored, since objects of it are damaged"));
            return Ok(());
        }
        if has_root {
            return Ok(());
        }
        reach("restore::before_root");
        self.put_root(&target, &json)?;
        self.request.watch.written(table.root.size);
        Ok(())
    }

    fn root_json(&self, key: &str, object: &BackupObject) -> BackupResult<Vec<u8>> {
        if object.size > ROOT_BYTES_MAX {
            return Err(BackupError::Damaged { key: key.to_owned(), found: "it is too large for a manifest".into() });
        }
        self.bytes(key, object)
    }

    /// Returns the number of objects that could not be restored.
    fn table_objects(&self, slug: &Slug, table: &BackupTable) -> BackupResult<u64> {
        let prefix = pipeline_prefix(slug);
        let (mut batch, mut damaged) = (Vec::new(), 0);
        let map = ShardedMap::<u64, BackupTableObject>::new(&table.objects);
        for entry in map.entries(&mut self.request.place.reader()) {
            let (_, BackupTableObject { bucket, key, object }) = entry?;
            if !key.starts_with(&prefix) {
                self.problem(format!("`{key}`: it is not an object of `{slug}`"));
                damaged += 1;
                continue;
            }
            let bucket = match bucket {
                TableBucket::Pipelines => Bucket::Pipelines,
                TableBucket::Warehouse => Bucket::Warehouse,
            };
            batch.push((bucket, key, object));
            if batch.len() >= BATCH {
                damaged += self.put_all(&std::mem::take(&mut batch))?;
            }
        }
        Ok(damaged + self.put_all(&batch)?)
    }

    /// Puts the root of a restored table, with the tags of its CSVs.
    fn put_root(&self, table: &TableStore<'_>, json: &[u8]) -> BackupResult<()> {
        let (place, prefix) = (self.request.place, pipeline_prefix(table.slug));
        let lake = ShardedMap::<String, BackupObject>::new(&shards_with(&self.request.root.lake, &prefix));
        let mut reader = place.reader();
        let tags = RefCell::new(SourceTags::new(self.request.store, prefix, lake.entries(&mut reader)));
        let options = WriteOptions { defer_sync: true, ..self.options() };
        put_retagged(table, json, false, &options, |source, entry| {
            tags.borrow_mut().tag(source, entry).unwrap_or_else(|error| {
                tracing::warn!(source, %error, "tag of a restored CSV unknown; the next run reads it");
                None
            })
        })?;
        Ok(())
    }
}

/// Whether the store has the root of this commit.
fn is_same_commit(found: &FoundRoot, json: &[u8]) -> bool {
    let commit = |root: &Root| (root.sequence, root.fence, root.job_id.clone());
    found.readable().zip(Root::parse(json).ok()).is_some_and(|(found, own)| commit(found) == commit(&own))
}
