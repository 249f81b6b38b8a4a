//! Tables that the config no longer has: a clean run deletes what is left of them.

use std::collections::BTreeSet;

use super::RunRequest;
use super::failure::store_error;
use super::manifests;
use crate::domain::job::RunError;
use crate::domain::layout::{REJECTED_ROWS_TABLE, manifest_key, pipeline_prefix, rejects_prefix, table_prefix};
use crate::domain::limits::LIST_PAGE_KEYS_MAX;
use crate::ports::store::{Bucket, StoreResult, WriteOptions, list_all};

/// A table that is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dropped {
    pub table: String,
    /// Whole keys in the warehouse.
    keys: Vec<String>,
}

/// Finds them by their manifests, their folders and those of their rejects.
pub(super) fn find(request: &RunRequest<'_>) -> Result<Vec<Dropped>, RunError> {
    let (store, slug) = (request.store, request.slug());
    let mut names: BTreeSet<String> = manifests::tables(store, slug).map_err(store_error)?.into_iter().collect();
    let warehouse = pipeline_prefix(slug);
    names.extend(folders(request, &warehouse).map_err(store_error)?);
    names.remove(REJECTED_ROWS_TABLE);
    let rejects = folders(request, &format!("{warehouse}{REJECTED_ROWS_TABLE}/")).map_err(store_error)?;
    names.extend(rejects.iter().filter_map(|f| f.strip_prefix("table=")).map(str::to_owned));
    for mapping in &request.pipeline.mappings {
        names.remove(mapping.table.as_str());
    }
    names.into_iter().map(|table| with_keys(request, table).map_err(store_error)).collect()
}

fn with_keys(request: &RunRequest<'_>, table: String) -> StoreResult<Dropped> {
    let mut keys = Vec::new();
    for prefix in [table_prefix(request.slug(), &table), rejects_prefix(request.slug(), &table)] {
        keys.extend(list_all(request.store, Bucket::Warehouse, &prefix)?.into_iter().map(|o| o.key));
    }
    Ok(Dropped { table, keys })
}

/// The manifest goes first: from then on the table is none, and a later clean run finds by its folder what is left.
pub(super) fn delete(request: &RunRequest<'_>, dropped: &Dropped) -> Result<(), RunError> {
    let options = WriteOptions::leased(request.lease);
    let manifest = manifest_key(request.slug(), &dropped.table);
    request.store.delete(Bucket::Pipelines, &[manifest], &options).map_err(store_error)?;
    if dropped.keys.is_empty() {
        return Ok(());
    }
    request.store.delete(Bucket::Warehouse, &dropped.keys, &options).map_err(store_error)
}

/// The names of the folders right under `prefix`.
fn folders(request: &RunRequest<'_>, prefix: &str) -> StoreResult<Vec<String>> {
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = request.store.list(Bucket::Warehouse, prefix, Some('/'), after.as_deref(), LIST_PAGE_KEYS_MAX)?;
        let folder = |p: &String| Some(p.strip_prefix(prefix)?.trim_end_matches('/').to_owned());
        names.extend(page.prefixes.iter().filter_map(folder));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(names),
        }
    }
}
