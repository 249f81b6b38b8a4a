//! Deletes remains of tables that the config no longer has, in clean runs.
//!
//! Invariant: deletes only keys from a manifest or with names that only Lakemill assigns; other files in the warehouse
//! belong to users.

use std::collections::BTreeSet;

use super::request::RunRequest;
use crate::domain::job::RunError;
use crate::domain::layout::{
    REJECTED_ROWS_TABLE, is_table_object, manifest_key, manifest_objects_prefix, pipeline_prefix, rejects_prefix,
    table_prefix,
};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::engine::run_error::store_error;
use crate::pipelines::tables::{remove_from_catalog, tables};
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
        keys.extend(listed.into_iter().map(|o| o.key).filter(|key| is_table_object(&key[prefix.len()..])));
    }
    Ok(DroppedTable { table, keys })
}

/// Deletes the manifest first: from then on the table does not exist, and a later clean run finds the rest by its
/// folder.
pub(super) fn delete(request: &RunRequest<'_>, dropped: &DroppedTable) -> Result<(), RunError> {
    let options = WriteOptions::leased(request.lease);
    if let Err(error) = remove_from_catalog(&request.table(&dropped.table)) {
        tracing::warn!(table = dropped.table, %error, "dropped table stays in the Iceberg catalog; remove it there");
    }
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
