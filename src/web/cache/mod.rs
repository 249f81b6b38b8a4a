//! A disk cache of warehouse files for queries: bounded, with LRU eviction.
//!
//! Invariants:
//! - the total size, files being fetched included, never exceeds the limit;
//! - a file gets its name only once it is complete and has the hash that the manifest names;
//! - a pinned file stays until its query ends. A query pins all its files in one step, or doesn't wait while it holds pins,
//!   so that queries never deadlock.
//!
//! Must not: keep files across a reboot that may not have reached the disk ([`slot`] deletes them).

mod fetch;
pub mod parsed;
mod pool;
mod slot;
mod staged;
mod types;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::ports::ObjectStore;
use crate::ports::store::Bucket;

use pool::{PooledTable, StagedTablePool};
use slot::Slot;
use types::Name;

pub use pool::StagedTableKey;
pub use staged::StagedTable;
pub use types::{CacheError, Deadline, RequestedFile};

/// Concurrent fetches of a process.
const FETCHES_MAX: usize = 16;
/// Concurrent fetches of a query.
const FETCHES_OF_QUERY: usize = 8;
/// How often a waiting query checks its deadline.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

/// How a query waits if the cache is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheWait {
    /// Waits. Not allowed while the query holds pins.
    Block,
    /// Fails with [`CacheError::Busy`].
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Absent,
    Fetching,
    Present,
}

#[derive(Debug)]
struct Entry {
    presence: Presence,
    pins: u32,
    used: u64,
}

#[derive(Debug, Default)]
struct State {
    files: HashMap<Name, Entry>,
    /// Size of all files, in bytes.
    total: u64,
    /// Size of the pinned files.
    pinned: u64,
    fetching: usize,
    /// Incremented with each use.
    tick: u64,
    pool: StagedTablePool,
}

/// The cache.
pub struct Cache {
    slot: Slot,
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
    remover: OnceLock<Option<SyncSender<Vec<PooledTable>>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Usage of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Size of all files, those being fetched included.
    pub bytes: u64,
    pub bytes_max: u64,
    /// Requested files that were present, since the start.
    pub hits: u64,
    /// Requested files that were fetched.
    pub misses: u64,
}

/// The pins of a query, released when dropped.
pub struct Pins {
    cache: Arc<Cache>,
    names: Vec<Name>,
}

impl Cache {
    /// Takes a slot in `folder` (created if missing), with the files that an earlier process left in it; deletes the
    /// files of other dead processes.
    ///
    /// # Errors
    /// The folder can't be created or read, or too many processes use it.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<Arc<Self>> {
        let slot = Slot::take(folder)?;
        let mut state = State::default();
        for (name, _) in slot.files()? {
            state.tick += 1;
            state.total += name.1;
            state.files.insert(name, Entry { presence: Presence::Present, pins: 0, used: state.tick });
        }
        let (state, changed, remover) = (Mutex::new(state), Condvar::new(), OnceLock::new());
        let [hits, misses] = [const { AtomicU64::new(0) }; 2];
        let cache = Self { slot, bytes_max, state, changed, remover, hits, misses };
        cache.evict(&mut cache.state());
        Ok(Arc::new(cache))
    }

    pub fn usage(&self) -> Usage {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bytes = self.state().total;
        Usage { bytes, bytes_max: self.bytes_max, hits: read(&self.hits), misses: read(&self.misses) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits for a change, up to [`CHECK_PERIOD`].
    fn wait(&self, state: &mut MutexGuard<'_, State>) {
        self.changed.wait_for(state, CHECK_PERIOD);
    }

    /// Provides warehouse files at their paths: links if the store supports them, else files of the cache. Cached files
    /// stay unchanged while the pins are held; links do so forever.
    ///
    /// # Errors
    /// [`CacheError`]; some files may exist all the same.
    pub fn provide(
        self: &Arc<Self>,
        store: &dyn ObjectStore,
        wanted: &[RequestedFile],
        deadline: Deadline<'_>,
    ) -> Result<Pins, CacheError> {
        let pins = self.provide_each(store, &[wanted], deadline, CacheWait::Block)?;
        Ok(pins.into_iter().next().unwrap_or_else(|| Pins { cache: Arc::clone(self), names: Vec::new() }))
    }

    /// Like [`Cache::provide`], for all groups in one step, with pins for each.
    ///
    /// # Errors
    /// [`CacheError`]; some files may exist all the same.
    pub fn provide_each(
        self: &Arc<Self>,
        store: &dyn ObjectStore,
        groups: &[&[RequestedFile]],
        deadline: Deadline<'_>,
        room: CacheWait,
    ) -> Result<Vec<Pins>, CacheError> {
        let mut through = BTreeMap::new();
        let mut names = vec![BTreeSet::new(); groups.len()];
        for (group, file) in groups.iter().enumerate().flat_map(|(at, files)| files.iter().map(move |file| (at, file)))
        {
            match store.link(Bucket::Warehouse, &file.key, None, &file.into) {
                Ok(true) => fetch::check_size(file)?,
                Ok(false) => {
                    names[group].insert(file.name());
                    through.entry(file.name()).or_insert_with(Vec::new).push(file);
                }
                Err(error) => return Err(fetch::cache_error(&file.key, error)),
            }
            deadline.check()?;
        }
        let pins = self.pin(names, deadline, room)?;
        self.fetch_all(store, &through, deadline)?;
        for (name, files) in &through {
            for file in files {
                self.link(store, name, file, deadline)?;
            }
        }
        Ok(pins)
    }

    /// Makes room for all files in one step. Pooled tables are deleted before the query waits.
    fn pin(
        self: &Arc<Self>,
        groups: Vec<BTreeSet<Name>>,
        deadline: Deadline<'_>,
        room: CacheWait,
    ) -> Result<Vec<Pins>, CacheError> {
        let names: BTreeSet<&Name> = groups.iter().flatten().collect();
        let needed = names.iter().fold(0_u64, |sum, name| sum.saturating_add(name.1));
        if needed > self.bytes_max {
            return Err(CacheError::TooLarge { needed, bytes_max: self.bytes_max });
        }
        let mut state = self.state();
        loop {
            let free = |name: &&&Name| state.files.get(**name).is_none_or(|entry| entry.pins == 0);
            let more: u64 = names.iter().filter(free).map(|name| name.1).sum();
            if state.pinned + more <= self.bytes_max {
                break;
            }
            if let Some(table) = state.pool.evict_with_files() {
                drop(state);
                self.remove(vec![table]);
                state = self.state();
                continue;
            }
            match deadline.check() {
                Err(CacheError::TimedOut) => return Err(CacheError::Busy),
                Ok(()) if room == CacheWait::Fail => return Err(CacheError::Busy),
                outcome => outcome?,
            }
            self.wait(&mut state);
        }
        for name in groups.iter().flatten() {
            state.pin(name);
        }
        self.evict(&mut state);
        drop(state);
        let pins = |names: BTreeSet<Name>| Pins { cache: Arc::clone(self), names: names.into_iter().collect() };
        Ok(groups.into_iter().map(pins).collect())
    }

    /// Deletes unpinned files until the rest fits.
    fn evict(&self, state: &mut State) {
        if state.total <= self.bytes_max {
            return;
        }
        let mut unpinned: Vec<(u64, Name)> = state
            .files
            .iter()
            .filter(|(_, entry)| entry.pins == 0 && entry.presence == Presence::Present)
            .map(|(name, entry)| (entry.used, name.clone()))
            .collect();
        unpinned.sort_unstable();
        for (_, name) in unpinned {
            if state.total <= self.bytes_max {
                return;
            }
            self.slot.remove(&name);
            state.forget(&name);
        }
    }

    fn fetch_all(
        &self,
        store: &dyn ObjectStore,
        wanted: &BTreeMap<Name, Vec<&RequestedFile>>,
        deadline: Deadline<'_>,
    ) -> Result<(), CacheError> {
        let missing: Vec<(&Name, &RequestedFile)> = {
            let state = self.state();
            let absent = |name: &Name| state.files.get(name).is_none_or(|entry| entry.presence != Presence::Present);
            let wanted = wanted.iter().filter_map(|(name, files)| Some((name, *files.first()?)));
            wanted.filter(|(name, _)| absent(name)).collect()
        };
        self.misses.fetch_add(missing.len() as u64, Ordering::Relaxed);
        self.hits.fetch_add((wanted.len() - missing.len()) as u64, Ordering::Relaxed);
        if missing.is_empty() {
            return Ok(());
        }
        let (next, failed) = (Mutex::new(missing.iter()), Mutex::new(None));
        let lock_failed = || failed.lock();
        let work = || {
            while lock_failed().is_none() {
                let file = next.lock().next();
                let Some((name, file)) = file else { return };
                if let Err(error) = self.ensure(store, name, file, deadline) {
                    lock_failed().get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..FETCHES_OF_QUERY.min(missing.len()) {
                // If spawning fails, this thread fetches more.
                let _ = std::thread::Builder::new().name("fetch".to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
        let failed = lock_failed().take();
        failed.map_or(Ok(()), Err)
    }

    /// Fetches a pinned file, unless it is present or being fetched.
    fn ensure(
        &self,
        store: &dyn ObjectStore,
        name: &Name,
        file: &RequestedFile,
        deadline: Deadline<'_>,
    ) -> Result<(), CacheError> {
        let mut state = self.state();
        loop {
            deadline.check()?;
            let busy = state.fetching >= FETCHES_MAX;
            match state.files.get_mut(name) {
                Some(entry) if entry.presence == Presence::Present => return Ok(()),
                Some(entry) if entry.presence == Presence::Absent && !busy => {
                    entry.presence = Presence::Fetching;
                    state.fetching += 1;
                    break;
                }
                Some(_) => {}
                // Pinned files always have an entry.
                None => return Err(CacheError::Gone { key: file.key.clone() }),
            }
            self.wait(&mut state);
        }
        drop(state);
        let fetching = Fetching { cache: self, name };
        fetch::fetch(store, file, &self.slot, name, deadline)?;
        fetching.done();
        Ok(())
    }

    /// Links a cached file to its path. Fetches it again if it was deleted from the folder.
    fn link(
        &self,
        store: &dyn ObjectStore,
        name: &Name,
        file: &RequestedFile,
        deadline: Deadline<'_>,
    ) -> Result<(), CacheError> {
        for _ in 0..2 {
            if self.slot.link(name, &file.into)? {
                return Ok(());
            }
            if let Some(entry) = self.state().files.get_mut(name).filter(|e| e.presence == Presence::Present) {
                entry.presence = Presence::Absent;
            }
            self.ensure(store, name, file, deadline)?;
        }
        let source = io::Error::other("the file is deleted as soon as it is fetched");
        Err(CacheError::Io { what: "linking", path: self.slot.path(name), source })
    }
}

impl State {
    fn pin(&mut self, name: &Name) {
        self.tick += 1;
        let used = self.tick;
        if !self.files.contains_key(name) {
            self.total += name.1;
            self.files.insert(name.clone(), Entry { presence: Presence::Absent, pins: 0, used });
        }
        if let Some(entry) = self.files.get_mut(name) {
            entry.used = used;
            entry.pins += 1;
            self.pinned += if entry.pins == 1 { name.1 } else { 0 };
        }
    }

    fn unpin(&mut self, name: &Name) {
        let Some(entry) = self.files.get_mut(name) else { return };
        entry.pins -= 1;
        if entry.pins == 0 {
            self.pinned -= name.1;
            if entry.presence == Presence::Absent {
                self.forget(name);
            }
        }
    }

    fn forget(&mut self, name: &Name) {
        if self.files.remove(name).is_some() {
            self.total -= name.1;
        }
    }
}

/// A fetch in progress; notifies waiting queries when it ends, even by a panic.
struct Fetching<'a> {
    cache: &'a Cache,
    name: &'a Name,
}

impl Fetching<'_> {
    fn done(self) {
        if let Some(entry) = self.cache.state().files.get_mut(self.name) {
            entry.presence = Presence::Present;
        }
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        state.fetching -= 1;
        if let Some(entry) = state.files.get_mut(self.name).filter(|e| e.presence == Presence::Fetching) {
            entry.presence = Presence::Absent;
        }
        drop(state);
        self.cache.changed.notify_all();
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let mut state = self.cache.state();
        for name in &self.names {
            state.unpin(name);
        }
        drop(state);
        self.cache.changed.notify_all();
    }
}
