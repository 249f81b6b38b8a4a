//! Compares a table's Delta log with its manifest.
//!
//! Reads the versions since the last checkpoint. A checkpoint is made from the manifest and not read.
//!
//! Must not: write anything.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead, BufReader};

use serde::Deserialize;

use super::log_fault::LogFault;
use super::{Maps, TableError, TableResult, TableStore};
use crate::domain::delta::encoded_path;
use crate::domain::layout::{delta_log_prefix, delta_version_key};
use crate::domain::table_log::root::Root;
use crate::ports::store::{Bucket, StoreError, list_all};

#[derive(Deserialize)]
struct Action {
    add: Option<FileOf>,
    remove: Option<FileOf>,
    txn: Option<Transaction>,
}

#[derive(Deserialize)]
struct FileOf {
    path: String,
    #[serde(default)]
    size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transaction {
    app_id: String,
    version: u64,
}

/// The effect of versions on files, by path: the size of an added file, `None` for a removed one.
#[derive(Default)]
struct ReplayedFiles {
    files: HashMap<String, Option<u64>>,
    /// The sequence of the last commit.
    sequence: u64,
}

/// The first difference between the log and the manifest.
///
/// # Errors
/// If the store fails.
pub(super) fn first_fault(table: &TableStore<'_>, root: &Root) -> TableResult<Option<LogFault>> {
    let Some(log) = &root.delta else { return Ok(None) };
    let prefix = delta_log_prefix(table.slug, table.table);
    let listed = list_all(table.store, Bucket::Warehouse, &prefix)?;
    let named = |suffix: &str| -> BTreeSet<u64> {
        let number = |key: &str| key.strip_prefix(&prefix)?.strip_suffix(suffix)?.parse::<u64>().ok();
        listed.iter().filter_map(|object| number(&object.key)).collect()
    };
    let (versions, checkpoints) = (named(".json"), named(".checkpoint.parquet"));
    let key = |version| delta_version_key(table.slug, table.table, version);
    let fault = |version, found: String| Ok(Some(LogFault { key: key(version), is_missing: false, found }));
    if let Some(later) = versions.range(log.version + 1..).next() {
        return fault(*later, "another program wrote it".into());
    }
    let checkpoint = checkpoints.range(..=log.version).next_back().copied();
    let first = checkpoint.map_or(0, |version| version + 1);
    if let Some(missing) = (first..=log.version).find(|version| !versions.contains(version)) {
        return Ok(Some(LogFault { key: key(missing), is_missing: true, found: String::new() }));
    }
    let mut replayed = ReplayedFiles::default();
    for version in first..=log.version {
        if let Err(found) = replayed.add(table, &key(version), &log.id)? {
            return fault(version, found);
        }
    }
    if first <= log.version && replayed.sequence != root.sequence {
        let found = format!("it belongs to commit {}, expected {}", replayed.sequence, root.sequence);
        return fault(log.version, found);
    }
    let mut wrong = None;
    Maps::of(Some(root)).groups.visit(&mut table.reader(), |_, group| {
        for file in &group.files {
            let path = encoded_path(table.table, &file.key);
            let found = match replayed.files.remove(&path) {
                Some(Some(size)) if size == file.size => continue,
                Some(Some(size)) => format!("`{path}` has {size} bytes, expected {}", file.size),
                Some(None) => format!("`{path}` is removed, and the table has it"),
                None if checkpoint.is_some() => continue,
                None => format!("`{path}` is missing"),
            };
            wrong.get_or_insert(found);
        }
        Ok::<_, TableError>(())
    })?;
    let extra = replayed.files.into_iter().filter(|(_, size)| size.is_some()).map(|(path, _)| path).min();
    let wrong = wrong.or_else(|| extra.map(|path| format!("`{path}` is added, and the table doesn't have it")));
    wrong.map_or(Ok(None), |found| fault(log.version, found))
}

impl ReplayedFiles {
    /// Applies a version. The inner error says why it can't be applied.
    fn add(&mut self, table: &TableStore<'_>, key: &str, id: &str) -> TableResult<Result<(), String>> {
        let body = match table.store.get(Bucket::Warehouse, key, None) {
            Ok(object) => object.body,
            Err(StoreError::NotFound { .. }) => return Ok(Err("it was deleted meanwhile".into())),
            Err(error) => return Err(error.into()),
        };
        for line in BufReader::new(body).lines() {
            let (bucket, operation) = (Bucket::Warehouse, "reading");
            let failed = |source| StoreError::Transient { bucket, key: key.to_owned(), operation, source };
            let action: Action = match serde_json::from_str(&line.map_err(failed)?) {
                Ok(action) => action,
                Err(error) => return Ok(Err(format!("it isn't a valid version of the log: {error}"))),
            };
            self.files.extend(action.add.map(|file| (file.path, Some(file.size))));
            self.files.extend(action.remove.map(|file| (file.path, None)));
            if let Some(txn) = action.txn.filter(|txn| txn.app_id == id) {
                self.sequence = txn.version;
            }
        }
        Ok(Ok(()))
    }
}
