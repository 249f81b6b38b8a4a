//! The Delta log of a table, beside its data files: one version per commit of the table.
//!
//! Invariant: a version is staged beside the manifest before its root is written, and put in the log after it, unless the
//! log has it. So a run that dies between the two loses nothing: the next one finds its intent and puts the staged text.
//!
//! Must not: read the log to make the next version.

use std::collections::BTreeSet;
use std::io::Read;

use chrono::DateTime;

use super::new_shards::NewShards;
use super::{Maps, TableError, TableResult, TableStore};
use crate::domain::delta::{self, FileAction, LogVersion};
use crate::domain::layout::{delta_log_prefix, delta_version_key, manifest_log_key};
use crate::domain::pipeline::TableFormat;
use crate::domain::table_log::entries::{RangeKey, StoredFile};
use crate::domain::table_log::root::{DeltaLog, LogStep, OwnedFile, Owner, Root};
use crate::ports::store::{Bucket, Lease, Precondition, StoreError, WriteOptions, list_all};

const ZSTD_LEVEL: i32 = 3;
/// Bytes of a version's text.
const VERSION_BYTES_MAX: u64 = 4 << 30;

/// The change that a commit makes to a table's log.
pub(super) struct LogCommit {
    pub step: LogStep,
    /// Empty where the log ends.
    text: String,
}

/// The inputs to the text of a version.
pub(super) struct LogChange<'a> {
    pub table: TableStore<'a>,
    pub before: Option<&'a Root>,
    pub next: &'a Root,
    pub made: &'a [OwnedFile],
    pub retired: &'a [OwnedFile],
    /// Keys of files that were made again with the same bytes.
    pub unchanged: &'a BTreeSet<String>,
    /// New shards, by name, with their bytes.
    pub shards: &'a [(String, Vec<u8>)],
}

impl LogChange<'_> {
    /// `None` if the table has no log.
    pub(super) fn commit(&self) -> TableResult<Option<LogCommit>> {
        let before = self.before.and_then(|root| Some((root, root.delta.as_ref()?)));
        Ok(match (before, &self.next.delta) {
            (None, None) => None,
            (Some(_), None) => Some(LogCommit { step: LogStep::End, text: String::new() }),
            (None, Some(log)) => Some(LogCommit { step: LogStep::Begin, text: self.first(log)? }),
            (Some((root, earlier)), Some(log)) => {
                Some(LogCommit { step: LogStep::Append(log.version), text: self.later(log, root, earlier)? })
            }
        })
    }

    fn reader(&self) -> NewShards<'_> {
        NewShards::new(self.table, self.shards)
    }

    fn at_ms(&self) -> i64 {
        milliseconds(&self.next.committed_at)
    }

    /// A version with all files.
    fn first(&self, log: &DeltaLog) -> TableResult<String> {
        let (name, columns) = (self.table.table, &self.next.schema.columns);
        let mut version = LogVersion::new(log, self.next, self.at_ms());
        version.protocol(&delta::protocol(log));
        version.metadata(&delta::metadata(log, name, columns));
        Maps::of(Some(self.next)).groups.visit(&mut self.reader(), |key, group| {
            for file in &group.files {
                let values = delta::partition_values(&key.partition, columns);
                version.add(FileAction::new(log, name, file, values), true);
            }
            Ok::<_, TableError>(())
        })?;
        Ok(version.into_text())
    }

    /// The text of a version with the changes since the earlier one.
    fn later(&self, log: &DeltaLog, root: &Root, earlier: &DeltaLog) -> TableResult<String> {
        let (name, columns, at_ms) = (self.table.table, &self.next.schema.columns, self.at_ms());
        let mut version = LogVersion::new(log, self.next, at_ms);
        if delta::protocol(log) != delta::protocol(earlier) {
            version.protocol(&delta::protocol(log));
        }
        let metadata = delta::metadata(log, name, columns);
        if metadata != delta::metadata(earlier, name, &root.schema.columns) {
            version.metadata(&metadata);
        }
        let made: BTreeSet<&str> = self.made.iter().map(|file| file.key.as_str()).collect();
        let retired: BTreeSet<&str> =
            self.retired.iter().filter(|file| group_of(file).is_some()).map(|file| file.key.as_str()).collect();
        for key in retired.difference(&made) {
            version.remove(name, key, at_ms);
        }
        let (mut maps, mut reader) = (Maps::of(Some(self.next)), self.reader());
        for file in self.made {
            let Some(key) = group_of(file) else { continue };
            let group = maps.groups.get(key, &mut reader)?;
            let stored = group.and_then(|group| group.files.iter().find(|stored| stored.key == file.key));
            let Some(stored) = stored else { continue };
            let values = delta::partition_values(&key.partition, columns);
            let is_new = !retired.contains(file.key.as_str()) && !self.unchanged.contains(&file.key);
            version.add(FileAction::new(log, name, stored, values), is_new);
        }
        Ok(version.into_text())
    }
}

/// The group of a data file that a manifest named.
fn group_of(file: &OwnedFile) -> Option<&RangeKey> {
    match &file.owner {
        // Files that no manifest named have no source.
        Owner::Group(key) if !key.first.is_empty() => Some(key),
        Owner::Group(_) | Owner::Rejects(_) | Owner::Iceberg => None,
    }
}

/// The log's actions for the files of a group.
pub(super) fn file_actions(
    log: &DeltaLog,
    root: &Root,
    key: &RangeKey,
    files: &[StoredFile],
) -> impl Iterator<Item = FileAction> {
    let values = delta::partition_values(&key.partition, &root.schema.columns);
    files.iter().map(move |file| FileAction::new(log, &root.table, file, values.clone()))
}

/// Milliseconds since the epoch.
pub(super) fn milliseconds(rfc3339: &str) -> i64 {
    DateTime::parse_from_rfc3339(rfc3339).map_or(0, |time| time.timestamp_millis())
}

impl LogCommit {
    /// The staged version, stored beside the manifest until the log has it.
    pub(super) fn staged(&self) -> Vec<u8> {
        zstd::bulk::compress(self.text.as_bytes(), ZSTD_LEVEL).unwrap_or_default()
    }

    /// Puts the version in the log, or deletes the log. Does nothing if that was done before.
    ///
    /// # Errors
    /// If the store or the lease fails, or another program wrote this version.
    pub(super) fn put(&self, table: &TableStore<'_>, lease: &dyn Lease) -> TableResult<()> {
        match self.step {
            LogStep::Append(version) => put_version(table, version, self.text.as_bytes(), lease),
            LogStep::End => delete_log(table, lease),
            LogStep::Begin => {
                let first = delta_version_key(table.slug, table.table, 0);
                if read_version(table, &first)?.is_none_or(|found| found != self.text.as_bytes()) {
                    delete_log(table, lease)?;
                }
                put_version(table, 0, self.text.as_bytes(), lease)
            }
        }
    }
}

/// Adds to the log the version staged by a run that died after its commit. `fence`: of that run.
///
/// # Errors
/// Same as for [`LogCommit::put`], or if the staged text is missing and the log doesn't have it.
pub(super) fn finish(table: &TableStore<'_>, fence: u64, step: LogStep, lease: &dyn Lease) -> TableResult<()> {
    let key = manifest_log_key(table.slug, table.table, fence);
    let text = match table.small(&key)? {
        Some((staged, _)) => inflate(&staged).ok_or_else(|| broken(&key, "it can't be inflated"))?,
        None if step == LogStep::End => String::new(),
        None => {
            let version = if let LogStep::Append(version) = step { version } else { 0 };
            let logged = delta_version_key(table.slug, table.table, version);
            return match table.store.head(Bucket::Warehouse, &logged)? {
                Some(_) => Ok(()),
                None => Err(broken(&logged, "it is missing, and so is its staged version")),
            };
        }
    };
    LogCommit { step, text }.put(table, lease)
}

fn inflate(staged: &[u8]) -> Option<String> {
    let mut text = String::new();
    let inflated = zstd::stream::read::Decoder::with_buffer(staged).ok()?;
    inflated.take(VERSION_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn broken(key: &str, found: &str) -> TableError {
    TableError::Log { format: TableFormat::Delta, key: key.to_owned(), found: found.to_owned() }
}

fn put_version(table: &TableStore<'_>, version: u64, text: &[u8], lease: &dyn Lease) -> TableResult<()> {
    let key = delta_version_key(table.slug, table.table, version);
    let options = WriteOptions::leased(lease).with(Precondition::IfNoneMatch);
    match table.store.put(Bucket::Warehouse, &key, text, &options) {
        Ok(_) => Ok(()),
        Err(StoreError::PreconditionFailed { .. }) => match read_version(table, &key)? {
            Some(found) if found == text => Ok(()),
            _ => Err(broken(&key, "another program wrote it")),
        },
        Err(error) => Err(error.into()),
    }
}

fn read_version(table: &TableStore<'_>, key: &str) -> TableResult<Option<Vec<u8>>> {
    let object = match table.store.get(Bucket::Warehouse, key, None) {
        Ok(object) => object,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut bytes = Vec::new();
    let read = object.body.take(VERSION_BYTES_MAX).read_to_end(&mut bytes);
    let (bucket, key, operation) = (Bucket::Warehouse, key.to_owned(), "reading");
    read.map_err(|source| StoreError::Transient { bucket, key, operation, source })?;
    Ok(Some(bytes))
}

/// Deletes all of a log, the first version first: a reader finds the last version or an incomplete log, but never an
/// earlier version as if it were the last.
fn delete_log(table: &TableStore<'_>, lease: &dyn Lease) -> TableResult<()> {
    let listed = list_all(table.store, Bucket::Warehouse, &delta_log_prefix(table.slug, table.table))?;
    let keys: Vec<String> = listed.into_iter().map(|object| object.key).collect();
    if !keys.is_empty() {
        table.store.delete(Bucket::Warehouse, &keys, &WriteOptions::leased(lease))?;
    }
    Ok(())
}
