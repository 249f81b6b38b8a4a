//! Manifests of copied pipelines: a copied source has another tag.

use super::{Maps, TableError, TableResult, TableStore};
use crate::domain::layout::{manifest_key, manifest_retired_key, manifest_shard_key};
use crate::domain::table_log::entries::SourceEntry;
use crate::domain::table_log::root::Root;
use crate::domain::table_log::shards::{ShardRef, ShardWriter};
use crate::ports::store::{Bucket, WriteOptions};

/// A tag that no object has.
const NO_TAG: &str = "none";

/// Stores a root whose other objects were copied, with the tags of the copied sources. `tag` returns the present tag of a
/// source if it has the bytes that the entry describes; others get a tag that no object has, so that the next run reads
/// them. A root that can't be used is stored unchanged: the next run rebuilds the table.
///
/// `is_foreign`: the files come from outside; see [`Root::is_foreign`].
///
/// # Errors
/// If the store fails, or a shard doesn't match the root.
pub fn put_retagged(
    table: &TableStore<'_>,
    json: &[u8],
    is_foreign: bool,
    options: &WriteOptions<'_>,
    tag: impl Fn(&str, &SourceEntry) -> Option<String>,
) -> TableResult<()> {
    let key = manifest_key(table.slug, table.table);
    let Ok(mut root) = Root::parse(json) else {
        table.store.put(Bucket::Pipelines, &key, json, options)?;
        return Ok(());
    };
    let old: Vec<String> = root.sources.iter().map(|shard| shard.name.clone()).collect();
    let maps = Maps::of(Some(&root));
    let mut sink = |shard: &ShardRef<String>, bytes: Vec<u8>| {
        let key = manifest_shard_key(table.slug, table.table, &shard.name);
        table.store.put(Bucket::Pipelines, &key, &bytes, options).map(drop).map_err(TableError::from)
    };
    let (mut writer, mut shards, mut reader) = (ShardWriter::new(), Vec::new(), table.reader());
    for entry in maps.sources.entries(&mut reader) {
        let (source, mut entry) = entry?;
        entry.etag = Some(tag(&source, &entry).unwrap_or_else(|| NO_TAG.to_owned()));
        writer.push(&(source, entry), &mut shards, &mut sink)?;
    }
    writer.end(&mut shards, &mut sink)?;
    root.sources = shards;
    root.is_foreign |= is_foreign;
    if is_foreign {
        // An archive may hold another state of the log: the next run recreates it.
        root.delta = None;
        if let Some(iceberg) = &mut root.iceberg {
            iceberg.is_stale = true;
        }
    }
    table.store.put(Bucket::Pipelines, &key, &root.to_json(), options)?;
    let unnamed = old.into_iter().filter(|name| root.sources.iter().all(|shard| shard.name != *name));
    match root.retained.last() {
        None => {
            let keys: Vec<String> = unnamed.map(|name| manifest_shard_key(table.slug, table.table, &name)).collect();
            table.store.delete(Bucket::Pipelines, &keys, options)?;
        }
        // Earlier commits may need them.
        Some(newest) => {
            let mut retired = table.retired(newest)?;
            retired.shards.extend(unnamed);
            let json = serde_json::to_vec(&retired).unwrap_or_default();
            let key = manifest_retired_key(table.slug, table.table, newest.sequence);
            table.store.put(Bucket::Pipelines, &key, &json, options)?;
        }
    }
    Ok(())
}
