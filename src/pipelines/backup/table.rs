//! Copies a table: every object that its root names, then the root.
//!
//! Files and shards never change, so that a copied root with its objects is a whole table, whatever runs do meanwhile. If
//! one is gone, a run published the table, and the copy starts over with the new root.

use super::error::{BackupError, BackupResult};
use super::transfer::{BackupTransfers, TRANSFERS_MAX};
use crate::domain::backup::{BackupObject, BackupTable, BackupTableObject, TableBucket, content_name};
use crate::domain::digest::sha256_hex;
use crate::domain::table_log::root::{ManifestError, Root};
use crate::domain::table_log::shards::{ShardRef, ShardWriter};
use crate::pipelines::tables::{FoundRoot, ReferencedObject, TableStore};
use crate::ports::store::Bucket;
use crate::runtime::failpoint::reach;
use crate::sync::parallel_map;

/// Objects copied together.
const BATCH: usize = 1_000;
/// Attempts to copy a table that runs keep publishing.
const TRIES_MAX: usize = 10;

/// The result of copying a table.
pub(super) enum CopiedTable {
    Copied(Box<BackupTable>),
    /// It was deleted meanwhile.
    Gone,
    /// Its manifest or an object that the manifest names is missing or damaged.
    Damaged(String),
}

/// Copies a table. `root_key`: of its root.
///
/// # Errors
/// If the store or the place fails.
pub(super) fn copy_table(
    transfers: &BackupTransfers<'_>,
    table: &TableStore<'_>,
    root_key: &str,
) -> BackupResult<CopiedTable> {
    let mut last = None;
    for _ in 0..TRIES_MAX {
        let found = match table.root() {
            Ok(found) => found,
            Err(error) => {
                let error = BackupError::from(error);
                return if error.is_of_table() { Ok(CopiedTable::Damaged(error.to_string())) } else { Err(error) };
            }
        };
        let stored = match &found {
            FoundRoot::Absent => return Ok(CopiedTable::Gone),
            FoundRoot::Unusable { error: ManifestError::Older { .. }, .. } => {
                let error = "its manifest is of an earlier version; the next run rebuilds it";
                return Ok(CopiedTable::Damaged(format!("`{root_key}`: {error}")));
            }
            FoundRoot::Unusable { error, .. } => return Ok(CopiedTable::Damaged(format!("`{root_key}`: {error}"))),
            FoundRoot::Readable(stored) => stored,
        };
        reach("backup::root_read");
        let failed = match copy_root(transfers, table, &stored.root) {
            Ok(mut copied) => {
                // Without a tag, the next backup copies the table again.
                let etag = stored.etag.as_ref().map(|etag| etag.0.clone());
                copied.table.root.etag = etag.filter(|_| copied.is_published_whole);
                return Ok(CopiedTable::Copied(Box::new(copied.table)));
            }
            Err(error) if error.is_of_table() => error,
            Err(error) => return Err(error),
        };
        // The same root again: its object is missing or damaged, not replaced.
        if last.as_ref() == Some(&found) {
            return Ok(CopiedTable::Damaged(failed.to_string()));
        }
        last = Some(found);
    }
    Ok(CopiedTable::Damaged(format!("`{root_key}`: runs keep publishing the table")))
}

/// A table of the backup, and whether it has its Delta log and Iceberg metadata.
struct CopiedRoot {
    table: BackupTable,
    is_published_whole: bool,
}

fn copy_root(transfers: &BackupTransfers<'_>, table: &TableStore<'_>, root: &Root) -> BackupResult<CopiedRoot> {
    let mut objects = TableObjects {
        transfers,
        batch: Vec::new(),
        writer: ShardWriter::new(),
        shards: Vec::new(),
        count: 0,
        bytes: 0,
    };
    table.visit_referenced(root, &mut |object| objects.add(object))?;
    let published = table.published_objects(root)?;
    for key in published.keys {
        objects.add(ReferencedObject { bucket: Bucket::Warehouse, key, content: None, is_optional: false })?;
    }
    for (key, bytes) in published.pointers {
        objects.put(key, &bytes)?;
    }
    let (shards, count, bytes) = objects.finish()?;
    let mut root = root.clone();
    // The next run of a restored table makes again what is incomplete.
    if !published.is_delta_whole {
        root.delta = None;
    }
    if let Some(iceberg) = root.iceberg.as_mut().filter(|_| !published.is_iceberg_whole) {
        iceberg.is_stale = true;
    }
    let root = put_made(transfers, &root.to_json())?;
    let (count, bytes) = (count + 1, bytes + root.size);
    let is_published_whole = published.is_delta_whole && published.is_iceberg_whole;
    Ok(CopiedRoot { table: BackupTable { root, objects: shards, count, bytes }, is_published_whole })
}

/// Stores bytes that aren't copied from an object.
fn put_made(transfers: &BackupTransfers<'_>, json: &[u8]) -> BackupResult<BackupObject> {
    let sha256 = sha256_hex(json);
    let object = BackupObject { size: json.len() as u64, data: content_name(&sha256), sha256, etag: None };
    transfers.put_bytes(&object, json)?;
    Ok(object)
}

/// Copies the objects of a table, some at a time, and writes their entries.
struct TableObjects<'a> {
    transfers: &'a BackupTransfers<'a>,
    batch: Vec<ReferencedObject>,
    writer: ShardWriter<u64>,
    shards: Vec<ShardRef<u64>>,
    count: u64,
    bytes: u64,
}

impl TableObjects<'_> {
    fn add(&mut self, object: ReferencedObject) -> BackupResult<()> {
        self.batch.push(object);
        if self.batch.len() >= BATCH { self.copy() } else { Ok(()) }
    }

    /// Adds an object of the warehouse with these bytes.
    fn put(&mut self, key: String, bytes: &[u8]) -> BackupResult<()> {
        let object = put_made(self.transfers, bytes)?;
        self.push(TableBucket::Warehouse, key, object)
    }

    fn push(&mut self, bucket: TableBucket, key: String, object: BackupObject) -> BackupResult<()> {
        (self.count, self.bytes) = (self.count + 1, self.bytes + object.size);
        let place = self.transfers.place;
        let mut sink = |shard: &ShardRef<u64>, bytes: Vec<u8>| place.put_shard(&shard.name, &bytes);
        self.writer.push(&(self.count, BackupTableObject { bucket, key, object }), &mut self.shards, &mut sink)
    }

    fn copy(&mut self) -> BackupResult<()> {
        let batch = std::mem::take(&mut self.batch);
        let copied = parallel_map(&batch, TRANSFERS_MAX, |object| {
            let copied = self.transfers.copy(object.bucket, &object.key, object.content.as_ref());
            match copied {
                Ok(Some(copied)) => Ok(Some(copied)),
                Ok(None) | Err(BackupError::DamagedSource { .. }) if object.is_optional => Ok(None),
                Ok(None) => {
                    Err(BackupError::DamagedSource { key: object.key.clone(), found: "it is missing".to_owned() })
                }
                Err(error) => Err(error),
            }
        })?;
        self.transfers.place.sync(batch.len())?;
        for (referenced, copied) in batch.into_iter().zip(copied) {
            let Some(object) = copied else { continue };
            let bucket = match referenced.bucket {
                Bucket::Pipelines => TableBucket::Pipelines,
                Bucket::Warehouse | Bucket::Lake => TableBucket::Warehouse,
            };
            self.push(bucket, referenced.key, object)?;
        }
        Ok(())
    }

    fn finish(mut self) -> BackupResult<(Vec<ShardRef<u64>>, u64, u64)> {
        self.copy()?;
        let place = self.transfers.place;
        self.writer
            .end(&mut self.shards, &mut |shard: &ShardRef<u64>, bytes: Vec<u8>| place.put_shard(&shard.name, &bytes))?;
        Ok((self.shards, self.count, self.bytes))
    }
}
