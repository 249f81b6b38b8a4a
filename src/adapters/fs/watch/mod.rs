//! Notices files that others put into the lake's folder.
//!
//! A file counts when it is closed after writing, moved in, linked, or found in a folder that came. Files and folders
//! whose name starts with a dot don't, nor does this store's own folder; nor what is removed: only new objects make a
//! run. What this store puts is noticed as well, which does no harm.
//!
//! Invariant: a file that comes while the watch lasts is told by its key, or by a `Rescan` after it came.
//!
//! Whatever may have been missed makes a `Rescan`: the kernel's queue or one of ours was full, the folder was replaced,
//! a limit leaves folders unwatched. Then all watches are set anew, since folders may have come unnoticed, and the
//! rescan is told after that. As long as some folders can't be watched, a rescan is told from time to time.

mod armed;
mod events;
mod outbox;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, select};

use crate::ports::lake_changes::{LakeChange, LakeChanges};
use crate::ports::store::Bucket;

use super::FsStore;
use super::folder::Folders;
use armed::{Armed, Fault, identity, key_of};
use events::{Sight, sight};
use outbox::Outbox;

/// Times and bounds, which tests change.
#[derive(Debug, Clone, Copy)]
struct Tuning {
    /// How long keys are gathered into one message.
    batch: Duration,
    /// Messages that wait for the receiver.
    changes_max: usize,
    /// Events that wait for us.
    sights_max: usize,
    /// Folders watched; each costs about a KiB of the kernel's memory.
    folders_max: usize,
    /// Between two looks whether the bucket's folder is still the same; and while it is missing.
    look_every: Duration,
    look_every_missing: Duration,
    /// Between two rescans while some folders can't be watched.
    rescan_every: Duration,
    /// Least time between two settings of all watches.
    arm_pause: Duration,
}

const TUNING: Tuning = Tuning {
    batch: Duration::from_millis(100),
    changes_max: 16,
    sights_max: 16_384,
    folders_max: 1 << 17,
    look_every: Duration::from_secs(5),
    look_every_missing: Duration::from_millis(500),
    rescan_every: Duration::from_secs(30),
    arm_pause: Duration::from_secs(1),
};

/// A lake that can't be watched at all.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("starting the thread that watches the lake: {source}")]
    Thread { source: io::Error },
}

/// Ends the watch, and its threads, when it is dropped.
#[derive(Debug)]
pub struct LakeWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LakeWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, the receiver has learnt that it is gone.
            let _ = thread.join();
        }
    }
}

impl FsStore {
    /// Watches the folders of the lake bucket. What comes after this returned is told; what is there already is not:
    /// whoever wants to know compares the lake once, after this call.
    ///
    /// Folders that can't be watched, or aren't there, are no error: the first is logged and made up for by rescans, and
    /// a folder is watched as soon as it is there.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch(&self) -> Result<(LakeWatch, LakeChanges), WatchError> {
        start(Arc::clone(&self.folders), TUNING)
    }
}

fn start(folders: Arc<Folders>, tuning: Tuning) -> Result<(LakeWatch, LakeChanges), WatchError> {
    let (out, changes) = bounded(tuning.changes_max);
    let (stop, stopped) = bounded(0);
    let mut watching = Watching::new(folders, tuning, out);
    watching.arm();
    let thread = std::thread::Builder::new().name("lake-watch".to_owned());
    let thread = thread.spawn(move || watching.run(&stopped)).map_err(|source| WatchError::Thread { source })?;
    Ok((LakeWatch { stop: Some(stop), thread: Some(thread) }, changes))
}

/// Why the thread went on.
enum Woken {
    Stopped,
    Saw(Sight),
    /// The `Rescan` for which there was no room is sent.
    Delivered,
    Due,
}

struct Watching {
    folders: Arc<Folders>,
    tuning: Tuning,
    outbox: Outbox,
    seeing: Sender<Sight>,
    sights: Receiver<Sight>,
    /// There was no room for a sight.
    overflowed: Arc<AtomicBool>,
    armed: Option<Armed>,
    /// The folders of the bucket as they were when the watches were set.
    identities: Vec<Option<(u64, u64)>>,
    armed_at: Instant,
    arm_again: Option<Instant>,
    look_at: Instant,
    /// What is wrong was logged.
    said: bool,
}

impl Watching {
    fn new(folders: Arc<Folders>, tuning: Tuning, out: Sender<LakeChange>) -> Self {
        let (seeing, sights) = bounded(tuning.sights_max);
        let now = Instant::now();
        Self {
            folders,
            tuning,
            outbox: Outbox::new(out, tuning.batch),
            seeing,
            sights,
            overflowed: Arc::default(),
            armed: None,
            identities: Vec::new(),
            armed_at: now,
            arm_again: None,
            look_at: now,
            said: false,
        }
    }

    fn run(mut self, stopped: &Receiver<()>) {
        while !self.outbox.is_closed() {
            match self.wait(stopped) {
                Woken::Stopped => return,
                Woken::Saw(sight) => self.look_into(sight),
                Woken::Delivered => self.outbox.delivered(),
                Woken::Due => {}
            }
            if self.overflowed.swap(false, Ordering::SeqCst) {
                self.lost();
            }
            let now = Instant::now();
            if self.arm_again.is_some_and(|at| at <= now) || (self.look_at <= now && self.is_replaced()) {
                self.arm();
                // Without a folder there is nothing to compare; it comes with a rescan.
                if self.identities.iter().any(Option::is_some) {
                    self.outbox.rescan(Instant::now());
                }
            }
            self.outbox.tend(Instant::now());
        }
    }

    fn wait(&self, stopped: &Receiver<()>) -> Woken {
        let dues = [Some(self.look_at), self.arm_again, self.outbox.due()];
        let due = at(dues.into_iter().flatten().min().unwrap_or(self.look_at));
        let saw = |sight: Result<Sight, _>| sight.map_or(Woken::Stopped, Woken::Saw);
        match self.outbox.stuck() {
            Some(out) => select! {
                recv(stopped) -> _ => Woken::Stopped,
                recv(self.sights) -> sight => saw(sight),
                send(out, LakeChange::Rescan) -> sent => if sent.is_ok() { Woken::Delivered } else { Woken::Stopped },
                recv(due) -> _ => Woken::Due,
            },
            None => select! {
                recv(stopped) -> _ => Woken::Stopped,
                recv(self.sights) -> sight => saw(sight),
                recv(due) -> _ => Woken::Due,
            },
        }
    }

    fn look_into(&mut self, sight: Sight) {
        let now = Instant::now();
        match sight {
            Sight::Written(path) => self.tell(&path, now),
            Sight::FileMade(path) => {
                // A file with one name is closed by whoever made it.
                use std::os::unix::fs::MetadataExt;
                if std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_file() && m.nlink() > 1) {
                    self.tell(&path, now);
                }
            }
            Sight::FolderMade(path) => self.enter(&path, now),
            Sight::MovedIn(path) => match std::fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.enter(&path, now),
                Ok(metadata) if metadata.is_file() => self.tell(&path, now),
                // A link or special file is no object, and what is gone needs no run.
                Ok(_) | Err(_) => {}
            },
            // One that was made again may even have the same inode, so there is no look whether it is another.
            Sight::RootGone | Sight::Lost => self.lost(),
        }
    }

    fn tell(&mut self, path: &Path, now: Instant) {
        if let Some(key) = key_of(&self.folders, path) {
            self.outbox.key(key, now);
        }
    }

    /// Watches a folder that came, and tells the files in it.
    fn enter(&mut self, path: &Path, now: Instant) {
        let folders = Arc::clone(&self.folders);
        let within = |folder: &&super::folder::Folder| path.starts_with(&folder.dir);
        let (Some(armed), Some(folder)) = (&mut self.armed, folders.of(Bucket::Lake).find(within)) else { return };
        if key_of(&folders, path).is_none() {
            return;
        }
        let outbox = &mut self.outbox;
        armed.watch_tree(folder, path, &mut |key| outbox.key(key, now));
        if armed.fault().is_some() {
            // Setting all watches anew tells whether it stays.
            self.lost();
        }
    }

    /// Something was missed: sets all watches anew, soon.
    fn lost(&mut self) {
        let soon = (self.armed_at + self.tuning.arm_pause).max(Instant::now());
        self.arm_again = Some(self.arm_again.map_or(soon, |at| at.min(soon)));
    }

    fn identities(&self) -> Vec<Option<(u64, u64)>> {
        self.folders.of(Bucket::Lake).map(|folder| identity(&folder.dir)).collect()
    }

    /// Whether a folder of the bucket came, went or is another.
    fn is_replaced(&mut self) -> bool {
        let now = self.identities();
        self.look_again(&now);
        now != self.identities
    }

    fn look_again(&mut self, identities: &[Option<(u64, u64)>]) {
        let missing = identities.iter().any(Option::is_none);
        let pause = if missing { self.tuning.look_every_missing } else { self.tuning.look_every };
        self.look_at = Instant::now() + pause;
    }

    /// Sets all watches.
    fn arm(&mut self) {
        // The old ones are gone before, or both would count.
        self.armed = None;
        self.identities = self.identities();
        self.look_again(&self.identities.clone());
        let missing: Vec<PathBuf> = {
            let all = self.folders.of(Bucket::Lake).zip(&self.identities);
            all.filter(|(_, identity)| identity.is_none()).map(|(folder, _)| folder.dir.clone()).collect()
        };
        let fault = match Armed::arm(&self.folders, self.tuning.folders_max, self.handler()) {
            Ok(mut armed) => {
                let fault = armed.fault();
                self.armed = Some(armed);
                fault
            }
            Err(fault) => Some(fault),
        };
        self.armed_at = Instant::now();
        self.arm_again = fault.is_some().then(|| self.armed_at + self.tuning.rescan_every);
        self.say(fault.as_ref(), &missing);
    }

    /// What the watcher's thread does with an event. It must not wait: it also sets the watches that we ask it for.
    fn handler(&self) -> impl FnMut(notify::Result<notify::Event>) + Send + 'static {
        let (seeing, overflowed) = (self.seeing.clone(), Arc::clone(&self.overflowed));
        let roots: Vec<PathBuf> = self.folders.of(Bucket::Lake).map(|folder| folder.dir.clone()).collect();
        move |event| {
            let Some(sight) = sight(event, &roots) else { return };
            if seeing.try_send(sight).is_err() {
                overflowed.store(true, Ordering::SeqCst);
                // If there is room by now, nothing else may come to wake us.
                let _ = seeing.try_send(Sight::Lost);
            }
        }
    }

    /// Logs what is wrong once, and when it is over.
    fn say(&mut self, fault: Option<&Fault>, missing: &[PathBuf]) {
        let wrong = fault.is_some() || !missing.is_empty();
        if wrong && !self.said {
            if let Some(fault) = fault {
                let seconds = self.tuning.rescan_every.as_secs();
                tracing::warn!(
                    error = %fault,
                    "not all of the lake can be watched for new files: it is compared every {seconds} s instead"
                );
            }
            for dir in missing {
                tracing::warn!(folder = %dir.display(), "the lake's folder is missing: it is watched once it is there");
            }
        }
        if !wrong && self.said {
            tracing::info!("all of the lake is watched for new files again");
        }
        self.said = wrong;
    }
}
