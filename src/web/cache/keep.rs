//! Trees given back, taken and removed.
//!
//! Invariant: a tree's files are unpinned only once it is removed, so that no byte on the disk goes uncounted.
//!
//! Must not: remove a tree with the lock held, or keep a query waiting for a removal that it needn't wait for.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::trees::{Idle, Tree, TreeKey};
use super::{Cache, Pins};

/// Removals that may wait for the thread that does them.
const REMOVALS_MAX: usize = 64;
/// How often it looks for trees that are old.
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl Cache {
    /// Takes a tree of this state, if one waits. Those of other states of the table are removed.
    pub fn take_tree(self: &Arc<Self>, key: &TreeKey) -> Option<Tree> {
        let (taken, gone) = self.state().idle.take(key, Instant::now());
        self.remove_soon(gone);
        let taken = taken?;
        Some(Tree::of(taken, |names| Pins { cache: Arc::clone(self), names }))
    }

    /// Keeps a tree for the next query of its state. Nobody uses it any more, and its files lie where they lay.
    pub fn keep_tree(self: &Arc<Self>, tree: Tree) {
        // One that nobody else may have is removed here.
        let Some(idle) = tree.into_idle() else { return };
        let gone = self.state().idle.add(idle, Instant::now());
        // Who waits for room may have the tree's.
        self.changed.notify_all();
        self.remove_soon(gone);
        // Somebody must look for when it is old.
        self.remover();
    }

    /// Removes trees, and then counts their files as used by none.
    pub(super) fn remove(&self, trees: Vec<Idle>) {
        for tree in trees {
            let names = tree.remove();
            let mut state = self.state();
            names.iter().for_each(|name| state.unpin(name));
        }
        self.changed.notify_all();
    }

    fn remove_soon(self: &Arc<Self>, trees: Vec<Idle>) {
        if trees.is_empty() {
            return;
        }
        let here = match self.remover() {
            Some(remover) => remover.try_send(trees).err().map(|error| match error {
                TrySendError::Full(trees) | TrySendError::Disconnected(trees) => trees,
            }),
            None => Some(trees),
        };
        if let Some(trees) = here {
            self.remove(trees);
        }
    }

    /// The way to the thread that removes trees, which ends with the cache; `None` if there is none.
    fn remover(self: &Arc<Self>) -> Option<&SyncSender<Vec<Idle>>> {
        let start = || {
            let (send, receive) = sync_channel(REMOVALS_MAX);
            let cache = Arc::downgrade(self);
            let thread = std::thread::Builder::new().name("query-trees".to_owned());
            thread.spawn(move || remove_all(&cache, &receive)).is_ok().then_some(send)
        };
        self.remover.get_or_init(start).as_ref()
    }
}

fn remove_all(cache: &Weak<Cache>, removals: &Receiver<Vec<Idle>>) {
    loop {
        let trees = match removals.recv_timeout(LOOK_EVERY) {
            Ok(trees) => trees,
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(cache) = cache.upgrade() else { return };
        cache.remove(trees);
        let old = cache.state().idle.expire(Instant::now());
        cache.remove(old);
    }
}
