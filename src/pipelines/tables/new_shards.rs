//! Reads the shards of a commit that isn't stored yet.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use super::{TableError, TableResult, TableStore};
use crate::domain::layout::manifest_shard_key;
use crate::domain::table_log::shards::{self, ReadShards, ShardKey, ShardRef};

/// Reads shards of which some are not stored yet.
pub(super) struct NewShards<'a> {
    table: TableStore<'a>,
    new: HashMap<&'a str, &'a [u8]>,
}

impl<'a> NewShards<'a> {
    /// `shards`: the new ones, by name, with their bytes.
    pub(super) fn new(table: TableStore<'a>, shards: &'a [(String, Vec<u8>)]) -> Self {
        let new = shards.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
        Self { table, new }
    }
}

impl<K: ShardKey, V: DeserializeOwned> ReadShards<K, V> for NewShards<'_> {
    type Error = TableError;

    fn read(&mut self, shard: &ShardRef<K>) -> TableResult<Vec<(K, V)>> {
        match self.new.get(shard.name.as_str()) {
            Some(bytes) => shards::decode(shard, bytes).map_err(|error| TableError::Shard {
                key: manifest_shard_key(self.table.slug, self.table.table, &shard.name),
                error,
            }),
            None => self.table.shard(shard),
        }
    }
}
