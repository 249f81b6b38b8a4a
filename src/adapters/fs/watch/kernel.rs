//! Kernel watches on folders (inotify), and the thread that reads their events.
//!
//! Subscribes only to events that [`super::events`] uses: a run opens every file of the lake, and each open or read
//! would cause an event.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// Bytes of events read at once; one takes at most 272.
const BUFFER_BYTES: usize = 16 << 10;

const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

/// The watched folders by the kernel's number.
type Watched = Arc<Mutex<HashMap<i32, PathBuf>>>;

/// Watches of the kernel, released on drop.
pub(super) struct KernelWatches {
    events: Arc<OwnedFd>,
    watched: Watched,
    /// Closing it stops the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl KernelWatches {
    /// `handle` takes each event with its path. It must not block.
    pub(super) fn new(mut handle: impl FnMut(ReadFlags, PathBuf) + Send + 'static) -> io::Result<Self> {
        let events = Arc::new(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
        let watched = Watched::default();
        let read = {
            let (events, watched) = (Arc::clone(&events), Arc::clone(&watched));
            move || {
                // After a failure the state of the folders is unknown.
                if read(&events, &stopped, &watched, &mut handle).is_err() {
                    handle(ReadFlags::QUEUE_OVERFLOW, PathBuf::new());
                }
            }
        };
        let thread = std::thread::Builder::new().name("lake-events".to_owned()).spawn(read)?;
        Ok(Self { events, watched, stop: Some(stop), thread: Some(thread) })
    }

    /// Watches a folder.
    pub(super) fn add(&self, dir: &Path) -> Result<(), Errno> {
        // Held, so that the thread knows the folder before it sees its first event.
        let mut watched = self.watched.lock();
        let number = add_watch(&self.events, dir, EVENTS)?;
        watched.insert(number, dir.to_owned());
        Ok(())
    }
}

impl Drop for KernelWatches {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads events until `stopped` is closed at its other end.
fn read(
    events: &OwnedFd,
    stopped: &OwnedFd,
    watched: &Watched,
    handle: &mut impl FnMut(ReadFlags, PathBuf),
) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut reader = Reader::new(events, &mut buffer);
    loop {
        let mut ready = [PollFd::new(events, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        if !ready[1].revents().is_empty() {
            return Ok(());
        }
        loop {
            let event = match reader.next() {
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                event => event?,
            };
            let (number, flags) = (event.wd(), event.events());
            let dir = match flags.contains(ReadFlags::IGNORED) {
                true => watched.lock().remove(&number),
                false => watched.lock().get(&number).cloned(),
            };
            // The overflow of the queue belongs to no folder.
            let dir = dir.unwrap_or_default();
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            handle(flags, name.map_or(dir.clone(), |name| dir.join(name)));
        }
    }
}
