//! Staged tables: taken from the pool, returned, deleted.
//!
//! Invariant: files are unpinned only once they are deleted, so that all bytes on the disk are counted.
//!
//! Must not: delete files with the lock held, or make a query wait for a deletion that it doesn't need.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::pool::{PooledTable, StagedTableKey};
use super::types::Name;
use super::{Cache, Pins};
use crate::sql::sandbox::StagingFolder;

/// Maximum number of deletions queued for the background thread.
const REMOVALS_MAX: usize = 64;
/// Interval of its search for expired tables.
const EXPIRE_PERIOD: Duration = Duration::from_secs(5);

/// The files of a table in a folder, deleted when dropped.
pub struct StagedTable {
    /// `None` if it isn't reusable.
    key: Option<StagedTableKey>,
    folder: StagingFolder,
    /// Dropped after the folder.
    pins: Pins,
    files: usize,
    created: Instant,
}

impl StagedTable {
    /// `folder` has the files.
    pub fn new(key: Option<StagedTableKey>, folder: StagingFolder, pins: Pins, files: usize) -> Self {
        Self { key, folder, pins, files, created: Instant::now() }
    }

    /// Prevents reuse by other queries.
    pub fn not_reusable(self) -> Self {
        Self { key: None, ..self }
    }

    /// The folder that contains the table's folder.
    pub fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(super) fn of(pooled: PooledTable, pins: impl FnOnce(Vec<Name>) -> Pins) -> Self {
        let PooledTable { key, folder, names, files, created } = pooled;
        Self { key: Some(key), folder, pins: pins(names), files, created }
    }

    /// Converts it for the pool; `None`, and deletes it, if it isn't reusable.
    pub(super) fn into_pooled(self) -> Option<PooledTable> {
        let Self { key, folder, mut pins, files, created } = self;
        match key {
            Some(key) => Some(PooledTable { key, folder, names: std::mem::take(&mut pins.names), files, created }),
            None => {
                drop(folder);
                drop(pins);
                None
            }
        }
    }
}

impl Cache {
    /// Takes a pooled table of this version. Other versions are deleted.
    pub fn take_staged(self: &Arc<Self>, key: &StagedTableKey) -> Option<StagedTable> {
        let (taken, gone) = self.state().pool.take(key, Instant::now());
        self.remove_soon(gone);
        let taken = taken?;
        Some(StagedTable::of(taken, |names| Pins { cache: Arc::clone(self), names }))
    }

    /// Returns a table to the pool for later queries. It must be unused, with its files back in its folder.
    pub fn return_staged(self: &Arc<Self>, table: StagedTable) {
        let Some(pooled) = table.into_pooled() else { return };
        let gone = self.state().pool.add(pooled, Instant::now());
        // Waiting queries may evict it to make room.
        self.changed.notify_all();
        self.remove_soon(gone);
        // The thread deletes it once it expires.
        self.remover();
    }

    /// Deletes tables, then unpins their files.
    pub(super) fn remove(&self, tables: Vec<PooledTable>) {
        for table in tables {
            let names = table.remove();
            let mut state = self.state();
            names.iter().for_each(|name| state.unpin(name));
        }
        self.changed.notify_all();
    }

    fn remove_soon(self: &Arc<Self>, tables: Vec<PooledTable>) {
        if tables.is_empty() {
            return;
        }
        let here = match self.remover() {
            Some(remover) => remover.try_send(tables).err().map(|error| match error {
                TrySendError::Full(tables) | TrySendError::Disconnected(tables) => tables,
            }),
            None => Some(tables),
        };
        if let Some(tables) = here {
            self.remove(tables);
        }
    }

    /// The queue of the background thread, which ends with the cache; `None` if it can't be started.
    fn remover(self: &Arc<Self>) -> Option<&SyncSender<Vec<PooledTable>>> {
        let start = || {
            let (send, receive) = sync_channel(REMOVALS_MAX);
            let cache = Arc::downgrade(self);
            let thread = std::thread::Builder::new().name("query-tables".to_owned());
            thread.spawn(move || remove_all(&cache, &receive)).is_ok().then_some(send)
        };
        self.remover.get_or_init(start).as_ref()
    }
}

fn remove_all(cache: &Weak<Cache>, removals: &Receiver<Vec<PooledTable>>) {
    loop {
        let tables = match removals.recv_timeout(EXPIRE_PERIOD) {
            Ok(tables) => tables,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(cache) = cache.upgrade() else { return };
        cache.remove(tables);
        let old = cache.state().pool.expire(Instant::now());
        cache.remove(old);
    }
}
