//! A pool of staged tables, reused by later queries of the same table version: creating hundreds of folders and links costs
//! more than most queries.
//!
//! Invariants:
//! - one query uses a staged table at a time, until its process is dead;
//! - a staged table's files are pinned, so that the cache counts them;
//! - the pool is bounded in tables, files and age, since links keep the bytes of objects that the store deleted. Its
//!   tables are deleted first when a query needs room.
//!
//! Must not: give a table to a query of another version.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::types::Name;
use crate::sql::sandbox::StagingFolder;

/// Maximum number of pooled copies of a table version; equals the number of concurrent queries.
const COPIES_MAX: usize = 4;
/// Maximum number of pooled tables.
const TABLES_MAX: usize = 32;
/// Maximum number of files of all pooled tables.
const FILES_MAX: usize = 40_000;
/// Longest time from staging in which a table is reused.
pub(super) const AGE_MAX: Duration = Duration::from_secs(300);

/// Identifies the files of a staged table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedTableKey {
    /// Pipeline and table.
    pub table: String,
    /// Version of the table's files.
    pub state: String,
}

/// A table in the pool. Its names are pinned; the caller that removes it unpins them.
#[derive(Debug)]
pub(super) struct PooledTable {
    pub(super) key: StagedTableKey,
    pub(super) folder: StagingFolder,
    pub(super) names: Vec<Name>,
    pub(super) files: usize,
    pub(super) created: Instant,
}

impl PooledTable {
    /// Deletes the files; the returned names are still pinned.
    pub(super) fn remove(self) -> Vec<Name> {
        let Self { folder, names, .. } = self;
        drop(folder);
        names
    }
}

/// The pool, least recently used first.
#[derive(Debug, Default)]
pub(super) struct StagedTablePool {
    tables: VecDeque<PooledTable>,
    files: usize,
}

impl StagedTablePool {
    /// Takes a table of this version; also returns tables to delete: other versions, and expired ones.
    pub(super) fn take(&mut self, key: &StagedTableKey, now: Instant) -> (Option<PooledTable>, Vec<PooledTable>) {
        let mut gone = self.expire(now);
        gone.extend(self.remove(|table| table.key.table == key.table && table.key.state != key.state));
        let at = self.tables.iter().rposition(|table| table.key == *key);
        (at.and_then(|at| self.remove_at(at)), gone)
    }

    /// Adds a table; returns those to delete, possibly itself.
    pub(super) fn add(&mut self, table: PooledTable, now: Instant) -> Vec<PooledTable> {
        let (key, files) = (table.key.clone(), table.files);
        self.files += files;
        self.tables.push_back(table);
        let mut gone = self.expire(now);
        if self.tables.iter().filter(|table| table.key == key).count() > COPIES_MAX {
            let at = self.tables.iter().position(|table| table.key == key);
            gone.extend(at.and_then(|at| self.remove_at(at)));
        }
        while self.tables.len() > TABLES_MAX || self.files > FILES_MAX {
            let Some(table) = self.remove_at(0) else { break };
            gone.push(table);
        }
        gone
    }

    /// Removes and returns the least recently used table with files of the cache.
    pub(super) fn evict_with_files(&mut self) -> Option<PooledTable> {
        let at = self.tables.iter().position(|table| !table.names.is_empty())?;
        self.remove_at(at)
    }

    /// Takes the expired tables.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<PooledTable> {
        self.remove(|table| now.saturating_duration_since(table.created) >= AGE_MAX)
    }

    fn remove(&mut self, which: impl Fn(&PooledTable) -> bool) -> Vec<PooledTable> {
        let (gone, kept): (Vec<_>, Vec<_>) = self.tables.drain(..).partition(which);
        self.tables = kept.into();
        self.files -= gone.iter().map(|table| table.files).sum::<usize>();
        gone
    }

    fn remove_at(&mut self, at: usize) -> Option<PooledTable> {
        let table = self.tables.remove(at)?;
        self.files -= table.files;
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(home: &std::path::Path, table: &str, state: &str, files: usize, created: Instant) -> PooledTable {
        let folder = home.join(uuid::Uuid::new_v4().to_string());
        std::fs::create_dir(&folder).unwrap();
        let names = if table.starts_with("cached") { vec![Name(state.to_owned(), 1)] } else { Vec::new() };
        let key = StagedTableKey { table: table.to_owned(), state: state.to_owned() };
        PooledTable { key, folder: StagingFolder::new(folder), names, files, created }
    }

    fn key(table: &str, state: &str) -> StagedTableKey {
        StagedTableKey { table: table.to_owned(), state: state.to_owned() }
    }

    fn folders(home: &std::path::Path) -> usize {
        std::fs::read_dir(home).unwrap().count()
    }

    #[test]
    fn pooled_table_is_taken_once_and_only_by_its_version() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut pool = StagedTablePool::default();
        assert!(pool.add(pooled(home.path(), "p/t", "1", 3, now), now).is_empty());
        assert!(pool.add(pooled(home.path(), "p/u", "1", 3, now), now).is_empty());
        let (taken, gone) = pool.take(&key("p/t", "1"), now);
        assert!(taken.is_some() && gone.is_empty());
        assert!(pool.take(&key("p/t", "1"), now).0.is_none(), "another query has it");
        assert!(pool.add(taken.unwrap(), now).is_empty());
        let (taken, gone) = pool.take(&key("p/t", "2"), now);
        assert!(taken.is_none() && gone.len() == 1, "the older state goes");
        drop(gone);
        assert_eq!((folders(home.path()), pool.tables.len(), pool.files), (1, 1, 3));
    }

    #[test]
    fn pool_is_bounded_and_evicts_the_least_recently_used() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut pool = StagedTablePool::default();
        for nth in 0..=COPIES_MAX {
            let gone = pool.add(pooled(home.path(), "p/t", "1", 1, now), now);
            assert_eq!(gone.len(), usize::from(nth == COPIES_MAX));
        }
        let mut pool = StagedTablePool::default();
        for nth in 0..TABLES_MAX + 3 {
            let gone = pool.add(pooled(home.path(), &format!("p/{nth}"), "1", 1, now), now);
            let oldest = (nth >= TABLES_MAX).then(|| format!("p/{}", nth - TABLES_MAX));
            assert_eq!(gone.first().map(|table| table.key.table.clone()), oldest);
        }
        let gone = pool.add(pooled(home.path(), "p/large", "1", FILES_MAX - 1, now), now);
        assert_eq!((gone.len(), pool.tables.len()), (TABLES_MAX - 1, 2));
        let gone = pool.add(pooled(home.path(), "p/larger", "1", FILES_MAX + 1, now), now);
        assert_eq!((gone.len(), pool.tables.len(), pool.files), (3, 0, 0), "itself too");
    }

    #[test]
    fn expired_tables_are_not_reused() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut pool = StagedTablePool::default();
        pool.add(pooled(home.path(), "p/t", "1", 1, now), now);
        let (taken, gone) = pool.take(&key("p/t", "1"), now + AGE_MAX);
        assert!(taken.is_none() && gone.len() == 1);
        assert!(pool.expire(now + AGE_MAX).is_empty());
    }

    #[test]
    fn room_is_made_only_by_tables_with_cached_files() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut pool = StagedTablePool::default();
        pool.add(pooled(home.path(), "p/linked", "1", 1, now), now);
        pool.add(pooled(home.path(), "cached/t", "1", 1, now), now);
        assert_eq!(pool.evict_with_files().map(|table| table.key.table), Some("cached/t".to_owned()));
        assert!(pool.evict_with_files().is_none());
    }
}
