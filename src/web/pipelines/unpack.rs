//! Writes the objects of an inspected archive.
//!
//! Invariant: the config is written last, after manifests with the tags that this store assigned to lake and warehouse
//! objects; so the first run after the import finds nothing to do.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::inspect::{Inspected, Packed, contents};
use super::package::Problems;
use crate::domain::layout::{has_empty_segment, pipeline_prefix, probe_key};
use crate::domain::limits::{KEY_BYTES_MAX, ROOT_BYTES_MAX};
use crate::domain::name::Slug;
use crate::domain::table_log::entries::StoredFile;
use crate::domain::table_log::root::Root;
use crate::http::{ApiError, ErrorCode};
use crate::pipelines::tables::{Maps, TableError, TableStore, put_retagged};
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ObjectMeta, StoreError, WriteOptions, list_all};
use crate::runtime::failpoint::reach;
use crate::web::failure::{from_store, from_table};
use crate::web::locks::LockedPipeline;
use crate::web::spool::write_error;

/// Objects up to this size are written from memory.
const IN_MEMORY_BYTES_MAX: u64 = 4 << 20;

/// Checks all keys of an archive before any object is written.
///
/// # Errors
/// `invalid_archive` for keys that this store can't have; `s3_error`.
pub(super) fn check_keys(store: &dyn ObjectStore, slug: &Slug, inspected: &Inspected) -> Result<(), ApiError> {
    let mut problems = Problems::default();
    let prefix = pipeline_prefix(slug);
    let keys: HashSet<(Bucket, &str)> =
        inspected.objects.iter().map(|object| (object.bucket, object.key.as_str())).collect();
    for object in &inspected.objects {
        let key = format!("{prefix}{}", object.key);
        let mut refuse = |why: &str| problems.add(&object.entry.name, format!("its key can't be stored: {why}"));
        if key.len() > KEY_BYTES_MAX {
            refuse("it is longer than 1,024 bytes");
            continue;
        }
        if store.is_remote() {
            continue;
        }
        // A local folder takes fewer keys, and checks them quickly.
        match store.head(object.bucket, &key) {
            Ok(_) => {}
            Err(StoreError::InvalidKey { reason, .. }) => {
                refuse(&reason);
                continue;
            }
            Err(error) => return Err(from_store(error)),
        }
        let above = object.key.match_indices('/').map(|(at, _)| &object.key[..at]);
        if let Some(file) = above.into_iter().find(|above| keys.contains(&(object.bucket, *above))) {
            refuse(&format!("`{file}` is an object, and a folder here"));
        }
    }
    if store.is_remote() {
        check_empty_segments(store, inspected, &mut problems)?;
    }
    problems.check()
}

/// Probes the store if an archive has keys with empty segments: some remote stores treat `a//b` as `a/b`, so that one
/// object would replace the other.
fn check_empty_segments(
    store: &dyn ObjectStore,
    inspected: &Inspected,
    problems: &mut Problems,
) -> Result<(), ApiError> {
    for bucket in Bucket::ALL {
        let is_odd = |object: &&Packed| object.bucket == bucket && has_empty_segment(&object.key);
        let mut odd = inspected.objects.iter().filter(is_odd).peekable();
        if odd.peek().is_none() || keeps_empty_segments(store, bucket).map_err(from_store)? {
            continue;
        }
        for object in odd {
            let why = "its key can't be stored: it has an empty segment, which this object store doesn't keep";
            problems.add(&object.entry.name, why);
        }
    }
    Ok(())
}

/// Writes objects with such keys, lists them, and deletes them.
fn keeps_empty_segments(store: &dyn ObjectStore, bucket: Bucket) -> Result<bool, StoreError> {
    let folder = format!("{}/", probe_key(&uuid::Uuid::new_v4().simple().to_string()));
    let mut keeps = true;
    // The inner empty segment is tried first: stores that fold it may fail on the second key.
    for key in [format!("{folder}/a"), format!("{folder}b/")] {
        let put = store.put(bucket, &key, b"", &WriteOptions::default());
        let listed = put.and_then(|_| list_all(store, bucket, &folder));
        let found = listed.iter().flatten().map(|object| object.key.clone());
        let left: Vec<String> = found.chain([key.clone()]).collect();
        if let Err(error) = store.delete(bucket, &left, &WriteOptions::default()) {
            tracing::warn!(%bucket, folder, %error, "deleting a probe object failed");
        }
        keeps = match listed {
            Ok(listed) => listed.iter().map(|object| &object.key).eq([&key]),
            Err(StoreError::InvalidKey { .. }) => false,
            Err(error) => return Err(error),
        };
        if !keeps {
            break;
        }
    }
    Ok(keeps)
}

/// The writing of an archive.
pub(super) struct Unpacking<'a> {
    pub(super) store: &'a dyn ObjectStore,
    pub(super) locked: &'a LockedPipeline,
    pub(super) archive: &'a File,
    pub(super) inspected: &'a Inspected,
    /// Scratch folder for large objects.
    pub(super) folder: &'a Path,
    /// Keys that may have been written.
    pub(super) written: Vec<(Bucket, String)>,
}

/// Whether the archive has all files that a manifest names, with their hashes. Those of an export during a publish may be
/// missing.
fn is_whole(table: &TableStore<'_>, root: &Root, now: &HashMap<(Bucket, &str), Written<'_>>) -> Result<bool, ApiError> {
    let mut whole = true;
    let mut check = |file: &StoredFile| {
        let found = now.get(&(Bucket::Warehouse, file.key.as_str()));
        whole &= found.is_some_and(|found| found.size == file.size && found.sha256 == file.sha256);
    };
    let (maps, mut reader) = (Maps::of(Some(root)), table.reader());
    let visited = maps.groups.visit(&mut reader, |_, group| {
        group.files.iter().for_each(&mut check);
        Ok(())
    });
    let visited = visited.and_then(|()| {
        maps.rejects.visit(&mut reader, |_, file| {
            check(file);
            Ok(())
        })
    });
    match visited {
        Ok(()) => Ok(whole),
        Err(error) if error.is_gone() => Ok(false),
        Err(TableError::Shard { .. } | TableError::Manifest { .. } | TableError::Log { .. }) => Ok(false),
        Err(error @ (TableError::Store(_) | TableError::Catalog { .. })) => Err(from_table(error)),
    }
}

/// A written object.
struct Written<'a> {
    sha256: &'a str,
    size: u64,
    tag: Option<String>,
}

impl<'a> Unpacking<'a> {
    /// Writes everything but the config.
    ///
    /// # Errors
    /// `s3_error`, `bucket_not_found`, `pipeline_busy`, `invalid_archive` for keys that this store can't have.
    pub(super) fn write(&mut self) -> Result<(), ApiError> {
        let mut now: HashMap<(Bucket, &'a str), Written<'a>> = HashMap::new();
        let inspected = self.inspected;
        for object in inspected.objects.iter().filter(|object| !object.is_config() && object.root_of().is_none()) {
            let meta = self.put(object)?;
            let tag = meta.etag.map(|tag| tag.0);
            now.insert((object.bucket, &object.key), Written { sha256: &object.sha256, size: object.entry.size, tag });
            reach("import::between_writes");
        }
        for object in inspected.objects.iter().filter(|object| object.root_of().is_some()) {
            self.put_root(object, &now)?;
        }
        reach("import::written");
        Ok(())
    }

    /// Writes the config, if there is one.
    ///
    /// # Errors
    /// Same as for [`Unpacking::write`].
    pub(super) fn write_config(&mut self) -> Result<(), ApiError> {
        let inspected = self.inspected;
        for object in inspected.objects.iter().filter(|object| object.is_config()) {
            self.put(object)?;
        }
        reach("import::configured");
        Ok(())
    }

    /// Stores the root of a table's manifest; the rest of it is stored.
    fn put_root(&mut self, object: &Packed, now: &HashMap<(Bucket, &str), Written<'_>>) -> Result<(), ApiError> {
        let Some(table) = object.root_of().filter(|_| object.entry.size <= ROOT_BYTES_MAX) else {
            return self.put(object).map(drop);
        };
        let mut json = self.read(object)?;
        self.key(object);
        let table = TableStore::new(self.store, self.locked.slug(), table);
        if let Ok(mut root) = Root::parse(&json)
            && !is_whole(&table, &root, now)?
        {
            tracing::warn!(table = table.table, "imported table lacks files of its manifest; the next run rebuilds it");
            root.forget_fingerprint();
            json = root.to_json();
        }
        put_retagged(&table, &json, true, &self.locked.options(), |key, entry| {
            let now = now.get(&(Bucket::Lake, key))?;
            (now.size == entry.size && now.sha256 == entry.sha256).then(|| now.tag.clone()).flatten()
        })
        .map_err(from_table)
    }

    fn put(&mut self, object: &Packed) -> Result<ObjectMeta, ApiError> {
        let key = self.key(object);
        let options = WriteOptions { sha256: Some(&object.sha256), ..self.locked.options() };
        if object.entry.size <= IN_MEMORY_BYTES_MAX {
            let bytes = self.read(object)?;
            return self.store.put(object.bucket, &key, &bytes, &options).map_err(put_error);
        }
        let mut file = tempfile::NamedTempFile::new_in(self.folder).map_err(ApiError::internal)?;
        io::copy(&mut contents(self.archive, &object.entry), &mut file).map_err(|error| write_error(&error))?;
        self.store.put_file(object.bucket, &key, file.path(), &options).map_err(put_error)
    }

    fn read(&self, object: &Packed) -> Result<Vec<u8>, ApiError> {
        let mut bytes = Vec::new();
        // The archive was inspected, so the local disk caused the failure.
        contents(self.archive, &object.entry).read_to_end(&mut bytes).map_err(ApiError::internal)?;
        Ok(bytes)
    }

    /// The object's full key, recorded as possibly written.
    fn key(&mut self, object: &Packed) -> String {
        let key = format!("{}{}", pipeline_prefix(self.locked.slug()), object.key);
        self.written.push((object.bucket, key.clone()));
        key
    }
}

fn put_error(error: StoreError) -> ApiError {
    match error {
        StoreError::InvalidKey { bucket, key, reason } => {
            let message = format!("{bucket} bucket: `{key}` can't be stored: {reason}");
            ApiError::new(ErrorCode::InvalidArchive, message)
        }
        error => from_store(error),
    }
}
