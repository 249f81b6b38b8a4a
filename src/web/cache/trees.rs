//! Tables' files as queries had them, for the next query of the same state: making hundreds of folders and links anew
//! costs more than most queries.
//!
//! Invariants:
//! - a tree is had by one query at a time, from when its files are made ready until its process is dead;
//! - a tree's files are pinned for as long as it has them, so that what the cache holds is counted whole;
//! - trees that wait are few, have few files together, and are not old: their links keep the bytes of objects that are
//!   gone from the store. They go first when a query needs the room.
//!
//! Must not: be given to a query of another state of the table.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Name, Pins};
use crate::sql::sandbox::StagingFolder;

/// Trees of one state of a table that wait: as many as queries are run at a time.
const OF_STATE_MAX: usize = 4;
/// Trees that wait.
const TREES_MAX: usize = 32;
/// Files of all of them.
const FILES_MAX: usize = 40_000;
/// How long after it was made a tree is given to a query, and its links keep the bytes of objects that are gone.
pub(super) const AGE_MAX: Duration = Duration::from_secs(300);

/// Which files a tree has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeKey {
    /// With its pipeline.
    pub table: String,
    /// Equal only while the table's files are.
    pub state: String,
}

/// A table's files below a folder of their own; removed when dropped.
pub struct Tree {
    /// `None` for one that no other query may have.
    key: Option<TreeKey>,
    folder: StagingFolder,
    /// After the folder: dropped in this order.
    pins: Pins,
    files: usize,
    made: Instant,
}

impl Tree {
    /// Of files that `folder` has now.
    pub fn new(key: Option<TreeKey>, folder: StagingFolder, pins: Pins, files: usize) -> Self {
        Self { key, folder, pins, files, made: Instant::now() }
    }

    /// The same, which no other query may have.
    pub fn for_nobody(self) -> Self {
        Self { key: None, ..self }
    }

    /// Where the folder of the table is.
    pub fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(super) fn of(idle: Idle, pins: impl FnOnce(Vec<Name>) -> Pins) -> Self {
        let Idle { key, folder, names, files, made } = idle;
        Self { key: Some(key), folder, pins: pins(names), files, made }
    }

    /// What it is while it waits; `None`, and it is removed, if it is for nobody else.
    pub(super) fn into_idle(self) -> Option<Idle> {
        let Self { key, folder, mut pins, files, made } = self;
        match key {
            Some(key) => Some(Idle { key, folder, names: std::mem::take(&mut pins.names), files, made }),
            None => {
                drop(folder);
                drop(pins);
                None
            }
        }
    }
}

/// A tree that waits. Its names are pinned; whoever takes it out of the list sees to that.
#[derive(Debug)]
pub(super) struct Idle {
    key: TreeKey,
    folder: StagingFolder,
    pub(super) names: Vec<Name>,
    files: usize,
    made: Instant,
}

impl Idle {
    /// Removes it; what is given is still pinned.
    pub(super) fn remove(self) -> Vec<Name> {
        let Self { folder, names, .. } = self;
        drop(folder);
        names
    }
}

/// Those that wait, the least recently used first.
#[derive(Debug, Default)]
pub(super) struct Idles {
    trees: VecDeque<Idle>,
    files: usize,
}

impl Idles {
    /// A tree of this state, and those that are to be removed: of other states of the table, and old ones.
    pub(super) fn take(&mut self, key: &TreeKey, now: Instant) -> (Option<Idle>, Vec<Idle>) {
        let mut gone = self.expire(now);
        gone.extend(self.remove(|tree| tree.key.table == key.table && tree.key.state != key.state));
        let at = self.trees.iter().rposition(|tree| tree.key == *key);
        (at.and_then(|at| self.remove_at(at)), gone)
    }

    /// Adds one; gives those that are to be removed for it, which may be itself.
    pub(super) fn add(&mut self, tree: Idle, now: Instant) -> Vec<Idle> {
        let (key, files) = (tree.key.clone(), tree.files);
        self.files += files;
        self.trees.push_back(tree);
        let mut gone = self.expire(now);
        if self.trees.iter().filter(|tree| tree.key == key).count() > OF_STATE_MAX {
            let at = self.trees.iter().position(|tree| tree.key == key);
            gone.extend(at.and_then(|at| self.remove_at(at)));
        }
        while self.trees.len() > TREES_MAX || self.files > FILES_MAX {
            let Some(tree) = self.remove_at(0) else { break };
            gone.push(tree);
        }
        gone
    }

    /// The one that was used least recently of those that hold files of the cache.
    pub(super) fn take_for_room(&mut self) -> Option<Idle> {
        let at = self.trees.iter().position(|tree| !tree.names.is_empty())?;
        self.remove_at(at)
    }

    /// Takes out those that are too old.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Idle> {
        self.remove(|tree| now.saturating_duration_since(tree.made) >= AGE_MAX)
    }

    fn remove(&mut self, which: impl Fn(&Idle) -> bool) -> Vec<Idle> {
        let (gone, kept): (Vec<_>, Vec<_>) = self.trees.drain(..).partition(which);
        self.trees = kept.into();
        self.files -= gone.iter().map(|tree| tree.files).sum::<usize>();
        gone
    }

    fn remove_at(&mut self, at: usize) -> Option<Idle> {
        let tree = self.trees.remove(at)?;
        self.files -= tree.files;
        Some(tree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(home: &std::path::Path, table: &str, state: &str, files: usize, made: Instant) -> Idle {
        let folder = home.join(uuid::Uuid::new_v4().to_string());
        std::fs::create_dir(&folder).unwrap();
        let names = if table.starts_with("cached") { vec![Name(state.to_owned(), 1)] } else { Vec::new() };
        let key = TreeKey { table: table.to_owned(), state: state.to_owned() };
        Idle { key, folder: StagingFolder::new(folder), names, files, made }
    }

    fn key(table: &str, state: &str) -> TreeKey {
        TreeKey { table: table.to_owned(), state: state.to_owned() }
    }

    fn folders(home: &std::path::Path) -> usize {
        std::fs::read_dir(home).unwrap().count()
    }

    #[test]
    fn a_tree_is_given_once_and_for_its_state_alone() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut idles = Idles::default();
        assert!(idles.add(tree(home.path(), "p/t", "1", 3, now), now).is_empty());
        assert!(idles.add(tree(home.path(), "p/u", "1", 3, now), now).is_empty());
        let (taken, gone) = idles.take(&key("p/t", "1"), now);
        assert!(taken.is_some() && gone.is_empty());
        assert!(idles.take(&key("p/t", "1"), now).0.is_none(), "another query has it");
        assert!(idles.add(taken.unwrap(), now).is_empty());
        let (taken, gone) = idles.take(&key("p/t", "2"), now);
        assert!(taken.is_none() && gone.len() == 1, "the older state goes");
        drop(gone);
        assert_eq!((folders(home.path()), idles.trees.len(), idles.files), (1, 1, 3));
    }

    #[test]
    fn trees_are_few_and_the_least_recently_used_goes() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut idles = Idles::default();
        for nth in 0..=OF_STATE_MAX {
            let gone = idles.add(tree(home.path(), "p/t", "1", 1, now), now);
            assert_eq!(gone.len(), usize::from(nth == OF_STATE_MAX));
        }
        let mut idles = Idles::default();
        for nth in 0..TREES_MAX + 3 {
            let gone = idles.add(tree(home.path(), &format!("p/{nth}"), "1", 1, now), now);
            let oldest = (nth >= TREES_MAX).then(|| format!("p/{}", nth - TREES_MAX));
            assert_eq!(gone.first().map(|tree| tree.key.table.clone()), oldest);
        }
        let gone = idles.add(tree(home.path(), "p/large", "1", FILES_MAX - 1, now), now);
        assert_eq!((gone.len(), idles.trees.len()), (TREES_MAX - 1, 2));
        let gone = idles.add(tree(home.path(), "p/larger", "1", FILES_MAX + 1, now), now);
        assert_eq!((gone.len(), idles.trees.len(), idles.files), (3, 0, 0), "itself too");
    }

    #[test]
    fn old_trees_are_given_to_nobody() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut idles = Idles::default();
        idles.add(tree(home.path(), "p/t", "1", 1, now), now);
        let (taken, gone) = idles.take(&key("p/t", "1"), now + AGE_MAX);
        assert!(taken.is_none() && gone.len() == 1);
        assert!(idles.expire(now + AGE_MAX).is_empty());
    }

    #[test]
    fn room_is_made_by_trees_of_the_cache_alone() {
        let (home, now) = (tempfile::tempdir().unwrap(), Instant::now());
        let mut idles = Idles::default();
        idles.add(tree(home.path(), "p/linked", "1", 1, now), now);
        idles.add(tree(home.path(), "cached/t", "1", 1, now), now);
        assert_eq!(idles.take_for_room().map(|tree| tree.key.table), Some("cached/t".to_owned()));
        assert!(idles.take_for_room().is_none());
    }
}
