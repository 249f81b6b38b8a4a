//! Files of the warehouse on this machine's disk, for queries to read: by tag, bounded, the least recently used out.
//!
//! Invariants:
//! - all files together, those that are still being fetched included, are never more than the bound;
//! - a file takes its name only once it has all its bytes, under the tag that was asked for;
//! - a file that a query has pinned stays until the query is over. A query pins all its files in one step, or waits for
//!   nothing while it holds some, so that two never wait for each other.
//!
//! Must not: outlive a restart of the machine with files that may not have reached the disk ([`slot`] sees to it).

mod fetch;
mod keep;
pub mod parsed;
mod slot;
mod trees;

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::domain::digest::sha256_hex;
use crate::ports::ObjectStore;
use crate::ports::store::{Bucket, ETag, StoreError};

use slot::Slot;
use trees::{Idle, Idles};
pub use trees::{Tree, TreeKey};

/// Files that one process fetches at a time, for all its queries together.
const FETCHES_MAX: usize = 16;
/// Files that are fetched at a time for one query.
const FETCHES_OF_QUERY: usize = 8;
/// Pause between two looks at whether a query that waits for a file was ended.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A file that a query is going to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub key: String,
    pub etag: ETag,
    /// Hex, where it is known.
    pub sha256: String,
    pub size: u64,
    /// Where it is to lie: on the file system of the cache; its folder exists.
    pub into: PathBuf,
}

impl Wanted {
    /// The file's name in the cache. The hash of the content makes it right whatever a store takes for tags.
    fn name(&self) -> Name {
        Name(sha256_hex(format!("{}\n{}\n{}", self.key, self.etag.0, self.sha256).as_bytes()), self.size)
    }
}

/// A file in the cache: a hash, and its size in bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Name(String, u64);

/// Until when a query wants its files, and whether it still does.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    pub until: Instant,
    pub stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Why files can't be had.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("the query reads {needed} bytes; the cache holds {bytes_max}")]
    TooLarge { needed: u64, bytes_max: u64 },
    /// Other queries hold the room for the whole wait.
    #[error("other queries need the room in the cache")]
    Busy,
    /// The object is no longer what was asked for.
    #[error("`{key}` has changed")]
    Changed { key: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{what} `{}`: {source}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("the query was ended while its files were fetched")]
    Stopped,
    #[error("the query's files did not come in time")]
    TimedOut,
}

/// What a query does that finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It waits for it. A query that holds something must not.
    Waited,
    /// It fails with [`CacheError::Busy`].
    AtOnce,
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
    /// Of all files, in bytes.
    total: u64,
    /// Of those with pins.
    pinned: u64,
    fetching: usize,
    /// Rises with each use.
    tick: u64,
    idle: Idles,
}

/// See the module.
pub struct Cache {
    slot: Slot,
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
    remover: OnceLock<Option<SyncSender<Vec<Idle>>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// How the cache is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Of all files, those that are still fetched included.
    pub bytes: u64,
    pub bytes_max: u64,
    /// Files that a query wanted and found there, since the start.
    pub hits: u64,
    /// Files that had to be fetched.
    pub misses: u64,
}

/// A query's hold on its files; given back when dropped.
pub struct Pins {
    cache: Arc<Cache>,
    names: Vec<Name>,
}

impl Cache {
    /// Takes a part of `folder` (made if it is missing) for this process, with the files that a process before it left
    /// there, and clears away what dead ones left elsewhere in it.
    ///
    /// # Errors
    /// The folder can't be made or read, or too many processes use it.
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

    /// Waits a little for a change.
    fn wait(&self, state: &mut MutexGuard<'_, State>) {
        self.changed.wait_for(state, LOOK_EVERY);
    }

    /// Puts each wanted file of the warehouse where it is wanted: a link where the store can give one, else by way of
    /// the cache. They stay as they are for as long as the pins are held; a link does so for good.
    ///
    /// # Errors
    /// [`CacheError`]; some files may lie there all the same.
    pub fn provide(
        self: &Arc<Self>,
        store: &dyn ObjectStore,
        wanted: &[Wanted],
        patience: Patience<'_>,
    ) -> Result<Pins, CacheError> {
        let pins = self.provide_each(store, &[wanted], patience, Room::Waited)?;
        Ok(pins.into_iter().next().unwrap_or_else(|| Pins { cache: Arc::clone(self), names: Vec::new() }))
    }

    /// As [`Cache::provide`], of all groups in one step, with pins for each.
    ///
    /// # Errors
    /// [`CacheError`]; some files may lie there all the same.
    pub fn provide_each(
        self: &Arc<Self>,
        store: &dyn ObjectStore,
        groups: &[&[Wanted]],
        patience: Patience<'_>,
        room: Room,
    ) -> Result<Vec<Pins>, CacheError> {
        let mut through = BTreeMap::new();
        let mut names = vec![BTreeSet::new(); groups.len()];
        for (group, file) in groups.iter().enumerate().flat_map(|(at, files)| files.iter().map(move |file| (at, file)))
        {
            match store.link(Bucket::Warehouse, &file.key, &file.etag, &file.into) {
                Ok(true) => {}
                Ok(false) => {
                    names[group].insert(file.name());
                    through.entry(file.name()).or_insert_with(Vec::new).push(file);
                }
                Err(error) => return Err(fetch::changed(&file.key, error)),
            }
            patience.check()?;
        }
        let pins = self.pin(names, patience, room)?;
        self.fetch_all(store, &through, patience)?;
        for (name, files) in &through {
            for file in files {
                self.place(store, name, file, patience)?;
            }
        }
        Ok(pins)
    }

    /// Makes room for all of them at once. Trees that wait for a query go before this one waits.
    fn pin(
        self: &Arc<Self>,
        groups: Vec<BTreeSet<Name>>,
        patience: Patience<'_>,
        room: Room,
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
            if let Some(tree) = state.idle.take_for_room() {
                drop(state);
                self.remove(vec![tree]);
                state = self.state();
                continue;
            }
            match patience.check() {
                Err(CacheError::TimedOut) => return Err(CacheError::Busy),
                Ok(()) if room == Room::AtOnce => return Err(CacheError::Busy),
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

    /// Removes files that nobody has pinned until all fit.
    fn evict(&self, state: &mut State) {
        if state.total <= self.bytes_max {
            return;
        }
        let mut idle: Vec<(u64, Name)> = state
            .files
            .iter()
            .filter(|(_, entry)| entry.pins == 0 && entry.presence == Presence::Present)
            .map(|(name, entry)| (entry.used, name.clone()))
            .collect();
        idle.sort_unstable();
        for (_, name) in idle {
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
        wanted: &BTreeMap<Name, Vec<&Wanted>>,
        patience: Patience<'_>,
    ) -> Result<(), CacheError> {
        let missing: Vec<(&Name, &Wanted)> = {
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
                if let Err(error) = self.ensure(store, name, file, patience) {
                    lock_failed().get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..FETCHES_OF_QUERY.min(missing.len()) {
                // Without another thread, this one does more.
                let _ = std::thread::Builder::new().name("fetch".to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
        let failed = lock_failed().take();
        failed.map_or(Ok(()), Err)
    }

    /// Fetches a pinned file, unless it is there or another is fetching it.
    fn ensure(
        &self,
        store: &dyn ObjectStore,
        name: &Name,
        file: &Wanted,
        patience: Patience<'_>,
    ) -> Result<(), CacheError> {
        let mut state = self.state();
        loop {
            patience.check()?;
            let busy = state.fetching >= FETCHES_MAX;
            match state.files.get_mut(name) {
                Some(entry) if entry.presence == Presence::Present => return Ok(()),
                Some(entry) if entry.presence == Presence::Absent && !busy => {
                    entry.presence = Presence::Fetching;
                    state.fetching += 1;
                    break;
                }
                Some(_) => {}
                // A pinned file is always known.
                None => return Err(CacheError::Changed { key: file.key.clone() }),
            }
            self.wait(&mut state);
        }
        drop(state);
        let fetching = Fetching { cache: self, name };
        fetch::fetch(store, file, &self.slot, name, patience)?;
        fetching.done();
        Ok(())
    }

    /// Links a file of the cache to where it is wanted. One that somebody removed from the folder is fetched again.
    fn place(
        &self,
        store: &dyn ObjectStore,
        name: &Name,
        file: &Wanted,
        patience: Patience<'_>,
    ) -> Result<(), CacheError> {
        for _ in 0..2 {
            if self.slot.link(name, &file.into)? {
                return Ok(());
            }
            if let Some(entry) = self.state().files.get_mut(name).filter(|e| e.presence == Presence::Present) {
                entry.presence = Presence::Absent;
            }
            self.ensure(store, name, file, patience)?;
        }
        let source = io::Error::other("it is removed as soon as it is there");
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

/// A fetch under way: whatever ends it, those that wait for the file hear of it.
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

impl Patience<'_> {
    /// # Errors
    /// [`CacheError::Stopped`], [`CacheError::TimedOut`].
    pub fn check(&self) -> Result<(), CacheError> {
        if (self.stopped)() {
            return Err(CacheError::Stopped);
        }
        if Instant::now() >= self.until { Err(CacheError::TimedOut) } else { Ok(()) }
    }
}
