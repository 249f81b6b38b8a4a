//! Caches shards of sources. A shard is named by its content, so that an entry never expires.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::table_log::entries::SourceEntry;
use crate::domain::table_log::shards::{ReadShards, ShardRef};
use crate::pipelines::tables::{TableError, TableStore};

/// Most cached shards, of at most 4 MiB of JSON each.
const SHARDS_MAX: usize = 16;

type Entries = Vec<(String, SourceEntry)>;

#[derive(Default)]
struct State {
    /// By name, with the tick of the last use.
    shards: HashMap<String, (u64, Arc<Entries>)>,
    tick: u64,
}

/// Shards of sources, least recently used evicted first.
#[derive(Default)]
pub struct SourceShards(Mutex<State>);

/// Reads shards of a table through the cache.
pub struct CachedShardReader<'a> {
    cache: &'a SourceShards,
    table: &'a TableStore<'a>,
}

impl SourceShards {
    pub fn reader<'a>(&'a self, table: &'a TableStore<'a>) -> CachedShardReader<'a> {
        CachedShardReader { cache: self, table }
    }

    fn get(&self, name: &str) -> Option<Arc<Entries>> {
        let mut state = self.0.lock();
        state.tick += 1;
        let tick = state.tick;
        let (used, entries) = state.shards.get_mut(name)?;
        *used = tick;
        Some(Arc::clone(entries))
    }

    fn insert(&self, name: &str, entries: &Entries) {
        let mut state = self.0.lock();
        state.tick += 1;
        if state.shards.len() >= SHARDS_MAX {
            let oldest = state.shards.iter().min_by_key(|(_, (used, _))| *used).map(|(name, _)| name.clone());
            oldest.map(|name| state.shards.remove(&name));
        }
        let tick = state.tick;
        state.shards.insert(name.to_owned(), (tick, Arc::new(entries.clone())));
    }
}

impl ReadShards<String, SourceEntry> for CachedShardReader<'_> {
    type Error = TableError;

    fn read(&mut self, shard: &ShardRef<String>) -> Result<Entries, TableError> {
        if let Some(entries) = self.cache.get(&shard.name) {
            return Ok(entries.to_vec());
        }
        let entries = self.table.shard(shard)?;
        self.cache.insert(&shard.name, &entries);
        Ok(entries)
    }
}
