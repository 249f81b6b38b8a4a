//! Folders that are put on disk: one sync for all who wait for the same one, and none for names known to be there.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Folders known to be durable that are kept in mind.
const FOLDERS_MAX: usize = 1 << 14;

#[derive(Default)]
pub(super) struct DurableFolders {
    /// Folders whose own names are on disk, so that a write needs to sync but one.
    known: Mutex<HashSet<String>>,
    /// Those that somebody syncs just now.
    syncs: Mutex<HashMap<String, Arc<Turns>>>,
}

impl DurableFolders {
    fn name(dir: &Path, path: &str) -> String {
        format!("{}/{path}", dir.display())
    }

    pub(super) fn remove(&self, dir: &Path, path: &str) {
        lock(&self.known).remove(&Self::name(dir, path));
    }

    pub(super) fn knows(&self, dir: &Path, path: &str) -> bool {
        lock(&self.known).contains(&Self::name(dir, path))
    }

    pub(super) fn add(&self, dir: &Path, path: &str) {
        let mut known = lock(&self.known);
        if known.len() >= FOLDERS_MAX {
            known.clear();
        }
        known.insert(Self::name(dir, path));
    }

    /// Puts a folder's entries of now on disk, by `sync` or by that of another who began after this call.
    pub(super) fn sync<E>(&self, dir: &Path, path: &str, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let name = Self::name(dir, path);
        let turns = Arc::clone(lock(&self.syncs).entry(name.clone()).or_default());
        let done = turns.take(sync);
        let mut syncs = lock(&self.syncs);
        // They are taken and dropped under the lock alone, so that the last one sees that it is.
        drop(turns);
        if syncs.get(&name).is_some_and(|turns| Arc::strong_count(turns) == 1) {
            syncs.remove(&name);
        }
        done
    }
}

/// Who asks while a sync is under way needs the next one, which is then one for all who asked meanwhile.
#[derive(Default)]
struct Turns {
    turn: Mutex<Turn>,
    over: Condvar,
}

#[derive(Default)]
struct Turn {
    begun: u64,
    /// The last that succeeded.
    done: u64,
    is_on: bool,
    #[cfg(test)]
    asked: usize,
}

impl Turns {
    fn take<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let mut turn = lock(&self.turn);
        #[cfg(test)]
        {
            turn.asked += 1;
        }
        let wanted = turn.begun + 1;
        while turn.is_on && turn.done < wanted {
            turn = self.over.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.done >= wanted {
            return Ok(());
        }
        turn.begun += 1;
        turn.is_on = true;
        let own = turn.begun;
        drop(turn);
        let result = sync();
        let mut turn = lock(&self.turn);
        turn.is_on = false;
        if result.is_ok() {
            turn.done = own;
        }
        self.over.notify_all();
        result
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const WAITING: usize = 20;

    /// Holds a sync until many others wait for its folder. How many syncs came after it, of which the first so many
    /// fail, and how many of the calls failed.
    fn shared(failing: usize) -> (usize, usize) {
        let folders = DurableFolders::default();
        let (syncs, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (go, held) = mpsc::channel::<()>();
        let dir = Path::new("/lake");
        thread::scope(|scope| {
            let (begun, has_begun) = mpsc::channel();
            let (folders, syncs, failed) = (&folders, &syncs, &failed);
            scope.spawn(move || {
                folders.sync(dir, "t", || {
                    begun.send(()).unwrap();
                    held.recv().unwrap();
                    Ok::<(), ()>(())
                })
            });
            has_begun.recv().unwrap();
            for _ in 0..WAITING {
                scope.spawn(move || {
                    let sync = || match syncs.fetch_add(1, Ordering::SeqCst) < failing {
                        true => Err(()),
                        false => Ok(()),
                    };
                    failed.fetch_add(usize::from(folders.sync(dir, "t", sync).is_err()), Ordering::SeqCst);
                });
            }
            let turns = Arc::clone(&lock(&folders.syncs)["/lake/t"]);
            while lock(&turns.turn).asked < 1 + WAITING {
                thread::yield_now();
            }
            drop(turns);
            go.send(()).unwrap();
        });
        assert!(lock(&folders.syncs).is_empty(), "nothing is kept of a folder that nobody waits for");
        (syncs.into_inner(), failed.into_inner())
    }

    #[test]
    fn all_who_ask_while_a_folder_is_synced_share_the_next_sync() {
        assert_eq!(shared(0), (1, 0));
    }

    #[test]
    fn a_sync_that_failed_is_nobody_elses() {
        assert_eq!(shared(3), (4, 3));
    }

    #[test]
    fn a_folder_is_known_until_it_is_removed() {
        let (folders, dir) = (DurableFolders::default(), Path::new("/lake"));
        folders.add(dir, "a/b");
        assert!(folders.knows(dir, "a/b") && !folders.knows(dir, "a"));
        folders.remove(dir, "a/b");
        assert!(!folders.knows(dir, "a/b"));
    }
}
