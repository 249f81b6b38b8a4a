//! Watches the lake's folders for new, changed and removed files.
//!
//! A file is reported when it is closed after writing, moved in or out, removed, linked, or found in a new folder. Files and
//! folders whose name starts with a dot are ignored, as is the store's own folder. Files that this store puts or deletes are
//! reported too, which is harmless.
//!
//! Invariant: a file that appears or vanishes during the watch is reported by its key, or by a later `Rescan`.
//!
//! Whenever events may have been missed (the kernel's queue or ours was full, a folder was moved or replaced, a limit left
//! folders unwatched), all watches are set again, since new folders may have been missed too, and then a `Rescan` is reported.
//! While some folders can't be watched, rescans are reported periodically.

mod events;
mod kernel;
mod outbox;
#[cfg(test)]
mod tests;
mod watches;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, bounded, select};
use rustix::fs::inotify::ReadFlags;

use crate::ports::store::{Bucket, LakeChange, LakeChanges};

use super::folder::{Folder, Folders};
use super::store::FsStore;
use events::{FolderEvent, folder_event};
use outbox::Outbox;
use watches::{WatchFault, Watches, identity, key_of};

/// Times and limits, which tests change.
#[derive(Debug, Clone, Copy)]
struct Tuning {
    /// How long keys are collected into one message.
    batch: Duration,
    /// Messages queued for the receiver.
    changes_max: usize,
    /// Events queued for the watch.
    events_max: usize,
    /// Watched folders; each costs about a KiB of kernel memory.
    folders_max: usize,
    /// Interval of checks whether the bucket's folder was replaced; and while it is missing.
    check_every: Duration,
    check_every_missing: Duration,
    /// Interval of rescans while some folders can't be watched.
    rescan_every: Duration,
    /// Minimum time between two resets of all watches.
    reset_pause: Duration,
}

const TUNING: Tuning = Tuning {
    batch: Duration::from_millis(100),
    changes_max: 16,
    events_max: 16_384,
    folders_max: 1 << 17,
    check_every: Duration::from_secs(5),
    check_every_missing: Duration::from_millis(500),
    rescan_every: Duration::from_secs(30),
    reset_pause: Duration::from_secs(1),
};

/// Why the lake can't be watched at all.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("starting the thread that watches the lake: {source}")]
    Thread { source: io::Error },
}

/// Stops the watch and its threads when dropped.
#[derive(Debug)]
pub struct LakeWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LakeWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic disconnected the receiver already.
            let _ = thread.join();
        }
    }
}

impl FsStore {
    /// Watches the folders of the lake bucket. Reports files that appear after this call returns; for existing ones, the
    /// caller must compare the lake once afterwards.
    ///
    /// A folder that can't be watched is logged and compensated for by rescans; a missing one is watched as soon as it
    /// exists.
    ///
    /// # Errors
    /// If no thread can be spawned.
    pub fn watch(&self) -> Result<(LakeWatch, LakeChanges), WatchError> {
        start(Arc::clone(&self.folders), TUNING)
    }
}

fn start(folders: Arc<Folders>, tuning: Tuning) -> Result<(LakeWatch, LakeChanges), WatchError> {
    let (out, changes) = bounded(tuning.changes_max);
    let (stop, stopped) = bounded(0);
    let mut watcher = Watcher::new(folders, tuning, out);
    watcher.set_watches();
    let thread = std::thread::Builder::new().name("lake-watch".to_owned());
    let thread = thread.spawn(move || watcher.run(&stopped)).map_err(|source| WatchError::Thread { source })?;
    Ok((LakeWatch { stop: Some(stop), thread: Some(thread) }, changes))
}

/// Why the thread woke.
enum Wake {
    Stopped,
    Event(FolderEvent),
    /// The blocked `Rescan` was sent.
    RescanSent,
    Due,
}

struct Watcher {
    folders: Arc<Folders>,
    tuning: Tuning,
    outbox: Outbox,
    event_sender: Sender<FolderEvent>,
    events_in: Receiver<FolderEvent>,
    /// An event was dropped.
    overflowed: Arc<AtomicBool>,
    watches: Option<Watches>,
    /// The bucket's folders when the watches were set.
    identities: Vec<Option<(u64, u64)>>,
    set_at: Instant,
    reset_at: Option<Instant>,
    check_at: Instant,
    /// A fault was logged.
    fault_logged: bool,
}

impl Watcher {
    fn new(folders: Arc<Folders>, tuning: Tuning, out: Sender<LakeChange>) -> Self {
        let (event_sender, events_in) = bounded(tuning.events_max);
        let now = Instant::now();
        Self {
            folders,
            tuning,
            outbox: Outbox::new(out, tuning.batch),
            event_sender,
            events_in,
            overflowed: Arc::default(),
            watches: None,
            identities: Vec::new(),
            set_at: now,
            reset_at: None,
            check_at: now,
            fault_logged: false,
        }
    }

    fn run(mut self, stopped: &Receiver<()>) {
        while !self.outbox.is_closed() {
            match self.wait(stopped) {
                Wake::Stopped => return,
                Wake::Event(folder_event) => self.handle(folder_event),
                Wake::RescanSent => self.outbox.rescan_sent(),
                Wake::Due => {}
            }
            if self.overflowed.swap(false, Ordering::SeqCst) {
                self.schedule_reset();
            }
            let now = Instant::now();
            if self.reset_at.is_some_and(|at| at <= now) || (self.check_at <= now && self.is_replaced()) {
                self.set_watches();
                // Without a folder there is nothing to compare; its creation causes a rescan.
                if self.identities.iter().any(Option::is_some) {
                    self.outbox.rescan(Instant::now());
                }
            }
            self.outbox.flush(Instant::now());
        }
    }

    fn wait(&self, stopped: &Receiver<()>) -> Wake {
        let dues = [Some(self.check_at), self.reset_at, self.outbox.due()];
        let due = at(dues.into_iter().flatten().min().unwrap_or(self.check_at));
        let event = |folder_event: Result<FolderEvent, _>| folder_event.map_or(Wake::Stopped, Wake::Event);
        match self.outbox.blocked() {
            Some(out) => select! {
                recv(stopped) -> _ => Wake::Stopped,
                recv(self.events_in) -> folder_event => event(folder_event),
                send(out, LakeChange::Rescan) -> sent => if sent.is_ok() { Wake::RescanSent } else { Wake::Stopped },
                recv(due) -> _ => Wake::Due,
            },
            None => select! {
                recv(stopped) -> _ => Wake::Stopped,
                recv(self.events_in) -> folder_event => event(folder_event),
                recv(due) -> _ => Wake::Due,
            },
        }
    }

    fn handle(&mut self, folder_event: FolderEvent) {
        let now = Instant::now();
        match folder_event {
            FolderEvent::Written(path) => self.report(&path, now),
            FolderEvent::FileMade(path) => {
                // A file with one name is reported when its writer closes it.
                use std::os::unix::fs::MetadataExt;
                if std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_file() && m.nlink() > 1) {
                    self.report(&path, now);
                }
            }
            FolderEvent::FolderMade(path) => self.add_folder(&path, now),
            FolderEvent::Removed(path) => self.report(&path, now),
            // The files of a folder vanished with it, without events.
            FolderEvent::MovedOut(path) if self.was_folder(&path) => self.schedule_reset(),
            FolderEvent::MovedOut(path) => self.report(&path, now),
            FolderEvent::MovedIn(path) => match std::fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.add_folder(&path, now),
                Ok(metadata) if metadata.is_file() => self.report(&path, now),
                // Links and special files are not objects, and a removal has its own event.
                Ok(_) | Err(_) => {}
            },
            // A new root may have the same inode, so the identity is not compared.
            FolderEvent::RootGone | FolderEvent::Lost => self.schedule_reset(),
        }
    }

    fn was_folder(&self, path: &Path) -> bool {
        self.watches.as_ref().is_some_and(|watches| watches.watched(path))
    }

    fn report(&mut self, path: &Path, now: Instant) {
        if let Some(key) = key_of(&self.folders, path) {
            self.outbox.key(key, now);
        }
    }

    /// Watches a new folder, and reports the files in it.
    fn add_folder(&mut self, path: &Path, now: Instant) {
        let folders = Arc::clone(&self.folders);
        let within = |folder: &&Folder| path.starts_with(&folder.dir);
        let (Some(watches), Some(folder)) = (&mut self.watches, folders.of(Bucket::Lake).find(within)) else { return };
        if key_of(&folders, path).is_none() {
            return;
        }
        let outbox = &mut self.outbox;
        watches.watch_tree(folder, path, &mut |key| outbox.key(key, now));
        if watches.fault().is_some() {
            // The reset shows whether the fault persists.
            self.schedule_reset();
        }
    }

    /// Called when events may have been missed: sets all watches again, soon.
    fn schedule_reset(&mut self) {
        let soon = (self.set_at + self.tuning.reset_pause).max(Instant::now());
        self.reset_at = Some(self.reset_at.map_or(soon, |at| at.min(soon)));
    }

    fn identities(&self) -> Vec<Option<(u64, u64)>> {
        self.folders.of(Bucket::Lake).map(|folder| identity(&folder.dir)).collect()
    }

    /// Whether a folder of the bucket was created, removed or replaced.
    fn is_replaced(&mut self) -> bool {
        let now = self.identities();
        self.schedule_check(&now);
        now != self.identities
    }

    fn schedule_check(&mut self, identities: &[Option<(u64, u64)>]) {
        let missing = identities.iter().any(Option::is_none);
        let pause = if missing { self.tuning.check_every_missing } else { self.tuning.check_every };
        self.check_at = Instant::now() + pause;
    }

    /// Sets all watches.
    fn set_watches(&mut self) {
        // Drops the old watches first: both would count against the limits.
        self.watches = None;
        self.identities = self.identities();
        self.schedule_check(&self.identities.clone());
        let missing: Vec<PathBuf> = {
            let all = self.folders.of(Bucket::Lake).zip(&self.identities);
            all.filter(|(_, identity)| identity.is_none()).map(|(folder, _)| folder.dir.clone()).collect()
        };
        let fault = match Watches::new(&self.folders, self.tuning.folders_max, self.handler()) {
            Ok(mut watches) => {
                let fault = watches.fault();
                self.watches = Some(watches);
                fault
            }
            Err(fault) => Some(fault),
        };
        self.set_at = Instant::now();
        self.reset_at = fault.is_some().then(|| self.set_at + self.tuning.rescan_every);
        self.log_faults(fault.as_ref(), &missing);
    }

    /// Handles an event on the thread that reads them. Must not block.
    fn handler(&self) -> impl FnMut(ReadFlags, PathBuf) + Send + 'static {
        let (event_sender, overflowed) = (self.event_sender.clone(), Arc::clone(&self.overflowed));
        let roots: Vec<PathBuf> = self.folders.of(Bucket::Lake).map(|folder| folder.dir.clone()).collect();
        move |event, path| {
            let Some(folder_event) = folder_event(event, path, &roots) else { return };
            if event_sender.try_send(folder_event).is_err() {
                overflowed.store(true, Ordering::SeqCst);
                // Wakes the thread, in case no other event follows.
                let _ = event_sender.try_send(FolderEvent::Lost);
            }
        }
    }

    /// Logs faults once, and when they are over.
    fn log_faults(&mut self, fault: Option<&WatchFault>, missing: &[PathBuf]) {
        let wrong = fault.is_some() || !missing.is_empty();
        if wrong && !self.fault_logged {
            if let Some(fault) = fault {
                let seconds = self.tuning.rescan_every.as_secs();
                tracing::warn!(
                    error = %fault,
                    "lake not fully watched; comparing it every {seconds} s"
                );
            }
            for dir in missing {
                tracing::warn!(folder = %dir.display(), "lake folder missing; waiting for it to be created");
            }
        }
        if !wrong && self.fault_logged {
            tracing::info!("lake fully watched again");
        }
        self.fault_logged = wrong;
    }
}
