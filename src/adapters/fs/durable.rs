//! Fsyncs directories, coalescing concurrent requests, and remembers which directories are known to be durable.

use std::collections::HashSet;
use std::path::Path;

use parking_lot::Mutex;

use crate::sync::SingleFlight;

/// Folders known to be durable that are kept in mind.
const FOLDERS_MAX: usize = 1 << 14;

#[derive(Default)]
pub(super) struct DurableFolders {
    /// Folders whose own names are on disk, so that a write needs to sync but one.
    known: Mutex<HashSet<String>>,
    syncs: SingleFlight<String, ()>,
}

impl DurableFolders {
    fn name(dir: &Path, path: &str) -> String {
        format!("{}/{path}", dir.display())
    }

    pub(super) fn remove(&self, dir: &Path, path: &str) {
        self.known.lock().remove(&Self::name(dir, path));
    }

    pub(super) fn knows(&self, dir: &Path, path: &str) -> bool {
        self.known.lock().contains(&Self::name(dir, path))
    }

    pub(super) fn add(&self, dir: &Path, path: &str) {
        let mut known = self.known.lock();
        if known.len() >= FOLDERS_MAX {
            known.clear();
        }
        known.insert(Self::name(dir, path));
    }

    /// Fsyncs the directory by calling `sync`, or shares a concurrent call that began after this one.
    pub(super) fn sync<E>(&self, dir: &Path, path: &str, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.syncs.run(&Self::name(dir, path), sync).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_known_until_it_is_removed() {
        let (folders, dir) = (DurableFolders::default(), Path::new("/lake"));
        folders.add(dir, "a/b");
        assert!(folders.knows(dir, "a/b") && !folders.knows(dir, "a"));
        folders.remove(dir, "a/b");
        assert!(!folders.knows(dir, "a/b"));
    }
}
