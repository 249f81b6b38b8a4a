//! Deletes what is left of tables that the config no longer has, in clean runs.
//!
//! Invariant: deletes only keys from a manifest or with names that only Lakemill assigns; other files in the warehouse
//! belong to users.

use std::collections::BTreeSet;

use super::request::RunRequest;
use crate::domain::job::RunError;
use crate::domain::layout::{
    DELTA_LOG_FOLDER, ICEBERG_FOLDER, ICEBERG_HINT_NAME, REJECTED_ROWS_TABLE, manifest_key, manifest_objects_prefix,
    pipeline_prefix, rejects_prefix, table_prefix,
};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::engine::run_error::store_error;
use crate::pipelines::tables::tables;
use crate::ports::store::{Bucket, StoreResult, WriteOptions, list_all};

/// A table to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DroppedTable {
    pub table: String,
    /// Full keys in the warehouse.
    keys: Vec<String>,
}

/// Finds dropped tables by their manifests, folders and reject folders.
pub(super) fn find(request: &RunRequest<'_>) -> Result<Vec<DroppedTable>, RunError> {
    let (store, slug) = (request.store, request.slug());
    let known: BTreeSet<String> = tables(store, slug).map_err(store_error)?.into_iter().collect();
    let mut names = known.clone();
    let warehouse = pipeline_prefix(slug);
    names.extend(folders(request, &warehouse).map_err(store_error)?);
    names.remove(REJECTED_ROWS_TABLE);
    let rejects = folders(request, &format!("{warehouse}{REJECTED_ROWS_TABLE}/")).map_err(store_error)?;
    names.extend(rejects.iter().filter_map(|f| f.strip_prefix("table=")).map(str::to_owned));
    for mapping in &request.pipeline.mappings {
        names.remove(mapping.table.as_str());
    }
    let dropped: Result<Vec<DroppedTable>, RunError> =
        names.into_iter().map(|table| with_keys(request, table).map_err(store_error)).collect();
    Ok(dropped?.into_iter().filter(|d| known.contains(&d.table) || !d.keys.is_empty()).collect())
}

fn with_keys(request: &RunRequest<'_>, table: String) -> StoreResult<DroppedTable> {
    let mut keys = Vec::new();
    for prefix in [table_prefix(request.slug(), &table), rejects_prefix(request.slug(), &table)] {
        let listed = list_all(request.store, Bucket::Warehouse, &prefix)?;
        keys.extend(listed.into_iter().map(|o| o.key).filter(|key| is_ours(&key[prefix.len()..])));
    }
    Ok(DroppedTable { table, keys })
}

/// Whether a path in a table's folder is named by a run: `col=value/…/part-0a1b2c3d-0123456789abcdef.parquet`, or the
/// rejects file of a source; or as 0.1 named them, without the hash of the content.
fn is_ours(path: &str) -> bool {
    if let Some(log) = path.strip_prefix(DELTA_LOG_FOLDER) {
        return is_of_log(log);
    }
    if let Some(name) = path.strip_prefix(ICEBERG_FOLDER) {
        return is_of_iceberg(name);
    }
    let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
    let Some(stem) = name.strip_suffix(".parquet") else { return false };
    let is_hex = |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_part = stem.strip_prefix("part-").is_some_and(|name| match &name.split('-').collect::<Vec<_>>()[..] {
        [number] => number.len() >= 5 && is_number(number),
        [group, content] => is_hex(group, 8) && is_hex(content, 16),
        [group, content, number] => is_hex(group, 8) && is_hex(content, 16) && is_number(number),
        _ => false,
    });
    let source = stem.split_once('-').map_or(stem, |(source, content)| if is_hex(content, 16) { source } else { stem });
    let is_rejects = folders.is_none() && is_hex(source, 32);
    is_rejects || (is_part && folders.is_none_or(|f| f.split('/').all(|segment| segment.contains('='))))
}

/// Whether a name in the folder of a Delta log is named by a run.
fn is_of_log(name: &str) -> bool {
    let is_version = |text: &str| text.len() == 20 && text.bytes().all(|b| b.is_ascii_digit());
    let version = name.strip_suffix(".checkpoint.parquet").or_else(|| name.strip_suffix(".json"));
    name == "_last_checkpoint" || version.is_some_and(is_version)
}

/// Whether a name in the folder of Iceberg metadata is named by a run.
fn is_of_iceberg(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_hash = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let version = name.strip_prefix('v').and_then(|name| name.strip_suffix(".metadata.json"));
    let list = name.strip_prefix("snap-").and_then(|name| name.strip_suffix(".avro")?.split_once('-'));
    name == ICEBERG_HINT_NAME
        || version.is_some_and(is_number)
        || name.strip_suffix("-m0.avro").is_some_and(is_hash)
        || list.is_some_and(|(snapshot, hash)| is_number(snapshot) && is_hash(hash))
}

/// Deletes the manifest first: from then on the table does not exist, and a later clean run finds the rest by its
/// folder.
pub(super) fn delete(request: &RunRequest<'_>, dropped: &DroppedTable) -> Result<(), RunError> {
    let options = WriteOptions::leased(request.lease);
    let manifest = manifest_key(request.slug(), &dropped.table);
    request.store.delete(Bucket::Pipelines, &[manifest], &options).map_err(store_error)?;
    let objects = manifest_objects_prefix(request.slug(), &dropped.table);
    let objects = list_all(request.store, Bucket::Pipelines, &objects).map_err(store_error)?;
    let objects: Vec<String> = objects.into_iter().map(|object| object.key).collect();
    request.store.delete(Bucket::Pipelines, &objects, &options).map_err(store_error)?;
    if dropped.keys.is_empty() {
        return Ok(());
    }
    request.store.delete(Bucket::Warehouse, &dropped.keys, &options).map_err(store_error)
}

/// The names of the folders directly under `prefix`.
fn folders(request: &RunRequest<'_>, prefix: &str) -> StoreResult<Vec<String>> {
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = request.store.list(Bucket::Warehouse, prefix, Some('/'), after.as_deref(), LIST_PAGE_KEYS_MAX)?;
        let folder = |p: &String| Some(p.strip_prefix(prefix)?.strip_suffix('/')?.to_owned());
        // Folders without a name hold no table.
        names.extend(page.prefixes.iter().filter_map(folder).filter(|name| !name.is_empty()));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(names),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_assigned_by_runs_are_ours() {
        let rejects = format!("{}.parquet", "0af1".repeat(8));
        let content = format!("{}-0123456789abcdef.parquet", "0af1".repeat(8));
        assert!(is_ours(&content) && is_ours("d=1/part-0a1b2c3d-0123456789abcdef-12.parquet"));
        assert!(is_ours("part-0a1b2c3d-0123456789abcdef.parquet") && !is_ours("part-0a1b2c3d-0123.parquet"));
        for ours in ["part-00000.parquet", "d=1/part-123456.parquet", "a=/b=x y/part-00001.parquet", &rejects] {
            assert!(is_ours(ours), "{ours}");
        }
        for ours in ["00000000000000000010.json", "00000000000000000010.checkpoint.parquet", "_last_checkpoint"] {
            assert!(is_ours(&format!("_delta_log/{ours}")) && !is_ours(ours), "{ours}");
        }
        assert!(!is_ours("_delta_log/0.json") && !is_ours("_delta_log/notes.txt"));
        let hash = "0a1b2c3d".repeat(4);
        let metadata =
            ["v12.metadata.json", "version-hint.text", &format!("{hash}-m0.avro"), &format!("snap-3-{hash}.avro")];
        for ours in metadata {
            assert!(is_ours(&format!("metadata/{ours}")) && !is_ours(ours), "{ours}");
        }
        assert!(!is_ours("metadata/v.metadata.json") && !is_ours("metadata/00001-x.metadata.json"));
        for other in
            ["part-0.parquet", "chapter.txt", "src/part-00000.parquet", "a=1/notes.parquet", "part-0000x.parquet"]
        {
            assert!(!is_ours(other), "{other}");
        }
    }
}
